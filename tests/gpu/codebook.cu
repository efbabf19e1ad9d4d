// Fits of codebooks on a GPU against the host's, to the bit: published and random ones, captured, on streams and
// unrolled.
#include <doctest/doctest.h>

#include "on_gpu_fit.h"
#include "resident_checks.h"

namespace millrace::codebook {
namespace {

TEST_CASE("a GPU gives the published fits: captured, on a stream and unrolled") {
  for (const PublishedFit& fit : kPublishedFits) {
    const Question<Float16> asked = published(fit);
    FitRig<Float16> on_gpu(asked);
    for (const Way way : {Way::captured, Way::on_a_stream, Way::unrolled}) {
      CAPTURE(fit.vectors);
      CAPTURE(fit.anchors);
      CAPTURE(static_cast<int>(fit.mean));
      CAPTURE(static_cast<int>(fit.maintenance));
      CAPTURE(static_cast<int>(way));
      const GivenFit made = on_gpu.ask(way);
      CHECK(made.iterations.size() == fit.iterations);
      CHECK(made.outcome.anchors == fit.anchors_at_end);
      CHECK(fingerprint_of(made.labels) == fit.labels);
      CHECK(fingerprint_of(made.codebook) == fit.codebook);
    }
  }
}

template <class Element>
void compare_random(uint64_t seed) {
  CAPTURE(seed);
  const uint32_t vectors_max = seed % 10 == 0 ? 20'000 : 1'500;
  const Question<Element> asked = random_question<Element>(seed, vectors_max, {1, 3, 127, 128, 1537});
  compare(asked, 8, [&] { return FitRig<Element>(asked).ask(static_cast<Way>(seed % 3)); });
}

TEST_CASE("a GPU gives the host's fits, to the bit: 500 random ones") {
  for (uint64_t seed = 1; seed <= 500; seed += 3) {
    compare_random<Float16>(seed);
    compare_random<BFloat16>(seed + 1);
    compare_random<float>(seed + 2);
  }
}

TEST_CASE("a GPU finds the vectors that no fit can use") {
  Question<Float16> asked = published(kPublishedFits[0]);
  asked.vectors[64 * 200 + 9] = Float16(INFINITY);
  asked.vectors[64 * 100 + 3] = Float16(NAN);
  GivenFit made = FitRig<Float16>(asked).ask(Way::captured);
  CHECK(made.outcome.fault == Fault::not_finite);
  CHECK(made.outcome.row == 100);
  CHECK(made.outcome.column == 3);
  CHECK(made.iterations.empty());
  CHECK(made.labels == std::vector<uint32_t>(300, kNoLabel));
  asked.bad = BadRows::skip;
  check_alike(FitRig<Float16>(asked).ask(Way::captured), by_host(asked));
}

} // namespace
} // namespace millrace::codebook
