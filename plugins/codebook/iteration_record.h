// The record that codebook.fit gives for each iteration.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "millrace/payload.h"

namespace millrace::codebook {

struct IterationRecord {
  static constexpr std::string_view kSchema = "millrace.CodebookIteration";
  double energy = 0; // mean squared distance between vectors and their anchors, once those have moved
  double change = 0; // the energy less that of the iteration before; NaN in the first
  float temperature = 0;
  uint32_t changed = 0; // labels
  uint32_t anchors = 0, merged = 0, split = 0, empty = 0;
  uint32_t converged = 0; // 1: the fit ended here because it was calm for three iterations
  static std::vector<mr_field> fields() {
    return {field("energy", &IterationRecord::energy),
            field("change", &IterationRecord::change),
            field("temperature", &IterationRecord::temperature),
            field("changed", &IterationRecord::changed),
            field("anchors", &IterationRecord::anchors),
            field("merged", &IterationRecord::merged),
            field("split", &IterationRecord::split),
            field("empty", &IterationRecord::empty),
            field("converged", &IterationRecord::converged)};
  }
};

} // namespace millrace::codebook
