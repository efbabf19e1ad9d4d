// runtime.h as an application uses it: pushing, pulling, stopping, several runtimes side by side.
#include "millrace/runtime.h"

#include <doctest/doctest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <mutex>
#include <nlohmann/json.hpp>
#include <thread>

using namespace millrace;

namespace {

TensorRef tensor_of(const std::vector<int32_t>& numbers) {
  return {dtype_of<int32_t>(), {static_cast<int64_t>(numbers.size())}, numbers.data()};
}

constexpr const char* kTensors =
    "app.source name=in payload=tensor dtype=int32 shape=3 ! flow.pass ! app.sink name=out";

std::vector<int32_t> numbers_of(const Value& value) {
  const auto elements = value.tensor().elements<int32_t>();
  return {elements.begin(), elements.end()};
}

RuntimeOptions on_devices(const std::string& devices) {
  RuntimeOptions options;
  options.devices = devices;
  return options;
}

std::string code_of(const std::function<void()>& function) {
  try {
    function();
  } catch (const RuntimeError& error) {
    return error.code();
  }
  return "";
}

} // namespace

TEST_CASE("Tensors that are pushed come out in order, each with the index of its tick") {
  Runtime runtime;
  runtime.load(kTensors);
  runtime.start();
  std::thread pusher([&] {
    for (int32_t n = 0; n < 100; ++n) CHECK(runtime.push("in", tensor_of({n, 2 * n, -n})));
    runtime.end("in");
  });
  int32_t n = 0;
  while (const auto value = runtime.pull("out")) {
    CHECK(value->index() == static_cast<uint64_t>(n));
    CHECK(numbers_of(*value) == std::vector<int32_t>{n, 2 * n, -n});
    ++n;
  }
  pusher.join();
  const Outcome outcome = runtime.wait();
  CHECK(outcome.ok);
  CHECK(n == 100);
  CHECK(outcome.ticks == 100);
  const auto report = nlohmann::json::parse(outcome.report);
  CHECK(report["ticks"]["run"] == 100);
  CHECK(report["edges"][0]["delivered"] == 100);
}

TEST_CASE("Pictures keep their bytes, whatever stride and format they were pushed with") {
  for (const Pixel pixel : {Pixel::gray8, Pixel::bgr8, Pixel::nv12, Pixel::i420, Pixel::p010}) {
    CAPTURE(name_of(pixel));
    Runtime runtime;
    runtime.load("app.source width=5 height=3 format=" + std::string(name_of(pixel)) + " ! app.sink");
    runtime.start();
    constexpr size_t kStride = 40;
    std::vector<uint8_t> memory(4 * kStride * 3);
    for (size_t i = 0; i < memory.size(); ++i) memory[i] = static_cast<uint8_t>(i * 7 + 1);
    PictureRef picture{pixel, 5, 3, {}};
    for (size_t p = 0; p < MR_PLANES_MAX; ++p) picture.planes[p] = {memory.data() + p * 3 * kStride, kStride};
    CHECK(runtime.push("source", picture, 1234));
    runtime.end("source");
    const auto value = runtime.pull("sink");
    REQUIRE(value);
    CHECK(value->header().pts_ns == 1234);
    const ImageView image = value->image();
    CHECK(image.pixel() == pixel);
    for (uint32_t p = 0; p < image.plane_count(); ++p) {
      const bool pairs = p > 0 && image.plane_count() == 2;
      const size_t row_bytes = (p > 0 ? 3u : 5u) * bytes_per_pixel(pixel) * (pairs ? 2 : 1);
      for (uint32_t y = 0; y < image.rows(p); ++y)
        CHECK(std::memcmp(image.row(y, p), memory.data() + (p * 3 + y) * kStride, row_bytes) == 0);
    }
    CHECK(runtime.wait().ok);
  }
}

TEST_CASE("A picture or tensor of another shape than declared is refused before it is queued") {
  Runtime runtime;
  runtime.load(kTensors);
  runtime.start();
  CHECK_THROWS_AS(runtime.push("in", tensor_of({1, 2})), std::invalid_argument);
  const std::vector<uint8_t> pixels(64);
  PictureRef picture{Pixel::gray8, 8, 8, {}};
  picture.planes[0].data = pixels.data();
  CHECK_THROWS_AS(runtime.push("in", picture), std::invalid_argument);
  CHECK(code_of([&] { runtime.push("nobody", tensor_of({1, 2, 3})); }) == "MR0301");
  CHECK(code_of([&] { runtime.pull("in"); }) == "MR0301");
  runtime.end("in");
  CHECK(runtime.wait().ticks == 0);
}

