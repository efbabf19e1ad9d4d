// Computes the numbers of a tensor made from a picture: regions are resized and colours normalised.
#pragma once

#include <cstdint>

#include "handlers/gpu/footprint.h"
#include "handlers/gpu/sample_mix.h"

namespace millrace::handlers {

// A tensor of `count` pictures, [count, channels, height, width] or, interleaved, [count, height, width, channels].
// Red, green and blue of 0…1 become (value − mean) / deviation.
struct TensorForm {
  uint32_t width = 0, height = 0, count = 1;
  uint32_t channels = 3; // 1: a gray picture, normalised with the mean and deviation of red
  bool half = false;     // numbers of 16 bits, else of 32
  bool interleaved = false;
  bool blue_first = false;
  float mean[3] = {0, 0, 0}, deviation[3] = {1, 1, 1}; // for red, green, blue
};

// The conversion of a picture's three colours, in the picture's order: value · factor + term, and the channel of the
// tensor that the result goes to.
struct ChannelForm {
  float factor[3], term[3];
  uint32_t place[3];
};

inline ChannelForm channel_form(const TensorForm& form, Pixel source) {
  const bool source_blue_first = source == Pixel::bgr8 || source == Pixel::bgra8;
  ChannelForm channels{};
  for (uint32_t c = 0; c < 3; ++c) {
    const uint32_t color = source_blue_first ? 2 - c : c;
    channels.factor[c] = static_cast<float>(1.0 / form.deviation[color]);
    channels.term[c] = static_cast<float>(-double{form.mean[color]} / form.deviation[color]);
    channels.place[c] = form.blue_first ? 2 - color : color;
  }
  return channels;
}

MR_BOTH inline UnitRgb normalized(const ChannelForm& channels, const UnitRgb& color) {
  return {color.red * channels.factor[0] + channels.term[0], color.green * channels.factor[1] + channels.term[1],
          color.blue * channels.factor[2] + channels.term[2]};
}

// MR_ROLLED stands before the loops over a footprint's inner samples. Most footprints have none, and a kernel's
// registers are better spent on more threads than on unrolling these loops.
#ifdef __CUDA_ARCH__
#define MR_ROLLED _Pragma("unroll 1")
#else
#define MR_ROLLED
#endif

MR_BOTH inline void add_weighted(Sample& sum, const Sample& sample, float weight) {
  sum.a += sample.a * weight;
  sum.b += sample.b * weight;
  sum.c += sample.c * weight;
}

template <SampleLayout kLayout>
MR_BOTH inline Sample mixed_row(const SampleSource& source, int32_t y, const Footprint& columns) {
  const SampleRow row = sample_row<kLayout>(source, y);
  Sample sum = {0, 0, 0};
  add_weighted(sum, sample_at<kLayout>(row, columns.first), columns.first_weight);
  add_weighted(sum, sample_at<kLayout>(row, columns.last), columns.last_weight);
  MR_ROLLED
  for (int32_t x = columns.first + 1; x < columns.last; ++x)
    add_weighted(sum, sample_at<kLayout>(row, x), columns.inner_weight);
  return sum;
}

// The mean of the pixels in these columns and rows.
template <SampleLayout kLayout>
MR_BOTH inline Sample mixed(const SampleSource& source, const Footprint& columns, const Footprint& rows) {
  Sample sum = {0, 0, 0};
  add_weighted(sum, mixed_row<kLayout>(source, rows.first, columns), rows.first_weight);
  add_weighted(sum, mixed_row<kLayout>(source, rows.last, columns), rows.last_weight);
  MR_ROLLED
  for (int32_t y = rows.first + 1; y < rows.last; ++y)
    add_weighted(sum, mixed_row<kLayout>(source, y, columns), rows.inner_weight);
  return sum;
}

} // namespace millrace::handlers
