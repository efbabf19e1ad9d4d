// Measures the cost of an empty timing span, which is subtracted from the measured times of bodies.
#include <algorithm>
#include <thread>
#include <vector>

#include "device/device.h"
#include "exec/region.h"
#include "exec/run_state.h"

namespace millrace::exec {

namespace {

// The number of empty spans that are measured; their median counts.
constexpr size_t kEmptySpans = 15;

} // namespace

void measure_empty_span(RegionRun& region) {
  if (region.recordings.empty() || !region.steps[0]->on.enqueuing) return;
  BodyRun& first = *region.steps[0];
  device::Device& device = *first.on.device;
  device::Enqueuing& enqueuing = *first.on.enqueuing;
  std::vector<int64_t> took;
  size_t spans = 0;
  const auto tell = [](void* context, int64_t ns) { static_cast<std::vector<int64_t>*>(context)->push_back(ns); };
  enqueuing.pause(*first.on.stream);
  while (spans < kEmptySpans && enqueuing.begin_span(*first.on.stream)) {
    enqueuing.end_span(*first.on.stream, {tell, &took});
    ++spans;
  }
  enqueuing.resume(*first.on.stream);
  const device::Fence fence = device.signal(*first.on.stream);
  while (!fence.done())
    if (!device.force(fence)) std::this_thread::yield();
  for (; took.size() < spans && device.status().ok(); std::this_thread::yield()) enqueuing.collect_spans();
  if (took.empty()) return;
  const auto middle = took.begin() + static_cast<std::ptrdiff_t>(took.size() / 2);
  std::nth_element(took.begin(), middle, took.end());
  for (BodyRun* step : region.steps) step->empty_span_ns = *middle;
}

} // namespace millrace::exec
