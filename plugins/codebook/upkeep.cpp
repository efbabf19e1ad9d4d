// Merges and splits; see upkeep.h.
#include "plugins/codebook/upkeep.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <span>
#include <vector>

#include "plugins/codebook/distance.h"
#include "plugins/codebook/two_means.h"
#include "plugins/codebook/upkeep_rules.h"

namespace millrace::codebook {

namespace {

double distance_between(const Rows& anchors, uint32_t i, uint32_t j) {
  return double{distance(anchors.row(i), anchors.row(j), anchors.stride())};
}

// The distance below which anchors are merged.
double merge_below(const Rows& anchors) {
  const auto count = static_cast<uint32_t>(anchors.count()), pairs = std::min(count, kPairsMax);
  double sum = 0;
  for (uint32_t i = 0; i < pairs; ++i) sum += std::sqrt(distance_between(anchors, i, (i + count / 2) % count));
  return kMergeBelow * (sum / pairs);
}

void copy_to(const std::vector<float>& center, Rows& anchors, uint32_t anchor) {
  std::ranges::copy(center, anchors.row(anchor));
}

// Moves an anchor to the mean of those that were merged into it, each weighed by the size of its cell.
void move_to_union(const Rows& before, uint32_t anchor, const std::vector<uint32_t>& into, const Cells& cells,
                   std::span<float> to) {
  if (std::count(into.begin(), into.end(), anchor) == 1) return;
  std::vector<double> sums(before.dimensions());
  double weight = 0;
  for (uint32_t c = anchor; c < into.size(); ++c) {
    if (into[c] != anchor) continue;
    const auto size = static_cast<double>(cells[c].size());
    weight += size;
    for (uint32_t j = 0; j < before.dimensions(); ++j) sums[j] += double{before.row(c)[j]} * size;
  }
  if (weight > 0)
    for (uint32_t j = 0; j < before.dimensions(); ++j) to[j] = Float16(static_cast<float>(sums[j] / weight));
}

} // namespace

Upkeep keep_as_published(const Points& points, float temperature, uint32_t anchors_max, Rows& anchors, Labels& labels,
                         Cells& cells, Crew& crew) {
  Upkeep done;
  const auto count = static_cast<uint32_t>(anchors.count());
  const Rows before = anchors;
  const double below = merge_below(before);
  std::vector<uint32_t> into(count); // the anchor that it was merged into, or itself
  std::iota(into.begin(), into.end(), 0u);
  for (uint32_t i = 0; i < count; ++i) {
    if (into[i] != i) continue;
    for (uint32_t j = i + 1; j < count; ++j) {
      if (into[j] != j || std::sqrt(distance_between(before, i, j)) >= below) continue;
      into[j] = i;
      ++done.merged;
    }
    move_to_union(before, i, into, cells, anchors.numbers(i));
  }
  for (uint32_t vector = 0; vector < points.count(); ++vector) labels.move(vector, into[labels.all()[vector]]);
  cells.sort(labels.all(), count, crew);

  const size_t large = kLargeFrom * (points.count() / count);
  for (uint32_t c = 0; c < count && anchors.count() < anchors_max; ++c) {
    const Cell& cell = cells[c];
    if (cell.size() < 2) continue;
    const double spread = cell.energy(points, anchors.row(c)) / static_cast<double>(cell.size());
    if (cell.size() <= large && spread <= kWideFrom * double{temperature}) continue;
    const Halves halves = two_means(points, cell.members);
    const auto added = static_cast<uint32_t>(anchors.count());
    anchors.resize(added + 1);
    copy_to(halves.first.center, anchors, c);
    copy_to(halves.second.center, anchors, added);
    for (const uint32_t vector : halves.second.cell.members) labels.move(vector, added);
    ++done.split;
  }
  cells.sort(labels.all(), anchors.count(), crew);
  return done;
}

namespace {

// Pairs of anchors by the cost of their union. For each anchor the cheapest partner after it is kept.
class Unions {
 public:
  Unions(const Rows& anchors, const std::vector<Cell>& cells, Crew& crew)
      : anchors_(anchors), cells_(cells), best_(anchors.count()) {
    crew.each(best_.size(), 1, [this](size_t anchor, size_t) { find(static_cast<uint32_t>(anchor)); });
  }

