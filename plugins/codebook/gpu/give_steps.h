// Steps that write the results of a resident fit to its outputs.
#pragma once

#include <span>

#include "plugins/codebook/codebook_file.h"
#include "plugins/codebook/gpu/block.h"
#include "plugins/codebook/gpu/resident.h"

namespace millrace::codebook::gpu {

// The places of the results. `deviations` may be null. `records` has one place more than there may be iterations: the
// last one is for the outcome.
struct Outputs {
  Float16* codebook;   // [anchors_max, d]
  Float16* deviations; // [anchors_max, d]
  uint32_t* labels;    // one for each row of the input
  IterationRecord* records;
  uint64_t* record_count;
};
static_assert(sizeof(Outcome) <= sizeof(IterationRecord));

// `iterations`: that there may be.
inline const Outcome& outcome_after(const IterationRecord* records, uint32_t iterations) {
  return *reinterpret_cast<const Outcome*>(records + iterations);
}

// Runs also if there is no fit.
struct GiveLabel { // each row of the input
  Resident r;
  Outputs to;
  MR_HOST_DEVICE void operator()(uint64_t i) const {
    const bool has_fit = r.control->outcome.fault == Fault::none;
    to.labels[i] = has_fit && r.place[i] != kNone ? r.labels[r.place[i]] : kNoLabel;
  }
};
struct GiveOutcome { // once, also if there is no fit
  Resident r;
  Outputs to;
  uint32_t iterations; // that there may be
  MR_HOST_DEVICE void operator()(Block& block) const {
    block.once([&] {
      const Control& c = *r.control;
      *to.record_count = c.outcome.fault == Fault::none ? c.iterations : 0;
      *reinterpret_cast<Outcome*>(to.records + iterations) = c.outcome;
    });
  }
};

struct GiveAnchor { // a block for each anchor
  static constexpr uint32_t kThreads = 64;
  Resident r;
  Outputs to;
  MR_HOST_DEVICE void operator()(Block& block) const {
    const uint64_t a = block.index;
    if (a >= r.cells()) return;
    block.each(r.dimensions, [&](uint64_t j) { to.codebook[a * r.dimensions + j] = Float16(r.anchor(a)[j]); });
  }
};

// A block for each anchor, when its members lie in their order from `offsets` on. Deviations are sums of doubles, so
// the order counts.
struct GiveDeviations {
  static constexpr uint32_t kThreads = 128;
  Resident r;
  Outputs to;
  MR_HOST_DEVICE void operator()(Block& block) const {
    const uint64_t a = block.index;
    if (a >= r.cells()) return;
    const uint32_t count = r.counts[a];
    const uint32_t* const members = r.members + r.offsets[a];
    block.each(r.dimensions, [&](uint64_t j) {
      double sum = 0;
      for (uint32_t n = 0; n < count; ++n) {
        const double apart = double{r.row(members[n])[j]} - double{r.anchor(a)[j]};
        sum += apart * apart;
      }
      const double deviation = count > 0 ? sqrt(sum / count) : 0;
      const double most = double{kAnchorMax};
      to.deviations[a * r.dimensions + j] = Float16(static_cast<float>(deviation < most ? deviation : most));
    });
  }
};

// Deviations are of the final labels.
struct ClearCounts { // once
  Resident r;
  MR_HOST_DEVICE void operator()(Block& block) const {
    block.each(r.anchors_max, [&](uint64_t c) { r.counts[c] = 0; });
  }
};
struct CountLabel { // each vector
  Resident r;
  MR_HOST_DEVICE void operator()(uint64_t i) const {
    if (i < r.used()) add_to(r.counts[r.labels[i]], 1);
  }
};
// A block for each cell sorts its members by bitonic merges. These want a power of two of them; the places that are
// missing count as larger than every member.
struct OrderMembers {
  static constexpr uint32_t kThreads = 256;
  Resident r;
  MR_HOST_DEVICE void operator()(Block& block) const {
    const uint64_t c = block.index;
    if (c >= r.cells()) return;
    const uint64_t size = r.counts[c];
    uint32_t* const members = r.members + r.offsets[c];
    const auto put_in_order = [&](uint64_t one, uint64_t other) {
      if (other <= one || other >= size || members[one] < members[other]) return;
      const uint32_t smaller = members[other];
      members[other] = members[one];
      members[one] = smaller;
    };
    for (uint64_t sorted = 2; sorted < 2 * size; sorted *= 2) {
      block.each(size, [&](uint64_t n) { put_in_order(n, n ^ (sorted - 1)); });
      for (uint64_t apart = sorted / 4; apart > 0; apart /= 2)
        block.each(size, [&](uint64_t n) { put_in_order(n, n ^ apart); });
    }
  }
};

} // namespace millrace::codebook::gpu
