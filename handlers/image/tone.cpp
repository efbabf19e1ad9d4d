// Adjusts the tone of pictures. Colours are spread into one array for each channel, chunk by chunk, so that the
// saturation's loop vectorises. If the saturation is 1, rows of one or three channels are processed as plain bytes.
#include "handlers/image/tone.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "handlers/image/interleave.h"
#include "handlers/image/picture.h"
#include "handlers/image/vectorize.h"

namespace millrace::handlers {
namespace {

// The pixels of a chunk: four arrays of them stay in the first-level cache.
constexpr uint32_t kToneChunk = 512;

constexpr int32_t kOne15 = 32768;

int32_t fixed16(double value) { return static_cast<int32_t>(std::lround(value * 65536)); }

uint8_t on_line(const ToneLine& line, uint32_t value) {
  const int32_t sum = static_cast<int32_t>(value) * line.gain + line.offset;
  return static_cast<uint8_t>(std::clamp(sum >> 16, line.low, line.high));
}

MILLRACE_VECTORIZE void apply_line(const ToneLine& line, const uint8_t* in, size_t count, uint8_t* out) {
  const int32_t gain = line.gain, offset = line.offset, low = line.low, high = line.high;
  for (size_t i = 0; i < count; ++i)
    out[i] = static_cast<uint8_t>(std::min(std::max((in[i] * gain + offset) >> 16, low), high));
}

void apply_table(const std::array<uint8_t, 256>& table, const uint8_t* in, size_t count, uint8_t* out) {
  for (size_t i = 0; i < count; ++i) out[i] = table[in[i]];
}

void apply(const ToneCurve& curve, const uint8_t* in, size_t count, uint8_t* out) {
  if (curve.straight) return apply_line(curve.line, in, count, out);
  apply_table(curve.table, in, count, out);
}

struct ToneChunk {
  alignas(64) uint8_t first[kToneChunk], second[kToneChunk], third[kToneChunk], alpha[kToneChunk];
};

// Each channel becomes `own` times itself plus a sum that is the same for all three, in 15 bits.
MILLRACE_VECTORIZE void saturate(int32_t own, int32_t first_share, int32_t second_share, int32_t third_share,
                                 uint32_t count, ToneChunk& chunk) {
  for (uint32_t i = 0; i < count; ++i) {
    const int32_t first = chunk.first[i], second = chunk.second[i], third = chunk.third[i];
    const int32_t shared = first * first_share + second * second_share + third * third_share + kOne15 / 2;
    chunk.first[i] = static_cast<uint8_t>(std::min(std::max((first * own + shared) >> 15, 0), 255));
    chunk.second[i] = static_cast<uint8_t>(std::min(std::max((second * own + shared) >> 15, 0), 255));
    chunk.third[i] = static_cast<uint8_t>(std::min(std::max((third * own + shared) >> 15, 0), 255));
  }
}

} // namespace

ToneCurve tone_curve(const ToneSettings& settings, bool limited) {
  const double black = limited ? 16 : 0, span = limited ? 219 : 255;
  ToneCurve curve;
  curve.straight = settings.gamma == 1;
  curve.line.gain = fixed16(settings.contrast);
  const double shift = span * (0.5 - 0.5 * settings.contrast + settings.brightness) + black * (1 - settings.contrast);
  curve.line.offset = fixed16(shift) + 32768;
  curve.line.low = static_cast<int32_t>(black);
  curve.line.high = static_cast<int32_t>(black + span);
  for (uint32_t value = 0; value < 256; ++value) {
    const double v = (value - black) / span;
    const double bright = std::clamp((v - 0.5) * settings.contrast + 0.5 + settings.brightness, 0.0, 1.0);
    const double toned = black + span * std::pow(bright, 1 / settings.gamma);
    curve.table[value] = curve.straight ? on_line(curve.line, value) : static_cast<uint8_t>(std::floor(toned + 0.5));
  }
  return curve;
}

ToneLine chroma_line(const ToneSettings& settings, bool limited) {
  const double gain = settings.contrast * settings.saturation;
  ToneLine line;
  line.gain = fixed16(gain);
  line.offset = fixed16(128 - 128 * gain) + 32768;
  if (limited) line.low = 16, line.high = 240;
  return line;
}

void ToneAdjuster::set(const ToneSettings& settings) {
  settings_ = settings;
  full_ = tone_curve(settings, false);
  limited_ = tone_curve(settings, true);
  chroma_full_ = chroma_line(settings, false);
  chroma_limited_ = chroma_line(settings, true);
  own_ = static_cast<int32_t>(std::lround(settings.saturation * kOne15));
  const int32_t rest = kOne15 - own_;
  red_ = static_cast<int32_t>(std::lround(rest * 0.299));
  blue_ = static_cast<int32_t>(std::lround(rest * 0.114));
  green_ = rest - red_ - blue_;
}

void ToneAdjuster::run(const ImageView& source, const ImageSpan& target) const {
  const Pixel pixel = source.pixel();
  if (pixel == Pixel::nv12 || pixel == Pixel::i420) return run_ycbcr(source, target);
  const uint32_t channels = bytes_per_pixel(pixel);
  const bool as_bytes = channels == 1 || (channels == 3 && own_ == kOne15);
  const bool blue_first = pixel == Pixel::bgr8 || pixel == Pixel::bgra8;
  for (uint32_t y = 0; y < source.height(); ++y) {
    if (as_bytes) {
      apply(full_, source.row(y), size_t{source.width()} * channels, target.row(y));
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
    for (uint8_t* channel : {chunk.first, chunk.second, chunk.third}) apply(full_, channel, part, channel);
    if (own_ != kOne15) saturate(own_, blue_first ? blue_ : red_, green_, blue_first ? red_ : blue_, part, chunk);
    uint8_t* to = out + size_t{done} * channels;
    if (channels == 3) pack3(chunk.first, chunk.second, chunk.third, part, to);
    if (channels == 4) pack4(chunk.first, chunk.second, chunk.third, chunk.alpha, part, to);
  }
}

void ToneAdjuster::run_ycbcr(const ImageView& source, const ImageSpan& target) const {
  const bool limited = source.range() == MR_RANGE_LIMITED;
  for (uint32_t plane = 0; plane < source.plane_count(); ++plane) {
    const size_t bytes = plane_row_bytes(source.pixel(), source.width(), plane);
    for (uint32_t y = 0; y < source.rows(plane); ++y) {
      if (plane == 0) {
        apply(limited ? limited_ : full_, source.row(y), bytes, target.row(y));
      } else {
        apply_line(limited ? chroma_limited_ : chroma_full_, source.row(y, plane), bytes, target.row(y, plane));
      }
    }
  }
}

} // namespace millrace::handlers
