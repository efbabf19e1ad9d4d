// Upkeep of a resident fit, as upkeep.h does it: cells are merged and split now and then.
#pragma once

#include "plugins/codebook/gpu/block.h"
#include "plugins/codebook/gpu/cell_steps.h"
#include "plugins/codebook/gpu/lane_sums.h"
#include "plugins/codebook/gpu/resident.h"
#include "plugins/codebook/upkeep_rules.h"

namespace millrace::codebook::gpu {

// Two-means over the vectors of a list (two_means.h). A block's threads all make the same counts, sums of squares and
// energies.
struct TwoHalves {
  const uint32_t* list;
  uint32_t size;
  uint32_t* half_of; // each vector's half, by its place in the list
  float* centers[2]; // rows
  int64_t* sums[2];  // rows: of each half
  uint32_t counts[2];
  int64_t square_sums[2];
  double energies[2];

  MR_HOST_DEVICE void find(const Block& block, const Resident& r) {
    constexpr uint32_t kRounds = 5;
    const uint64_t first = least_of(block, size, [&](uint64_t n) { return uint64_t{list[n]}; }).key;
    const uint64_t last = ~least_of(block, size, [&](uint64_t n) { return ~uint64_t{list[n]}; }).key;
    block.each(r.stride, [&](uint64_t j) {
      centers[0][j] = r.row(first)[j];
      centers[1][j] = r.row(last)[j];
    });
    for (uint32_t round = 0; round < kRounds; ++round) {
      distances_to_two(
          block, centers[0], centers[1], r.stride, size, [&](uint64_t n) { return r.row(list[n]); },
          [&](uint64_t n, float to_first, float to_second) { half_of[n] = to_first < to_second ? 0 : 1; });
      sum_up(block, r);
      for (uint32_t half = 0; half < 2; ++half)
        if (counts[half] > 0)
          block.each(r.stride, [&](uint64_t j) {
            const double sum = r.control->values.number(sums[half][j]);
            centers[half][j] = static_cast<float>(sum / static_cast<double>(counts[half]));
          });
    }
    for (uint32_t half = 0; half < 2; ++half) {
      block.each(r.stride, [&](uint64_t j) { centers[half][j] = Float16(centers[half][j]); });
      energies[half] = energy_of_cell(centers[half], sums[half], square_sums[half], counts[half], r.control->values,
                                      r.control->squares, r.stride);
    }
    block.each(0, [](uint64_t) {});
  }

 private:
  // Each thread has a column and a part of the list.
  MR_HOST_DEVICE void sum_up(const Block& block, const Resident& r) {
    const uint64_t of_second = sum_of(block, size, [&](uint64_t n) { return half_of[n]; });
    const uint64_t both = sum_of(block, size, [&](uint64_t n) { return r.square[list[n]]; });
    const uint64_t second = sum_of(block, size, [&](uint64_t n) { return half_of[n] ? r.square[list[n]] : 0; });
    counts[0] = size - static_cast<uint32_t>(of_second);
    counts[1] = static_cast<uint32_t>(of_second);
    square_sums[0] = static_cast<int64_t>(both - second);
    square_sums[1] = static_cast<int64_t>(second);
    block.each(r.stride, [&](uint64_t j) { sums[0][j] = sums[1][j] = 0; });
    constexpr uint64_t kThreads = 1024;
    const uint64_t parts = r.stride < kThreads ? kThreads / r.stride : 1;
    block.each(r.stride * parts, [&](uint64_t at) {
      const uint64_t part = at / r.stride;
      sum_up_column(r, at % r.stride, part * size / parts, (part + 1) * size / parts);
    });
  }
  MR_HOST_DEVICE void sum_up_column(const Resident& r, uint64_t j, uint64_t begin, uint64_t end) const {
    struct Member {
      float number;
      uint32_t half;
    };
    const Whole values = r.control->values;
    int64_t of_both = 0, of_second = 0;
    const auto load = [&](uint64_t n) { return Member{r.row(list[n])[j], half_of[n]}; };
    load_ahead(begin, end, load, [&](const Member& member) {
      const int64_t units = values.of(double{member.number});
      of_both += units;
      of_second += member.half ? units : 0;
    });
    add_to(sums[0][j], of_both - of_second);
    add_to(sums[1][j], of_second);
  }
};

MR_HOST_DEVICE inline float* center_of(const Resident& r, uint32_t half) { return r.centers + half * r.stride; }
MR_HOST_DEVICE inline int64_t* center_sums_of(const Resident& r, uint32_t half) {
  return r.center_sums + half * r.stride;
}
MR_HOST_DEVICE inline double between(const Resident& r, const float* book, uint64_t i, uint64_t j) {
  return double{distance_of(book + i * r.stride, book + j * r.stride, r.stride)};
}

// The energies of all cells, one thread a cell.
MR_HOST_DEVICE inline void find_energies(const Block& block, const Resident& r) {
  const Control& control = *r.control;
  block.each(r.cells(), [&](uint64_t c) {
    r.energies[c] = r.counts[c] == 0 ? 0
                                     : energy_of_cell(r.anchor(c), r.sums_of(c), r.square_sums[c], r.counts[c],
                                                      control.values, control.squares, r.stride);
  });
}

// Both rules do this around their work.
struct Upkeep {
  Resident r;
  FitSettings s;

