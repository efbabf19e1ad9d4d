// A device whose bodies enqueue, as a GPU's do, without a GPU: "kernels" are functions in a queue, memory is the
// host's. Nothing runs before somebody who waits makes it, and then streams take turns in an order that the seed gives;
// or a thread of its own runs it, in the time that it takes.
#pragma once

#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <random>
#include <string>
#include <vector>

#include "device/device.h"

struct mr_device_tick;

namespace millrace::test {

// What Cuda::stream() points to.
struct Queue {
  std::vector<std::function<void()>>* kernels = nullptr;
  void launch(std::function<void()> kernel) { kernels->push_back(std::move(kernel)); }
};

// What strikes, counted from 1 in the order of the calls; 0: nothing.
struct EnqueuingFaults {
  uint64_t capture = 0; // this recording cannot be had
  uint64_t launch = 0;  // the device fails at this replay
};

// Of a device that works by itself. Like hardware it rings for nobody who has not asked it to watch.
struct Hardware {
  std::function<int64_t(uint64_t replay)> takes_ns; // each replay, counted from 0
  std::function<void(uint64_t replay)> ends = [](uint64_t) {};
  std::function<void()> warmed_up = [] {};
  std::function<void(uint64_t replays)> asked_to_watch = [](uint64_t) {}; // behind so many of them; any thread
};

// Who is told of calls, in their order, and says how long spans are; without one there are no spans.
struct Watcher {
  std::function<void(const std::string& call)> called; // "hold", "begin", "body NAME", "end", "let go"
  std::function<int64_t(size_t bodies)> span_ns;       // of a span with so many bodies in it
};

std::unique_ptr<device::Device> make_enqueuing(const std::string& domain, uint64_t seed, EnqueuingFaults faults = {},
                                               std::shared_ptr<Hardware> hardware = nullptr, Watcher watcher = {});

} // namespace millrace::test
