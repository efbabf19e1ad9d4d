// Chooses first anchors. The distance to the nearest anchor is kept for each vector and lowered for each new anchor.
#include "plugins/codebook/first_anchors.h"

#include <algorithm>
#include <limits>
#include <numeric>

#include "plugins/codebook/distance.h"
#include "plugins/codebook/draw.h"
#include "plugins/codebook/whole.h"

namespace millrace::codebook {

namespace {

constexpr size_t kRowsAPart = 1024;

// For each vector the distance to the nearest of the chosen ones. A new one cannot be nearer to a vector if it lies at
// least twice as far from the vector's nearest as the vector does. Such vectors are skipped.
class NearestChosen {
 public:
  explicit NearestChosen(const Rows& rows)
      : rows_(rows),
        bounds_(rows.stride()),
        distances_(rows.count(), std::numeric_limits<float>::infinity()),
        nearest_(rows.count()),
        reaches_(rows.count()),
        furthest_((rows.count() + kRowsAPart - 1) / kRowsAPart) {}

  void add(uint32_t chosen, Crew& crew) {
    const float* const added = rows_.row(chosen);
    std::vector<double> from(chosen_.size()); // half of the distance between the new one and each chosen before
    crew.each(chosen_.size(), kRowsAPart, [&](size_t begin, size_t end) {
      for (size_t c = begin; c < end; ++c)
        from[c] = bounds_.at_least(distance(added, rows_.row(chosen_[c]), rows_.stride())) / 2;
    });
    const auto index = static_cast<uint32_t>(chosen_.size());
    chosen_.push_back(chosen);
    crew.each(rows_.count(), kRowsAPart, [&](size_t begin, size_t end) {
      for (size_t i = begin; i < end; ++i)
        if (index == 0 || reaches_[i] > from[nearest_[i]]) look(i, added, index);
      size_t at = begin;
      for (size_t i = begin; i < end; ++i)
        if (distances_[i] >= distances_[at]) at = i;
      furthest_[begin / kRowsAPart] = static_cast<uint32_t>(at);
    });
  }
  // The vector that is furthest from its nearest, the last of several.
  uint32_t furthest() const {
    uint32_t at = furthest_[0];
    for (const uint32_t one : furthest_)
      if (distances_[one] >= distances_[at]) at = one;
    return at;
  }
  const std::vector<float>& distances() const { return distances_; }

 private:
  void look(size_t vector, const float* added, uint32_t index) {
    const float there = distance(rows_.row(vector), added, rows_.stride());
    if (there >= distances_[vector]) return;
    distances_[vector] = there;
    nearest_[vector] = index;
    reaches_[vector] = bounds_.reach(there);
  }

  const Rows& rows_;
  const DistanceBounds bounds_;
  std::vector<float> distances_;
  std::vector<uint32_t> chosen_, nearest_; // `nearest_` by vector: which of the chosen
  std::vector<double> reaches_;            // by vector: its distance to that one, not squared, at most
  std::vector<uint32_t> furthest_;         // by part: its furthest vector
};

} // namespace

std::vector<uint32_t> farthest(const Rows& rows, uint32_t count, Crew& crew) {
  NearestChosen nearest(rows);
  std::vector<uint32_t> chosen = {0};
  while (chosen.size() < count) {
    nearest.add(chosen.back(), crew);
    chosen.push_back(nearest.furthest());
  }
  return chosen;
}

std::vector<uint32_t> kmeans_plus_plus(const Rows& rows, uint32_t count, uint64_t seed, Crew& crew) {
  Draw draw(seed);
  NearestChosen nearest(rows);
  std::vector<uint32_t> chosen = {static_cast<uint32_t>(draw.below(rows.count()))};
  while (chosen.size() < count) {
    nearest.add(chosen.back(), crew);
    const std::vector<float>& distances = nearest.distances();
    const Whole weights = Whole::below(double{*std::max_element(distances.begin(), distances.end())});
    uint64_t sum = 0;
    for (const float distance : distances) sum += static_cast<uint64_t>(weights.of(double{distance}));
    uint32_t at = 0;
    if (sum == 0) { // every vector is an anchor already
      at = static_cast<uint32_t>(draw.below(rows.count()));
    } else {
      const uint64_t drawn = draw.below(sum);
      for (uint64_t before = 0; at < distances.size(); ++at) {
        before += static_cast<uint64_t>(weights.of(double{distances[at]}));
        if (before > drawn) break;
      }
    }
    chosen.push_back(at);
  }
  return chosen;
}

std::vector<uint32_t> random_rows(const Rows& rows, uint32_t count, uint64_t seed) {
  Draw draw(seed);
  std::vector<uint32_t> order(rows.count());
  std::iota(order.begin(), order.end(), 0u);
  for (uint32_t n = 0; n < count; ++n) std::swap(order[n], order[n + draw.below(order.size() - n)]);
  order.resize(count);
  return order;
}

} // namespace millrace::codebook
