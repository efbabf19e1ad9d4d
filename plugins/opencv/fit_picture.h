// Brings a picture to the size of another.
#pragma once

#include <opencv2/core.hpp>

namespace millrace::opencv {

// The part of `target` that a picture of size `source` fills if it keeps its proportions: as large as fits, in the
// middle, at least one pixel wide and high.
cv::Rect fitted(const cv::Size& source, const cv::Size& target);

// Scales `source` to fill `target` and ignores its proportions.
void stretch_into(const cv::Mat& source, cv::Mat& target);

// Scales `source` into the fitted part of `target`; the rest becomes black, or transparent if there is alpha.
void fit_into(const cv::Mat& source, cv::Mat& target);

} // namespace millrace::opencv
