// Points at which taps meet the run: one for each output that somebody has tapped, for as long as the run lives.
// Private to runtime/exec.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "exec/state.h"
#include "exec/tap.h"

namespace millrace::exec {

// Its lock is held for an instant by clients, and by the settling thread while it copies. A settling thread never waits
// for it: if it is taken, this tick is not shown. Nor does it wake clients that wait for it: those try again.
class TapPoint {
 public:
  // `handler` is a number of the plan. `by_body`: a device runs the handler's body by itself, which shows its values;
  // the host settles only ticks without one.
  TapPoint(RunState& run, PaceRun& pace, uint32_t handler, bool by_body);

  // ---- the thread that settles
  // Null `value`: the output has none on this tick.
  void show(const mr_tick_info& info, const mr_value* value, const uint8_t* data);
  void show(uint64_t ordinal, const Slot& slot);

  // ---- clients
  void add(Tap& tap);
  void remove(Tap& tap);
  void arm(Tap& tap);
  // False: its handler is another stream's now.
  bool is_of(const std::string& handler);
  // The run goes, and the point stays for its taps.
  void leave_run();

 private:
  std::unique_lock<std::mutex> lock();
  bool is_wanted(Tap& tap, bool is_there) const;
  uint64_t missed() const;

  std::mutex mutex_;
  RunState* run_; // null: it is gone
  PaceRun& pace_;
  const uint32_t handler_;
  const bool by_body_;
  std::vector<Tap*> taps_;
};

// The points of a run. Once made, a point stays, because settling threads know it by its address.
struct TapPoints {
  void leave_run();
  std::mutex mutex;
  std::map<uint32_t, std::shared_ptr<TapPoint>> by_output; // number of the plan
};

// The output of a run that is named "handler.port", or "handler" if it has only one. Throws Failure: MR0301, MR0302,
// MR0308, or MR0319 if it cannot be shown.
std::shared_ptr<Tap> make_tap(RunState& run, const std::string& output, const TapOptions& options);

} // namespace millrace::exec
