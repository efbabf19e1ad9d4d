// Levels by chunks beside whole planes that are halved again and again.
#include "plugins/volume/plane_pyramid.h"

#include <doctest/doctest.h>

#include <atomic>
#include <cmath>
#include <random>
#include <vector>

#include "tests/seed.h"

namespace millrace::volume::plane_pyramid_test {
namespace {

template <class Element>
struct Plane {
  PlaneSize size;
  std::vector<Element> numbers;
  Element at(int32_t x, int32_t y) const {
    x = std::min(x, size.width - 1), y = std::min(y, size.height - 1);
    return numbers[static_cast<size_t>(y) * static_cast<size_t>(size.width) + static_cast<size_t>(x)];
  }
};

template <class Element>
Plane<Element> random_plane(PlaneSize size, std::mt19937& random) {
  Plane<Element> plane{size, std::vector<Element>(static_cast<size_t>(size.width) * static_cast<size_t>(size.height))};
  for (Element& number : plane.numbers)
    number = static_cast<Element>(random() % 65536 / (sizeof(Element) == 1 ? 256 : 1));
  return plane;
}

// The mean by division, a half to the even number.
template <class Element>
Plane<Element> halved(const Plane<Element>& from) {
  Plane<Element> to{size_at(from.size, 1), {}};
  for (int32_t y = 0; y < to.size.height; ++y)
    for (int32_t x = 0; x < to.size.width; ++x) {
      const double sum = 0.0 + from.at(2 * x, 2 * y) + from.at(2 * x + 1, 2 * y) + from.at(2 * x, 2 * y + 1) +
                         from.at(2 * x + 1, 2 * y + 1);
      to.numbers.push_back(static_cast<Element>(std::is_floating_point_v<Element> ? sum / 4 : std::nearbyint(sum / 4)));
    }
  return to;
}

// `is_plain`: the rows lie in memory as they are shown.
template <class Element>
PlaneSource<Element> source_of(const Plane<Element>& plane, bool is_plain, std::atomic<uint64_t>* read = nullptr) {
  PlaneSource<Element> source;
  source.size = plane.size;
  if (is_plain) source.data = plane.numbers.data(), source.stride = plane.size.width;
  source.read = [&plane, read](const Region& region, Element* to) {
    for (int32_t y = region.top; y < region.bottom; ++y)
      for (int32_t x = region.left; x < region.right; ++x) *to++ = plane.at(x, y);
    if (read) *read += static_cast<uint64_t>(region.width()) * static_cast<uint64_t>(region.height());
  };
  return source;
}

template <class Element>
size_t differences(const Part<Element>& part, const Plane<Element>& plane) {
  size_t count = 0;
  for (int32_t y = part.region.top; y < part.region.bottom; ++y)
    for (int32_t x = part.region.left; x < part.region.right; ++x)
      count += part.data[(y - part.region.top) * part.stride + x - part.region.left] != plane.at(x, y);
  return count;
}

template <class Element>
void compare_levels(PlaneSize size, bool is_plain, uint64_t bytes_max) {
  std::mt19937 random(random_seed());
  std::vector<Plane<Element>> levels = {random_plane<Element>(size, random)};
  while (static_cast<int32_t>(levels.size()) < count_of_levels(size)) levels.push_back(halved(levels.back()));
  Crew crew(2);
  PlanePyramid<Element> pyramid(bytes_max);
  pyramid.begin(source_of(levels[0], is_plain));
  for (int n = 0; n < 60; ++n) {
    CAPTURE(n);
    const size_t level = random() % levels.size();
    const auto below = [&](int32_t most) { return static_cast<int32_t>(random() % static_cast<uint32_t>(most)); };
    const PlaneSize all = levels[level].size;
    const int32_t left = below(all.width), top = below(all.height);
    const Region region = {left, top, left + 1 + below(all.width - left), top + 1 + below(all.height - top)};
    const Part<Element> part = pyramid.part(static_cast<int32_t>(level), region, crew);
    CHECK(part.region == region);
    CHECK(differences(part, levels[level]) == 0);
    CHECK(pyramid.bytes_kept() <= bytes_max);
  }
}

TEST_CASE("every region of every level is that of a plane halved as a whole, whatever is kept") {
  for (const bool is_plain : {false, true})
    for (const uint64_t bytes_max : {0, 300'000, 1 << 24}) {
      compare_levels<uint8_t>({1023, 517}, is_plain, bytes_max);
      compare_levels<uint16_t>({511, 1025}, is_plain, bytes_max);
      compare_levels<float>({300, 1}, is_plain, bytes_max);
    }
}

TEST_CASE("a half is rounded to the even number, so that levels do not become brighter") {
  const Plane<uint8_t> plane{{2, 2}, {1, 2, 1, 2}}; // 1.5
  const Plane<uint8_t> other{{2, 2}, {2, 3, 2, 3}}; // 2.5
  Crew crew(1);
  PlanePyramid<uint8_t> pyramid(0);
  pyramid.begin(source_of(plane, true));
  CHECK(*pyramid.part(1, {0, 0, 1, 1}, crew).data == 2);
  pyramid.begin(source_of(other, true));
  CHECK(*pyramid.part(1, {0, 0, 1, 1}, crew).data == 2);
}

TEST_CASE("only the chunks of a region are computed, and those that are kept only once") {
  std::mt19937 random(random_seed());
  const auto plane = random_plane<uint16_t>({4096, 4096}, random);
  std::atomic<uint64_t> read = 0;
  Crew crew(2);
  PlanePyramid<uint16_t> pyramid(uint64_t{16} << 20);
  pyramid.begin(source_of(plane, false, &read));
  pyramid.part(2, {300, 300, 400, 400}, crew); // inside of one chunk: 1024² of level 0
  CHECK(pyramid.chunks_made() == 1);
  CHECK(read == 1024 * 1024);
  pyramid.part(2, {256, 256, 513, 512}, crew); // that and one more
  CHECK(pyramid.chunks_made() == 2);
  CHECK(read == 2 * 1024 * 1024);
  pyramid.part(3, {128, 128, 256, 256}, crew); // a chunk of level 3 whose lower right quarter is kept
  CHECK(read == 2 * 1024 * 1024 + 3 * 1024 * 1024);
  CHECK(pyramid.bytes_kept() == 3 * 256 * 256 * 2);
  pyramid.begin(source_of(plane, false, &read));
  CHECK(pyramid.bytes_kept() == 0);
  pyramid.part(2, {300, 300, 400, 400}, crew);
  CHECK(pyramid.chunks_made() == 4);
}

} // namespace
} // namespace millrace::volume::plane_pyramid_test
