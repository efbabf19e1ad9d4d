// Hops between domains, the cost of a copy or a read over one, and the cheapest ways (design.md §1, semantics.md 3.6).
//
// A hop leads from one domain to another: a copy engine, a peer copy, memory that the other side may read in place.
// Times are piecewise: a copy of 4 KiB is all latency, one of 16 MiB is all bandwidth, and sizes between follow
// neither. So a hop keeps the rate of four sizes, and time is linear from one to the next.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <limits>
#include <string>
#include <vector>

namespace millrace::plan {

inline constexpr std::array<uint64_t, 4> kHopSizes = {4 << 10, 64 << 10, 1 << 20, 16 << 20};

struct HopPrice {
  static constexpr double kInfeasible = std::numeric_limits<double>::infinity();
  double latency_us = kInfeasible;         // time of an empty copy; kInfeasible: nothing can be copied this way
  std::array<double, 4> us_per_byte{};     // beyond the latency, for copies of kHopSizes bytes
  std::array<double, 4> p99_us{};          // time of slow copies of kHopSizes bytes; 0: not known
  double access_us_per_byte = kInfeasible; // time of reading in place; kInfeasible: that cannot be done
  bool overlaps_compute = true;            // else the device runs nothing meanwhile

  HopPrice() = default;
  HopPrice(double latency, double per_byte)
      : latency_us(latency), us_per_byte{per_byte, per_byte, per_byte, per_byte} {}
  bool copies() const { return latency_us != kInfeasible; }
  double copy_us(double bytes) const;
  // The time of a slow copy. Latencies are sums of these, loads are sums of copy_us() (semantics.md 5.3).
  double late_copy_us(double bytes) const;
};

// The connection from one domain of a machine to another.
struct Hop {
  std::string from, to;
  HopPrice price{};                    // for pinned memory, medians
  std::array<double, 4> pageable_us{}; // time of copies of kHopSizes bytes from memory that is not pinned
  std::string engine{};                // hops of one engine take turns, whatever their nodes; "": its own
  bool measured = true;                // or declared; else it is a guess
};

// The cheapest ways between all domains, for one number of bytes.
class CheapestRoutes {
 public:
  CheapestRoutes() = default;
  // hop_us(from, to): the time of a direct copy; HopPrice::kInfeasible if there is no such hop.
  CheapestRoutes(uint32_t domains, const std::function<double(uint32_t, uint32_t)>& hop_us);

  double us(uint32_t from, uint32_t to) const { return us_[from * domains_ + to]; }
  double hop_us(uint32_t from, uint32_t to) const { return hop_us_[from * domains_ + to]; } // as it was given
  // The domain from which the last hop of the way leads to `to`: ways from one domain form a tree. `from` if there is
  // no way.
  uint32_t before(uint32_t from, uint32_t to) const { return before_[from * domains_ + to]; }
  // The i-th nearest domain from `from`; the 0th is `from` itself. Those that cannot be reached come last.
  uint32_t nearest(uint32_t from, uint32_t i) const { return nearest_[from * domains_ + i]; }

 private:
  void find(uint32_t from);

  uint32_t domains_ = 0;
  std::vector<double> hop_us_, us_;
  std::vector<uint32_t> before_, nearest_;
};

} // namespace millrace::plan
