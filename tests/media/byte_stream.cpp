// Bytes from FIFOs and the standard input: all of them, an end at the last writer's, and an interrupt at any time.
#include "plugins/media/byte_stream.h"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <chrono>
#include <future>
#include <memory>
#include <string>
#include <system_error>
#include <thread>

#include "tests/media/plugin.h"

namespace millrace::media {
namespace {

std::string make_fifo(const std::string& name) {
  const std::string path = scratch(name);
  REQUIRE(mkfifo(path.c_str(), 0600) == 0);
  return path;
}

// The other end of a FIFO; there has to be a reader.
class Writer {
 public:
  explicit Writer(const std::string& path) : descriptor_(open(path.c_str(), O_WRONLY | O_CLOEXEC)) {
    REQUIRE(descriptor_ >= 0);
  }
  ~Writer() { close(descriptor_); }
  Writer(const Writer&) = delete;
  Writer& operator=(const Writer&) = delete;

  void write(const std::string& bytes) const {
    for (size_t at = 0; at < bytes.size();) {
      const ssize_t count = ::write(descriptor_, bytes.data() + at, bytes.size() - at);
      if (count < 0) return; // the reader's bytes are compared
      at += static_cast<size_t>(count);
    }
  }

 private:
  int descriptor_;
};

std::string read_all(AVIOContext* io) {
  std::string bytes, piece(1000, '\0');
  for (;;) {
    const int count = avio_read(io, reinterpret_cast<unsigned char*>(piece.data()), static_cast<int>(piece.size()));
    if (count <= 0) return bytes;
    bytes.append(piece, 0, static_cast<size_t>(count));
  }
}

int read_one(AVIOContext* io) {
  unsigned char byte;
  return avio_read(io, &byte, 1);
}

std::string many_bytes() {
  std::string bytes(1'000'000, '\0');
  for (size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<char>(i * i / 7);
  return bytes;
}

} // namespace

TEST_CASE("a FIFO gives every byte, more than it holds at a time, and ends when its writer has gone") {
  const std::string path = make_fifo("bytes-all");
  Interrupt interrupt;
  ByteStream stream(path, interrupt);
  std::thread thread([&] { Writer(path).write(many_bytes()); });
  const bool is_whole = read_all(stream.io()) == many_bytes();
  thread.join();
  CHECK(is_whole);
  CHECK(read_one(stream.io()) == AVERROR_EOF);
}

TEST_CASE("a FIFO ends at its last writer's close, and no sooner") {
  const std::string path = make_fifo("bytes-two");
  Interrupt interrupt;
  ByteStream stream(path, interrupt);
  auto second = std::make_unique<Writer>(path);
  {
    const Writer first(path);
    first.write("a");
  }
  CHECK(read_one(stream.io()) == 1);
  second->write("b");
  CHECK(read_one(stream.io()) == 1);
  second.reset();
  CHECK(read_one(stream.io()) == AVERROR_EOF);
}

TEST_CASE("an interrupt ends a read of a FIFO that nobody writes yet, and one whose writer is silent") {
  for (const bool has_writer : {false, true}) {
    const std::string path = make_fifo("bytes-silent");
    Interrupt interrupt;
    ByteStream stream(path, interrupt);
    const auto writer = has_writer ? std::make_unique<Writer>(path) : nullptr;
    std::future<int> read = std::async(std::launch::async, [&] { return read_one(stream.io()); });
    // It waits: what nobody writes cannot have come, nor an end.
    CHECK(read.wait_for(std::chrono::milliseconds(120)) == std::future_status::timeout);
    interrupt.ask();
    CHECK(read.get() == AVERROR_EXIT);
  }
}

TEST_CASE("a read that may wait so long ends after that") {
  const std::string path = make_fifo("bytes-late");
  Interrupt interrupt;
  ByteStream stream(path, interrupt);
  interrupt.allow(0.01);
  CHECK(read_one(stream.io()) == AVERROR_EXIT);
  CHECK(interrupt.why() == Interrupt::Why::late);
}

TEST_CASE("- is the standard input, which stays open") {
  int ends[2];
  REQUIRE(pipe(ends) == 0);
  const int before = dup(STDIN_FILENO);
  REQUIRE(dup2(ends[0], STDIN_FILENO) >= 0);
  REQUIRE(write(ends[1], "film", 4) == 4);
  close(ends[1]);
  std::string bytes;
  {
    Interrupt interrupt;
    ByteStream stream("-", interrupt);
    bytes = read_all(stream.io());
  }
  const bool is_open = fcntl(STDIN_FILENO, F_GETFD) >= 0;
  if (before >= 0) dup2(before, STDIN_FILENO);
  if (before >= 0) close(before);
  close(ends[0]);
  CHECK(bytes == "film");
  CHECK(is_open);
}

TEST_CASE("a FIFO that is not there is refused by the system's code") {
  const Interrupt interrupt;
  try {
    const ByteStream stream("no/such/fifo", interrupt);
    FAIL("it was opened");
  } catch (const std::system_error& error) {
    CHECK(error.code() == std::errc::no_such_file_or_directory);
  }
}

} // namespace millrace::media