  struct Pair {
    uint32_t first = 0, second = 0;
    double cost = std::numeric_limits<double>::infinity();
  };
  // The first of several.
  Pair cheapest() const {
    Pair least;
    for (uint32_t i = 0; i < best_.size(); ++i)
      if (best_[i].cost < least.cost) least = {i, best_[i].partner, best_[i].cost};
    return least;
  }
  // After these anchors and their cells have changed.
  void renew(std::span<const uint32_t> changed) {
    for (uint32_t i = 0; i < best_.size(); ++i) {
      const auto is_one = [&](uint32_t anchor) { return std::ranges::find(changed, anchor) != changed.end(); };
      if (is_one(i) || is_one(best_[i].partner)) {
        find(i);
        continue;
      }
      for (const uint32_t anchor : changed)
        if (anchor > i) consider(i, anchor);
    }
  }

 private:
  struct Best {
    uint32_t partner = 0;
    double cost = std::numeric_limits<double>::infinity();
  };
  void find(uint32_t i) {
    best_[i] = {};
    for (uint32_t j = i + 1; j < best_.size(); ++j) consider(i, j);
  }
  void consider(uint32_t i, uint32_t j) {
    const auto n = static_cast<double>(cells_[i].size()), m = static_cast<double>(cells_[j].size());
    const double cost = n * m > 0 ? n * m / (n + m) * distance_between(anchors_, i, j) : 0;
    if (cost < best_[i].cost || (cost == best_[i].cost && j < best_[i].partner)) best_[i] = {j, cost};
  }

  const Rows& anchors_;
  const std::vector<Cell>& cells_;
  std::vector<Best> best_;
};

std::vector<float> mean_of(const Rows& anchors, const std::vector<Cell>& cells, uint32_t i, uint32_t j) {
  const auto n = static_cast<double>(cells[i].size()), m = static_cast<double>(cells[j].size());
  std::vector<float> mean(anchors.stride());
  for (size_t d = 0; d < mean.size(); ++d) {
    const double sum = n * double{anchors.row(i)[d]} + m * double{anchors.row(j)[d]};
    mean[d] = Float16(n + m > 0 ? static_cast<float>(sum / (n + m)) : anchors.row(i)[d]);
  }
  return mean;
}

} // namespace

Upkeep keep_corrected(const Points& points, Rows& anchors, Labels& labels, Cells& cells, Crew& crew) {
  Upkeep done;
  const auto count = static_cast<uint32_t>(anchors.count());
  std::vector<Cell> made;
  std::vector<double> energies;
  for (uint32_t c = 0; c < count; ++c) {
    made.push_back(cells[c]);
    energies.push_back(cells[c].size() > 0 ? cells[c].energy(points, anchors.row(c)) : 0);
  }
  Unions unions(anchors, made, crew);
  for (uint32_t n = 0; n < std::max(count / kCorrectedOf, 1u); ++n) {
    const Unions::Pair pair = unions.cheapest();
    const uint32_t i = pair.first, j = pair.second;
    uint32_t split = count; // the cell of the greatest energy, of several the first
    for (uint32_t c = 0; c < count; ++c)
      if (c != i && c != j && made[c].size() > 1 && (split == count || energies[c] > energies[split])) split = c;
    if (split == count || j == i) break;

    const std::vector<float> center = mean_of(anchors, made, i, j);
    Cell both = made[i];
    both.add(made[j]);
    const double energy_of_both = both.size() > 0 ? both.energy(points, center.data()) : 0;
    Halves halves = two_means(points, made[split].members);
    const double of_first = halves.first.cell.energy(points, halves.first.center.data());
    const double of_second = halves.second.cell.energy(points, halves.second.center.data());
    if (energy_of_both + of_first + of_second >= energies[i] + energies[j] + energies[split]) break;

    copy_to(center, anchors, i);
    copy_to(halves.first.center, anchors, split);
    copy_to(halves.second.center, anchors, j);
    made[i] = std::move(both);
    made[split] = std::move(halves.first.cell);
    made[j] = std::move(halves.second.cell);
    energies[i] = energy_of_both;
    energies[split] = of_first;
    energies[j] = of_second;
    for (const uint32_t c : {i, j, split})
      for (const uint32_t vector : made[c].members) labels.move(vector, c);
    const uint32_t changed[] = {i, j, split};
    unions.renew(changed);
    ++done.merged;
    ++done.split;
  }
  cells.sort(labels.all(), count, crew);
  return done;
}

} // namespace millrace::codebook
