// Times of the kernels of pictures at 3840 x 2160, beside the time that moving their bytes takes. Not run unless it is
// asked for: test_gpu -ns -tc="times of*"
#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include "handlers/gpu/image_kernels.h"
#include "handlers/pictures.h"
#include "on_gpu.h"

using namespace millrace;
using namespace millrace::handlers;

namespace {

constexpr uint32_t kWidth = 3840, kHeight = 2160;
// Pictures in turn, so that none is found in the second-level cache, which has up to 60 MB.
constexpr size_t kPairs = 6;
constexpr size_t kRuns = 60;

uint64_t bytes_of(Pixel pixel, uint32_t width, uint32_t height) {
  mr_image image{};
  return lay_out_image(pixel, width, height, image);
}

struct Pair {
  Pair(const Picture& from, Pixel to, uint32_t width, uint32_t height) : source(from), target(to, width, height) {}
  GpuPicture source, target;
};

// The median time of a launch, one behind the other; microseconds.
template <class Launch>
double median_us(const Launch& launch) {
  const GpuStream stream;
  std::array<cudaEvent_t, kRuns + 1> events;
  for (cudaEvent_t& event : events) checked(cudaEventCreate(&event), "cudaEventCreate");
  for (size_t i = 0; i < kPairs; ++i) gpu::check(launch(static_cast<cudaStream_t>(stream), i));
  checked(cudaEventRecord(events[0], stream), "cudaEventRecord");
  for (size_t i = 0; i < kRuns; ++i) {
    gpu::check(launch(static_cast<cudaStream_t>(stream), i % kPairs));
    checked(cudaEventRecord(events[i + 1], stream), "cudaEventRecord");
  }
  stream.wait();
  std::vector<float> times(kRuns);
  for (size_t i = 0; i < kRuns; ++i)
    checked(cudaEventElapsedTime(&times[i], events[i], events[i + 1]), "cudaEventElapsedTime");
  for (cudaEvent_t event : events) cudaEventDestroy(event);
  std::nth_element(times.begin(), times.begin() + kRuns / 2, times.end());
  return 1000.0 * times[kRuns / 2];
}

template <class Launch>
void time_kernel(const std::string& name, Pixel from, Pixel to, uint32_t width, uint32_t height, const Launch& launch) {
  const Picture source = random_picture(from, kWidth, kHeight, 51).tag(MR_COLOR_BT709, MR_RANGE_LIMITED);
  std::vector<std::unique_ptr<Pair>> pairs;
  for (size_t i = 0; i < kPairs; ++i) pairs.push_back(std::make_unique<Pair>(source, to, width, height));
  for (auto& pair : pairs) pair->target.tag(MR_COLOR_BT709, MR_RANGE_LIMITED);
  const double us = median_us([&](cudaStream_t stream, size_t i) {
    return launch(stream, pairs[i]->source.on_device(), pairs[i]->target.on_device());
  });
  const double bytes = static_cast<double>(bytes_of(from, kWidth, kHeight) + bytes_of(to, width, height));
  std::printf("%-40s %8.1f us %8.0f GB/s\n", name.c_str(), us, bytes / us / 1000);
}

} // namespace

TEST_CASE("times of conversions of 4K pictures" * doctest::skip()) {
  const auto convert = gpu::image_kernels().convert;
  for (const auto& [from, to] : {std::pair{Pixel::rgba8, Pixel::rgb8},
                                 {Pixel::rgb8, Pixel::rgba8},
                                 {Pixel::rgb8, Pixel::gray8},
                                 {Pixel::rgba8, Pixel::nv12},
                                 {Pixel::rgb8, Pixel::nv12},
                                 {Pixel::nv12, Pixel::rgba8},
                                 {Pixel::nv12, Pixel::rgb8},
                                 {Pixel::nv12, Pixel::i420},
                                 {Pixel::p010, Pixel::rgb8},
                                 {Pixel::rgba8, Pixel::rgba8}})
    time_kernel(std::string(name_of(from)) + " to " + std::string(name_of(to)), from, to, kWidth, kHeight, convert);
}

TEST_CASE("times of resizes of 4K pictures" * doctest::skip()) {
  const std::array<const char*, 3> names = {"nearest", "bilinear", "area"};
  for (const ResizeMethod method : {ResizeMethod::nearest, ResizeMethod::bilinear, ResizeMethod::area})
    for (const auto& [width, height] : {std::pair{1920u, 1080u}, {640u, 360u}, {3000u, 1700u}})
      for (const Pixel pixel : {Pixel::rgb8, Pixel::rgba8})
        time_kernel(
            std::string(name_of(pixel)) + " " + names[static_cast<size_t>(method)] + " to " + std::to_string(width),
            pixel, pixel, width, height,
            [&](cudaStream_t stream, const gpu::DevicePicture& source, const gpu::DevicePicture& target) {
              return gpu::image_kernels().resize(stream, source, target, method);
            });
}

TEST_CASE("times of turns and blurs of 4K pictures" * doctest::skip()) {
  for (const Pixel pixel : {Pixel::gray8, Pixel::rgb8, Pixel::rgba8, Pixel::nv12}) {
    const std::string name(name_of(pixel));
    for (const Turn turn : {Turn::horizontal, Turn::vertical, Turn::rotate90})
      time_kernel(name + " turn " + std::to_string(static_cast<int>(turn)), pixel, pixel,
                  swaps_sides(turn) ? kHeight : kWidth, swaps_sides(turn) ? kWidth : kHeight,
                  [&](cudaStream_t stream, const gpu::DevicePicture& source, const gpu::DevicePicture& target) {
                    return gpu::image_kernels().turn(stream, turn, source, target);
                  });
    GaussianBlur blur;
    for (const double sigma : {1.0, 2.0, 5.0, 50.0}) {
      blur.set_sigma(sigma);
      time_kernel(name + " blur " + std::to_string(static_cast<int>(sigma)), pixel, pixel, kWidth, kHeight,
                  [&](cudaStream_t stream, const gpu::DevicePicture& source, const gpu::DevicePicture& target) {
                    return gpu::image_kernels().blur(stream, source, target, blur.kernel(), blur.chroma_kernel());
                  });
    }
  }
}

TEST_CASE("times of painting 4K pictures" * doctest::skip()) {
  const GpuValue<mr_device_tick> tick({});
  const std::array<const char*, 3> names = {"bars", "gradient", "disc"};
  for (const Pattern pattern : {Pattern::bars, Pattern::gradient, Pattern::disc})
    for (const Pixel pixel : {Pixel::rgb8, Pixel::rgba8, Pixel::nv12})
      time_kernel(std::string(names[static_cast<size_t>(pattern)]) + " " + std::string(name_of(pixel)), Pixel::gray8,
                  pixel, kWidth, kHeight,
                  [&](cudaStream_t stream, const gpu::DevicePicture&, const gpu::DevicePicture& target) {
                    return gpu::image_kernels().paint(stream, pattern, tick.get(), target);
                  });
}
