// The layout of a graph in layers: boxes that do not overlap, arrows that lead forward, the same places each time.
#include "plan/layers.h"

#include <doctest/doctest.h>
#include <time.h>

#include <algorithm>
#include <random>
#include <vector>

#include "tests/part.h"

namespace millrace::plan {

namespace {

// Whole numbers below a limit, from a seed.
class AnyNumber {
 public:
  explicit AnyNumber(uint32_t seed) : random_(seed) {}
  uint32_t below(uint32_t most) { return static_cast<uint32_t>(random_() % most); }
  int height(int most) { return static_cast<int>(below(static_cast<uint32_t>(most))); }

 private:
  std::mt19937 random_;
};

struct Drawn {
  std::vector<LayerBox> boxes;
  std::vector<LayerArrow> arrows;
  uint32_t lanes = 1;
  LayeredPicture made() const { return lay_out_layers(boxes, arrows, lanes); }
};

Drawn any_graph(AnyNumber& any, uint32_t count, uint32_t arrows) {
  Drawn drawn;
  drawn.lanes = 1 + any.below(3);
  for (uint32_t b = 0; b < count; ++b)
    drawn.boxes.push_back({40 + any.height(160), 30 + any.height(90), any.below(drawn.lanes)});
  for (uint32_t a = 0; a < arrows && count > 0; ++a) {
    LayerArrow arrow{any.below(count), any.below(count), 0, 0, any.below(8) == 0};
    arrow.from_down = any.height(drawn.boxes[arrow.from].height);
    arrow.to_down = any.height(drawn.boxes[arrow.to].height);
    drawn.arrows.push_back(arrow);
  }
  return drawn;
}

// A pipeline as people write them: arrows lead to one of the next few boxes.
Drawn long_graph(uint32_t count) {
  AnyNumber any(3);
  Drawn drawn;
  for (uint32_t b = 0; b < count; ++b) {
    drawn.boxes.push_back({100, 60, 0});
    if (b > 0) drawn.arrows.push_back({b - 1 - any.below(std::min(b, 6u)), b, 20, 20, false});
    if (b > 0) drawn.arrows.push_back({b - 1 - any.below(std::min(b, 6u)), b, 20, 34, false});
  }
  return drawn;
}

bool overlap(const Drawn& drawn, const LayeredPicture& made, size_t a, size_t b) {
  const auto apart = [](int at, int size, int other, int other_size) {
    return at + size <= other || other + other_size <= at;
  };
  return !apart(made.boxes[a].x, drawn.boxes[a].width, made.boxes[b].x, drawn.boxes[b].width) &&
         !apart(made.boxes[a].y, drawn.boxes[a].height, made.boxes[b].y, drawn.boxes[b].height);
}

// The processor time of this thread, which other work on the machine does not count into.
double seconds_of(const Drawn& drawn) {
  const auto now = [] {
    timespec time{};
    ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
    return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) * 1e-9;
  };
  double least = 1e9;
  for (int round = 0; round < 7; ++round) {
    const double begin = now();
    CHECK(drawn.made().boxes.size() == drawn.boxes.size());
    least = std::min(least, now() - begin);
  }
  return least;
}

} // namespace

TEST_CASE("boxes do not overlap and lie in their bands, and arrows lead forward but for those that are drawn back") {
  AnyNumber any(11);
  for (int64_t n = 0; n < test::part_of(400); ++n) {
    CAPTURE(n);
    const Drawn drawn = any_graph(any, any.below(40), any.below(80));
    const LayeredPicture made = drawn.made();
    REQUIRE(made.boxes.size() == drawn.boxes.size());
    REQUIRE(made.arrows.size() == drawn.arrows.size());
    for (size_t a = 0; a < drawn.boxes.size(); ++a) {
      const auto [top, bottom] = made.lanes[drawn.boxes[a].lane];
      REQUIRE(made.boxes[a].y >= top);
      REQUIRE(made.boxes[a].y + drawn.boxes[a].height <= bottom);
      REQUIRE(made.boxes[a].x + drawn.boxes[a].width <= made.width);
      for (size_t b = 0; b < a; ++b) REQUIRE_FALSE(overlap(drawn, made, a, b));
    }
    for (size_t lane = 1; lane < made.lanes.size(); ++lane)
      REQUIRE(made.lanes[lane].first >= made.lanes[lane - 1].second);
    for (size_t a = 0; a < drawn.arrows.size(); ++a) {
      const LayerArrow& arrow = drawn.arrows[a];
      const std::vector<Spot>& corners = made.arrows[a];
      for (const Spot& corner : corners) {
        REQUIRE((corner.x >= 0 && corner.x <= made.width));
        REQUIRE((corner.y >= 0 && corner.y <= made.height));
      }
      REQUIRE(corners.front() == Spot{made.boxes[arrow.from].x + drawn.boxes[arrow.from].width,
                                      made.boxes[arrow.from].y + arrow.from_down});
      REQUIRE(corners.back() == Spot{made.boxes[arrow.to].x, made.boxes[arrow.to].y + arrow.to_down});
      if (arrow.is_back) REQUIRE(made.goes_back[a]);
      if (made.goes_back[a]) continue;
      for (size_t c = 1; c < corners.size(); ++c) REQUIRE(corners[c].x >= corners[c - 1].x);
    }
    const LayeredPicture again = drawn.made();
    REQUIRE(again.boxes == made.boxes);
    REQUIRE(again.arrows == made.arrows);
  }
}

TEST_CASE("of arrows in a circle one is drawn back, and none of a graph without circles is") {
  Drawn drawn;
  for (int b = 0; b < 4; ++b) drawn.boxes.push_back({50, 40, 0});
  drawn.arrows = {{0, 1, 5, 5, false}, {1, 2, 5, 5, false}, {0, 2, 9, 9, false}, {2, 3, 5, 5, false}};
  CHECK(drawn.made().goes_back == std::vector<uint8_t>{0, 0, 0, 0});
  drawn.arrows.push_back({3, 1, 5, 9, false});
  CHECK(drawn.made().goes_back == std::vector<uint8_t>{0, 0, 0, 0, 1});
  drawn.arrows.push_back({3, 3, 5, 9, false});
  CHECK(drawn.made().goes_back == std::vector<uint8_t>{0, 0, 0, 0, 1, 1});
}

TEST_CASE("two arrows that need not cross do not, and a source lies beside what it feeds") {
  Drawn drawn; // 0 and 1 feed 3 and 2
  for (int b = 0; b < 6; ++b) drawn.boxes.push_back({50, 40, 0});
  drawn.arrows = {{0, 3, 5, 5, false}, {1, 2, 5, 5, false}, {3, 4, 5, 5, false}, {5, 4, 5, 20, false}};
  const LayeredPicture made = drawn.made();
  CHECK((made.boxes[0].y < made.boxes[1].y) == (made.boxes[3].y < made.boxes[2].y));
  CHECK(made.boxes[5].x == made.boxes[3].x);
  CHECK(lay_out_layers({}, {}, 1).boxes.empty());
}

TEST_CASE("with arrows to the next few boxes a layout takes time by the boxes, and not by their square") {
  // 10 to 15 times as long were measured; with the square it would be 100.
  CHECK(seconds_of(long_graph(1000)) <= 50 * seconds_of(long_graph(100)));
}

} // namespace millrace::plan
