// Anneals anchors to vectors: the exact method, on the CPU.
//
// Each iteration labels all vectors with their nearest anchors, takes a mean of each cell, moves each anchor towards it
// by α = rate · T / (1 + T), at most step_max in each dimension, rounds it to half precision, and cools T. It ends when
// for three iterations the energy has changed by less than `tolerance` and fewer labels than `changes` have changed.
// All sums are whole numbers and distances have one order of additions (lanes.h), so anchors and labels do not depend
// on the number of threads.
#pragma once

#include <cstdint>
#include <vector>

#include "plugins/codebook/cells.h"
#include "plugins/codebook/first_anchors.h"
#include "plugins/codebook/lanes.h"
#include "plugins/codebook/points.h"
#include "plugins/crew/crew.h"

namespace millrace::codebook {

// Temperature of iteration t, from 0: linear T₀ · (1 − c·t), exponential T ← T · (1 − c), harmonic T₀ / (1 + c·t).
enum class Cooling { linear, exponential, harmonic };
enum class Maintenance { none, as_published, corrected };

struct FitSettings {
  uint32_t anchors = 256;
  Start start = Start::farthest;
  uint64_t seed = 1;
  float temperature = 1;
  Cooling cooling = Cooling::exponential;
  float cooling_rate = 0.05f;
  float rate = 0.2f, momentum = 0, step_max = 0.1f;
  Mean mean = Mean::trimmed;
  float huber = 1;          // members further away than huber · √T weigh less
  uint32_t iterations = 50; // at least 1
  double tolerance = 1e-3;
  uint32_t changes = 1;
  Maintenance maintenance = Maintenance::none;
  uint32_t interval = 20;
  // Each anchor becomes the exact mean of its cell at the end. The last iteration then has the energy after this step.
  bool last_step = false;
};

// Anchors that a fit may end with: maintenance as published adds some, and splits no more cells once there are four
// times as many as at first.
inline uint32_t anchors_max(const FitSettings& settings) {
  return settings.maintenance == Maintenance::as_published ? 4 * settings.anchors : settings.anchors;
}

struct Iteration {
  float temperature = 0; // before it cools
  double energy = 0;     // mean squared distance, with the new anchors and this iteration's labels
  double change = 0;     // the energy less the one before; NaN in the first, before which it counts as infinite
  uint32_t changed = 0;  // labels
  uint32_t anchors = 0, merged = 0, split = 0, empty = 0;
};

struct Fit {
  Rows anchors; // numbers of half precision
  std::vector<uint32_t> labels;
  std::vector<Iteration> iterations;
  bool converged = false;
  double energy() const { return iterations.back().energy; }
};

// `given`: the first anchors for Start::given, of the points' dimensions. There are at least as many points as anchors.
// Throws Interrupted if the crew is to stop.
Fit fit(const Points& points, const FitSettings& settings, const Rows& given, Crew& crew);

} // namespace millrace::codebook
