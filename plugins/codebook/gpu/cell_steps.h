// The steps of an iteration once all vectors have labels: members of cells, their sums and means, the step of each
// anchor, the energy and the end. They give what cells.h and fit.cpp give, to the bit.
#pragma once

#include <limits>

#include "plugins/codebook/gpu/block.h"
#include "plugins/codebook/gpu/lane_sums.h"
#include "plugins/codebook/gpu/resident.h"

namespace millrace::codebook::gpu {

inline constexpr uint32_t kTrimmedOf = 10, kCalmIterations = 3;

// The order of members in a cell: by distance, then by index.
MR_HOST_DEVICE inline uint64_t order_of(const Resident& r, uint32_t vector) {
  return key_of(r.distances[vector], vector);
}

// Once, when all vectors have labels: finds where the members of each cell begin.
struct PlaceCells {
  Resident r;
  MR_HOST_DEVICE void operator()(Block& block) const {
    sum_up_before(
        block, r.cells(), [&](uint64_t c) { return r.counts[c]; },
        [&](uint64_t c, uint64_t before) { r.offsets[c] = r.cursors[c] = static_cast<uint32_t>(before); });
    block.once([&] { r.control->labelled_anchors = r.cells(); });
  }
};

struct PlaceMember { // each vector
  Resident r;
  MR_HOST_DEVICE void operator()(uint64_t i) const {
    if (i < r.used()) r.members[add_to(r.cursors[r.labels[i]], 1)] = static_cast<uint32_t>(i);
  }
};

// A block for each cell: the first and the last member, in their order, that a trimmed mean takes.
struct Trim {
  static constexpr uint32_t kThreads = 128;
  Resident r;
  MR_HOST_DEVICE void operator()(Block& block) const {
    const uint64_t c = block.index;
    if (c >= r.cells()) return;
    const uint32_t size = r.counts[c], left_out = size / kTrimmedOf;
    block.once([&] {
      r.low[c] = 0;
      r.high[c] = UINT64_MAX;
    });
    if (left_out == 0) return;
    const uint32_t* const members = r.members + r.offsets[c];
    if (size <= Block::kShared) {
      block.each(size, [&](uint64_t i) { block.shared[i] = order_of(r, members[i]); });
      block.each(size, [&](uint64_t i) {
        const uint64_t own = block.shared[i];
        uint32_t rank = 0;
        for (uint32_t other = 0; other < size; ++other) rank += block.shared[other] < own;
        if (rank == left_out) r.low[c] = own;
        if (rank == size - 1 - left_out) r.high[c] = own;
      });
    } else {
      const uint64_t low = key_of_rank(block, members, size, left_out);
      const uint64_t high = key_of_rank(block, members, size, size - 1 - left_out);
      block.once([&] {
        r.low[c] = low;
        r.high[c] = high;
      });
    }
  }

