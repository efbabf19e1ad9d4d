// Scales down by area and up linearly; see fit_picture.h.
#include "plugins/opencv/fit_picture.h"

#include <algorithm>
#include <cmath>

#include <opencv2/imgproc.hpp>

namespace millrace::opencv {

cv::Rect fitted(const cv::Size& source, const cv::Size& target) {
  const double factor =
      std::min(static_cast<double>(target.width) / source.width, static_cast<double>(target.height) / source.height);
  const int width = std::clamp(static_cast<int>(std::lround(source.width * factor)), 1, target.width);
  const int height = std::clamp(static_cast<int>(std::lround(source.height * factor)), 1, target.height);
  return {(target.width - width) / 2, (target.height - height) / 2, width, height};
}

void stretch_into(const cv::Mat& source, cv::Mat& target) {
  const bool smaller = target.cols < source.cols && target.rows < source.rows;
  cv::resize(source, target, target.size(), 0, 0, smaller ? cv::INTER_AREA : cv::INTER_LINEAR);
}

void fit_into(const cv::Mat& source, cv::Mat& target) {
  target.setTo(cv::Scalar::all(0));
  cv::Mat part = target(fitted(source.size(), target.size()));
  stretch_into(source, part);
}

} // namespace millrace::opencv
