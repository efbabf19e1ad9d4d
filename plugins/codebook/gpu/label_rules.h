// When a vector keeps its label without a look at all anchors (labels.h): what engines share.
#pragma once

#include "plugins/codebook/gpu/block.h"
#include "plugins/codebook/gpu/resident.h"

namespace millrace::codebook::gpu {

// True if bounds say nothing: there are other anchors than there were.
MR_HOST_DEVICE inline bool labels_anew(const Resident& r) { return r.control->labelled_anchors != r.cells(); }

// `own`: the distance to the anchor of the last search. True if no other can be nearer.
MR_HOST_DEVICE inline bool keeps_label(const Resident& r, uint64_t i, float own) {
  const Control& c = *r.control;
  r.others_at[i] -= r.assigned[i] == c.whose ? c.next : c.longest;
  return r.bounds.is_below(own, r.others_at[i]);
}

// Gives a vector its label. Returns true if it is another one.
MR_HOST_DEVICE inline bool give_label(const Resident& r, uint64_t i, uint32_t label, float distance) {
  const uint32_t before = r.labels[i];
  r.before[i] = before;
  r.labels[i] = label;
  r.distances[i] = distance;
  add_to(r.counts[label], 1);
  return before != label;
}
// The same after a search; `next`: the least distance to any other anchor.
MR_HOST_DEVICE inline bool give_found(const Resident& r, uint64_t i, uint32_t label, float distance, float next) {
  r.assigned[i] = label;
  r.others_at[i] = r.bounds.at_least(next);
  return give_label(r, i, label, distance);
}

} // namespace millrace::codebook::gpu
