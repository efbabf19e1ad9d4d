// A LinkGraph with memory of its own, and random lists of points for it.
#pragma once

#include <millrace/payload/marks.h>

#include <algorithm>
#include <cstdint>
#include <limits>
#include <random>
#include <span>
#include <vector>

#include "handlers/points/link_graph.h"

namespace millrace::handlers {

class [[gnu::visibility("hidden")]] Linking { // hidden like its members
 public:
  // For lists of up to so many points, and at most so many links.
  explicit Linking(const LinkRule& rule, uint64_t points_max = 64, uint64_t most = UINT64_MAX)
      : most_(std::min(most, most_links(points_max, rule.k))),
        graph_(rule),
        slots_(PlaceTable::slots_for(points_max)),
        past_(rule.remembers() ? 2 * most_ : 0) {}

  std::vector<Link> step(const std::vector<Point>& points) {
    const std::span<const Link> links = view(points);
    return {links.begin(), links.end()};
  }
  // The same without a copy: valid until the next step.
  std::span<const Link> view(const std::vector<Point>& points) {
    return graph_.step(points, {turn_, slots_, past_}, most_, left_out);
  }
  // As the runtime clears state.
  void forget() {
    turn_ = {};
    slots_.assign(slots_.size(), 0);
    past_.assign(past_.size(), {});
  }

  uint64_t left_out = 0; // of the last step

 private:
  uint64_t most_;
  LinkGraph graph_;
  LinkTurn turn_{};
  std::vector<uint64_t> slots_;
  std::vector<PastLink> past_;
};

// Whole numbers below a limit, from a seed.
class Below {
 public:
  explicit Below(uint64_t seed) : random_(seed) {}
  uint32_t operator()(uint32_t most) { return static_cast<uint32_t>(random_() % most); }

 private:
  std::mt19937_64 random_;
};

// A rule of any kind. `remembers`: with a gain and links that fade as well.
inline LinkRule any_rule(Below& below, bool remembers) {
  LinkRule rule;
  rule.k = 1 + below(below(4) == 0 ? kNearMax : 5);
  rule.delta_y_max = below(3) == 0 ? 20 : 0;
  rule.delta_after = below(2) == 0;
  rule.degree_max = below(3) == 0 ? 1 + below(4) : 0;
  rule.radius = below(3) == 0 ? 40 : 0;
  rule.hysteresis = below(2) * 0.3;
  if (remembers && below(2)) rule.gain = 0.25f;
  if (remembers && below(2)) rule.fade = 0.6f;
  return rule;
}

// Places of whole numbers, so that distances tie, some of them not finite; ids of which some come twice or are none.
inline void move_points(std::vector<Point>& points, Below& below, bool is_clustered) {
  for (Point& point : points) {
    point.x = static_cast<float>(below(100));
    point.y = static_cast<float>(below(is_clustered ? 10 : 100));
    point.id = int64_t{below(static_cast<uint32_t>(points.size() + points.size() / 2 + 1))};
    if (below(8) == 0) point.id = -1;
    if (below(20) == 0) point.x = std::numeric_limits<float>::quiet_NaN();
    if (below(40) == 0) point.y = std::numeric_limits<float>::infinity();
  }
}

} // namespace millrace::handlers
