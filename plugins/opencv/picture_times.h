// When each picture of a file is shown: the container's times where they can be believed, the frame rate's elsewhere.
#pragma once

#include <cstdint>

#include "plugins/opencv/frame_rate.h"

namespace millrace::opencv {

struct PictureTime {
  int64_t pts_ns = 0;
  int64_t duration_ns = 0; // 0: unknown
  friend bool operator==(const PictureTime&, const PictureTime&) = default;
};

// Times of pictures in the order in which they are shown. They begin at 0 and rise strictly.
//
// As long as the container's times agree with n / rate, n / rate it is: exact, where a container rounds to
// milliseconds. From the first time on that does not agree, the container's own count, and durations are unknown. What
// no camera or editor makes is taken as damage, and the picture follows the one before by one period: a time that is
// missing, one that jumps back by more than a period, and a gap of more than an hour.
class PictureTimes {
 public:
  explicit PictureTimes(FrameRate rate = kFrameRateFallback) : rate_(rate) {}

  // The next picture's time; `container_ms` is the container's, NaN where it says none.
  PictureTime next(double container_ms);

  // The file is played from its beginning again: times go on after the last picture.
  void begin_again() { anchored_ = false; }

  // Whether all pictures so far came at the constant rate.
  bool is_constant() const { return constant_; }
  // When the picture after the last one is due.
  int64_t end_ns() const;

 private:
  int64_t period_ns() const;
  int64_t from_container(double container_ms);

  FrameRate rate_;
  bool constant_ = true;
  int64_t count_ = 0;     // pictures so far
  int64_t last_ns_ = 0;   // the last picture's time
  bool anchored_ = false; // shift_ns_ is known
  int64_t shift_ns_ = 0;  // from the container's times to ours
};

} // namespace millrace::opencv
