// Shared by the tests of codebooks: the published data, fits of them, and mixtures.
#pragma once

#include <cstdint>
#include <vector>

#include "plugins/codebook/fingerprint.h"
#include "plugins/codebook/fit.h"
#include "plugins/codebook/test_data.h"

namespace millrace::codebook {

inline std::vector<Float16> waves(uint32_t count, uint32_t dimensions) {
  std::vector<Float16> vectors(size_t{count} * dimensions);
  make_waves(dimensions, vectors);
  return vectors;
}

inline std::vector<Float16> mixture(uint32_t count, uint32_t dimensions, uint32_t centers, float spread,
                                    uint64_t seed) {
  std::vector<Float16> vectors(size_t{count} * dimensions);
  make_mixture(dimensions, centers, spread, seed, vectors);
  return vectors;
}

template <class Element>
Points points_of(const std::vector<Element>& vectors, uint32_t dimensions, Metric metric = Metric::l2,
                 BadRows bad = BadRows::refuse) {
  return make_points(std::span<const Element>(vectors), dimensions, metric, bad);
}

inline Fit fit_of(const Points& points, const FitSettings& settings, uint32_t threads = 1, const Rows& given = {}) {
  Crew crew(threads);
  return fit(points, settings, given, crew);
}

inline std::vector<Float16> halves_of(const Rows& rows) {
  std::vector<Float16> halves;
  for (size_t row = 0; row < rows.count(); ++row)
    for (const float number : rows.numbers(row)) halves.push_back(Float16(number));
  return halves;
}

inline uint64_t fingerprint_of(const auto& values) { return fingerprint(std::as_bytes(std::span(values))); }

} // namespace millrace::codebook
