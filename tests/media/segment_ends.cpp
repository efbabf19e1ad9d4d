// Ends of segments, by container.
#include "plugins/media/segment_ends.h"

#include <doctest/doctest.h>

#include "plugins/media/containers.h"

namespace millrace::media {

TEST_CASE("a segment ends before a pause if its container tells the end, and after the next picture if it does not") {
  using End = SegmentEnds::End;
  const AVRational base{1, 90000}, rate{25, 1};
  constexpr int64_t kPeriod = 3600, kHour = int64_t{3600} * 90000;
  const auto ends = [&](const char* name, bool can_pause_long = true) {
    return SegmentEnds(container_of("", name), base, rate, can_pause_long);
  };
  for (const char* name : {"mkv", "webm"}) CHECK(ends(name).before_gap(1000 * kHour) == End::told);
  for (const char* name : {"ts", "nut", "flv", "avi"}) {
    CHECK(ends(name).before_gap(kPeriod) == End::told);
    CHECK(ends(name).before_gap(kPeriod * 5 / 4) == End::told);
    CHECK(ends(name).before_gap(2 * kPeriod) == End::late);
  }
  CHECK(ends("mp4").before_gap(kHour) == End::told);
  CHECK(ends("mp4").before_gap(9 * kHour) == End::late);
  CHECK(ends("mp4", false).before_gap(9 * kHour) == End::lost);
  CHECK(ends("ts").before_gap(24 * kHour) == End::late);
  CHECK(ends("ts").before_gap(26 * kHour) == End::lost);
}

TEST_CASE("the ends of segments add up to the recording, though each is a whole number of units") {
  const SegmentEnds ends(container_of("", "mkv"), {1, 30}, {30, 1}, false);
  int64_t sum = 0;
  for (int64_t begin = 0; begin < 7000; begin += 7) {
    const int64_t length_ns = ends.end_ns(begin, begin + 7);
    CHECK(length_ns % 1'000'000 == 0);
    sum += length_ns;
  }
  CHECK(sum == int64_t{7000} * 1'000'000'000 / 30 / 1'000'000 * 1'000'000);
}

} // namespace millrace::media
