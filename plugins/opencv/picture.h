// millrace pictures as OpenCV sees them: headers over the same memory, no copy.
#pragma once

#include <stdexcept>
#include <string>

#include <opencv2/core.hpp>

#include "millrace/payload.h"

namespace millrace::opencv {

// A header over the first plane of a packed 8-bit picture; valid as long as the picture is. Throws
// std::invalid_argument for formats that do not fit into one matrix.
inline cv::Mat mat_of(const ImageSpan& picture) {
  int type = CV_8UC1;
  switch (picture.pixel()) {
    case Pixel::gray8: break;
    case Pixel::rgb8:
    case Pixel::bgr8: type = CV_8UC3; break;
    case Pixel::rgba8:
    case Pixel::bgra8: type = CV_8UC4; break;
    default:
      throw std::invalid_argument("a picture in " + std::string(name_of(picture.pixel())) + " is no single matrix");
  }
  return {static_cast<int>(picture.height()), static_cast<int>(picture.width()), type, picture.row(0),
          picture.stride()};
}

// The same for a picture that must not be written; cv::Mat has no such header, so the result is const instead.
inline const cv::Mat mat_of(const ImageView& picture) {
  return mat_of(ImageSpan(&picture.value(), const_cast<uint8_t*>(picture.data())));
}

inline std::string in_words(const cv::Size& size) {
  return std::to_string(size.width) + " × " + std::to_string(size.height);
}

} // namespace millrace::opencv
