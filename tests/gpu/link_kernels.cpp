// The kernels of points.links against the CPU's LinkGraph: the same links, in the same order, to the bit.
#include "handlers/gpu/link_kernels.h"

#include <doctest/doctest.h>

#include <cstring>
#include <memory>
#include <random>
#include <vector>

#include "handlers/gpu/link_work.h"
#include "on_gpu_tensor.h"
#include "tests/handlers/linking.h"

using namespace millrace;
using namespace millrace::handlers;

namespace {

// Memory of points.links on a device, for lists of up to so many points.
class OnGpu {
 public:
  OnGpu(const LinkRule& rule, uint32_t points_max, uint32_t most)
      : rule_(rule),
        most_(most),
        points_(points_max * sizeof(Point)),
        slots_(PlaceTable::slots_for(points_max)),
        turn_(sizeof(LinkTurn)),
        sums_(gpu::link_sums(points_max, rule.k) * sizeof(uint64_t)),
        table_(slots_ * sizeof(uint64_t)),
        past_(rule.remembers() ? 2ull * most * sizeof(PastLink) : 1),
        scratch_(gpu::lay_out_work(nullptr, rule, points_max, most).bytes),
        links_(most * sizeof(Link)),
        points_max_(points_max) {
    forget();
    gpu::check(gpu::link_kernels().left_out.begin(on_gpu::kStream, scratch_.data()));
  }

  void forget() {
    for (const on_gpu::Bytes* state : {&turn_, &sums_, &table_, &past_})
      checked(cudaMemset(state->data(), 0, state->size()), "cudaMemset");
  }

  std::vector<Link> step(const std::vector<Point>& points) {
    const uint64_t count = points.size();
    checked(cudaMemcpy(count_.data(), &count, sizeof count, cudaMemcpyHostToDevice), "cudaMemcpy");
    checked(cudaMemcpy(points_.data(), points.data(), count * sizeof(Point), cudaMemcpyHostToDevice), "cudaMemcpy");
    const gpu::LinkState state{static_cast<LinkTurn*>(turn_.data()), static_cast<uint64_t*>(sums_.data()),
                               static_cast<uint64_t*>(table_.data()), static_cast<uint32_t>(slots_ - 1),
                               rule_.remembers() ? static_cast<PastLink*>(past_.data()) : nullptr};
    gpu::check(gpu::link_kernels().join(
        on_gpu::kStream,
        {static_cast<const Point*>(points_.data()), static_cast<const uint64_t*>(count_.data()), points_max_}, rule_,
        state, scratch_.data(), most_, {static_cast<Link*>(links_.data()), static_cast<uint64_t*>(made_.data())}));
    uint64_t made = 0;
    checked(cudaMemcpy(&made, made_.data(), sizeof made, cudaMemcpyDeviceToHost), "cudaMemcpy");
    REQUIRE(made <= most_);
    std::vector<Link> links(made);
    checked(cudaMemcpy(links.data(), links_.data(), made * sizeof(Link), cudaMemcpyDeviceToHost), "cudaMemcpy");
    return links;
  }

  uint64_t left_out() const {
    uint64_t count = 0;
    REQUIRE(gpu::link_kernels().left_out.read(on_gpu::kStream, scratch_.data(), count));
    return count;
  }
  // Throws if a kernel wrote beyond one of the parts.
  void check_ends() const {
    for (const on_gpu::Bytes* bytes : {&turn_, &sums_, &table_, &past_, &scratch_, &links_}) bytes->download();
  }

