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

// What a device whose bodies enqueue takes on each tick beside bodies and bytes: how far apart ticks of a region
// without a body are, many of them under way, and how much farther where each waits for a copy up and is waited for by
// one down. `on_host`, pinned, and `on_device` have room for 128 bytes. Domain "": it cannot be measured there.
plan::LaunchCost measure_launch(device::Device& device, std::byte* on_host, std::byte* on_device);
// Of all domains that have such a device. Throws Failure (MR0701).
std::vector<plan::LaunchCost> measure_launches(const MachineFile& machine, const std::vector<std::string>& domains);

// Runs the pipeline in each of the domains, as far as its handlers run there, for so many ticks under `free`, and says
// what their calls took. Throws Failure.
std::vector<plan::BodyCost> measure_bodies(const std::function<graph::Graph()>& load, const plugin::Registry& registry,
                                           const mr_host& host, const Choices& choices, uint64_t ticks);

// What was measured replaces what was known of the same hops, bodies and devices.
void merge(MachineFile& file, std::vector<plan::Hop> hops, std::vector<plan::BodyCost> bodies,
           std::vector<plan::LaunchCost> launches = {});

} // namespace millrace::embed
