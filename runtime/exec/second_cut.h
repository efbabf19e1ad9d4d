// Cuts the segments once more, when the first ticks have shown what handlers cost (semantics.md 5.2). Private to
// runtime/exec.
//
// Problem. A pipeline's first plan often has to guess: most handlers' costs depend on the picture's size. A guess that
// is too low leaves one worker with more than a period holds; one that is too high pays a hand-over for nothing.
//
// Why this way. A newly compiled plan would lose the handlers' state, the last values and the queues. So only the cut
// is made again: steps keep all that they hold and move to other segments while the run stands still (standstill.h).
// Under realtime, beats that fall into that time are skipped and counted.
//
// A segment runs its steps one after another, tick by tick. So steps may become one segment if they stand at the same
// tick: all before it, or the first of them through it and the others not. Steps that stand elsewhere, because their
// tick waits for another clock or for a result that is owed, keep their segments, and the cut is made around them.
//
// Limits. No handler moves to another device, no instance is added, and a handler with a thread of its own keeps that
// thread.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "exec/standstill.h"

namespace millrace::exec {

class RunState;
class Workers;

class SecondCut {
 public:
  // `workers`: null in virtual time, which has no worker threads.
  SecondCut(RunState& run, Workers* workers);
  // Does what it is time for. Called now and then until the second cut is over. `nothing_comes`: see standstill.h.
  void look(bool nothing_comes = false);
  bool measures() const { return state_ == State::measuring; }
  // True while the clocks are held: look() should be called again soon.
  bool holds() const { return standstill_.has_begun(); }

 private:
  enum class State { measuring, standing_still, over };
  void end(State state);
  void begin();
  void cut_at_rest();

  RunState& run_;
  Workers* workers_;
  Standstill standstill_;
  State state_ = State::measuring;
  std::vector<int64_t> costs_ns_; // by handler, while it stands still
  int attempts_ = 0;
};

} // namespace millrace::exec
