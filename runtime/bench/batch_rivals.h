// Rules that others use for batches, for `millrace bench batch`. They drive the same collector as ours. A fixed size, a
// timeout and plain greed are in batch/plain_rules.h.
#pragma once

#include "batch/rule.h"

namespace millrace::bench {

// Fires the largest full bucket whenever there is room, and drops an item that would be done too late.
class GreedyThatDrops final : public batch::Rule {
 public:
  batch::Choice choose(const batch::Waiting& waiting) const override;
};

// Clipper's: fires all that waits, up to a size that grows by one with each full firing whose items were in time, and
// shrinks by a tenth with each whose first item was late.
class Aimd final : public batch::Rule {
 public:
  batch::Choice choose(const batch::Waiting& waiting) const override;
  void ended(const batch::FiringEnd& end, const batch::Forecast& forecast) override;

 private:
  double size_ = 1;
};

} // namespace millrace::bench
