// Kernels of image.composite: one pass over the canvas, in which each layer is read once.
//
// A thread keeps four pixels of the canvas in registers from the background to the store, so intermediate results never
// reach memory. Layers are arguments of the kernel, which are read as constants. If all of them are unscaled and have
// four channels, as overlays do, a kernel without the other cases needs fewer registers. If they are also laid over by
// their alpha alone, a third kernel issues the loads of several layers before it needs the first.
#include "handlers/gpu/layer_kernels.h"

#include <algorithm>

#include "handlers/gpu/launch.cuh"

namespace millrace::handlers::gpu {
namespace {

constexpr uint32_t kPixels = 4; // neighbouring pixels of a thread
// A kernel's arguments may take 4 KB on every device.
constexpr uint32_t kLayersAtOnce = 24;
// The number of simple layers whose pixels a thread loads before it lays the first, and the number of blocks of such
// threads that a multiprocessor is to hold.
constexpr uint32_t kLayersAhead = 3, kSimpleBlocksResident = 6;

struct LayerStack {
  Layer layers[kLayersAtOnce];
  uint32_t count;
  uint32_t background;
  bool background_opaque;
  bool begins; // starts from the background, else from the canvas
};
static_assert(sizeof(LayerStack) + sizeof(DevicePicture) <= 4096, "a kernel's arguments");

__device__ bool fits_load(const uint8_t* at) { return reinterpret_cast<uintptr_t>(at) % 16 == 0; }

// Loads pixels of one to four bytes, the first channel lowest.
__device__ void load_canvas(const uint8_t* at, uint32_t channels, uint32_t count, uint32_t (&pixels)[kPixels]) {
#pragma unroll
  for (uint32_t i = 0; i < kPixels; ++i) {
    if (i >= count) break;
    pixels[i] = 0xff000000u;
    for (uint32_t c = 0; c < channels; ++c) {
      const uint32_t shift = 8 * c;
      pixels[i] = (pixels[i] & ~(255u << shift)) | static_cast<uint32_t>(at[i * channels + c]) << shift;
    }
  }
}

__device__ void store_canvas(uint8_t* at, uint32_t channels, uint32_t count, const uint32_t (&pixels)[kPixels]) {
  // Rows begin at multiples of four bytes, and so does every group of four pixels of any size.
  auto* words = reinterpret_cast<uint32_t*>(at);
  if (count == kPixels && channels == 4 && fits_load(at)) {
    *reinterpret_cast<uint4*>(at) = make_uint4(pixels[0], pixels[1], pixels[2], pixels[3]);
  } else if (count == kPixels && channels == 3) {
    words[0] = (pixels[0] & 0xffffffu) | pixels[1] << 24;
    words[1] = (pixels[1] >> 8 & 0xffffu) | pixels[2] << 16;
    words[2] = (pixels[2] >> 16 & 255u) | pixels[3] << 8;
  } else if (count == kPixels && channels == 1) {
    words[0] = (pixels[0] & 255) | (pixels[1] & 255) << 8 | (pixels[2] & 255) << 16 | pixels[3] << 24;
  } else {
#pragma unroll
    for (uint32_t i = 0; i < kPixels; ++i)
      for (uint32_t c = 0; c < channels && i < count; ++c)
        at[i * channels + c] = static_cast<uint8_t>(pixels[i] >> 8 * c);
  }
}

// Reads the layer's pixels from x on. x may be negative; pixels that are not `inside` are not read.
template <bool kPlain>
__device__ void read_layer(const Layer& layer, int32_t x, uint32_t y, const bool (&inside)[kPixels],
                           uint32_t (&above)[kPixels]) {
  const bool all = inside[0] && inside[kPixels - 1];
  if (kPlain || (layer.layout == SampleLayout::packed4 && layer.scaling == LayerScaling::none)) {
    const uint8_t* row = layer.planes[0] + size_t{y + layer.part_y} * layer.strides[0];
    const uint8_t* at = row + 4 * (static_cast<int64_t>(x) + layer.part_x);
    if (all && fits_load(at)) {
      const uint4 four = *reinterpret_cast<const uint4*>(at);
      above[0] = four.x, above[1] = four.y, above[2] = four.z, above[3] = four.w;
    } else {
      for (uint32_t i = 0; i < kPixels; ++i)
        if (inside[i]) above[i] = word_at(at + 4 * i);
    }
    if (layer.turned)
      for (uint32_t& pixel : above) pixel = with_turned_colors(pixel);
    return;
  }
  if (all && layer.scaling == LayerScaling::none && four_pixels_at(layer, static_cast<uint32_t>(x), y, above)) return;
#pragma unroll // keeps the pixels in registers
  for (uint32_t i = 0; i < kPixels; ++i)
    if (inside[i]) above[i] = scaled_pixel(layer, static_cast<uint32_t>(x) + i, y);
}

// `x` and `y`: the place in the layer of the first of the thread's pixels.
template <bool kPlain>
__device__ void lay_over(const Layer& layer, int32_t x, uint32_t y, bool below_opaque, uint32_t (&pixels)[kPixels]) {
  bool inside[kPixels];
  uint32_t above[kPixels] = {0, 0, 0, 0};
  for (uint32_t i = 0; i < kPixels; ++i) // a negative column wraps and is beyond any layer
    inside[i] = static_cast<uint32_t>(x + static_cast<int32_t>(i)) < layer.columns.target;
  read_layer<kPlain>(layer, x, y, inside, above);
  // The case of most layers, decided once and not for every pixel.
  const bool usual = layer.mode == BlendMode::over && layer.opacity == 255 && !layer.premultiplied && below_opaque &&
                     !(layer.grays && layer.alpha);
  for (uint32_t i = 0; i < kPixels; ++i)
    if (inside[i])
      pixels[i] = usual ? over_opaque(BlendMode::over, above[i], above[i] >> 24, pixels[i])
                        : laid_over(layer, above[i], pixels[i], below_opaque);
}

template <bool kPlain>
__global__ void compose_pixels(const __grid_constant__ LayerStack stack, const __grid_constant__ DevicePicture canvas) {
  await_inputs();
  const uint32_t x = (blockIdx.x * blockDim.x + threadIdx.x) * kPixels, y = blockIdx.y * blockDim.y + threadIdx.y;
  const mr_image& image = canvas.image;
  if (x >= image.width || y >= image.height) return;
  const uint32_t channels = kPlain ? 4 : bytes_per_pixel(static_cast<Pixel>(image.format));
  const uint32_t count = min(kPixels, image.width - x);
  uint8_t* at = canvas.data + image.planes[0].offset + size_t{y} * image.planes[0].stride + size_t{x} * channels;
  uint32_t pixels[kPixels] = {stack.background, stack.background, stack.background, stack.background};
  if (!stack.begins) load_canvas(at, channels, count, pixels);
  for (uint32_t l = 0; l < stack.count; ++l) {
    const Layer& layer = stack.layers[l];
    const auto row = static_cast<uint32_t>(static_cast<int32_t>(y) - layer.top);
    const int32_t column = static_cast<int32_t>(x) - layer.left;
    const bool beside =
        column >= static_cast<int32_t>(layer.columns.target) || column <= -static_cast<int32_t>(kPixels);
    if (row >= layer.rows.target || beside) continue;
    lay_over<kPlain>(layer, column, row, stack.background_opaque, pixels);
  }
  store_canvas(at, channels, count, pixels);
}

// The address of the layer's four pixels at a place of the canvas. Some of them may lie outside the layer; null if all
// do.
__device__ const uint8_t* simple_place(const Layer& layer, uint32_t x, uint32_t y) {
  const auto row = static_cast<uint32_t>(static_cast<int32_t>(y) - layer.top);
  const int32_t column = static_cast<int32_t>(x) - layer.left, width = static_cast<int32_t>(layer.columns.target);
  if (row >= layer.rows.target || column >= width || column <= -static_cast<int32_t>(kPixels)) return nullptr;
  return layer.planes[0] + size_t{row + layer.part_y} * layer.strides[0] +
         4 * (static_cast<int64_t>(column) + layer.part_x);
}

// True if one load brings all four pixels.
__device__ bool is_one_load(const Layer& layer, uint32_t x, const uint8_t* at) {
  const int32_t column = static_cast<int32_t>(x) - layer.left;
  return at && column >= 0 && column + static_cast<int32_t>(kPixels) <= static_cast<int32_t>(layer.columns.target) &&
         fits_load(at);
}

// Loads the pixels one by one; those outside the layer are transparent.
__device__ uint4 single_pixels(const Layer& layer, uint32_t x, const uint8_t* at) {
  const int32_t column = static_cast<int32_t>(x) - layer.left;
  const auto pixel = [&](int32_t i) {
    return static_cast<uint32_t>(column + i) < layer.columns.target ? word_at(at + 4 * i) : 0;
  };
  return make_uint4(pixel(0), pixel(1), pixel(2), pixel(3));
}

// Lays layers by nothing but their alpha over an opaque canvas of four channels. The loads of several layers are issued
// before the first is laid.
__global__ void __launch_bounds__(kBlockWidth* kBlockHeight, kSimpleBlocksResident)
    compose_simple(const __grid_constant__ LayerStack stack, const __grid_constant__ DevicePicture canvas) {
  await_inputs();
  const uint32_t x = (blockIdx.x * blockDim.x + threadIdx.x) * kPixels, y = blockIdx.y * blockDim.y + threadIdx.y;
  const mr_image& image = canvas.image;
  if (x >= image.width || y >= image.height) return;
  const uint32_t count = min(kPixels, image.width - x);
  uint8_t* at = canvas.data + image.planes[0].offset + size_t{y} * image.planes[0].stride + size_t{x} * 4;
  uint32_t pixels[kPixels] = {stack.background, stack.background, stack.background, stack.background};
  if (!stack.begins) load_canvas(at, 4, count, pixels);
#pragma unroll 1
  for (uint32_t first = 0; first < stack.count; first += kLayersAhead) {
    const uint8_t* places[kLayersAhead];
    bool single[kLayersAhead]; // pixels are loaded one by one
    uint4 above[kLayersAhead];
#pragma unroll
    for (uint32_t i = 0; i < kLayersAhead; ++i) {
      places[i] = first + i < stack.count ? simple_place(stack.layers[first + i], x, y) : nullptr;
      single[i] = places[i] && !is_one_load(stack.layers[first + i], x, places[i]);
    }
#pragma unroll
    for (uint32_t i = 0; i < kLayersAhead; ++i) {
      above[i] = make_uint4(0, 0, 0, 0);
      if (places[i] && !single[i]) above[i] = *reinterpret_cast<const uint4*>(places[i]);
    }
#pragma unroll
    for (uint32_t i = 0; i < kLayersAhead; ++i) {
      uint4 four = above[i];
      if (single[i]) four = single_pixels(stack.layers[first + i], x, places[i]);
      // Transparent pixels change nothing, and most pixels of an overlay are transparent.
      if ((four.x | four.y | four.z | four.w) >> 24 == 0) continue;
      if (stack.layers[first + i].turned) {
        four.x = with_turned_colors(four.x), four.y = with_turned_colors(four.y);
        four.z = with_turned_colors(four.z), four.w = with_turned_colors(four.w);
      }
      pixels[0] = simply_over_opaque(four.x, pixels[0]);
      pixels[1] = simply_over_opaque(four.y, pixels[1]);
      pixels[2] = simply_over_opaque(four.z, pixels[2]);
      pixels[3] = simply_over_opaque(four.w, pixels[3]);
    }
  }
  store_canvas(at, 4, count, pixels);
}

// True if the layer hides everything below it on the whole canvas.
bool hides_all(const Layer& layer, const mr_image& canvas) {
  return !layer.alpha && layer.mode == BlendMode::over && layer.opacity == 255 && layer.left <= 0 && layer.top <= 0 &&
         int64_t{layer.left} + layer.columns.target >= canvas.width &&
         int64_t{layer.top} + layer.rows.target >= canvas.height;
}

const char* compose(void* stream, std::span<const Layer> layers, uint32_t background, bool background_opaque,
                    const DevicePicture& canvas) {
  size_t first = 0;
  for (size_t i = 0; i < layers.size(); ++i)
    if (hides_all(layers[i], canvas.image)) first = i;
  const dim3 blocks = blocks_for((canvas.image.width + kPixels - 1) / kPixels, canvas.image.height);
  LayerStack stack{};
  stack.background = background;
  stack.background_opaque = background_opaque;
  stack.begins = true;
  do {
    stack.count = static_cast<uint32_t>(std::min<size_t>(kLayersAtOnce, layers.size() - first));
    std::copy_n(layers.begin() + static_cast<ptrdiff_t>(first), stack.count, stack.layers);
    const bool plain = bytes_per_pixel(static_cast<Pixel>(canvas.image.format)) == 4 &&
                       std::all_of(stack.layers, stack.layers + stack.count, [](const Layer& layer) {
                         return layer.alpha && layer.scaling == LayerScaling::none;
                       });
    const bool simple =
        plain && background_opaque && std::all_of(stack.layers, stack.layers + stack.count, [](const Layer& layer) {
          return layer.mode == BlendMode::over && layer.opacity == 255 && !layer.premultiplied;
        });
    const auto kernel = simple ? &compose_simple : plain ? &compose_pixels<true> : &compose_pixels<false>;
    launch({blocks, kBlock, 0, static_cast<cudaStream_t>(stream)}, kernel, stack, canvas);
    if (const char* sentence = launched()) return sentence;
    stack.begins = false;
    first += stack.count;
  } while (first < layers.size());
  return nullptr;
}

// ---- canvases of planes ---------------------------------------------------------------------------------------------

// A thread makes 2 × 2 pixels, which share a chroma sample.
template <uint32_t kMost>
__global__ void compose_blocks(const __grid_constant__ PlanarStack<kMost> stack,
                               const __grid_constant__ DevicePicture canvas) {
  await_inputs();
  const uint32_t x = (blockIdx.x * blockDim.x + threadIdx.x) * 2, y = (blockIdx.y * blockDim.y + threadIdx.y) * 2;
  if (x < canvas.image.width && y < canvas.image.height) compose_block(stack, canvas, x, y);
}

// Arguments beyond 4 KiB need CUDA 12.1, and a GPU from Volta on.
constexpr uint32_t kFewPlanarLayers = 16, kPlanarLayersMax = 64;
static_assert(sizeof(PlanarStack<kPlanarLayersMax>) + sizeof(DevicePicture) <= 32'764, "a kernel's arguments");

template <uint32_t kMost>
const char* compose_stack(void* stream, std::span<const PlanarLayer> layers, const std::array<uint8_t, 4>& background,
                          const DevicePicture& canvas) {
  PlanarStack<kMost> stack{};
  stack.numbers = canvas_numbers(canvas.image);
  stack.background = background_of(stack.numbers, background[0], background[1], background[2]);
  stack.count = static_cast<uint32_t>(layers.size());
  std::copy(layers.begin(), layers.end(), stack.layers);
  launch({tile_blocks(canvas.image, 2, 2), kBlock, 0, static_cast<cudaStream_t>(stream)}, compose_blocks<kMost>, stack,
         canvas);
  return launched();
}

const char* compose_planes(void* stream, std::span<const PlanarLayer> layers, const std::array<uint8_t, 4>& background,
                           const DevicePicture& canvas) {
  size_t first = 0;
  for (size_t i = 0; i < layers.size(); ++i)
    if (hides_all(layers[i].layer, canvas.image)) first = i;
  const auto seen = layers.subspan(first);
  if (seen.size() <= kFewPlanarLayers) return compose_stack<kFewPlanarLayers>(stream, seen, background, canvas);
  return compose_stack<kPlanarLayersMax>(stream, seen, background, canvas);
}

} // namespace

const LayerKernels& layer_kernels() {
  static const LayerKernels kernels{&compose, &compose_planes};
  return kernels;
}

} // namespace millrace::handlers::gpu
