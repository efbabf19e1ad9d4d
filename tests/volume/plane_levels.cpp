// Regions and levels beside numbers worked out by hand, and beside the rules written down once more, slowly.
#include "plugins/volume/plane_levels.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <random>
#include <vector>

#include "tests/seed.h"

namespace millrace::volume::plane_levels_test {
namespace {

constexpr PlaneSize kPlane = {4096, 3000};
constexpr int64_t kMs = 1'000'000;

Corners upright(double left, double top, double right, double bottom) {
  return {Corner{left, top}, Corner{right, top}, Corner{left, bottom}, Corner{right, bottom}};
}

TEST_CASE("sides of levels are halved and rounded up, down to a single pixel") {
  CHECK(size_at(kPlane, 0) == kPlane);
  CHECK(size_at(kPlane, 3) == PlaneSize{512, 375});
  CHECK(size_at(kPlane, 4) == PlaneSize{256, 188});
  CHECK(count_of_levels(kPlane) == 13);
  CHECK(count_of_levels({1, 1}) == 1);
  CHECK(count_of_levels({1, 3}) == 3);
}

TEST_CASE("a region takes in the corners, whole chunks, and a chunk around them") {
  const Corners corners = upright(1000.5, 900.25, 2200, 500);
  const ChunkGrid grid = {256, 1, 4};
  CHECK(seen_region(corners, kPlane, 0) == Region{1000, 500, 2200, 901});
  CHECK(region_of_interest(corners, kPlane, 0, grid, {}) == Region{512, 0, 2560, 1280});
  // In pixels of level 2 the corners are 250.125 to 550 and 125 to 225.0625; the plane is 1024 × 750 of them.
  CHECK(seen_region(corners, kPlane, 2) == Region{250, 125, 550, 226});
  CHECK(region_of_interest(corners, kPlane, 2, grid, {}) == Region{0, 0, 1024, 512});
  CHECK(region_of_interest(corners, kPlane, 2, {256, 0, 4}, {}) == Region{0, 0, 768, 256});
}

TEST_CASE("a region is cut to the plane, and is all of it if nothing is seen") {
  CHECK(seen_region(upright(-50, -7, 10.5, 3000), kPlane, 0) == Region{0, 0, 11, 3000});
  CHECK(seen_region(upright(4000, 2990.5, 5000, 1e9), kPlane, 1) == Region{2000, 1495, 2048, 1500});
  CHECK(seen_region(upright(-50, 0, -1, 3000), kPlane, 0).is_empty());
  CHECK(region_of_interest(upright(-50, 0, -1, 3000), kPlane, 1, {}, {}) == Region{0, 0, 2048, 1500});
}

TEST_CASE("a region stays while it covers what is seen and no edge moves by four pixels") {
  const ChunkGrid grid = {1, 0, 4};
  const Region before = {10, 10, 100, 100};
  const auto next = [&](double left, double top, double right, double bottom) {
    return region_of_interest(upright(left, top, right, bottom), kPlane, 0, grid, before);
  };
  CHECK(next(13, 12, 97, 99) == before);
  CHECK(next(14, 12, 97, 99) == Region{14, 12, 97, 99});
  CHECK(next(13, 12, 96, 99) == Region{13, 12, 96, 99});
  CHECK(next(9.5, 10, 100, 100) == Region{9, 10, 100, 100}); // it moved by one, but shows more
}

// The next level of five, for the pixels of each level for one of the picture.
int32_t next(int32_t level, const std::vector<double>& pixels, std::optional<ZoomHint> zoomed = {}, int64_t now_ns = 0,
             std::optional<int64_t> changed_ns = {}) {
  return next_level({level, static_cast<int32_t>(pixels.size()), now_ns, zoomed, changed_ns},
                    [&](int32_t at) { return pixels.at(static_cast<size_t>(at)); });
}

TEST_CASE("without a zoom a level is left at 1.05 of the finer one, and above 1.35 of its own") {
  CHECK(next(1, {1.05, 0.53, 0.26}) == 0);
  CHECK(next(1, {1.06, 0.53, 0.26}) == 1);
  CHECK(next(1, {2.70, 1.35, 0.67}) == 1);
  CHECK(next(1, {2.72, 1.36, 0.68}) == 2);
  CHECK(next(0, {0.2, 0.1, 0.05}) == 0);
  CHECK(next(2, {40, 20, 10}) == 2); // there is none after it
  CHECK(next(0, {40, 20, 10}) == 1); // one at a time
  CHECK(next(2, {0.4, 0.2, 0.1}) == 1);
}

TEST_CASE("a zoom of the last half second says the way, and the bounds are 1.20 at most") {
  const ZoomHint nearer = {0.9, 0}, farther = {1.1, 0}, hardly = {1.0005, 0};
  CHECK(next(1, {1.05, 0.53, 0.26}, nearer) == 0);
  CHECK(next(1, {1.10, 0.55, 0.27}, nearer) == 1);
  CHECK(next(1, {2.80, 1.40, 0.70}, nearer) == 1); // coarser is not the way
  CHECK(next(1, {2.50, 1.25, 0.62}, farther) == 2);
  CHECK(next(1, {2.40, 1.20, 0.60}, farther) == 1);
  CHECK(next(1, {1.00, 0.50, 0.25}, farther) == 1); // finer is not the way
  CHECK(next(1, {2.50, 1.25, 0.62}, hardly) == 1);
  CHECK(next(1, {2.50, 1.25, 0.62}, farther, 500 * kMs) == 2);
  CHECK(next(1, {2.50, 1.25, 0.62}, farther, 501 * kMs) == 1);
  CHECK(next(1, {1.00, 0.50, 0.25}, farther, 501 * kMs) == 0);
}

TEST_CASE("after a change a level stays for 150 ms") {
  CHECK(next(1, {2.80, 1.40, 0.70}, {}, 149 * kMs, 0) == 1);
  CHECK(next(1, {2.80, 1.40, 0.70}, {}, 150 * kMs, 0) == 2);
  CHECK(next(1, {0.80, 0.40, 0.20}, ZoomHint{0.5, 0}, 149 * kMs, 0) == 1);
}

TEST_CASE("a level that has too many bytes gives way to the next one that has not") {
  const auto bytes = [](int32_t level) { return uint64_t{1024} >> (2 * level); };
  CHECK(level_within(0, 5, 1024, bytes) == 0);
  CHECK(level_within(0, 5, 1023, bytes) == 1);
  CHECK(level_within(0, 5, 64, bytes) == 2);
  CHECK(level_within(3, 5, 1024, bytes) == 3);
  CHECK(level_within(0, 5, 1, bytes) == 4); // no level has so few: the coarsest
}

// A square plane of 4096, seen whole in a picture of 1080 rows at zoom 1.
PlaneSight sight(double zoom, int64_t now_ns, int32_t level = -1) {
  const double half_height = 2048 / zoom, half_width = half_height * 1920 / 1080;
  return {{4096, 4096},
          upright(2048 - half_width, 2048 - half_height, 2048 + half_width, 2048 + half_height),
          1080.0 / 4096 * zoom,
          zoom,
          now_ns,
          level,
          2};
}

TEST_CASE("a person who zooms goes from level to level, one at a time, and back") {
  LevelChooser chooser({}, uint64_t{64} << 20);
  const auto level_at = [&](double zoom, int64_t now_ms) { return chooser.choose(sight(zoom, now_ms * kMs)).level; };
  CHECK(level_at(1, 0) == 2);      // 3.79, 1.90, 0.95
  CHECK(level_at(4, 1000) == 1);   // 0.95, 0.47, 0.24: it could be the finest
  CHECK(level_at(4, 1040) == 1);   // rests
  CHECK(level_at(4, 1150) == 0);   // the zoom is still young
  CHECK(level_at(2.9, 2000) == 1); // 1.31: below 1.35, but above 1.20
  CHECK(level_at(2.9, 3000) == 1); // 1.31 is more than 1.05: it does not go back
  CHECK(level_at(1, 4000) == 2);
}

TEST_CASE("a level that was asked for is taken, unless the region has too many bytes") {
  LevelChooser chooser({}, uint64_t{16} << 20);
  CHECK(chooser.choose(sight(1, 0, 0)).level == 1); // the plane has 32 MiB, and 8 MiB on level 1
  CHECK(chooser.choose(sight(1, 0, 3)).level == 3);
  CHECK(chooser.choose(sight(1, 0, 99)).level == 12);
  LevelChooser roomy({}, uint64_t{32} << 20);
  CHECK(roomy.choose(sight(1, 0, 0)).level == 0);
}

TEST_CASE("a plane that is not in the picture is not seen, and the level after it is found anew") {
  LevelChooser chooser({}, uint64_t{64} << 20);
  CHECK(chooser.choose(sight(1, 0)).level == 2);
  PlaneSight beside = sight(1, 40 * kMs);
  for (Corner& corner : beside.corners) corner.x += 1e5;
  CHECK(!chooser.choose(beside).is_seen);
  CHECK(chooser.choose(sight(4, 80 * kMs)).level == 0);
}

// ---- the rules, once more

struct Draw {
  std::mt19937 random{random_seed()};
  double between(double low, double high) { return std::uniform_real_distribution<double>(low, high)(random); }
  int32_t below(int32_t most) { return std::uniform_int_distribution<int32_t>(0, most - 1)(random); }
};

// Pixel by pixel along one side: those of chunks that are at most `padding` chunks from one that has a seen pixel.
struct Side {
  int32_t begin = 0, end = 0; // none: both 0
};
Side seen_side(double low, double high, int32_t finest, int32_t side, double pixel) {
  Side seen;
  for (int32_t at = 0; at < side; ++at) {
    const bool is_seen = std::min<double>((at + 1) * pixel, finest) > low && at * pixel < high;
    if (!is_seen) continue;
    if (seen.end == 0) seen.begin = at;
    seen.end = at + 1;
  }
  return seen;
}
Side wide_side(const Side& seen, int32_t side, const ChunkGrid& grid) {
  Side wide;
  for (int32_t at = 0; at < side; ++at) {
    bool is_in = false;
    for (int32_t pixel = seen.begin; pixel < seen.end; ++pixel)
      is_in = is_in || std::abs(pixel / grid.side - at / grid.side) <= grid.padding;
    if (!is_in) continue;
    if (wide.end == 0) wide.begin = at;
    wide.end = at + 1;
  }
  return wide;
}
Region slow_region(const Corners& corners, PlaneSize finest, int32_t level, const ChunkGrid& grid,
                   const std::optional<Region>& before) {
  const PlaneSize size = size_at(finest, level);
  const double pixel = std::pow(2.0, level);
  double low_x = 1e300, high_x = -1e300, low_y = 1e300, high_y = -1e300;
  for (const Corner& corner : corners) {
    low_x = std::min(low_x, corner.x), high_x = std::max(high_x, corner.x);
    low_y = std::min(low_y, corner.y), high_y = std::max(high_y, corner.y);
  }
  const Side x = seen_side(low_x, high_x, finest.width, size.width, pixel),
             y = seen_side(low_y, high_y, finest.height, size.height, pixel);
  if (x.end == 0 || y.end == 0) return {0, 0, size.width, size.height};
  const Side wide_x = wide_side(x, size.width, grid), wide_y = wide_side(y, size.height, grid);
  const Region wide = {wide_x.begin, wide_y.begin, wide_x.end, wide_y.end};
  if (!before) return wide;
  const bool covers =
      before->left <= x.begin && before->right >= x.end && before->top <= y.begin && before->bottom >= y.end;
  const int32_t moved = std::max({std::abs(before->left - wide.left), std::abs(before->right - wide.right),
                                  std::abs(before->top - wide.top), std::abs(before->bottom - wide.bottom)});
  return covers && moved < grid.moved_less ? *before : wide;
}

TEST_CASE("regions are those that a slow program finds pixel by pixel") {
  Draw draw;
  size_t stayed = 0, whole = 0;
  for (int n = 0; n < 3000; ++n) {
    CAPTURE(n);
    const PlaneSize plane = {1 + draw.below(90), 1 + draw.below(90)};
    const int32_t level = draw.below(3);
    const ChunkGrid grid = {1 + draw.below(9), draw.below(3), draw.below(6)};
    Corners corners{};
    const double x = draw.between(-40, 120), y = draw.between(-40, 120), reach = draw.between(0.1, 60);
    for (Corner& corner : corners) corner = {x + draw.between(-reach, reach), y + draw.between(-reach, reach)};
    std::optional<Region> before;
    if (n % 2) {
      before = slow_region(corners, plane, level, grid, {});
      for (int32_t* const edge : {&before->left, &before->top}) *edge = std::max(*edge - draw.below(5), 0);
      for (int32_t* const edge : {&before->right, &before->bottom}) *edge += draw.below(5) - 1;
    }
    const Region expected = slow_region(corners, plane, level, grid, before);
    CHECK(region_of_interest(corners, plane, level, grid, before) == expected);
    stayed += before && expected == *before;
    whole += seen_region(corners, plane, level).is_empty();
  }
  CHECK(stayed > 50);
  CHECK(whole > 50);
}

// The paragraph of the rules, sentence by sentence: a wish, then the gates.
int32_t slow_level(const LevelNow& now, const std::vector<double>& pixels) {
  const auto at = [&](int32_t level) { return pixels.at(static_cast<size_t>(level)); };
  const int64_t age = now.zoomed ? now.now_ns - now.zoomed->at_ns : -1;
  bool by_zoom = false;
  int32_t wish = now.level;
  if (age >= 0 && age <= 500 * kMs && now.zoomed->ratio < 0.999) {
    wish = now.level - 1, by_zoom = true;
  } else if (age >= 0 && age <= 500 * kMs && now.zoomed->ratio > 1.001) {
    wish = now.level + 1, by_zoom = true;
  } else if (now.level > 0 && at(now.level - 1) <= 1.05) {
    wish = now.level - 1;
  } else if (at(now.level) > 1.35) {
    wish = now.level + 1;
  }
  if (wish < 0 || wish >= now.count) return now.level;
  const double finer = by_zoom ? std::min(1.20, 1.05) : 1.05, coarser = by_zoom ? std::min(1.20, 1.35) : 1.35;
  if (wish < now.level && !(at(wish) <= finer)) return now.level;
  if (wish > now.level && !(at(now.level) > coarser)) return now.level;
  const bool rests = now.changed_ns && now.now_ns - *now.changed_ns >= 0 && now.now_ns - *now.changed_ns < 150 * kMs;
  return rests ? now.level : wish;
}

TEST_CASE("levels are those of the rules, written down sentence by sentence") {
  Draw draw;
  size_t moved = 0;
  for (int n = 0; n < 20'000; ++n) {
    CAPTURE(n);
    LevelNow now{draw.below(6), 6, draw.below(2000) * kMs, {}, {}};
    std::vector<double> pixels = {std::exp(draw.between(-2, 5))};
    while (pixels.size() < 6) pixels.push_back(pixels.back() * draw.between(0.45, 0.7));
    if (draw.below(2))
      now.zoomed = {draw.below(8) ? draw.between(0.9, 1.1) : 1.0005, now.now_ns - draw.below(700) * kMs};
    if (draw.below(3) == 0) now.changed_ns = now.now_ns - (draw.below(400) - 20) * kMs;
    const int32_t expected = slow_level(now, pixels);
    CHECK(next_level(now, [&](int32_t level) { return pixels[static_cast<size_t>(level)]; }) == expected);
    moved += expected != now.level;
  }
  CHECK(moved > 1000);
}

} // namespace
} // namespace millrace::volume::plane_levels_test
