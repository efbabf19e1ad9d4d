// Up to 1,024 points in the shared memory of a block, in their order, and the first point of each id.
#pragma once

#include <cmath>
#include <cstdint>

#include "handlers/gpu/device_list.h"
#include "handlers/gpu/link_kernels.h"
#include "handlers/gpu/link_work.h"

namespace millrace::handlers::gpu {

class FewPoints {
 public:
  static constexpr uint32_t kRows = kFewPoints / 32; // point p is in row p / 32
  // Rows that a search goes through in one step.
  static constexpr uint32_t kRowsAtOnce = 8;
  static_assert(kRows == 32 && kRows % kRowsAtOnce == 0); // a warp looks at one column, a lane for each row

  // Loads the points, and returns how many there are. All threads of a block call it, and __syncthreads() before
  // they use anything else.
  template <uint32_t kThreadsOfBlock>
  __device__ uint32_t load(const DeviceList<Point>& points) {
    constexpr uint32_t kEach = kFewPoints / kThreadsOfBlock;
    float2 places[kEach];
    int64_t ids[kEach];
    MR_UNROLL
    for (uint32_t n = 0; n < kEach; ++n) { // also beyond the list's end, which is not known yet
      const uint32_t point = threadIdx.x + n * kThreadsOfBlock;
      if (point >= points.most) continue;
      places[n] = *reinterpret_cast<const float2*>(&points.records[point].x);
      ids[n] = points.records[point].id;
    }
    const uint32_t count = points.size();
    MR_UNROLL
    for (uint32_t n = 0; n < kEach; ++n) {
      const uint32_t point = threadIdx.x + n * kThreadsOfBlock;
      const bool joins = point < count && isfinite(places[n].x) && isfinite(places[n].y);
      places_[padded(point)] = joins ? places[n] : float2{NAN, NAN};
      ids_[point] = joins ? ids[n] : -1;
    }
    for (uint32_t slot = threadIdx.x; slot < kSlots; slot += kThreadsOfBlock) slots_[slot] = kNone;
    return count;
  }
  // Puts a point's id into the table. Called once for each point, and all of them before id_at().
  __device__ void insert(uint32_t point) {
    const int64_t id = ids_[point];
    if (id < 0) return;
    for (uint32_t at = first_slot(id);; at = (at + 1) % kSlots) {
      const uint32_t found = atomicCAS(&slots_[at], kNone, point);
      if (found == kNone) return;
      if (ids_[found] != id) continue;
      atomicMin(&slots_[at], point);
      return;
    }
  }

  // The place of a point; NaN if it cannot be joined.
  __device__ float2 place(uint32_t point) const { return places_[padded(point)]; }
  // The id of a point, or -1 if it has none, or if another point with that id comes before it.
  __device__ int64_t id_at(uint32_t point) const {
    const int64_t id = ids_[point];
    if (id < 0) return -1;
    for (uint32_t at = first_slot(id);; at = (at + 1) % kSlots) {
      if (slots_[at] == point) return id;
      if (slots_[at] == kNone || ids_[slots_[at]] == id) return -1;
    }
  }

 private:
  static constexpr uint32_t kSlots = 2 * kFewPoints; // some are always free
  __device__ static uint32_t first_slot(int64_t id) { return PlaceTable::first_slot(id, kSlots - 1); }
  // Rows are apart by one place more, so that those of a column lie in different banks.
  __device__ static uint32_t padded(uint32_t point) { return point + point / 32; }

  float2 places_[kFewPoints + kRows];
  int64_t ids_[kFewPoints];
  uint32_t slots_[kSlots];
};

} // namespace millrace::handlers::gpu
