// The implementations of Device that the conformance suite runs against, each with pinned host memory beside it.
#pragma once

#include <doctest/doctest.h>

#include <cstring>
#include <memory>

#include "device/cpu/cpu_device.h"
#include "device/sim/sim.h"
#include "observe/error.h"

namespace millrace::device::test {

constexpr uint64_t kMemory = 1 << 20;

// A device, and the host memory that its copies reach.
struct Rig {
  std::shared_ptr<PinnedRanges> pinned = std::make_shared<PinnedRanges>();
  CpuDevice host{pinned};
  std::unique_ptr<Device> device;

  std::byte* allocate(Device& from, uint64_t bytes, ArenaProperties properties = {}) {
    DeviceStatus status;
    Arena* arena = from.allocate(bytes, properties, status);
    REQUIRE_MESSAGE(arena, status.sentence);
    return arena->base;
  }
  std::byte* pinned_host(uint64_t bytes) { return allocate(host, bytes, {true, false}); }
  std::byte* on_device(uint64_t bytes) { return allocate(*device, bytes); }
};

// The host waits, as an executor does: by making the device get on, else by sleeping on the word.
inline void finish(Device& device, const Fence& fence) {
  while (!fence.done()) {
    if (device.force(fence)) continue;
    const uint64_t seen = fence.word->load();
    if (seen < fence.sequence) fence.word->wait(seen);
  }
}

inline SimOptions sim_options(const Rig& rig) {
  SimOptions options;
  options.bytes_limit = kMemory;
  options.pinned = rig.pinned;
  return options;
}

struct CpuRig : Rig {
  CpuRig() { device = std::make_unique<CpuDevice>(pinned, kMemory); }
};
struct ThreadedRig : Rig {
  ThreadedRig() { device = make_sim(sim_options(*this)); }
};
struct VirtualRig : Rig {
  VirtualTime time;
  VirtualRig() {
    SimOptions options = sim_options(*this);
    options.time = &time;
    options.latency_ns = 100;
    device = make_sim(options);
  }
  ~VirtualRig() { device.reset(); }
};
struct AdversarialRig : Rig {
  AdversarialRig() {
    SimOptions options = sim_options(*this);
    options.adversarial = true;
    options.seed = 17;
    device = make_sim(options);
  }
};

} // namespace millrace::device::test

TYPE_TO_STRING_AS("cpu", millrace::device::test::CpuRig);
TYPE_TO_STRING_AS("sim, threads", millrace::device::test::ThreadedRig);
TYPE_TO_STRING_AS("sim, virtual", millrace::device::test::VirtualRig);
TYPE_TO_STRING_AS("sim, adversarial", millrace::device::test::AdversarialRig);
