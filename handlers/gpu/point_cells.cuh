// Points in the shared memory of a block, sorted into cells of a few, so that those around a place are found soon.
#pragma once

#include <millrace/payload/marks.h>

#include <cmath>
#include <cstdint>

#include "handlers/gpu/device_list.h"

namespace millrace::handlers::gpu {

constexpr uint32_t kTilePoints = 6'144; // the most of a tile
constexpr uint32_t kTileWarpsMax = 32;  // the most of a block
constexpr int32_t kCellsAcross = 64;    // the most of a tile, both ways
constexpr uint32_t kCellsMax = kCellsAcross * kCellsAcross;
constexpr uint32_t kAtOnce = 4; // points of a thread that are loaded together
constexpr float kFar = 1e15f;   // points that are so far away get one cell together

// A side of the cells of a tile: where they begin, and how long they are.
struct Cells {
  float begin, side, per_unit;
  int32_t count;

  // The cell of a place; one that is outside belongs to the first or the last. It rises with the place.
  __device__ int32_t cell(float place) const {
    return min(max(static_cast<int32_t>((place - begin) * per_unit), 0), count - 1);
  }
  // Points outside the cells from `first` to `last` are at least so far from a place, along this side. Infinite if
  // there is no such cell.
  __device__ float gap(float place, int32_t first, int32_t last) const {
    if (first <= 0 && last >= count - 1) return INFINITY;
    const float slack = 4e-6f * (fabsf(begin) + fabsf(place) + side * static_cast<float>(count));
    const float low = first <= 0 ? INFINITY : place - (begin + static_cast<float>(first) * side);
    const float high = last >= count - 1 ? INFINITY : begin + static_cast<float>(last + 1) * side - place;
    return fmaxf(fminf(low, high) - slack, 0);
  }
};

// Some of the points, in shared memory, in cells that have a few of them each.
struct Tile {
  float2* places;  // NaN for those that cannot be joined
  uint16_t* order; // points of the tile, cell by cell
  uint32_t* ends;  // by cell, the end of its points in `order`; the next one begins there
  uint32_t begin;  // the first point
  Cells across, down;

  __device__ uint32_t begin_of(int32_t column, int32_t row) const {
    const int32_t cell = row * across.count + column;
    return cell > 0 ? ends[cell - 1] : 0;
  }
  __device__ uint32_t end_of(int32_t column, int32_t row) const { return ends[row * across.count + column]; }

  __device__ int32_t cell_of(float2 place) const { return down.cell(place.y) * across.count + across.cell(place.x); }

