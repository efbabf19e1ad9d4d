// The memory of a fit that stays on a device: vectors, anchors and everything between, in one piece.
#pragma once

#include <cstdint>

#include "plugins/codebook/distance_bounds.h"
#include "plugins/codebook/fit.h"
#include "plugins/codebook/iteration_record.h"
#include "plugins/codebook/points.h"
#include "plugins/codebook/whole.h"

namespace millrace::codebook::gpu {

inline constexpr uint32_t kNone = 0xffffffff;

// The host reads this when the fit is over.
struct Outcome {
  Fault fault;          // once there is one, steps do nothing
  uint32_t is_given;    // the fault is in the first anchors, not in the vectors
  uint32_t row, column; // the place of the fault
  float number;         // at that place
  uint32_t used;        // vectors that were not left out
  uint32_t anchors;
};

// The numbers that steps share.
struct Control {
  Outcome outcome;                                 // its number of anchors is the present one
  uint64_t bad_row;                                // the first
  uint64_t largest, largest_square, anchor_square; // bits of doubles that are not negative
  Whole values, weighed, squares;                  // as Points has them
  uint64_t draws;                                  // the state of Draw
  uint32_t first;                                  // the first vector that was chosen
  uint32_t iterations, changed, calm, converged, merged, split;
  float temperature;
  double energy;
  IterationRecord last;
  // The worth of the labels of the iteration before: how many anchors there were, the longest way that one of them
  // went since, whose it was, and the longest of the others.
  uint32_t labelled_anchors, whose;
  double longest, next;
  uint32_t before_upkeep; // anchors that there were
  uint32_t listed;        // vectors that are searched for in this iteration
  uint32_t tickets;       // blocks of the present kernel that are done
};

struct Sizes {
  uint32_t vectors = 0;    // rows of the input, at most
  uint32_t dimensions = 0; // at most
  uint32_t anchors = 0, anchors_max = 0;
};

// Arrays, by vector (rows of the input that are not left out), by anchor, and of one row. A row has whole lanes.
struct Resident {
  uint32_t vectors, dimensions, stride, anchors, anchors_max; // vectors: rows of the input
  DistanceBounds bounds{kLanes};
  Control* control;
  // by row of the input
  uint32_t* place; // its vector; kNone: it is left out
  double *norms, *double_squares;
  // by vector
  float* rows;
  int64_t* square; // |x|² in units of Control::squares
  uint32_t *labels, *before, *members, *halves;
  uint32_t* assigned; // the label of the last search
  double* others_at;  // all anchors but that one are at least so far away
  float* distances;
  // by anchor
  float *book, *earlier, *velocity; // rows
  float* labelled;                  // rows: the anchors that labels were found with
  int64_t *sums, *kept;             // rows
  int64_t *square_sums, *weight_sums;
  uint32_t *counts, *offsets, *cursors, *partners;
  uint64_t *low, *high; // bounds of the members that a trimmed mean takes
  uint64_t* keys;       // choices of first anchors
  double *energies, *costs;
  double* ways; // that the anchors went since
  // of one row: two centers and their sums, and the union of two cells
  float* centers;
  int64_t* center_sums;

  MR_HOST_DEVICE uint32_t used() const { return control->outcome.used; }
  MR_HOST_DEVICE uint32_t cells() const { return control->outcome.anchors; }
  MR_HOST_DEVICE const float* row(uint64_t vector) const { return rows + vector * stride; }
  MR_HOST_DEVICE float* anchor(uint64_t index) const { return book + index * stride; }
  MR_HOST_DEVICE int64_t* sums_of(uint64_t cell) const { return sums + cell * stride; }
};

// A number of a first anchor.
MR_HOST_DEVICE inline void put_first(const Resident& r, uint64_t anchor, uint64_t j, float number) {
  r.anchor(anchor)[j] = r.labelled[anchor * r.stride + j] = Float16(number);
}

// Lays the arrays out from `base` on, for a fit of these sizes. `bytes` becomes their size; with a null base they are
// null, and only that is of use.
inline Resident lay_out(void* base, const Sizes& sizes, uint64_t& bytes) {
  Resident r{};
  r.vectors = sizes.vectors;
  r.dimensions = sizes.dimensions;
  r.stride = static_cast<uint32_t>(in_lanes(sizes.dimensions));
  r.anchors = sizes.anchors;
  r.anchors_max = sizes.anchors_max;
  r.bounds = DistanceBounds(r.stride);
  bytes = 0;
  const auto place = [&]<class T>(T*& array, uint64_t count) {
    constexpr uint64_t kAligned = 256;
    array = base ? reinterpret_cast<T*>(static_cast<char*>(base) + bytes) : nullptr;
    bytes += (count * sizeof(T) + kAligned - 1) / kAligned * kAligned;
  };
  const uint64_t n = r.vectors, m = r.anchors_max, row = r.stride;
  place(r.control, 1);
  place(r.place, n);
  place(r.norms, n);
  place(r.double_squares, n);
  place(r.rows, n * row);
  place(r.square, n);
  for (uint32_t** one : {&r.labels, &r.before, &r.members, &r.halves, &r.assigned}) place(*one, n);
  place(r.others_at, n);
  place(r.distances, n);
  for (float** one : {&r.book, &r.earlier, &r.velocity, &r.labelled}) place(*one, m * row);
  for (int64_t** one : {&r.sums, &r.kept}) place(*one, m * row);
  for (int64_t** one : {&r.square_sums, &r.weight_sums}) place(*one, m);
  for (uint32_t** one : {&r.counts, &r.offsets, &r.cursors, &r.partners}) place(*one, m);
  for (uint64_t** one : {&r.low, &r.high, &r.keys}) place(*one, m);
  for (double** one : {&r.energies, &r.costs, &r.ways}) place(*one, m);
  place(r.centers, 3 * row);
  place(r.center_sums, 3 * row);
  return r;
}

} // namespace millrace::codebook::gpu
