// Joins points to their nearest neighbours, with a memory of the links that it gave before.
#pragma once

#include <millrace/payload/marks.h>

#include <cstdint>
#include <span>
#include <vector>

#include "handlers/gpu/link_rule.h"
#include "handlers/points/point_tree.h"

namespace millrace::handlers {

// Memory that is kept from list to list: the handler's State, or a test's own.
struct LinkMemory {
  LinkTurn& turn;
  std::span<uint64_t> slots; // PlaceTable::slots_for() all points
  std::span<PastLink> past;  // two lists of equal length; empty if the rule remembers nothing
};

// step() gives the links of the next list of points: first those that are linked, by their owner and the owner's rank,
// then those that only fade, by their ids. The owner is the point that has the other among its nearest, or the one
// before if both have. Points that are not finite join nobody. Of several points with one id the first has it.
class [[gnu::visibility("hidden")]] LinkGraph { // hidden like its members
 public:
  explicit LinkGraph(const LinkRule& rule) : rule_(rule) {}

  // Valid until the next step. `most` links are given; `left_out` is how many more there were.
  std::span<const Link> step(std::span<const Point> points, const LinkMemory& memory, uint64_t most,
                             uint64_t& left_out);

 private:
  // A pair of this list that was linked or faded before.
  struct Past {
    uint32_t other;
    float life;
    bool linked;
  };

  void recall(std::span<const Point> points, const LinkMemory& memory);
  void remember(const LinkMemory& memory, size_t linked) const;
  void find_nearest(std::span<const Point> points);
  void find_nearest_of(std::span<const Point> points, const PointTree::Leaf& leaf);
  bool is_near(uint32_t point, uint32_t other) const;
  void join(std::span<const Point> points);
  void cap_degrees();
  void live(std::span<const Point> points);
  void fade(std::span<const Point> points);
  const Past* past_of(uint32_t a, uint32_t b) const;

  LinkRule rule_;
  PlaceTable places_{};
  std::vector<Link> links_;
  std::vector<float> scores_;           // those of links_
  std::vector<std::vector<Past>> past_; // by place in the list
  std::vector<int64_t> ids_;            // by place; −1: none, or a point before has it
  PointTree tree_;
  std::vector<ScoredPoint> nearest_; // k for each point, as many as near_count_ says
  std::vector<uint32_t> near_count_;
};

} // namespace millrace::handlers
