// The service curve: what it says of buckets, and how it learns.
#include "batch/service_curve.h"

#include <doctest/doctest.h>

#include "tests/batch/rig.h"

namespace millrace::batch {
namespace {

TEST_CASE("a bucket is the smallest that has room, and the largest takes what is left") {
  const ServiceCurve curve(test::even_curve());
  CHECK(curve.items(curve.bucket_for(1)) == 1);
  CHECK(curve.items(curve.bucket_for(5)) == 8);
  CHECK(curve.items(curve.bucket_for(64)) == 64);
  CHECK(curve.items(curve.bucket_for(100)) == 64);
}

TEST_CASE("a larger bucket never takes less time than a smaller one") {
  const ServiceCurve curve({{1, 500, 600, 0}, {2, 400, 450, 0}, {4, 700, 650, 0}});
  CHECK(curve.median_ns(1) == 500);
  CHECK(curve.p95_ns(1) == 600);
  CHECK(curve.median_ns(2) == 700);
  CHECK(curve.p95_ns(2) == 700);
}

TEST_CASE("a bucket learns from its own firings: the median, and the slowest of them") {
  ServiceCurve curve(test::even_curve());
  const int64_t before_ns = curve.median_ns(3), others_ns = curve.median_ns(2);
  for (int i = 0; i < 64; ++i) CHECK_FALSE(curve.observe(3, i % 10 == 7 ? 1.06 : 1.0));
  CHECK(curve.median_ns(3) == before_ns);
  CHECK(curve.p95_ns(3) == before_ns * 106 / 100);
  CHECK(curve.median_ns(2) == others_ns);
}

TEST_CASE("firings that are held up change no median, and the 95th percentile only if they are many") {
  ServiceCurve curve(test::even_curve());
  const int64_t before_ns = curve.median_ns(0);
  for (int i = 0; i < 100; ++i) {
    CHECK_FALSE(curve.observe(0, i % 32 == 0 ? 30.0 : 1.0));
    CHECK(curve.p95_ns(0) == before_ns);
  }
  for (int i = 0; i < 100; ++i) CHECK_FALSE(curve.observe(0, i % 10 == 0 ? 30.0 : 1.0));
  CHECK(curve.median_ns(0) == before_ns);
  CHECK(curve.p95_ns(0) == before_ns * 3 / 2);
}

TEST_CASE("where eight firings in a row take twice their time, all buckets do") {
  ServiceCurve curve(test::even_curve());
  const int64_t before_ns = curve.median_ns(2);
  int firings = 1;
  while (!curve.observe(2, 2.0 * static_cast<double>(before_ns) / static_cast<double>(curve.median_ns(2)))) ++firings;
  CHECK(firings == 8);
  for (size_t bucket = 0; bucket < curve.count(); ++bucket)
    CHECK(curve.median_ns(bucket) == 2 * test::even_curve()[bucket].median_ns);
  for (int i = 0; i < 16; ++i) CHECK_FALSE(curve.observe(2, 1.0)); // as the prediction is now
  CHECK(curve.median_ns(2) == 2 * test::even_curve()[2].median_ns);
}

TEST_CASE("pairs that gain nothing are believed in no more, and tried again after some hundred firings alone") {
  std::vector<BucketTime> measured = test::even_curve();
  for (BucketTime& bucket : measured) bucket.paired_ns = bucket.median_ns * 8 / 10; // 25 % more done
  ServiceCurve curve(measured);
  CHECK(curve.paired_speed(0) == doctest::Approx(0.625));
  CHECK(ServiceCurve(test::even_curve()).paired_speed(0) == 0.5); // not measured
  curve.observe_paired(0, 100);
  CHECK(curve.paired_speed(0) > 0.6); // one firing that was held up
  for (int i = 0; i < 20; ++i) curve.observe_paired(0, 1.25);
  CHECK(curve.paired_speed(0) < 0.5);
  SUBCASE("slowly") {
    for (int i = 0; i < 500; ++i) curve.observe(0, 1.0);
    CHECK(curve.paired_speed(0) > 0.55);
  }
  SUBCASE("at once where the device has changed") {
    while (!curve.observe(1, 2.0)) continue;
    CHECK(curve.paired_speed(0) == doctest::Approx(0.625));
  }
}

} // namespace
} // namespace millrace::batch
