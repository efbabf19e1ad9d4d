// Points in a tree of boxes, in which the nearest ones are found without a look at all of them.
#pragma once

#include <millrace/payload/marks.h>

#include <algorithm>
#include <bit>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <utility>
#include <vector>

#include "handlers/gpu/four_floats.h"
#include "handlers/gpu/link_rule.h"

namespace millrace::handlers {

// A point by its place in the list, and what it is compared by: a number that is not negative. Ties go to the lower
// place. Such numbers have the order of their bits, so one comparison of whole numbers is enough.
struct ScoredPoint {
  uint64_t bits = 0;

  ScoredPoint() = default;
  ScoredPoint(float score, uint32_t place) : bits(uint64_t{std::bit_cast<uint32_t>(score)} << 32 | place) {}
  float score() const { return std::bit_cast<float>(static_cast<uint32_t>(bits >> 32)); }
  uint32_t place() const { return static_cast<uint32_t>(bits); }
  auto operator<=>(const ScoredPoint&) const = default;
};

// The best of all that it was offered, in their order. It writes into memory for `most` of them, which is at least 1.
class BestPoints {
 public:
  BestPoints() = default;
  BestPoints(ScoredPoint* best, uint32_t most, float score_max)
      : best_(best), most_(most), limit_(score_max, UINT32_MAX) {}

  uint32_t count() const { return count_; }
  // Neither a point beyond this one is among the best, nor will it be.
  const ScoredPoint& limit() const { return limit_; }
  void offer(const ScoredPoint& point) {
    if (limit_ < point) return;
    uint32_t at = count_ < most_ ? count_++ : count_ - 1;
    for (; at > 0 && point < best_[at - 1]; --at) best_[at] = best_[at - 1];
    best_[at] = point;
    if (count_ == most_) limit_ = best_[most_ - 1];
  }

 private:
  ScoredPoint* best_ = nullptr;
  uint32_t most_ = 0, count_ = 0;
  ScoredPoint limit_; // the worst that is taken
};

// Points that are not finite are in no tree. build() allocates only for more points than it has seen before.
class [[gnu::visibility("hidden")]] PointTree { // hidden like its members
 public:
  static constexpr uint32_t kLeafPoints = 20;

  // A box around points that are near to each other.
  struct Box {
    float left, top, right, bottom;
  };
  struct Leaf {
    Box box;
    uint32_t count;
    uint32_t places[kLeafPoints]; // in the list of points
    float x[kLeafPoints], y[kLeafPoints];
  };

  void build(std::span<const Point> points);
  // All points are in one leaf each.
  std::span<const Leaf> leaves() const { return leaves_; }

  // Searches for all points of a leaf together, since they have most candidates in common. Calls `offer(i, point)` with
  // all points that may be among best[i], the best of the leaf's point i, and with that point itself. The score is the
  // squared distance of link_rule.h. Most points that are more than `height_max` above or below are left out.
  template <class Offer>
  void search(const Leaf& from, float height_max, const BestPoints* best, const Offer& offer) const;

 private:
  // A point that can be joined. Each side has the order of its coordinate and, of equal ones, that of the places.
  struct Item {
    uint64_t across, down;
    Item(const Point& point, uint32_t place) : across(ordered(point.x, place)), down(ordered(point.y, place)) {}
    float x() const { return coordinate(across); }
    float y() const { return coordinate(down); }
    uint32_t place() const { return static_cast<uint32_t>(across); }

   private:
    static constexpr uint32_t kSign = 0x80000000;
    // The bits of floats have their order, if those of negative ones are turned round.
    static uint64_t ordered(float number, uint32_t place) {
      const auto bits = std::bit_cast<uint32_t>(number + 0.0f); // −0 is 0
      return uint64_t{bits & kSign ? ~bits : bits | kSign} << 32 | place;
    }
    static float coordinate(uint64_t side) {
      const auto bits = static_cast<uint32_t>(side >> 32);
      return std::bit_cast<float>(bits & kSign ? bits & ~kSign : ~bits);
    }
  };
  // A subtree. Its first child comes right after it.
  struct Node {
    Box box;
    uint32_t first_place; // the lowest of its points
    uint32_t second;      // its second child; of a leaf the number of the leaf
    bool is_leaf;
  };

  // A point that comes after none of a subtree: of the least score from anywhere in a box, and the lowest place. This
  // is exact, since rounding keeps the order of numbers. It comes after all points if the subtree is too high.
  static ScoredPoint before_all(const Node& node, const Box& from, float height_max) {
    const float across = draw::larger(draw::larger(node.box.left - from.right, from.left - node.box.right), 0);
    const float down = draw::larger(draw::larger(node.box.top - from.bottom, from.top - node.box.bottom), 0);
    const float score = squared_distance(across, down);
    return {down <= height_max ? score : std::numeric_limits<float>::quiet_NaN(), node.first_place};
  }
  void add(size_t begin, size_t end, const Box& around);
  void add_leaf(size_t begin, size_t end);

  std::vector<Item> items_;
  std::vector<Node> nodes_;
  std::vector<Leaf> leaves_;
};

template <class Offer>
void PointTree::search(const Leaf& from, float height_max, const BestPoints* best, const Offer& offer) const {
  // Subtrees that are looked at later: at most one of each level, and a level has half as many points as the one above.
  struct Later {
    ScoredPoint first;
    uint32_t node;
  } later[40];
  uint32_t count = 0;
  later[count++] = {before_all(nodes_[0], from.box, height_max), 0};
  const auto worst_limit = [&] {
    ScoredPoint worst;
    for (uint32_t i = 0; i < from.count; ++i) worst = std::max(worst, best[i].limit());
    return worst;
  };
  ScoredPoint worst = worst_limit();
  while (count > 0) {
    auto [first, at] = later[--count];
    while (first <= worst && !nodes_[at].is_leaf) {
      Later near{before_all(nodes_[at + 1], from.box, height_max), at + 1};
      Later far{before_all(nodes_[nodes_[at].second], from.box, height_max), nodes_[at].second};
      if (far.first < near.first) std::swap(near, far);
      later[count++] = far;
      first = near.first;
      at = near.node;
    }
    if (worst < first) continue;
    const Leaf& leaf = leaves_[nodes_[at].second];
    for (uint32_t i = 0; i < from.count; ++i) {
      const Box here{from.x[i], from.y[i], from.x[i], from.y[i]};
      if (best[i].limit() < before_all(nodes_[at], here, height_max)) continue;
      for (uint32_t begin = 0; begin < leaf.count; begin += 4) {
        const draw::FourFloats across = from.x[i] - draw::load_four(leaf.x + begin);
        const draw::FourFloats down = from.y[i] - draw::load_four(leaf.y + begin);
        const draw::FourFloats scores = across * across + down * down;
        for (uint32_t left = draw::at_most(scores, best[i].limit().score()); left != 0; left &= left - 1) {
          const auto n = static_cast<uint32_t>(std::countr_zero(left));
          if (begin + n < leaf.count) offer(i, ScoredPoint(scores[n], leaf.places[begin + n]));
        }
      }
    }
    worst = worst_limit();
  }
}

} // namespace millrace::handlers
