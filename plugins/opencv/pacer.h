// Decides when a picture is due on the screen, by its media time.
#pragma once

#include <cstdint>

namespace millrace::opencv {

// Counts from the first picture. A late picture is due at once. If it is later than kLateMaxNs, or its time goes back,
// or the stream has jumped, the count begins anew with it. So a stall delays the pictures after it and they do not rush
// to catch up, while small delays do not add up to a slower film.
class Pacer {
 public:
  // Longer than the jitter of threads and than one slow picture, shorter than a rush that a person would see.
  static constexpr int64_t kLateMaxNs = 100'000'000;

  // The time to wait before this picture is shown; 0: show it now.
  int64_t wait_ns(int64_t media_ns, uint32_t epoch, int64_t now_ns);
  // Makes the next picture the first.
  void reset() { begun_ = false; }

 private:
  bool begun_ = false;
  uint32_t epoch_ = 0;
  int64_t media_origin_ns_ = 0, shown_origin_ns_ = 0; // times of the picture at which the count began
  int64_t last_media_ns_ = 0;
};

} // namespace millrace::opencv
