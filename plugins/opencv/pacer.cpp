// Computes due times from media times; see pacer.h.
#include "plugins/opencv/pacer.h"

#include <algorithm>
#include <limits>

namespace millrace::opencv {

namespace {

// A saturating difference, because a file may contain any media time.
int64_t difference(int64_t a, int64_t b) {
  int64_t result = 0;
  if (!__builtin_sub_overflow(a, b, &result)) return result;
  return a > b ? std::numeric_limits<int64_t>::max() : std::numeric_limits<int64_t>::min();
}

} // namespace

int64_t Pacer::wait_ns(int64_t media_ns, uint32_t epoch, int64_t now_ns) {
  const bool goes_on = begun_ && epoch == epoch_ && media_ns >= last_media_ns_;
  const int64_t wait =
      goes_on ? difference(difference(media_ns, media_origin_ns_), difference(now_ns, shown_origin_ns_)) : 0;
  if (!goes_on || wait < -kLateMaxNs) {
    media_origin_ns_ = media_ns;
    shown_origin_ns_ = now_ns;
  }
  begun_ = true;
  epoch_ = epoch;
  last_media_ns_ = media_ns;
  return std::max<int64_t>(0, wait);
}

} // namespace millrace::opencv
