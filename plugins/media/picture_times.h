// Media times of pictures as the times that a file holds.
#pragma once

#include <cstdint>

#include "plugins/media/av.h"

namespace millrace::media {

// At a constant rate: which places of an even film a picture takes.
class EvenRate {
 public:
  explicit EvenRate(AVRational rate) : rate_(rate) {}

  // A picture that is shown from `time_ns` on: how often the one before it is repeated first, and whether it has a
  // place of its own at all, or comes so soon after the one before it that it is dropped.
  struct Place {
    int64_t repeats = 0;
    bool is_shown = true;
  };
  Place put(int64_t time_ns);
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
  // `moved` is set where the time is farther from the unit than `tolerance_ns`.
  int64_t put(int64_t time_ns, int64_t tolerance_ns, bool& moved);

 private:
  AVRational time_base_;
  int64_t last_ = -1;
};

} // namespace millrace::media
