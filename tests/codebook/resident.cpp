// The steps of resident fits, one after the other on the host: they give what the host's own fit gives, to the bit. The
// GPU runs the same steps; tests/gpu/codebook.cu compares that.
#include <doctest/doctest.h>

#include <array>
#include <limits>
#include <utility>

#include "plugins/codebook/published_fits.h"
#include "resident_checks.h"

namespace millrace::codebook {
namespace {

using gpu::Block;
using gpu::Resident;

class HostEngine {
 public:
  explicit HostEngine(const Resident& r) : r_(r) {}

  template <class Step>
  void each(uint64_t count, const Step& step) {
    if (!is_off()) always_each(count, step);
  }
  template <class Step>
  void always_each(uint64_t count, const Step& step) {
    for (uint64_t i = 0; i < count; ++i) step(i);
  }
  template <class Step>
  void blocks(uint32_t count, const Step& step) {
    for (uint32_t index = 0; index < count && !is_off(); ++index) call(index, step);
  }
  template <class Step, class Last>
  void blocks_then(uint32_t count, const Step& step, const Last& last) {
    blocks(count, step);
    once(last);
  }
  template <class Step>
  void once(const Step& step) {
    if (!is_off()) call(0, step);
  }
  template <class Step>
  void always_once(const Step& step) {
    call(0, step);
  }
  uint32_t search_many(const Resident&) { return std::numeric_limits<uint32_t>::max(); }
  void go_from(const Resident& r, uint32_t step, bool decides) {
    const uint64_t n = uint64_t{rounds_} * gpu::kStartsARound + step;
    if (is_off() || n + 1 >= r.anchors) return;
    const float* const from = r.row(gpu::chosen(r, n));
    for (uint32_t i = 0; i < r.used(); ++i) {
      const float distance = gpu::distance_of(r.row(i), from, r.stride);
      if (n == 0 || distance < r.distances[i]) r.distances[i] = distance;
      gpu::raise_to(r.keys[n], gpu::key_of(r.distances[i], i));
    }
    ended_ = ended_ || (decides && n + 2 >= r.anchors);
  }
  template <class Body>
  void loop(uint32_t, uint32_t at_most, const Body& body) {
    ended_ = false;
    for (rounds_ = 0; rounds_ < at_most && !ended_ && !is_off(); ++rounds_) body();
  }

 private:
  bool is_off() const { return r_.control->outcome.fault != Fault::none; }
  template <class Step>
  void call(uint32_t index, const Step& step) {
    Block block{shared_.data(), index, rounds_};
    step(block);
    ended_ = ended_ || block.ends;
  }

  const Resident& r_;
  std::array<uint64_t, Block::kShared> shared_{};
  uint32_t rounds_ = 0;
  bool ended_ = false;
};

template <class Element>
GivenFit by_steps(const Question<Element>& asked) {
  const gpu::Sizes sizes = asked.sizes();
  uint64_t bytes = 0;
  gpu::lay_out(nullptr, sizes, bytes);
  std::vector<uint64_t> memory(bytes / 8 + 1, 0xa5a5a5a5a5a5a5a5); // what no step writes is nonsense
  const Resident r = gpu::lay_out(memory.data(), sizes, bytes);
  r.control->outcome.fault = Fault::none;
  GivenFit made;
  made.codebook.resize(size_t{sizes.anchors_max} * asked.dimensions);
  made.deviations.resize(made.codebook.size());
  made.labels.resize(asked.count());
  made.iterations.resize(asked.settings.iterations + 1);
  uint64_t count = 0;
  const gpu::Outputs to = {made.codebook.data(), made.deviations.data(), made.labels.data(), made.iterations.data(),
                           &count};
  HostEngine engine(r);
  gpu::fit_resident(engine, r, asked.settings, gpu::Reading<Element>{asked.vectors.data(), asked.metric, asked.bad},
                    asked.given.empty() ? nullptr : asked.given.data(), to);
  return cut(std::move(made), count, asked);
}

template <class Element>
void compare_random(uint64_t seed) {
  CAPTURE(seed);
  const Question<Element> asked = random_question<Element>(seed, 700, {1, 3, 8, 20, 127, 128});
  compare(asked, 1, [&] { return by_steps(asked); });
}

TEST_CASE("the steps of resident fits give the host's fits, to the bit: random data and settings") {
  for (uint64_t seed = 1; seed <= 120; ++seed) {
    compare_random<Float16>(3 * seed);
    compare_random<BFloat16>(3 * seed + 1);
    compare_random<float>(3 * seed + 2);
  }
}

TEST_CASE("a cell that was merged is split like any other, in the same upkeep") {
  const std::vector<uint32_t> dimensions = {1, 3, 127, 128, 1537};
  check_alike(by_steps(random_question<BFloat16>(155, 1500, dimensions)),
              by_host(random_question<BFloat16>(155, 1500, dimensions)));
  check_alike(by_steps(random_question<float>(342, 1500, dimensions)),
              by_host(random_question<float>(342, 1500, dimensions)));
}

TEST_CASE("the steps of resident fits give the published fits") {
  for (const PublishedFit& fit : kPublishedFits) {
    if (fit.is_large()) continue; // the GPU's test has those
    const GivenFit made = by_steps(published(fit));
    CHECK(made.iterations.size() == fit.iterations);
    CHECK(fingerprint_of(made.labels) == fit.labels);
    CHECK(fingerprint_of(made.codebook) == fit.codebook);
  }
}

TEST_CASE("the steps of resident fits find the first row that cannot be used, and say what is wrong with it") {
  Question<float> asked;
  asked.dimensions = 3;
  asked.vectors.assign(60, 1.0f);
  asked.settings.anchors = 4;
  asked.vectors[3 * 11 + 2] = std::numeric_limits<float>::infinity();
  asked.vectors[3 * 7 + 1] = 70000;
  GivenFit made = by_steps(asked);
  CHECK(made.outcome.fault == Fault::too_large);
  CHECK(made.outcome.row == 7);
  CHECK(made.outcome.column == 1);
  CHECK(made.outcome.number == 70000);
  CHECK(made.iterations.empty());
  CHECK(made.labels == std::vector<uint32_t>(20, kNoLabel));

  asked.bad = BadRows::skip;
  check_alike(by_steps(asked), by_host(asked));
  asked.settings.anchors = 19;
  made = by_steps(asked);
  CHECK(made.outcome.fault == Fault::too_few);
  CHECK(made.outcome.used == 18);

  asked.metric = Metric::cosine;
  asked.bad = BadRows::refuse;
  std::fill_n(asked.vectors.begin() + 3, 3, 0.0f);
  made = by_steps(asked);
  CHECK(made.outcome.fault == Fault::no_direction);
  CHECK(made.outcome.row == 1);

  Question<float> given = asked;
  given.metric = Metric::l2;
  given.bad = BadRows::skip;
  given.settings.anchors = 2;
  given.settings.start = Start::given;
  given.given = {Float16(1), Float16(1), Float16(1), Float16(1), Float16(NAN), Float16(1)};
  made = by_steps(given);
  CHECK(made.outcome.fault == Fault::not_finite);
  CHECK(made.outcome.is_given == 1);
  CHECK(made.outcome.row == 1);
  CHECK(made.outcome.column == 1);
}

} // namespace
} // namespace millrace::codebook