 private:
  // Finds the key by its bytes, the highest first: counts the keys that begin as it does by their next byte.
  MR_HOST_DEVICE uint64_t key_of_rank(const Block& block, const uint32_t* members, uint32_t size, uint32_t rank) const {
    constexpr uint32_t kBins = 256, kFound = 256, kLeft = 257;
    uint64_t found = 0, left = rank;
    for (int byte = 7; byte >= 0; --byte) {
      block.each(kBins, [&](uint64_t bin) { block.shared[bin] = 0; });
      block.each(size, [&](uint64_t i) {
        const uint64_t key = order_of(r, members[i]);
        const bool begins_alike = byte == 7 || key >> (8 * (byte + 1)) == found;
        if (begins_alike) add_to(block.shared[key >> (8 * byte) & 0xff], 1);
      });
      block.once([&] {
        uint64_t bin = 0, before = 0;
        while (before + block.shared[bin] <= left) before += block.shared[bin++];
        block.shared[kFound] = bin;
        block.shared[kLeft] = left - before;
      });
      found = found << 8 | block.shared[kFound];
      left = block.shared[kLeft];
    }
    block.each(0, [](uint64_t) {});
    return found;
  }
};

// The weight of a member in a mean by Huber.
MR_HOST_DEVICE inline float huber_weight(float distance, float far) {
  const float at = sqrtf(distance);
  return at <= far ? 1.0f : far / at;
}

struct ClearSums { // a block for each cell
  static constexpr uint32_t kThreads = 256;
  Resident r;
  MR_HOST_DEVICE void operator()(Block& block) const {
    const uint64_t c = block.index;
    block.each(r.stride, [&](uint64_t j) { r.sums_of(c)[j] = r.kept[c * r.stride + j] = 0; });
    block.once([&] { r.square_sums[c] = r.weight_sums[c] = 0; });
  }
};

// Some blocks for each cell, after ClearSums: sums of all members, and of those that the mean takes, each times its
// weight. Each thread has a column and a part of the block's members.
struct SumUp {
  static constexpr uint32_t kThreads = 256;
  Resident r;
  FitSettings s;
  uint32_t blocks; // for each cell
  MR_HOST_DEVICE void operator()(Block& block) const {
    const uint64_t c = block.index / blocks, part = block.index % blocks;
    if (c >= r.cells()) return;
    const uint64_t size = r.counts[c], begin = part * size / blocks, count = (part + 1) * size / blocks - begin;
    const uint32_t* const members = r.members + r.offsets[c] + begin;
    const float far = s.huber * sqrtf(r.control->temperature);
    sum_up_scalars(block, c, members, count, far);
    const uint64_t columns = r.stride, parts = columns < kThreads ? kThreads / columns : 1;
    block.each(columns * parts, [&](uint64_t at) {
      const uint64_t own = at / columns;
      sum_up_column(c, at % columns, members, own * count / parts, (own + 1) * count / parts, far);
    });
  }

 private:
  MR_HOST_DEVICE void sum_up_scalars(const Block& block, uint64_t c, const uint32_t* members, uint64_t count,
                                     float far) const {
    const uint64_t squares = sum_of(block, count, [&](uint64_t n) { return r.square[members[n]]; });
    block.once([&] { add_to(r.square_sums[c], static_cast<int64_t>(squares)); });
    if (s.mean != Mean::huber) return;
    const Whole units = Whole::below(1);
    const uint64_t weights =
        sum_of(block, count, [&](uint64_t n) { return units.of(double{huber_weight(r.distances[members[n]], far)}); });
    block.once([&] { add_to(r.weight_sums[c], static_cast<int64_t>(weights)); });
  }
  MR_HOST_DEVICE void sum_up_column(uint64_t c, uint64_t j, const uint32_t* members, uint64_t begin, uint64_t end,
                                    float far) const {
    struct Member {
      uint32_t vector;
      float number, distance;
    };
    const Whole values = r.control->values, weighed = r.control->weighed;
    const uint64_t low = r.low[c], high = r.high[c];
    int64_t sum = 0, kept = 0;
    const auto load = [&](uint64_t n) {
      const uint32_t i = members[n];
      return Member{i, r.row(i)[j], r.distances[i]};
    };
    load_ahead(begin, end, load, [&](const Member& member) {
      const double number = double{member.number};
      const int64_t units = values.of(number);
      sum += units;
      if (s.mean == Mean::trimmed) {
        const uint64_t order = key_of(member.distance, member.vector);
        kept += order >= low && order <= high ? units : 0;
      } else if (s.mean == Mean::huber) {
        kept += weighed.of(number * double{huber_weight(member.distance, far)});
      }
    });
    add_to(r.sums_of(c)[j], sum);
    if (s.mean != Mean::plain) add_to(r.kept[c * r.stride + j], kept);
  }
};

// For an anchor that stays where it is for this iteration: writes the energy of its cell and the way that it went, and
// keeps the greatest square of an anchor. Called by all threads.
MR_HOST_DEVICE inline void look_back(const Block& block, const Resident& r, uint64_t c) {
  const Control& control = *r.control;
  float* const labelled = r.labelled + c * r.stride;
  block.each(3 * kLanes, [&](uint64_t n) {
    const auto lane = static_cast<uint32_t>(n % kLanes);
    const double sum = n / kLanes == 0   ? product_of_lane(r.anchor(c), r.sums_of(c), control.values, lane, r.stride)
                       : n / kLanes == 1 ? square_of_lane(r.anchor(c), lane, r.stride)
                                         : double{distance_of_lane(r.anchor(c), labelled, lane, r.stride)};
    block.shared[n] = bits_of(sum);
  });
  block.each(r.stride, [&](uint64_t j) { labelled[j] = r.anchor(c)[j]; });
  block.once([&] {
    double products[kLanes], squares[kLanes];
    float apart[kLanes];
    for (uint32_t lane = 0; lane < kLanes; ++lane) {
      products[lane] = double_of(block.shared[lane]);
      squares[lane] = double_of(block.shared[kLanes + lane]);
      apart[lane] = static_cast<float>(double_of(block.shared[2 * kLanes + lane]));
    }
    r.ways[c] = r.bounds.reach(sum_of_lanes(apart));
    const double anchor_square = sum_of_lanes(squares);
    r.energies[c] =
        energy_from(control.squares.number(r.square_sums[c]), sum_of_lanes(products), r.counts[c], anchor_square);
    raise_to(r.control->anchor_square, bits_of(anchor_square));
  });
}

// A block for each cell: moves its anchor towards the mean.
struct Move {
  static constexpr uint32_t kThreads = 128;
  Resident r;
  FitSettings s;
  bool is_last; // nothing else moves anchors in this iteration
  MR_HOST_DEVICE void operator()(Block& block) const {
    const uint64_t c = block.index;
    if (c >= r.cells()) return;
    if (r.counts[c] == 0) {
      if (s.momentum != 0) block.each(r.stride, [&](uint64_t j) { r.velocity[c * r.stride + j] = 0; });
    } else {
      move(block, c);
    }
    if (is_last) look_back(block, r, c);
  }

