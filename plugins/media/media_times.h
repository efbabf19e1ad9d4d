// Converts the times of a container to rising media times in nanoseconds, with the first picture at 0.
#pragma once

#include <cstdint>

namespace millrace::media {

inline constexpr int64_t kNoTime = INT64_MIN;

// Not thread safe. Input times are a stream's, in nanoseconds of its own base, or kNoTime.
class MediaTimes {
 public:
  enum class Found {
    good,    // the container's time
    missing, // the container has none: the time before plus a period
    stuck,   // it did not rise: the time before plus 1 ns (semantics.md 8.9)
    jumped   // it went back by over a second, or forward over an hour past trusts_until(): times go on after a period
  };
  struct Time {
    int64_t ns = 0;
    Found found = Found::good;
  };

  // `period_ns`: the time between two pictures if the container does not say. `speed`: 2 shows twice as fast.
  explicit MediaTimes(int64_t period_ns = 40'000'000, double speed = 1) : period_ns_(period_ns), speed_(speed) {}

  // Makes this time of the container 0. Without this call the first picture is at 0.
  void begin_at(int64_t container_ns) { origin_ns_ = container_ns; }
  // Up to this time of the container, a jump forward is a pause, however long. Without this call an hour is the most.
  void trusts_until(int64_t container_ns) { trusted_until_ns_ = container_ns; }
  // The position in the file of a container's time, in nanoseconds and without `speed`. kNoTime for kNoTime.
  int64_t in_file(int64_t container_ns) const;
  // The next picture's media time. `container_ns` may be kNoTime.
  Time next(int64_t container_ns);
  // The file begins again or the next file begins. Its first picture comes at the end of the last picture.
  void begin_again();
  // The same, and the file before states this time of its container as its end; kNoTime: it states none.
  void begin_again_after_end(int64_t container_ns);
  // The stream was lost for this long. Its next picture comes that much later, whatever its container says.
  void begin_again_after(int64_t lost_ns);
  // The last picture's duration in the container's time; 0: not known.
  void last_lasts(int64_t container_ns) { last_duration_ns_ = container_ns; }
  // The time for which a picture with this duration in the container is shown.
  int64_t shown_for(int64_t container_ns) const;
  int64_t last_ns() const { return last_ns_; }

 private:
  int64_t scaled(int64_t ns) const;

  int64_t period_ns_;
  double speed_;
  int64_t origin_ns_ = kNoTime; // the container's time that is shown at base_ns_
  int64_t base_ns_ = 0;
  int64_t last_ns_ = kNoTime;
  int64_t last_duration_ns_ = 0;
  int64_t trusted_until_ns_ = kNoTime;
};

} // namespace millrace::media
