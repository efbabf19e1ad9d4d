// Compares fits to the bit.
#pragma once

#include <doctest/doctest.h>

#include <cmath>
#include <optional>
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

// Compares a random fit that was made by steps with the host's own; or sees that both refuse it.
template <class Element, class Make>
void compare(const Question<Element>& asked, uint32_t host_threads, Make&& make) {
  CAPTURE(asked.count());
  CAPTURE(asked.dimensions);
  CAPTURE(asked.settings.anchors);
  CAPTURE(static_cast<int>(asked.settings.start));
  CAPTURE(static_cast<int>(asked.settings.mean));
  CAPTURE(static_cast<int>(asked.settings.maintenance));
  if (asked.settings.anchors == 0) return;
  std::optional<GivenFit> expected;
  try {
    expected = by_host(asked, host_threads);
  } catch (const BadVectors&) { // all zeros have no direction
  }
  const GivenFit made = make();
  if (expected)
    check_alike(made, *expected);
  else
    CHECK(made.outcome.fault != Fault::none);
}

} // namespace millrace::codebook