TEST_CASE("try_push says when there is no room, and pushing ends with the run") {
  Runtime runtime;
  runtime.load("app.source name=in payload=tensor dtype=int32 shape=3 depth=2 ! app.sink name=out depth=1");
  runtime.compile();
  // Not started: nobody takes from the queue.
  CHECK(runtime.try_push("in", tensor_of({1, 1, 1})));
  CHECK(runtime.try_push("in", tensor_of({2, 2, 2})));
  CHECK_FALSE(runtime.try_push("in", tensor_of({3, 3, 3})));
  runtime.start();
  CHECK(numbers_of(*runtime.pull("out")) == std::vector<int32_t>{1, 1, 1});
  CHECK(numbers_of(*runtime.pull("out")) == std::vector<int32_t>{2, 2, 2});
  runtime.stop();
  CHECK(runtime.wait().ok);
  CHECK_FALSE(runtime.push("in", tensor_of({4, 4, 4})));
  CHECK_FALSE(runtime.pull("out"));
}

TEST_CASE("stop() ends a run whose app.sink nobody pulls from") {
  Runtime runtime;
  runtime.load("null.source bytes=4 ! app.sink depth=1");
  runtime.start();
  CHECK(runtime.pull("sink")); // it runs, and the sink fills up
  runtime.stop();
  const Outcome outcome = runtime.wait();
  CHECK(outcome.ok);
  CHECK(outcome.ticks >= 1);
}

TEST_CASE("A sink that drops the oldest holds the newest values, and the newest can be asked for") {
  Runtime runtime;
  runtime.load("test.number count=50 ! app.sink depth=3 full=drop_oldest");
  runtime.start();
  CHECK(runtime.wait().ticks == 50);
  CHECK(runtime.try_pull("sink")->index() == 47);
  CHECK(runtime.try_pull_newest("sink")->index() == 49);
  CHECK_FALSE(runtime.try_pull("sink"));
}

TEST_CASE("A sink that drops the newest holds the first values") {
  Runtime runtime;
  runtime.load("test.number count=50 ! app.sink depth=3 full=drop_newest");
  runtime.start();
  runtime.wait();
  for (uint64_t n = 0; n < 3; ++n) CHECK(runtime.pull("sink")->index() == n);
  CHECK_FALSE(runtime.pull("sink"));
}

TEST_CASE("A value that was pulled outlives the runtime") {
  std::optional<Value> value;
  {
    Runtime runtime;
    runtime.load(kTensors);
    runtime.start();
    runtime.push("in", tensor_of({7, 8, 9}));
    runtime.end("in");
    value = runtime.pull("out");
    runtime.wait();
  }
  REQUIRE(value);
  const Value copy = *value;
  value.reset();
  CHECK(numbers_of(copy) == std::vector<int32_t>{7, 8, 9});
}

TEST_CASE("Two runtimes in one process run at the same time and do not mix their values") {
  Runtime first, second;
  first.load(kTensors);
  second.load(kTensors);
  first.start();
  second.start();
  for (int32_t n = 0; n < 20; ++n) {
    first.push("in", tensor_of({n, 0, 1}));
    second.push("in", tensor_of({n, 0, 2}));
    CHECK(numbers_of(*second.pull("out")) == std::vector<int32_t>{n, 0, 2});
    CHECK(numbers_of(*first.pull("out")) == std::vector<int32_t>{n, 0, 1});
  }
  first.end("in");
  CHECK(first.wait().ticks == 20);
  CHECK(second.push("in", tensor_of({99, 0, 2}))); // the one's end is not the other's
  CHECK(numbers_of(*second.pull("out")) == std::vector<int32_t>{99, 0, 2});
  second.end("in");
  CHECK(second.wait().ticks == 21);
}

TEST_CASE("A pipeline runs again after its end") {
  Runtime runtime;
  runtime.load(kTensors);
  for (int32_t round = 0; round < 3; ++round) {
    runtime.start();
    runtime.push("in", tensor_of({round, 1, 1}));
    runtime.end("in");
    CHECK(numbers_of(*runtime.pull("out"))[0] == round);
    CHECK_FALSE(runtime.pull("out"));
    CHECK(runtime.wait().ok);
  }
}

