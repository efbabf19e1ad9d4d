// See whole_file.h.
#include "plugins/codebook/whole_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <filesystem>

#include "millrace/write_signals.h"

namespace millrace::codebook {

namespace {

std::system_error failed() { return {errno, std::generic_category()}; }

} // namespace

WholeFile::WholeFile(std::string path) : path_(std::move(path)) {
  const std::filesystem::path folder = std::filesystem::path(path_).parent_path();
  if (!folder.empty()) std::filesystem::create_directories(folder);
  part_ = path_ + ".part-" + std::to_string(::getpid());
  file_ = ::open(part_.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
  if (file_ < 0) throw failed();
}

WholeFile::~WholeFile() {
  if (file_ < 0) return;
  ::close(file_);
  ::unlink(part_.c_str());
}

void WholeFile::write(std::span<const std::byte> bytes) {
  const HeldWriteSignals held;
  for (size_t at = 0; at < bytes.size();) {
    const ssize_t count = ::write(file_, bytes.data() + at, bytes.size() - at);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) throw failed();
    at += static_cast<size_t>(count);
  }
  written_ += bytes.size();
}

void WholeFile::fill_to(size_t offset) {
  static constexpr std::array<std::byte, 64> kZeros{};
  while (written_ < offset) write(std::span(kZeros).first(std::min(offset - written_, kZeros.size())));
}

void WholeFile::commit() {
  if (::fsync(file_) != 0) throw failed();
  if (::rename(part_.c_str(), path_.c_str()) != 0) throw failed();
  ::close(file_);
  file_ = -1;
}

} // namespace millrace::codebook
