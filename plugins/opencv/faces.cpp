// The face detector: converts to grey, resizes, evens out the light, scans, and groups in a fixed order.
#include "plugins/opencv/faces.h"

#include <algorithm>
#include <cmath>
#include <stdexcept>
#include <tuple>

#include <opencv2/imgproc.hpp>

namespace millrace::opencv {

namespace {

// Windows of one group differ by at most this fraction of their size. OpenCV's own choice.
constexpr double kFaceGroupDistance = 0.2;

struct FaceCandidate {
  cv::Rect window;
  int votes; // windows that agree
  friend bool operator<(const FaceCandidate& a, const FaceCandidate& b) {
    const auto key = [](const FaceCandidate& c) {
      return std::tuple(-c.votes, -c.window.width, c.window.y, c.window.x, c.window.height);
    };
    return key(a) < key(b);
  }
};

void sort_windows(std::vector<cv::Rect>& windows) {
  std::sort(windows.begin(), windows.end(), [](const cv::Rect& a, const cv::Rect& b) {
    return std::tuple(a.y, a.x, a.height, a.width) < std::tuple(b.y, b.x, b.height, b.width);
  });
}

Box face_in(const FaceCandidate& candidate, double factor, const cv::Size& picture, int group) {
  const auto scaled = [factor](int at, int most) {
    return static_cast<float>(std::clamp(at * factor, 0.0, double(most)));
  };
  const cv::Rect& w = candidate.window;
  Box box;
  box.x = scaled(w.x, picture.width);
  box.y = scaled(w.y, picture.height);
  box.width = scaled(w.x + w.width, picture.width) - box.x;
  box.height = scaled(w.y + w.height, picture.height) - box.y;
  box.score = static_cast<float>(candidate.votes) / static_cast<float>(candidate.votes + group + 1);
  box.label = kFaceLabel;
  return box;
}

cv::Size square(int side, double factor) {
  const int scaled = static_cast<int>(std::lround(side / factor));
  return {scaled, scaled};
}

} // namespace

FaceDetector::FaceDetector(const std::string& path) {
  bool loaded = false;
  std::string why;
  try {
    loaded = cascade_.load(path);
  } catch (const cv::Exception& error) { // the file is no XML, or is cut off
    why = " (" + error.err + ")";
  }
  if (!loaded || cascade_.empty()) throw std::runtime_error("'" + path + "' holds no cascade that can be read" + why);
}

std::vector<Box> FaceDetector::detect(const cv::Mat& picture, const FaceSettings& settings, size_t count_max) {
  cv::Mat scanned = picture;
  if (picture.channels() == 3) {
    cv::cvtColor(picture, grey_, cv::COLOR_BGR2GRAY);
    scanned = grey_;
  }
  double factor = 1; // from pixels scanned to pixels of the picture
  if (settings.width > 0 && settings.width != picture.cols) {
    factor = static_cast<double>(picture.cols) / settings.width;
    const int height = std::max(1, static_cast<int>(std::lround(picture.rows / factor)));
    cv::resize(scanned, resized_, {settings.width, height}, 0, 0, factor > 1 ? cv::INTER_AREA : cv::INTER_LINEAR);
    scanned = resized_;
  }
  // The scan itself does not check that a window fits.
  const cv::Size window = cascade_.getOriginalWindowSize();
  if (scanned.cols < window.width || scanned.rows < window.height) return {};
  cv::equalizeHist(scanned, even_);

  std::vector<cv::Rect> windows;
  // The 0 turns OpenCV's grouping off: its threads append windows in any order, and its grouping depends on the order.
  cascade_.detectMultiScale(even_, windows, settings.scale, 0, 0, square(settings.size_min, factor),
                            square(settings.size_max, factor));
  sort_windows(windows);
  std::vector<int> votes(windows.size(), 1);
  if (settings.group > 0) cv::groupRectangles(windows, votes, settings.group, kFaceGroupDistance);
  std::vector<FaceCandidate> candidates;
  candidates.reserve(windows.size());
  for (size_t i = 0; i < windows.size(); ++i) candidates.push_back({windows[i], votes[i]});
  std::sort(candidates.begin(), candidates.end());
  if (candidates.size() > count_max) candidates.resize(count_max);
  std::vector<Box> faces;
  faces.reserve(candidates.size());
  for (const FaceCandidate& candidate : candidates)
    faces.push_back(face_in(candidate, factor, picture.size(), settings.group));
  return faces;
}

} // namespace millrace::opencv