TEST_CASE("A live parameter changes while it runs, another is refused") {
  Runtime runtime;
  runtime.load("app.source format=gray8 width=16 height=16 ! image.blur sigma=0 ! app.sink");
  runtime.start();
  std::vector<uint8_t> pixels(256, 0);
  pixels[8 * 16 + 8] = 255;
  PictureRef picture{Pixel::gray8, 16, 16, {}};
  picture.planes[0].data = pixels.data();
  runtime.push("source", picture);
  CHECK(runtime.pull("sink")->image().row(8)[8] == 255);
  runtime.set("blur.sigma", "3");
  runtime.push("source", picture);
  CHECK(runtime.pull("sink")->image().row(8)[8] < 100);
  CHECK(code_of([&] { runtime.set("sink.depth", "9"); }) == "MR0316");
  CHECK(code_of([&] { runtime.set("blur.sigma", "much"); }) == "MR0311");
  runtime.end("source");
  CHECK(runtime.wait().ok);
}

TEST_CASE("Values cross a simulated device and come back the same as without it") {
  const auto blurred = [](const std::string& devices) {
    Runtime runtime(on_devices(devices));
    runtime.load("app.source format=gray8 width=16 height=16 ! image.blur sigma=1 ! app.sink");
    runtime.start();
    std::vector<uint8_t> pixels(256);
    for (size_t i = 0; i < pixels.size(); ++i) pixels[i] = static_cast<uint8_t>(i * 37);
    PictureRef picture{Pixel::gray8, 16, 16, {}};
    picture.planes[0].data = pixels.data();
    runtime.push("source", picture);
    runtime.end("source");
    const auto value = runtime.pull("sink");
    CHECK(runtime.wait().ok);
    return std::vector<uint8_t>(value->bytes().begin(), value->bytes().end());
  };
  CHECK(blurred("cpu") == blurred("sim:0,cpu"));
}

TEST_CASE("What is wrong with a pipeline is thrown with its code and its place") {
  Runtime runtime;
  CHECK(code_of([&] { runtime.load("test.pattern !"); }).substr(0, 4) == "MR02");
  runtime.load("test.patern ! null.sink");
  CHECK(code_of([&] { runtime.compile(); }) == "MR0304");
  CHECK(code_of([&] { runtime.set("nobody.x", "1"); }) == "MR0102");
  CHECK(code_of([] { Runtime other(on_devices("gpu")); }) == "MR0105");
  CHECK_THROWS_AS(Runtime().start(), std::logic_error);
  CHECK_THROWS_AS(Runtime().wait(), std::logic_error);
}

TEST_CASE("A run that fails says so, and gives what was finished before") {
  Runtime runtime;
  runtime.load_text(
      "version: 1\nhandlers:\n  n: { type: test.number, fail_at: 3 }\n  out: { type: app.sink, input: n, depth: 10 }\n",
      "numbers.yaml");
  CHECK(runtime.explain().find("test.number") != std::string::npos);
  CHECK(nlohmann::json::parse(runtime.plan_json())["handlers"]["out"]["type"] == "app.sink");
  runtime.start();
  const Outcome outcome = runtime.wait();
  CHECK_FALSE(outcome.ok);
  CHECK(outcome.code == "MR0601");
  CHECK(outcome.error.find("numbers.yaml:3") != std::string::npos);
  for (uint64_t n = 0; n < 3; ++n) CHECK(runtime.try_pull("out")->index() == n);
  CHECK_FALSE(runtime.try_pull("out"));
}

TEST_CASE(
    "What the application throws while it is told something is dropped: no handler fails of it, and no process ends") {
  std::mutex mutex;
  std::vector<std::string> told;
  RuntimeOptions options;
  options.on_message = [&](const std::string& line) {
    const std::lock_guard lock(mutex);
    told.push_back(line);
    throw std::runtime_error("from on_message");
  };
  Runtime runtime(options);
  // A source whose times go back is told of, from a call of the runtime's own.
  runtime.load_text(
      "version: 1\nhandlers:\n  in: { type: app.source, payload: tensor, dtype: int32, shape: 3, rate: 30 }\n"
      "  out: { type: null.sink, input: in }\n");
  runtime.start();
  for (int32_t n = 0; n < 5; ++n) REQUIRE(runtime.push("in", tensor_of({n, n, n}), 1000));
  runtime.end("in");
  const Outcome outcome = runtime.wait();
  CHECK(outcome.ok);
  CHECK(outcome.ticks == 5);
  REQUIRE(told.size() == 2); // the second: the log says why it is not complete
  CHECK(told[0].find("does not rise") != std::string::npos);
  CHECK(told[1] == "warning: the log is not complete: from on_message");
}

