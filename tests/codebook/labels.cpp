// Distances, their order of additions, and labels that are found without comparing everything.
#include "plugins/codebook/labels.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <limits>
#include <random>
#include <vector>

#include "plugins/codebook/distance.h"
#include "rig.h"
#include "tests/part.h"
#include "tests/seed.h"

using namespace millrace;
using namespace millrace::codebook;

namespace {

// The sum as the manual states it, one number at a time.
float plain_distance(std::span<const float> x, std::span<const float> a) {
  float lanes[kLanes] = {};
  for (size_t j = 0; j < x.size(); ++j) {
    const float difference = x[j] - a[j];
    const volatile float square = difference * difference; // rounded before it is added
    lanes[j % kLanes] = lanes[j % kLanes] + square;
  }
  return ((lanes[0] + lanes[1]) + (lanes[2] + lanes[3])) + ((lanes[4] + lanes[5]) + (lanes[6] + lanes[7]));
}

Rows random_rows_of(std::mt19937& draw, size_t count, uint32_t dimensions, float from, float to) {
  Rows rows(count, dimensions);
  std::uniform_real_distribution<float> number(from, to);
  for (size_t row = 0; row < count; ++row)
    for (float& value : rows.numbers(row)) value = number(draw);
  return rows;
}

std::vector<uint32_t> labels_by_comparing_all(const Rows& rows, const Rows& anchors) {
  std::vector<uint32_t> labels;
  for (size_t i = 0; i < rows.count(); ++i) {
    uint32_t best = 0;
    for (uint32_t a = 1; a < anchors.count(); ++a)
      if (plain_distance(rows.numbers(i), anchors.numbers(a)) < plain_distance(rows.numbers(i), anchors.numbers(best)))
        best = a;
    labels.push_back(best);
  }
  return labels;
}

} // namespace

TEST_CASE("a distance is the sum of eight lanes, whatever the number of dimensions") {
  std::mt19937 draw(random_seed());
  for (uint32_t dimensions = 1; dimensions <= 70; ++dimensions) {
    const Rows rows = random_rows_of(draw, 2, dimensions, -3, 1e4f);
    CHECK(distance(rows.row(0), rows.row(1), rows.stride()) == plain_distance(rows.numbers(0), rows.numbers(1)));
  }
}

TEST_CASE("the nearest anchor is the first of those at the least distance, and the next one's distance is known") {
  std::mt19937 draw(random_seed());
  for (uint32_t count = 1; count <= 21; ++count) {
    Rows anchors = random_rows_of(draw, count, 5, -1, 1);
    const Rows x = random_rows_of(draw, 1, 5, -1, 1);
    if (count > 3) std::copy_n(anchors.row(1), anchors.stride(), anchors.row(count - 1)); // two of one place
    std::vector<float> distances;
    for (uint32_t a = 0; a < count; ++a) distances.push_back(plain_distance(x.numbers(0), anchors.numbers(a)));
    const uint32_t first = 0;
    Nearest found;
    find_nearest(x, {&first, 1}, AnchorPairs(anchors), {&found, 1});
    const auto least = std::min_element(distances.begin(), distances.end());
    CHECK(found.label == least - distances.begin());
    CHECK(found.distance == *least);
    *least = std::numeric_limits<float>::infinity();
    CHECK(found.next == *std::min_element(distances.begin(), distances.end()));
  }
}

TEST_CASE("labels are those of comparing everything, while anchors move a little, far, not at all, and become more") {
  const uint32_t seed = random_seed();
  INFO("MILLRACE_SEED=", seed);
  std::mt19937 draw(seed);
  Crew crew(2);
  for (int64_t n = 0; n < test::part_of(20); ++n) {
    // Coarse numbers have many equal distances.
    const bool coarse = n % 2 == 0;
    Rows rows = random_rows_of(draw, 700, 12, coarse ? 0.0f : -1.0f, coarse ? 3.0f : 1.0f);
    Rows anchors = random_rows_of(draw, 17, 12, coarse ? 0.0f : -1.0f, coarse ? 3.0f : 1.0f);
    const auto round = [&](Rows& all) {
      for (size_t row = 0; coarse && row < all.count(); ++row)
        for (float& value : all.numbers(row)) value = std::floor(value);
    };
    round(rows);
    round(anchors);
    Labels labels(rows);
    for (int step = 0; step < 12; ++step) {
      if (step == 4) anchors.resize(20);
      const float far = step % 4 == 3 ? 1.0f : step % 4 == 2 ? 0.0f : 0.01f;
      std::uniform_real_distribution<float> way(-far, far);
      for (size_t a = 0; a < anchors.count(); ++a)
        for (float& value : anchors.numbers(a)) value += coarse ? std::round(2 * way(draw)) : way(draw);
      labels.assign(anchors, crew);
      REQUIRE(labels.all() == labels_by_comparing_all(rows, anchors));
      for (size_t i = 0; i < rows.count(); ++i)
        REQUIRE(labels.distances()[i] == plain_distance(rows.numbers(i), anchors.numbers(labels.all()[i])));
    }
  }
}

TEST_CASE("vectors whose nearest anchor cannot have changed are not compared with all") {
  const Points points = points_of(waves(3000, 64), 64);
  Crew crew(1);
  Rows anchors(64, 64);
  const std::vector<uint32_t> first = farthest(points.rows, 64, crew);
  for (uint32_t a = 0; a < 64; ++a) std::ranges::copy(points.rows.numbers(first[a]), anchors.row(a));
  Labels labels(points.rows);
  labels.assign(anchors, crew);
  CHECK(labels.searched() == 3000);
  anchors.row(0)[0] += 0.001f;
  labels.assign(anchors, crew);
  CHECK(labels.searched() < 3000 + 600);
}
