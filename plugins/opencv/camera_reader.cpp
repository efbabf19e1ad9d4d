// Waits for a camera in slices; see camera_reader.h.
#include "plugins/opencv/camera_reader.h"

namespace millrace::opencv {

CameraAnswer CameraReader::next(CameraStream& stream, cv::Mat& target) {
  for (int64_t waited = 0; waited < kSilenceMaxNs; waited += kSliceNs) {
    if (interrupted_.exchange(false, std::memory_order_relaxed)) return CameraAnswer::interrupted;
    if (stream.wait(kSliceNs)) return stream.read(target) ? CameraAnswer::picture : CameraAnswer::failed;
  }
  return CameraAnswer::silent;
}

} // namespace millrace::opencv
