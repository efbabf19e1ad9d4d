// Lays a pixel of a layer over a pixel of a canvas: the formulas of handlers/image/blend.h for one pixel, on the CPU
// and in kernels.
//
// Rule. The bits are those of blend_pixels() and blend_translucent(): whole numbers over an opaque canvas, single
// precision without fused multiply-add over a translucent one. A pixel is four bytes in one word, the first channel
// lowest and alpha highest; canvases of fewer channels do not use the others. The arithmetic takes two bytes at a time,
// in the halves of a word.
//
// Premultiplied layers have their colours multiplied by their alpha already. Over an opaque canvas, the mode `over`
// adds them directly: min(opacity · cs + (1 − as) · cb, 1), products rounded to nearest. Any other mode, and a
// translucent canvas, need the layer's own colours, so these are first divided by alpha, rounded to nearest and at most
// 255.
#pragma once

#include <cstdint>

#include "handlers/gpu/both.h"
#include "handlers/gpu/rounded_product.h"
#include "handlers/image/blend.h"

namespace millrace::handlers::gpu {

// Two bytes in the halves of a word.
inline constexpr uint32_t kBytePair = 0x00ff00ffu;

MR_BOTH constexpr uint32_t even_bytes(uint32_t pixel) { return pixel & kBytePair; }
MR_BOTH constexpr uint32_t odd_bytes(uint32_t pixel) { return pixel >> 8 & kBytePair; }

// Divides both halves by 255, rounded to nearest; exact for halves of at most 255².
MR_BOTH constexpr uint32_t pair_divided_by_255(uint32_t pair) {
  const uint32_t sum = pair + 0x00800080u;
  return (sum + (sum >> 8 & kBytePair)) >> 8 & kBytePair;
}
MR_BOTH constexpr uint32_t pair_product(uint32_t a, uint32_t b) {
  return pair_divided_by_255((a & 255) * (b & 255) | (a >> 16) * (b >> 16) << 16);
}
MR_BOTH constexpr uint32_t byte_product(uint32_t a, uint32_t b) { return pair_product(a, b); }

MR_BOTH constexpr uint32_t pair_sum(uint32_t a, uint32_t b) { // saturates at 255
  const uint32_t sum = a + b, over = sum >> 8 & 0x00010001u;
  return (sum | over * 255) & kBytePair;
}
MR_BOTH constexpr uint32_t pair_difference(uint32_t a, uint32_t b) { // saturates at 0
  const uint32_t difference = (a | 0x01000100u) - b, whole = difference >> 8 & 0x00010001u;
  return difference & whole * 255;
}

// The result of a mode for two bytes above and two below.
MR_BOTH constexpr uint32_t pair_by_mode(BlendMode mode, uint32_t above, uint32_t below) {
  switch (mode) {
    case BlendMode::add: return pair_sum(below, above);
    case BlendMode::subtract: return pair_difference(below, above);
    case BlendMode::multiply: return pair_product(below, above);
    case BlendMode::screen: return below + above - pair_product(below, above);
    case BlendMode::darken: return below - pair_difference(below, above);
    case BlendMode::lighten: return below + pair_difference(above, below);
    case BlendMode::difference: return pair_difference(above, below) + pair_difference(below, above);
    default: return above;
  }
}

// The colours of the canvas under a layer of this weight, 0…255; the fourth byte is that of `below`.
MR_BOTH constexpr uint32_t over_opaque(BlendMode mode, uint32_t above, uint32_t weight, uint32_t below) {
  const uint32_t even = pair_by_mode(mode, even_bytes(above), even_bytes(below));
  const uint32_t odd = pair_by_mode(mode, odd_bytes(above), odd_bytes(below));
  const uint32_t left = 255 - weight;
  const uint32_t mixed_even = pair_divided_by_255(even_bytes(below) * left + even * weight);
  const uint32_t mixed_odd = pair_divided_by_255(odd_bytes(below) * left + odd * weight);
  return mixed_even | (mixed_odd & 255) << 8 | (below & 0xff000000u);
}

// Selects four of eight bytes: 0…3 are those of `a`, 4…7 those of `b`. Each hexadecimal digit of kBytes names one; the
// lowest digit gives the lowest byte.
template <uint32_t kBytes>
MR_BOTH inline uint32_t chosen_bytes(uint32_t a, uint32_t b) {
#ifdef __CUDA_ARCH__
  return __byte_perm(a, b, kBytes);
#else
  const uint64_t both = uint64_t{b} << 32 | a;
  uint32_t chosen = 0;
  for (uint32_t i = 0; i < 4; ++i) chosen |= static_cast<uint32_t>(both >> 8 * (kBytes >> 4 * i & 7) & 255) << 8 * i;
  return chosen;
#endif
}

// over_opaque() of BlendMode::over with the layer's alpha as its weight, in fewer instructions. The middle byte is
// computed by itself: for the sum that pair_divided_by_255() forms, sum / 255 rounded to nearest is sum · 257 / 65536.
MR_BOTH inline uint32_t simply_over_opaque(uint32_t above, uint32_t below) {
  const uint32_t weight = above >> 24, left = 255 - weight;
  const uint32_t sums = even_bytes(below) * left + (even_bytes(above) * weight + 0x00800080u);
  const uint32_t sum = (below >> 8 & 255) * left + ((above >> 8 & 255) * weight + 0x80u);
  const uint32_t colors = chosen_bytes<0x0361>(sums + chosen_bytes<0x4341>(sums, 0), sum * 257); // the fourth is unused
  return chosen_bytes<0x7210>(colors, below);
}

// Lays over premultiplied colours of this opacity; `weight` is their alpha times the opacity.
MR_BOTH constexpr uint32_t premultiplied_over_opaque(uint32_t above, uint32_t opacity, uint32_t weight,
                                                     uint32_t below) {
  const uint32_t left = 255 - weight;
  const uint32_t even =
      pair_sum(pair_divided_by_255(even_bytes(above) * opacity), pair_divided_by_255(even_bytes(below) * left));
  const uint32_t odd =
      pair_sum(pair_divided_by_255(odd_bytes(above) * opacity), pair_divided_by_255(odd_bytes(below) * left));
  return even | (odd & 255) << 8 | (below & 0xff000000u);
}

// The colours of a premultiplied pixel divided by its alpha.
MR_BOTH inline uint32_t straightened(uint32_t pixel) {
  const uint32_t alpha = pixel >> 24;
  if (alpha == 0 || alpha == 255) return pixel;
  const float scale = 255.0f / static_cast<float>(alpha);
  const auto straight = [&](uint32_t shift) {
    const float color = rounded_product(static_cast<float>(pixel >> shift & 255), scale) + 0.5f;
    return static_cast<uint32_t>(color < 255 ? color : 255.0f) << shift;
  };
  return straight(0) | straight(8) | straight(16) | (pixel & 0xff000000u);
}

// Lays four channels over four, taking both alphas into account.
MR_BOTH inline uint32_t over_translucent(BlendMode mode, uint32_t above, uint32_t opacity, uint32_t below) {
  constexpr float kUnit = 1.0f / 255;
  const float strength = static_cast<float>(opacity) * kUnit * kUnit;
  const float source = rounded_product(static_cast<float>(above >> 24), strength);
  const float backdrop = rounded_product(static_cast<float>(below >> 24), kUnit);
  const float both = rounded_product(source, backdrop), result = source + backdrop - both;
  const float scale = result > 0 ? 1 / result : 0;
  const float of_below = rounded_product(backdrop - both, scale), of_above = rounded_product(source - both, scale);
  const float of_mixed = rounded_product(both, scale);
  const uint32_t mixed = pair_by_mode(mode, even_bytes(above), even_bytes(below)) |
                         pair_by_mode(mode, odd_bytes(above), odd_bytes(below)) << 8;
  const auto byte = [](float value) { return static_cast<uint32_t>(value < 255 ? value : 255.0f); };
  const auto joined = [&](uint32_t shift) {
    const auto number = [shift](uint32_t pixel) { return static_cast<float>(pixel >> shift & 255); };
    const float sum = rounded_product(of_below, number(below)) + rounded_product(of_above, number(above)) +
                      rounded_product(of_mixed, number(mixed));
    return byte(sum + 0.5f) << shift;
  };
  return joined(0) | joined(8) | joined(16) | byte(rounded_product(result, 255) + 0.5f) << 24;
}

} // namespace millrace::handlers::gpu
