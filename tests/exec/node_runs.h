// The runs of the nodes that run one graph together, on one virtual time: a plan and a run for each of them. How their
// crossings are joined is for others to say.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "exec/virtual_driver.h"
#include "harness.h"

namespace millrace::plan {
struct CrossingPlan;
}

namespace millrace::test {

class NodeRuns {
 public:
  // `setup` is that of each node. Virtual time is set. `own_times`: the nodes' own, by node; empty: the virtual one.
  // `tells_after_ns`: how long a node takes to hear that a stream has failed on another one; null: no time.
  NodeRuns(const Pipeline& pipeline, const std::vector<std::string>& names, const Setup& setup,
           device::VirtualTime& time, const std::vector<const device::Timeline*>& own_times = {},
           const std::function<int64_t(size_t from, size_t to)>& tells_after_ns = {});

  // A crossing as the plans of both nodes have it.
  struct Crossing {
    size_t from = 0, to = 0; // nodes
    const plan::CrossingPlan* out = nullptr;
    const plan::CrossingPlan* in = nullptr;
  };
  // Throws if one has no other end.
  std::vector<Crossing> crossings() const;

  // Starts all runs, and adds them to the driver.
  void start(exec::VirtualDriver& driver);
  // The result, and what the handlers of all nodes saw; after the drive. Throws if the nodes do not agree how it ended.
  // A node whose process has died has no report: only what its handlers saw counts.
  Ran wait(std::optional<size_t> dead = std::nullopt);

  size_t size() const { return runs_.size(); }
  Compiled& operator[](size_t node) { return *runs_[node]; }
  const Compiled& operator[](size_t node) const { return *runs_[node]; }

 private:
  void tell_all(size_t node, const exec::FailureRecord& failure);
  void tell_stream(size_t from, size_t to, exec::FailureRecord failure);

  std::vector<std::string> names_;
  device::VirtualTime& time_;
  std::function<int64_t(size_t from, size_t to)> tells_after_ns_;
  std::multimap<int64_t, std::function<void()>> untold_; // by when it is heard
  std::vector<std::unique_ptr<Compiled>> runs_;          // by node
};

} // namespace millrace::test
