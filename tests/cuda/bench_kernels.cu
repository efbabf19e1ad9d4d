// Device time of single kernels, called through the tables that handlers call them through.
#include <cuda_runtime.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "bench.h"
#include "handlers/gpu/image_kernels.h"
#include "handlers/gpu/layer_kernels.h"
#include "handlers/gpu/mark_kernels.h"
#include "handlers/gpu/tensor_kernels.h"
#include "handlers/image/compose.h"
#include "handlers/image/to_tensor.h"
#include "replays.h"
#include "tests/gpu/on_gpu.h"

namespace millrace::test {
namespace {

using namespace handlers;

constexpr uint64_t kRotated = 120'000'000; // bytes between two uses of one: twice the second-level cache

__global__ void scramble(uint32_t* words, uint64_t count, uint32_t seed) {
  const uint64_t step = uint64_t{gridDim.x} * blockDim.x;
  for (uint64_t i = blockIdx.x * uint64_t{blockDim.x} + threadIdx.x; i < count; i += step) {
    uint32_t x = static_cast<uint32_t>(i) * 2654435761u + seed;
    x = (x ^ x >> 16) * 0x7feb352du;
    x = (x ^ x >> 15) * 0x846ca68bu;
    words[i] = x ^ x >> 16;
  }
}

// A picture of random bytes, padding too.
class Noise {
 public:
  Noise(Pixel pixel, uint32_t width, uint32_t height, size_t seed)
      : bytes_(lay_out_image(pixel, width, height, image_) + 4) {
    const bool ycbcr = pixel == Pixel::nv12;
    image_.color = ycbcr ? MR_COLOR_BT709 : MR_COLOR_SRGB;
    image_.range = ycbcr ? MR_RANGE_LIMITED : MR_RANGE_FULL;
    auto* words = reinterpret_cast<uint32_t*>(bytes_.data());
    scramble<<<1024, 256>>>(words, bytes_.count() / 4, static_cast<uint32_t>(seed));
    checked(cudaGetLastError(), "scramble");
    checked(cudaDeviceSynchronize(), "scramble");
  }
  gpu::DevicePicture picture() const { return {image_, bytes_.data()}; }

