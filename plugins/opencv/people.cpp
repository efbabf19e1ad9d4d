// The people detector: resizes, scans, groups in a fixed order, and removes the window's margin.
#include "plugins/opencv/people.h"

#include <algorithm>
#include <cmath>
#include <numeric>
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

std::vector<PersonCandidate> sorted(const std::vector<cv::Rect>& windows, const std::vector<double>& weights) {
  std::vector<PersonCandidate> candidates;
  candidates.reserve(windows.size());
  for (size_t i = 0; i < windows.size(); ++i) candidates.push_back({windows[i], weights[i]});
  std::sort(candidates.begin(), candidates.end());
  return candidates;
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

  std::vector<cv::Rect> windows;
  std::vector<double> weights;
  // The last argument, 0, turns OpenCV's grouping off: its threads append windows in any order, and its grouping
  // depends on the order.
  histograms_.detectMultiScale(scanned, windows, weights, settings.threshold, {kStride, kStride}, {}, settings.scale,
                               0);
  std::vector<PersonCandidate> candidates = sorted(windows, weights);
  if (settings.group > 0) {
    for (size_t i = 0; i < candidates.size(); ++i) {
      windows[i] = candidates[i].window;
      weights[i] = candidates[i].weight;
    }
    histograms_.groupRectangles(windows, weights, settings.group, kPersonGroupDistance);
    candidates = sorted(windows, weights);
  }
  if (candidates.size() > count_max) candidates.resize(count_max);
  std::vector<Box> people;
  people.reserve(candidates.size());
  for (const PersonCandidate& candidate : candidates) people.push_back(person_in(candidate, factor, picture.size()));
  return people;
}

} // namespace millrace::opencv
