// The fits that were published, to the bit: their data, first anchors, iterations, labels and anchors.
#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "plugins/codebook/published_fits.h"
#include "rig.h"
#include "tests/part.h"

using namespace millrace;
using namespace millrace::codebook;

namespace {

// Energies of the two large fits with maintenance, after these iterations, counted from 1.
constexpr std::array<uint32_t, 6> kShown = {1, 10, 20, 21, 22, 31};
constexpr std::array<double, 6> kEnergiesTrimmed = {0.0101235, 0.0099757, 0.0099358, 2.7404623, 0.0115311, 0.0113672};
constexpr std::array<double, 6> kEnergiesPlain = {0.0101177, 0.0099387, 0.0098867, 2.7404618, 0.0114434, 0.0112760};

FitSettings settings_of(const PublishedFit& row) {
  FitSettings settings;
  settings.anchors = row.anchors;
  settings.mean = row.mean;
  settings.maintenance = row.maintenance;
  return settings;
}

// The sanitizers' runs and the quick tests have the small fits.
bool is_left_out(const PublishedFit& row) { return row.is_large() && test::percent_tried() < 100; }

// The mean squared distance to the means of the cells, which are not rounded.
double energy_of_means(const Points& points, const Fit& made) {
  const uint32_t dimensions = points.dimensions();
  std::vector<double> sums(made.anchors.count() * dimensions), counts(made.anchors.count());
  for (size_t i = 0; i < points.count(); ++i) {
    ++counts[made.labels[i]];
    for (uint32_t j = 0; j < dimensions; ++j)
      sums[made.labels[i] * size_t{dimensions} + j] += double{points.rows.row(i)[j]};
  }
  double energy = 0;
  for (size_t i = 0; i < points.count(); ++i)
    for (uint32_t j = 0; j < dimensions; ++j) {
      const double mean = sums[made.labels[i] * size_t{dimensions} + j] / counts[made.labels[i]];
      energy += (double{points.rows.row(i)[j]} - mean) * (double{points.rows.row(i)[j]} - mean);
    }
  return energy / static_cast<double>(points.count());
}

// doctest's Approx adds 1 to the scale of what it compares unless it is told another.
doctest::Approx about(double energy) { return doctest::Approx(energy).epsilon(kPublishedEnergyError).scale(0); }

} // namespace

TEST_CASE("the published vectors have the published bytes") {
  for (const PublishedFit& row : kPublishedFits)
    CHECK(fingerprint_of(waves(row.vectors, row.dimensions)) == published_vectors(row.vectors));
}

TEST_CASE("the first anchors are the published ones") {
  Crew crew(2);
  using List = std::vector<uint32_t>;
  CHECK(farthest(points_of(waves(300, 64), 64).rows, 6, crew) == List{0, 290, 34, 169, 209, 27});
  CHECK(farthest(points_of(waves(1000, 64), 64).rows, 6, crew) == List{0, 290, 733, 814, 908, 27});
  CHECK(farthest(points_of(waves(10000, 128), 128).rows, 6, crew) == List{0, 4448, 8569, 9013, 2525, 7221});
}

TEST_CASE("published fits have the published labels and anchors to the bit, with one thread and with two") {
  for (const PublishedFit& row : kPublishedFits) {
    if (is_left_out(row)) continue;
    const Points points = points_of(waves(row.vectors, row.dimensions), row.dimensions);
    for (const uint32_t threads : {1u, 2u}) {
      INFO(row.vectors, " vectors, ", row.anchors, " anchors, mean ", static_cast<int>(row.mean), ", maintenance ",
           static_cast<int>(row.maintenance), ", threads ", threads);
      const Fit made = fit_of(points, settings_of(row), threads);
      CHECK(made.iterations.size() == row.iterations);
      CHECK(made.converged == row.converges);
      CHECK(made.energy() == about(row.energy));
      CHECK(made.anchors.count() == row.anchors_at_end);
      CHECK(made.iterations.back().empty == row.empty);
      CHECK(fingerprint_of(made.labels) == row.labels);
      CHECK(fingerprint_of(halves_of(made.anchors)) == row.codebook);
      std::vector<uint32_t> sizes(made.anchors.count());
      for (const uint32_t label : made.labels) ++sizes[label];
      CHECK(*std::min_element(sizes.begin(), sizes.end()) == row.smallest);
      CHECK(*std::max_element(sizes.begin(), sizes.end()) == row.largest);
    }
  }
}

TEST_CASE("the means of the last cells have the published energy") {
  for (const PublishedFit& row : kPublishedFits) {
    if (is_left_out(row)) continue;
    INFO(row.vectors, " vectors, ", row.anchors, " anchors, mean ", static_cast<int>(row.mean), ", maintenance ",
         static_cast<int>(row.maintenance));
    const Points points = points_of(waves(row.vectors, row.dimensions), row.dimensions);
    const Fit made = fit_of(points, settings_of(row));
    CHECK(energy_of_means(points, made) == about(row.energy_of_means));
  }
}

TEST_CASE(
    "the large published fits change as many labels in each iteration, and have the published energies on the way") {
  if (test::percent_tried() < 100) return;
  const Points points = points_of(waves(10000, 128), 128);
  for (const Mean mean : {Mean::trimmed, Mean::plain}) {
    FitSettings settings;
    settings.mean = mean;
    settings.maintenance = Maintenance::as_published;
    const Fit made = fit_of(points, settings, 2);
    std::vector<uint32_t> changes;
    for (const Iteration& one : made.iterations) changes.push_back(one.changed);
    CHECK(std::ranges::equal(changes, mean == Mean::trimmed ? kPublishedChangesTrimmed : kPublishedChangesPlain));
    for (size_t n = 0; n < kShown.size(); ++n) {
      INFO("iteration ", kShown[n]);
      CHECK(made.iterations[kShown[n] - 1].energy ==
            about((mean == Mean::trimmed ? kEnergiesTrimmed : kEnergiesPlain)[n]));
    }
    CHECK(made.iterations[20].merged == 244);
    CHECK(made.iterations[20].split == 6);
    CHECK(made.iterations[10].temperature == doctest::Approx(0.5987).epsilon(1e-4));
  }
}
