// Answers which nodes of a graph lead to which: one adjacency, and one set of bits per node, so that an answer is a
// single look. The passes ask it "would this tick wait for itself?". Private to runtime/plan.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace millrace::plan {

struct Plan;

class Reachability {
 public:
  explicit Reachability(size_t count) : next_(count), before_(count), words_((count + 63) / 64) {}

  void add(uint32_t from, uint32_t to);
  // Makes the two one: what leads to either leads on from either.
  void join(uint32_t a, uint32_t b) {
    add(a, b);
    add(b, a);
  }
  // True if a way of at least one edge leads there.
  bool leads(uint32_t from, uint32_t to) const;
  const std::vector<uint32_t>& before(uint32_t node) const { return before_[node]; }

 private:
  // The bits are made at the first question and kept up to date after that.
  void find_all() const;
  bool take_over(uint32_t from, uint32_t to) const; // true if `from` leads further than before

  std::vector<std::vector<uint32_t>> next_, before_;
  size_t words_;
  mutable std::vector<uint64_t> reached_; // [node * words_ + word]; empty: not made yet
};

// The waits of a plan's steps within a tick. Each step comes after the steps that it reads in time (waits_in_time), the
// steps that must have settled before it, and the step that writes into its channel.
Reachability waits_of(const Plan& plan);

} // namespace millrace::plan
