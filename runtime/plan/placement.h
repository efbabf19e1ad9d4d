// Calculates from prices in which domains handlers run (semantics.md 5.3 to 5.5). Private to runtime/plan, and pure:
// numbers in, numbers out; place.cpp makes the numbers from a graph and words from the result.
//
// Problem. A handler that may run in several domains is faster in one of them, and the bytes that it reads and makes
// may have to be carried there and back. The cost of one choice depends on all the others: a copy serves every reader
// in its domain, and a full worker or copy engine delays everything that waits for it.
//
// Why this way. One evaluator prices every candidate alike: how full each worker, device and copy engine would be, then
// how long one tick takes under a list schedule on them, then how many bytes are carried. Candidates come from a
// minimum cut, which is exact if there are two domains and loads do not matter, and from moving handlers and chains one
// after another until nothing gets better. Small graphs are enumerated. Beyond 32 handlers the number of looks at
// candidates is limited: the search shifts the borders between domains, first by long runs of handlers.
//
// Nodes. The hosts of several nodes are domains like any others. A link is a hop from host to host: a way from a device
// to one of another node goes down to its host, over the link, and up. All that crosses a link in one direction takes
// turns on its engine.
//
// Streams. Streams that are alike are placed alike: a template's handlers are one task, whose loads are those of all
// streams, and whose latency is that of one. So 64 streams are placed as quickly as one.
//
// Limits. Prices do not change while it calculates. The evaluator knows contention only as queues for workers
// and engines: it assumes that kernels which share a device run one after another. A value that is read in place is
// read where it was made, never from a replica.
#pragma once

#include <cstdint>
#include <vector>

#include "plan/hops.h"

namespace millrace::plan {

inline constexpr uint32_t kDomainsMax = 64;

struct Prices {
  static constexpr double kInfeasible = HopPrice::kInfeasible;
  struct Task {
    std::vector<double> us;        // one call, by domain; kInfeasible if it cannot run there
    double share = 1;              // share of ticks on which it fires; of several streams, their sum
    std::vector<double> late_us{}; // a slow call (p99), by domain, for latency; empty: as `us`
    uint32_t streams = 1;          // streams with such a task, all in one domain; their calls may overlap
    double latency_us(uint32_t domain) const { return late_us.empty() ? us[domain] : late_us[domain]; }
  };
  struct Buffer {
    uint32_t producer = 0;
    double bytes = 0;
    std::vector<uint32_t> readers; // tasks that read what it makes
    double share = 1;              // the sum, if several streams have such a buffer
    uint32_t streams = 1;          // streams with such a buffer
  };

  uint32_t domains = 1;          // at most kDomainsMax; a host has a hop to and from each of its devices
  std::vector<uint32_t> workers; // by domain: calls at once
  std::vector<HopPrice> hops;    // [from * domains + to]
  // By domain, or empty: the time that a device takes on each tick for each of its regions, and for each copy that it
  // submits, however few bytes. A region is the work between one way out of the domain and the next.
  std::vector<double> region_us, crossing_us;
  uint64_t hosts = 1;            // a bit for each domain that is a host
  uint64_t pushes = 0;           // a bit for each domain that pushes (Domain::pushes)
  std::vector<uint32_t> engines; // [from * domains + to]: which engine copies; empty: each hop has an engine of its own
  double period_us = 0;          // 0: as fast as it goes
  std::vector<Task> tasks;       // every producer before its readers
  std::vector<Buffer> buffers;

  const HopPrice& hop(uint32_t from, uint32_t to) const { return hops[from * domains + to]; }
  uint32_t engine(uint32_t from, uint32_t to) const {
    return engines.empty() ? from * domains + to : engines[from * domains + to];
  }
  bool is_host(uint32_t domain) const { return hosts >> domain & 1; }
  // The end of a hop that submits, as submitter_of() has it.
  uint32_t submitter(uint32_t from, uint32_t to) const {
    return is_host(to) || (pushes >> from & pushes >> to & 1) ? from : to;
  }
};

using Places = std::vector<uint32_t>; // by task: its domain

// The cost of a placement. Lower is better, field by field in this order; load_us counts only without a period.
struct Score {
  double overload = 0;   // by how much the fullest resource exceeds what it may be filled to; 0: it fits
  double load_us = 0;    // time of the fullest resource, a tick
  double latency_us = 0; // time of one tick alone
  double bytes = 0;      // number carried a tick
  uint32_t copies = 0;   // number on a tick on which all handlers fire
  double next_us = 0;    // time of the next fullest resource, a tick; is_better() does not compare it
};
Score evaluate(const Prices& prices, const Places& places);
bool is_better(const Prices& prices, const Score& a, const Score& b);

// The sum of all calls and copies of a tick, as if everything ran one after another.
double sum_us(const Prices& prices, const Places& places);
// The placement of least sum among those that use the domains `a` and `b` alone, by a minimum cut; tasks that can run
// in neither stay where `places` has them.
Places least_sum(const Prices& prices, Places places, uint32_t a, uint32_t b);

struct Choice {
  Places places;
  Score score;
  bool exact = false;  // all placements were tried
  double bound_us = 0; // lower bound of the load without a period, else of the latency
};
// `enumerate`: small graphs are solved by trying everything.
Choice choose_places(const Prices& prices, bool enumerate = true);

} // namespace millrace::plan
