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

bool push(Runtime& runtime, const std::string& source, int32_t number) {
  return runtime.push(source, TensorRef{dtype_of<int32_t>(), {1}, &number});
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

TEST_CASE("a gate follows what was detected, and a rate thins what comes behind it") {
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
