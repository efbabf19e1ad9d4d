// Brings a run to a standstill for changes that no tick in motion may meet, and lets it go on afterwards (semantics.md
// 2.9). Private to runtime/exec.
//
//   going ── begin() ──► coming to rest ── is_at_rest() ──► at rest ── go_on() ──► going
//              │                                              ▲
//              no clock admits a tick                         nothing moves, and the workers rest
//
// At rest each segment stands between two of its steps. Mostly that is between two ticks, but it is in the middle of
// one if the next step waits for something that only a later tick brings (another clock, a result that is owed, room in
// a queue). Nothing is drained. Code that runs at rest has to look where each step stands.
//
// A run has one standstill at a time. Only the monitor calls these functions; in virtual time the only thread does.
#pragma once

#include <cstdint>
#include <string>

namespace millrace::exec {

class RunState;
class Workers;

class Standstill {
 public:
  // `workers`: null in virtual time, which has no worker threads.
  Standstill(RunState& run, Workers* workers) : run_(run), workers_(workers) {}

  void begin();
  bool has_begun() const { return begun_; }
  // Called now and then. True once the run is at rest, until go_on(). `nothing_comes`: in virtual time no event is left
  // that could move anything.
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
  uint64_t moved_ = 0; // the sum of all segments' progress at the last look
};

} // namespace millrace::exec