  static unsigned bytes(uint32_t points) {
    return points * static_cast<unsigned>(sizeof(float2) + sizeof(uint16_t)) +
           kCellsMax * static_cast<unsigned>(sizeof(uint32_t));
  }
};

// The bits of a number in an order that unsigned integers have, and back.
__device__ inline uint32_t ordered(float number) {
  const uint32_t bits = __float_as_uint(number);
  return bits >> 31 ? ~bits : bits | 0x80000000u;
}
__device__ inline float from_ordered(uint32_t bits) { return __uint_as_float(bits >> 31 ? bits & 0x7fffffffu : ~bits); }

// Cells between two places, about as long as `side`.
__device__ inline Cells cells_between(float low, float high, float side) {
  const float length = high - low;
  Cells cells{low, length, 0, 1};
  if (!(length > 0 && length < kFar && fabsf(low) < kFar && side > 0)) return cells;
  cells.count = static_cast<int32_t>(fminf(__fdividef(length, side), static_cast<float>(kCellsAcross - 1))) + 1;
  cells.side = __fdividef(length, static_cast<float>(cells.count)); // these are not quite exact, and need not be
  cells.per_unit = __fdividef(static_cast<float>(cells.count), length);
  return cells;
}

// The sum of a number over all threads before this one. All threads of a block call it.
__device__ inline uint32_t sum_before(uint32_t number) {
  __shared__ uint32_t of_warp[kTileWarpsMax];
  const uint32_t lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  uint32_t sum = number;
  for (uint32_t step = 1; step < 32; step *= 2) {
    const uint32_t left = __shfl_up_sync(0xffffffffu, sum, step);
    if (lane >= step) sum += left;
  }
  if (lane == 31) of_warp[warp] = sum;
  __syncthreads();
  return __reduce_add_sync(0xffffffffu, lane < warp ? of_warp[lane] : 0) + sum - number;
}

// The lowest and the highest places of a block's points, as ordered().
struct Bounds {
  uint32_t low_x, low_y, high_x, high_y;
};

// Loads points from `begin` on, and chooses cells for them. All threads of a block call it.
__device__ inline void load_tile(const DeviceList<Point>& points, uint32_t begin, uint32_t size, float cells,
                                 Bounds& bounds, Tile& tile) {
  uint32_t low[2] = {UINT32_MAX, UINT32_MAX}, high[2] = {0, 0};
  for (uint32_t t = threadIdx.x; t < size; t += kAtOnce * blockDim.x) {
    float2 places[kAtOnce];
    MR_UNROLL
    for (uint32_t n = 0; n < kAtOnce; ++n)
      if (t + n * blockDim.x < size)
        places[n] = *reinterpret_cast<const float2*>(&points.records[begin + t + n * blockDim.x].x);
    MR_UNROLL
    for (uint32_t n = 0; n < kAtOnce; ++n) {
      if (t + n * blockDim.x >= size) break;
      if (isfinite(places[n].x) && isfinite(places[n].y)) {
        low[0] = min(low[0], ordered(places[n].x)), high[0] = max(high[0], ordered(places[n].x));
        low[1] = min(low[1], ordered(places[n].y)), high[1] = max(high[1], ordered(places[n].y));
      } else {
        places[n] = {NAN, NAN};
      }
      tile.places[t + n * blockDim.x] = places[n];
    }
  }
  for (uint32_t side = 0; side < 2; ++side) {
    low[side] = __reduce_min_sync(0xffffffffu, low[side]);
    high[side] = __reduce_max_sync(0xffffffffu, high[side]);
  }
  if (threadIdx.x % 32 == 0) {
    atomicMin(&bounds.low_x, low[0]), atomicMax(&bounds.high_x, high[0]);
    atomicMin(&bounds.low_y, low[1]), atomicMax(&bounds.high_y, high[1]);
  }
  __syncthreads();
  const float left = from_ordered(bounds.low_x), right = from_ordered(bounds.high_x); // NaN if there is no point
  const float top = from_ordered(bounds.low_y), bottom = from_ordered(bounds.high_y);
  const float width = right - left, height = bottom - top, area = width * height;
  // Points on one line, across or down, have cells along it; the area of very near ones is 0, and they have one cell.
  const float on_a_line = fminf(width, height) > 0 ? 0 : __fdividef(fmaxf(width, height), cells);
  const float side = area > 0 ? __frsqrt_rn(__fdividef(cells, area)) : on_a_line;
  tile.across = cells_between(left, right, side);
  tile.down = cells_between(top, bottom, side);
}

// Calls use(first point, cells) for the points of this thread, a few at a time: every blockDim-th. -1: no point.
template <class Use>
__device__ void each_point(const Tile& tile, uint32_t size, const Use& use) {
  for (uint32_t t = threadIdx.x; t < size; t += kAtOnce * blockDim.x) {
    int32_t cells[kAtOnce];
    MR_UNROLL
    for (uint32_t n = 0; n < kAtOnce; ++n) {
      const uint32_t point = t + n * blockDim.x;
      const float2 place = point < size ? tile.places[point] : float2{NAN, NAN};
      cells[n] = place.x == place.x ? tile.cell_of(place) : -1;
    }
    use(t, cells);
  }
}

// Loads points from `begin` on, and sorts them into cells of about `of_cell` points. All threads of a block call it.
__device__ inline void fill_tile(const DeviceList<Point>& points, uint32_t begin, uint32_t size, float of_cell,
                                 Tile& tile) {
  __shared__ Bounds bounds;
  __syncthreads(); // all are done with the tile before
  if (threadIdx.x == 0) bounds = {UINT32_MAX, UINT32_MAX, 0, 0};
  const float cells = static_cast<float>(size) / of_cell;
  const uint32_t cells_most = min(kCellsMax, static_cast<uint32_t>(cells) + 2 * kCellsAcross + 1);
  for (uint32_t cell = threadIdx.x; cell < cells_most; cell += blockDim.x) tile.ends[cell] = 0;
  __syncthreads();
  tile.begin = begin;
  load_tile(points, begin, size, cells, bounds, tile);
  each_point(tile, size, [&](uint32_t, const int32_t(&cells_of)[kAtOnce]) {
    MR_UNROLL
    for (uint32_t n = 0; n < kAtOnce; ++n)
      if (cells_of[n] >= 0) atomicAdd(&tile.ends[cells_of[n]], 1u);
  });
  __syncthreads();
  const auto used = static_cast<uint32_t>(tile.across.count * tile.down.count);
  const uint32_t each = (used + blockDim.x - 1) / blockDim.x, first = min(threadIdx.x * each, used);
  const uint32_t last = min(first + each, used);
  uint32_t own = 0;
  for (uint32_t cell = first; cell < last; ++cell) own += tile.ends[cell];
  uint32_t at = sum_before(own);
  for (uint32_t cell = first; cell < last; ++cell) { // the begin of each, which moves to its end with its points
    const uint32_t count = tile.ends[cell];
    tile.ends[cell] = at;
    at += count;
  }
  __syncthreads();
  each_point(tile, size, [&](uint32_t t, const int32_t(&cells_of)[kAtOnce]) {
    uint32_t places[kAtOnce];
    MR_UNROLL
    for (uint32_t n = 0; n < kAtOnce; ++n)
      if (cells_of[n] >= 0) places[n] = atomicAdd(&tile.ends[cells_of[n]], 1u);
    MR_UNROLL
    for (uint32_t n = 0; n < kAtOnce; ++n)
      if (cells_of[n] >= 0) tile.order[places[n]] = static_cast<uint16_t>(t + n * blockDim.x);
  });
  __syncthreads();
}

} // namespace millrace::handlers::gpu
