// Media times of pictures as the times that a file holds.
#pragma once

#include <cstdint>

#include "plugins/media/av.h"

namespace millrace::media {

// At a constant rate: which places of an even film a picture takes.
class EvenRate {
 public:
  explicit EvenRate(AVRational rate) : rate_(rate) {}

  // A picture that is shown from `time_ns` on, for `duration_ns` at least: how often the one before it is repeated
  // first, and whether it has a place of its own. It has none where it comes too soon after the one before it, or ends
  // before the place that is nearest to it begins; repeating may show it all the same.
  struct Place {
    int64_t repeats = 0;
    bool is_shown = true;
  };
  Place put(int64_t time_ns, int64_t duration_ns);
  // At the end: how often the last picture is repeated so that the film ends at `end_ns`.
  int64_t repeats_until(int64_t end_ns);
  // The number of places that are taken.
  int64_t count() const { return count_; }

 private:
  int64_t place_of(int64_t time_ns) const;

  AVRational rate_;
  int64_t count_ = 0;
};

// At times of their own: units of a time base that rise strictly.
class FreeTimes {
 public:
  explicit FreeTimes(AVRational time_base) : time_base_(time_base) {}
  // `moved`: the time is farther from the unit than `tolerance_ns`. `nudged`: the unit that is nearest was taken by the
  // picture before.
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
