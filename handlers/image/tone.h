// Changes brightness, contrast, gamma and saturation of pictures of 8 and 10 bits.
//
// Formulas, for a channel v of 0…1:
//   tone        v' = clamp((v − 0.5) · contrast + 0.5 + brightness)^(1 / gamma)
//   saturation  v'' = Y + saturation · (v' − Y), with the luma Y = 0.299 R' + 0.587 G' + 0.114 B' (ITU-R
//   BT.601-7, 2.5.1)
// The tone is a table with an entry for each number, rounded to nearest; without gamma it is a line in fixed point,
// whose results the table holds too. The saturation is a matrix, saturation · I + (1 − saturation) · (luma in each
// row), in 15-bit fixed point. Each row has an exact sum, so that grays stay gray. Alpha is not changed.
//
// In nv12, i420 and p010 the tone works on luma, from black to white of their range, and chroma is multiplied by
// contrast · saturation. Without gamma this equals the same settings on RGB, as long as nothing is clamped. The six
// bits below a number of p010 are ignored, and written as 0.
#pragma once

#include <millrace/payload.h>

#include <cstdint>

#include "handlers/gpu/tone_math.h"
#include "handlers/image/planes.h"

namespace millrace::handlers {

struct ToneSettings {
  double brightness = 0; // −1…1: added; 1 is the distance from black to white
  double contrast = 1;   // around middle gray; 0 leaves only that
  double gamma = 1;      // above 1 brightens the middle
  double saturation = 1; // 0: gray
  friend bool operator==(const ToneSettings&, const ToneSettings&) = default;
};
// Beyond these bounds a picture has only two levels left. The product of the two maxima and 255 in 16-bit fixed point,
// or 1023 in 13-bit fixed point, still fits 31 bits.
inline constexpr double kContrastMax = 10, kSaturationMax = 10, kGammaMin = 0.05, kGammaMax = 20;

using ToneCurve = ToneCurveOf<uint8_t>;
// `limited`: black is 16 and white 235, or four times that of ten bits.
template <class Number>
ToneCurveOf<Number> tone_curve_of(const ToneSettings& settings, bool limited);
template <class Number>
ToneLine chroma_line_of(const ToneSettings& settings, bool limited);
inline ToneCurve tone_curve(const ToneSettings& settings, bool limited) {
  return tone_curve_of<uint8_t>(settings, limited);
}
inline ToneLine chroma_line(const ToneSettings& settings, bool limited) {
  return chroma_line_of<uint8_t>(settings, limited);
}

// The tones of a picture's planes: the first, or all channels of an interleaved picture, and chroma.
template <class Number>
struct Tones {
  ToneCurveOf<Number> first;
  ToneLine chroma;
};

// Changes pictures by the current settings. Owned by one thread; allocates nothing.
class ToneAdjuster {
 public:
  ToneAdjuster() { set({}); }
  void set(const ToneSettings& settings);
  const ToneSettings& settings() const { return settings_; }
  // Takes interleaved 8-bit formats, nv12, i420 and p010. Both pictures have the same size and format, and may be the
  // same memory.
  void run(const ImageView& source, const ImageSpan& target) const;

  // The tones of a picture's numbers. Those of interleaved pictures have full range, whatever their tag says.
  template <class Number>
  const Tones<Number>& tones(const mr_image& image) const {
    const bool limited = halves_chroma(static_cast<Pixel>(image.format)) && image.range == MR_RANGE_LIMITED;
    if constexpr (sizeof(Number) == 2)
      return deep_[limited];
    else
      return tones_[limited];
  }
  const Saturation& saturation() const { return saturation_; }

 private:
  void run_colors(const uint8_t* in, uint32_t count, uint32_t channels, bool blue_first, uint8_t* out) const;
  template <class Number>
  void run_planes(const ImageView& source, const ImageSpan& target) const;

  ToneSettings settings_;
  Tones<uint8_t> tones_[2]; // full and limited range
  Tones<uint16_t> deep_[2];
  Saturation saturation_;
};

} // namespace millrace::handlers
