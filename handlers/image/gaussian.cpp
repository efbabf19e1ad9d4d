// Blurs in two passes of the same form: a centre, and pairs of samples at equal distance that share a weight. The
// vertical pass adds whole rows; the horizontal one adds the same row, shifted. So both vectorise without a gather.
#include "handlers/image/gaussian.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "handlers/image/picture.h"
#include "handlers/image/vectorize.h"

namespace millrace::handlers {
namespace {

constexpr uint32_t kOne = 32768; // the sum of a kernel

// The samples of one stretch (1 KiB, and 4 KiB for their sums) stay in the first-level cache while the taps go over
// them.
constexpr size_t kStretch = 1024;

// target[x] = Σ weight · (rows above and below), 9.7 fixed point. rows[radius] is the centre.
MILLRACE_VECTORIZE void blur_columns(const uint8_t* const* rows, const uint16_t* weights, uint32_t radius, size_t begin,
                                     size_t count, uint16_t* target) {
  alignas(64) uint32_t sums[kStretch];
  const uint8_t* centre = rows[radius] + begin;
  const uint32_t centre_weight = weights[0];
  for (size_t x = 0; x < count; ++x) sums[x] = centre[x] * centre_weight + 128;
  uint32_t k = 1;
  for (; k + 1 <= radius; k += 2) {
    const uint8_t *a = rows[radius - k] + begin, *b = rows[radius + k] + begin;
    const uint8_t *c = rows[radius - k - 1] + begin, *d = rows[radius + k + 1] + begin;
    const uint16_t near = weights[k], far = weights[k + 1];
    for (size_t x = 0; x < count; ++x) {
      const uint16_t inner = static_cast<uint16_t>(a[x] + b[x]), outer = static_cast<uint16_t>(c[x] + d[x]);
      sums[x] += static_cast<uint32_t>(inner) * near + static_cast<uint32_t>(outer) * far;
    }
  }
  if (k == radius) {
    const uint8_t *a = rows[radius - k] + begin, *b = rows[radius + k] + begin;
    const uint16_t weight = weights[k];
    for (size_t x = 0; x < count; ++x) {
      const uint16_t pair = static_cast<uint16_t>(a[x] + b[x]);
      sums[x] += static_cast<uint32_t>(pair) * weight;
    }
  }
  for (size_t x = 0; x < count; ++x) target[x] = static_cast<uint16_t>(sums[x] >> 8);
}

// target[x] = Σ weight · (samples `step` left and right), from 9.7 fixed point back to 8 bits.
MILLRACE_VECTORIZE void blur_row(const uint16_t* row, const uint16_t* weights, uint32_t radius, size_t step,
                                 size_t count, uint8_t* target) {
  alignas(64) uint32_t sums[kStretch];
  const uint32_t centre_weight = weights[0];
  for (size_t x = 0; x < count; ++x) sums[x] = row[x] * centre_weight + (1u << 21);
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
  for (size_t x = 0; x < count; ++x) target[x] = static_cast<uint8_t>(sums[x] >> 22);
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

void GaussianBlur::reserve(size_t row_bytes) {
  const uint32_t radius = radius_of(kSigmaMax);
  kernel_.weights.reserve(size_t{radius} + 1);
  chroma_kernel_.weights.reserve(size_t{radius} + 1);
  sources_.reserve(2 * size_t{radius} + 1);
  row_.reserve(row_bytes + 2 * size_t{radius} * 4);
}

void GaussianBlur::run(const ImageView& source, const ImageSpan& target) {
  const uint32_t half_width = source.width() / 2 + source.width() % 2;
  run_plane(kernel_, source, target, 0, source.width(), bytes_per_pixel(source.pixel()));
  if (source.pixel() == Pixel::nv12) run_plane(chroma_kernel_, source, target, 1, half_width, 2);
  if (source.pixel() == Pixel::i420)
    for (uint32_t plane = 1; plane < 3; ++plane) run_plane(chroma_kernel_, source, target, plane, half_width, 1);
}

void GaussianBlur::run_plane(const GaussianKernel& kernel, const ImageView& source, const ImageSpan& target,
                             uint32_t plane, uint32_t width, uint32_t channels) {
  const uint32_t radius = kernel.radius(), height = source.rows(plane);
  const size_t bytes = size_t{width} * channels;
  if (radius == 0) {
    for (uint32_t y = 0; y < height; ++y) std::memcpy(target.row(y, plane), source.row(y, plane), bytes);
    return;
  }
  const size_t border = size_t{radius} * channels;
  row_.resize(bytes + 2 * border);
  sources_.resize(2 * size_t{radius} + 1);
  uint16_t* row = row_.data() + border;
  for (uint32_t y = 0; y < height; ++y) {
    for (uint32_t i = 0; i < sources_.size(); ++i)
      sources_[i] = source.row(reflect101(int64_t{y} + i - radius, height), plane);
    for (size_t x = 0; x < bytes; x += kStretch)
      blur_columns(sources_.data(), kernel.weights.data(), radius, x, std::min(kStretch, bytes - x), row + x);
    reflect_borders(row, width, radius, channels);
    for (size_t x = 0; x < bytes; x += kStretch)
      blur_row(row + x, kernel.weights.data(), radius, channels, std::min(kStretch, bytes - x),
               target.row(y, plane) + x);
  }
}

} // namespace millrace::handlers
