// Runs of a row join the areas of runs that they touch in the row above; joined areas form chains, as in a union-find.
#include "handlers/detect/connected.h"

#include <algorithm>

namespace millrace::handlers {

void ConnectedAreas::reserve(uint32_t width, uint32_t height) {
  const size_t runs = (size_t{width} + 1) / 2;
  above_.reserve(runs);
  here_.reserve(runs);
  areas_.reserve(count_max(width, height));
  owners_.reserve(count_max(width, height));
}

void ConnectedAreas::clear() {
  above_.clear();
  areas_.clear();
  owners_.clear();
  row_ = 0;
}

uint32_t ConnectedAreas::owner_of(uint32_t area) {
  while (owners_[area] != area) area = owners_[area] = owners_[owners_[area]];
  return area;
}

void ConnectedAreas::join(uint32_t a, uint32_t b) {
  a = owner_of(a);
  b = owner_of(b);
  if (a == b) return;
  const uint32_t first = std::min(a, b), other = std::max(a, b);
  ScoredArea& into = areas_[first];
  const ScoredArea& from = areas_[other];
  into = {std::min(into.left, from.left),     std::min(into.top, from.top), std::max(into.right, from.right),
          std::max(into.bottom, from.bottom), into.count + from.count,      into.sum + from.sum};
  owners_[other] = first;
}

void ConnectedAreas::add_row(const float* scores, uint32_t width, float score_min) {
  here_.clear();
  size_t touching = 0; // the first run above that may touch the next run
  for (uint32_t x = 0; x < width; ++x) {
    if (!(scores[x] >= score_min)) continue;
    const uint32_t from = x;
    double sum = 0;
    for (; x < width && scores[x] >= score_min; ++x) sum += scores[x];
    const ScoredArea area{from, row_, x, row_ + 1, x - from, sum};
    while (touching < above_.size() && above_[touching].to < from) ++touching;
    const bool is_alone = touching == above_.size() || above_[touching].from > x;
    uint32_t owner = is_alone ? static_cast<uint32_t>(areas_.size()) : owner_of(above_[touching].owner);
    if (is_alone) {
      areas_.push_back(area);
      owners_.push_back(owner);
    } else {
      ScoredArea& into = areas_[owner];
      into = {std::min(into.left, area.left), into.top,      std::max(into.right, area.right), area.bottom,
              into.count + area.count,        into.sum + sum};
      for (size_t next = touching + 1; next < above_.size() && above_[next].from <= x; ++next)
        join(owner, above_[next].owner);
      owner = owner_of(owner);
    }
    here_.push_back({from, x, owner});
  }
  std::swap(above_, here_);
  ++row_;
}

const std::vector<ScoredArea>& ConnectedAreas::finish() {
  size_t kept = 0;
  for (size_t i = 0; i < areas_.size(); ++i)
    if (owners_[i] == i) areas_[kept++] = areas_[i];
  areas_.resize(kept);
  return areas_;
}

} // namespace millrace::handlers
