// Handlers that choose, stop and thin values, and those that read and write files, in whole pipelines.
#include <doctest/doctest.h>

#include <cstdio>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "millrace/runtime.h"

using namespace millrace;

namespace {

const std::string kData = MILLRACE_SOURCE_DIR "/examples/data/";

// A file that is gone with the test.
struct Scratch {
  explicit Scratch(const std::string& name) : path(std::string(MILLRACE_BINARY_DIR) + "/flow_and_files." + name) {}
  ~Scratch() { std::remove(path.c_str()); }
  std::string path;
};

std::string text_of(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

Outcome run(const std::string& pipeline) {
  Runtime runtime;
  runtime.load(pipeline);
  runtime.start();
  return runtime.wait();
}

// Record types of a program that are not those that are given.
struct Spot {
  static constexpr std::string_view kSchema = "test.Spot";
  float x, y;
};
struct OldBox {
  static constexpr std::string_view kSchema = "millrace.Box";
  float x, y, width, height;
};

bool push(Runtime& runtime, const std::string& source, int32_t number) {
  return runtime.push(source, TensorRef{dtype_of<int32_t>(), {1}, &number});
}

// Runs to the end; the pictures that came to the app.sink `out`.
size_t pictures_of(Runtime& runtime) {
  runtime.start();
  const Outcome outcome = runtime.wait();
  INFO(outcome.error);
  CHECK(outcome.ok);
  size_t count = 0;
  while (runtime.try_pull("out")) ++count;
  return count;
}

} // namespace

TEST_CASE("a switch and a gate change while the pipeline runs, each between two ticks") {
  Runtime runtime;
  runtime.load_text(R"(
version: 1
handlers:
  numbers: { type: app.source, payload: tensor, dtype: int32, shape: "1" }
  shut:    { type: flow.gate, input: numbers, open: false }
  choose:  { type: flow.switch, inputs: { in: [numbers, shut] } }
  out:     { type: app.sink, input: choose }
)");
  runtime.start();
  const auto next = [&](int32_t number) {
    REQUIRE(push(runtime, "numbers", number));
    const auto value = runtime.pull("out");
    REQUIRE(value);
    return value->tensor().elements<int32_t>()[0];
  };
  CHECK(next(1) == 1);
  runtime.set({{"choose.select", "1"}, {"shut.open", "true"}});
  CHECK(next(2) == 2);
  runtime.set("shut.open", "false"); // the other input has a value, and is not asked
  REQUIRE(push(runtime, "numbers", 3));
  runtime.end("numbers");
  CHECK(!runtime.pull("out"));
  CHECK(runtime.wait().ok);
}

TEST_CASE("records go from a file to a file and are the same, ticks without any too") {
  const Scratch copy("jsonl");
  const Outcome outcome = run("record.from_json path=" + kData + "boxes.jsonl ! record.to_json path=" + copy.path);
  REQUIRE_MESSAGE(outcome.ok, outcome.error);
  CHECK(outcome.ticks == 28);
  std::ifstream wanted(kData + "boxes.jsonl"), got(copy.path);
  std::string wanted_line, got_line;
  int lines = 0;
  for (; std::getline(wanted, wanted_line); ++lines) {
    REQUIRE(std::getline(got, got_line));
    CHECK(nlohmann::json::parse(got_line) == nlohmann::json::parse(wanted_line));
  }
  CHECK(lines == 10);
  CHECK(!std::getline(got, got_line));
}

TEST_CASE("raw frames and arrays go from a file to a file byte by byte") {
  const Scratch frames("gray"), arrays("npy");
  const Outcome raw = run("file.raw_reader path=" + kData +
                          "disc.gray width=64 height=48 format=gray8 fps=25 ! file.raw_writer path=" + frames.path);
  CHECK_MESSAGE(raw.ok, raw.error);
  CHECK(text_of(frames.path) == text_of(kData + "disc.gray"));
  const Outcome npy = run("tensor.from_npy path=" + kData + "waves.npy ! tensor.to_npy path=" + arrays.path);
  CHECK_MESSAGE(npy.ok, npy.error);
  CHECK(text_of(arrays.path) == text_of(kData + "waves.npy"));
}

TEST_CASE("a gate follows what was detected, and a rate thins what comes after it") {
  const Scratch indices("indices");
  const std::string head = "version: 1\nhandlers:\n  boxes: { type: record.from_json, path: '" + kData +
                           "boxes.jsonl' }\n  numbers: { type: null.source, bytes: 1, count: 28 }\n";
  Runtime runtime;
  runtime.load_text(head + R"(
  gate: { type: flow.gate, inputs: { in: numbers, control: { from: boxes, policy: latest } } }
  rate: { type: flow.rate, input: gate, one_in: 9 }
  save: { type: file.raw_writer, input: rate, path: ')" +
                    indices.path + "' }\n");
  runtime.start();
  const Outcome outcome = runtime.wait();
  REQUIRE_MESSAGE(outcome.ok, outcome.error);
  CHECK(text_of(indices.path) == std::string({0, 9, 18})); // tick 27 is looked at, and nobody is seen
}

TEST_CASE("records into a handler of pictures, and a file that is not there, are refused before the run") {
  const auto code_of = [](const std::string& pipeline) -> std::string {
    try {
      run(pipeline);
    } catch (const RuntimeError& error) {
      return error.code();
    }
    return "";
  };
  CHECK(code_of("test.pattern count=1 ! record.to_json path=/dev/null") == "MR0305");
  CHECK(code_of("record.from_json path=no/such.jsonl ! null.sink") == "MR0604");
  CHECK(code_of("tensor.from_npy path=no/such.npy ! null.sink") == "MR0604");
  CHECK(code_of("file.raw_reader path=no/such.raw width=1 height=1 ! null.sink") == "MR0604");
}

TEST_CASE(
    "a canvas with until: shortest ends with the layer that ends first, also after other handlers and on a device") {
  const auto pictures = [](const char* until, const char* devices) {
    RuntimeOptions options;
    options.devices = devices;
    Runtime runtime(options);
    runtime.load_text(std::string(R"(
version: 1
clock: { mode: free }
handlers:
  long:  { type: test.pattern, width: 16, height: 8, count: 9 }
  short: { type: test.pattern, width: 16, height: 8, count: 4 }
  blur:  { type: image.blur, input: short }
  pass:  { type: flow.pass, input: blur }
  wall:  { type: image.composite, input: [long, pass], until: )") +
                      until + R"( }
  out:   { type: app.sink, input: wall, depth: 64 }
)");
    return pictures_of(runtime);
  };
  for (const char* devices : {"cpu", "sim:0,cpu"}) {
    INFO(devices);
    CHECK(pictures("longest", devices) == 9);
    CHECK(pictures("shortest", devices) == 4);
  }
}

TEST_CASE("a layer of another clock ends a canvas too, where it is aligned") {
  Runtime runtime;
  runtime.load_text(R"(
version: 1
clocks:
  fast: { mode: free, rate: 50 }
  slow: { mode: free, rate: 25 }
handlers:
  long:  { type: test.pattern, width: 16, height: 8, count: 200, clock: fast }
  short: { type: test.pattern, width: 16, height: 8, count: 5, clock: slow }
  wall:  { type: image.composite, until: shortest,
           input: [long, { from: short, policy: align, within: 25ms }] }
  out:   { type: app.sink, input: wall, depth: 512 }
)");
  const size_t count = pictures_of(runtime);
  CHECK(count >= 9); // the last picture at 160 ms is near enough until 185 ms
  CHECK(count <= 11);
}

TEST_CASE("records that were pulled are read as their type, and as no other") {
  Runtime runtime;
  runtime.load(std::string("record.from_json path=") + MILLRACE_SOURCE_DIR +
               "/examples/data/boxes.jsonl ! app.sink name=out depth=4 full=drop_newest");
  runtime.start();
  CHECK(runtime.wait().ok);
  const auto value = runtime.try_pull("out");
  REQUIRE(value);
  const std::span<const Box> boxes = value->records<Box>();
  REQUIRE(boxes.size() > 0);
  CHECK(boxes.size_bytes() == value->bytes().size());
  CHECK(boxes[0].width > 0);
  CHECK_THROWS_WITH_AS(value->records<Spot>(), "the value holds records of another type than 'test.Spot'",
                       std::logic_error);
  CHECK_THROWS_WITH_AS(value->records<OldBox>(),
                       "the value's 'millrace.Box' have 32 bytes each, and those of the program 16: they are of two "
                       "versions",
                       std::logic_error);

  Runtime pictures;
  pictures.load("test.pattern count=1 width=8 height=8 ! app.sink name=out");
  pictures.start();
  CHECK(pictures.wait().ok);
  CHECK_THROWS_WITH_AS(pictures.try_pull("out")->records<Box>(),
                       "the value holds no records, and 'millrace.Box' is asked", std::logic_error);
}

TEST_CASE("plugins that were installed beside the library are found without a path, and a missing folder is no error") {
  RuntimeOptions options;
  options.installed_plugins = std::string(MILLRACE_BINARY_DIR) + "/no/such/folder";
  Runtime runtime(options);
  runtime.load("test.pattern count=1 ! null.sink");
  runtime.start();
  CHECK(runtime.wait().ok);
}
