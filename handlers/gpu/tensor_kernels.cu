// Kernels of image.normalize and image.patches: one pass from the picture to the tensor.
//
// A thread makes two neighbours of two rows. Two, because then a warp's loads lie close together even where a region
// shrinks, and its stores of half precision fill whole lines; two rows, because they share the columns' footprints.
// What a pixel becomes is in patch.h, and of NV12 in window_mix.h.
#include "handlers/gpu/tensor_kernels.h"

#include "handlers/gpu/half.h"
#include "handlers/gpu/launch.cuh"
#include "handlers/gpu/window_mix.h"

namespace millrace::handlers::gpu {
namespace {

constexpr uint32_t kColumns = 2, kRows = 2; // of a thread
// Threads of a block, and blocks that a multiprocessor is to hold: loads of patches wait long, so many have to.
constexpr uint32_t kThreads = kBlockWidth * kBlockHeight, kBlocksResident = 4;
// Below so many pixels of a tensor a thread makes two of one row.
constexpr uint64_t kSmallPixels = 1 << 20;

__device__ void store(void* target, size_t index, bool half, float number) {
  if (half)
    static_cast<__half*>(target)[index] = __float2half_rn(number);
  else
    static_cast<float*>(target)[index] = number;
}

// Two numbers at an even index.
__device__ void store_two(void* target, size_t index, bool half, float first, float second) {
  if (half)
    static_cast<__half2*>(target)[index / 2] = __floats2half2_rn(first, second);
  else
    static_cast<float2*>(target)[index / 2] = make_float2(first, second);
}

// The numbers of two pixels side by side as the tensor has them. `x` is even, so in a tensor of even width both lie at
// an even place.
__device__ void store_pixels(const TensorForm& form, const ChannelForm& channels, void* target, uint32_t patch,
                             uint32_t x, uint32_t y, const UnitRgb& left, const UnitRgb& right) {
  const float from_left[3] = {left.red, left.green, left.blue}, from_right[3] = {right.red, right.green, right.blue};
  const size_t plane = size_t{form.width} * form.height, pixel = size_t{y} * form.width + x;
  const bool two = x + 1 < form.width, even = form.width % 2 == 0;
  if (!form.interleaved) {
    // Planes of an odd count of numbers begin at odd places, and so do rows: numbers go one by one there.
#pragma unroll
    for (uint32_t c = 0; c < 3; ++c) {
      if (c >= form.channels) break;
      const uint32_t place = form.channels == 1 ? 0 : channels.place[c];
      const size_t index = (size_t{patch} * form.channels + place) * plane + pixel;
      if (two && even) {
        store_two(target, index, form.half, from_left[c], from_right[c]);
      } else {
        store(target, index, form.half, from_left[c]);
        if (two) store(target, index + 1, form.half, from_right[c]);
      }
    }
    return;
  }
  const size_t index = (patch * plane + pixel) * form.channels;
  if (form.channels == 3 && two && even) {
    const bool turned = channels.place[0] == 2;
    const float first[2] = {turned ? left.blue : left.red, turned ? right.blue : right.red};
    const float last[2] = {turned ? left.red : left.blue, turned ? right.red : right.blue};
    store_two(target, index, form.half, first[0], left.green);
    store_two(target, index + 2, form.half, last[0], first[1]);
    store_two(target, index + 4, form.half, right.green, last[1]);
    return;
  }
#pragma unroll
  for (uint32_t c = 0; c < 3; ++c) {
    if (c >= form.channels) break;
    const uint32_t place = form.channels == 1 ? 0 : channels.place[c];
    store(target, index + place, form.half, from_left[c]);
    if (two) store(target, index + form.channels + place, form.half, from_right[c]);
  }
}

template <SampleLayout kLayout>
__global__ void __launch_bounds__(kThreads, kBlocksResident)
    normalize_pixels(const __grid_constant__ SampleSource source, const __grid_constant__ TensorForm form,
                     const __grid_constant__ ChannelForm channels, void* target) {
  const uint32_t x = (blockIdx.x * blockDim.x + threadIdx.x) * kColumns;
  const uint32_t top = (blockIdx.y * blockDim.y + threadIdx.y) * kRows;
  if (x >= form.width) return;
  const uint32_t right = min(x + 1, form.width - 1);
#pragma unroll 1
  for (uint32_t y = top; y < min(top + kRows, form.height); ++y) {
    const SampleRow row = sample_row<kLayout>(source, static_cast<int32_t>(y));
    const auto pixel = [&](uint32_t at) {
      return normalized(channels, decoded<kLayout>(source.numbers, sample_at<kLayout>(row, static_cast<int32_t>(at))));
    };
    store_pixels(form, channels, target, 0, x, y, pixel(x), pixel(right));
  }
}

// The region of one patch; not valid behind the last one.
__device__ Region region_at(const Regions& regions, uint32_t index, const SampleSource& source,
                            const TensorForm& form) {
  const auto width = static_cast<int32_t>(form.width), height = static_cast<int32_t>(form.height);
  if (regions.whole)
    return region_of(0, 0, static_cast<float>(source.width), static_cast<float>(source.height), width, height);
  if (!regions.boxes || index >= *regions.count) return {0, 0, 0, 0, false};
  const Box& box = regions.boxes[index];
  return region_of(box.x, box.y, box.width, box.height, width, height);
}

template <SampleLayout kLayout>
__global__ void __launch_bounds__(kThreads, kBlocksResident)
    cut_patches(const __grid_constant__ SampleSource source, const __grid_constant__ Regions regions,
                const __grid_constant__ TensorForm form, const __grid_constant__ ChannelForm channels, void* target) {
  const uint32_t x = (blockIdx.x * blockDim.x + threadIdx.x) * kColumns;
  const uint32_t top = (blockIdx.y * blockDim.y + threadIdx.y) * kRows, patch = blockIdx.z;
  if (x >= form.width) return;
  const uint32_t bottom = min(top + kRows, form.height);
  const Region region = region_at(regions, patch, source, form);
  if (!region.valid) {
    const UnitRgb zero = {0, 0, 0};
    for (uint32_t y = top; y < bottom; ++y) store_pixels(form, channels, target, patch, x, y, zero, zero);
    return;
  }
  const Footprint left = footprint(region.left, region.scale_x, static_cast<int32_t>(x), source.width);
  const Footprint right = footprint(region.left, region.scale_x, static_cast<int32_t>(x + 1), source.width);
#pragma unroll 1
  for (uint32_t y = top; y < bottom; ++y) {
    const Footprint rows = footprint(region.top, region.scale_y, static_cast<int32_t>(y), source.height);
    const auto pixel = [&](const Footprint& columns) {
      return normalized(channels, decoded<kLayout>(source.numbers, mixed<kLayout>(source, columns, rows)));
    };
    store_pixels(form, channels, target, patch, x, y, pixel(left), pixel(right));
  }
}

// Two neighbours of one or more rows, from one window where that holds both of their columns, else from one each.
__device__ void mix_two(const SampleSource& source, const Footprint& left, const Footprint& right, uint32_t x,
                        uint32_t top, uint32_t bottom, const Region& region, const TensorForm& form,
                        const ChannelForm& channels, void* target, uint32_t patch) {
  const auto number = [&](const Sample& sample) {
    return normalized(channels, decoded<SampleLayout::nv12>(source.numbers, sample));
  };
  const auto rows_at = [&](uint32_t y) {
    return footprint(region.top, region.scale_y, static_cast<int32_t>(y), source.height);
  };
  if (right.last - left.first < kWindowColumns) {
    const Window window = window_of(left.first, right.last);
    const WindowWeights weights[2] = {window_weights(left, left.first), window_weights(right, left.first)};
#pragma unroll 1
    for (uint32_t y = top; y < bottom; ++y) {
      Sample sums[2];
      mix_window(source, window, weights, rows_at(y), sums);
      store_pixels(form, channels, target, patch, x, y, number(sums[0]), number(sums[1]));
    }
    return;
  }
  const Window first = window_of(left.first, left.last), second = window_of(right.first, right.last);
  const WindowWeights of_first = window_weights(left, left.first), of_second = window_weights(right, right.first);
#pragma unroll 1
  for (uint32_t y = top; y < bottom; ++y) {
    const Footprint rows = rows_at(y);
    Sample at_left[1], at_right[1];
    mix_window(source, first, &of_first, rows, at_left);
    mix_window(source, second, &of_second, rows, at_right);
    store_pixels(form, channels, target, patch, x, y, number(at_left[0]), number(at_right[0]));
  }
}

// As cut_patches, of a picture of NV12 whose rows have windows. With `kAllFit` every footprint fits into one.
template <bool kAllFit, uint32_t kRowsEach>
__global__ void __launch_bounds__(kThreads, kBlocksResident)
    cut_windows(const __grid_constant__ SampleSource source, const __grid_constant__ Regions regions,
                const __grid_constant__ TensorForm form, const __grid_constant__ ChannelForm channels, void* target) {
  const uint32_t x = (blockIdx.x * blockDim.x + threadIdx.x) * kColumns;
  const uint32_t top = (blockIdx.y * blockDim.y + threadIdx.y) * kRowsEach, patch = blockIdx.z;
  if (x >= form.width) return;
  const uint32_t bottom = min(top + kRowsEach, form.height);
  const Region region = region_at(regions, patch, source, form);
  if (!region.valid) {
    const UnitRgb zero = {0, 0, 0};
    for (uint32_t y = top; y < bottom; ++y) store_pixels(form, channels, target, patch, x, y, zero, zero);
    return;
  }
  // A pixel behind the last one is made of the last one's columns and stored nowhere.
  const uint32_t neighbour = min(x + 1, form.width - 1);
  const Footprint left = footprint(region.left, region.scale_x, static_cast<int32_t>(x), source.width);
  const Footprint right = footprint(region.left, region.scale_x, static_cast<int32_t>(neighbour), source.width);
  if constexpr (kAllFit) {
    mix_two(source, left, right, x, top, bottom, region, form, channels, target, patch);
  } else if (left.last - left.first < kWindowColumns && right.last - right.first < kWindowColumns) {
    mix_two(source, left, right, x, top, bottom, region, form, channels, target, patch);
  } else {
#pragma unroll 1
    for (uint32_t y = top; y < bottom; ++y) {
      const Footprint rows = footprint(region.top, region.scale_y, static_cast<int32_t>(y), source.height);
      const auto pixel = [&](const Footprint& columns) {
        const Sample sample = mixed<SampleLayout::nv12>(source, columns, rows);
        return normalized(channels, decoded<SampleLayout::nv12>(source.numbers, sample));
      };
      store_pixels(form, channels, target, patch, x, y, pixel(left), pixel(right));
    }
  }
}

// Launches `start` of the picture's layout.
template <class Start>
const char* for_layout(const DevicePicture& picture, Start&& start) {
  switch (sample_layout_of(static_cast<Pixel>(picture.image.format))) {
    case SampleLayout::gray: start.template operator()<SampleLayout::gray>(); break;
    case SampleLayout::packed3: start.template operator()<SampleLayout::packed3>(); break;
    case SampleLayout::packed4: start.template operator()<SampleLayout::packed4>(); break;
    case SampleLayout::nv12: start.template operator()<SampleLayout::nv12>(); break;
    case SampleLayout::i420: start.template operator()<SampleLayout::i420>(); break;
    case SampleLayout::p010: start.template operator()<SampleLayout::p010>(); break;
  }
  return launched();
}

dim3 blocks_of(const TensorForm& form, uint32_t rows_each = kRows) {
  return blocks_for((form.width + kColumns - 1) / kColumns, (form.height + rows_each - 1) / rows_each, form.count);
}

// Whether every footprint of the picture as one region has four columns at most. Beyond 2 a footprint's ends are
// rounded, so a scale near 3 might take a fifth column; at 3 itself they are whole numbers.
bool all_fit_windows(const SampleSource& source, const TensorForm& form) {
  const float scale = static_cast<float>(source.width) / static_cast<float>(form.width);
  return scale <= 2.5f || (scale == 3 && form.width < 1u << 22);
}

const char* normalize(void* stream, const DevicePicture& picture, const TensorForm& form, void* target) {
  const SampleSource source = sample_source(picture.image, picture.data);
  const ChannelForm channels = channel_form(form, static_cast<Pixel>(picture.image.format));
  return for_layout(picture, [&]<SampleLayout kLayout>() {
    normalize_pixels<kLayout>
        <<<blocks_of(form), dim3(kBlockWidth, kBlockHeight), 0, static_cast<cudaStream_t>(stream)>>>(source, form,
                                                                                                     channels, target);
  });
}

const char* patches(void* stream, const DevicePicture& picture, const Regions& regions, const TensorForm& form,
                    void* target) {
  const SampleSource source = sample_source(picture.image, picture.data);
  const ChannelForm channels = channel_form(form, static_cast<Pixel>(picture.image.format));
  if (static_cast<Pixel>(picture.image.format) == Pixel::nv12 && has_windows(source)) {
    const bool all_fit = regions.whole && all_fit_windows(source, form);
    // A small tensor has too few threads to wait for memory with, unless each has one row.
    const bool small = uint64_t{form.width} * form.height * form.count < kSmallPixels;
    const auto kernel = all_fit ? small ? &cut_windows<true, 1> : &cut_windows<true, kRows>
                        : small ? &cut_windows<false, 1>
                                : &cut_windows<false, kRows>;
    kernel<<<blocks_of(form, small ? 1 : kRows), dim3(kBlockWidth, kBlockHeight), 0,
             static_cast<cudaStream_t>(stream)>>>(source, regions, form, channels, target);
    return launched();
  }
  return for_layout(picture, [&]<SampleLayout kLayout>() {
    cut_patches<kLayout><<<blocks_of(form), dim3(kBlockWidth, kBlockHeight), 0, static_cast<cudaStream_t>(stream)>>>(
        source, regions, form, channels, target);
  });
}

} // namespace

const TensorKernels& tensor_kernels() {
  static const TensorKernels kernels{&normalize, &patches};
  return kernels;
}

} // namespace millrace::handlers::gpu
