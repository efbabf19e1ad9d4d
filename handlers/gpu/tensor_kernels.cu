// Kernels of image.normalize, image.patches and image.letterbox: one pass from the picture to the tensor.
//
// A thread makes two neighbouring pixels in each of two rows. Two neighbours keep a warp's loads close together even if
// a region shrinks, and let its stores of planar halves fill whole lines. Two rows share the columns' footprints.
// patch.h computes the numbers of a pixel; nv12_patches.cu makes the patches of NV12.
#include "handlers/gpu/tensor_kernels.h"

#include "handlers/gpu/launch.cuh"
#include "handlers/gpu/nv12_patches.h"
#include "handlers/gpu/tensor_store.cuh"

namespace millrace::handlers::gpu {
namespace {

constexpr uint32_t kColumns = 2, kRows = 2; // pixels of a thread
// The threads of a block, and the blocks that a multiprocessor is to hold: the loads of patches have a long latency, so
// many threads have to be waiting.
constexpr uint32_t kThreads = kBlockWidth * kBlockHeight, kBlocksResident = 4;

template <SampleLayout kLayout>
__global__ void __launch_bounds__(kThreads, kBlocksResident)
    normalize_pixels(const __grid_constant__ SampleSource source, const __grid_constant__ TensorForm form,
                     const __grid_constant__ ChannelForm channels, void* target) {
  await_inputs();
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
    store_any(form, channels, target, 0, x, y, pixel(x), pixel(right));
  }
}

template <SampleLayout kLayout>
__global__ void __launch_bounds__(kThreads, kBlocksResident)
    cut_patches(const __grid_constant__ SampleSource source, const __grid_constant__ Regions regions,
                const __grid_constant__ TensorForm form, const __grid_constant__ ChannelForm channels, void* target) {
  await_inputs();
  const uint32_t x = (blockIdx.x * blockDim.x + threadIdx.x) * kColumns;
  const uint32_t top = (blockIdx.y * blockDim.y + threadIdx.y) * kRows, patch = blockIdx.z;
  if (x >= form.width) return;
  const uint32_t bottom = min(top + kRows, form.height);
  const Region region = region_at(regions, patch, source, form);
  if (!region.valid) {
    const UnitRgb zero = {0, 0, 0};
    for (uint32_t y = top; y < bottom; ++y) store_any(form, channels, target, patch, x, y, zero, zero);
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
    store_any(form, channels, target, patch, x, y, pixel(left), pixel(right));
  }
}

template <SampleLayout kLayout>
__global__ void __launch_bounds__(kThreads, kBlocksResident)
    letterbox_pixels(const __grid_constant__ SampleSource source, const __grid_constant__ Letterbox box,
                     const __grid_constant__ Region region, float fill, const __grid_constant__ TensorForm form,
                     const __grid_constant__ ChannelForm channels, void* target,
                     const __grid_constant__ SaidTransform said) {
  await_inputs();
  const uint32_t x = (blockIdx.x * blockDim.x + threadIdx.x) * kColumns;
  const uint32_t top = (blockIdx.y * blockDim.y + threadIdx.y) * kRows;
  if (x == 0 && top == 0) {
    *said.record = said.value;
    *said.count = 1;
  }
  if (x >= form.width) return;
  const uint32_t bottom = min(top + kRows, form.height);
  const UnitRgb border = normalized(channels, {fill, fill, fill});
  const int32_t column = static_cast<int32_t>(x - box.left), width = static_cast<int32_t>(box.width);
  const Footprint left = footprint(region.left, region.scale_x, column, source.width);
  const Footprint right = footprint(region.left, region.scale_x, column + 1, source.width);
#pragma unroll 1
  for (uint32_t y = top; y < bottom; ++y) {
    if (y - box.top >= box.height) { // above the picture too, where the difference wraps round
      store_any(form, channels, target, 0, x, y, border, border);
      continue;
    }
    const Footprint rows = footprint(region.top, region.scale_y, static_cast<int32_t>(y - box.top), source.height);
    const auto pixel = [&](const Footprint& columns, int32_t at) {
      if (at < 0 || at >= width) return border;
      return normalized(channels, decoded<kLayout>(source.numbers, mixed<kLayout>(source, columns, rows)));
    };
    store_any(form, channels, target, 0, x, y, pixel(left, column), pixel(right, column + 1));
  }
}

// Calls `start` for the picture's layout, and returns the launch's error message or null.
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

dim3 blocks_of(const TensorForm& form) {
  return blocks_for((form.width + kColumns - 1) / kColumns, (form.height + kRows - 1) / kRows, form.count);
}

const char* normalize(void* stream, const DevicePicture& picture, const TensorForm& form, void* target) {
  const SampleSource source = sample_source(picture.image, picture.data);
  const ChannelForm channels = channel_form(form, static_cast<Pixel>(picture.image.format));
  return for_layout(picture, [&]<SampleLayout kLayout>() {
    launch({blocks_of(form), kBlock, 0, static_cast<cudaStream_t>(stream)}, normalize_pixels<kLayout>, source, form,
           channels, target);
  });
}

const char* patches(void* stream, const DevicePicture& picture, const Regions& regions, const TensorForm& form,
                    void* target) {
  const SampleSource source = sample_source(picture.image, picture.data);
  const ChannelForm channels = channel_form(form, static_cast<Pixel>(picture.image.format));
  const auto on = static_cast<cudaStream_t>(stream);
  if (static_cast<Pixel>(picture.image.format) == Pixel::nv12 && has_windows(source))
    return launch_nv12_patches(stream, source, regions, form, channels, target);
  return for_layout(picture, [&]<SampleLayout kLayout>() {
    launch({blocks_of(form), kBlock, 0, on}, cut_patches<kLayout>, source, regions, form, channels, target);
  });
}

const char* letterbox(void* stream, const DevicePicture& picture, const Letterbox& box, float fill,
                      const TensorForm& form, void* target, const SaidTransform& said) {
  const SampleSource source = sample_source(picture.image, picture.data);
  const ChannelForm channels = channel_form(form, static_cast<Pixel>(picture.image.format));
  const Region region = whole_region(source, box);
  return for_layout(picture, [&]<SampleLayout kLayout>() {
    launch({blocks_of(form), kBlock, 0, static_cast<cudaStream_t>(stream)}, letterbox_pixels<kLayout>, source, box,
           region, fill, form, channels, target, said);
  });
}

} // namespace

const TensorKernels& tensor_kernels() {
  static const TensorKernels kernels{&normalize, &patches, &letterbox};
  return kernels;
}

} // namespace millrace::handlers::gpu