 protected:
  MR_HOST_DEVICE bool is_due() const {
    const uint32_t count = r.control->iterations;
    return count > 0 && count % s.interval == 0;
  }
  MR_HOST_DEVICE void keep_earlier(const Block& block) const {
    block.each(uint64_t{r.cells()} * r.stride, [&](uint64_t at) { r.earlier[at] = r.book[at]; });
  }
  // `before`: anchors that there were. The last step of an anchor that was put elsewhere is forgotten.
  MR_HOST_DEVICE void end(const Block& block, uint32_t before) const {
    if (s.momentum != 0)
      block.each(r.cells(), [&](uint64_t a) {
        bool stays = a < before;
        for (uint64_t j = 0; j < r.dimensions && stays; ++j) stays = r.earlier[a * r.stride + j] == r.anchor(a)[j];
        for (uint64_t j = 0; j < r.stride && !stays; ++j) r.velocity[a * r.stride + j] = 0;
      });
    block.once([&] { r.control->changed = 0; });
    block.each(r.used(), [&](uint64_t i) {
      if (r.labels[i] != r.before[i]) add_to(r.control->changed, 1);
    });
  }
};

// As published: once, merges anchors that lie close together and chooses the cells that are split. Then blocks split
// them, and last the iteration's changes are counted.
struct MergeAsPublished : Upkeep {
  MR_HOST_DEVICE void operator()(Block& block) const {
    if (!is_due()) return;
    const uint32_t count = r.cells();
    keep_earlier(block);
    merge(block, count);
    block.each(r.used(), [&](uint64_t i) { r.labels[i] = r.partners[r.labels[i]]; });
    PlaceCells{r}(block); // the members of a cell lie together again
    block.each(r.used(), PlaceMember{r});
    choose(block, count);
  }

