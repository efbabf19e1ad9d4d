// Fits by the steps of resident fits (plugins/codebook/gpu), and random fits that they are compared on. The tests of
// the host run the steps one after the other; those of the GPU enqueue them.
#pragma once

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "plugins/codebook/deviations.h"
#include "plugins/codebook/gpu/resident_fit.h"
#include "plugins/codebook/published_fits.h"
#include "rig.h"

namespace millrace::codebook {

// A fit as its handler gives it.
struct GivenFit {
  std::vector<Float16> codebook, deviations;
  std::vector<uint32_t> labels; // of each row of the input
  std::vector<IterationRecord> iterations;
  gpu::Outcome outcome{};
};

template <class Element>
struct Question {
  std::vector<Element> vectors;
  uint32_t dimensions = 0;
  FitSettings settings;
  Metric metric = Metric::l2;
  BadRows bad = BadRows::refuse;
  std::vector<Float16> given; // for Start::given

  uint32_t count() const { return static_cast<uint32_t>(vectors.size() / dimensions); }
  gpu::Sizes sizes() const { return {count(), dimensions, settings.anchors, anchors_max(settings)}; }
};

inline Question<Float16> published(const PublishedFit& fit) {
  Question<Float16> asked;
  asked.vectors = waves(fit.vectors, fit.dimensions);
  asked.dimensions = fit.dimensions;
  asked.settings.anchors = fit.anchors;
  asked.settings.mean = fit.mean;
  asked.settings.maintenance = fit.maintenance;
  return asked;
}

// A fit of which all outputs are still as large as they may become, cut to what there is.
template <class Element>
GivenFit cut(GivenFit whole, uint64_t iterations, const Question<Element>& asked) {
  whole.outcome = gpu::outcome_after(whole.iterations.data(), asked.settings.iterations);
  whole.iterations.resize(iterations);
  whole.codebook.resize(size_t{whole.outcome.anchors} * asked.dimensions);
  whole.deviations.resize(whole.codebook.size());
  return whole;
}

// The host's own fit of it; the outcome has no fault.
template <class Element>
GivenFit by_host(const Question<Element>& asked, uint32_t threads = 1) {
  const Points points = points_of(asked.vectors, asked.dimensions, asked.metric, asked.bad);
  Rows given;
  if (!asked.given.empty()) given = points_of(asked.given, asked.dimensions, asked.metric).rows;
  const Fit fit = fit_of(points, asked.settings, threads, given);
  GivenFit made;
  made.codebook = halves_of(fit.anchors);
  made.deviations.resize(made.codebook.size());
  find_deviations(points.rows, fit.anchors, fit.labels, made.deviations);
  auto label = fit.labels.begin();
  for (uint32_t row = 0; row < asked.count(); ++row) {
    const bool is_skipped = std::ranges::binary_search(points.skipped, row);
    made.labels.push_back(is_skipped ? kNoLabel : *label++);
  }
  for (const Iteration& one : fit.iterations) {
    const bool is_last = &one == &fit.iterations.back();
    made.iterations.push_back({one.energy, one.change, one.temperature, one.changed, one.anchors, one.merged, one.split,
                               one.empty, is_last && fit.converged});
  }
  made.outcome.anchors = static_cast<uint32_t>(fit.anchors.count());
  made.outcome.used = static_cast<uint32_t>(points.count());
  return made;
}

// ---- random fits

template <class Element>
Question<Element> random_question(uint64_t seed, uint32_t vectors_max, const std::vector<uint32_t>& dimensions) {
  std::mt19937_64 draw(seed);
  const auto below = [&](uint64_t count) { return static_cast<uint32_t>(draw() % count); };
  const auto one_of = [&]<class T>(std::initializer_list<T> all) { return *(all.begin() + below(all.size())); };
  Question<Element> asked;
  asked.dimensions = dimensions[below(dimensions.size())];
  const uint32_t count = below(3) == 0 ? 1 + below(8) : 1 + below(std::max(1u, vectors_max));
  const uint32_t centers = 1 + below(12);
  const float spread = one_of({0.0f, 0.05f, 0.5f}), scale = one_of({1.0f, 100.0f, 0.001f});
  for (uint32_t row = 0; row < count; ++row)
    for (uint32_t j = 0; j < asked.dimensions; ++j) {
      const float center = static_cast<float>((row % centers) * (j % 5 + 1));
      const float noise = static_cast<float>(below(2001)) / 1000 - 1;
      asked.vectors.push_back(Element(scale * (1 + center + spread * noise)));
    }
  FitSettings& s = asked.settings;
  s.anchors = 1 + below(std::min(count, 40u));
  s.start = one_of({Start::farthest, Start::farthest, Start::kmeans_plus_plus, Start::random, Start::given});
  s.seed = draw();
  s.temperature = one_of({0.0f, 1.0f, 30.0f});
  s.cooling = one_of({Cooling::exponential, Cooling::linear, Cooling::harmonic});
  s.cooling_rate = one_of({0.05f, 0.3f, 1.0f});
  s.rate = one_of({0.2f, 1.0f});
  s.momentum = one_of({0.0f, 0.0f, 0.5f});
  s.step_max = one_of({0.1f, 5.0f, 1000.0f});
  s.mean = one_of({Mean::plain, Mean::trimmed, Mean::huber});
  s.huber = one_of({0.1f, 1.0f, 50.0f});
  s.iterations = 1 + below(12);
  s.tolerance = one_of({0.0, 1e-3, 10.0});
  s.changes = 1 + below(3);
  s.maintenance = one_of({Maintenance::none, Maintenance::as_published, Maintenance::corrected});
  s.interval = 1 + below(4);
  s.last_step = below(2) == 0;
  asked.metric = one_of({Metric::l2, Metric::l2, Metric::cosine});
  if (below(4) == 0) { // some rows are bad, and enough are left
    asked.bad = BadRows::skip;
    for (uint32_t row = 0; row + s.anchors < count; ++row)
      if (below(5) == 0) asked.vectors[size_t{row} * asked.dimensions + below(asked.dimensions)] = Element(NAN);
    uint32_t left = 0;
    for (uint32_t row = 0; row < count; ++row) {
      bool bad = false;
      for (uint32_t j = 0; j < asked.dimensions; ++j)
        bad = bad || std::isnan(static_cast<float>(asked.vectors[size_t{row} * asked.dimensions + j]));
      left += !bad;
    }
    s.anchors = std::min(s.anchors, left);
  }
  if (s.start == Start::given)
    for (uint32_t n = 0; n < s.anchors * asked.dimensions; ++n)
      asked.given.push_back(Float16(scale * (1 + static_cast<float>(below(1000)) / 100)));
  return asked;
}

} // namespace millrace::codebook
