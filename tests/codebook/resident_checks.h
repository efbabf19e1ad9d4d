// Compares fits to the bit.
#pragma once

#include <doctest/doctest.h>

#include <cmath>
#include <vector>

#include "resident_rig.h"

namespace millrace::codebook {

inline bool is_alike(const IterationRecord& one, const IterationRecord& other) {
  const bool changes_alike = one.change == other.change || (std::isnan(one.change) && std::isnan(other.change));
  return one.energy == other.energy && changes_alike && one.temperature == other.temperature &&
         one.changed == other.changed && one.anchors == other.anchors && one.merged == other.merged &&
         one.split == other.split && one.empty == other.empty && one.converged == other.converged;
}

inline void check_alike(const GivenFit& made, const GivenFit& expected) {
  const auto bits = [](const std::vector<Float16>& numbers) {
    std::vector<uint16_t> all;
    for (const Float16 number : numbers) all.push_back(number.bits);
    return all;
  };
  CHECK(made.outcome.fault == Fault::none);
  CHECK(made.outcome.used == expected.outcome.used);
  CHECK(made.outcome.anchors == expected.outcome.anchors);
  CHECK(made.labels == expected.labels);
  CHECK(bits(made.codebook) == bits(expected.codebook));
  CHECK(bits(made.deviations) == bits(expected.deviations));
  REQUIRE(made.iterations.size() == expected.iterations.size());
  for (size_t n = 0; n < made.iterations.size(); ++n) {
    CAPTURE(n);
    CHECK(is_alike(made.iterations[n], expected.iterations[n]));
  }
}

} // namespace millrace::codebook
