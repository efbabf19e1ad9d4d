// Changes brightness, contrast, gamma and saturation of 8-bit pictures.
//
// Formulas, for a channel v of 0…1:
//   tone        v' = clamp((v − 0.5) · contrast + 0.5 + brightness)^(1 / gamma)
//   saturation  v'' = Y + saturation · (v' − Y), with the luma Y = 0.299 R' + 0.587 G' + 0.114 B' (ITU-R
//   BT.601-7, 2.5.1)
// The tone is a table of 256 entries, rounded to nearest; without gamma it is a line in 16-bit fixed point, whose
// results the table holds too. The saturation is a matrix, saturation · I + (1 − saturation) · (luma in each row), in
// 15-bit fixed point. Each row has an exact sum, so that grays stay gray. Alpha is not changed.
//
// In nv12 and i420 the tone works on luma, from black to white of their range, and chroma is multiplied by contrast ·
// saturation. Without gamma this equals the same settings on RGB, as long as nothing is clamped.
#pragma once

#include <millrace/payload.h>

#include <array>
#include <cstdint>

namespace millrace::handlers {

struct ToneSettings {
  double brightness = 0; // −1…1: added; 1 is the distance from black to white
  double contrast = 1;   // around middle gray; 0 leaves only that
  double gamma = 1;      // above 1 brightens the middle
  double saturation = 1; // 0: gray
  friend bool operator==(const ToneSettings&, const ToneSettings&) = default;
};
// Beyond these bounds a picture has only two levels left. The product of the two maxima and 255, in 16-bit fixed point,
// still fits 31 bits.
inline constexpr double kContrastMax = 10, kSaturationMax = 10, kGammaMin = 0.05, kGammaMax = 20;

// A line over bytes: clamp((v · gain + offset) >> 16) between low and high.
struct ToneLine {
  int32_t gain = 65536, offset = 0;
  int32_t low = 0, high = 255;
};

// The tone of one kind of plane.
struct ToneCurve {
  std::array<uint8_t, 256> table{};
  ToneLine line;
  bool straight = true; // gamma is 1, and the table equals the line
};
// `limited`: black is 16 and white 235.
ToneCurve tone_curve(const ToneSettings& settings, bool limited);
ToneLine chroma_line(const ToneSettings& settings, bool limited);

// Changes pictures by the current settings. Owned by one thread; allocates nothing.
class ToneAdjuster {
 public:
  void set(const ToneSettings& settings);
  const ToneSettings& settings() const { return settings_; }
  // Takes interleaved 8-bit formats, nv12 and i420. Both pictures have the same size and format, and may be the same
  // memory.
  void run(const ImageView& source, const ImageSpan& target) const;

 private:
  void run_colors(const uint8_t* in, uint32_t count, uint32_t channels, bool blue_first, uint8_t* out) const;
  void run_ycbcr(const ImageView& source, const ImageSpan& target) const;

  ToneSettings settings_;
  ToneCurve full_ = tone_curve({}, false), limited_ = tone_curve({}, true);
  ToneLine chroma_full_, chroma_limited_;
  // Saturation in 15 bits: `own_` is the factor of the channel itself; the others are each channel's share in the sum
  // that is added to all three.
  int32_t own_ = 32768, red_ = 0, green_ = 0, blue_ = 0;
};

} // namespace millrace::handlers
