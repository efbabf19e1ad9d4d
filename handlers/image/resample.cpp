// Resizes pictures, vertically first: whole source rows are weighed into one row of sums, which vectorises, and only
// that row is gathered from horizontally.
#include "handlers/image/resample.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "handlers/image/picture.h"
#include "handlers/image/vectorize.h"

namespace millrace::handlers {
namespace {

MILLRACE_VECTORIZE void begin_row(const uint8_t* in, float weight, size_t count, float* sums) {
  for (size_t i = 0; i < count; ++i) sums[i] = static_cast<float>(in[i]) * weight;
}

MILLRACE_VECTORIZE void begin_row(const uint16_t* in, float weight, size_t count, float* sums) {
  for (size_t i = 0; i < count; ++i) sums[i] = static_cast<float>(in[i] & kTenBits) * weight;
}

MILLRACE_VECTORIZE void add_row(const uint8_t* in, float weight, size_t count, float* sums) {
  for (size_t i = 0; i < count; ++i) sums[i] += static_cast<float>(in[i]) * weight;
}
MILLRACE_VECTORIZE void add_row(const uint16_t* in, float weight, size_t count, float* sums) {
  for (size_t i = 0; i < count; ++i) sums[i] += static_cast<float>(in[i] & kTenBits) * weight;
}

// Sums are never negative and at most a rounding error above the greatest number.
template <class Number>
Number rounded(float sum) {
  if constexpr (sizeof(Number) == 2) return gpu::rounded_sample16(sum);
  return static_cast<Number>(std::min(sum + 0.5f, 255.0f));
}

template <class Number>
void gather_gray(const ResampleAxis& axis, const float* sums, Number* out) {
  const float* weights = axis.weights.data();
  for (uint32_t x = 0; x < axis.target; ++x, weights += axis.tap_count) {
    float value = 0;
    for (uint32_t t = 0; t < axis.tap_count; ++t) value += sums[axis.first[x] + t] * weights[t];
    out[x] = rounded<Number>(value);
  }
}

// Sums all channels of a pixel at once. With fewer than four the other lanes are the next pixel's, and are not stored.
template <uint32_t kChannels, class Number>
void gather_colors(const ResampleAxis& axis, const float* sums, Number* out) {
  using Lanes = float __attribute__((vector_size(16)));
  const float* weights = axis.weights.data();
  for (uint32_t x = 0; x < axis.target; ++x, out += kChannels, weights += axis.tap_count) {
    const float* in = sums + size_t{axis.first[x]} * kChannels;
    Lanes value = {};
    for (uint32_t t = 0; t < axis.tap_count; ++t, in += kChannels) {
      Lanes pixel;
      std::memcpy(&pixel, in, sizeof pixel);
      value += pixel * weights[t];
    }
    for (uint32_t c = 0; c < kChannels; ++c) out[c] = rounded<Number>(value[c]);
  }
}

MILLRACE_VECTORIZE void mix_rows(const uint8_t* a, const uint8_t* b, uint16_t weight, size_t count, uint16_t* mixed) {
  for (size_t i = 0; i < count; ++i) mixed[i] = gpu::mixed_sample(a[i], b[i], weight);
}

MILLRACE_VECTORIZE void mix_rows(const uint16_t* a, const uint16_t* b, uint16_t weight, size_t count, uint16_t* mixed) {
  for (size_t i = 0; i < count; ++i)
    mixed[i] =
        gpu::mixed_sample(static_cast<uint16_t>(a[i] & kTenBits), static_cast<uint16_t>(b[i] & kTenBits), weight);
}

MILLRACE_VECTORIZE void blend_samples(const uint16_t* left, const uint16_t* right, const uint16_t* weights,
                                      size_t count, uint8_t* out) {
  for (size_t i = 0; i < count; ++i) out[i] = gpu::blended_sample(left[i], right[i], weights[i]);
}

MILLRACE_VECTORIZE void blend_samples(const uint16_t* left, const uint16_t* right, const uint16_t* weights,
                                      size_t count, uint16_t* out) {
  for (size_t i = 0; i < count; ++i) out[i] = gpu::blended_sample16(left[i], right[i], weights[i]);
}

// The target pixels whose taps are gathered at once: both arrays and their weights stay in the first-level cache.
constexpr uint32_t kGathered = 256;

// Copies the taps of `count` target pixels side by side, so that the arithmetic finds them in a row. A colour pixel is
// always copied as four lanes; the next pixel overwrites the surplus one.
template <uint32_t kChannels>
void gather_taps(const uint32_t* first, uint32_t count, const uint16_t* mixed, uint16_t* left, uint16_t* right) {
  for (uint32_t x = 0; x < count; ++x) {
    const uint16_t* in = mixed + size_t{first[x]} * kChannels;
    constexpr size_t kBytes = kChannels == 1 ? sizeof(uint16_t) : 4 * sizeof(uint16_t);
    std::memcpy(left + x * kChannels, in, kBytes);
    std::memcpy(right + x * kChannels, in + kChannels, kBytes);
  }
}

template <uint32_t kChannels, class Number>
void blend_row(const ResampleAxis& axis, const uint16_t* weights, const uint16_t* mixed, Number* out) {
  alignas(64) uint16_t left[kGathered * kChannels + 4], right[kGathered * kChannels + 4];
  for (uint32_t x = 0; x < axis.target; x += kGathered) {
    const uint32_t count = std::min(kGathered, axis.target - x);
    gather_taps<kChannels>(axis.first.data() + x, count, mixed, left, right);
    blend_samples(left, right, weights + size_t{x} * kChannels, size_t{count} * kChannels, out + size_t{x} * kChannels);
  }
}

void add_bilinear_taps(const gpu::ResizeAxis& sides, ResampleAxis& axis) {
  axis.tap_count = std::min(2u, axis.source);
  axis.weights.assign(size_t{axis.target} * axis.tap_count, 1.0f);
  for (uint32_t i = 0; i < axis.target; ++i) {
    const gpu::BilinearTap tap = gpu::bilinear_tap(sides, i);
    axis.first[i] = tap.first;
    if (axis.tap_count < 2) continue;
    const float second = static_cast<float>(tap.weight) / 65536;
    axis.weights[size_t{i} * 2] = 1 - second;
    axis.weights[size_t{i} * 2 + 1] = second;
  }
}

void add_area_taps(ResampleAxis& axis) {
  const double scale = static_cast<double>(axis.from) / axis.to;
  // A footprint that begins inside a pixel touches one pixel more than its length. None begins inside a pixel if the
  // scale is a whole number.
  const uint32_t inside = axis.from % axis.to == 0 ? 0 : 1;
  axis.tap_count = std::min(axis.source, static_cast<uint32_t>(std::ceil(scale)) + inside);
  axis.weights.resize(size_t{axis.target} * axis.tap_count);
  for (uint32_t i = 0; i < axis.target; ++i) {
    // All numbers are whole in units of 1/to source pixels, so no weight is a mere rounding error.
    const uint64_t begin = uint64_t{i} * axis.from, end = std::min(begin + axis.from, uint64_t{axis.source} * axis.to);
    const uint32_t first = std::min(static_cast<uint32_t>(begin / axis.to), axis.source - axis.tap_count);
    axis.first[i] = first;
    for (uint32_t t = 0; t < axis.tap_count; ++t) {
      const uint64_t left = (uint64_t{first} + t) * axis.to, right = left + axis.to;
      const uint64_t within = std::max(left, begin), up_to = std::min(right, end);
      axis.weights[size_t{i} * axis.tap_count + t] =
          up_to > within ? static_cast<float>(static_cast<double>(up_to - within) / static_cast<double>(end - begin))
                         : 0.0f;
    }
  }
}

// The weight of the second tap, in 1/65536.
uint16_t second_weight(const ResampleAxis& axis, size_t target) {
  return static_cast<uint16_t>(axis.weights[2 * target + 1] * 65536);
}

} // namespace

ResampleAxis resample_axis(const gpu::ResizeAxis& sides, ResizeMethod method) {
  ResampleAxis axis;
  axis.source = sides.source;
  axis.target = sides.target;
  axis.from = sides.from;
  axis.to = sides.to;
  axis.first.resize(axis.target);
  if (method == ResizeMethod::bilinear) {
    add_bilinear_taps(sides, axis);
  } else if (method == ResizeMethod::area) {
    add_area_taps(axis);
  } else {
    axis.tap_count = 1;
    axis.weights.assign(axis.target, 1.0f);
    for (uint32_t i = 0; i < axis.target; ++i) axis.first[i] = gpu::nearest_source(sides, i);
  }
  return axis;
}

void PlaneResampler::prepare(const gpu::ResizeAxis& across, const gpu::ResizeAxis& down, ResizeMethod method) {
  const auto fits = [&](const ResampleAxis& axis, const gpu::ResizeAxis& sides) {
    return axis.source == sides.source && axis.target == sides.target && axis.from == sides.from &&
           axis.to == sides.to && method_ == method;
  };
  if (fits(x_, across) && fits(y_, down)) return;
  if (!fits(x_, across)) x_ = resample_axis(across, method);
  if (!fits(y_, down)) y_ = resample_axis(down, method);
  method_ = method;
  // With fewer than four channels there is room for the other lanes of the last pixel too.
  const bool two_taps = method == ResizeMethod::bilinear && x_.tap_count == 2 && y_.tap_count == 2;
  row_.resize(two_taps ? 0 : size_t{across.source} * 4);
  mixed_.resize(two_taps ? size_t{across.source} * 4 + 4 : 0);
  x_weights_.clear();
}

void PlaneResampler::run(const Plane<const uint8_t>& source, const Plane<uint8_t>& target) {
  if (method_ == ResizeMethod::nearest) return run_nearest(source, target);
  const bool is_wide = source.channel_bytes == 2;
  if (mixed_.empty()) return is_wide ? run_sums<uint16_t>(source, target) : run_sums<uint8_t>(source, target);
  return is_wide ? run_bilinear<uint16_t>(source, target) : run_bilinear<uint8_t>(source, target);
}

template <class Number>
void PlaneResampler::run_sums(const Plane<const uint8_t>& source, const Plane<uint8_t>& target) {
  const size_t numbers = size_t{x_.source} * source.channels;
  const auto row = [&](uint32_t y) { return reinterpret_cast<const Number*>(source.row(y)); };
  for (uint32_t y = 0; y < y_.target; ++y) {
    const float* weights = y_.weights.data() + size_t{y} * y_.tap_count;
    begin_row(row(y_.first[y]), weights[0], numbers, row_.data());
    for (uint32_t t = 1; t < y_.tap_count; ++t)
      if (weights[t] != 0) add_row(row(y_.first[y] + t), weights[t], numbers, row_.data());
    auto* const out = reinterpret_cast<Number*>(target.row(y));
    if (source.channels == 1) gather_gray(x_, row_.data(), out);
    if (source.channels == 2) gather_colors<2>(x_, row_.data(), out);
    if (source.channels == 3) gather_colors<3>(x_, row_.data(), out);
    if (source.channels == 4) gather_colors<4>(x_, row_.data(), out);
  }
}

template <class Number>
void PlaneResampler::run_bilinear(const Plane<const uint8_t>& source, const Plane<uint8_t>& target) {
  const uint32_t channels = source.channels;
  const size_t numbers = size_t{x_.source} * channels;
  if (x_weights_.size() != size_t{x_.target} * channels) {
    x_weights_.resize(size_t{x_.target} * channels);
    for (size_t i = 0; i < x_weights_.size(); ++i) x_weights_[i] = second_weight(x_, i / channels);
  }
  for (uint32_t y = 0; y < y_.target; ++y) {
    const auto row = [&](uint32_t of) { return reinterpret_cast<const Number*>(source.row(of)); };
    mix_rows(row(y_.first[y]), row(y_.first[y] + 1), second_weight(y_, y), numbers, mixed_.data());
    auto* const out = reinterpret_cast<Number*>(target.row(y));
    if (channels == 1) blend_row<1>(x_, x_weights_.data(), mixed_.data(), out);
    if (channels == 2) blend_row<2>(x_, x_weights_.data(), mixed_.data(), out);
    if (channels == 3) blend_row<3>(x_, x_weights_.data(), mixed_.data(), out);
    if (channels == 4) blend_row<4>(x_, x_weights_.data(), mixed_.data(), out);
  }
}

void PlaneResampler::run_nearest(const Plane<const uint8_t>& source, const Plane<uint8_t>& target) const {
  const size_t bytes = source.sample_bytes();
  for (uint32_t y = 0; y < y_.target; ++y) {
    const uint8_t* in = source.row(y_.first[y]);
    uint8_t* out = target.row(y);
    for (uint32_t x = 0; x < x_.target; ++x, out += bytes) std::memcpy(out, in + x_.first[x] * bytes, bytes);
  }
}

void Resampler::prepare(uint32_t source_width, uint32_t source_height, uint32_t target_width, uint32_t target_height,
                        ResizeMethod method) {
  first_.prepare({source_width, target_width}, {source_height, target_height}, method);
  chroma_.prepare(gpu::ResizeAxis::of_halved(source_width, target_width),
                  gpu::ResizeAxis::of_halved(source_height, target_height), method);
}

void Resampler::run(const ImageView& source, const ImageSpan& target) {
  for (uint32_t plane = 0; plane < source.plane_count(); ++plane)
    (plane == 0 ? first_ : chroma_).run(plane_of(source, plane), plane_of(target, plane));
}

} // namespace millrace::handlers
