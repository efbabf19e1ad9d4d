// The motion detector: reduces the picture, compares it with the background, joins what changed, and boxes it.
#include "plugins/opencv/motion.h"

#include <algorithm>
#include <cmath>
#include <tuple>

#include <opencv2/imgproc.hpp>

namespace millrace::opencv {

std::vector<Box> MotionDetector::detect(const cv::Mat& picture, const MotionSettings& settings, size_t count_max) {
  const bool is_reduced = settings.width > 0 && settings.width < picture.cols;
  const double factor = is_reduced ? static_cast<double>(picture.cols) / settings.width : 1; // to pixels of the picture
  const cv::Size size(is_reduced ? settings.width : picture.cols,
                      std::max(1, static_cast<int>(std::lround(picture.rows / factor))));
  cv::resize(picture, reduced_, size, 0, 0, cv::INTER_AREA);
  cv::blur(reduced_, reduced_, {3, 3}); // a camera's noise is no motion
  reduced_.convertTo(seen_, CV_32F);
  if (background_.size() != size) {
    seen_.copyTo(background_);
    return {};
  }
  cv::subtract(seen_, background_, difference_);
  cv::compare(cv::abs(difference_), settings.threshold, changed_, cv::CMP_GE);
  const double step = 255.0 / settings.memory;
  cv::max(difference_, -step, difference_);
  cv::min(difference_, step, difference_);
  background_ += difference_;

  // Grown by half the distance on each side, what is to be joined touches.
  const int reach = static_cast<int>(std::lround(settings.join / factor / 2));
  cv::dilate(changed_, joined_, cv::getStructuringElement(cv::MORPH_RECT, {2 * reach + 1, 2 * reach + 1}));
  const int count = cv::connectedComponentsWithStats(joined_, labels_, stats_, centroids_);
  std::vector<Box> boxes;
  for (int i = 1; i < count; ++i) { // 0 is the background
    const cv::Rect grown(stats_.at<int>(i, cv::CC_STAT_LEFT), stats_.at<int>(i, cv::CC_STAT_TOP),
                         stats_.at<int>(i, cv::CC_STAT_WIDTH), stats_.at<int>(i, cv::CC_STAT_HEIGHT));
    const cv::Mat own = changed_(grown) & (labels_(grown) == i);
    const int changed = cv::countNonZero(own);
    if (changed == 0 || changed < settings.area_min * size.area()) continue;
    cv::Rect place = cv::boundingRect(own);
    place.x += grown.x;
    place.y += grown.y;
    Box box;
    box.x = static_cast<float>(place.x * factor);
    box.y = static_cast<float>(place.y * factor);
    box.width = static_cast<float>(std::min(place.width * factor, picture.cols - place.x * factor));
    box.height = static_cast<float>(std::min(place.height * factor, picture.rows - place.y * factor));
    box.score = static_cast<float>(changed) / static_cast<float>(place.area());
    box.label = 0;
    boxes.push_back(box);
  }
  const auto order = [](const Box& box) {
    return std::tuple(-box.score * box.width * box.height, box.y, box.x, box.height, box.width);
  };
  std::sort(boxes.begin(), boxes.end(), [&](const Box& a, const Box& b) { return order(a) < order(b); });
  if (boxes.size() > count_max) boxes.resize(count_max);
  return boxes;
}

} // namespace millrace::opencv
