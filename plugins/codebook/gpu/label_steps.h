// Steps that give vectors their labels. A vector may keep its own without a look at all anchors (labels.h); the others
// are listed, and searched for.
#pragma once

#include "plugins/codebook/gpu/block.h"
#include "plugins/codebook/gpu/resident.h"

namespace millrace::codebook::gpu {

// Gives a vector its label, and counts it if it is another one.
MR_HOST_DEVICE inline void give_label(const Resident& r, uint64_t i, uint32_t label, float distance) {
  const uint32_t before = r.labels[i];
  r.before[i] = before;
  r.labels[i] = label;
  r.distances[i] = distance;
  add_to(r.counts[label], 1);
  if (before != label) add_to(r.control->changed, 1);
}
// The same after a search.
MR_HOST_DEVICE inline void give_found(const Resident& r, uint64_t i, const Nearest& found) {
  r.assigned[i] = found.index();
  r.others_at[i] = r.bounds.at_least(found.next_distance());
  give_label(r, i, found.index(), found.distance());
}

// Some vectors for each block: those that cannot have another label keep it. The others are listed in `members`.
struct KeepLabels {
  static constexpr uint32_t kThreads = 256, kVectors = kThreads / kLanes;
  Resident r;
  static uint32_t blocks(const Resident& r) { return (r.vectors + kVectors - 1) / kVectors; }
  MR_HOST_DEVICE void operator()(Block& block) const {
    const uint64_t first = uint64_t{block.index} * kVectors, used = r.used();
    if (first >= used) return;
    const uint64_t count = used - first < kVectors ? used - first : kVectors;
    if (r.control->labelled_anchors != r.cells()) { // there are other anchors than there were: bounds say nothing
      block.each(count, [&](uint64_t n) { list(first + n); });
      return;
    }
    distances_between(
        block, r.stride, count, [&](uint64_t n) { return r.row(first + n); },
        [&](uint64_t n) { return r.anchor(r.assigned[first + n]); },
        [&](uint64_t n, float own) { keep_or_list(first + n, own); });
  }

 private:
  MR_HOST_DEVICE void list(uint64_t i) const { r.members[add_to(r.control->listed, 1)] = static_cast<uint32_t>(i); }
  MR_HOST_DEVICE void keep_or_list(uint64_t i, float own) const { // own: the distance to the anchor of the last search
    const Control& c = *r.control;
    const uint32_t label = r.assigned[i];
    r.others_at[i] -= label == c.whose ? c.next : c.longest;
    if (r.bounds.is_below(own, r.others_at[i]))
      give_label(r, i, label, own);
    else
      list(i);
  }
};

// Searches for the vectors that are listed, if they are fewer than `many`. A block takes so many of them together,
// which share the reading of anchors.
template <uint32_t kTogether, uint32_t kOfBlock>
struct SearchListed {
  static constexpr uint32_t kThreads = kOfBlock, kBlocks = (1 << 17) / kThreads;
  Resident r;
  uint32_t many;
  MR_HOST_DEVICE void operator()(Block& block) const {
    const uint32_t listed = r.control->listed;
    if (listed >= many) return;
    for (uint32_t first = block.index * kTogether; first < listed; first += kBlocks * kTogether) {
      const uint32_t count = listed - first < kTogether ? listed - first : kTogether;
      const float* rows[kTogether];
      for (uint32_t n = 0; n < kTogether; ++n) rows[n] = r.row(r.members[first + (n < count ? n : 0)]);
      const auto found = nearest_of(block, rows, r.stride, r.cells(), [&](uint64_t c) { return r.anchor(c); });
      block.each(count, [&](uint64_t n) { give_found(r, r.members[first + n], found.of[n]); });
    }
  }
};
using SearchOne = SearchListed<1, 256>;
using SearchFew = SearchListed<4, 512>; // pays where the numbers of all anchors are more than that
inline constexpr uint64_t kFewPaysFrom = 1 << 13;

} // namespace millrace::codebook::gpu
