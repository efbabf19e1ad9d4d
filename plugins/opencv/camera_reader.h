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
  // Whether a picture is there, waited for at most so long.
  virtual bool wait(int64_t timeout_ns) = 0;
  // The picture that is there, into `target` where its size and type fit, else into new memory; false: the camera
  // fails.
  virtual bool read(cv::Mat& target) = 0;
};

enum class CameraAnswer { picture, interrupted, silent, failed };

// interrupt() may come from any thread, all else from one.
class CameraReader {
 public:
  // A camera that gives nothing for so long is lost: the longest exposure that drivers know is a few seconds.
  static constexpr int64_t kSilenceMaxNs = 10'000'000'000;
  // An interrupt is noticed so late at most.
  static constexpr int64_t kSliceNs = 50'000'000;

  CameraAnswer next(CameraStream& stream, cv::Mat& target);
  // Ends a wait of now, or the next one, once.
  void interrupt() { interrupted_.store(true, std::memory_order_relaxed); }
  // Forgets an interrupt that nobody waited for.
  void clear() { interrupted_.store(false, std::memory_order_relaxed); }

 private:
  std::atomic<bool> interrupted_{false};
};

} // namespace millrace::opencv
