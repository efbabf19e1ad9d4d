// Wakes the workers that may go on when something has moved. Private to runtime/exec.
//
// A cluster is a set of paces that channels or leaders join, directly or through others. Steps wait only for steps of
// their own cluster, for a device or for a time. So a step that moves rings the bells of the workers that are home to
// segments of its cluster; a device that moves, and what concerns the whole run, ring all bells.
//
// A home that is in a call of another segment cannot come. Then a sleeping worker that helps others is woken in its
// place (docs/decisions/0005).
#pragma once

#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "device/bells.h"

namespace millrace::exec {

class RunState;
struct SegmentRun;

// A set of workers. Any thread may ask it while another one changes it.
class WorkerSet {
 public:
  explicit WorkerSet(size_t workers) : words_((workers + kBits - 1) / kBits) {}
  void clear() {
    for (auto& word : words_) word.store(0, std::memory_order_relaxed);
  }
  void add(size_t worker) { words_[worker / kBits].fetch_or(bit(worker), std::memory_order_relaxed); }
  bool has(size_t worker) const { return (words_[worker / kBits].load(std::memory_order_relaxed) & bit(worker)) != 0; }
  // Calls f(worker) for each, until it returns true.
  template <class F>
  void find(F f) const {
    for (size_t w = 0; w < words_.size(); ++w)
      for (uint64_t word = words_[w].load(std::memory_order_relaxed); word != 0; word &= word - 1)
        if (f(w * kBits + static_cast<size_t>(std::countr_zero(word)))) return;
  }

 private:
  static constexpr size_t kBits = 64;
  static uint64_t bit(size_t worker) { return uint64_t{1} << (worker % kBits); }
  std::vector<std::atomic<uint64_t>> words_;
};

struct Cluster {
  explicit Cluster(size_t workers) : homes(workers), homes_of_several(workers) {}
  // cut
  WorkerSet homes;            // the homes of its segments
  WorkerSet homes_of_several; // those that are home to more than one
};

// The workers' bells, and the segments that the workers are busy with.
class Wakeup {
 public:
  explicit Wakeup(size_t workers) : bells(std::make_shared<device::Bells>(workers)), helpers(workers), busy_(workers) {}

  // Something of the cluster has moved: a step of the segment `moved`, whose claimer calls this, or, if that is null,
  // something that another thread does.
  void ring(const Cluster& cluster, const SegmentRun* moved) {
    if (bells->any_waits()) ring_sleepers(cluster, moved);
  }
  // Wakes a worker that sleeps and may run segments whose home is this one, if there is one.
  void ring_helper_of(size_t home);

  // The segment that the worker has claimed; null: none. The worker writes it.
  std::atomic<const SegmentRun*>& busy(size_t worker) { return busy_[worker].with; }

  const std::shared_ptr<device::Bells> bells; // built. Shared with devices, which may ring when the run is gone
  WorkerSet helpers;                          // cut: the workers that also look at segments of other homes

 private:
  struct alignas(64) Busy { // a line of its own: helpers look at it
    std::atomic<const SegmentRun*> with{nullptr};
  };
  void ring_sleepers(const Cluster& cluster, const SegmentRun* moved);
  std::vector<Busy> busy_;
};

} // namespace millrace::exec
