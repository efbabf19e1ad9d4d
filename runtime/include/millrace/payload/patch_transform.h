// PatchTransform: brings boxes of a network's patch back to the picture that the patch was made of.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string_view>
#include <vector>

#include "millrace/payload/records.h"

#pragma GCC visibility push(hidden)
namespace millrace {
inline namespace v1 {

// The place of a picture in a patch that a network sees: a place x of the picture is at x · scale_x + offset_x of the
// patch, and y likewise. image.letterbox says it, and decoders bring their boxes back with it.
struct PatchTransform {
  static constexpr std::string_view kSchema = "millrace.PatchTransform";
  float scale_x = 1, scale_y = 1;   // pixels of the patch for one of the picture
  float offset_x = 0, offset_y = 0; // pixels of the patch before the picture
  uint32_t width = 0, height = 0;   // the size of the picture in pixels; 0: unknown
  static std::vector<mr_field> fields() {
    return {field("scale_x", &PatchTransform::scale_x),   field("scale_y", &PatchTransform::scale_y),
            field("offset_x", &PatchTransform::offset_x), field("offset_y", &PatchTransform::offset_y),
            field("width", &PatchTransform::width),       field("height", &PatchTransform::height)};
  }

  Box to_patch(Box box) const {
    box.x = box.x * scale_x + offset_x;
    box.y = box.y * scale_y + offset_y;
    box.width *= scale_x;
    box.height *= scale_y;
    return box;
  }
  // The inverse. Ends at the edges of a picture whose size is known: networks also find things in the border.
  Box to_picture(Box box) const {
    float left = (box.x - offset_x) / scale_x, right = (box.x + box.width - offset_x) / scale_x;
    float top = (box.y - offset_y) / scale_y, bottom = (box.y + box.height - offset_y) / scale_y;
    if (width > 0 && height > 0) {
      left = std::clamp(left, 0.0f, static_cast<float>(width));
      right = std::clamp(right, left, static_cast<float>(width));
      top = std::clamp(top, 0.0f, static_cast<float>(height));
      bottom = std::clamp(bottom, top, static_cast<float>(height));
    }
    box.x = left;
    box.y = top;
    box.width = right - left;
    box.height = bottom - top;
    return box;
  }
};

} // namespace v1
} // namespace millrace
#pragma GCC visibility pop
