// The pixels of image.composite on a canvas of nv12, i420 or p010: the arithmetic that the CPU and kernels share.
//
// Rules. The work is done in 4:4:4: every pixel of the canvas has its own luma and chroma. They are 16 bits wide, with
// the canvas's 8 or 10 bits at the top and a fraction below. At the end luma is rounded to the canvas's bits; so is the
// mean of the chroma of 2 × 2 pixels (at odd edges, of those inside the canvas).
//  - Numbers of the canvas's matrix and range are taken as they are. Only full range of another depth is scaled, by
//    1023/255.
//  - All others go through RGB in units of 1/16 of 8 bits, clamped to 0…255.
//  - A layer's weight is its alpha times its opacity, 0…255², without rounding.
// The arithmetic uses whole numbers only, so CPU and GPU give the same bits.
#pragma once

#include <cmath>
#include <cstdint>

#include "handlers/gpu/color_math.h"
#include "handlers/gpu/convert.h"
#include "handlers/image/layer_places.h"
#include "handlers/image/planes.h"

namespace millrace::handlers::gpu {

inline constexpr uint32_t kWeightMax = 255 * 255;
inline constexpr int32_t kMiddle16 = 1 << 15; // chroma of gray, in any depth

struct Ycbcr16 {
  uint32_t y, u, v;
};

// The numbers of a canvas, and how many bits they are below the top of 16.
struct CanvasNumbers {
  ColorMatrix matrix;
  int32_t up;
};
inline CanvasNumbers canvas_numbers(const mr_image& image) {
  return {color_matrix(image), image.format == MR_PIXEL_P010 ? kBelowTenBits : 8};
}

// Takes red, green and blue in 1/16.
MR_INTO_LOOPS Ycbcr16 encoded16(const CanvasNumbers& canvas, int32_t r, int32_t g, int32_t b) {
  const ColorMatrix& m = canvas.matrix;
  const int32_t down = 20 - canvas.up, half = 1 << (down - 1), most = m.max << canvas.up;
  const auto number = [&](int32_t sum) { return static_cast<uint32_t>(clamp_to((sum + half) >> down, most)); };
  return {number(m.yr * r + m.yg * g + m.yb * b + (m.black << 20)),
          number(m.ur * r + m.ug * g + m.ub * b + (m.middle << 20)),
          number(m.vr * r + m.vg * g + m.vb * b + (m.middle << 20))};
}

// A premultiplied colour of 8 bits divided by its alpha, in 1/16; any colour if the alpha is 0.
MR_INTO_LOOPS int32_t straight16(int32_t color, int32_t alpha) {
  const int32_t whole = alpha > 0 ? (color * (255 * 16) + alpha / 2) / alpha : 0;
  return whole < 255 * 16 ? whole : 255 * 16;
}

// How the numbers of a layer of nv12, i420 or p010 become those of the canvas.
struct LayerNumbers {
  NumbersToRgb from;
  int32_t up;   // bits below the top of 16
  int32_t gain; // from its depth to the canvas's, in 1/32768
  bool recodes; // through RGB
};
// True if the layer's numbers are the canvas's, and only move to the top of 16 bits. Numbers of ten bits above 1020 do
// not: they are above 255 of eight.
inline bool are_canvas_numbers(const LayerNumbers& layer, const CanvasNumbers& canvas) {
  return !layer.recodes && layer.up == canvas.up;
}
inline LayerNumbers layer_numbers(const mr_image& layer, const mr_image& canvas) {
  const CanvasNumbers from = canvas_numbers(layer), to = canvas_numbers(canvas);
  const double gain =
      layer.range == MR_RANGE_LIMITED ? 1 : double(to.matrix.max << to.up) / double(from.matrix.max << from.up);
  return {from.matrix, from.up, static_cast<int32_t>(std::lround(gain * 32768)), !same_numbers(layer, canvas)};
}

// Takes the layer's numbers of 8 or 10 bits.
MR_INTO_LOOPS Ycbcr16 canvas_pixel(const LayerNumbers& layer, const CanvasNumbers& canvas, int32_t y, int32_t u,
                                   int32_t v) {
  if (layer.recodes) {
    const NumbersToRgb& m = layer.from;
    const int32_t luma = (y - m.black) * m.y_gain + (1 << 11), cb = u - m.middle, cr = v - m.middle;
    const auto color = [](int32_t sum) { return clamp_to(sum >> 12, 255 * 16); };
    return encoded16(canvas, color(luma + m.v_r * cr), color(luma + m.u_g * cb + m.v_g * cr), color(luma + m.u_b * cb));
  }
  const int32_t most = canvas.matrix.max << canvas.up;
  const auto scaled = [&](int32_t number) { return (number * layer.gain + (1 << 14)) >> 15; };
  const auto chroma = [&](int32_t number) {
    return static_cast<uint32_t>(clamp_to(scaled((number << layer.up) - kMiddle16) + kMiddle16, most));
  };
  // As unsigned numbers: the brightest luma of ten bits times the gain is just above 2^31.
  const uint32_t luma = (static_cast<uint32_t>(y << layer.up) * static_cast<uint32_t>(layer.gain) + (1u << 14)) >> 15;
  return {static_cast<uint32_t>(clamp_to(static_cast<int32_t>(luma), most)), chroma(u), chroma(v)};
}

// A number below a layer of this weight, 0…kWeightMax.
MR_INTO_LOOPS uint32_t laid_number(uint32_t below, uint32_t above, uint32_t weight) {
  return (below * (kWeightMax - weight) + above * weight + kWeightMax / 2) / kWeightMax;
}

// The canvas's number for one of 16 bits, and for four whose mean it is.
MR_INTO_LOOPS uint32_t canvas_number(uint32_t number, int32_t up) { return (number + (1u << up >> 1)) >> up; }
MR_INTO_LOOPS uint32_t mean_number(uint32_t sum, int32_t up) { return (sum + (2u << up)) >> (up + 2); }

// A colour of 8 bits as the canvas shows it alone: rounded to its numbers.
inline Ycbcr16 background_of(const CanvasNumbers& canvas, int32_t r, int32_t g, int32_t b) {
  const Ycbcr16 exact = encoded16(canvas, r << 4, g << 4, b << 4);
  const auto rounded = [&](uint32_t number) { return canvas_number(number, canvas.up) << canvas.up; };
  return {rounded(exact.y), rounded(exact.u), rounded(exact.v)};
}

// A layer's part as it is taken for a canvas of planes: it begins at whole chroma samples, up to a pixel further left
// and up.
inline FittedLayer at_whole_chroma(FittedLayer fitted, Pixel layer) {
  if (!halves_chroma(layer)) return fitted;
  fitted.part_x &= ~1u;
  fitted.part_y &= ~1u;
  return fitted;
}

} // namespace millrace::handlers::gpu
