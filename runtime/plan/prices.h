// Measured times, of which the plan's prices are made.
#pragma once

#include <cstdint>
#include <string>

#include "plan/hops.h"

namespace millrace::graph {
struct Handler;
}

namespace millrace::plan {

struct Plan;

// The time of a handler's calls in a domain, as measured there.
struct BodyCost {
  std::string type, settings; // its parameters as declared, sorted: "radius=3 sigma=2"
  std::string domain;
  uint64_t bytes = 0; // the most that its inputs hold; for a source, its outputs
  double mean_us = 0, p50_us = 0, p99_us = 0;
  uint64_t calls = 0; // number of calls measured
  uint32_t items = 1; // items of a call
};

// The time that a device takes on each tick beside its bodies and the bytes that are copied.
struct LaunchCost {
  std::string domain;
  double region_us = 0; // per region: its launch, its tick's numbers, its signal
  double copy_us = 0;   // per copy: its submission, and the waits before and after it
};

// The keys of a measured body beside its type and domain: its settings, and the most bytes that its inputs hold (for a
// source, its outputs).
std::string settings_of(const graph::Handler& declared);
uint64_t bytes_read(const Plan& plan, uint32_t handler);

} // namespace millrace::plan