 private:
  MR_HOST_DEVICE void merge(const Block& block, uint32_t count) const {
    const float* const before = r.earlier;
    const uint32_t pairs = count < kPairsMax ? count : kPairsMax;
    block.each(pairs, [&](uint64_t i) { r.costs[i] = sqrt(between(r, before, i, (i + count / 2) % count)); });
    double sum = 0;
    for (uint32_t i = 0; i < pairs; ++i) sum += r.costs[i];
    const double below = kMergeBelow * (sum / pairs);
    block.each(count, [&](uint64_t c) { r.partners[c] = static_cast<uint32_t>(c); });
    for (uint32_t i = 0; i < count; ++i) {
      if (r.partners[i] != i) continue;
      const auto anchor_at = [&](uint64_t n) { return before + (i + 1 + n) * r.stride; };
      distances_to(block, before + uint64_t{i} * r.stride, r.stride, count - i - 1, anchor_at,
                   [&](uint64_t n, float distance) {
                     const uint64_t j = i + 1 + n;
                     if (r.partners[j] == j && sqrt(double{distance}) < below) r.partners[j] = i;
                   });
      const auto merged = static_cast<uint32_t>(
          sum_of(block, count - i - 1, [&](uint64_t n) { return r.partners[i + 1 + n] == i ? 1 : 0; }));
      if (merged == 0) continue;
      block.once([&] { r.control->merged += merged; });
      unite(block, i, count);
    }
  }
  // Moves an anchor to the mean of those that were merged into it, weighed by members, and gives it their members.
  MR_HOST_DEVICE void unite(const Block& block, uint32_t into, uint32_t count) const {
    block.each(uint64_t{r.stride} + 1, [&](uint64_t j) {
      double sum = 0, weight = 0;
      int64_t units = 0;
      for (uint64_t c = into; c < count; ++c) {
        if (r.partners[c] != into) continue;
        const auto size = static_cast<double>(r.counts[c]);
        weight += size;
        if (j < r.stride) sum += double{r.earlier[c * r.stride + j]} * size;
        units += j < r.stride ? r.sums_of(c)[j] : r.square_sums[c];
        if (c == into) continue;
        if (j < r.stride)
          r.sums_of(c)[j] = 0;
        else
          r.square_sums[c] = 0;
      }
      if (j < r.stride)
        r.sums_of(into)[j] = units;
      else
        r.square_sums[into] = units;
      if (weight > 0 && j < r.dimensions) r.anchor(into)[j] = Float16(static_cast<float>(sum / weight));
    });
    block.once([&] {
      for (uint64_t c = into + 1; c < count; ++c) {
        if (r.partners[c] != into) continue;
        r.counts[into] += r.counts[c];
        r.counts[c] = 0;
      }
    });
  }
  // `partners` becomes the anchor that a cell's second half gets; kNone: the cell is not split.
  MR_HOST_DEVICE void choose(const Block& block, uint32_t count) const {
    const uint32_t large = kLargeFrom * (r.used() / count);
    const double wide = kWideFrom * double{r.control->temperature};
    find_energies(block, r);
    const auto is_split = [&](uint64_t c) {
      const uint32_t size = r.counts[c];
      return size >= 2 && (size > large || r.energies[c] / static_cast<double>(size) > wide);
    };
    const uint64_t all = sum_of(block, count, [&](uint64_t c) { return is_split(c) ? 1 : 0; });
    sum_up_before(
        block, count, [&](uint64_t c) { return is_split(c) ? 1 : 0; },
        [&](uint64_t c, uint64_t before) {
          const uint64_t second = count + before;
          r.partners[c] = is_split(c) && second < r.anchors_max ? static_cast<uint32_t>(second) : kNone;
        });
    block.once([&] {
      const uint64_t most = r.anchors_max - count;
      r.control->split = static_cast<uint32_t>(all < most ? all : most);
      r.control->before_upkeep = count;
      r.control->outcome.anchors = count + r.control->split;
    });
  }
};
struct SplitCells : Upkeep {
  static constexpr uint32_t kThreads = 1024, kBlocks = 128;
  MR_HOST_DEVICE void operator()(Block& block) const {
    if (!is_due()) return;
    for (uint32_t c = block.index; c < r.control->before_upkeep; c += kBlocks)
      if (r.partners[c] != kNone) split(block, c, r.partners[c]);
  }

 private:
  MR_HOST_DEVICE void split(const Block& block, uint32_t c, uint32_t second) const {
    const uint32_t offset = r.offsets[c];
    TwoHalves halves{r.members + offset,
                     r.counts[c],
                     r.halves + offset,
                     {r.anchor(c), r.anchor(second)},
                     {r.sums_of(c), r.sums_of(second)},
                     {},
                     {},
                     {}};
    halves.find(block, r);
    block.each(halves.size, [&](uint64_t n) {
      if (halves.half_of[n] == 1) r.labels[halves.list[n]] = second;
    });
    block.once([&] {
      for (uint32_t half = 0; half < 2; ++half) {
        r.counts[half == 0 ? c : second] = halves.counts[half];
        r.square_sums[half == 0 ? c : second] = halves.square_sums[half];
      }
    });
  }
};
struct EndUpkeep : Upkeep {
  MR_HOST_DEVICE void operator()(Block& block) const {
    if (is_due()) end(block, r.control->before_upkeep);
  }
};

struct KeepCorrected : Upkeep {
  MR_HOST_DEVICE void operator()(Block& block) const {
    if (!is_due()) return;
    const uint32_t count = r.cells();
    keep_earlier(block);
    find_energies(block, r);
    block.each(count, [&](uint64_t i) { find(i, count); });
    const uint32_t most = count / kCorrectedOf;
    for (uint32_t n = 0; n < (most > 1 ? most : 1); ++n)
      if (!exchange(block, count)) break;
    end(block, count);
  }

 private:
  // The cheapest partner of an anchor after it: `partners` and `costs`.
  MR_HOST_DEVICE void find(uint64_t i, uint32_t count) const {
    r.partners[i] = 0;
    r.costs[i] = kFar;
    for (uint64_t j = i + 1; j < count; ++j) consider(i, j);
  }
  MR_HOST_DEVICE void consider(uint64_t i, uint64_t j) const {
    const auto n = static_cast<double>(r.counts[i]), m = static_cast<double>(r.counts[j]);
    const double cost = n * m > 0 ? n * m / (n + m) * between(r, r.book, i, j) : 0;
    if (cost > r.costs[i] || (cost == r.costs[i] && j >= r.partners[i])) return;
    r.partners[i] = static_cast<uint32_t>(j);
    r.costs[i] = cost;
  }