TEST_CASE("A Runtime that was moved from says so, and one that is moved to goes on") {
  Runtime first;
  first.load(kTensors);
  Runtime second(std::move(first));
  CHECK_THROWS_AS(first.start(), std::logic_error);
  CHECK_THROWS_AS(first.stop(), std::logic_error);
  CHECK_THROWS_AS(first.finished(), std::logic_error);
  second.start();
  Runtime third;
  third = std::move(second);
  CHECK_THROWS_AS(second.wait(), std::logic_error);
  third.end("in");
  CHECK(third.wait().ok);
}

TEST_CASE("wait() for the second time is told from wait() before start()") {
  Runtime runtime;
  runtime.load(kTensors);
  const auto words = [&]() -> std::string {
    try {
      runtime.wait();
    } catch (const std::logic_error& error) {
      return error.what();
    }
    return "";
  };
  CHECK(words() == "wait() before start()");
  runtime.start();
  runtime.end("in");
  CHECK(words() == "");
  CHECK(words() == "wait() after the run was waited for");
}

TEST_CASE("More threads than any machine has are refused, not asked of the system") {
  RuntimeOptions options;
  options.threads = 4'000'000'000;
  CHECK(code_of([&] { Runtime runtime(options); }) == "MR0105");
}

TEST_CASE("A child of fork() that destroys a Runtime leaves the run to its parent") {
  auto runtime = std::make_unique<Runtime>();
  runtime->load(kTensors);
  runtime->start();
  const pid_t child = ::fork();
  REQUIRE(child >= 0);
  if (child == 0) {
    runtime.reset();
    ::_exit(7);
  }
  int status = 0;
  REQUIRE(::waitpid(child, &status, 0) == child);
  CHECK(WIFEXITED(status));
  CHECK(WEXITSTATUS(status) == 7);
  CHECK(runtime->push("in", tensor_of({1, 2, 3})));
  runtime->end("in");
  CHECK(runtime->wait().ok);
}

TEST_CASE("8.5: built-in handlers work on an empty initial value") {
  const std::string picture = "  s: { type: test.pattern, width: 16, height: 16, count: 3 }\n";
  const std::string tensor = "  s: { type: test.number, size: 4, count: 3 }\n";
  const auto from_file = [](const std::string& name) { // three ticks
    return "  s: { type: tensor.from_npy, path: " MILLRACE_SOURCE_DIR "/examples/data/" + name + " }\n";
  };
  const std::string path = (std::filesystem::temp_directory_path() / "millrace_initial").string();
  const std::pair<std::string, std::string> handlers[] = {
      {picture, "draw.boxes"},
      {picture, "draw.marker"},
      {picture, "draw.text, text: hi"},
      {picture, "file.raw_writer, path: " + path + ".raw"},
      {picture, "flow.pass"},
      {picture, "flow.rate"},
      {picture, "image.adjust"},
      {picture, "image.blur"},
      {picture, "image.convert, to: gray8"},
      {picture, "image.crop, x: 2, width: 4"},
      {picture, "image.flip"},
      {picture, "image.letterbox"},
      {picture, "image.normalize"},
      {picture, "image.patches"},
      {picture, "image.resize, width: 8, height: 8"},
      {picture, "null.sink"},
      {picture, "test.read"},
      {picture, "test.work"},
      {from_file("head.npy"), "detect.decode"},
      {from_file("scores.npy"), "tensor.top_k"},
      {tensor, "flow.pass"},
      {tensor, "tensor.to_npy, path: " + path + ".npy"},
      {tensor, "test.mix"},
      {tensor, "test.record, path: " + path + ".txt"},
      {tensor, "test.sum"},
      {tensor, "test.work"},
  };
  for (const auto& [source, handler] : handlers) {
    for (const char* edge : {"delay: 1, initial: empty", "policy: latest, lag: 1, initial: empty"}) {
      INFO(handler, ", ", std::string(edge));
      Runtime runtime;
      runtime.load_text("version: 1\nclock: { mode: free }\nhandlers:\n" + source + "  b: { type: " + handler +
                        ", input: { from: s, " + edge + " } }\n");
      runtime.start();
      const Outcome outcome = runtime.wait();
      INFO(outcome.error);
      REQUIRE(outcome.ok);
      REQUIRE(outcome.ticks == 3);
    }
  }
  for (const char* ending : {".raw", ".npy", ".txt"}) std::filesystem::remove(path + ending);
}

