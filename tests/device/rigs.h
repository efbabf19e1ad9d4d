// The implementations of Device that the conformance suite runs against, each with pinned host memory beside it.
#pragma once

#include <doctest/doctest.h>

#include <cstring>
#include <memory>
#include <thread>
#include <vector>

#include "device/cpu/cpu_device.h"
#include "device/sim/sim.h"
#include "device/timeline.h"
#include "observe/error.h"

namespace millrace::device::test {

constexpr uint64_t kMemory = 1 << 20;

// A body: `run` is called on the device's time with the body as its context.
// Appends its number to a list that only this device's bodies touch.
struct Append {
  std::vector<int>* list;
  int number;
  int64_t cost_ns = 10;
  static constexpr const char* kName = "append";
  static void run(void* context) {
    const auto* self = static_cast<Append*>(context);
    self->list->push_back(self->number);
  }
};

// Adds one to every byte.
struct Increment {
  std::byte* bytes;
  uint64_t count;
  int64_t cost_ns = 50;
  static constexpr const char* kName = "increment";
  static void run(void* context) {
    const auto* self = static_cast<Increment*>(context);
    for (uint64_t i = 0; i < self->count; ++i)
      self->bytes[i] = static_cast<std::byte>(std::to_integer<int>(self->bytes[i]) + 1);
  }
};

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
  std::byte* pinned_host(uint64_t bytes) { return allocate(host, bytes, {true}); }
  std::byte* on_device(uint64_t bytes) { return allocate(*device, bytes); }

  template <class Body>
  void run(Stream& stream, Body& body) {
    device->run(stream, {Body::run, &body, Body::kName, body.cost_ns});
  }
};

// The host waits, as an executor does: by making the device get on, else by sleeping on the word.
inline void finish(Device& device, const Fence& fence) {
  while (!fence.done()) {
    if (device.force(fence)) continue;
    const uint64_t seen = fence.word->load();
    if (device.enqueuing())
      std::this_thread::yield(); // such a device notifies an event count, and only after watch()
    else if (seen < fence.sequence)
      fence.word->wait(seen);
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
// Gives the device a body that enqueues: `enqueue` puts what runs on the device's time behind what is in the stream.
template <class Body, class Enqueue>
void run_enqueuing(Device& device, Stream& stream, Body& body, const Enqueue& enqueue) {
  auto call = [&] { enqueue(stream.native, body); };
  const auto run = [](void* context) { (*static_cast<decltype(call)*>(context))(); };
  device.enqueuing()->call(stream, {run, &call, Body::kName});
}

template <bool adversarial>
struct EnqueuingRig : Rig {
  EnqueuingRig() {
    SimOptions options = sim_options(*this);
    options.enqueues = true;
    options.adversarial = adversarial;
    options.seed = 17;
    device = make_sim(options);
  }
  template <class Body>
  void run(Stream& stream, Body& body) {
    run_enqueuing(*device, stream, body, [](void* native, Body& of) {
      static_cast<SimQueue*>(native)->launch([at = &of] { Body::run(at); });
    });
  }
};
using EnqueuingThreadsRig = EnqueuingRig<false>;
using EnqueuingAdversaryRig = EnqueuingRig<true>;

} // namespace millrace::device::test

TYPE_TO_STRING_AS("cpu", millrace::device::test::CpuRig);
TYPE_TO_STRING_AS("sim, threads", millrace::device::test::ThreadedRig);
TYPE_TO_STRING_AS("sim, virtual", millrace::device::test::VirtualRig);
TYPE_TO_STRING_AS("sim, adversarial", millrace::device::test::AdversarialRig);
TYPE_TO_STRING_AS("sim, bodies enqueue, threads", millrace::device::test::EnqueuingThreadsRig);
TYPE_TO_STRING_AS("sim, bodies enqueue, adversarial", millrace::device::test::EnqueuingAdversaryRig);
