// Decides by container where a segment may end; see segment_ends.h.
#include "plugins/media/segment_ends.h"

extern "C" {
#include <libavutil/mathematics.h>
}

#include <string_view>

namespace millrace::media {

namespace {

constexpr int64_t kAnyLength = INT64_MAX;
// libavformat keeps the durations of MP4 in 31 bits. Half of that leaves room for reordered pictures.
constexpr int64_t kMovMax = INT32_MAX / 2;
// MPEG-TS counts 2^33 ticks of 1/90000 s: 26.5 hours. An hour and a half are left to the rest of the segment.
constexpr int64_t kTsMax = int64_t{25} * 3600 * 90000;
constexpr int64_t kAviMax = 10'000'000; // numbers that muxer.cpp leaves out in a row

} // namespace

SegmentEnds::SegmentEnds(const Container& container, AVRational time_base, AVRational rate, bool can_pause_long)
    : time_base_(time_base), tick_(container.tick.num > 0 ? container.tick : time_base) {
  const std::string_view muxer = container.format->name;
  const bool is_matroska = muxer == "matroska" || muxer == "webm";
  const int64_t period = av_rescale_q(1, av_inv_q(rate), time_base);
  told_max_ = is_matroska ? kAnyLength : container.is_mov ? kMovMax : period + period / 2;
  held_max_ = kAnyLength;
  if (container.is_mov && !can_pause_long) held_max_ = kMovMax;
  if (muxer == "mpegts") held_max_ = av_rescale_q(kTsMax, {1, 90000}, time_base);
  if (container.times == Times::grid) held_max_ = kAviMax;
}

SegmentEnds::End SegmentEnds::before_gap(int64_t units) const {
  return units <= told_max_ ? End::told : units <= held_max_ ? End::late : End::lost;
}

int64_t SegmentEnds::end_ns(int64_t begin, int64_t end) const {
  const int64_t ticks = av_rescale_q(end, time_base_, tick_) - av_rescale_q(begin, time_base_, tick_);
  return av_rescale_q(ticks, tick_, kNanoseconds);
}

} // namespace millrace::media
