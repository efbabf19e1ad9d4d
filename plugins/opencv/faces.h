// Finds faces, or other objects that a cascade was trained for, in a picture.
#pragma once

#include <string>
#include <vector>

#include <opencv2/objdetect.hpp>

#include "millrace/payload.h"

namespace millrace::opencv {

struct FaceSettings {
  double scale = 1.1; // ratio of one face size to the next smaller one
  int group = 3;      // overlapping windows that make a face, less one; 0: every window is reported
  int size_min = 0;   // pixels of the picture; 0: the cascade's own
  int size_max = 0;   // pixels of the picture; 0: the picture's
  int width = 0;      // pixels, to which the picture is resized; 0: as it is
};

// The label of a face in Box.
inline constexpr int32_t kFaceLabel = 0;

// P. Viola, M. Jones: "Rapid Object Detection using a Boosted Cascade of Simple Features", CVPR 2001, as implemented by
// OpenCV. The file decides between Haar and LBP features. Not thread safe.
class FaceDetector {
 public:
  // Throws std::runtime_error, naming the file, if it is no cascade.
  explicit FaceDetector(const std::string& path);

  // Boxes in pixels of `picture` (8 bit, one or three channels), best first, at most `count_max`. The score of n
  // windows that agree is n / (n + group + 1): 0.5 for just enough windows, near 1 for many. The same picture gives the
  // same boxes on any number of threads.
  std::vector<Box> detect(const cv::Mat& picture, const FaceSettings& settings, size_t count_max);

 private:
  cv::CascadeClassifier cascade_;
  cv::Mat grey_, resized_, even_;
};

} // namespace millrace::opencv