 private:
  LinkRule rule_;
  uint32_t most_;
  on_gpu::Bytes points_;
  uint64_t slots_;
  on_gpu::Bytes turn_, sums_, table_, past_, scratch_, links_;
  on_gpu::Bytes count_{sizeof(uint64_t)}, made_{sizeof(uint64_t)};
  uint32_t points_max_;
};

bool same(const std::vector<Link>& made, const std::vector<Link>& wanted) {
  return made.size() == wanted.size() &&
         (made.empty() || std::memcmp(made.data(), wanted.data(), made.size() * sizeof(Link)) == 0);
}

uint32_t most_of(const LinkRule& rule, uint32_t points) {
  return std::max(static_cast<uint32_t>(most_links(points, rule.k)), 1u);
}

// Follows the same lists of points with both, and has links left out with `most`.
void compare(const LinkRule& rule, const std::vector<std::vector<Point>>& lists, uint32_t points_max, uint32_t most) {
  Linking cpu(rule, points_max, most);
  OnGpu gpu(rule, points_max, most);
  uint64_t left_out = 0;
  for (size_t tick = 0; tick < lists.size(); ++tick) {
    CAPTURE(tick);
    if (tick == 4) cpu.forget(), gpu.forget();
    const std::vector<Link> wanted = cpu.step(lists[tick]);
    left_out += cpu.left_out;
    REQUIRE(same(gpu.step(lists[tick]), wanted));
  }
  CHECK(gpu.left_out() == left_out);
  gpu.check_ends();
}

std::vector<std::vector<Point>> moving(Below& below, uint32_t count, bool is_clustered, int ticks) {
  std::vector<std::vector<Point>> lists;
  std::vector<Point> points(count);
  for (int tick = 0; tick < ticks; ++tick) {
    move_points(points, below, is_clustered);
    lists.push_back(points);
  }
  return lists;
}

// Random lists of points by random rules, six of each rule.
void compare_random(int rules, uint64_t seed) {
  Below below(seed);
  for (int n = 0; n < rules; ++n) {
    CAPTURE(n);
    const LinkRule rule = any_rule(below, true);
    const uint32_t count = below(8) == 0 ? below(3) : below(60), room = count + below(3);
    const uint32_t most = below(4) == 0 ? 1 + below(20) : most_of(rule, room);
    compare(rule, moving(below, count, n % 2 == 0, 6), room, most);
  }
}

} // namespace

TEST_CASE("links of random lists of points, by random rules, are those of the CPU, to the bit") {
  compare_random(12, 7);
}

TEST_CASE("links of ten thousand random lists of points are those of the CPU") { compare_random(1'667, 5); }

TEST_CASE("links of up to 1,024 points by plain rules, which one kernel makes, are those of the CPU") {
  Below below(11);
  for (int n = 0; n < 60; ++n) {
    CAPTURE(n);
    LinkRule rule = any_rule(below, false);
    rule.hysteresis = 0;
    rule.degree_max = 0;
    REQUIRE_FALSE(rule.remembers());
    const uint32_t room = n % 4 == 0 ? gpu::kFewPoints : 1 + below(gpu::kFewPoints);
    const uint32_t count = n % 3 == 0 ? room : below(room + 1);
    const uint32_t most = n % 5 == 0 ? 1 + below(200) : most_of(rule, room);
    compare(rule, moving(below, count, n % 2 == 0, 6), room, most);
  }
}

TEST_CASE("links of many points: several tiles, warps of each kind, equal points, full lists") {
  Below below(6);
  for (const uint32_t count : {1'000u, 1'025u, 2'500u, 6'145u, 16'384u}) {
    CAPTURE(count);
    for (const uint32_t k : {1u, 5u, 32u}) {
      CAPTURE(k);
      LinkRule rule;
      rule.k = k;
      std::vector<std::vector<Point>> lists;
      std::mt19937 random(count);
      for (int tick = 0; tick < 3; ++tick) {
        std::vector<Point> points(count);
        for (uint32_t p = 0; p < count; ++p) {
          points[p].x = static_cast<float>(random() % 384'000) / 100;
          points[p].y = static_cast<float>(random() % 216'000) / 100;
          points[p].id = p;
        }
        lists.push_back(points);
      }
      compare(rule, lists, count, 65'536);
      rule.hysteresis = 0.3;
      rule.fade = 0.5f;
      rule.gain = 0.5f;
      rule.degree_max = 4;
      compare(rule, lists, count, 65'536);
    }
  }
  for (LinkRule rule : {LinkRule{}, LinkRule{.k = 7, .degree_max = 3}}) {
    std::vector<Point> equal(3'000);
    for (uint32_t p = 0; p < equal.size(); ++p) equal[p].id = p;
    compare(rule, {equal, equal}, 3'000, 65'536);
  }
}
