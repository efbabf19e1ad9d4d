// Tests acme.invert alone: no runtime, no pipeline.
#include "../src/invert.cpp" // the class is private to its file

#ifdef ACME_CUDA
#include <cuda_runtime.h>
#endif
#include <millrace/testing.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <vector>

namespace {

int failures = 0;

// Unlike assert(), this also checks in a release build.
void check(bool holds, const char* sentence) {
  if (!holds) std::fprintf(stderr, "not true: %s\n", sentence);
  if (!holds) ++failures;
}

// The first byte of the handler's result for a picture that is 10 everywhere.
int made_of_ten(const char* strength) {
  mr::testing::HandlerTest<Invert> test({{"strength", strength}});
  test.input("video", mr::testing::image(mr::Pixel::rgb8, 5, 3, 10));
  const mr::testing::Result result = test.tick();
  if (!result.ok()) std::fprintf(stderr, "the handler failed: %s\n", result.error.c_str());
  return result.ok() ? result.image("video").row(0)[0] : -1;
}

#ifdef ACME_CUDA
constexpr uint32_t kWidth = 256, kHeight = 5; // a row has every value of a byte once

bool has_gpu() {
  int count = 0;
  return cudaGetDeviceCount(&count) == cudaSuccess && count > 0; // without a driver the call returns an error
}

// The largest difference of a byte between the results of the kernel and the CPU body for one picture.
int difference_at(const char* strength) {
  const mr::testing::Value picture =
      mr::testing::image(mr::Pixel::gray8, kWidth, kHeight, [](auto x, auto y, auto) { return x + y; });
  mr::testing::HandlerTest<Invert> test({{"strength", strength}});
  test.input("video", picture);
  const mr::testing::Result result = test.tick();
  const mr::ImageView on_cpu = result.image("video");
  const mr::ImageSpan from = picture.image();

  const size_t bytes = size_t{from.stride()} * kHeight;
  uint8_t* device = nullptr;
  if (cudaMalloc(&device, 2 * bytes) != cudaSuccess) return 256;
  std::vector<uint8_t> on_gpu(bytes);
  cudaMemcpy(device, from.row(0), bytes, cudaMemcpyHostToDevice);
  enqueue_invert(nullptr, {device + bytes, from.stride()}, {device, from.stride()}, kWidth, kHeight,
                 std::strtof(strength, nullptr));
  const cudaError_t error = cudaMemcpy(on_gpu.data(), device + bytes, bytes, cudaMemcpyDeviceToHost);
  cudaFree(device);
  if (error != cudaSuccess) std::fprintf(stderr, "the kernel failed: %s\n", cudaGetErrorString(error));
  int most = error == cudaSuccess ? 0 : 256;
  for (uint32_t y = 0; y < kHeight; ++y)
    for (uint32_t x = 0; x < kWidth; ++x)
      most = std::max(most, std::abs(on_gpu[y * from.stride() + x] - on_cpu.row(y)[x]));
  return most;
}

void check_the_kernel() {
  std::printf(has_gpu() ? "the kernel runs\n" : "there is no GPU: the kernel is not run\n");
  if (!has_gpu()) return;
  for (const char* strength : {"0", "0.3", "0.5", "1"})
    check(difference_at(strength) <= 1, "the kernel is the CPU body's to one step"); // they may round differently
}
#else
void check_the_kernel() { std::printf("built without nvcc: there is no kernel\n"); }
#endif

} // namespace

int main() {
  check(made_of_ten("1") == 245, "at strength 1 the picture is inverted");
  check(made_of_ten("0") == 10, "at strength 0 the picture stays as it is");
  check_the_kernel();
  return failures == 0 ? 0 : 1;
}
