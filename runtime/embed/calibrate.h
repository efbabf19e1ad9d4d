// Measures the costs that the plan uses: hops between domains, launches on devices, and the bodies of handlers.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "embed/compose.h"

namespace millrace::embed {

// Measures every hop between the domains: the times of copies of plan::kHopSizes bytes, median and p99; the same from
// pageable memory, through a pinned block, as the runtime does it; and if a copy overlaps with compute, and with a copy
// in the other direction. Throws Failure (MR0701).
std::vector<plan::Hop> measure_hops(const MachineFile& machine, const std::vector<std::string>& domains);

// Measures the cost of a tick on a device whose bodies enqueue, apart from bodies and bytes. region_us is the time
// between ticks of a region without a body, with many ticks under way. copy_us is half of the time that is added if
// each tick waits for a copy up, and a copy down waits for the tick. `on_host`, which is pinned, and `on_device` have
// room for 128 bytes. Returns domain "" if the device cannot be measured.
plan::LaunchCost measure_launch(device::Device& device, std::byte* on_host, std::byte* on_device);
// Measures all domains that have such a device. Throws Failure (MR0701).
std::vector<plan::LaunchCost> measure_launches(const MachineFile& machine, const std::vector<std::string>& domains);

// Runs the pipeline in each of the domains, as far as its handlers run there, for `ticks` ticks under `free`. Returns
// the times of their calls. Throws Failure.
std::vector<plan::BodyCost> measure_bodies(const std::function<graph::Graph()>& load, const plugin::Registry& registry,
                                           const mr_host& host, const Choices& choices, uint64_t ticks);

// Adds measurements to the file. They replace the earlier ones of the same hops, bodies and devices.
void merge(MachineFile& file, std::vector<plan::Hop> hops, std::vector<plan::BodyCost> bodies,
           std::vector<plan::LaunchCost> launches = {});

} // namespace millrace::embed