 private:
  MR_HOST_DEVICE void move(const Block& block, uint64_t c) const {
    const Control& control = *r.control;
    const float temperature = control.temperature;
    const float alpha = s.rate * temperature / (1 + temperature);
    const uint32_t size = r.counts[c];
    const bool is_plain = s.mean == Mean::plain, is_huber = s.mean == Mean::huber;
    const int64_t* const sums = is_plain ? r.sums_of(c) : r.kept + c * r.stride;
    const Whole& units = is_huber ? control.weighed : control.values;
    const double by = is_huber   ? Whole::below(1).number(r.weight_sums[c])
                      : is_plain ? static_cast<double>(size)
                                 : static_cast<double>(size - 2 * (size / kTrimmedOf));
    const bool stays = is_huber && r.weight_sums[c] <= 0;
    block.each(r.dimensions, [&](uint64_t j) {
      const float at = r.anchor(c)[j];
      const float mean = stays ? at : static_cast<float>(units.number(sums[j]) / by);
      float way = alpha * (mean - at);
      float& velocity = r.velocity[c * r.stride + j];
      if (s.momentum != 0) way = s.momentum * velocity + (1 - s.momentum) * way;
      way = clamped(way, s.step_max);
      if (s.momentum != 0) velocity = way;
      r.anchor(c)[j] = Float16(clamped(at + way, kAnchorMax));
    });
  }
  MR_HOST_DEVICE static float clamped(float number, float most) {
    return number < -most ? -most : most < number ? most : number;
  }
};

// All that is done for a cell, where one block does it.
struct DoCell {
  static constexpr uint32_t kThreads = 256;
  Trim trim;
  SumUp sum_up;
  Move move;
  MR_HOST_DEVICE void operator()(Block& block) const {
    if (sum_up.s.mean == Mean::trimmed) trim(block);
    ClearSums{trim.r}(block);
    sum_up(block);
    move(block);
  }
};

struct LookBack { // a block for each cell
  static constexpr uint32_t kThreads = 128;
  Resident r;
  MR_HOST_DEVICE void operator()(Block& block) const {
    if (block.index < r.cells()) look_back(block, r, block.index);
  }
};

// The mean squared distance, from the energies of cells. All threads get it.
MR_HOST_DEVICE inline double mean_energy(const Block& block, const Resident& r) {
  const Control& control = *r.control;
  const double of_anchors = double_of(control.anchor_square), of_vectors = control.squares.largest();
  const double largest = of_vectors < of_anchors ? of_anchors : of_vectors;
  const Whole units = Whole::sums_to(5 * largest * static_cast<double>(r.used()));
  const uint64_t sum =
      sum_of(block, r.cells(), [&](uint64_t c) { return r.counts[c] > 0 ? units.of(r.energies[c]) : 0; });
  return units.number(static_cast<int64_t>(sum)) / static_cast<double>(r.used());
}

// Once: the energy, whether the fit has converged, the record of the iteration, and the next temperature.
struct EndIteration {
  Resident r;
  FitSettings s;
  IterationRecord* records; // as many as there are iterations
  MR_HOST_DEVICE void operator()(Block& block) const {
    const double energy = mean_energy(block, r);
    const Ways ways = find_ways(block);
    const uint64_t empty = sum_of(block, r.cells(), [&](uint64_t c) { return r.counts[c] == 0 ? 1 : 0; });
    block.once([&] {
      Control& c = *r.control;
      const bool is_first = c.iterations == 0;
      const double change = is_first ? not_a_number() : energy - c.energy;
      const bool is_calm = (change < 0 ? -change : change) < s.tolerance && c.changed < s.changes;
      c.calm = is_calm ? c.calm + 1 : 0;
      c.converged = c.calm == kCalmIterations;
      c.energy = energy;
      c.last.energy = energy;
      c.last.change = change;
      c.last.temperature = c.temperature;
      c.last.changed = c.changed;
      c.last.anchors = r.cells();
      c.last.merged = c.merged;
      c.last.split = c.split;
      c.last.empty = static_cast<uint32_t>(empty);
      c.last.converged = c.converged;
      records[c.iterations] = c.last;
      ++c.iterations;
      c.listed = c.changed = c.merged = c.split = 0;
      c.anchor_square = 0;
      c.longest = ways.longest;
      c.whose = static_cast<uint32_t>(ways.whose);
      c.next = ways.next;
      cool(c);
      block.shared[0] = c.converged || c.iterations == s.iterations;
    });
    block.ends = block.shared[0] != 0;
    block.each(0, [](uint64_t) {});
    if (!block.ends) // a last step still needs them
      block.each(r.anchors_max, [&](uint64_t c) { r.counts[c] = 0; });
  }