TEST_CASE("a stream whose source is not there at the start begins once it is") {
  const auto file_of = [](const char* name) { return (std::filesystem::temp_directory_path() / name).string(); };
  const std::string there = file_of("millrace_there.raw"), later = file_of("millrace_later.raw");
  std::filesystem::remove(later);
  const auto write = [](const std::string& path, int frames) {
    std::ofstream(path + "~") << std::string(static_cast<size_t>(frames) * 3 * 8 * 8, 'x');
    std::filesystem::rename(path + "~", path);
  };
  write(there, 60);
  Runtime runtime;
  runtime.load_text(R"(
version: 1
clock: { mode: realtime, rate: 100 }
streams: { cameras: { on_error: restart, items: { gate: { path: )" +
                    there + " }, hall: { path: " + later + R"( } } } }
handlers:
  video: { type: file.raw_reader, for_each: cameras, path: '{path}', width: 8, height: 8, fps: 100 }
  show:  { type: null.sink, for_each: cameras, input: video }
)");
  runtime.start();
  write(later, 5);
  const Outcome outcome = runtime.wait();
  CHECK_MESSAGE(outcome.ok, outcome.error);
  const auto streams = nlohmann::json::parse(outcome.report)["streams"]["cameras"];
  CHECK(streams["gate"]["ticks"] >= 1); // late beats are none
  CHECK(streams["hall"]["state"] == "ended");
  CHECK(streams["hall"]["ticks"] >= 1);
  for (const std::string& path : {there, later}) std::filesystem::remove(path);
}

TEST_CASE("whoever adds or removes a stream once the run has ended by itself is told so, and does not wait for ever") {
  Runtime runtime;
  runtime.load_text(R"(
version: 1
streams: { cameras: { max: 2, items: { gate: { count: 3 } } } }
handlers:
  video: { type: test.pattern, for_each: cameras, width: 32, height: 24, count: '{count}' }
  show:  { type: null.sink, for_each: cameras, input: video }
)");
  runtime.start();
  while (!runtime.finished()) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  CHECK(code_of([&] { runtime.add_stream("hall", {{"count", "3"}}); }) == "MR0324");
  CHECK(code_of([&] { runtime.remove_stream("gate"); }) != "");
  CHECK(runtime.wait().ok);
}

TEST_CASE("streams are added and removed while the pipeline runs") {
  Runtime runtime;
  runtime.load_text(R"(
version: 1
clock: { mode: realtime, rate: 100 }
streams: { cameras: { max: 2, items: { gate: { width: 32 } } } }
handlers:
  video: { type: test.pattern, for_each: cameras, width: '{width}', height: 24 }
  show:  { type: null.sink, for_each: cameras, input: video }
)");
  CHECK_THROWS_AS(runtime.add_stream("hall", {{"width", "32"}}), std::logic_error);
  runtime.start();
  CHECK(code_of([&] { runtime.add_stream("hall", {{"width", "16"}}); }) == "MR0402");
  runtime.add_stream("hall", {{"width", "32"}});
  CHECK(code_of([&] { runtime.add_stream("yard", {{"width", "32"}}); }) == "MR0324");
  CHECK(code_of([&] { runtime.remove_stream("yard"); }) == "MR0321");
  runtime.remove_stream("gate");
  CHECK(code_of([&] { runtime.add_stream("yard", {{"width", "64"}}); }) == "MR0402");
  runtime.add_stream("yard", {{"width", "32"}}, "cameras");
  runtime.stop();
  const Outcome outcome = runtime.wait();
  CHECK(outcome.ok);
  const auto streams = nlohmann::json::parse(outcome.report)["streams"]["cameras"];
  CHECK(streams.size() == 2);
  CHECK(streams["hall"]["state"] == "ended");
  CHECK(streams.contains("yard"));
}
