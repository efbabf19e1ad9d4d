// The order of the steps of a fit that stays on a device. An engine runs them: on a GPU it enqueues kernels
// (fit_on_gpu.cu); on the host it calls them one after the other, which the tests do.
//
// An engine has
//   each(count, step)           calls step(i) for 0 … count − 1, in any order
//   blocks(count, step)         calls step(block) for so many blocks
//   once(step)                  calls step(block) for one large block
//   always_each, always_once    the same, also if there is no fit (Outcome::fault)
//   blocks_then(count, step, last)   the same, and then last(block) once
//   search_many(r)              searches for the listed vectors (label_steps.h) together if they are many; returns
//                               from how many on it does so
//   go_from(r, step, decides)   after the n-th first anchor: lowers the distances to the nearest, and keeps the vector
//                               that is furthest in keys[n], where n is rounds · kStartsARound + step. With `decides`
//                               the loop ends with the last
//   loop(which, at_most, body)  repeats body() until a step ends the loop
#pragma once

#include "plugins/codebook/gpu/cell_steps.h"
#include "plugins/codebook/gpu/give_steps.h"
#include "plugins/codebook/gpu/label_steps.h"
#include "plugins/codebook/gpu/read_steps.h"
#include "plugins/codebook/gpu/start_steps.h"
#include "plugins/codebook/gpu/upkeep_steps.h"

namespace millrace::codebook::gpu {

template <class Element>
struct Reading {
  const Element* vectors; // [r.vectors, r.dimensions]
  Metric metric;
  BadRows bad;
};

template <class Engine, class Element>
void read_vectors(Engine& engine, const Resident& r, const FitSettings& s, const Reading<Element>& from) {
  const bool has_exact_numbers = std::is_same_v<Element, Float16> && from.metric != Metric::cosine;
  engine.always_once(Begin{r, s});
  engine.blocks(r.vectors, LookAtRow<Element>{r, from.vectors, from.metric, from.bad});
  engine.once(PlaceRows<Element>{r, from.vectors, from.metric, from.bad, has_exact_numbers});
  engine.blocks(r.vectors, WriteRow<Element>{r, from.vectors, from.metric});
}

template <class Engine, class Element>
void take_given(Engine& engine, const Resident& r, const Element* anchors, Metric metric) {
  engine.blocks(r.anchors, TakeGiven<Element>{r, anchors, metric});
  engine.once(CheckGiven<Element>{r, anchors, metric});
}

template <class Engine>
void choose_first(Engine& engine, const Resident& r, const FitSettings& s) {
  const bool draws = s.start == Start::kmeans_plus_plus;
  if (s.start == Start::random) engine.once(DrawRows{r});
  if (draws) engine.once(DrawFirst{r});
  if (s.start == Start::farthest || draws) {
    const uint32_t rounds = (r.anchors - 1 + kStartsARound - 1) / kStartsARound;
    engine.loop(0, rounds, [&] {
      for (uint32_t step = 0; step < kStartsARound; ++step) {
        engine.go_from(r, step, !draws);
        if (draws) engine.once(DrawNext{r, step});
      }
    });
  }
  engine.blocks(r.anchors, TakeChosen{r});
}

template <class Engine>
void iterate(Engine& engine, const Resident& r, const FitSettings& s, IterationRecord* records) {
  const bool keeps = s.maintenance != Maintenance::none;
  const uint32_t share = r.vectors / r.anchors;             // vectors for each cell
  constexpr uint32_t kMembersAPart = 256, kPartsMax = 1024; // a block sums up so many
  const uint32_t parts = share <= kMembersAPart ? 1 : std::min(share / kMembersAPart + 1, kPartsMax);
  const Trim trim{r};
  const SumUp sum_up{r, s, parts};
  const Move move{r, s, !keeps};
  const EndIteration end{r, s, records};
  engine.blocks(KeepLabels::blocks(r), KeepLabels{r});
  const uint32_t many = engine.search_many(r);
  if (uint64_t{r.anchors_max} * r.stride > kFewPaysFrom)
    engine.blocks_then(SearchFew::kBlocks, SearchFew{r, many}, PlaceCells{r});
  else
    engine.blocks_then(SearchOne::kBlocks, SearchOne{r, many}, PlaceCells{r});
  engine.each(r.vectors, PlaceMember{r});
  if (parts == 1 && !keeps) return engine.blocks_then(r.anchors_max, DoCell{trim, sum_up, move}, end);
  if (parts == 1) {
    engine.blocks(r.anchors_max, DoCell{trim, sum_up, move});
  } else {
    if (s.mean == Mean::trimmed) engine.blocks(r.anchors_max, trim);
    engine.blocks(r.anchors_max, ClearSums{r});
    engine.blocks(r.anchors_max * parts, sum_up);
    engine.blocks(r.anchors_max, move);
  }
  if (s.maintenance == Maintenance::as_published) {
    engine.once(MergeAsPublished{{r, s}});
    engine.blocks_then(SplitCells::kBlocks, SplitCells{{r, s}}, EndUpkeep{{r, s}});
  }
  if (s.maintenance == Maintenance::corrected) engine.once(KeepCorrected{{r, s}});
  if (keeps)
    engine.blocks_then(r.anchors_max, LookBack{r}, end);
  else
    engine.once(end);
}

template <class Engine>
void give(Engine& engine, const Resident& r, const FitSettings& s, const Outputs& to) {
  engine.blocks(r.anchors_max, GiveAnchor{r, to});
  engine.always_each(r.vectors, GiveLabel{r, to});
  if (to.deviations) {
    engine.once(ClearCounts{r});
    engine.each(r.vectors, CountLabel{r});
    engine.once(PlaceCells{r});
    engine.each(r.vectors, PlaceMember{r});
    engine.blocks(r.anchors_max, OrderMembers{r});
    engine.blocks(r.anchors_max, GiveDeviations{r, to});
  }
  engine.always_once(GiveOutcome{r, to, s.iterations});
}

// The whole fit. `given`: the first anchors for Start::given, else null.
template <class Engine, class Element, class GivenElement>
void fit_resident(Engine& engine, const Resident& r, const FitSettings& s, const Reading<Element>& from,
                  const GivenElement* given, const Outputs& to) {
  read_vectors(engine, r, s, from);
  if (given)
    take_given(engine, r, given, from.metric);
  else
    choose_first(engine, r, s);
  if (s.momentum != 0) engine.blocks(r.anchors_max, ClearVelocity{r});
  engine.loop(1, s.iterations, [&] { iterate(engine, r, s, to.records); });
  if (s.last_step) {
    engine.blocks(r.anchors_max, TakeMean{r});
    engine.once(EndLastStep{r, to.records});
  }
  give(engine, r, s, to);
}

} // namespace millrace::codebook::gpu
