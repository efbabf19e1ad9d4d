// Picks pixels of pictures and makes colours of them; see tap_picture.h.
#include "exec/tap_picture.h"

#include <algorithm>
#include <cstddef>
#include <cstring>

#include "millrace/payload/image.h"

namespace millrace::exec {

namespace {

// A row of the original. Pixels with colours are picked as rgba, the others as Y, Cb, Cr and 255.

struct PictureRow {
  const mr_image& image;
  const uint8_t* data;
  uint32_t y;
  const uint8_t* at(uint32_t plane, uint32_t row) const {
    return data + image.planes[plane].offset + size_t{row} * image.planes[plane].stride;
  }
};

void put(uint8_t* out, uint8_t first, uint8_t second, uint8_t third, uint8_t alpha = 255) {
  out[0] = first;
  out[1] = second;
  out[2] = third;
  out[3] = alpha;
}

// The upper 8 of 10 bits, which are the upper ones of 16. Rounded.
uint8_t upper_bits(const uint8_t* at) {
  uint16_t number = 0;
  std::memcpy(&number, at, sizeof number);
  return static_cast<uint8_t>(std::min<uint32_t>((number + 0x80u) >> 8, 255));
}

void pick_row(const PictureRow& row, std::span<const uint32_t> columns, uint8_t* out) {
  const uint8_t* const first = row.at(0, row.y);
  const auto each = [&](auto&& pick) {
    for (const uint32_t x : columns) {
      pick(size_t{x}, out);
      out += kRgbaBytes;
    }
  };
  switch (static_cast<Pixel>(row.image.format)) {
    case Pixel::none: break;
    case Pixel::gray8: each([&](size_t x, uint8_t* to) { put(to, first[x], first[x], first[x]); }); break;
    case Pixel::rgb8:
      each([&](size_t x, uint8_t* to) { put(to, first[3 * x], first[3 * x + 1], first[3 * x + 2]); });
      break;
    case Pixel::bgr8:
      each([&](size_t x, uint8_t* to) { put(to, first[3 * x + 2], first[3 * x + 1], first[3 * x]); });
      break;
    case Pixel::rgba8: each([&](size_t x, uint8_t* to) { std::memcpy(to, first + 4 * x, kRgbaBytes); }); break;
    case Pixel::bgra8:
      each([&](size_t x, uint8_t* to) { put(to, first[4 * x + 2], first[4 * x + 1], first[4 * x], first[4 * x + 3]); });
      break;
    case Pixel::nv12: {
      const uint8_t* const chroma = row.at(1, row.y / 2);
      each([&](size_t x, uint8_t* to) { put(to, first[x], chroma[x / 2 * 2], chroma[x / 2 * 2 + 1]); });
      break;
    }
    case Pixel::i420: {
      const uint8_t *const blue = row.at(1, row.y / 2), *const red = row.at(2, row.y / 2);
      each([&](size_t x, uint8_t* to) { put(to, first[x], blue[x / 2], red[x / 2]); });
      break;
    }
    case Pixel::p010: {
      const uint8_t* const chroma = row.at(1, row.y / 2);
      each([&](size_t x, uint8_t* to) {
        put(to, upper_bits(first + 2 * x), upper_bits(chroma + x / 2 * 4), upper_bits(chroma + x / 2 * 4 + 2));
      });
      break;
    }
  }
}

bool is_ycbcr(const mr_image& image) {
  const auto pixel = static_cast<Pixel>(image.format);
  return pixel == Pixel::nv12 || pixel == Pixel::i420 || pixel == Pixel::p010;
}

// ITU-R BT.601-7, BT.709-6, BT.2020-2. `srgb` on YCbCr means BT.601, as for image.convert.
struct LumaShares {
  float red, blue;
};
LumaShares shares_of(uint32_t color) {
  switch (color) {
    case MR_COLOR_BT709: return {0.2126f, 0.0722f};
    case MR_COLOR_BT2020: return {0.2627f, 0.0593f};
    default: return {0.299f, 0.114f};
  }
}

uint8_t rounded(float number) { return static_cast<uint8_t>(std::clamp(number + 0.5f, 0.0f, 255.0f)); }

void make_rgba(const mr_image& image, std::span<uint8_t> pixels) {
  const LumaShares share = shares_of(image.color);
  const float green = 1 - share.red - share.blue;
  const bool full = image.range == MR_RANGE_FULL;
  const float luma_scale = full ? 1 : 255.0f / 219, chroma_scale = full ? 1 : 255.0f / 224;
  const float black = full ? 0 : 16;
  for (size_t at = 0; at + kRgbaBytes <= pixels.size(); at += kRgbaBytes) {
    uint8_t* const pixel = &pixels[at];
    const float luma = (static_cast<float>(pixel[0]) - black) * luma_scale;
    const float blue = (static_cast<float>(pixel[1]) - 128) * chroma_scale * 2 * (1 - share.blue);
    const float red = (static_cast<float>(pixel[2]) - 128) * chroma_scale * 2 * (1 - share.red);
    put(pixel, rounded(luma + red), rounded(luma - (share.blue * blue + share.red * red) / green),
        rounded(luma + blue));
  }
}

} // namespace

ShownSize shown_size(const mr_image& image, uint32_t longest) {
  uint64_t width = image.width, height = image.height;
  if (width == 0 || height == 0) return {};
  const uint64_t across = image.aspect_num, down = image.aspect_den;
  if (across > 0 && down > 0) {
    if (across > down) height = std::max<uint64_t>(height * down / across, 1);
    if (down > across) width = std::max<uint64_t>(width * across / down, 1);
  }
  const uint64_t longer = std::max(width, height);
  const auto shrunk = [&](uint64_t side) {
    return static_cast<uint32_t>(longer <= longest ? side
                                                   : std::max<uint64_t>((side * longest + longer / 2) / longer, 1));
  };
  return {shrunk(width), shrunk(height)};
}

void pick_picture(const mr_image& image, const uint8_t* data, uint32_t longest, std::span<uint32_t> columns,
                  std::span<uint8_t> to) {
  const ShownSize size = shown_size(image, longest);
  for (uint32_t x = 0; x < size.width; ++x) columns[x] = middle_of(x, size.width, image.width);
  uint8_t* out = to.data();
  for (uint32_t y = 0; y < size.height; ++y, out += size_t{size.width} * kRgbaBytes)
    pick_row({image, data, middle_of(y, size.height, image.height)}, columns.first(size.width), out);
}

ShownPicture show_picture(const mr_image& image, uint32_t longest, std::span<const uint8_t> picked) {
  const ShownSize size = shown_size(image, longest);
  ShownPicture shown{image.width, image.height, size.width, size.height, {}};
  const auto pixels = picked.first(size_t{size.width} * size.height * kRgbaBytes);
  shown.rgba.assign(pixels.begin(), pixels.end());
  if (is_ycbcr(image)) make_rgba(image, shown.rgba);
  return shown;
}

} // namespace millrace::exec
