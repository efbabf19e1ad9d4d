// Log lines about a run, and those that its handlers write (observe/log.h). It does so once, or when something changes:
// nothing here is called on every tick, except for what handlers say themselves.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace millrace {
struct Error;
struct LogSource;
struct Result;
} // namespace millrace
namespace millrace::plugin {
struct Message;
}

namespace millrace::exec {

class RunState;
struct FailureRecord;
struct PaceRun;
struct RegionRun;
struct SegmentRun;
struct HandlerRun;

// The segment that this thread has claimed and is carrying forward; null: none. If a handler speaks, this tells on
// which tick it was called, and nothing has to be written on each call.
class Claim {
 public:
  explicit Claim(const SegmentRun& segment) : before_(claimed_) { claimed_ = &segment; }
  ~Claim() { claimed_ = before_; }
  Claim(const Claim&) = delete;
  Claim& operator=(const Claim&) = delete;
  static const SegmentRun* here() { return claimed_; }

 private:
  const SegmentRun* const before_;
  static inline thread_local const SegmentRun* claimed_ = nullptr;
};

// Sends what the handler says to the log, and also what it said before, when it was probed.
void lend_log(HandlerRun& step);
// True if a terminal shows a message that a handler gave while the plan was made.
bool is_on_terminal(const RunState& run, const plugin::Message& said);

void log_clock_began(const PaceRun& pace);
void log_clock_ended(const PaceRun& pace);
void log_region(const RegionRun& region); // once it is recorded
void log_second_cut(const RunState& run);
void log_not_cut(const RunState& run, const std::string& waits_for);
// The handler has failed, and will be started anew.
void log_restart(const HandlerRun& step);
// A stream has ended, or is interrupted, by a failure of its own, and the run goes on. The terminal shows it too.
void log_stream_failed(const RunState& run, const FailureRecord& failure);
// It has not begun yet. The terminal shows it too.
void log_stream_absent(const RunState& run, uint32_t clock, const Error& error);
void log_stream_down(const PaceRun& pace, int64_t wait_ns); // it begins anew after this time
void log_stream_began(const PaceRun& pace);
void log_stream_left(const PaceRun& pace);
// It came from another node, and no handler here has such a live parameter. The terminal shows it too.
void log_change_ignored(const RunState& run, const std::string& what);
// The group's budget is less than one of its items takes by itself.
void log_budget(const RunState& run, const std::string& group, int64_t budget_ns, int64_t least_ns);
void log_over(const RunState& run, const Result& result);

// Tells when values begin to be dropped on an edge or ticks of a clock begin to be late, and when that is over. It
// looks at counters that are counted anyway, so it sees a beginning some time later. For one thread.
class LossWatch {
 public:
  explicit LossWatch(RunState& run) : run_(run) {}
  void look();
  void end(); // when the run is over

 private:
  // One counter: what is lost, and where.
  struct Loss {
    uint64_t count = 0, before = 0; // now; when it began
    int64_t grew_ns = 0;
    bool goes_on = false;
  };
  // Says "`what` are `lost`" when that begins, and how many were lost when it is over.
  void mind(Loss& loss, uint64_t count, int64_t now, const LogSource& source, const std::string& what,
            const std::string& lost);
  void look_at(bool at_end);

  RunState& run_;
  std::vector<Loss> losses_; // in the order of their counters
};

} // namespace millrace::exec
