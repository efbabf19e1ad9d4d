// One layer of image.composite as a kernel takes it: its pixels, and their way to the canvas. It compiles for the CPU
// too, so that tests can check it.
//
// Rule. A layer is converted, scaled and laid over the canvas by the same arithmetic and in the same order as in
// handlers/image/compose.h, and rounded to 8 bits at the same points, so the bytes are equal. The exception is bilinear
// scaling of a layer that is one pixel wide or high, which may differ by 1.
#pragma once

#include <cstdint>

#include "handlers/gpu/color_math.h"
#include "handlers/gpu/layer_blend.h"
#include "handlers/gpu/library.h"
#include "handlers/gpu/resample_math.h"
#include "handlers/gpu/sample_mix.h"
#include "handlers/image/compose.h"

namespace millrace::handlers::gpu {

enum class LayerScaling : uint8_t { none, nearest, bilinear, area };

struct Layer {
  const uint8_t* planes[3];
  uint32_t strides[3];
  SampleLayout layout;
  LayerScaling scaling;
  BlendMode mode;
  uint8_t opacity;
  bool turned;        // the first and the third channel are swapped on the way to the canvas
  bool grays;         // the canvas is gray; a layer with alpha turns gray after scaling, any other before
  bool alpha;         // the fourth channel is alpha
  bool premultiplied; // the colours are already multiplied by alpha
  bool luma_is_gray;  // the luma has full range
  Decoding decoding;
  NumbersToRgb numbers;
  uint32_t part_x, part_y;
  int32_t left, top; // on the canvas; may lie outside
  ResizeAxis columns{1, 1}, rows{1, 1};
};

// `blend` and `opacity` are those of this layer; the canvas and the background are the caller's part.
inline Layer layer_of(const DevicePicture& picture, const FittedLayer& fitted, BlendMode blend, uint8_t opacity,
                      const ComposeSettings& settings, Pixel canvas) {
  const auto pixel = static_cast<Pixel>(picture.image.format);
  const auto blue_first = [](Pixel format) { return format == Pixel::bgr8 || format == Pixel::bgra8; };
  const ColorMatrix matrix = color_matrix(picture.image);
  Layer layer{};
  for (uint32_t plane = 0; plane < picture.image.plane_count && plane < 3; ++plane) {
    layer.planes[plane] = picture.data + picture.image.planes[plane].offset;
    layer.strides[plane] = picture.image.planes[plane].stride;
  }
  layer.layout = sample_layout_of(pixel);
  layer.mode = blend;
  layer.opacity = opacity;
  layer.grays = canvas == Pixel::gray8;
  layer.turned = blue_first(pixel) != blue_first(canvas);
  layer.alpha = has_alpha(pixel);
  layer.premultiplied = layer.alpha && settings.premultiplied;
  layer.luma_is_gray = picture.image.range == MR_RANGE_FULL && pixel != Pixel::p010;
  layer.decoding = Decoding(matrix);
  layer.numbers = matrix;
  layer.part_x = fitted.part_x;
  layer.part_y = fitted.part_y;
  layer.left = static_cast<int32_t>(fitted.x);
  layer.top = static_cast<int32_t>(fitted.y);
  layer.columns = ResizeAxis(fitted.part.width, fitted.size.width);
  layer.rows = ResizeAxis(fitted.part.height, fitted.size.height);
  if (!(fitted.part == fitted.size)) {
    const ResizeMethod method = resize_method(settings.scaling, fitted.part, fitted.size);
    layer.scaling = method == ResizeMethod::nearest    ? LayerScaling::nearest
                    : method == ResizeMethod::bilinear ? LayerScaling::bilinear
                                                       : LayerScaling::area;
  }
  return layer;
}

// ---- reading ------------------------------------------------------------------------------------------------------

MR_BOTH inline uint32_t word_at(const uint8_t* bytes) { // `bytes` is a multiple of four
#ifdef __CUDA_ARCH__
  return *reinterpret_cast<const uint32_t*>(bytes);
#else
  return static_cast<uint32_t>(bytes[0] | bytes[1] << 8 | bytes[2] << 16) | static_cast<uint32_t>(bytes[3]) << 24;
#endif
}

MR_BOTH constexpr uint32_t with_turned_colors(uint32_t pixel) {
  return (pixel & 0xff00ff00u) | (pixel >> 16 & 255) | (pixel & 255) << 16;
}

MR_BOTH inline uint32_t opaque_pixel(uint32_t first, uint32_t second, uint32_t third) {
  return first | second << 8 | third << 16 | 0xff000000u;
}

MR_BOTH inline uint32_t ten_bits_at(const uint8_t* bytes) { // `bytes` is even
#ifdef __CUDA_ARCH__
  return *reinterpret_cast<const uint16_t*>(bytes) >> kBelowTenBits;
#else
  return static_cast<uint32_t>(bytes[0] | bytes[1] << 8) >> kBelowTenBits;
#endif
}

// Red, green, blue of a YCbCr pixel, or its luma in full range if the canvas is gray.
MR_BOTH inline uint32_t ycbcr_pixel(const Layer& layer, uint32_t luma, uint32_t u, uint32_t v) {
  if (layer.grays && layer.luma_is_gray) return opaque_pixel(luma, 0, 0);
  const auto y = static_cast<int32_t>(luma), cb = static_cast<int32_t>(u), cr = static_cast<int32_t>(v);
  if (layer.grays) return opaque_pixel(gray_of_luma(layer.numbers, y), 0, 0);
  const Rgb color =
      layer.layout == SampleLayout::p010 ? decoded_deep(layer.numbers, y, cb, cr) : decoded(layer.decoding, y, cb, cr);
  return opaque_pixel(color.r, color.g, color.b);
}

// Converts a pixel of the layer to the channels that are scaled: those of the canvas, or red, green, blue, alpha if a
// layer with alpha goes to a gray canvas.
MR_BOTH inline uint32_t in_scaled_channels(const Layer& layer, uint32_t pixel) {
  if (layer.turned) pixel = with_turned_colors(pixel);
  if (layer.grays && layer.layout == SampleLayout::packed3)
    return opaque_pixel(gray_of(static_cast<int32_t>(pixel & 255), static_cast<int32_t>(pixel >> 8 & 255),
                                static_cast<int32_t>(pixel >> 16 & 255)),
                        0, 0);
  return pixel;
}

// The pixel at x, y of the layer's part.
MR_BOTH inline uint32_t pixel_at(const Layer& layer, uint32_t x, uint32_t y) {
  x += layer.part_x;
  y += layer.part_y;
  const uint8_t* row = layer.planes[0] + size_t{y} * layer.strides[0];
  const auto chroma = [&](int plane) { return layer.planes[plane] + size_t{y / 2} * layer.strides[plane]; };
  const uint8_t* bytes = row + 3 * size_t{x};
  uint32_t pixel = 0;
  switch (layer.layout) {
    case SampleLayout::gray: pixel = opaque_pixel(row[x], row[x], row[x]); break;
    case SampleLayout::packed4: pixel = word_at(row + 4 * size_t{x}); break;
    case SampleLayout::packed3: pixel = opaque_pixel(bytes[0], bytes[1], bytes[2]); break;
    case SampleLayout::nv12: pixel = ycbcr_pixel(layer, row[x], chroma(1)[x & ~1u], chroma(1)[x | 1u]); break;
    case SampleLayout::p010: {
      const uint8_t* pair = chroma(1) + 4 * size_t{x / 2};
      pixel = ycbcr_pixel(layer, ten_bits_at(row + 2 * size_t{x}), ten_bits_at(pair), ten_bits_at(pair + 2));
      break;
    }
    default: pixel = ycbcr_pixel(layer, row[x], chroma(1)[x / 2], chroma(2)[x / 2]); break;
  }
  return in_scaled_channels(layer, pixel);
}

// Loads four pixels of a row of an unscaled layer as words. False if they do not begin at a word boundary, and for
// layouts that gain nothing from it.
MR_BOTH inline bool four_pixels_at(const Layer& layer, uint32_t x, uint32_t y, uint32_t (&pixels)[4]) {
  x += layer.part_x;
  y += layer.part_y;
  const uint8_t* row = layer.planes[0] + size_t{y} * layer.strides[0];
  const auto whole = [](const uint8_t* at) { return reinterpret_cast<uintptr_t>(at) % 4 == 0; };
  const auto byte = [](uint32_t word, uint32_t i) { return word >> 8 * i & 255; };
  if (layer.layout == SampleLayout::packed3 && whole(row + 3 * size_t{x})) {
    const uint8_t* at = row + 3 * size_t{x};
    const uint32_t a = word_at(at), b = word_at(at + 4), c = word_at(at + 8);
    pixels[0] = a | 0xff000000u;
    pixels[1] = a >> 24 | b << 8 | 0xff000000u;
    pixels[2] = b >> 16 | c << 16 | 0xff000000u;
    pixels[3] = c >> 8 | 0xff000000u;
  } else if (layer.layout == SampleLayout::gray && whole(row + x)) {
    const uint32_t four = word_at(row + x);
    for (uint32_t i = 0; i < 4; ++i) pixels[i] = opaque_pixel(byte(four, i), byte(four, i), byte(four, i));
  } else if (layer.layout == SampleLayout::nv12 && x % 2 == 0 && whole(row + x)) {
    const uint8_t* chroma = layer.planes[1] + size_t{y / 2} * layer.strides[1] + x;
    if (!whole(chroma)) return false;
    const uint32_t four = word_at(row + x), pairs = word_at(chroma);
    for (uint32_t i = 0; i < 4; ++i)
      pixels[i] = ycbcr_pixel(layer, byte(four, i), byte(pairs, i & 2), byte(pairs, (i & 2) + 1));
  } else {
    return false;
  }
  for (uint32_t& pixel : pixels) pixel = in_scaled_channels(layer, pixel);
  return true;
}

// ---- scaling ------------------------------------------------------------------------------------------------------

MR_BOTH inline uint32_t bilinear_pixel(const Layer& layer, uint32_t x, uint32_t y) {
  const BilinearTap column = bilinear_tap(layer.columns, x), row = bilinear_tap(layer.rows, y);
  const uint32_t right = column.first + 1 < layer.columns.source ? column.first + 1 : column.first;
  const uint32_t below = row.first + 1 < layer.rows.source ? row.first + 1 : row.first;
  const uint32_t taps[4] = {pixel_at(layer, column.first, row.first), pixel_at(layer, column.first, below),
                            pixel_at(layer, right, row.first), pixel_at(layer, right, below)};
  uint32_t pixel = 0;
  for (uint32_t shift = 0; shift < 32; shift += 8) {
    const auto byte = [&](int tap) { return static_cast<uint8_t>(taps[tap] >> shift); };
    pixel |= uint32_t{blended_sample(mixed_sample(byte(0), byte(1), row.weight),
                                     mixed_sample(byte(2), byte(3), row.weight), column.weight)}
             << shift;
  }
  return pixel;
}

// Sums over rows first and then over columns, in the CPU's order.
MR_BOTH inline uint32_t area_pixel(const Layer& layer, uint32_t x, uint32_t y) {
  const AreaTaps columns = area_taps(layer.columns, x), rows = area_taps(layer.rows, y);
  float sums[4] = {0, 0, 0, 0};
  for (uint32_t column = columns.first; column <= columns.last; ++column) {
    float down[4] = {0, 0, 0, 0};
    for (uint32_t row = rows.first; row <= rows.last; ++row) {
      const uint32_t pixel = pixel_at(layer, column, row);
      const float weight = rows.weight(row);
      for (int c = 0; c < 4; ++c) down[c] += rounded_product(static_cast<float>(pixel >> 8 * c & 255), weight);
    }
    for (int c = 0; c < 4; ++c) sums[c] += rounded_product(down[c], columns.weight(column));
  }
  uint32_t pixel = 0;
  for (int c = 0; c < 4; ++c) {
    const float rounded = sums[c] + 0.5f;
    pixel |= static_cast<uint32_t>(rounded < 255 ? rounded : 255.0f) << 8 * c;
  }
  return pixel;
}

// A pixel of the layer at its size on the canvas.
MR_BOTH inline uint32_t scaled_pixel(const Layer& layer, uint32_t x, uint32_t y) {
  switch (layer.scaling) {
    case LayerScaling::nearest: return pixel_at(layer, nearest_source(layer.columns, x), nearest_source(layer.rows, y));
    case LayerScaling::bilinear: return bilinear_pixel(layer, x, y);
    case LayerScaling::area: return area_pixel(layer, x, y);
    default: return pixel_at(layer, x, y);
  }
}

// ---- laying over --------------------------------------------------------------------------------------------------

// Lays `above`, a pixel of the layer from scaled_pixel(), over `below`, a pixel of the canvas.
MR_BOTH inline uint32_t laid_over(const Layer& layer, uint32_t above, uint32_t below, bool below_opaque) {
  const bool added = layer.premultiplied && layer.mode == BlendMode::over && below_opaque;
  if (layer.premultiplied && !added) above = straightened(above);
  if (layer.grays && layer.alpha)
    above = (above & 0xff000000u) | gray_of(static_cast<int32_t>(above & 255), static_cast<int32_t>(above >> 8 & 255),
                                            static_cast<int32_t>(above >> 16 & 255));
  if (!below_opaque) return over_translucent(layer.mode, above, layer.opacity, below);
  const uint32_t weight = byte_product(above >> 24, layer.opacity);
  if (added) return premultiplied_over_opaque(above, layer.opacity, weight, below);
  return over_opaque(layer.mode, above, weight, below);
}

} // namespace millrace::handlers::gpu
