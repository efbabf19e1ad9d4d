// Gives the pictures of a live list at their own times, though they come in bursts of a segment.
#pragma once

#include <cstdint>

namespace millrace::media {

// Not thread safe. All times are nanoseconds; `now_ns` is any clock that does not jump.
//
// The first picture is due when it comes. A picture that comes after its time because the list had none makes all later
// ones due that much later. One that the pipeline asks for after its time does not: the pipeline catches up, and what
// is later than the buffer is dropped.
class ListPace {
 public:
  struct Choice {
    int64_t wait_ns = 0; // until it is due
    int64_t late_ns = 0; // by which it comes after its time, for which the pipeline answers
    bool is_dropped = false;
  };

  ListPace() = default;
  explicit ListPace(int64_t buffer_ns) : buffer_ns_(buffer_ns) {}

  // The next picture has come, with this media time. `read_ns`: how long the list was waited for since the picture
  // before. `is_far_ahead`: the list moves away, because its clock is faster than ours or the pipeline was slow.
  Choice next(int64_t now_ns, int64_t media_ns, int64_t read_ns, bool is_far_ahead);

 private:
  int64_t buffer_ns_ = 0;
  int64_t start_ns_ = 0; // when media time 0 was due
  bool has_begun_ = false;
};

} // namespace millrace::media