 private:
  // How far anchors went since the labels were found: the longest way, whose it is, and the longest of the others.
  struct Ways {
    double longest = 0, next = 0;
    uint64_t whose = 0;
  };
  MR_HOST_DEVICE Ways find_ways(const Block& block) const {
    const auto join = [](const Ways& one, const Ways& other) {
      const Ways& more = one.longest < other.longest ? other : one;
      const Ways& less = one.longest < other.longest ? one : other;
      return Ways{more.longest, more.next < less.longest ? less.longest : more.next, more.whose};
    };
    return found_by(
        block, r.cells(), Ways(),
        [&](uint64_t c, Ways& found) {
          found = join(found, Ways{r.ways[c], 0, c});
        },
        join);
  }
  MR_HOST_DEVICE static double not_a_number() { return double_of(uint64_t{0x7ff8} << 48); }
  MR_HOST_DEVICE void cool(Control& c) const {
    const auto steps = static_cast<float>(c.iterations);
    const float left = 1 - s.cooling_rate * steps;
    switch (s.cooling) {
      case Cooling::exponential: c.temperature = c.temperature * (1 - s.cooling_rate); break;
      case Cooling::linear: c.temperature = s.temperature * (left > 0 ? left : 0.0f); break;
      case Cooling::harmonic: c.temperature = s.temperature / (1 + s.cooling_rate * steps); break;
    }
  }
};

// The last step, a block for each cell: its anchor becomes the mean of its members.
struct TakeMean {
  static constexpr uint32_t kThreads = 128;
  Resident r;
  MR_HOST_DEVICE void operator()(Block& block) const {
    const uint64_t c = block.index;
    if (c >= r.cells()) return;
    const Whole& values = r.control->values;
    const auto size = static_cast<double>(r.counts[c]);
    if (r.counts[c] > 0)
      block.each(r.dimensions, [&](uint64_t j) {
        r.anchor(c)[j] = Float16(static_cast<float>(values.number(r.sums_of(c)[j]) / size));
      });
    look_back(block, r, c);
  }
};
struct EndLastStep { // once
  Resident r;
  IterationRecord* records;
  MR_HOST_DEVICE void operator()(Block& block) const {
    const double energy = mean_energy(block, r);
    block.once([&] {
      IterationRecord& last = r.control->last;
      last.change += energy - last.energy;
      last.energy = energy;
      records[r.control->iterations - 1] = last;
    });
  }
};

} // namespace millrace::codebook::gpu
