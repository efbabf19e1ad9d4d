// Adjusts the tone of pictures. Colours are spread into one array for each channel, chunk by chunk, so that the
// saturation's loop vectorises. If the saturation is 1, rows of one or three channels are processed as plain bytes.
#include "handlers/image/tone.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "handlers/image/interleave.h"
#include "handlers/image/planes.h"
#include "handlers/image/vectorize.h"

namespace millrace::handlers {
namespace {

// The pixels of a chunk: four arrays of them stay in the first-level cache.
constexpr uint32_t kToneChunk = 512;

constexpr int32_t kOne15 = 32768;

template <class Number>
MILLRACE_VECTORIZE void apply_line(const ToneLine line, const Number* in, size_t count, Number* out) {
  constexpr int kUp = kToneUp<Number>;
  for (size_t i = 0; i < count; ++i) out[i] = static_cast<Number>(on_line<Number>(line, in[i] >> kUp) << kUp);
}

template <class Number>
void apply_table(const std::array<Number, kToneSteps<Number>>& table, const Number* in, size_t count, Number* out) {
  constexpr int kUp = kToneUp<Number>;
  for (size_t i = 0; i < count; ++i) out[i] = static_cast<Number>(table[in[i] >> kUp] << kUp);
}

template <class Number>
void apply(const ToneCurveOf<Number>& curve, const Number* in, size_t count, Number* out) {
  if (curve.straight) return apply_line(curve.line, in, count, out);
  apply_table(curve.table, in, count, out);
}

struct ToneChunk {
  alignas(64) uint8_t first[kToneChunk], second[kToneChunk], third[kToneChunk], alpha[kToneChunk];
};

// The saturation is passed by value: the bytes that are written could alias a reference.
MILLRACE_VECTORIZE void saturate(const Saturation by, uint32_t count, ToneChunk& chunk) {
  for (uint32_t i = 0; i < count; ++i) {
    const int32_t first = chunk.first[i], second = chunk.second[i], third = chunk.third[i];
    const int32_t shared = shared_sum(by, first, second, third);
    chunk.first[i] = static_cast<uint8_t>(saturated(by, first, shared));
    chunk.second[i] = static_cast<uint8_t>(saturated(by, second, shared));
    chunk.third[i] = static_cast<uint8_t>(saturated(by, third, shared));
  }
}

template <class Number>
int32_t tone_fixed(double value) {
  return static_cast<int32_t>(std::lround(value * (1 << kToneFraction<Number>)));
}

// A half, so that a line is rounded to nearest.
template <class Number>
constexpr int32_t kToneHalf = 1 << (kToneFraction<Number> - 1);

} // namespace

template <class Number>
ToneCurveOf<Number> tone_curve_of(const ToneSettings& settings, bool limited) {
  constexpr uint32_t kSteps = kToneSteps<Number>;
  constexpr double kUnit = kSteps / 256.0; // steps for each step of 8 bits
  const double black = limited ? 16 * kUnit : 0, span = limited ? 219 * kUnit : kSteps - 1;
  ToneCurveOf<Number> curve;
  curve.straight = settings.gamma == 1;
  curve.line.gain = tone_fixed<Number>(settings.contrast);
  const double shift = span * (0.5 - 0.5 * settings.contrast + settings.brightness) + black * (1 - settings.contrast);
  curve.line.offset = tone_fixed<Number>(shift) + kToneHalf<Number>;
  curve.line.low = static_cast<int32_t>(black);
  curve.line.high = static_cast<int32_t>(black + span);
  for (uint32_t value = 0; value < kSteps; ++value) {
    if (curve.straight) {
      curve.table[value] = static_cast<Number>(on_line<Number>(curve.line, static_cast<int32_t>(value)));
      continue;
    }
    const double v = (value - black) / span;
    const double bright = std::clamp((v - 0.5) * settings.contrast + 0.5 + settings.brightness, 0.0, 1.0);
    curve.table[value] = static_cast<Number>(std::floor(black + span * std::pow(bright, 1 / settings.gamma) + 0.5));
  }
  return curve;
}
template ToneCurveOf<uint8_t> tone_curve_of<uint8_t>(const ToneSettings&, bool);
template ToneCurveOf<uint16_t> tone_curve_of<uint16_t>(const ToneSettings&, bool);

template <class Number>
ToneLine chroma_line_of(const ToneSettings& settings, bool limited) {
  constexpr int32_t kSteps = kToneSteps<Number>, kMiddle = kSteps / 2, kUnit = kSteps / 256;
  const double gain = settings.contrast * settings.saturation;
  ToneLine line;
  line.gain = tone_fixed<Number>(gain);
  line.offset = tone_fixed<Number>(kMiddle - kMiddle * gain) + kToneHalf<Number>;
  line.low = limited ? 16 * kUnit : 0;
  line.high = limited ? 240 * kUnit : kSteps - 1;
  return line;
}
template ToneLine chroma_line_of<uint8_t>(const ToneSettings&, bool);
template ToneLine chroma_line_of<uint16_t>(const ToneSettings&, bool);

void ToneAdjuster::set(const ToneSettings& settings) {
  settings_ = settings;
  for (const bool limited : {false, true}) {
    tones_[limited] = {tone_curve_of<uint8_t>(settings, limited), chroma_line_of<uint8_t>(settings, limited)};
    deep_[limited] = {tone_curve_of<uint16_t>(settings, limited), chroma_line_of<uint16_t>(settings, limited)};
  }
  saturation_.own = static_cast<int32_t>(std::lround(settings.saturation * kOne15));
  const int32_t rest = kOne15 - saturation_.own;
  saturation_.red = static_cast<int32_t>(std::lround(rest * 0.299));
  saturation_.blue = static_cast<int32_t>(std::lround(rest * 0.114));
  saturation_.green = rest - saturation_.red - saturation_.blue;
}

void ToneAdjuster::run(const ImageView& source, const ImageSpan& target) const {
  const Pixel pixel = source.pixel();
  if (pixel == Pixel::p010) return run_planes<uint16_t>(source, target);
  if (halves_chroma(pixel)) return run_planes<uint8_t>(source, target);
  const uint32_t channels = bytes_per_pixel(pixel);
  const bool as_bytes = channels == 1 || (channels == 3 && saturation_.is_none());
  const bool blue_first = pixel == Pixel::bgr8 || pixel == Pixel::bgra8;
  for (uint32_t y = 0; y < source.height(); ++y) {
    if (as_bytes) {
      apply(tones_[0].first, source.row(y), size_t{source.width()} * channels, target.row(y));
    } else {
      run_colors(source.row(y), source.width(), channels, blue_first, target.row(y));
    }
  }
}

void ToneAdjuster::run_colors(const uint8_t* in, uint32_t count, uint32_t channels, bool blue_first,
                              uint8_t* out) const {
  ToneChunk chunk;
  for (uint32_t done = 0; done < count; done += kToneChunk) {
    const uint32_t part = std::min(kToneChunk, count - done);
    const uint8_t* from = in + size_t{done} * channels;
    if (channels == 3) unpack3(from, part, chunk.first, chunk.second, chunk.third);
    if (channels == 4) unpack4(from, part, chunk.first, chunk.second, chunk.third, chunk.alpha);
    for (uint8_t* channel : {chunk.first, chunk.second, chunk.third}) apply(tones_[0].first, channel, part, channel);
    if (!saturation_.is_none()) saturate(blue_first ? with_blue_first(saturation_) : saturation_, part, chunk);
    uint8_t* to = out + size_t{done} * channels;
    if (channels == 3) pack3(chunk.first, chunk.second, chunk.third, part, to);
    if (channels == 4) pack4(chunk.first, chunk.second, chunk.third, chunk.alpha, part, to);
  }
}

template <class Number>
void ToneAdjuster::run_planes(const ImageView& source, const ImageSpan& target) const {
  const Tones<Number>& by = tones<Number>(source.value().as.image);
  for (uint32_t p = 0; p < source.plane_count(); ++p) {
    const Plane<const uint8_t> from = plane_of(source, p);
    const Plane<uint8_t> to = plane_of(target, p);
    const size_t count = size_t{plane_extent(source.pixel(), source.width(), p)} * from.channels;
    for (uint32_t y = 0; y < source.rows(p); ++y) {
      const auto* in = reinterpret_cast<const Number*>(from.row(y));
      auto* out = reinterpret_cast<Number*>(to.row(y));
      p == 0 ? apply(by.first, in, count, out) : apply_line(by.chroma, in, count, out);
    }
  }
}

} // namespace millrace::handlers
