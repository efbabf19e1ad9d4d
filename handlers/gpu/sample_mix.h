// Reads single pixels of any format as numbers, mixes them, and converts them to red, green and blue of 0…1.
//
// Rules. All pixels of a 2x2 block have its chroma, as in image.convert. Samples are mixed as they are stored and only
// then become RGB, by the real-valued formulas of ITU-R BT.601-7, BT.709-6 and BT.2020-2 in single precision, clamped
// to 0…1 and not rounded to 8 bits. Color `srgb` on a YCbCr picture means BT.601. P010 has its 10 bits in the upper
// bits of 16. Results of CPU and GPU differ by the roundings that fused multiply-add omits: at most 1e-5 of the range.
#pragma once

#include <millrace/payload.h>

#include <cstdint>

#include "handlers/gpu/both.h"

namespace millrace::handlers {

// How the samples of a pixel lie in memory.
enum class SampleLayout : uint32_t { gray, packed3, packed4, nv12, i420, p010 };

inline SampleLayout sample_layout_of(Pixel pixel) {
  switch (pixel) {
    case Pixel::gray8: return SampleLayout::gray;
    case Pixel::rgba8:
    case Pixel::bgra8: return SampleLayout::packed4;
    case Pixel::nv12: return SampleLayout::nv12;
    case Pixel::i420: return SampleLayout::i420;
    case Pixel::p010: return SampleLayout::p010;
    default: return SampleLayout::packed3;
  }
}

// The stored numbers that stand for 0 in luma and chroma, and the value of one step: of luma, or of every colour of an
// RGB picture, and of Cr and Cb in red, green and blue.
struct SampleNumbers {
  float luma_zero, luma_step, chroma_zero, red_v, green_u, green_v, blue_u;
};

inline SampleNumbers sample_numbers_of(Pixel pixel, uint32_t color, uint32_t range) {
  const bool ycbcr = pixel == Pixel::nv12 || pixel == Pixel::i420 || pixel == Pixel::p010;
  const bool limited = ycbcr && range == MR_RANGE_LIMITED;
  double kr = 0.299, kb = 0.114;
  if (color == MR_COLOR_BT709) kr = 0.2126, kb = 0.0722;
  if (color == MR_COLOR_BT2020) kr = 0.2627, kb = 0.0593;
  const double kg = 1 - kr - kb;
  const double unit = pixel == Pixel::p010 ? 4 : 1; // steps for each step of 8 bits
  const double top = pixel == Pixel::p010 ? 1023 : 255;
  const double luma = limited ? 219 * unit : top, chroma = limited ? 224 * unit : top;
  const auto number = [](double value) { return static_cast<float>(value); };
  return {number(limited ? 16 * unit : 0),
          number(1 / luma),
          number(128 * unit),
          number(2 * (1 - kr) / chroma),
          number(-2 * (1 - kb) * kb / kg / chroma),
          number(-2 * (1 - kr) * kr / kg / chroma),
          number(2 * (1 - kb) / chroma)};
}

// A picture to read from, by value for kernels.
struct SampleSource {
  const uint8_t* planes[3];
  uint32_t strides[3];
  int32_t width, height;
  SampleNumbers numbers;
};

inline SampleSource sample_source(const mr_image& image, const uint8_t* data) {
  SampleSource source{};
  for (uint32_t plane = 0; plane < image.plane_count && plane < 3; ++plane) {
    source.planes[plane] = data + image.planes[plane].offset;
    source.strides[plane] = image.planes[plane].stride;
  }
  source.width = static_cast<int32_t>(image.width);
  source.height = static_cast<int32_t>(image.height);
  source.numbers = sample_numbers_of(static_cast<Pixel>(image.format), image.color, image.range);
  return source;
}

// A pixel as it is stored, or a mean of several: gray, the first three channels in their order, or Y, Cb, Cr.
struct Sample {
  float a, b, c;
};

struct SampleRow {
  const uint8_t *first, *second, *third; // a row of each plane
};

template <SampleLayout kLayout>
MR_BOTH inline SampleRow sample_row(const SampleSource& source, int32_t y) {
  const auto row = [&](int plane, int32_t at) {
    return source.planes[plane] + static_cast<size_t>(at) * source.strides[plane];
  };
  if constexpr (kLayout == SampleLayout::nv12 || kLayout == SampleLayout::p010) return {row(0, y), row(1, y >> 1), {}};
  if constexpr (kLayout == SampleLayout::i420) return {row(0, y), row(1, y >> 1), row(2, y >> 1)};
  return {row(0, y), {}, {}};
}

// Rows begin at multiples of four bytes, as in every picture of the runtime, so one load brings the channels of a
// pixel.
template <SampleLayout kLayout>
MR_BOTH inline Sample sample_at(const SampleRow& row, int32_t x) {
  const auto number = [](uint32_t bits) { return static_cast<float>(bits); };
  if constexpr (kLayout == SampleLayout::gray) return {number(row.first[x]), 0, 0};
  if constexpr (kLayout == SampleLayout::packed3) {
    const uint8_t* pixel = row.first + 3 * static_cast<size_t>(x);
    return {number(pixel[0]), number(pixel[1]), number(pixel[2])};
  }
#ifdef __CUDA_ARCH__
  if constexpr (kLayout == SampleLayout::packed4) {
    const uchar4 pixel = reinterpret_cast<const uchar4*>(row.first)[x];
    return {number(pixel.x), number(pixel.y), number(pixel.z)};
  }
  if constexpr (kLayout == SampleLayout::nv12) {
    const uchar2 chroma = reinterpret_cast<const uchar2*>(row.second)[x >> 1];
    return {number(row.first[x]), number(chroma.x), number(chroma.y)};
  }
  if constexpr (kLayout == SampleLayout::p010) {
    const ushort2 chroma = reinterpret_cast<const ushort2*>(row.second)[x >> 1];
    return {number(reinterpret_cast<const uint16_t*>(row.first)[x] >> 6), number(chroma.x >> 6), number(chroma.y >> 6)};
  }
#else
  if constexpr (kLayout == SampleLayout::packed4) {
    const uint8_t* pixel = row.first + 4 * static_cast<size_t>(x);
    return {number(pixel[0]), number(pixel[1]), number(pixel[2])};
  }
  if constexpr (kLayout == SampleLayout::nv12) {
    const uint8_t* chroma = row.second + (x & ~1);
    return {number(row.first[x]), number(chroma[0]), number(chroma[1])};
  }
  if constexpr (kLayout == SampleLayout::p010) {
    const auto ten = [&](const uint8_t* bytes) { return number((bytes[0] | bytes[1] << 8) >> 6); };
    const uint8_t* chroma = row.second + 2 * static_cast<size_t>(x & ~1);
    return {ten(row.first + 2 * static_cast<size_t>(x)), ten(chroma), ten(chroma + 2)};
  }
#endif
  return {number(row.first[x]), number(row.second[x >> 1]), number(row.third[x >> 1])};
}

struct UnitRgb {
  float red, green, blue;
};

MR_BOTH inline float clamped01(float value) {
#ifdef __CUDA_ARCH__
  return __saturatef(value);
#else
  return value < 0 ? 0 : value > 1 ? 1 : value;
#endif
}

// RGB of 0…1, from luma of 0…1 and chroma centred at 0.
MR_BOTH inline UnitRgb unit_rgb(const SampleNumbers& n, float luma, float u, float v) {
  return {clamped01(luma + v * n.red_v), clamped01(luma + u * n.green_u + v * n.green_v),
          clamped01(luma + u * n.blue_u)};
}

// Converts to 0…1. Packed pixels keep the order of their channels.
template <SampleLayout kLayout>
MR_BOTH inline UnitRgb decoded(const SampleNumbers& n, const Sample& sample) {
  const float luma = (sample.a - n.luma_zero) * n.luma_step;
  if constexpr (kLayout == SampleLayout::gray) return {luma, luma, luma};
  if constexpr (kLayout == SampleLayout::packed3 || kLayout == SampleLayout::packed4)
    return {luma, sample.b * n.luma_step, sample.c * n.luma_step};
  return unit_rgb(n, luma, sample.b - n.chroma_zero, sample.c - n.chroma_zero);
}

} // namespace millrace::handlers
