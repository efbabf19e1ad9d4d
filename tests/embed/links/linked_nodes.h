// A graph that several nodes run together over a simulated network: a run for each node, a session for each pair of
// nodes with a crossing, and faults of the network. A history sees each parcel at both ends.
//
// Everything is on one virtual time. A node has a process of the simulated network for each of its peers, at an address
// of its own, so that lines and faults of each pair are its own too.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "embed/link_ends.h"
#include "tests/exec/node_runs.h"
#include "tests/net/sim/process.h"

namespace millrace::test {

// How the network is.
struct Wires {
  uint64_t seed = 1;
  // Sets each direction of each pair of nodes, and again at a fault that changes the lines.
  std::function<void(net::sim::Line&, Random&)> line = [](net::sim::Line&, Random&) {};
  uint32_t data_lanes = 1;
  bool checks_bodies = true;
  int64_t wake_ns_most = 0;
  uint32_t faults = 0;   // cuts, connections that are held or lose bytes, blocked directions, processes that stop
  int64_t faults_ns = 0; // they are drawn from this first time
};

class LinkedNodes {
 public:
  LinkedNodes(const Pipeline& pipeline, const std::vector<std::string>& names, const Wires& wires,
              const Setup& setup = {});
  ~LinkedNodes();

  // Drives the runs to their end, lets the links drain, and waits for the runs. The error is of the first run that
  // failed. At the limit of virtual time all processes are killed: then the runs fail, because nothing can move, and
  // the error says what they wait for.
  Ran run(int64_t limit_ns = 600 * net::kSecond);

  // ---- after run() ----

  // The first promise of a link that was broken; "" if none was.
  const std::string& broken() const { return history_.failure(); }
  uint64_t parcels() const { return parcels_; } // that arrived, without ends
  uint64_t cuts() const { return cuts_; }       // connections that a fault has ended
  uint64_t sessions_came_back() const;          // after a cut of a control connection
  int64_t took_ns() const { return took_ns_; }  // until the runs were over
  // By the ends of runs, in all calls that followed the first `kWarm` parcels of each.
  uint64_t allocations() const;
  // In sessions, of values that came with small records. The ends of runs copy nothing.
  uint64_t bytes_copied() const;
  const Compiled& on(size_t node) const { return runs_[node]; }
  NodeRuns& runs() { return runs_; }

  static constexpr uint64_t kWarm = 2;

 private:
  class Departs;
  class Arrives;
  // One node's side of a link.
  struct Side {
    net::sim::Process* process = nullptr;
    std::vector<embed::LinkEnd> ends;
    std::vector<std::unique_ptr<Departs>> departures;
    std::vector<std::unique_ptr<Arrives>> arrivals;
  };

  void make_link(size_t dialler, size_t listener);
  void make_side(size_t node, size_t peer, bool dials);
  void draw_lines();
  void plan_faults();
  void fault();
  void cut();
  void block();
  bool wake_changed();
  void give_up();
  void drain();
  net::sim::Address address(size_t node, size_t peer) const { return static_cast<uint32_t>(1 + node * 64 + peer); }
  void after(int64_t ns, std::function<void()> call) { time_.schedule(time_.now_ns() + ns, std::move(call)); }

  std::vector<std::string> names_;
  Wires wires_;
  Random random_;
  device::VirtualTime time_;
  net::sim::Network network_;
  net::sim::History history_;
  NodeRuns runs_;
  const std::vector<net::sim::CrossingSetup> no_crossings_; // those are made by simulated runs
  std::vector<std::pair<net::sim::Address, net::sim::Address>> lines_;
  std::vector<std::unique_ptr<Side>> sides_;
  std::vector<std::unique_ptr<net::sim::Process>> processes_;
  bool is_over_ = false, is_stuck_ = false;
  uint64_t parcels_ = 0, cuts_ = 0;
  int64_t took_ns_ = 0;
};

} // namespace millrace::test
