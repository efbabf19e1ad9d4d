// Rates and percentiles against plain arithmetic, and the handlers that measure, in a time that the tests set.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <random>

#include "builtin.h"
#include "handlers/draw/glyphs.h"
#include "handlers/stats/latency_window.h"
#include "handlers/stats/rate_meter.h"
#include "ink.h"
#include "pictures.h"
#include "tests/milliseconds.h"

using namespace millrace;
using namespace millrace::handlers;
using millrace::testing::Result;
using millrace::testing::TableTest;
using millrace::testing::Value;

namespace {

bool equal_bytes(const Value& a, const Value& b) {
  return a.header().extent_bytes == b.header().extent_bytes &&
         std::equal(a.data(), a.data() + a.header().extent_bytes, b.data());
}

} // namespace

TEST_CASE("a rate is the number of intervals in the window by the time that they took") {
  RateMeter meter;
  CHECK(meter.rate().interval_count == 0);
  meter.add(5 * kMs, 1000 * kMs);
  CHECK(meter.rate().per_second == 0);
  for (int i = 1; i <= 100; ++i) meter.add((5 + 20 * i) * kMs, 1000 * kMs);
  CHECK(meter.rate().per_second == 50);
  CHECK(meter.rate().interval_count == 50);
  CHECK(meter.rate().span_ns == 1000 * kMs);
}

TEST_CASE("a rate follows random times exactly, also where more come than the meter remembers") {
  for (const auto& [mean_ns, window_ns] : {std::pair{int64_t{1000}, int64_t{50'000'000}}, {3 * kMs, 100 * kMs}}) {
    const uint32_t seed = 77;
    INFO("seed " << seed << ", mean " << mean_ns);
    std::mt19937 random(seed);
    RateMeter meter;
    std::vector<int64_t> times;
    int64_t now = 0;
    bool equal = true;
    for (int i = 0; i < 10'000; ++i) {
      now += 1 + static_cast<int64_t>(random() % static_cast<uint32_t>(2 * mean_ns));
      meter.add(now, window_ns);
      times.push_back(now);
      size_t first = times.size() > RateMeter::kTimesMax ? times.size() - RateMeter::kTimesMax : 0;
      while (times.size() - first > 2 && now - times[first] > window_ns) ++first;
      const size_t intervals = times.size() - 1 - first;
      if (intervals == 0) continue;
      const double wanted = static_cast<double>(intervals) * 1e9 / static_cast<double>(now - times[first]);
      equal = equal && std::abs(meter.rate().per_second - wanted) <= wanted * 1e-12;
    }
    CHECK(equal);
  }
}

TEST_CASE("a pause longer than the window is measured, and a time that goes back begins anew") {
  RateMeter meter;
  for (int64_t time : {0, 10, 20, 5020}) meter.add(time * kMs, 1000 * kMs);
  CHECK(meter.rate().per_second == doctest::Approx(0.2));
  meter.add(7 * kMs, 1000 * kMs);
  CHECK(meter.rate().interval_count == 0);
  meter.add(7 * kMs, 1000 * kMs);
  CHECK(meter.rate().interval_count == 0); // no time has passed: there is no rate
  meter.add(17 * kMs, 1000 * kMs);
  CHECK(meter.rate().per_second == 200);
}

