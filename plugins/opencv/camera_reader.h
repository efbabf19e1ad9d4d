// Waits for a camera's pictures in a way that another thread can end.
#pragma once

#include <atomic>
#include <cstdint>

#include <opencv2/core.hpp>

namespace millrace::opencv {

// A camera as the reader sees it.
class CameraStream {
 public:
  CameraStream() = default;
  CameraStream(const CameraStream&) = delete;
  CameraStream& operator=(const CameraStream&) = delete;
  virtual ~CameraStream() = default;
  // Waits at most `timeout_ns` for a picture. True if one is there.
  virtual bool wait(int64_t timeout_ns) = 0;
  // Reads the picture into `target` if its size and type fit, else into new memory. False: the camera failed.
  virtual bool read(cv::Mat& target) = 0;
};

enum class CameraAnswer { picture, interrupted, silent, failed };

// interrupt() may be called from any thread, all other functions from one.
class CameraReader {
 public:
  // A camera that gives nothing for this long is lost: the longest exposure that drivers know is a few seconds.
  static constexpr int64_t kSilenceMaxNs = 10'000'000'000;
  // An interrupt is noticed after this time at most.
  static constexpr int64_t kSliceNs = 50'000'000;

  CameraAnswer next(CameraStream& stream, cv::Mat& target);
  // Ends one wait: the current one, or else the next.
  void interrupt() { interrupted_.store(true, std::memory_order_relaxed); }
  // Forgets an interrupt that came while no call waited.
  void clear() { interrupted_.store(false, std::memory_order_relaxed); }

 private:
  std::atomic<bool> interrupted_{false};
};

} // namespace millrace::opencv
