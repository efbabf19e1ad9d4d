// The people detector: resizes, scans, groups in a fixed order, and removes the window's margin.
#include "plugins/opencv/people.h"

#include <algorithm>
#include <cmath>
#include <tuple>

#include <opencv2/imgproc.hpp>

namespace millrace::opencv {

namespace {

constexpr int kStride = 8; // pixels between windows: the smallest that histogram cells of 8 pixels allow
// Windows of one group differ by at most this fraction of their size. OpenCV's own choice.
constexpr double kPersonGroupDistance = 0.2;
// The classifier was trained on windows of 64 × 128 pixels, with 16 pixels of street around each person.
constexpr double kMarginX = 16.0 / 64, kMarginY = 16.0 / 128;

struct PersonCandidate {
  cv::Rect window;
  double weight;
  friend bool operator<(const PersonCandidate& a, const PersonCandidate& b) {
    const auto key = [](const PersonCandidate& c) {
      return std::tuple(-c.weight, c.window.y, c.window.x, c.window.height, c.window.width);
    };
    return key(a) < key(b);
  }
};

// The scales by which the picture is made smaller, until no window fits. As HOGDescriptor::detectMultiScale has them.
std::vector<double> scales_of(const cv::Mat& picture, const cv::HOGDescriptor& histograms, double ratio) {
  std::vector<double> scales;
  const cv::Size window = histograms.winSize;
  for (double scale = 1; static_cast<int>(scales.size()) < histograms.nlevels; scale *= ratio) {
    if (cvRound(picture.cols / scale) < window.width || cvRound(picture.rows / scale) < window.height) break;
    scales.push_back(scale);
  }
  return scales;
}

// The windows at one scale, in pixels of the picture.
std::vector<PersonCandidate> scan(const cv::Mat& picture, const cv::HOGDescriptor& histograms, double threshold,
                                  double scale) {
  cv::Mat smaller = picture;
  const cv::Size size(cvRound(picture.cols / scale), cvRound(picture.rows / scale));
  if (size != picture.size()) cv::resize(picture, smaller, size, 0, 0, cv::INTER_LINEAR_EXACT);
  std::vector<cv::Point> corners;
  std::vector<double> weights;
  histograms.detect(smaller, corners, weights, threshold, {kStride, kStride});
  std::vector<PersonCandidate> candidates;
  const cv::Size window(cvRound(histograms.winSize.width * scale), cvRound(histograms.winSize.height * scale));
  for (size_t i = 0; i < corners.size(); ++i) {
    const cv::Point corner(cvRound(corners[i].x * scale), cvRound(corners[i].y * scale));
    const cv::Rect inside = cv::Rect(corner, window) & cv::Rect({0, 0}, picture.size());
    if (!inside.empty()) candidates.push_back({inside, weights[i]});
  }
  return candidates;
}

// One candidate for each group of windows. The grouping depends on their order.
std::vector<PersonCandidate> grouped(const std::vector<PersonCandidate>& candidates,
                                     const cv::HOGDescriptor& histograms, int group) {
  std::vector<cv::Rect> windows;
  std::vector<double> weights;
  for (const PersonCandidate& candidate : candidates) {
    windows.push_back(candidate.window);
    weights.push_back(candidate.weight);
  }
  histograms.groupRectangles(windows, weights, group, kPersonGroupDistance);
  std::vector<PersonCandidate> groups;
  for (size_t i = 0; i < windows.size(); ++i) groups.push_back({windows[i], weights[i]});
  std::sort(groups.begin(), groups.end());
  return groups;
}

Box person_in(const PersonCandidate& candidate, double factor, const cv::Size& picture) {
  const cv::Rect& w = candidate.window;
  const double left = std::clamp((w.x + w.width * kMarginX) * factor, 0.0, double(picture.width));
  const double right = std::clamp((w.x + w.width * (1 - kMarginX)) * factor, 0.0, double(picture.width));
  const double top = std::clamp((w.y + w.height * kMarginY) * factor, 0.0, double(picture.height));
  const double bottom = std::clamp((w.y + w.height * (1 - kMarginY)) * factor, 0.0, double(picture.height));
  Box box;
  box.x = static_cast<float>(left);
  box.y = static_cast<float>(top);
  box.width = static_cast<float>(right - left);
  box.height = static_cast<float>(bottom - top);
  box.score = static_cast<float>(std::clamp(candidate.weight, 0.0, 1.0));
  box.label = kPersonLabel;
  return box;
}

} // namespace

PeopleDetector::PeopleDetector() { histograms_.setSVMDetector(cv::HOGDescriptor::getDefaultPeopleDetector()); }

std::vector<Box> PeopleDetector::detect(const cv::Mat& picture, const PeopleSettings& settings, size_t count_max) {
  cv::Mat scanned = picture;
  double factor = 1; // from pixels scanned to pixels of the picture
  if (settings.width > 0 && settings.width != picture.cols) {
    factor = static_cast<double>(picture.cols) / settings.width;
    const int height = std::max(1, static_cast<int>(std::lround(picture.rows / factor)));
    cv::resize(picture, resized_, {settings.width, height}, 0, 0, factor > 1 ? cv::INTER_AREA : cv::INTER_LINEAR);
    scanned = resized_;
  }
  // The scan itself does not check that a window fits.
  if (scanned.cols < histograms_.winSize.width || scanned.rows < histograms_.winSize.height) return {};

  // Scales are scanned side by side. HOGDescriptor::detectMultiScale does the same, but its threads append a window
  // under one lock and the window's weight under the next, so that a window may get another one's weight.
  const std::vector<double> scales = scales_of(scanned, histograms_, settings.scale);
  std::vector<std::vector<PersonCandidate>> by_scale(scales.size());
  cv::parallel_for_({0, static_cast<int>(scales.size())}, [&](const cv::Range& range) {
    for (int i = range.start; i < range.end; ++i) {
      const auto level = static_cast<size_t>(i);
      by_scale[level] = scan(scanned, histograms_, settings.threshold, scales[level]);
    }
  });
  std::vector<PersonCandidate> candidates;
  for (const auto& some : by_scale) candidates.insert(candidates.end(), some.begin(), some.end());
  std::sort(candidates.begin(), candidates.end());
  if (settings.group > 0) candidates = grouped(candidates, histograms_, settings.group);
  if (candidates.size() > count_max) candidates.resize(count_max);
  std::vector<Box> people;
  people.reserve(candidates.size());
  for (const PersonCandidate& candidate : candidates) people.push_back(person_in(candidate, factor, picture.size()));
  return people;
}

} // namespace millrace::opencv
