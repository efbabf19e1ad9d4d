// A run stands still, so that something can be done to it that must not meet a tick in motion; then it goes on
// (semantics.md 2.9). Private to runtime/exec.
//
//   going ── begin() ──► coming to rest ── is_at_rest() ──► at rest ── go_on() ──► going
//              │                                              ▲
//              no clock admits a tick                         nothing moves, and the workers rest
//
// At rest each segment stands between two of its steps: mostly between two ticks, but in the middle of one where its
// next step waits for something that only a later tick brings (another clock, a result that is owed, room in a queue).
// Nothing is drained. What is done at rest looks where each step stands.
//
// One at a time. All functions are the monitor's; in virtual time its only thread's.
#pragma once

#include <cstdint>
#include <string>

namespace millrace::exec {

class RunState;
class Workers;

class Standstill {
 public:
  // `workers`: null in virtual time, where nobody else runs.
  Standstill(RunState& run, Workers* workers) : run_(run), workers_(workers) {}

  void begin();
  bool has_begun() const { return begun_; }
  // Looks how far it is; asked now and then. True at rest, until go_on(). `nothing_comes`: in virtual time, where no
  // event is left that could move anything.
  bool is_at_rest(bool nothing_comes = false);
  // How long it has been coming to rest, and what it waits for: "h1 is in process (tick 17)".
  int64_t waited_ns() const;
  std::string waits_for() const;
  void go_on();

 private:
  bool has_settled(bool nothing_comes);

  RunState& run_;
  Workers* const workers_;
  bool begun_ = false;
  int64_t begun_at_ns_ = 0, moved_at_ns_ = 0;
  uint64_t moved_ = 0; // the sum of what all segments have done when it was looked at last
};

} // namespace millrace::exec
