// Makes test vectors; see test_data.h.
#include "plugins/codebook/test_data.h"

#include <cmath>
#include <vector>

#include "plugins/codebook/draw.h"

namespace millrace::codebook {

namespace {

constexpr uint32_t kUniforms = 12; // the variance of their sum is 1
constexpr double kMeansWithin = 5;

double normal(Draw& draw) {
  double sum = 0;
  for (uint32_t n = 0; n < kUniforms; ++n) sum += draw.unit();
  return sum - kUniforms / 2.0;
}

} // namespace

void make_waves(uint32_t dimensions, std::span<Float16> vectors) {
  for (size_t at = 0; at < vectors.size(); ++at) {
    const float angle = 0.1f * static_cast<float>(at);
    const auto sine = static_cast<float>(std::sin(double{angle}));
    const auto third = static_cast<float>(at / dimensions % 3);
    vectors[at] = Float16(5 * third + 0.5f * sine);
  }
}

void make_mixture(uint32_t dimensions, uint32_t centers, float spread, uint64_t seed, std::span<Float16> vectors) {
  Draw draw(seed);
  std::vector<double> means(size_t{centers} * dimensions);
  for (double& mean : means) mean = (2 * draw.unit() - 1) * kMeansWithin;
  for (size_t at = 0; at < vectors.size(); ++at) {
    const double mean = means[at / dimensions % centers * dimensions + at % dimensions];
    vectors[at] = Float16(static_cast<float>(mean + double{spread} * normal(draw)));
  }
}

} // namespace millrace::codebook
