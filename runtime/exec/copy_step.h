// Copies between domains (copy_step.cpp).
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "exec/step.h"

namespace millrace::exec {

// A copy under way.
struct CopyCall {
  StepRun* step = nullptr;
  mr_tick_info info{};
  int64_t begun = 0, begun_ns = 0; // trace time, and the run's
  // Blocks that are copied, and what to.
  std::vector<std::pair<memory::Block*, memory::Block*>> carried;
  bool brings_presence = false; // the device decides about one of them
};

StepResult run_transfer(StepRun& step, uint64_t ordinal);

} // namespace millrace::exec
