// Says when a picture is due on the screen, by its media time.
#pragma once

#include <cstdint>

namespace millrace::opencv {

// Counts from the first picture. One that is late is due at once; where it is later than kLateMaxNs, or its time goes
// back, or the stream has jumped, the count begins anew with it. So a stall delays what follows, and nothing rushes to
// make up for it, while small delays do not add up to a slower film.
class Pacer {
 public:
  // Longer than the jitter of threads and of one slow picture, shorter than a rush that is seen.
  static constexpr int64_t kLateMaxNs = 100'000'000;

  // How long to wait before this picture is shown; 0: not at all.
  int64_t wait_ns(int64_t media_ns, uint32_t epoch, int64_t now_ns);
  // The next picture is the first.
  void reset() { begun_ = false; }

 private:
  bool begun_ = false;
  uint32_t epoch_ = 0;
  int64_t media_origin_ns_ = 0, shown_origin_ns_ = 0; // of the picture that is counted from
  int64_t last_media_ns_ = 0;
};

} // namespace millrace::opencv
