// The steps from one list of points to its links; see link_graph.h.
#include "handlers/points/link_graph.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <tuple>

namespace millrace::handlers {

namespace {

// Keeps the links that are among the first `most` at both of their ends. `before(point, l, m)` orders two of them, by
// their numbers, as that end sees them.
template <class Before>
void keep_first_at_both_ends(std::vector<Link>& links, size_t points, uint32_t most, const Before& before) {
  std::vector<std::vector<uint32_t>> at(points);
  for (uint32_t l = 0; l < links.size(); ++l)
    for (const int32_t end : {links[l].a, links[l].b}) at[static_cast<size_t>(end)].push_back(l);
  std::vector<uint8_t> ends_that_keep(links.size(), 0);
  for (uint32_t point = 0; point < points; ++point) {
    std::vector<uint32_t>& here = at[point];
    if (here.size() > most)
      std::nth_element(here.begin(), here.begin() + most, here.end(),
                       [&](uint32_t l, uint32_t m) { return before(point, l, m); });
    for (size_t i = 0; i < std::min<size_t>(here.size(), most); ++i) ++ends_that_keep[here[i]];
  }
  size_t kept = 0;
  for (size_t l = 0; l < links.size(); ++l)
    if (ends_that_keep[l] == 2) links[kept++] = links[l];
  links.resize(kept);
}

} // namespace

std::span<const Link> LinkGraph::step(std::span<const Point> points, const LinkMemory& memory, uint64_t most,
                                      uint64_t& left_out) {
  recall(points, memory);
  find_nearest(points);
  join(points);
  if (rule_.degree_max > 0) cap_degrees();
  live(points);
  const size_t linked = links_.size();
  fade(points);
  left_out = links_.size() > most ? links_.size() - most : 0;
  links_.resize(links_.size() - left_out);
  if (rule_.remembers()) remember(memory, linked);
  return links_;
}

// Finds the links of the last list whose ids are in this one.
void LinkGraph::recall(std::span<const Point> points, const LinkMemory& memory) {
  memory.turn.turn = next_turn(memory.turn.turn);
  places_ = {memory.slots.data(), static_cast<uint32_t>(memory.slots.size() - 1), memory.turn.turn};
  for (uint32_t i = 0; i < points.size(); ++i) places_.insert(points.data(), i);
  past_.resize(points.size());
  for (std::vector<Past>& of_point : past_) of_point.clear();
  if (!rule_.remembers()) return;
  const uint32_t last = memory.turn.last;
  for (const PastLink& link : memory.past.subspan(last * memory.past.size() / 2, memory.turn.counts[last])) {
    const uint32_t a = places_.find(points.data(), link.id_a), b = places_.find(points.data(), link.id_b);
    if (a == PlaceTable::kNowhere || b == PlaceTable::kNowhere) continue;
    past_[a].push_back({b, link.life, link.is_linked != 0});
    past_[b].push_back({a, link.life, link.is_linked != 0});
  }
}

void LinkGraph::remember(const LinkMemory& memory, size_t linked) const {
  LinkTurn& turn = memory.turn;
  turn.last = 1 - turn.last;
  const std::span<PastLink> list = memory.past.subspan(turn.last * memory.past.size() / 2, links_.size());
  turn.counts[turn.last] = static_cast<uint32_t>(links_.size());
  for (size_t l = 0; l < links_.size(); ++l) list[l] = {links_[l].id_a, links_[l].id_b, links_[l].life, l < linked};
}

const LinkGraph::Past* LinkGraph::past_of(uint32_t a, uint32_t b) const {
  for (const Past& past : past_[a])
    if (past.other == b) return &past;
  return nullptr;
}

void LinkGraph::find_nearest(std::span<const Point> points) {
  nearest_.resize(points.size() * rule_.k);
  near_count_.assign(points.size(), 0);
  tree_.build(points);
  for (const PointTree::Leaf& leaf : tree_.leaves()) find_nearest_of(points, leaf);
}

void LinkGraph::find_nearest_of(std::span<const Point> points, const PointTree::Leaf& leaf) {
  constexpr float kInfinite = std::numeric_limits<float>::infinity();
  const auto may_join = [&](uint32_t one, uint32_t other) {
    return one != other && (rule_.delta_after || !rule_.parts(points[one], points[other]));
  };
  BestPoints best[PointTree::kLeafPoints];
  for (uint32_t i = 0; i < leaf.count; ++i) {
    const uint32_t point = leaf.places[i];
    best[i] = BestPoints(nearest_.data() + size_t{point} * rule_.k, rule_.k,
                         rule_.radius > 0 ? rule_.radius * rule_.radius : kInfinite);
    // Those that were linked come first, since they count as nearer than they are.
    for (const Past& past : past_[point])
      if (past.linked && may_join(point, past.other))
        best[i].offer({gpu::rounded_product(squared_distance(points[point], points[past.other]), rule_.linked_ratio()),
                       past.other});
  }
  const bool is_low = rule_.delta_y_max > 0 && !rule_.delta_after;
  tree_.search(leaf, is_low ? rule_.delta_y_max : kInfinite, best, [&](uint32_t i, const ScoredPoint& near) {
    const uint32_t point = leaf.places[i], other = near.place();
    if (best[i].limit() < near || !may_join(point, other)) return;
    const Past* const past = past_of(point, other);
    if (!past || !past->linked) best[i].offer(near);
  });
  for (uint32_t i = 0; i < leaf.count; ++i) near_count_[leaf.places[i]] = best[i].count();
}

bool LinkGraph::is_near(uint32_t point, uint32_t other) const {
  const ScoredPoint* const first = nearest_.data() + size_t{point} * rule_.k;
  return std::any_of(first, first + near_count_[point], [&](const ScoredPoint& near) { return near.place() == other; });
}

void LinkGraph::join(std::span<const Point> points) {
  links_.clear();
  scores_.clear();
  for (uint32_t i = 0; i < points.size(); ++i)
    for (uint32_t rank = 0; rank < near_count_[i]; ++rank) {
      const ScoredPoint& near = nearest_[size_t{i} * rule_.k + rank];
      if (near.place() < i && is_near(near.place(), i)) continue; // the other owns it
      if (rule_.delta_after && rule_.parts(points[i], points[near.place()])) continue;
      Link link;
      link.a = static_cast<int32_t>(std::min(i, near.place()));
      link.b = static_cast<int32_t>(std::max(i, near.place()));
      links_.push_back(link);
      scores_.push_back(near.score());
    }
}

// A link stays if it is among the best of both ends.
void LinkGraph::cap_degrees() {
  keep_first_at_both_ends(links_, past_.size(), rule_.degree_max, [&](uint32_t, uint32_t l, uint32_t m) {
    return std::tie(scores_[l], links_[l].a, links_[l].b) < std::tie(scores_[m], links_[m].a, links_[m].b);
  });
}

// Fills in what a link has beside its ends.
void LinkGraph::live(std::span<const Point> points) {
  ids_.resize(points.size());
  for (uint32_t i = 0; i < points.size(); ++i) ids_[i] = places_.id_at(points.data(), i, points[i].id);
  for (Link& link : links_) {
    const auto a = static_cast<uint32_t>(link.a), b = static_cast<uint32_t>(link.b);
    link.id_a = ids_[a];
    link.id_b = ids_[b];
    link.length = std::sqrt(squared_distance(points[a], points[b]));
    const Past* const past = past_of(a, b);
    link.life = risen_life(past ? past->life : 0, rule_.gain);
  }
}

// Adds the links that were given before, are linked no more and still have life.
void LinkGraph::fade(std::span<const Point> points) {
  if (rule_.fade <= 0) return;
  std::vector<std::pair<uint32_t, uint32_t>> linked;
  for (const Link& link : links_) linked.emplace_back(link.a, link.b);
  std::sort(linked.begin(), linked.end());
  std::vector<Link> fading;
  for (uint32_t a = 0; a < past_.size(); ++a)
    for (const Past& past : past_[a]) {
      const float life = past.life * rule_.fade;
      if (past.other < a || life <= kLifeMin) continue;
      if (std::binary_search(linked.begin(), linked.end(), std::pair{a, past.other})) continue;
      Link link;
      link.a = static_cast<int32_t>(a);
      link.b = static_cast<int32_t>(past.other);
      link.id_a = points[a].id;
      link.id_b = points[past.other].id;
      link.length = std::sqrt(squared_distance(points[a], points[past.other]));
      link.life = life;
      fading.push_back(link);
    }
  keep_first_at_both_ends(fading, past_.size(), rule_.k, [&](uint32_t point, uint32_t l, uint32_t m) {
    const auto partner = [&](const Link& link) {
      return static_cast<uint32_t>(link.a) == point ? link.id_b : link.id_a;
    };
    return std::tuple(-fading[l].life, partner(fading[l])) < std::tuple(-fading[m].life, partner(fading[m]));
  });
  const auto lower_first = [](const Link& link) { return std::minmax(link.id_a, link.id_b); };
  std::sort(fading.begin(), fading.end(), [&](const Link& l, const Link& m) {
    const auto one = lower_first(l), other = lower_first(m);
    return std::pair<int64_t, int64_t>(one.first, one.second) < std::pair<int64_t, int64_t>(other.first, other.second);
  });
  links_.insert(links_.end(), fading.begin(), fading.end());
}

} // namespace millrace::handlers
