// The cut of segments made once more, when the first ticks have said what handlers cost (semantics.md 5.2). Private to
// runtime/exec.
//
// Problem. A pipeline's first plan often has to guess: most handlers' costs depend on the picture's size. A guess that
// is too low leaves one worker with more than a period holds; one that is too high pays a hand-over for nothing.
//
// Why this way. A plan that is compiled anew would take its handlers' state, its last values and its queues with it, so
// only the cut is made again: steps keep all that they hold and move to other segments while nothing of them is under
// way. No clock admits a tick until those in flight are through, the workers rest, and the run goes on at a tick
// boundary. Under realtime beats that fall into that time are skipped and counted.
//
// What it is not. No handler moves to another device, no instance is added, and what stands behind a handler that
// answers later stays as it is: it is never idle between two ticks.
#pragma once

#include <cstdint>
#include <optional>

#include "plan/plan.h"

namespace millrace::exec {

class RunState;
class Workers;

class SecondCut {
 public:
  // `workers`: null in virtual time, where nobody else runs.
  SecondCut(RunState& run, Workers* workers);
  // Looks whether it is time, and does what there is to do; called now and then until it is over.
  void look();
  bool measures() const { return state_ == State::measuring; }
  // It wants to be asked again soon: the clocks are held.
  bool holds() const { return state_ == State::holding; }
  // Lets the clocks go on, to be held again later; in virtual time, where nothing else can move any more.
  void give_up();

 private:
  enum class State { measuring, holding, over };
  void end();
  void cut_at_rest();

  RunState& run_;
  Workers* workers_;
  State state_ = State::measuring;
  bool is_stuck();

  std::optional<plan::Cut> cut_;
  uint64_t moved_ = 0; // while the clocks are held
  int64_t moved_at_ns_ = 0, held_since_ns_ = 0;
  int attempts_ = 0;
};

} // namespace millrace::exec
