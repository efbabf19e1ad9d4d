// The tree in which points find their nearest ones.
#include "handlers/points/point_tree.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>
#include <vector>

#include "tests/part.h"

using namespace millrace;
using namespace millrace::handlers;

namespace {

constexpr float kInfinite = std::numeric_limits<float>::infinity();

// Kinds of lists: of whole numbers, so that distances tie; spread evenly; in two clusters far apart; in one place; on a
// line; so far apart that distances are infinite.
std::vector<Point> points_of_kind(uint32_t kind, size_t count, std::mt19937_64& random) {
  std::vector<Point> points(count);
  const auto below = [&](uint32_t most) { return static_cast<float>(random() % most); };
  for (Point& point : points) {
    switch (kind) {
      case 0: point.x = below(30), point.y = below(20); break;
      case 1: point.x = below(1u << 24) / 4096, point.y = below(1u << 24) / 8192; break;
      case 2: point.x = below(2) * 1e6f + below(100) / 64, point.y = below(100) / 64; break;
      case 3: point.x = 7, point.y = -3; break;
      case 4: point.x = 5, point.y = below(1000); break;
      default: point.x = (below(3) - 1) * 3e38f, point.y = (below(100) - 50) * 6e36f; break;
    }
    if (random() % 50 == 0) point.y = std::numeric_limits<float>::quiet_NaN();
  }
  return points;
}

// The k nearest of each point of a leaf, itself among them, and how many points were offered to it.
struct Nearest {
  std::vector<std::vector<ScoredPoint>> of_point;
  uint64_t offers = 0;
};
Nearest nearest_in(const PointTree& tree, const PointTree::Leaf& leaf, uint32_t k, float score_max) {
  Nearest found;
  found.of_point.assign(leaf.count, std::vector<ScoredPoint>(k));
  std::vector<BestPoints> best;
  for (std::vector<ScoredPoint>& nearest : found.of_point) best.emplace_back(nearest.data(), k, score_max);
  tree.search(leaf, kInfinite, best.data(), [&](uint32_t i, const ScoredPoint& point) {
    ++found.offers;
    best[i].offer(point);
  });
  for (uint32_t i = 0; i < leaf.count; ++i) found.of_point[i].resize(best[i].count());
  return found;
}

std::vector<ScoredPoint> nearest_of_all(const std::vector<Point>& points, const Point& from, uint32_t k,
                                        float score_max) {
  std::vector<ScoredPoint> all;
  for (uint32_t place = 0; place < points.size(); ++place)
    if (is_joinable(points[place]) && squared_distance(from, points[place]) <= score_max)
      all.push_back({squared_distance(from, points[place]), place});
  std::sort(all.begin(), all.end());
  all.resize(std::min<size_t>(all.size(), k));
  return all;
}

} // namespace

TEST_CASE("the nearest points in a tree are those of a look at all points, ties and infinite distances too") {
  std::mt19937_64 random(5);
  PointTree tree;
  for (int64_t n = 0; n < test::part_of(600); ++n) {
    CAPTURE(n);
    const std::vector<Point> points =
        points_of_kind(static_cast<uint32_t>(n % 6), random() % (n % 10 == 0 ? 2000 : 60), random);
    tree.build(points);
    const auto k = static_cast<uint32_t>(1 + random() % 32);
    const float score_max = random() % 3 == 0 ? 900.0f : kInfinite;
    std::vector<uint32_t> seen(points.size(), 0);
    for (const PointTree::Leaf& leaf : tree.leaves()) {
      const Nearest found = nearest_in(tree, leaf, k, score_max);
      for (uint32_t i = 0; i < leaf.count; ++i) {
        ++seen[leaf.places[i]];
        REQUIRE((found.of_point[i] == nearest_of_all(points, points[leaf.places[i]], k, score_max)));
      }
    }
    for (size_t i = 0; i < points.size(); ++i) REQUIRE(seen[i] == (is_joinable(points[i]) ? 1 : 0));
  }
}

TEST_CASE("a search leaves out what is too high, and nothing else") {
  std::mt19937_64 random(6);
  const std::vector<Point> points = points_of_kind(1, 3000, random);
  PointTree tree;
  tree.build(points);
  uint64_t with_limit = 0, without = 0;
  for (const PointTree::Leaf& leaf : tree.leaves().first(20)) {
    std::vector<ScoredPoint> memory(leaf.count);
    std::vector<BestPoints> all; // they take all, as long as nothing is offered to them
    for (ScoredPoint& none : memory) all.emplace_back(&none, 1, kInfinite);
    std::vector<std::vector<uint32_t>> seen(leaf.count);
    tree.search(leaf, 10, all.data(), [&](uint32_t i, const ScoredPoint& near) { seen[i].push_back(near.place()); });
    tree.search(leaf, kInfinite, all.data(), [&](uint32_t, const ScoredPoint&) { ++without; });
    for (uint32_t i = 0; i < leaf.count; ++i) {
      with_limit += seen[i].size();
      std::sort(seen[i].begin(), seen[i].end());
      for (uint32_t j = 0; j < points.size(); ++j)
        if (is_joinable(points[j]) && std::fabs(points[j].y - points[leaf.places[i]].y) <= 10)
          REQUIRE(std::binary_search(seen[i].begin(), seen[i].end(), j));
    }
  }
  CHECK(with_limit * 4 < without);
}

TEST_CASE("few points are looked at, wherever they lie") {
  std::mt19937_64 random(7);
  for (uint32_t kind = 0; kind < 6; ++kind) {
    CAPTURE(kind);
    const std::vector<Point> points = points_of_kind(kind, 16'384, random);
    PointTree tree;
    tree.build(points);
    uint64_t offers = 0, asked = 0;
    for (const PointTree::Leaf& leaf : tree.leaves()) {
      const Nearest found = nearest_in(tree, leaf, 5, kInfinite);
      offers += found.offers;
      asked += leaf.count;
      if (asked % 20 == 0) // some of them
        REQUIRE((found.of_point[0] == nearest_of_all(points, points[leaf.places[0]], 5, kInfinite)));
    }
    CHECK(asked > 15'000);
    CHECK(offers < asked * 150); // a look at all points offers 16,384 to each
  }
}
