// Blurs in two passes of the same form: a centre, and pairs of samples at equal distance that share a weight. The
// vertical pass adds whole rows; the horizontal one adds the same row, shifted. So both vectorise without a gather.
#include "handlers/image/gaussian.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "handlers/image/vectorize.h"

namespace millrace::handlers {
namespace {

constexpr uint32_t kOne = 32768; // the sum of a kernel

// The samples of one stretch (1 KiB, and 4 KiB for their sums) stay in the first-level cache while the taps go over
// them.
constexpr size_t kStretch = 1024;

// The fixed point of a picture's numbers. Between the passes a number keeps as many bits of its fraction as let the sum
// of two fit 16 bits; a weight has 15.
template <class Number>
struct Fixed;
template <>
struct Fixed<uint8_t> {
  static constexpr int kFraction = 7, kUp = 0;
};
template <>
struct Fixed<uint16_t> { // ten bits at the top
  static constexpr int kFraction = 5, kUp = kBelowTenBits;
};

template <class Number>
MR_INTO_LOOPS const Number* numbers(const uint8_t* row, size_t from) {
  return reinterpret_cast<const Number*>(row) + from;
}

// target[x] = Σ weight · (rows above and below), with the fraction's bits. rows[radius] is the centre.
template <class Number>
MILLRACE_VECTORIZE void blur_columns(const uint8_t* const* rows, const uint16_t* weights, uint32_t radius, size_t begin,
                                     size_t count, uint16_t* target) {
  constexpr int kUp = Fixed<Number>::kUp, kDown = 15 - Fixed<Number>::kFraction;
  alignas(64) uint32_t sums[kStretch];
  const Number* centre = numbers<Number>(rows[radius], begin);
  const uint32_t centre_weight = weights[0];
  for (size_t x = 0; x < count; ++x) sums[x] = (centre[x] >> kUp) * centre_weight + (1u << kDown >> 1);
  uint32_t k = 1;
  for (; k + 1 <= radius; k += 2) {
    const Number *a = numbers<Number>(rows[radius - k], begin), *b = numbers<Number>(rows[radius + k], begin);
    const Number *c = numbers<Number>(rows[radius - k - 1], begin), *d = numbers<Number>(rows[radius + k + 1], begin);
    const uint16_t near = weights[k], far = weights[k + 1];
    for (size_t x = 0; x < count; ++x) {
      const uint16_t inner = static_cast<uint16_t>((a[x] >> kUp) + (b[x] >> kUp));
      const uint16_t outer = static_cast<uint16_t>((c[x] >> kUp) + (d[x] >> kUp));
      sums[x] += static_cast<uint32_t>(inner) * near + static_cast<uint32_t>(outer) * far;
    }
  }
  if (k == radius) {
    const Number *a = numbers<Number>(rows[radius - k], begin), *b = numbers<Number>(rows[radius + k], begin);
    const uint16_t weight = weights[k];
    for (size_t x = 0; x < count; ++x) {
      const uint16_t pair = static_cast<uint16_t>((a[x] >> kUp) + (b[x] >> kUp));
      sums[x] += static_cast<uint32_t>(pair) * weight;
    }
  }
  for (size_t x = 0; x < count; ++x) target[x] = static_cast<uint16_t>(sums[x] >> kDown);
}

// target[x] = Σ weight · (samples `step` left and right), rounded to the numbers of the picture.
template <class Number>
MILLRACE_VECTORIZE void blur_row(const uint16_t* row, const uint16_t* weights, uint32_t radius, size_t step,
                                 size_t count, Number* target) {
  constexpr int kUp = Fixed<Number>::kUp, kDown = 15 + Fixed<Number>::kFraction;
  alignas(64) uint32_t sums[kStretch];
  const uint32_t centre_weight = weights[0];
  for (size_t x = 0; x < count; ++x) sums[x] = row[x] * centre_weight + (1u << kDown >> 1);
  uint32_t k = 1;
  for (; k + 1 <= radius; k += 2) {
    const uint16_t *a = row - k * step, *b = row + k * step, *c = a - step, *d = b + step;
    const uint16_t near = weights[k], far = weights[k + 1];
    for (size_t x = 0; x < count; ++x) {
      const uint16_t inner = static_cast<uint16_t>(a[x] + b[x]), outer = static_cast<uint16_t>(c[x] + d[x]);
      sums[x] += static_cast<uint32_t>(inner) * near + static_cast<uint32_t>(outer) * far;
    }
  }
  if (k == radius) {
    const uint16_t *a = row - k * step, *b = row + k * step;
    const uint16_t weight = weights[k];
    for (size_t x = 0; x < count; ++x) {
      const uint16_t pair = static_cast<uint16_t>(a[x] + b[x]);
      sums[x] += static_cast<uint32_t>(pair) * weight;
    }
  }
  for (size_t x = 0; x < count; ++x) target[x] = static_cast<Number>(sums[x] >> kDown << kUp);
}

void copy_numbers(const uint8_t* from, size_t count, uint8_t* to) { std::memcpy(to, from, count); }
MILLRACE_VECTORIZE void copy_numbers(const uint16_t* from, size_t count, uint16_t* to) {
  for (size_t x = 0; x < count; ++x) to[x] = from[x] & kTenBits;
}

// Fills `radius` pixels on both sides of a row of `width` pixels.
void reflect_borders(uint16_t* row, uint32_t width, uint32_t radius, uint32_t channels) {
  for (uint32_t i = 1; i <= radius; ++i) {
    const uint16_t* left = row + size_t{reflect101(-int64_t{i}, width)} * channels;
    const uint16_t* right = row + size_t{reflect101(int64_t{width} - 1 + i, width)} * channels;
    for (uint32_t c = 0; c < channels; ++c) {
      row[static_cast<ptrdiff_t>(c) - static_cast<ptrdiff_t>(size_t{i} * channels)] = left[c];
      row[(size_t{width} - 1 + i) * channels + c] = right[c];
    }
  }
}

uint32_t radius_of(double sigma) { return static_cast<uint32_t>(std::ceil(3 * sigma)); }

// Keeps the kernel's memory, so that a change of sigma between two ticks allocates nothing.
void make_kernel(double sigma, GaussianKernel& kernel) {
  kernel.sigma = sigma;
  const uint32_t radius = radius_of(sigma);
  kernel.weights.assign(size_t{radius} + 1, 0);
  const auto sample = [sigma](uint32_t k) { return std::exp(-0.5 * k * k / (sigma * sigma)); };
  double sum = 1;
  for (uint32_t k = 1; k <= radius; ++k) sum += 2 * sample(k);
  // Goes from the outside inwards and rounds the running sum, not each weight, so that rounding errors do not add up in
  // the centre.
  double tail = 0;
  uint32_t given = 0;
  for (uint32_t k = radius; k > 0; --k) {
    tail += sample(k) / sum * kOne;
    const uint32_t due = static_cast<uint32_t>(std::lround(tail));
    kernel.weights[k] = static_cast<uint16_t>(due - given);
    given = due;
  }
  kernel.weights[0] = static_cast<uint16_t>(kOne - 2 * given);
}

} // namespace

GaussianKernel gaussian_kernel(double sigma) {
  GaussianKernel kernel;
  make_kernel(sigma, kernel);
  return kernel;
}

void GaussianBlur::set_sigma(double sigma) {
  make_kernel(sigma, kernel_);
  make_kernel(sigma / 2, chroma_kernel_);
}

void GaussianBlur::reserve(size_t row_numbers) {
  const uint32_t radius = radius_of(kSigmaMax);
  kernel_.weights.reserve(size_t{radius} + 1);
  chroma_kernel_.weights.reserve(size_t{radius} + 1);
  sources_.reserve(2 * size_t{radius} + 1);
  row_.reserve(row_numbers + 2 * size_t{radius} * 4);
}

void GaussianBlur::run(const ImageView& source, const ImageSpan& target) {
  for (uint32_t p = 0; p < source.plane_count(); ++p) {
    const GaussianKernel& kernel = p > 0 ? chroma_kernel_ : kernel_;
    const Plane<const uint8_t> from = plane_of(source, p);
    const Plane<uint8_t> to = plane_of(target, p);
    const uint32_t width = plane_extent(source.pixel(), source.width(), p);
    if (from.channel_bytes == 2)
      run_plane<uint16_t>(kernel, from, to, width, source.rows(p));
    else
      run_plane<uint8_t>(kernel, from, to, width, source.rows(p));
  }
}

template <class Number>
void GaussianBlur::run_plane(const GaussianKernel& kernel, const Plane<const uint8_t>& source,
                             const Plane<uint8_t>& target, uint32_t width, uint32_t height) {
  const auto in = [&](uint32_t y) { return reinterpret_cast<const Number*>(source.row(y)); };
  const auto out = [&](uint32_t y) { return reinterpret_cast<Number*>(target.row(y)); };
  const uint32_t radius = kernel.radius(), channels = source.channels;
  const size_t count = size_t{width} * channels;
  if (radius == 0) {
    for (uint32_t y = 0; y < height; ++y) copy_numbers(in(y), count, out(y));
    return;
  }
  const size_t border = size_t{radius} * channels;
  row_.resize(count + 2 * border);
  sources_.resize(2 * size_t{radius} + 1);
  uint16_t* row = row_.data() + border;
  for (uint32_t y = 0; y < height; ++y) {
    for (uint32_t i = 0; i < sources_.size(); ++i)
      sources_[i] = source.row(reflect101(int64_t{y} + i - radius, height));
    for (size_t x = 0; x < count; x += kStretch)
      blur_columns<Number>(sources_.data(), kernel.weights.data(), radius, x, std::min(kStretch, count - x), row + x);
    reflect_borders(row, width, radius, channels);
    for (size_t x = 0; x < count; x += kStretch)
      blur_row(row + x, kernel.weights.data(), radius, channels, std::min(kStretch, count - x), out(y) + x);
  }
}

} // namespace millrace::handlers
