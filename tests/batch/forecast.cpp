// The forecast: ends of firings that share a device, and the margin of their errors.
#include "batch/forecast.h"

#include <doctest/doctest.h>

#include "tests/batch/rig.h"

namespace millrace::batch {
namespace {

// One bucket of 1 ms; two at a time each go at 0.625 of that speed.
ServiceCurve one_bucket() { return ServiceCurve({{1, kMs, kMs, 8 * kMs / 10}}); }

TEST_CASE("a firing alone ends after its time") {
  Forecast forecast(one_bucket());
  CHECK(forecast.ends_with(5 * kMs, 0).added_ns == 6 * kMs);
  forecast.started(0, 0, 5 * kMs);
  CHECK(forecast.busy_for_ns(5 * kMs) == kMs);
  CHECK(forecast.busy_for_ns(5 * kMs + 400'000) == 600'000);
}

TEST_CASE("two firings delay each other, and what is left of the second goes on alone") {
  Forecast forecast(one_bucket());
  forecast.started(0, 0, 0);
  const Forecast::Ends ends = forecast.ends_with(500'000, 0); // half of the first is left: 0.8 ms at 0.625
  CHECK(ends.other_ns == 1'300'000);
  CHECK(ends.added_ns == 1'800'000); // half of the second was done by then
  forecast.started(1, 0, 500'000);
  CHECK(forecast.busy_for_ns(500'000) == 1'300'000);
  forecast.ended(0, 1'300'000);
  CHECK(forecast.under_way() == 1);
  CHECK(forecast.busy_for_ns(1'300'000) == 500'000);
}

TEST_CASE("firings that shared the device teach the speed of pairs, and no time") {
  Forecast forecast(one_bucket());
  for (int64_t i = 0; i < 20; ++i) {
    const int64_t now = i * 10 * kMs;
    forecast.started(0, 0, now);
    forecast.started(1, 0, now);
    forecast.ended(1, now + 2 * kMs);
    forecast.ended(0, now + 2 * kMs);
  }
  CHECK(forecast.curve().median_ns(0) == kMs);
  CHECK(forecast.curve().paired_speed(0) == doctest::Approx(0.5).epsilon(0.1));
}

TEST_CASE("the margin is p99 of the errors, and 0.2 ms at least") {
  Forecast forecast(one_bucket());
  int64_t now = 0;
  const auto fire = [&](int64_t late_ns) {
    forecast.started(0, 0, now);
    now += kMs + late_ns;
    forecast.ended(0, now);
  };
  for (int i = 0; i < 300; ++i) fire(1'000);
  CHECK(forecast.margin_ns() == 200'000);
  fire(5 * kMs); // one of 256
  CHECK(forecast.margin_ns() == 200'000);
  for (int i = 0; i < 256; ++i) fire(i % 20 == 0 ? 3 * kMs : 1'000);
  CHECK(forecast.margin_ns() > 2'990'000);
}

TEST_CASE("B10: a firing that failed teaches nothing") {
  Forecast forecast(one_bucket());
  for (int64_t i = 0; i < 20; ++i) {
    forecast.started(0, 0, i * 10 * kMs);
    forecast.ended(0, i * 10 * kMs + 5 * kMs, false);
  }
  CHECK(forecast.under_way() == 0);
  CHECK(forecast.curve().median_ns(0) == kMs);
  CHECK(forecast.margin_ns() == 200'000);
}

TEST_CASE("errors from before the device became slower are forgotten") {
  Forecast forecast(one_bucket());
  for (int64_t i = 0; i < 8; ++i) {
    forecast.started(0, 0, i * 10 * kMs);
    forecast.ended(0, i * 10 * kMs + 3 * kMs);
  }
  CHECK(forecast.curve().median_ns(0) == 3 * kMs);
  CHECK(forecast.margin_ns() == 200'000);
}

} // namespace
} // namespace millrace::batch
