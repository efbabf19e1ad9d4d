// Finds what moves before a camera that stands still: pixels that differ from a background that is learnt.
#pragma once

#include <vector>

#include <opencv2/core.hpp>

#include "millrace/payload.h"

namespace millrace::opencv {

struct MotionSettings {
  int width = 320;         // pixels, to which the picture is reduced; 0 or more than it has: as it is
  int threshold = 25;      // least difference from the background, 1 to 255, for a pixel that has changed
  int memory = 150;        // pictures in which the background takes in a change from black to white
  int join = 12;           // pixels of the input: changes that are no further apart are one thing
  double area_min = 0.001; // least part of the picture that has changed, for a thing
};

// Each pixel of the background moves a small step towards the picture's, at most the same step whatever the difference.
// So it comes near the median of what the camera saw (N. McFarlane, C. Schofield: "Segmentation and tracking of piglets
// in images", Machine Vision and Applications 8, 1995), and something that passes leaves no mark. Not thread safe.
class MotionDetector {
 public:
  // Boxes in pixels of `picture` (8 bit, one channel), those with the most changed pixels first, at most `count_max`.
  // The first picture, and one of another size than the last, has none.
  std::vector<Box> detect(const cv::Mat& picture, const MotionSettings& settings, size_t count_max);
  // Forgets the background.
  void clear() { background_.release(); }

 private:
  cv::Mat reduced_, seen_, background_, difference_, changed_, joined_, labels_, stats_, centroids_;
};

} // namespace millrace::opencv
