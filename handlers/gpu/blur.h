// image.blur on a GPU: both passes in one kernel, whatever the radius, without memory of its own. A block blurs a tile:
// it sums down the columns of the tile and of its surroundings within the radius, keeps these sums in shared memory,
// and then sums along their rows.
//
// Rule. Weights and roundings are those of handlers/image/gaussian.h. Sums down the columns are whole numbers below
// 2^24, so single precision holds them exactly and they equal the CPU's; those of ten bits reach 2^25 and may lose
// their last bit. Sums along the rows are rounded to 24 bits, so a result differs from the CPU's by at most 1, and only
// at near-ties. An area of one colour keeps that colour.
#pragma once

#include "handlers/gpu/plane_samples.h"
#include "handlers/gpu/samples.h"
#include "handlers/image/gaussian.h"
#include "handlers/image/planes.h"

namespace millrace::handlers::gpu {

inline constexpr uint32_t kBlurRows = 8;           // tile rows; a thread makes all from one read of each source row
inline constexpr uint32_t kBlurThreads = 256;      // threads of a block
inline constexpr uint32_t kBlurRadiusMax = 3 * 50; // the radius of kSigmaMax
// The first seven source lines of a tile contribute only to its first rows, and the last seven only to its last rows.
// From this radius on no line belongs to both groups, so a smaller kernel gets weights of 0 around it.
inline constexpr uint32_t kBlurRadiusMin = (kBlurRows - 1) / 2;

struct BlurWeights {
  uint32_t radius;
  uint16_t half[kBlurRadiusMax + 1]; // the centre's weight and those to one side of it, in 1/32768
};

inline BlurWeights blur_weights(const GaussianKernel& kernel) {
  BlurWeights weights{larger(kernel.radius(), kBlurRadiusMin), {}};
  for (uint32_t k = 0; k <= kernel.radius(); ++k) weights.half[k] = kernel.weights[k];
  return weights;
}

struct PlaneBlur {
  const uint8_t* source;
  uint8_t* target;
  size_t source_stride, target_stride;
  uint32_t width, height; // in pixels, or pairs of chroma samples
  uint32_t tile_width;    // a multiple of 4
  BlurWeights weights;
};

// The tile width that lets the threads of a block share the columns evenly: each takes four numbers, once or twice.
inline uint32_t blur_tile_width(uint32_t radius, uint32_t channels) {
  const uint32_t beside = 2 * radius * channels + 4, round = 4 * kBlurThreads;
  const uint32_t numbers = beside <= round / 2 ? round : 2 * round;
  return (numbers - beside) / channels / 4 * 4;
}

inline PlaneBlur plane_blur(const DevicePicture& source, const DevicePicture& target, uint32_t plane,
                            const GaussianKernel& kernel) {
  const mr_plane &from = source.image.planes[plane], &to = target.image.planes[plane];
  const Pixel pixel = static_cast<Pixel>(source.image.format);
  const BlurWeights weights = blur_weights(kernel);
  return {source.data + from.offset,
          target.data + to.offset,
          from.stride,
          to.stride,
          plane_extent(pixel, source.image.width, plane),
          to.rows,
          blur_tile_width(weights.radius, sample_bytes(pixel, plane) / channel_bytes_of(pixel)),
          weights};
}

// The layout of a block's shared memory.
struct BlurMemory {
  uint16_t* sums;  // [kBlurRows][pitch], fixed point; the first sum belongs to number blur_origin() of the row
  float* weights;  // [2 radius + 1]
  uint32_t* lines; // [2 radius + kBlurRows]: the source rows that the tile is made of
  uint32_t pitch;
};

// The bits of the fraction that a sum keeps between the passes.
template <class Of>
inline constexpr int kBlurFraction = Of::kBits == 16 ? 5 : 7;

// Sums per row: four more than a multiple of 64, so that eight bytes in each of eight rows lie in different banks.
MR_BOTH inline uint32_t blur_pitch(uint32_t tile_width, uint32_t radius, uint32_t channels) {
  return ((tile_width + 2 * radius + 4) * channels + 4 + 63) / 64 * 64 + 4;
}
MR_BOTH inline uint32_t blur_memory_bytes(uint32_t pitch, uint32_t radius) {
  return kBlurRows * pitch * 2 + (2 * radius + 1) * 4 + (2 * radius + kBlurRows) * 4;
}
MR_BOTH inline BlurMemory blur_memory(uint8_t* begin, uint32_t pitch, uint32_t radius) {
  auto* sums = reinterpret_cast<uint16_t*>(begin);
  auto* weights = reinterpret_cast<float*>(begin + kBlurRows * pitch * 2);
  return {sums, weights, reinterpret_cast<uint32_t*>(weights + 2 * radius + 1), pitch};
}

// The number of a row that the sums begin with: `radius` pixels left of the tile, rounded down to a multiple of four;
// negative left of the picture.
template <uint32_t kChannels>
MR_BOTH int32_t blur_origin(const PlaneBlur& blur, uint32_t left) {
  const int32_t begin = (static_cast<int32_t>(left) - static_cast<int32_t>(blur.weights.radius)) * int32_t{kChannels};
  return begin & ~3;
}

// ---- the steps of a block, between which its threads meet -----------------------------------------------------

MR_BOTH inline void blur_prepare(const PlaneBlur& blur, uint32_t top, uint32_t thread, const BlurMemory& memory) {
  const uint32_t radius = blur.weights.radius;
  for (uint32_t i = thread; i < 2 * radius + 1; i += kBlurThreads)
    memory.weights[i] = blur.weights.half[i < radius ? radius - i : i - radius];
  for (uint32_t i = thread; i < 2 * radius + kBlurRows; i += kBlurThreads)
    memory.lines[i] = reflect101(int64_t{top} + i - radius, blur.height);
}

struct FourNumbers {
  float a, b, c, d;
};
template <class Of>
MR_BOTH FourNumbers four_numbers(const uint8_t* row, uint32_t at) {
  const auto number = [](uint32_t bits) { return static_cast<float>(bits); };
  if constexpr (Of::kBits == 16) {
    const uint32_t low = load_cut<4>(row + 2 * size_t{at}), high = load_cut<4>(row + 2 * size_t{at} + 4);
    constexpr int kUp = kBelowTenBits;
    return {number(low >> kUp & 1023), number(low >> (16 + kUp)), number(high >> kUp & 1023),
            number(high >> (16 + kUp))};
  }
  const uint32_t bytes = load_cut<4>(row + at);
  return {number(bytes & 255), number(bytes >> 8 & 255), number(bytes >> 16 & 255), number(bytes >> 24)};
}

// Adds four numbers of source line k, from number `at` on, to the rows first … last of the tile, which are the rows
// that the line contributes to.
template <class Of>
MR_BOTH void add_line(const PlaneBlur& blur, uint32_t at, const BlurMemory& memory, uint32_t k, uint32_t first,
                      uint32_t last, float (&down)[kBlurRows][4]) {
  const auto [a, b, c, d] = four_numbers<Of>(blur.source + memory.lines[k] * blur.source_stride, at);
  MR_UNROLL
  for (uint32_t row = 0; row < kBlurRows; ++row) {
    if (row < first || row > last) continue;
    const float weight = memory.weights[k - row];
    down[row][0] += a * weight;
    down[row][1] += b * weight;
    down[row][2] += c * weight;
    down[row][3] += d * weight;
  }
}

// Sums down the columns: four numbers for each row of the tile.
template <class Of>
MR_BOTH void blur_columns_at(const PlaneBlur& blur, uint32_t at, const BlurMemory& memory, uint16_t* sums) {
  constexpr uint32_t kLast = kBlurRows - 1, kDown = 15 - kBlurFraction<Of>;
  const uint32_t end = 2 * blur.weights.radius;
  float down[kBlurRows][4] = {};
  MR_UNROLL
  for (uint32_t k = 0; k < kLast; ++k) add_line<Of>(blur, at, memory, k, 0, k, down);
  for (uint32_t k = kLast; k <= end; ++k) add_line<Of>(blur, at, memory, k, 0, kLast, down);
  MR_UNROLL
  for (uint32_t k = 1; k <= kLast; ++k) add_line<Of>(blur, at, memory, end + k, k, kLast, down);
  MR_UNROLL
  for (uint32_t row = 0; row < kBlurRows; ++row) {
    uint32_t rounded[4];
    for (uint32_t i = 0; i < 4; ++i) rounded[i] = (static_cast<uint32_t>(down[row][i]) + (1u << kDown >> 1)) >> kDown;
    const Words<8> words = {{rounded[0] | rounded[1] << 16, rounded[2] | rounded[3] << 16}};
    store_words(reinterpret_cast<uint8_t*>(sums + row * memory.pitch), words);
  }
}

template <class Of>
MR_BOTH void blur_columns(const PlaneBlur& blur, uint32_t left, uint32_t thread, const BlurMemory& memory) {
  constexpr uint32_t kChannels = Of::kChannels;
  const int32_t origin = blur_origin<kChannels>(blur, left), numbers = static_cast<int32_t>(blur.width * kChannels);
  const auto end = static_cast<int32_t>((left + blur.tile_width + blur.weights.radius) * kChannels);
  const int32_t stop = end < numbers ? end : numbers;
  // 0 is a multiple of four too, so no group of four numbers begins left of the picture and ends in it.
  for (int32_t at = origin + static_cast<int32_t>(4 * thread); at < stop; at += int32_t{4 * kBlurThreads})
    if (at >= 0) blur_columns_at<Of>(blur, static_cast<uint32_t>(at), memory, memory.sums + (at - origin));
}

// Fills in the sums outside the picture: each equals the sum of the pixel that it mirrors, which is in the tile or
// beside it.
template <uint32_t kChannels>
MR_BOTH void blur_borders(const PlaneBlur& blur, uint32_t left, uint32_t thread, const BlurMemory& memory) {
  const uint32_t radius = blur.weights.radius, end = smaller(left + blur.tile_width, blur.width) + radius;
  const uint32_t before = radius > left ? radius - left : 0, behind = end > blur.width ? end - blur.width : 0;
  const int32_t origin = blur_origin<kChannels>(blur, left);
  for (uint32_t i = thread; i < (before + behind) * kBlurRows; i += kBlurThreads) {
    const uint32_t k = i / kBlurRows;
    uint16_t* sums = memory.sums + (i % kBlurRows) * memory.pitch;
    const int64_t x = k < before ? -static_cast<int64_t>(k) - 1 : static_cast<int64_t>(blur.width) + (k - before);
    const uint32_t mirrored = reflect101(x, blur.width);
    for (uint32_t c = 0; c < kChannels; ++c)
      sums[x * kChannels + c - origin] = sums[static_cast<int32_t>(mirrored * kChannels + c) - origin];
  }
}

template <uint32_t kChannels>
MR_BOTH void load_sums(const uint16_t* at, float (&sums)[kChannels]) {
  if constexpr (kChannels == 4) {
    const Words<8> words = load_words<8>(reinterpret_cast<const uint8_t*>(at));
    for (uint32_t c = 0; c < 4; ++c) sums[c] = static_cast<float>(words.half(c));
  } else {
    for (uint32_t c = 0; c < kChannels; ++c) sums[c] = static_cast<float>(at[c]);
  }
}

// Adds the k-th pixel of a row to the pixels first … last of four.
template <uint32_t kChannels>
MR_BOTH void add_pixel(const BlurMemory& memory, const uint16_t* sums, uint32_t k, uint32_t first, uint32_t last,
                       float (&along)[4][kChannels]) {
  float sample[kChannels];
  load_sums<kChannels>(sums + k * kChannels, sample);
  MR_UNROLL
  for (uint32_t i = 0; i < 4; ++i) {
    if (i < first || i > last) continue;
    const float weight = memory.weights[k - i];
    for (uint32_t c = 0; c < kChannels; ++c) along[i][c] += sample[c] * weight;
  }
}

// Sums along a row for four pixels, whose leftmost sample is at `sums`.
template <class Of>
MR_BOTH void blur_four(const BlurMemory& memory, uint32_t radius, const uint16_t* sums, uint32_t (&pixels)[4]) {
  constexpr uint32_t kChannels = Of::kChannels, kDown = 15 + kBlurFraction<Of>,
                     kUp = Of::kBits == 16 ? kBelowTenBits : 0;
  float along[4][kChannels] = {};
  MR_UNROLL
  for (uint32_t k = 0; k < 3; ++k) add_pixel<kChannels>(memory, sums, k, 0, k, along);
  for (uint32_t k = 3; k <= 2 * radius; ++k) add_pixel<kChannels>(memory, sums, k, 0, 3, along);
  MR_UNROLL
  for (uint32_t k = 1; k < 4; ++k) add_pixel<kChannels>(memory, sums, 2 * radius + k, k, 3, along);
  MR_UNROLL
  for (uint32_t i = 0; i < 4; ++i) {
    pixels[i] = 0;
    for (uint32_t c = 0; c < kChannels; ++c)
      pixels[i] |= Of::with(static_cast<uint32_t>(along[i][c] * (1.0f / (1u << kDown)) + 0.5f) << kUp, c);
  }
}

template <class Of>
MR_BOTH void blur_rows(const PlaneBlur& blur, uint32_t left, uint32_t top, uint32_t thread, const BlurMemory& memory) {
  constexpr uint32_t kChannels = Of::kChannels;
  const int32_t origin = blur_origin<kChannels>(blur, left);
  const uint32_t radius = blur.weights.radius, right = smaller(left + blur.tile_width, blur.width);
  // A warp takes four groups of four pixels in each of eight rows, which lie in different banks.
  for (uint32_t i = thread; i / 32 * 16 < right - left; i += kBlurThreads) {
    const uint32_t x = left + i / 32 * 16 + i % 4 * 4, row = i / 4 % kBlurRows;
    if (x >= right || top + row >= blur.height) continue;
    const int32_t first = (static_cast<int32_t>(x) - static_cast<int32_t>(radius)) * int32_t{kChannels} - origin;
    uint32_t pixels[4];
    blur_four<Of>(memory, radius, memory.sums + row * memory.pitch + first, pixels);
    store_samples<Of::kBytes>(blur.target + (top + row) * blur.target_stride, x, pixels, right - x);
  }
}

} // namespace millrace::handlers::gpu
