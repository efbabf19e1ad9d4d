// Numbers under a locale with a decimal comma, which a host has set or a plugin sets: they are read and written with a
// point, and the host keeps its locale.
#include <doctest/doctest.h>

#include <clocale>
#include <cstdlib>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>

#include "millrace/runtime.h"
#include "tests/comma_locale.h"
#include "tests/folder.h"

using namespace millrace;

namespace {

std::string decimal_mark() { return std::localeconv()->decimal_point; }

// The first pixel after test.foreign, ten times its gain.
int first_pixel(Runtime& runtime) {
  static const std::vector<uint8_t> black(4);
  REQUIRE(runtime.push("in", PictureRef{Pixel::gray8, 2, 2, {{{black.data(), 2}}}}));
  const std::optional<Value> value = runtime.pull("out");
  REQUIRE(value.has_value());
  return value->image().row(0)[0];
}

} // namespace

TEST_CASE(
    "Under a host's decimal comma parameters, files, changes and reports have points, and the host keeps its comma") {
  const test::CommaLocale comma;
  if (!comma.is_set()) return;
  REQUIRE(std::strtod("2.5", nullptr) == 2);
  Runtime runtime;
  runtime.load_text(R"(version: 1
clock: { mode: free, rate: 29.97 }
handlers:
  video: { type: test.pattern, width: 64.0, height: 4.8e1, count: 3 }
  blur:  { type: image.blur, input: video, sigma: 2.5, budget: 1.5s }
  sink:  { type: null.sink, input: blur }
)");
  runtime.set("blur.sigma", "1.25");
  CHECK(runtime.explain().find("29,97") == std::string::npos);
  CHECK(nlohmann::json::accept(runtime.plan_json()));
  runtime.start();
  const Outcome outcome = runtime.wait();
  CHECK_MESSAGE(outcome.ok, outcome.error);
  CHECK(outcome.ticks == 3);
  CHECK(nlohmann::json::accept(outcome.report));
  try {
    runtime.load("test.pattern count=3 ! image.blur sigma=99.5 ! null.sink");
    runtime.compile();
    FAIL_CHECK("it is out of range");
  } catch (const RuntimeError& error) {
    CHECK(std::string(error.what()).find("'99.5' is not a number from") != std::string::npos);
  }
  CHECK(decimal_mark() == ",");
}

TEST_CASE("A plugin that sets a decimal comma changes no number of a run, neither in its own calls nor in later ones") {
  const test::CommaLocale comma;
  if (!comma.is_set()) return;
  std::setlocale(LC_NUMERIC, "C"); // the host has none: the plugin sets it
  RuntimeOptions options;
  options.plugin_paths = {MILLRACE_BINARY_DIR "/test_foreign"};
  Runtime runtime(options);
  runtime.load(
      "app.source name=in format=gray8 width=2 height=2 ! test.foreign name=foreign gain=1.5 ! app.sink name=out");
  runtime.start();
  CHECK(first_pixel(runtime) == 15);
  CHECK(decimal_mark() == ",");
  runtime.set("foreign.gain", "2.5");
  CHECK(first_pixel(runtime) == 25);
  runtime.end("in");
  const Outcome outcome = runtime.wait();
  CHECK_MESSAGE(outcome.ok, outcome.error);
  CHECK(nlohmann::json::accept(outcome.report));
  // Another run of the same process.
  Runtime second;
  second.load("test.pattern width=8 height=8 count=2 ! image.blur sigma=0.75 ! null.sink");
  second.start();
  CHECK(second.wait().ok);
}
