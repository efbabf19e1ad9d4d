// From the times of a container to media times that rise: nanoseconds, the first picture at 0.
#pragma once

#include <cstdint>

namespace millrace::media {

inline constexpr int64_t kNoTime = INT64_MIN;

// Not thread safe. Times that go in are a stream's, in nanoseconds of its own base, or kNoTime.
class MediaTimes {
 public:
  enum class Found {
    good,    // the container's time
    missing, // none was said: the one before and a period
    stuck,   // it did not rise: the one before and 1 ns (semantics.md 8.9)
    jumped   // it went back by more than a second, or on by more than an hour: the times go on with a period from here
  };
  struct Time {
    int64_t ns = 0;
    Found found = Found::good;
  };

  // `period_ns`: what lies between two pictures where nobody says. `speed`: 2 shows twice as fast.
  explicit MediaTimes(int64_t period_ns = 40'000'000, double speed = 1) : period_ns_(period_ns), speed_(speed) {}

  // What counts as 0 in the container's times; else the first picture does.
  void begin_at(int64_t container_ns) { origin_ns_ = container_ns; }
  // A time of the container on the stream's own base, without speed: how far into the file it is. kNoTime for kNoTime.
  int64_t in_file(int64_t container_ns) const;
  // The next picture's. `container_ns` may be kNoTime.
  Time next(int64_t container_ns);
  // The file begins again, or the next one does: its first picture comes at the end of the last one.
  void begin_again();
  // The stream was lost for so long: its next picture comes that much later, whatever its container says.
  void begin_again_after(int64_t lost_ns);
  // The last picture lasts so long, in the container's time; 0: not said.
  void last_lasts(int64_t container_ns) { last_duration_ns_ = container_ns; }
  // How long a picture of this container's duration is shown.
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
};

} // namespace millrace::media