  // Merges the two anchors whose union costs least and splits the cell of the greatest energy. False if the energy does
  // not fall by that.
  MR_HOST_DEVICE bool exchange(const Block& block, uint32_t count) const {
    const Control& control = *r.control;
    const Least cheapest =
        least_of(block, count, [&](uint64_t c) { return r.costs[c] < kFar ? bits_of(r.costs[c]) : UINT64_MAX; });
    const bool has_pair = cheapest.key != UINT64_MAX;
    const auto i = static_cast<uint32_t>(has_pair ? cheapest.index : 0);
    const uint32_t j = has_pair ? r.partners[i] : 0;
    const Least greatest = least_of(block, count, [&](uint64_t c) {
      return c != i && c != j && r.counts[c] > 1 ? ~ordered_bits(r.energies[c]) : UINT64_MAX;
    });
    const uint32_t split = greatest.key != UINT64_MAX ? static_cast<uint32_t>(greatest.index) : kNone;
    if (split == kNone || j == i) return false;

    const auto n = static_cast<double>(r.counts[i]), m = static_cast<double>(r.counts[j]);
    float* const center = center_of(r, 2);
    int64_t* const sums = center_sums_of(r, 2);
    block.each(r.stride, [&](uint64_t d) {
      const double sum = n * double{r.anchor(i)[d]} + m * double{r.anchor(j)[d]};
      center[d] = Float16(n + m > 0 ? static_cast<float>(sum / (n + m)) : r.anchor(i)[d]);
      sums[d] = r.sums_of(i)[d] + r.sums_of(j)[d];
    });
    const uint32_t size_of_both = r.counts[i] + r.counts[j];
    const int64_t square_of_both = r.square_sums[i] + r.square_sums[j];
    const double energy_of_both = size_of_both > 0 ? energy_of_cell(center, sums, square_of_both, size_of_both,
                                                                    control.values, control.squares, r.stride)
                                                   : 0;
    block.once([&] { r.cursors[0] = 0; });
    block.each(r.used(), [&](uint64_t v) {
      if (r.labels[v] == split) r.members[add_to(r.cursors[0], 1)] = static_cast<uint32_t>(v);
    });
    TwoHalves halves{r.members,
                     r.counts[split],
                     r.halves,
                     {center_of(r, 0), center_of(r, 1)},
                     {center_sums_of(r, 0), center_sums_of(r, 1)},
                     {},
                     {},
                     {}};
    halves.find(block, r);
    if (energy_of_both + halves.energies[0] + halves.energies[1] >= r.energies[i] + r.energies[j] + r.energies[split])
      return false;

    block.each(r.used(), [&](uint64_t v) {
      if (r.labels[v] == j) r.labels[v] = i;
    });
    block.each(halves.size, [&](uint64_t at) { r.labels[halves.list[at]] = halves.half_of[at] == 0 ? split : j; });
    block.each(r.stride, [&](uint64_t d) {
      r.anchor(i)[d] = center[d];
      r.sums_of(i)[d] = sums[d];
      for (uint32_t half = 0; half < 2; ++half) {
        r.anchor(half == 0 ? split : j)[d] = halves.centers[half][d];
        r.sums_of(half == 0 ? split : j)[d] = halves.sums[half][d];
      }
    });
    block.once([&] {
      r.counts[i] = size_of_both;
      r.square_sums[i] = square_of_both;
      r.energies[i] = energy_of_both;
      for (uint32_t half = 0; half < 2; ++half) {
        const uint32_t cell = half == 0 ? split : j;
        r.counts[cell] = halves.counts[half];
        r.square_sums[cell] = halves.square_sums[half];
        r.energies[cell] = halves.energies[half];
      }
      ++r.control->merged;
      ++r.control->split;
    });
    block.each(count, [&](uint64_t c) { renew(c, count, {i, j, split}); });
    return true;
  }
  // After these anchors and their cells have changed.
  struct Changed {
    uint32_t one, two, three;
    MR_HOST_DEVICE bool has(uint64_t c) const { return c == one || c == two || c == three; }
  };
  MR_HOST_DEVICE void renew(uint64_t c, uint32_t count, Changed changed) const {
    if (changed.has(c) || changed.has(r.partners[c])) return find(c, count);
    for (const uint32_t anchor : {changed.one, changed.two, changed.three})
      if (anchor > c) consider(c, anchor);
  }

  static constexpr double kFar = std::numeric_limits<double>::infinity();
};

} // namespace millrace::codebook::gpu
