// Finds upright people in a picture: gradient histograms and a linear classifier.
#pragma once

#include <vector>

#include <opencv2/objdetect.hpp>

#include "millrace/payload.h"

namespace millrace::opencv {

struct PeopleSettings {
  double threshold = 0; // least distance from the classifier's plane for a window to be a person
  double scale = 1.1;   // ratio of one size of people to the next smaller one
  int width = 0;        // pixels, to which the picture is resized; 0: as it is
  int group = 2;        // overlapping windows that make a person, less one; 0: every window is reported
};

// The label of a person in Box.
inline constexpr int32_t kPersonLabel = 0;

// N. Dalal, B. Triggs: "Histograms of Oriented Gradients for Human Detection", CVPR 2005, with OpenCV's default
// weights: windows of 64 × 128 pixels, so people of about 100 pixels and more are found. Not thread safe.
class PeopleDetector {
 public:
  PeopleDetector();
  // Boxes in pixels of `picture` (8 bit, one or three channels), best first, at most `count_max`. The same picture
  // gives the same boxes on any number of threads.
  std::vector<Box> detect(const cv::Mat& picture, const PeopleSettings& settings, size_t count_max);

 private:
  cv::HOGDescriptor histograms_;
  cv::Mat resized_;
};

} // namespace millrace::opencv
