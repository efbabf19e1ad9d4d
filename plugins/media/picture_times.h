// Converts media times of pictures to the times that a file holds.
#pragma once

#include <cstdint>

#include "plugins/media/av.h"

namespace millrace::media {

// For a constant rate: decides which places of an even film a picture takes.
class EvenRate {
 public:
  explicit EvenRate(AVRational rate) : rate_(rate) {}

  // The result for a picture: how often the picture before is repeated first, and if this one gets its own place. It
  // gets none if it comes too soon after the one before, or ends before its nearest place begins. It may still be shown
  // by being repeated later.
  struct Place {
    int64_t repeats = 0;
    bool is_shown = true;
  };
  Place put(int64_t time_ns, int64_t duration_ns);
  // Called at the end: how often the last picture is repeated so that the film ends at `end_ns`.
  int64_t repeats_until(int64_t end_ns);
  // The number of places taken so far.
  int64_t count() const { return count_; }

 private:
  int64_t place_of(int64_t time_ns) const;

  AVRational rate_;
  int64_t count_ = 0;
};

// For pictures with their own times: gives strictly rising units of a time base.
class FreeTimes {
 public:
  explicit FreeTimes(AVRational time_base) : time_base_(time_base) {}
  // `moved`: the time differs from the unit by more than `tolerance_ns`. `nudged`: the picture before has the nearest
  // unit.
  struct Time {
    int64_t at = 0;
    bool moved = false, nudged = false;
  };
  Time put(int64_t time_ns, int64_t tolerance_ns);

 private:
  AVRational time_base_;
  int64_t last_ = -1;
};

} // namespace millrace::media
