// image.adjust on a GPU: each plane is a launch, and a thread adjusts four samples of a row.
//
// Rule. Numbers go through the lines, tables and whole numbers of handlers/image/tone.h, so the bytes are equal.
#pragma once

#include "handlers/gpu/plane_samples.h"
#include "handlers/gpu/samples.h"
#include "handlers/gpu/tone_math.h"
#include "handlers/image/tone.h"

namespace millrace::handlers::gpu {

struct PlaneTone {
  const uint8_t* source;
  uint8_t* target;
  size_t source_stride, target_stride;
  uint32_t width, height; // in samples
  ToneLine line;
  bool straight; // the line is the tone, else the table is
  bool saturates;
  Saturation saturation; // its shares are in the order of the channels
};

// A table as a kernel takes it: an argument, which a captured graph keeps.
template <class Number>
struct ToneTable {
  Number at[kToneSteps<Number>];
};

template <class Number>
PlaneTone plane_tone(const DevicePicture& source, const DevicePicture& target, uint32_t plane,
                     const ToneAdjuster& tone) {
  const mr_plane &from = source.image.planes[plane], &to = target.image.planes[plane];
  const auto pixel = static_cast<Pixel>(source.image.format);
  const bool blue_first = pixel == Pixel::bgr8 || pixel == Pixel::bgra8;
  const Tones<Number>& tones = tone.tones<Number>(source.image);
  return {source.data + from.offset,
          target.data + to.offset,
          from.stride,
          to.stride,
          plane_extent(pixel, source.image.width, plane),
          plane_extent(pixel, source.image.height, plane),
          plane == 0 ? tones.first.line : tones.chroma,
          plane > 0 || tones.first.straight,
          !tone.saturation().is_none(),
          blue_first ? with_blue_first(tone.saturation()) : tone.saturation()};
}
template <class Number>
ToneTable<Number> tone_table(const DevicePicture& source, const ToneAdjuster& tone) {
  const auto& table = tone.tones<Number>(source.image).first.table;
  ToneTable<Number> made;
  for (uint32_t i = 0; i < kToneSteps<Number>; ++i) made.at[i] = table[i];
  return made;
}

template <class Of>
MR_BOTH uint32_t toned_sample(const PlaneTone& plane, const typename Of::Number* table, uint32_t sample) {
  using Number = typename Of::Number;
  constexpr uint32_t kColors = Of::kChannels < 3 ? Of::kChannels : 3;
  int32_t colors[kColors];
  for (uint32_t c = 0; c < kColors; ++c) {
    const int32_t number = Of::channel(sample, c) >> kToneUp<Number>;
    colors[c] = plane.straight ? on_line<Number>(plane.line, number) : table[number];
  }
  if constexpr (kColors == 3) {
    if (plane.saturates) {
      const int32_t shared = shared_sum(plane.saturation, colors[0], colors[1], colors[2]);
      for (int32_t& color : colors) color = saturated(plane.saturation, color, shared);
    }
  }
  uint32_t made = Of::kChannels == 4 ? sample & 0xff000000u : 0; // alpha stays
  for (uint32_t c = 0; c < kColors; ++c) made |= Of::with(static_cast<uint32_t>(colors[c]) << kToneUp<Number>, c);
  return made;
}

// Adjusts the four samples that begin at (x, y) of the plane.
template <class Of>
MR_BOTH void adjust_four(const PlaneTone& plane, const typename Of::Number* table, uint32_t x, uint32_t y) {
  const uint8_t* row = plane.source + y * plane.source_stride;
  const uint32_t count = smaller(4, plane.width - x);
  uint32_t samples[4] = {};
  MR_UNROLL
  for (uint32_t i = 0; i < 4; ++i)
    if (i < count) samples[i] = toned_sample<Of>(plane, table, load_sample<Of::kBytes>(row, x + i));
  store_samples<Of::kBytes>(plane.target + y * plane.target_stride, x, samples, count);
}

} // namespace millrace::handlers::gpu
