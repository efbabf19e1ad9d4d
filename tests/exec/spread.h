// A graph that several nodes run together: a plan and a run for each of them, all on one virtual time, and links
// between them that take time and may be cut.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "node_runs.h"

namespace millrace::test {

// One direction between two nodes.
struct Link {
  int64_t latency_ns = 0;
  double ns_per_byte = 0;
  std::vector<std::pair<int64_t, int64_t>> cuts; // begin and end: nothing that would arrive then does before the end
  int64_t away_after_ns = 0; // both ends are told that the other node is away, so long after a cut began; 0: never
};

// The process of a node ends, and no other one comes. Those that have a link to it are told so a while later.
struct Death {
  size_t node = 0;
  int64_t at_ns = 0;
  int64_t told_after_ns = 0;
};

struct Nodes {
  std::vector<std::string> names = {"home"};
  std::function<Link(size_t from, size_t to)> link = [](size_t, size_t) { return Link{}; }; // asked for each message
  std::vector<const device::Timeline*> own_times; // by node; empty: the virtual time
  // How long a node takes to hear that a stream has failed on another one; null: no time.
  std::function<int64_t(size_t from, size_t to)> tells_after_ns{};
  std::optional<Death> death{};
  int64_t stop_at_ns = 0; // all runs are told to stop, as by a first signal; 0: never
};

// A parcel with bytes of its own, as a network carries it.
struct Message;

class Spread {
 public:
  // `setup` is that of each node. Virtual time is set, to `setup.time` if that is there.
  Spread(const Pipeline& pipeline, const Nodes& nodes, const Setup& setup = {});
  ~Spread();
  // The first error of any node, and what the handlers of all nodes saw.
  Ran run();
  const Compiled& on(size_t node) const { return runs_[node]; }
  exec::Run& live(size_t node) { return runs_[node].live(); }
  device::VirtualTime& time() { return time_; }
  // The parcels that went over links, without ends.
  uint64_t parcels() const { return parcels_; }
  int64_t now_ns() const { return time_.now_ns(); }
  Report report_of(size_t node); // after run()

 private:
  struct Crossing;
  void plan_death();
  void plan_stop();
  bool is_dead(size_t node) const { return is_dead_ && node == nodes_.death->node; }
  bool tell_clocks_over();
  void tell_cuts(Crossing& crossing, const Link& link);
  bool move(Crossing& crossing);
  int64_t arrival_ns(size_t from, size_t to, int64_t bytes);

  Nodes nodes_;
  device::VirtualTime time_here_;
  device::VirtualTime& time_;
  NodeRuns runs_;
  std::vector<std::unique_ptr<Crossing>> crossings_;
  std::map<std::pair<size_t, size_t>, int64_t> free_at_ns_; // when a link has sent what it was given
  uint64_t parcels_ = 0;
  bool is_dead_ = false, are_clocks_over_ = false;
};

} // namespace millrace::test
