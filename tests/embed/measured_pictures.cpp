// Handlers that draw measurements on pictures, in whole pipelines: the example with five handlers, and numbers that
// repeat.
#include <doctest/doctest.h>

#include <nlohmann/json.hpp>
#include <vector>

#include "handlers/draw/glyphs.h"
#include "millrace/runtime.h"

using namespace millrace;

namespace {

bool has_font() { return !handlers::find_default_font().empty(); }

// The bytes of all pictures that reach `out`.
std::vector<std::vector<uint8_t>> pictures_of(const std::string& pipeline, uint32_t threads) {
  RuntimeOptions options;
  options.threads = threads;
  Runtime runtime(options);
  runtime.load(pipeline);
  runtime.start();
  std::vector<std::vector<uint8_t>> pictures;
  while (const auto value = runtime.pull("out")) pictures.emplace_back(value->bytes().begin(), value->bytes().end());
  const Outcome outcome = runtime.wait();
  INFO(outcome.error);
  CHECK(outcome.ok);
  return pictures;
}

} // namespace

TEST_CASE("the five handlers of the example hand one picture on, in one memory, and allocate none on the way" *
          doctest::skip(!has_font())) {
  Runtime runtime;
  runtime.load(MILLRACE_SOURCE_DIR "/examples/pipelines/five_handlers.yaml");
  runtime.set({{"pattern.width", "160"}, {"pattern.height", "120"}, {"pattern.count", "50"}});
  const auto plan = nlohmann::json::parse(runtime.plan_json());
  CHECK(plan["transfers"].empty());
  runtime.start();
  const Outcome outcome = runtime.wait();
  INFO(outcome.error);
  REQUIRE(outcome.ok);
  CHECK(outcome.ticks == 50);
  const auto report = nlohmann::json::parse(outcome.report);
  CHECK(report["handlers"].size() == 5);
  for (const auto& [name, handler] : report["handlers"].items()) {
    INFO(name);
    CHECK(handler["calls"] == (name == "pattern" ? 51 : 50)); // the source is asked once more, and has ended
    CHECK(handler["errors"] == 0);
  }
  CHECK(report["pools"]["cpu"]["steady_allocations"] == 0);
}

TEST_CASE("with media time the numbers on pictures are the same in every run, on any number of threads" *
          doctest::skip(!has_font())) {
  const std::string pipeline =
      "test.pattern width=200 height=80 count=20 fps=25 ! draw.waveform mode=rgb size=0.4 ! stats.fps name=fps "
      "time=media ; fps.out ! app.sink name=out";
  const auto first = pictures_of(pipeline, 1);
  CHECK(first.size() == 20);
  CHECK(pictures_of(pipeline, 1) == first);
  CHECK(pictures_of(pipeline, 3) == first);
}

TEST_CASE("a branch without numbers keeps its pictures as they were, while they are drawn on beside it" *
          doctest::skip(!has_font())) {
  const std::string pattern = "test.pattern name=pattern width=120 height=60 count=5 ! app.sink name=out";
  const auto plain = pictures_of(pattern, 2);
  const auto beside = pictures_of(pattern + " ; pattern. ! stats.fps name=fps ; fps.out ! null.sink", 2);
  CHECK(plain == beside);
}
