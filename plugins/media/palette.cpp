// A fixed palette and one transparent entry; see palette.h.
#include "plugins/media/palette.h"

#include <cstddef>
#include <cstdint>
#include <cstring>

namespace millrace::media {

namespace {

constexpr uint32_t kOpaque = 0xff000000;
constexpr uint8_t kTransparent = 1, kNearest = 0; // the darkest blue is shown as black
constexpr uint8_t kShownFrom = 128;
constexpr uint32_t kColors = 256, kAlphaAt = 3, kPixelBytes = 4;

} // namespace

void make_palette(const ImageView& picture, AVFrame& frame) {
  for (uint32_t i = 0; i < kColors; ++i) {
    const uint32_t red = (i >> 5) * 255 / 7, green = (i >> 2 & 7) * 255 / 7, blue = (i & 3) * 255 / 3;
    const uint32_t color = i == kTransparent ? 0 : kOpaque | red << 16 | green << 8 | blue;
    std::memcpy(frame.data[1] + size_t{i} * sizeof color, &color, sizeof color);
  }
  for (int y = 0; y < frame.height; ++y) {
    const uint8_t* alpha = picture.row(static_cast<uint32_t>(y)) + kAlphaAt;
    uint8_t* to = frame.data[0] + ptrdiff_t{y} * frame.linesize[0];
    for (int x = 0; x < frame.width; ++x, alpha += kPixelBytes)
      to[x] = *alpha < kShownFrom ? kTransparent : to[x] == kTransparent ? kNearest : to[x];
  }
}

} // namespace millrace::media
