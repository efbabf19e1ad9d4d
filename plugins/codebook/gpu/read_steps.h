// Steps that read vectors into a resident fit: which rows can be used, the units of sums, and rows of single precision.
#pragma once

#include "plugins/codebook/gpu/block.h"
#include "plugins/codebook/gpu/lane_sums.h"
#include "plugins/codebook/gpu/resident.h"

namespace millrace::codebook::gpu {

MR_HOST_DEVICE inline uint32_t magnitude_bits(float number) { return detail::bits_of_float(number) & 0x7fffffffu; }

// Says what is wrong with a row; its largest magnitude as bits, whose order is that of magnitudes.
MR_HOST_DEVICE inline Fault fault_of_row(uint32_t largest, double square, Metric metric) {
  constexpr uint32_t kInfinite = 0x7f800000;
  if (largest >= kInfinite) return Fault::not_finite;
  if (metric == Metric::cosine) return square > 0 ? Fault::none : Fault::no_direction;
  return detail::float_of_bits(largest) > kAnchorMax ? Fault::too_large : Fault::none;
}
MR_HOST_DEVICE inline bool is_bad(float number, Fault fault) {
  constexpr uint32_t kInfinite = 0x7f800000;
  const uint32_t bits = magnitude_bits(number);
  return fault == Fault::too_large ? detail::float_of_bits(bits) > kAnchorMax : bits >= kInfinite;
}

// Looks at one row of numbers: all threads of the block get what it found.
struct RowFacts {
  uint32_t largest; // magnitude, as bits
  double square;    // Σ x² in lanes
};
template <class NumberAt>
MR_HOST_DEVICE RowFacts look_at(const Block& block, uint32_t dimensions, NumberAt&& number_at) {
  block.once([&] { block.shared[0] = 0; });
  block.each(dimensions, [&](uint64_t j) { raise_to(block.shared[0], magnitude_bits(number_at(j))); });
  block.each(kLanes, [&](uint64_t lane) {
    double sum = 0;
    for (uint64_t j = lane; j < dimensions; j += kLanes) sum += double{number_at(j)} * double{number_at(j)};
    block.shared[1 + lane] = bits_of(sum);
  });
  double lanes[kLanes];
  for (uint32_t lane = 0; lane < kLanes; ++lane) lanes[lane] = double_of(block.shared[1 + lane]);
  const RowFacts facts = {static_cast<uint32_t>(block.shared[0]), sum_of_lanes(lanes)};
  block.each(0, [](uint64_t) {}); // all have read before anyone writes again
  return facts;
}

// The number of a row as single precision; with cosine divided by the row's norm.
MR_HOST_DEVICE inline float directed(float number, double norm, Metric metric) {
  return metric == Metric::cosine ? static_cast<float>(double{number} / norm) : number;
}

struct Begin { // once
  Resident r;
  FitSettings s;
  MR_HOST_DEVICE void operator()(Block& block) const {
    block.each(r.anchors_max, [&](uint64_t a) {
      r.keys[a] = 0;
      r.counts[a] = 0;
    });
    block.once([&] {
      Control& c = *r.control;
      c.outcome = {Fault::none, 0, 0, 0, 0, r.vectors, r.anchors};
      c.bad_row = UINT64_MAX;
      c.largest = c.largest_square = c.anchor_square = 0;
      c.draws = s.seed;
      c.first = 0;
      c.iterations = c.listed = c.changed = c.calm = c.converged = c.merged = c.split = 0;
      c.temperature = s.temperature;
      c.energy = 0;
      c.labelled_anchors = c.tickets = 0;
    });
  }
};

// A row of the input; one block each.
template <class Element>
struct LookAtRow {
  static constexpr uint32_t kThreads = 64;
  Resident r;
  const Element* from;
  Metric metric;
  BadRows bad;
  MR_HOST_DEVICE void operator()(Block& block) const {
    const uint64_t i = block.index;
    const Element* const row = from + i * r.dimensions;
    RowFacts facts = look_at(block, r.dimensions, [&](uint64_t j) { return static_cast<float>(row[j]); });
    const Fault fault = fault_of_row(facts.largest, facts.square, metric);
    const double norm = metric == Metric::cosine ? sqrt(facts.square) : 1;
    if (fault == Fault::none && metric == Metric::cosine)
      facts =
          look_at(block, r.dimensions, [&](uint64_t j) { return directed(static_cast<float>(row[j]), norm, metric); });
    block.once([&] {
      r.place[i] = fault == Fault::none ? static_cast<uint32_t>(i) : kNone;
      r.norms[i] = norm;
      r.double_squares[i] = facts.square;
      if (fault != Fault::none && bad == BadRows::refuse) lower_to(r.control->bad_row, i);
      if (fault != Fault::none) return;
      raise_to(r.control->largest, bits_of(double{detail::float_of_bits(facts.largest)}));
      raise_to(r.control->largest_square, bits_of(facts.square));
    });
  }
};

// Says what is wrong with a row, after `bad_row` was found.
template <class Element>
MR_HOST_DEVICE void explain(Outcome& outcome, const Element* row, uint32_t dimensions, Metric metric) {
  uint32_t largest = 0;
  for (uint32_t j = 0; j < dimensions; ++j) {
    const uint32_t bits = magnitude_bits(static_cast<float>(row[j]));
    largest = bits > largest ? bits : largest;
  }
  outcome.fault = fault_of_row(largest, 0, metric);
  for (uint32_t j = 0; j < dimensions && outcome.fault != Fault::no_direction; ++j)
    if (is_bad(static_cast<float>(row[j]), outcome.fault)) {
      outcome.column = j;
      outcome.number = static_cast<float>(row[j]);
      break;
    }
}

// Once: gives good rows their places, and chooses the units of sums.
template <class Element>
struct PlaceRows {
  Resident r;
  const Element* from;
  Metric metric;
  BadRows bad;
  bool has_exact_numbers; // half precision as it came
  MR_HOST_DEVICE void operator()(Block& block) const {
    Control& c = *r.control;
    if (bad == BadRows::skip) {
      sum_up_before(
          block, r.vectors, [&](uint64_t i) { return r.place[i] == kNone ? 0u : 1u; },
          [&](uint64_t i, uint64_t before) {
            const bool is_good = r.place[i] != kNone;
            if (i + 1 == r.vectors) c.outcome.used = static_cast<uint32_t>(before + is_good);
            r.halves[i] = is_good ? static_cast<uint32_t>(before) : kNone;
          });
      block.each(r.vectors, [&](uint64_t i) { r.place[i] = r.halves[i]; });
    }
    block.once([&] {
      c.weighed = Whole::below(double_of(c.largest));
      c.values = has_exact_numbers ? Whole::of_halves() : c.weighed;
      c.squares = Whole::below(2 * double_of(c.largest_square));
      if (c.bad_row != UINT64_MAX) {
        c.outcome.row = static_cast<uint32_t>(c.bad_row);
        explain(c.outcome, from + c.bad_row * r.dimensions, r.dimensions, metric);
      } else if (c.outcome.used < r.anchors) {
        c.outcome.fault = Fault::too_few;
      }
    });
  }
};

template <class Element>
struct WriteRow {
  static constexpr uint32_t kThreads = 64;
  Resident r;
  const Element* from;
  Metric metric;
  MR_HOST_DEVICE void operator()(Block& block) const {
    const uint64_t i = block.index, at = r.place[i];
    if (at == kNone) return;
    const Element* const row = from + i * r.dimensions;
    block.each(r.stride, [&](uint64_t j) {
      r.rows[at * r.stride + j] = j < r.dimensions ? directed(static_cast<float>(row[j]), r.norms[i], metric) : 0;
    });
    block.once([&] {
      r.square[at] = r.control->squares.of(r.double_squares[i]);
      r.labels[at] = 0;
    });
  }
};

// A row of the first anchors that were given; they are refused as vectors are.
template <class Element>
struct TakeGiven {
  static constexpr uint32_t kThreads = 64;
  Resident r;
  const Element* from;
  Metric metric;
  MR_HOST_DEVICE void operator()(Block& block) const {
    const uint64_t a = block.index;
    const Element* const row = from + a * r.dimensions;
    const RowFacts facts = look_at(block, r.dimensions, [&](uint64_t j) { return static_cast<float>(row[j]); });
    const Fault fault = fault_of_row(facts.largest, facts.square, metric);
    if (fault != Fault::none) return block.once([&] { lower_to(r.control->bad_row, a); });
    const double norm = sqrt(facts.square);
    block.each(r.stride, [&](uint64_t j) {
      put_first(r, a, j, j < r.dimensions ? directed(static_cast<float>(row[j]), norm, metric) : 0);
    });
  }
};
template <class Element>
struct CheckGiven { // once
  Resident r;
  const Element* from;
  Metric metric;
  MR_HOST_DEVICE void operator()(Block& block) const {
    block.once([&] {
      Control& c = *r.control;
      if (c.bad_row == UINT64_MAX) return;
      c.outcome.is_given = 1;
      c.outcome.row = static_cast<uint32_t>(c.bad_row);
      explain(c.outcome, from + c.bad_row * r.dimensions, r.dimensions, metric);
    });
  }
};

} // namespace millrace::codebook::gpu
