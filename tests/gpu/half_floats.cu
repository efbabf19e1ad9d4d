// Float16 and BFloat16 in kernels against the host.
#include <doctest/doctest.h>
#include <millrace/payload/half_floats.h>

#include <bit>
#include <cmath>
#include <cstring>
#include <random>
#include <vector>

#include "on_gpu.h"
#include "tests/seed.h"

using namespace millrace;
using namespace millrace::handlers;

namespace {

constexpr uint32_t kThreads = 256;

template <class Half>
__global__ void round_all(const float* from, Half* to, float* back, uint32_t count) {
  const uint32_t at = blockIdx.x * kThreads + threadIdx.x;
  if (at >= count) return;
  to[at] = Half(from[at]);
  back[at] = to[at];
}

template <class Half>
void device_rounds_as_the_host(const std::vector<float>& numbers) {
  const auto count = static_cast<uint32_t>(numbers.size());
  GpuBytes from(count * sizeof(float)), to(count * sizeof(Half)), back(count * sizeof(float));
  from.upload(numbers.data());
  round_all<<<(count + kThreads - 1) / kThreads, kThreads>>>(reinterpret_cast<const float*>(from.data()),
                                                             reinterpret_cast<Half*>(to.data()),
                                                             reinterpret_cast<float*>(back.data()), count);
  checked(cudaGetLastError(), "round_all");
  std::vector<Half> halves(count);
  std::vector<float> floats(count);
  to.download(halves.data());
  back.download(floats.data());
  uint32_t differing = 0;
  for (uint32_t i = 0; i < count; ++i) {
    if (std::isnan(numbers[i])) // a NaN may have other bits
      differing += !std::isnan(float{halves[i]}) || !std::isnan(floats[i]);
    else
      differing += halves[i].bits != Half(numbers[i]).bits ||
                   std::bit_cast<uint32_t>(floats[i]) != std::bit_cast<uint32_t>(float{halves[i]});
  }
  CHECK(differing == 0);
}

} // namespace

TEST_CASE("kernels convert 16-bit numbers as the host does") {
  const uint32_t seed = random_seed();
  INFO("MILLRACE_SEED=", seed);
  std::mt19937_64 draw(seed);
  std::vector<float> numbers;
  for (uint32_t bits = 0; bits < 0x10000; ++bits) {
    numbers.push_back(Float16::of_bits(static_cast<uint16_t>(bits)));
    numbers.push_back(BFloat16::of_bits(static_cast<uint16_t>(bits)));
    // Half way between two neighbours of each type.
    numbers.push_back(std::bit_cast<float>(bits << 16 | 0x8000u));
    numbers.push_back(std::bit_cast<float>(bits << 13 | 0x1000u));
  }
  for (int n = 0; n < 1'000'000; ++n) numbers.push_back(std::bit_cast<float>(static_cast<uint32_t>(draw())));
  device_rounds_as_the_host<Float16>(numbers);
  device_rounds_as_the_host<BFloat16>(numbers);
}
