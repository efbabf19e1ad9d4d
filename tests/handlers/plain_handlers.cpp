// null.source, null.sink, flow.pass and file.raw_writer: what costs nothing, and what proves what came.
#include <doctest/doctest.h>

#include <sys/resource.h>

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "builtin.h"

using namespace millrace;
using namespace millrace::handlers;
using millrace::testing::Result;
using millrace::testing::TableTest;
using millrace::testing::Value;

namespace {

// A file that is gone with the test.
struct ScratchFile {
  std::string path = std::string(MILLRACE_BINARY_DIR) + "/plain_handlers.scratch";
  ~ScratchFile() { std::remove(path.c_str()); }
  std::string text() const {
    std::ifstream file(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
  }
};

std::string written(const Value& value) {
  const ScratchFile file;
  TableTest writer(builtin("file.raw_writer"), {{"path", file.path}});
  writer.input("in", value);
  REQUIRE(writer.tick().ok());
  REQUIRE(writer.drain() == MR_OK);
  return file.text();
}

} // namespace

TEST_CASE("null.source gives its index in as many bytes as there are, count times") {
  TableTest source(builtin("null.source"), {{"count", "300"}, {"bytes", "3"}});
  for (uint32_t index = 0; index < 300; ++index) {
    const Result result = source.tick();
    REQUIRE(result.ok());
    const auto bytes = result.tensor("out").elements<uint8_t>();
    REQUIRE(bytes.size() == 3);
    CHECK(bytes[0] + 256u * bytes[1] == index);
  }
  CHECK(source.tick().end());
  CHECK(source.facts().tick_count == 300);
  CHECK(source.format("out").shape[0] == 3);
}

TEST_CASE("flow.pass hands on the buffer itself, of any type") {
  for (const Value& value :
       {testing::image(Pixel::nv12, 4, 4), testing::tensor<float>({2}), testing::records<Box>({{}})}) {
    TableTest pass(builtin("flow.pass"));
    pass.input("in", value);
    const Result result = pass.tick();
    REQUIRE(result.ok());
    CHECK(result.state("out") == MR_OUTPUT_FORWARDED);
    CHECK(result.value("out").data() == value.data());
  }
}

TEST_CASE("null.sink takes anything") {
  TableTest sink(builtin("null.sink"));
  sink.input("in", testing::records<Box>({}));
  CHECK(sink.tick().ok());
}

TEST_CASE("a picture is written without its padding, plane after plane") {
  const Value rgb =
      testing::image(Pixel::rgb8, 5, 3, [](uint32_t x, uint32_t y, uint32_t c) { return y * 15 + x * 3 + c; });
  std::string wanted;
  for (char i = 0; i < 45; ++i) wanted += i;
  CHECK(written(rgb) == wanted);
  CHECK(written(testing::image(Pixel::nv12, 5, 3, 7)) == std::string(15 + 2 * 6, 7));
  CHECK(written(testing::image(Pixel::i420, 5, 3, 7)) == std::string(15 + 2 * 6, 7));
  CHECK(written(testing::image(Pixel::p010, 5, 3, 7)) == std::string(2 * (15 + 2 * 6), 7));
}

TEST_CASE("a tensor is written in row-major order, whatever its strides") {
  const Value dense = testing::tensor<uint8_t>({2, 3}, {0, 1, 2, 3, 4, 5});
  CHECK(written(dense) == std::string({0, 1, 2, 3, 4, 5}));
  const Value transposed = testing::tensor<uint8_t>({3, 2}, {0, 1, 2, 3, 4, 5});
  transposed.raw().as.tensor.strides[0] = 1;
  transposed.raw().as.tensor.strides[1] = 3;
  CHECK(written(transposed) == std::string({0, 3, 1, 4, 2, 5}));
  const Value padded = testing::tensor<uint8_t>({2, 1, 2}, {0, 1, 2, 3});
  padded.raw().as.tensor.strides[0] = 2;
  CHECK(written(padded) == std::string({0, 1, 2, 3}));
  CHECK(written(testing::tensor<uint16_t>({2}, {0x0201, 0x0403})) == std::string({1, 2, 3, 4}));
  CHECK(written(testing::tensor<uint8_t>({0, 4})) == "");
}

TEST_CASE("records and packets are written as far as they are in use") {
  CHECK(written(testing::records<Box>({{}, {}})).size() == 2 * sizeof(Box));
  const uint8_t bytes[] = {9, 8, 7};
  CHECK(written(testing::packet(bytes)) == std::string({9, 8, 7}));
}

TEST_CASE("the index stands before each value where it is asked for") {
  const ScratchFile file;
  TableTest writer(builtin("file.raw_writer"), {{"path", file.path}, {"index", "true"}});
  writer.input("in", testing::tensor<uint8_t>({1}, {200}));
  writer.tick();
  writer.tick();
  REQUIRE(writer.drain() == MR_OK);
  using namespace std::string_literals;
  CHECK(file.text() == "\0\0\0\0\0\0\0\0\xc8\1\0\0\0\0\0\0\0\xc8"s);
}

TEST_CASE("what cannot be written is a failure that names the file and the reason") {
  const ScratchFile file;
  std::ofstream(file.path) << "no folder";
  TableTest nowhere(builtin("file.raw_writer"), {{"path", file.path + "/x"}});
  nowhere.input("in", testing::tensor<uint8_t>({1}));
  CHECK(nowhere.start() == MR_ERROR);
  CHECK(nowhere.error().find("scratch/x': Not a directory") != std::string::npos);
}

TEST_CASE("a full device is told at once, and a full disk at the latest when the stream is drained" *
          doctest::skip(!std::filesystem::exists("/dev/full"))) {
  for (const int64_t bytes : {1, 1 << 20}) {
    TableTest full(builtin("file.raw_writer"), {{"path", "/dev/full"}});
    full.input("in", testing::tensor<uint8_t>({bytes}));
    CHECK(full.tick().error == "cannot write '/dev/full': No space left on device (at byte 0)");
  }
  const ScratchFile file;
  TableTest small(builtin("file.raw_writer"), {{"path", file.path}});
  small.input("in", testing::tensor<uint8_t>({1000}));
  REQUIRE(small.tick().ok()); // it waits for more
  rlimit before{};
  REQUIRE(getrlimit(RLIMIT_FSIZE, &before) == 0);
  const rlimit limit{400, before.rlim_max};
  REQUIRE(setrlimit(RLIMIT_FSIZE, &limit) == 0);
  const mr_status drained = small.drain();
  REQUIRE(setrlimit(RLIMIT_FSIZE, &before) == 0);
  CHECK(drained == MR_ERROR);
  CHECK(small.error() == "cannot write '" + file.path + "': File too large (at byte 400)");
}

TEST_CASE("a writer that was drained refuses more, and writes a new file when it is started again") {
  const ScratchFile file;
  TableTest writer(builtin("file.raw_writer"), {{"path", file.path}});
  writer.input("in", testing::tensor<uint8_t>({1}, {65}));
  writer.tick();
  writer.drain();
  CHECK(writer.tick().error == "'" + file.path + "' is closed");
  writer.stop();
  CHECK(writer.tick().ok());
  writer.drain();
  CHECK(file.text() == "A");
}
