// Log records as an application gets them: those of its own runtime alone, on a thread of that runtime.
#include <doctest/doctest.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string>
#include <thread>

#include "millrace/runtime.h"

using namespace millrace;

namespace {

// A record whose texts stay.
struct Heard {
  LogLevel level;
  std::string code, handler, text;
};

// Two gray pictures of 8x8 and a part of another, of which the reader warns.
class Pictures {
 public:
  Pictures() : path_(std::filesystem::temp_directory_path() / ("millrace-log-" + std::to_string(getpid()) + ".gray")) {
    std::ofstream(path_) << std::string(2 * 64 + 5, 'x');
  }
  ~Pictures() { std::filesystem::remove(path_); }
  std::string reader(const std::string& name) const {
    return "file.raw_reader name=" + name + " path=" + path_.string() +
           " width=8 height=8 format=gray8 truncated=drop ! null.sink";
  }

 private:
  std::filesystem::path path_;
};

Outcome run(Runtime& runtime, const std::string& pipeline) {
  runtime.load(pipeline);
  runtime.start();
  return runtime.wait();
}

} // namespace

TEST_CASE("An application is given every record at its level, and lines as a terminal would show them") {
  const Pictures pictures;
  std::vector<Heard> heard;
  std::vector<std::string> lines;
  std::thread::id caller;
  RuntimeOptions options;
  options.log_level = LogLevel::warning;
  options.on_log = [&](const LogRecord& record) {
    caller = std::this_thread::get_id();
    heard.push_back({record.level, std::string(record.code), std::string(record.handler), std::string(record.text)});
  };
  options.on_message = [&](const std::string& line) { lines.push_back(line); };
  Runtime runtime(options);
  REQUIRE(run(runtime, pictures.reader("reader")).ok);
  REQUIRE(heard.size() == 1); // wait() returned when all was given
  CHECK(heard[0].level == LogLevel::warning);
  CHECK(heard[0].handler == "reader");
  CHECK(lines == std::vector<std::string>{"warning reader: " + heard[0].text});
  CHECK(caller != std::this_thread::get_id());

  const Outcome failed = run(runtime, "test.number fail_at=5 ! null.sink"); // the same runtime once more
  CHECK_FALSE(failed.ok);
  REQUIRE(heard.size() == 2);
  CHECK(heard[1].level == LogLevel::error);
  CHECK(heard[1].code == failed.code);
  CHECK(nlohmann::json::parse(failed.report)["log"]["lost"] == 0);
}

TEST_CASE("Two runtimes of a process hear nothing of each other") {
  const Pictures pictures;
  constexpr int kRuns = 20;
  std::vector<std::string> speakers[2];
  std::thread threads[2];
  for (size_t r = 0; r < 2; ++r)
    threads[r] = std::thread([&, r] {
      RuntimeOptions options;
      options.log_level = LogLevel::debug;
      options.on_log = [&speakers, r](const LogRecord& record) {
        if (record.level == LogLevel::warning) speakers[r].emplace_back(record.handler);
      };
      Runtime runtime(options);
      for (int n = 0; n < kRuns; ++n) run(runtime, pictures.reader("reader" + std::to_string(r)));
    });
  for (std::thread& thread : threads) thread.join();
  for (size_t r = 0; r < 2; ++r) CHECK(speakers[r] == std::vector<std::string>(kRuns, "reader" + std::to_string(r)));
}

TEST_CASE("What the application's functions throw ends nothing: no handler fails of it, and the run goes on") {
  const Pictures pictures;
  std::atomic<int> calls{0};
  RuntimeOptions options;
  options.on_message = [&](const std::string&) {
    ++calls;
    throw std::runtime_error("the application's own");
  };
  options.on_log = [&](const LogRecord&) {
    ++calls;
    throw 1;
  };
  Runtime runtime(options);
  const Outcome outcome = run(runtime, pictures.reader("reader"));
  CHECK(outcome.ok);
  CHECK(outcome.ticks == 2);
  CHECK(calls > 2);
}

TEST_CASE("The runtime tells of plugin, plan, devices and clocks in the order in which they come") {
  std::vector<std::string> texts;
  RuntimeOptions options;
  options.devices = "sim:0,cpu";
  options.on_log = [&](const LogRecord& record) { texts.emplace_back(record.text); };
  Runtime runtime(options);
  REQUIRE(run(runtime, "test.pattern width=16 height=16 count=3 ! image.blur ! null.sink").ok);
  size_t next = 0;
  for (const char* beginning : {"plan: 3 handlers in ", "device opened: sim:0",
                                "the clock begins: ", "the clock has ended: 3 ticks", "the run is over: 3 ticks"}) {
    const auto found = std::find_if(texts.begin() + static_cast<std::ptrdiff_t>(next), texts.end(),
                                    [&](const std::string& text) { return text.starts_with(beginning); });
    CAPTURE(beginning);
    REQUIRE(found != texts.end());
    next = static_cast<size_t>(found - texts.begin()) + 1;
  }
}
