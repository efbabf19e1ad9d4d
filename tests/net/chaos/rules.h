// The faults that are in force, and the conditions that they make for one direction of one connection. Pure.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "schedule.h"
#include "script.h"

namespace millrace::chaos {

// All that one direction of one connection meets. Zeros and falses are a perfect line.
struct Conditions {
  int64_t latency_ns = 0;
  int64_t jitter_ns = 0;
  int64_t bytes_per_s = 0; // 0: as fast as they come
  int64_t slice_least = 0; // bytes; 0: not cut into slices
  int64_t slice_most = 0;
  int64_t flip_one_in = 0; // bytes; 0: none
  bool is_stalled = false;
  bool is_half_open = false;
  std::optional<int64_t> limit_bytes = {};
  uint64_t limit_id = 0; // a limit of another number counts anew
  bool operator==(const Conditions&) const = default;
};

class Rules {
 public:
  // Puts a fault into force. Cut and reset are not rules. Their number is bounded: of two rules of one kind and one
  // scope the older one stays only if it outlives the newer.
  void add(const Event& event);
  void end_until(int64_t now_ns);
  // The time at which the next rule ends; empty if none does.
  std::optional<int64_t> next_end() const;

  Conditions conditions(size_t connection, Direction direction) const;
  bool is_refusing() const;
  bool is_blackhole(size_t connection) const;

  size_t count() const { return rules_.size(); }

 private:
  struct Rule {
    Fault fault;
    std::optional<int64_t> end_ns; // empty: until a later statement
    uint64_t id = 0;
  };

  // In the order of the statements: a later rule wins.
  std::vector<Rule> rules_;
  uint64_t last_id_ = 0;
};

} // namespace millrace::chaos