 private:
  mr_image image_{};
  GpuBytes bytes_;
};

uint64_t bytes_of(Pixel pixel, uint32_t width, uint32_t height) {
  mr_image image{};
  return lay_out_image(pixel, width, height, image);
}
uint64_t bytes_of(const TensorForm& form) {
  return uint64_t{form.count} * form.channels * form.width * form.height * (form.half ? 2 : 4);
}

// `make(seed)` gives a set, `launch(stream, set)` uses it; `bytes` are what a launch reads and writes.
template <class Make, class Use>
void time_kernel(const char* name, const char* goal, uint64_t bytes, const Make& make, const Use& use) {
  const size_t count = kRotated / bytes + 2;
  std::vector<decltype(make(size_t{0}))> sets;
  for (size_t s = 0; s < count; ++s) sets.push_back(make(s));
  const Launch launch = [&](cudaStream_t stream, size_t i) { return use(stream, *sets[i]); };
  const double cold = marginal_us(launch, count), warm = marginal_us(launch, 1);
  row("| %s | %.1f | %.1f | %.1f | %.0f | %.0f | %s |", name, cold, warm, static_cast<double>(bytes) / 1e6,
      static_cast<double>(bytes) / cold / 1000, static_cast<double>(bytes) / warm / 1000, goal);
}

// ---- tensors ----------------------------------------------------------------------------------------------------

struct TensorSet {
  Noise source;
  GpuBytes target;
};

void time_patches(const char* name, const char* goal, uint32_t width, uint32_t height, const TensorForm& form,
                  const gpu::Regions& regions) {
  const auto make = [&](size_t seed) {
    return std::unique_ptr<TensorSet>(new TensorSet{{Pixel::nv12, width, height, seed}, GpuBytes(bytes_of(form))});
  };
  time_kernel(name, goal, bytes_of(Pixel::nv12, width, height) + bytes_of(form), make,
              [&](cudaStream_t stream, const TensorSet& set) {
                return gpu::tensor_kernels().patches(stream, set.source.picture(), regions, form, set.target.data());
              });
}

TensorForm half_form(const char* layout, uint32_t width, uint32_t height, uint32_t count, bool normalised) {
  TensorForm form = tensor_form(
      {"f16", layout, "rgb", normalised ? "0.485,0.456,0.406" : "0,0,0", normalised ? "0.229,0.224,0.225" : "1,1,1"});
  form.width = width;
  form.height = height;
  form.count = count;
  return form;
}

void time_tensors() {
  const gpu::Regions whole{true, nullptr, nullptr};
  time_patches("nv12 4K → 1080p rgb fp16 nhwc", "12", 3840, 2160, half_form("nhwc", 1920, 1080, 1, false), whole);
  time_patches("nv12 1080p → 640x640 planar fp16, normalised", "5", 1920, 1080, half_form("nchw", 640, 640, 1, true),
               whole);
  constexpr uint64_t kBoxes = 64;
  std::mt19937 random(7);
  std::vector<Box> boxes(kBoxes);
  for (Box& box : boxes) { // about as large as what is made of them
    const auto any = [&](uint32_t most) { return static_cast<float>(random() % (4 * most)) / 4; };
    const float width = 128 + any(256), height = 128 + any(256);
    box = {any(1536), any(696), width, height, 1, 0, -1};
  }
  GpuBytes table(boxes.size() * sizeof(Box));
  table.upload(boxes.data());
  const GpuValue<uint64_t> count(kBoxes);
  const gpu::Regions regions{false, reinterpret_cast<const Box*>(table.data()), count.get()};
  time_patches("64 regions of nv12 1080p → 256x256x3 fp16, normalised", "22", 1920, 1080,
               half_form("nchw", 256, 256, kBoxes, true), regions);
}

// ---- pictures ---------------------------------------------------------------------------------------------------

struct CanvasSet {
  std::vector<std::unique_ptr<Noise>> layers;
  Noise canvas;
};

void time_composite(const char* name, const char* goal, size_t layer_count) {
  constexpr uint32_t kWidth = 3840, kHeight = 2160;
  const auto make = [&](size_t seed) {
    std::vector<std::unique_ptr<Noise>> pictures;
    for (size_t l = 0; l < layer_count; ++l)
      pictures.push_back(std::make_unique<Noise>(Pixel::rgba8, kWidth, kHeight, 100 * seed + l));
    return std::unique_ptr<CanvasSet>(new CanvasSet{std::move(pictures), {Pixel::rgba8, kWidth, kHeight, seed}});
  };
  time_kernel(
      name, goal, (layer_count + 1) * bytes_of(Pixel::rgba8, kWidth, kHeight), make,
      [&](cudaStream_t stream, const CanvasSet& set) {
        const ComposeSettings settings;
        const FittedLayer fitted = fit_layer({kWidth, kHeight}, {0, 0, {}}, settings.fit);
        std::vector<gpu::Layer> layers;
        for (const auto& picture : set.layers)
          layers.push_back(gpu::layer_of(picture->picture(), fitted, BlendMode::over, 255, settings, Pixel::rgba8));
        return gpu::layer_kernels().compose(stream, layers, 0xff302010u, true, set.canvas.picture());
      });
}

struct PictureSet {
  Noise source, target;
};

template <class Use>
void time_picture(const char* name, Pixel from, Pixel to, uint32_t width, uint32_t height, const Use& use) {
  const auto make = [&](size_t seed) {
    return std::unique_ptr<PictureSet>(new PictureSet{{from, 3840, 2160, seed}, {to, width, height, seed + 1000}});
  };
  time_kernel(name, "", bytes_of(from, 3840, 2160) + bytes_of(to, width, height), make,
              [&](cudaStream_t stream, const PictureSet& set) {
                return use(stream, set.source.picture(), set.target.picture());
              });
}

void time_pictures() {
  GaussianBlur blur;
  blur.set_sigma(2);
  const auto blurred = [&](cudaStream_t stream, const gpu::DevicePicture& source, const gpu::DevicePicture& target) {
    return gpu::image_kernels().blur(stream, source, target, blur.kernel(), blur.chroma_kernel());
  };
  time_picture("blur sigma 2, rgba8 4K", Pixel::rgba8, Pixel::rgba8, 3840, 2160, blurred);
  time_picture("blur sigma 2, rgb8 4K", Pixel::rgb8, Pixel::rgb8, 3840, 2160, blurred);
  time_picture("convert nv12 → rgb8 4K", Pixel::nv12, Pixel::rgb8, 3840, 2160, gpu::image_kernels().convert);
  time_picture("resize bilinear rgb8 4K → 1080p", Pixel::rgb8, Pixel::rgb8, 1920, 1080,
               [&](cudaStream_t stream, const gpu::DevicePicture& source, const gpu::DevicePicture& target) {
                 return gpu::image_kernels().resize(stream, source, target, ResizeMethod::bilinear);
               });
}

// ---- marks ------------------------------------------------------------------------------------------------------

// A 4K picture with a list of marks, as draw.marks has them in device memory.
struct MarksSet {
  MarksSet(const std::vector<Mark>& list, size_t seed)
      : canvas(Pixel::rgba8, 3840, 2160, seed),
        copy(Pixel::rgba8, 3840, 2160, seed),
        bytes(list.size() * sizeof(Mark)),
        count(list.size()),
        scratch(gpu::mark_scratch_bytes(list.size())) {
    bytes.upload(list.data());
    lists.count = 1;
    lists.lists[0] = {reinterpret_cast<const Mark*>(bytes.data()), count.get(), static_cast<uint32_t>(list.size())};
  }
  Noise canvas, copy;
  GpuBytes bytes;
  GpuValue<uint64_t> count;
  GpuBytes scratch;
  gpu::MarkLists lists;
};

// Makes curves of lines, with the control points that marks.lines gives them.
std::vector<Mark> bent(std::vector<Mark> lines) {
  for (Mark& mark : lines) {
    mark.kind = static_cast<int32_t>(MarkKind::curve);
    mark.at[4] = (mark.at[0] + mark.at[2]) / 2 - 0.3f * (mark.at[3] - mark.at[1]);
    mark.at[5] = (mark.at[1] + mark.at[3]) / 2 + 0.3f * (mark.at[2] - mark.at[0]);
  }
  return lines;
}

// Boxes as those of tests/peers/marks.cpp, or lines of this length.
std::vector<Mark> marks_to_time(size_t count, bool are_boxes, float width, float length = 400) {
  std::mt19937 random(1);
  const auto any = [&](double low, double high) {
    return static_cast<float>(low + (high - low) * static_cast<double>(random()) / 4294967295.0);
  };
  std::vector<Mark> marks(count);
  for (Mark& mark : marks) {
    mark.at[0] = are_boxes ? any(130, 3700) : any(410, 3400);
    mark.at[1] = are_boxes ? any(110, 2040) : any(410, 1700);
    const float turn = any(0, 6.2831853);
    mark.at[2] = are_boxes ? any(150, 250) : mark.at[0] + length * std::cos(turn);
    mark.at[3] = are_boxes ? any(100, 200) : mark.at[1] + length * std::sin(turn);
    mark.kind = static_cast<int32_t>(are_boxes ? MarkKind::box : MarkKind::segment);
    mark.width = width;
    mark.roundness = are_boxes ? 0.3f : 0;
    for (int c = 0; c < 3; ++c) mark.color[c] = any(0, 1);
  }
  return marks;
}

// One row: what a launch adds, and how long a graph of one launch takes as events see it.
template <class Use>
void time_marks(const char* name, const char* goal, const std::vector<Mark>& marks, const Use& use) {
  const size_t count = kRotated / bytes_of(Pixel::rgba8, 3840, 2160) + 2;
  std::vector<std::unique_ptr<MarksSet>> sets;
  for (size_t s = 0; s < count; ++s) sets.push_back(std::make_unique<MarksSet>(marks, s));
  const Launch launch = [&](cudaStream_t stream, size_t i) { return use(stream, *sets[i]); };
  const double cold = marginal_us(launch, count), warm = marginal_us(launch, 1);
  const std::vector<double> whole = times_of_one(launch);
  row("| %s | %.1f | %.1f | %.1f / %.1f | %s |", name, cold, warm, whole[whole.size() / 2],
      whole[whole.size() * 99 / 100], goal);
}

void time_painter(const char* name, const char* goal, const std::vector<Mark>& marks) {
  time_marks(name, goal, marks, [](cudaStream_t stream, const MarksSet& set) {
    return gpu::mark_kernels().paint(stream, set.lists, {false, false, Pixel::rgba8}, set.canvas.picture(),
                                     set.scratch.data(), set.lists.lists[0].most);
  });
}

} // namespace

void bench_marks() {
  row("\n### marks: draw.marks over a picture of 3840 × 2160 rgba8, in a captured graph, µs; medians of %u\n",
      kReplays);
  row("| work | one more launch, memory in turns | the same, one set (L2 warm) | a graph of one, p50 / p99 | goal, µs "
      "|");
  row("|---|---|---|---|---|");
  checked(cudaSetDevice(0), "cudaSetDevice");
  time_marks("a bare copy of the picture", "", {Mark{}}, [](cudaStream_t stream, const MarksSet& set) {
    const cudaError_t error = cudaMemcpyAsync(set.copy.picture().data, set.canvas.picture().data,
                                              bytes_of(Pixel::rgba8, 3840, 2160), cudaMemcpyDeviceToDevice, stream);
    return error == cudaSuccess ? nullptr : cudaGetErrorString(error);
  });
  time_painter("1 rounded box", "", marks_to_time(1, true, 2));
  time_painter("100 rounded boxes", "25", marks_to_time(100, true, 2));
  time_painter("1,000 rounded boxes", "90", marks_to_time(1000, true, 2));
  time_painter("1,000 curves of 400 pixels, 2 wide", "110", bent(marks_to_time(1000, false, 2)));
  time_painter("1,000 curves of 100 pixels, 2 wide", "", bent(marks_to_time(1000, false, 2, 100)));
  time_painter("500 lines of 400 pixels, 2 wide", "35", marks_to_time(500, false, 2));
  time_painter("10,000 lines of 400 pixels, 2 wide", "", marks_to_time(10'000, false, 2));
}

void bench_kernels() {
  row("\n### kernels: what one more launch adds to a captured graph, µs; (33 launches − 1) / 32, medians of %u\n",
      kReplays);
  row("| kernel | memory in turns | one set (L2 warm) | MB read and written | GB/s | GB/s warm | goal, µs |");
  row("|---|---|---|---|---|---|---|");
  checked(cudaSetDevice(0), "cudaSetDevice");
  time_tensors();
  time_composite("two layers over a picture, rgba8 4K", "40", 3);
  time_composite("two layers over a colour, rgba8 4K", "", 2);
  time_pictures();
}

} // namespace millrace::test
