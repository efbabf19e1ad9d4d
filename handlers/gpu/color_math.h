// Converts one pixel to another pixel format: the arithmetic of handlers/image/color.h, for the CPU and for kernels.
//
// Rule. The arithmetic uses whole numbers only, so CPU and GPU give the same bits.
#pragma once

#include <millrace/abi.h>

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "handlers/gpu/both.h"

namespace millrace::handlers::gpu {

// The coefficients from the numbers of a YCbCr picture of 8 or 10 bits to RGB, with 16 bits of fraction.
struct NumbersToRgb {
  int32_t black, middle;              // luma of black, chroma of gray
  int32_t y_gain, v_r, u_g, v_g, u_b; // Y, Cr, Cb → RGB
};

// The coefficients in both directions. Each row of encoding coefficients has an exact sum, so that grays have no tint.
struct ColorMatrix : NumbersToRgb {
  int32_t max;                    // the largest number
  int32_t yr, yg, yb;             // RGB → Y
  int32_t ur, ug, ub, vr, vg, vb; // RGB → Cb, Cr
};

inline int32_t fixed16(double value) { return static_cast<int32_t>(std::lround(value * 65536)); }

inline ColorMatrix color_matrix(uint32_t color, uint32_t range, uint32_t bits = 8) {
  double kr = 0.299, kb = 0.114;
  if (color == MR_COLOR_BT709) kr = 0.2126, kb = 0.0722;
  if (color == MR_COLOR_BT2020) kr = 0.2627, kb = 0.0593;
  const bool limited = range == MR_RANGE_LIMITED;
  const int32_t step = 1 << (bits - 8);
  ColorMatrix m{};
  m.black = limited ? 16 * step : 0;
  m.middle = 128 * step;
  m.max = 256 * step - 1;
  const double luma = (limited ? 219.0 * step : m.max) / 255, chroma = (limited ? 224.0 * step : m.max) / 255;
  const double u_scale = chroma / (2 * (1 - kb)), v_scale = chroma / (2 * (1 - kr));
  m.yr = fixed16(kr * luma);
  m.yb = fixed16(kb * luma);
  m.yg = fixed16(luma) - m.yr - m.yb;
  m.ur = fixed16(-kr * u_scale);
  m.ub = fixed16((1 - kb) * u_scale);
  m.ug = -m.ur - m.ub;
  m.vr = fixed16((1 - kr) * v_scale);
  m.vb = fixed16(-kb * v_scale);
  m.vg = -m.vr - m.vb;
  const double kg = 1 - kr - kb;
  m.y_gain = fixed16(1 / luma);
  m.v_r = fixed16(2 * (1 - kr) / chroma);
  m.u_b = fixed16(2 * (1 - kb) / chroma);
  m.u_g = fixed16(-2 * (1 - kb) * kb / kg / chroma);
  m.v_g = fixed16(-2 * (1 - kr) * kr / kg / chroma);
  return m;
}

inline ColorMatrix color_matrix(const mr_image& image) {
  return color_matrix(image.color, image.range, image.format == MR_PIXEL_P010 ? 10 : 8);
}

struct Rgb {
  uint8_t r, g, b;
};

MR_BOTH constexpr int32_t clamp_to(int32_t value, int32_t max) { return std::min(std::max(value, 0), max); }

// ---- from RGB -------------------------------------------------------------------------------------------------

// 0.299, 0.587 and 0.114 with 15 bits of fraction. Their sum is 32768, so gray pixels keep their value.
MR_BOTH constexpr uint8_t gray_of(int32_t r, int32_t g, int32_t b) {
  return static_cast<uint8_t>((9798 * r + 19235 * g + 3735 * b + (1 << 14)) >> 15);
}

MR_BOTH constexpr int32_t luma_of(const ColorMatrix& m, int32_t r, int32_t g, int32_t b) {
  return clamp_to((m.yr * r + m.yg * g + m.yb * b + (m.black << 16) + (1 << 15)) >> 16, m.max);
}

// Takes the sums of four pixels, which have two more bits than their mean.
MR_BOTH constexpr int32_t cb_of(const ColorMatrix& m, int32_t r, int32_t g, int32_t b) {
  return clamp_to((m.ur * r + m.ug * g + m.ub * b + (m.middle << 18) + (1 << 17)) >> 18, m.max);
}
MR_BOTH constexpr int32_t cr_of(const ColorMatrix& m, int32_t r, int32_t g, int32_t b) {
  return clamp_to((m.vr * r + m.vg * g + m.vb * b + (m.middle << 18) + (1 << 17)) >> 18, m.max);
}

// ---- to RGB ---------------------------------------------------------------------------------------------------

// Luma alone, brought to the full range of 8 bits.
MR_BOTH constexpr uint8_t gray_of_luma(const NumbersToRgb& m, int32_t y) {
  return static_cast<uint8_t>(clamp_to(((y - m.black) * m.y_gain + (1 << 15)) >> 16, 255));
}

// The upper 16 bits of a product of two 16-bit numbers; the lower ones are cut off. One vector instruction does this
// for many numbers.
MR_BOTH constexpr int16_t high16(int16_t a, int16_t b) { return static_cast<int16_t>((int32_t{a} * b) >> 16); }

// Decodes Y, Cr, Cb of 8 bits to RGB in units of 1/32. The upper 16 bits of a product have this unit: of luma in 1/128
// times its gain in 1/16384, and of chroma in 1/256 times coefficients in 1/8192, which are up to 2.2. Three products
// cut off at most 3/32; the 1 that is added to the half makes up for the mean of that.
struct Decoding {
  Decoding() = default;
  explicit Decoding(const ColorMatrix& m)
      : black(static_cast<int16_t>(m.black)),
        y_gain(of(m.y_gain, 2)),
        v_r(of(m.v_r, 3)),
        u_g(of(m.u_g, 3)),
        v_g(of(m.v_g, 3)),
        u_b(of(m.u_b, 3)) {}
  static int16_t of(int32_t fixed, int bits) { return static_cast<int16_t>((fixed + (1 << bits >> 1)) >> bits); }
  int16_t black, y_gain, v_r, u_g, v_g, u_b;
};

MR_BOTH constexpr Rgb decoded(const Decoding& d, int32_t y, int32_t u, int32_t v) {
  constexpr int16_t kHalf5 = 16 + 1;
  const auto luma = static_cast<int16_t>(high16(static_cast<int16_t>((y - d.black) << 7), d.y_gain) + kHalf5);
  const auto cb = static_cast<int16_t>((u - 128) << 8), cr = static_cast<int16_t>((v - 128) << 8);
  const auto r = static_cast<int16_t>(luma + high16(cr, d.v_r));
  const auto g = static_cast<int16_t>(luma + high16(cb, d.u_g) + high16(cr, d.v_g));
  const auto b = static_cast<int16_t>(luma + high16(cb, d.u_b));
  return {static_cast<uint8_t>(clamp_to(r >> 5, 255)), static_cast<uint8_t>(clamp_to(g >> 5, 255)),
          static_cast<uint8_t>(clamp_to(b >> 5, 255))};
}

// The same for 10 bits, whose products need 32 bits; the result is rounded half up to 8 bits.
MR_BOTH constexpr Rgb decoded_deep(const NumbersToRgb& m, int32_t y, int32_t u, int32_t v) {
  const int32_t luma = (y - m.black) * m.y_gain + (1 << 15), cb = u - m.middle, cr = v - m.middle;
  return {static_cast<uint8_t>(clamp_to((luma + m.v_r * cr) >> 16, 255)),
          static_cast<uint8_t>(clamp_to((luma + m.u_g * cb + m.v_g * cr) >> 16, 255)),
          static_cast<uint8_t>(clamp_to((luma + m.u_b * cb) >> 16, 255))};
}

// ---- between 8 and 10 bits ------------------------------------------------------------------------------------

// The same colour in numbers of another depth: limited range has four times as many steps, full range reaches to 1023
// instead of 255. Rounded half up; exact if the depths are equal.
struct Rescaling {
  int32_t gain, middle_from, middle_to, max;
};

inline Rescaling rescaling(const ColorMatrix& from, const ColorMatrix& to, uint32_t range) {
  const double gain =
      range == MR_RANGE_LIMITED ? static_cast<double>(to.middle) / from.middle : static_cast<double>(to.max) / from.max;
  return {fixed16(gain), from.middle, to.middle, to.max};
}
MR_BOTH constexpr int32_t rescaled_luma(const Rescaling& r, int32_t y) {
  return clamp_to((y * r.gain + (1 << 15)) >> 16, r.max);
}
MR_BOTH constexpr int32_t rescaled_chroma(const Rescaling& r, int32_t c) {
  return clamp_to((((c - r.middle_from) * r.gain + (1 << 15)) >> 16) + r.middle_to, r.max);
}

} // namespace millrace::handlers::gpu
