// Measures what the plan prices: hops between domains, and the bodies of handlers.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "embed/compose.h"

namespace millrace::embed {

// Every hop between the domains: times of copies as large as plan::kHopSizes, median and p99; the same from pageable
// memory, by way of a pinned block, as the runtime does it; whether a copy overlaps with compute, and with one in the
// other direction. Throws Failure (MR0701).
std::vector<plan::Hop> measure_hops(const MachineFile& machine, const std::vector<std::string>& domains);

// Runs the pipeline in each of the domains, as far as its handlers run there, for so many ticks under `free`, and says
// what their calls took. Throws Failure.
std::vector<plan::BodyCost> measure_bodies(const std::function<graph::Graph()>& load, const plugin::Registry& registry,
                                           const mr_host& host, const Choices& choices, uint64_t ticks);

// What was measured replaces what was known of the same hops and bodies.
void merge(MachineFile& file, std::vector<plan::Hop> hops, std::vector<plan::BodyCost> bodies);

} // namespace millrace::embed
