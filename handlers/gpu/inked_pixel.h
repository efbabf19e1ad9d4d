// The ink over one pixel of a picture whose chroma is halved, before it is laid over the picture.
//
// A chroma sample covers 2×2 pixels, and each mark covers a share of them. Marks that lie over each other cover the
// same pixels: a letter, its outline and the box under both. So marks cannot be blended with the sample one after
// another by their shares. They are blended in each pixel, and the sample gets the mean of its pixels.
//
// Rule. The arithmetic uses whole numbers only, so CPU and GPU paint the same bytes. Shares and ink have 16 bits and
// products keep their upper 16, which one vector instruction calculates. Each ink takes at most 1/256 of a step of 8
// bits more or less than the real-valued formula, or 1/64 of a step of 10 bits.
#pragma once

#include <cstdint>

#include "handlers/draw/raster.h"
#include "handlers/gpu/both.h"
#include "handlers/gpu/samples.h"

namespace millrace::handlers {

inline constexpr uint16_t kWholeShare = 65535;

MR_INTO_LOOPS uint16_t upper_half(uint16_t a, uint16_t b) { return static_cast<uint16_t>((uint32_t{a} * b) >> 16); }

// The sum, or the largest number if that is less.
MR_INTO_LOOPS uint16_t sum_up_to_most(uint16_t a, uint16_t b) {
  const auto sum = static_cast<uint16_t>(a + b);
  return sum < b ? uint16_t{65535} : sum;
}

// The share that an ink of this alpha takes of a pixel that it covers by coverage / 255.
MR_INTO_LOOPS uint16_t share_of(uint8_t coverage, uint8_t alpha) {
  const auto covered = static_cast<uint16_t>(coverage * 257), kept = static_cast<uint16_t>(kWholeShare - alpha * 257);
  return static_cast<uint16_t>(covered - (alpha == 0 ? covered : upper_half(covered, kept)));
}

// The share that two marks of one ink take together.
MR_INTO_LOOPS uint16_t share_of_both(uint16_t one, uint16_t other) {
  return sum_up_to_most(one, static_cast<uint16_t>(other - upper_half(one, other)));
}

// A part of an inked pixel, below, after an ink that takes this share is painted over it. The whole share leaves the
// ink alone, so it does not matter what was painted there before.
MR_INTO_LOOPS uint16_t painted_over(uint16_t part, uint16_t ink, uint16_t share) {
  const auto mixed = static_cast<uint16_t>(part - upper_half(part, share) + upper_half(ink, share));
  return share == kWholeShare ? ink : mixed;
}

MR_INTO_LOOPS uint16_t mean_of(uint16_t a, uint16_t b) { return static_cast<uint16_t>((uint32_t{a} + b + 1) >> 1); }
// The mean of the parts of four pixels, which their chroma sample gets.
MR_INTO_LOOPS uint16_t mean_of(uint16_t top_left, uint16_t top_right, uint16_t bottom_left, uint16_t bottom_right) {
  return mean_of(mean_of(top_left, bottom_left), mean_of(top_right, bottom_right));
}

// A number of the picture, of which `share` is still seen, under ink; rounded to nearest. `Number` is uint8_t, or
// uint16_t with ten bits at the top. The six bits below are ignored, and kept if there is no ink.
template <class Number>
MR_INTO_LOOPS Number inked(Number number, uint16_t share, uint16_t ink) {
  constexpr uint32_t kBits = sizeof(Number) == 1 ? 8 : 10, kBelow = 16 - kBits;
  constexpr auto kMost = static_cast<uint16_t>((1u << kBits) - 1);
  const auto upper = static_cast<uint16_t>(sizeof(Number) == 1 ? number << kBelow : number >> kBelow << kBelow);
  const uint16_t sum = sum_up_to_most(upper_half(upper, share), ink);
  const uint16_t rounded = mean_of(static_cast<uint16_t>(sum >> (kBelow - 1)), 0);
  const auto made = static_cast<uint16_t>(rounded < kMost ? rounded : kMost);
  return share == kWholeShare ? number : static_cast<Number>(sizeof(Number) == 1 ? made : made << kBelow);
}

struct InkedPixel {
  // The share of the picture that is still seen, and then Y, Cb and Cr of the ink, each times the share that it covers.
  uint16_t parts[4] = {kWholeShare, 0, 0, 0};

  MR_BOTH void paint(const Ink& ink, uint16_t share) {
    MR_UNROLL
    for (uint32_t part = 0; part < 4; ++part) parts[part] = painted_over(parts[part], ink.parts[part], share);
  }
};

namespace gpu {

// The place of a number: Y, Cb or Cr (`which` is 0 to 2) of column x and row y of its plane.
template <class Number>
MR_BOTH Number* number_at(const DevicePicture& picture, uint32_t which, uint32_t x, uint32_t y) {
  const bool in_pairs = which > 0 && picture.image.plane_count == 2;
  auto* const row = reinterpret_cast<Number*>(row_of(picture, in_pairs ? 1 : which, y));
  return in_pairs ? row + 2 * size_t{x} + (which - 1) : row + x;
}

// Lays the ink of 2×2 pixels, row by row, over the picture. The first one, at even x and y, lies in the picture. A
// pixel beyond it counts in the chroma as its neighbour in the picture does.
template <class Number>
MR_BOTH void lay_quad_of(const DevicePicture& picture, uint32_t x, uint32_t y, const InkedPixel (&ink)[4]) {
  const bool has_right = x + 1 < picture.image.width, has_below = y + 1 < picture.image.height;
  MR_UNROLL
  for (uint32_t i = 0; i < 4; ++i) {
    if ((i % 2 > 0 && !has_right) || (i / 2 > 0 && !has_below)) continue;
    Number* const luma = number_at<Number>(picture, 0, x + i % 2, y + i / 2);
    *luma = inked(*luma, ink[i].parts[0], ink[i].parts[1]);
  }
  uint16_t means[4];
  MR_UNROLL
  for (uint32_t part = 0; part < 4; ++part) {
    const uint16_t top_left = ink[0].parts[part], top_right = has_right ? ink[1].parts[part] : top_left;
    const uint16_t bottom_left = has_below ? ink[2].parts[part] : top_left;
    const uint16_t bottom_right = has_below ? (has_right ? ink[3].parts[part] : bottom_left) : top_right;
    means[part] = mean_of(top_left, top_right, bottom_left, bottom_right);
  }
  MR_UNROLL
  for (uint32_t which = 1; which < 3; ++which) {
    Number* const chroma = number_at<Number>(picture, which, x / 2, y / 2);
    *chroma = inked(*chroma, means[0], means[1 + which]);
  }
}
MR_BOTH inline void lay_quad(const DevicePicture& picture, uint32_t x, uint32_t y, const InkedPixel (&ink)[4]) {
  if (picture.image.format == MR_PIXEL_P010) return lay_quad_of<uint16_t>(picture, x, y, ink);
  lay_quad_of<uint8_t>(picture, x, y, ink);
}

} // namespace gpu
} // namespace millrace::handlers
