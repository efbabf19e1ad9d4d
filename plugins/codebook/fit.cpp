// The loop of a fit; see fit.h.
#include "plugins/codebook/fit.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "plugins/codebook/labels.h"
#include "plugins/codebook/upkeep.h"

namespace millrace::codebook {

namespace {

constexpr uint32_t kCalmIterations = 3; // in a row, after which a fit has converged

Rows first_anchors(const Points& points, const FitSettings& settings, const Rows& given, Crew& crew) {
  Rows anchors(settings.anchors, points.dimensions());
  if (settings.start == Start::given) {
    for (uint32_t a = 0; a < settings.anchors; ++a) std::ranges::copy(given.numbers(a), anchors.row(a));
  } else {
    const std::vector<uint32_t> chosen = settings.start == Start::farthest
                                             ? farthest(points.rows, settings.anchors, crew)
                                         : settings.start == Start::kmeans_plus_plus
                                             ? kmeans_plus_plus(points.rows, settings.anchors, settings.seed, crew)
                                             : random_rows(points.rows, settings.anchors, settings.seed);
    for (uint32_t a = 0; a < settings.anchors; ++a) std::ranges::copy(points.rows.numbers(chosen[a]), anchors.row(a));
  }
  for (uint32_t a = 0; a < settings.anchors; ++a) round_to_halves(anchors.numbers(a));
  return anchors;
}

class Annealing {
 public:
  Annealing(const Points& points, const FitSettings& settings, Rows anchors, Crew& crew)
      : points_(points),
        settings_(settings),
        crew_(crew),
        anchors_(std::move(anchors)),
        labels_(points.rows),
        cells_(points),
        temperature_(settings.temperature) {
    if (settings.momentum != 0) velocity_ = Rows(anchors_.count(), points.dimensions());
  }

  Iteration iterate(uint32_t count) {
    Iteration made;
    made.temperature = temperature_;
    const std::vector<uint32_t> before = labels_.all();
    labels_.assign(anchors_, crew_);
    cells_.sort(labels_.all(), anchors_.count(), crew_);
    step();
    if (count > 0 && count % settings_.interval == 0) maintain(made);
    const double energy = cells_.energy(anchors_);
    made.energy = energy;
    made.change = count > 0 ? energy - energy_ : std::numeric_limits<double>::quiet_NaN();
    energy_ = energy;
    made.anchors = static_cast<uint32_t>(anchors_.count());
    for (size_t i = 0; i < before.size(); ++i) made.changed += before[i] != labels_.all()[i];
    for (size_t cell = 0; cell < cells_.count(); ++cell) made.empty += cells_[cell].members.empty();
    cool(count + 1);
    return made;
  }

  void take_means() {
    crew_.each(anchors_.count(), 1, [this](size_t cell, size_t) {
      if (cells_[cell].members.empty()) return;
      cells_[cell].mean(points_, anchors_.numbers(cell));
      round_to_halves(anchors_.numbers(cell));
    });
    energy_ = cells_.energy(anchors_);
  }

  const Rows& anchors() const { return anchors_; }
  const std::vector<uint32_t>& labels() const { return labels_.all(); }
  double energy() const { return energy_; }

 private:
  void step() {
    const float alpha = settings_.rate * temperature_ / (1 + temperature_);
    const float far = settings_.huber * std::sqrt(temperature_);
    crew_.each(anchors_.count(), 1, [&](size_t cell, size_t) {
      const std::span<float> anchor = anchors_.numbers(cell);
      if (cells_[cell].members.empty()) {
        if (settings_.momentum != 0) std::ranges::fill(velocity_.numbers(cell), 0.0f);
        return;
      }
      std::vector<float> mean(anchor.begin(), anchor.end());
      cells_.mean(cell, settings_.mean, labels_.distances(), far, mean);
      for (size_t j = 0; j < anchor.size(); ++j) {
        float way = alpha * (mean[j] - anchor[j]);
        if (settings_.momentum != 0)
          way = settings_.momentum * velocity_.numbers(cell)[j] + (1 - settings_.momentum) * way;
        way = std::clamp(way, -settings_.step_max, settings_.step_max);
        if (settings_.momentum != 0) velocity_.numbers(cell)[j] = way;
        anchor[j] = Float16(std::clamp(anchor[j] + way, -kAnchorMax, kAnchorMax));
      }
    });
  }

  void maintain(Iteration& made) {
    if (settings_.maintenance == Maintenance::none) return;
    const Rows before = anchors_;
    const Upkeep done =
        settings_.maintenance == Maintenance::corrected
            ? keep_corrected(points_, anchors_, labels_, cells_, crew_)
            : keep_as_published(points_, temperature_, anchors_max(settings_), anchors_, labels_, cells_, crew_);
    made.merged = done.merged;
    made.split = done.split;
    if (settings_.momentum == 0) return;
    velocity_.resize(anchors_.count());
    for (size_t a = 0; a < before.count(); ++a) // the last step of an anchor that was put elsewhere is forgotten
      if (!std::ranges::equal(before.numbers(a), anchors_.numbers(a))) std::ranges::fill(velocity_.numbers(a), 0.0f);
  }

  void cool(uint32_t count) {
    const auto steps = static_cast<float>(count);
    switch (settings_.cooling) {
      case Cooling::exponential: temperature_ = temperature_ * (1 - settings_.cooling_rate); break;
      case Cooling::linear:
        temperature_ = settings_.temperature * std::max(0.0f, 1 - settings_.cooling_rate * steps);
        break;
      case Cooling::harmonic: temperature_ = settings_.temperature / (1 + settings_.cooling_rate * steps); break;
    }
  }

  const Points& points_;
  const FitSettings& settings_;
  Crew& crew_;
  Rows anchors_, velocity_;
  Labels labels_;
  Cells cells_;
  float temperature_;
  double energy_ = 0;
};

} // namespace

Fit fit(const Points& points, const FitSettings& settings, const Rows& given, Crew& crew) {
  Annealing annealing(points, settings, first_anchors(points, settings, given, crew), crew);
  Fit made;
  uint32_t calm = 0;
  for (uint32_t count = 0; count < settings.iterations && !made.converged; ++count) {
    const Iteration last = annealing.iterate(count);
    made.iterations.push_back(last);
    calm = std::abs(last.change) < settings.tolerance && last.changed < settings.changes ? calm + 1 : 0;
    made.converged = calm == kCalmIterations;
  }
  if (settings.last_step) {
    annealing.take_means();
    Iteration& last = made.iterations.back();
    last.change += annealing.energy() - last.energy;
    last.energy = annealing.energy();
  }
  made.anchors = annealing.anchors();
  made.labels = annealing.labels();
  return made;
}

} // namespace millrace::codebook