TEST_CASE("percentiles are those of the sorted window, by nearest rank") {
  const uint32_t seed = 4;
  INFO("seed " << seed);
  std::mt19937 random(seed);
  for (uint32_t capacity : {1u, 2u, 7u, 100u, 101u, 4096u}) {
    LatencyWindow window(capacity);
    CHECK(window.latency().count == 0);
    std::vector<int64_t> all;
    for (uint32_t i = 0; i < 3 * capacity; ++i) {
      all.push_back(static_cast<int64_t>(random() % 1000) * 1000 - 100'000);
      window.add(all.back());
      if (i % (1 + capacity / 5) != 0 && i + 1 < 3 * capacity) continue;
      std::vector<int64_t> last(all.end() - static_cast<ptrdiff_t>(std::min<size_t>(all.size(), capacity)), all.end());
      std::sort(last.begin(), last.end());
      const auto at = [&](double share) {
        return static_cast<double>(
                   last[static_cast<size_t>(std::ceil(share * static_cast<double>(last.size()) - 1e-9)) - 1]) /
               1000;
      };
      const Latency latency = window.latency();
      INFO("capacity " << capacity << ", value " << i);
      CHECK(latency.count == static_cast<int64_t>(last.size()));
      CHECK(latency.p50_us == at(0.5));
      CHECK(latency.p99_us == at(0.99));
      CHECK(latency.max_us == at(1));
    }
  }
}

TEST_CASE("a tick was due one period before its deadline: the given one, or the shortest step seen") {
  DueTimes given(20 * kMs);
  CHECK(given.due_ns(120 * kMs) == 100 * kMs);
  CHECK_FALSE(given.due_ns(0));
  DueTimes learned;
  CHECK_FALSE(learned.due_ns(120 * kMs));
  CHECK(learned.due_ns(160 * kMs) == 120 * kMs); // a beat was skipped, which is not known yet
  CHECK(learned.due_ns(180 * kMs) == 160 * kMs);
  CHECK(learned.due_ns(240 * kMs) == 220 * kMs);
  learned.clear();
  CHECK_FALSE(learned.due_ns(300 * kMs));
}

TEST_CASE("stats.fps gives the rate of the wall's time, or of the media's") {
  for (const char* time : {"wall", "media"}) {
    TableTest fps(builtin("stats.fps"), {{"time", time}, {"draw", "false"}});
    fps.input("in", testing::image(Pixel::gray8, 4, 4));
    fps.period_ns(40 * kMs);
    CHECK_FALSE(fps.tick().has("rate"));
    for (int i = 1; i <= 60; ++i) {
      fps.set_now_ns(i * 10 * kMs);
      const Result result = fps.tick();
      REQUIRE(result.ok());
      REQUIRE(result.records<Rate>("rate").size() == 1);
      CHECK(result.records<Rate>("rate")[0].per_second == (time == std::string("wall") ? 100 : 25));
      CHECK(result.records<Rate>("rate")[0].interval_count == (time == std::string("wall") ? i : std::min(i, 25)));
    }
  }
}

TEST_CASE("a reset makes stats.fps forget what was before it") {
  TableTest fps(builtin("stats.fps"), {{"draw", "false"}});
  fps.input("in", testing::image(Pixel::gray8, 4, 4));
  fps.tick();
  fps.set_now_ns(kMs);
  CHECK(fps.tick().has("rate"));
  CHECK(fps.reset() == MR_OK);
  fps.set_now_ns(2 * kMs);
  CHECK_FALSE(fps.tick().has("rate"));
}

TEST_CASE("what measures hands every kind of value on unchanged, times and all") {
  const std::vector<uint8_t> bytes = {1, 2, 3};
  const std::vector<Value> values = {
      testing::tensor<float>({2, 2}, {1, 2, 3, 4}).at(7, 8), testing::records<Box>({{1, 2, 3, 4}}).at(7, 8),
      testing::packet(bytes, 3, true).at(7, 8), testing::image(Pixel::p010, 6, 4, 9).at(7, 8)};
  for (const char* type : {"stats.fps", "stats.latency"})
    for (const Value& value : values) {
      TableTest meter(builtin(type), {{"draw", has_font() ? "true" : "false"}});
      meter.input("in", value);
      const Result result = meter.tick();
      INFO(type << ", kind " << value.header().kind << ": " << result.error);
      REQUIRE(result.ok());
      CHECK(equal_bytes(result.value("out"), value));
      CHECK(result.value("out").header().pts_ns == 7);
      CHECK(result.value("out").header().duration_ns == 8);
      CHECK(result.value("out").header().kind == value.header().kind);
    }
}

TEST_CASE("what measures draws on its plate and nowhere else, in every format that it can" *
          doctest::skip(!has_font())) {
  for (const char* type : {"stats.fps", "stats.latency"})
    for (Pixel pixel : {Pixel::gray8, Pixel::rgb8, Pixel::bgr8, Pixel::rgba8, Pixel::bgra8, Pixel::nv12, Pixel::i420}) {
      TableTest meter(builtin(type), {{"x", "-10"}, {"y", "-10"}, {"size", "12"}});
      const Value input = testing::image(pixel, 200, 80, 90);
      meter.input("in", input);
      const Result result = meter.tick();
      INFO(type << ", " << name_of(pixel));
      REQUIRE(result.ok());
      const ImageView picture = result.image("out");
      const uint32_t size = bytes_per_pixel(pixel);
      CHECK(picture.row(69)[188 * size] < 60);  // the plate's corner
      CHECK(picture.row(70)[188 * size] == 90); // below it
      CHECK(picture.row(69)[190 * size] == 90); // right of it
      CHECK(picture.row(40)[188 * size] == 90); // above it
      uint8_t brightest = 0;
      for (uint32_t y = 50; y < 70; ++y)
        for (uint32_t x = 100; x < 190; ++x) brightest = std::max(brightest, picture.row(y)[x * size]);
      CHECK(brightest > 200);
      if (picture.plane_count() > 1)
        CHECK(std::all_of(picture.row(0, 1), picture.row(0, 1) + 100, [](uint8_t b) { return b == 90; }));
    }
}

TEST_CASE("the number that is drawn is the rate, and media time draws the same in every run" *
          doctest::skip(!has_font())) {
  const auto last_picture = [](const char* time, int64_t step_ns) {
    TableTest fps(builtin("stats.fps"), {{"time", time}, {"window", "0.5"}});
    fps.input("in", testing::image(Pixel::gray8, 160, 60));
    Result result;
    for (int i = 0; i < 5; ++i) {
      fps.set_now_ns(i * step_ns);
      result = fps.tick();
    }
    return result.value("out");
  };
  CHECK(equal_bytes(last_picture("wall", 40 * kMs), last_picture("media", 1)));
  CHECK(equal_bytes(last_picture("media", 3), last_picture("media", 7)));
  CHECK_FALSE(equal_bytes(last_picture("wall", 40 * kMs), last_picture("wall", 41 * kMs)));
}

TEST_CASE("stats.latency measures from the beat that a deadline belongs to") {
  for (const char* rate : {"50", "0"}) {
    TableTest meter(builtin("stats.latency"), {{"rate", rate}, {"window", "3"}, {"draw", "false"}});
    meter.input("in", testing::image(Pixel::gray8, 4, 4));
    std::vector<double> p50, largest;
    for (int i = 0; i < 6; ++i) {
      meter.set_deadline_ns((1000 + (i + 1) * 20) * kMs);
      meter.set_now_ns((1000 + i * 20) * kMs + (i + 1) * kMs); // i + 1 ms behind its beat
      const Result result = meter.tick();
      REQUIRE(result.ok());
      if (!result.has("latency")) continue;
      p50.push_back(result.records<Latency>("latency")[0].p50_us);
      largest.push_back(result.records<Latency>("latency")[0].max_us);
    }
    INFO("rate " << rate);
    if (rate == std::string("50")) {
      CHECK(p50 == std::vector<double>{1000, 1000, 2000, 3000, 4000, 5000});
      CHECK(largest == std::vector<double>{1000, 2000, 3000, 4000, 5000, 6000});
    } else { // the period is known from the second tick on
      CHECK(p50 == std::vector<double>{2000, 2000, 3000, 4000, 5000});
      CHECK(largest == std::vector<double>{2000, 3000, 4000, 5000, 6000});
    }
  }
}

TEST_CASE("without a deadline stats.latency gives nothing out and says so in the picture" *
          doctest::skip(!has_font())) {
  TableTest meter(builtin("stats.latency"), {{"rate", "50"}});
  meter.input("in", testing::image(Pixel::gray8, 300, 60));
  const Result silent = meter.tick();
  CHECK_FALSE(silent.has("latency"));
  TableTest with(builtin("stats.latency"));
  with.input("in", testing::image(Pixel::gray8, 300, 60));
  with.set_deadline_ns(kMs);
  CHECK_FALSE(equal_bytes(silent.value("out"), with.tick().value("out")));
}

TEST_CASE("a colour that is none is refused when the plan is made, a font that is none before the first tick") {
  for (const char* type : {"stats.fps", "stats.latency"}) {
    TableTest color(builtin(type), {{"color", "red"}});
    color.input("in", testing::image(Pixel::rgb8, 8, 8));
    CHECK(color.start() == MR_ERROR);
    CHECK(color.error() == "color 'red' is neither \"#rrggbb\" nor \"#rrggbbaa\"");
    TableTest font(builtin(type), {{"font", "/no/such/font.ttf"}});
    font.input("in", testing::image(Pixel::rgb8, 8, 8));
    CHECK(font.start() == MR_ERROR);
    TableTest unused(builtin(type), {{"font", "/no/such/font.ttf"}, {"draw", "false"}});
    unused.input("in", testing::image(Pixel::rgb8, 8, 8));
    CHECK(unused.start() == MR_OK);
  }
}
