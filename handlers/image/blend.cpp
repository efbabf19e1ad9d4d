// Blends in two steps on chunks that stay in the first-level cache: the mode makes bytes, and then weights lay these
// over the bytes below. So every mode is one short loop of 16-bit arithmetic, and the weights are another.
#include "handlers/image/blend.h"

#include <algorithm>
#include <bit>
#include <cstdlib>
#include <cstring>

#include "handlers/gpu/layer_blend.h"
#include "handlers/image/interleave.h"
#include "handlers/image/vectorize.h"

namespace millrace::handlers {
namespace {

// The pixels of a chunk, and their bytes with four channels.
constexpr size_t kBlendChunk = 512, kBlendChunkBytes = kBlendChunk * 4;

// value / 255, rounded to nearest, for values up to 255²; exact, and without leaving 16 bits.
inline uint16_t divided_by_255(uint16_t value) {
  const uint16_t sum = static_cast<uint16_t>(value + 128);
  return static_cast<uint16_t>((sum + (sum >> 8)) >> 8);
}
inline uint16_t product(uint8_t a, uint8_t b) { return divided_by_255(static_cast<uint16_t>(a * b)); }

MILLRACE_VECTORIZE void apply_mode(BlendMode mode, const uint8_t* above, const uint8_t* below, size_t count,
                                   uint8_t* out) {
  switch (mode) {
    case BlendMode::over: std::memcpy(out, above, count); return;
    case BlendMode::add:
      for (size_t i = 0; i < count; ++i) out[i] = static_cast<uint8_t>(std::min(below[i] + above[i], 255));
      return;
    case BlendMode::subtract:
      for (size_t i = 0; i < count; ++i) out[i] = static_cast<uint8_t>(std::max(below[i] - above[i], 0));
      return;
    case BlendMode::multiply:
      for (size_t i = 0; i < count; ++i) out[i] = static_cast<uint8_t>(product(below[i], above[i]));
      return;
    case BlendMode::screen:
      for (size_t i = 0; i < count; ++i)
        out[i] = static_cast<uint8_t>(below[i] + above[i] - product(below[i], above[i]));
      return;
    case BlendMode::darken:
      for (size_t i = 0; i < count; ++i) out[i] = std::min(below[i], above[i]);
      return;
    case BlendMode::lighten:
      for (size_t i = 0; i < count; ++i) out[i] = std::max(below[i], above[i]);
      return;
    case BlendMode::difference:
      for (size_t i = 0; i < count; ++i)
        out[i] = static_cast<uint8_t>(std::max(below[i], above[i]) - std::min(below[i], above[i]));
      return;
  }
}

MILLRACE_VECTORIZE void weigh(const uint8_t* mixed, const uint8_t* weights, size_t count, uint8_t* below) {
  for (size_t i = 0; i < count; ++i) {
    const uint16_t sum = static_cast<uint16_t>(below[i] * (255 - weights[i]) + mixed[i] * weights[i]);
    below[i] = static_cast<uint8_t>(divided_by_255(sum));
  }
}

MILLRACE_VECTORIZE void scale_alpha(const uint8_t* alpha, uint8_t opacity, size_t count, uint8_t* out) {
  for (size_t i = 0; i < count; ++i) out[i] = static_cast<uint8_t>(product(alpha[i], opacity));
}

// Writes each pixel's alpha as the weight of its three colours, and 0 as that of the alpha channel, so that the alpha
// below stays.
MILLRACE_VECTORIZE void spread_own_alpha(const uint8_t* pixels, size_t count, uint8_t* weights) {
  for (size_t i = 0; i < count; ++i) {
    uint32_t pixel;
    std::memcpy(&pixel, pixels + 4 * i, sizeof pixel);
    if constexpr (std::endian::native == std::endian::little) pixel = (pixel >> 24) * 0x010101u;
    if constexpr (std::endian::native == std::endian::big) pixel = (pixel & 255) * 0x01010100u;
    std::memcpy(weights + 4 * i, &pixel, sizeof pixel);
  }
}

// Writes one weight for each byte.
void spread_weights(const uint8_t* above, const uint8_t* alpha, uint8_t opacity, uint32_t channels, uint32_t count,
                    uint8_t* weights) {
  alignas(64) uint8_t scaled[kBlendChunkBytes];
  if (channels == 4) {
    spread_own_alpha(above, count, opacity == 255 ? weights : scaled);
    if (opacity < 255) scale_alpha(scaled, opacity, size_t{count} * 4, weights);
    return;
  }
  if (!alpha) {
    std::memset(weights, opacity, size_t{count} * channels);
    return;
  }
  scale_alpha(alpha, opacity, count, channels == 1 ? weights : scaled);
  if (channels == 3) pack3(scaled, scaled, scaled, count, weights);
}

// Replaces weigh() for premultiplied colours; `weights` are alpha times opacity.
MILLRACE_VECTORIZE void add_premultiplied(const uint8_t* above, uint8_t opacity, const uint8_t* weights, size_t count,
                                          uint8_t* below) {
  for (size_t i = 0; i < count; ++i) {
    const int sum = product(above[i], opacity) + product(below[i], static_cast<uint8_t>(255 - weights[i]));
    below[i] = static_cast<uint8_t>(std::min(sum, 255));
  }
}

// The shares of the colour below, the colour above and their mix in each pixel's colour. They add up to 1.
struct Shares {
  alignas(64) float below[kBlendChunk], above[kBlendChunk], mixed[kBlendChunk];
};

// `above` and `below` are alphas; `below` is replaced by the alpha of the result.
MILLRACE_VECTORIZE void share_out(const uint8_t* above, uint8_t opacity, size_t count, uint8_t* below, Shares& shares) {
  constexpr float kUnit = 1.0f / 255;
  const float strength = static_cast<float>(opacity) * kUnit * kUnit;
  for (size_t i = 0; i < count; ++i) {
    const float source = static_cast<float>(above[i]) * strength, backdrop = static_cast<float>(below[i]) * kUnit;
    const float both = source * backdrop, result = source + backdrop - both;
    const float scale = result > 0 ? 1 / result : 0;
    shares.below[i] = (backdrop - both) * scale;
    shares.above[i] = (source - both) * scale;
    shares.mixed[i] = both * scale;
    below[i] = static_cast<uint8_t>(std::min(result * 255 + 0.5f, 255.0f));
  }
}

MILLRACE_VECTORIZE void join(const Shares& shares, const uint8_t* above, const uint8_t* mixed, size_t count,
                             uint8_t* below) {
  for (size_t i = 0; i < count; ++i) {
    const float sum = shares.below[i] * static_cast<float>(below[i]) + shares.above[i] * static_cast<float>(above[i]) +
                      shares.mixed[i] * static_cast<float>(mixed[i]);
    below[i] = static_cast<uint8_t>(std::min(sum + 0.5f, 255.0f));
  }
}

} // namespace

void blend_pixels(BlendMode mode, const uint8_t* above, const uint8_t* alpha, uint8_t opacity, uint32_t channels,
                  size_t count, uint8_t* below) {
  const bool plain = !alpha && opacity == 255 && channels < 4;
  if (plain && mode == BlendMode::over) {
    std::memcpy(below, above, count * channels);
    return;
  }
  alignas(64) uint8_t bytes[kBlendChunkBytes], weights[kBlendChunkBytes];
  for (size_t done = 0; done < count; done += kBlendChunk) {
    const size_t part = std::min(kBlendChunk, count - done), size = part * channels;
    uint8_t* target = below + done * channels;
    apply_mode(mode, above + done * channels, target, size, bytes);
    if (plain) {
      std::memcpy(target, bytes, size);
      continue;
    }
    spread_weights(above + done * channels, alpha ? alpha + done : nullptr, opacity, channels,
                   static_cast<uint32_t>(part), weights);
    weigh(bytes, weights, size, target);
  }
}

void blend_premultiplied(const uint8_t* above, const uint8_t* alpha, uint8_t opacity, uint32_t channels, size_t count,
                         uint8_t* below) {
  alignas(64) uint8_t weights[kBlendChunkBytes], kept[kBlendChunk];
  for (size_t done = 0; done < count; done += kBlendChunk) {
    const auto part = static_cast<uint32_t>(std::min(kBlendChunk, count - done));
    const uint8_t* source = above + done * channels;
    uint8_t* target = below + done * channels;
    spread_weights(source, alpha ? alpha + done : nullptr, opacity, channels, part, weights);
    // The alpha channel below must stay, so it is saved and restored.
    for (uint32_t i = 0; channels == 4 && i < part; ++i) kept[i] = target[4 * size_t{i} + 3];
    add_premultiplied(source, opacity, weights, size_t{part} * channels, target);
    for (uint32_t i = 0; channels == 4 && i < part; ++i) target[4 * size_t{i} + 3] = kept[i];
  }
}

void straighten_pixels(const uint8_t* premultiplied, size_t count, uint8_t* straight) {
  for (size_t i = 0; i < 4 * count; i += 4) {
    const uint8_t* in = premultiplied + i;
    const uint32_t pixel = static_cast<uint32_t>(in[0] | in[1] << 8 | in[2] << 16) | static_cast<uint32_t>(in[3]) << 24;
    const uint32_t made = gpu::straightened(pixel);
    for (size_t c = 0; c < 4; ++c) straight[i + c] = static_cast<uint8_t>(made >> 8 * c);
  }
}

void blend_translucent(BlendMode mode, const uint8_t* above, uint8_t opacity, size_t count, uint8_t* below) {
  alignas(64) uint8_t upper[4][kBlendChunk], lower[4][kBlendChunk], mixed[kBlendChunk];
  Shares shares;
  for (size_t done = 0; done < count; done += kBlendChunk, above += kBlendChunkBytes, below += kBlendChunkBytes) {
    const auto part = static_cast<uint32_t>(std::min(kBlendChunk, count - done));
    unpack4(above, part, upper[0], upper[1], upper[2], upper[3]);
    unpack4(below, part, lower[0], lower[1], lower[2], lower[3]);
    share_out(upper[3], opacity, part, lower[3], shares);
    for (int c = 0; c < 3; ++c) {
      apply_mode(mode, upper[c], lower[c], part, mixed);
      join(shares, upper[c], mixed, part, lower[c]);
    }
    pack4(lower[0], lower[1], lower[2], lower[3], part, below);
  }
}

} // namespace millrace::handlers
