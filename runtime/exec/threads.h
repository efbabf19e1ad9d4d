// The threads of a run: workers that carry segments forward, and a monitor that watches them. Private to runtime/exec.
#pragma once

#include <array>
#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "exec/run_log.h"
#include "exec/second_cut.h"
#include "observe/trace.h"

namespace millrace::exec {

class RunState;
struct PaceRun;
struct SegmentRun;
struct HandlerRun;
struct ResolveRun;

// Workers look for segments that can go on: their own first, then those whose home is busy elsewhere. With nothing to
// do they spin for a while, then each sleeps on a bell of its own until something moves or a beat is due that concerns
// it (cluster.h).
class Workers {
 public:
  explicit Workers(RunState& run);
  ~Workers();
  Workers(const Workers&) = delete;
  Workers& operator=(const Workers&) = delete;
  void start();
  void join();
  // Makes every worker rest between two segments. False if one does not come out of its call for a while. go_on() must
  // follow in both cases.
  bool rest();
  void go_on();
  // Decides which segments each worker looks at. Called before the start, or while the workers rest.
  void share_out();

 private:
  struct Worker {
    uint32_t index = 0;
    std::vector<SegmentRun*> own, others;
    std::vector<const PaceRun*> paces;     // those of its own segments
    std::vector<const ResolveRun*> aligns; // in its own segments, if they decide by time
    bool has_beats = false;                // some clock of those that it looks at goes by time
    uint32_t looks = 0;
    // The clock is read once a look, if it matters. `early` is true if heads have something to do before their time:
    // the run ends, or changes are to be taken.
    int64_t now_ns = INT64_MAX;
    bool early = false;
    bool was_idle = true; // its last look found nothing
    // Used with devices: `lately_ns` is how long it lately had nothing to do (a ring), and `idle_ns` is what it expects
    // from that. It spins through a wait that is little longer than it spins anyway. Through a longer one it sleeps in
    // slices and looks between them, because being woken takes longer.
    std::array<int64_t, 8> lately_ns{};
    size_t idles = 0;
    int64_t idle_ns = 0, idle_since_ns = 0;
    int64_t looked_ns = 0; // while it is idle: not long before its latest look
    TraceRing* trace = nullptr;
    std::thread thread;
  };

  void loop(Worker& worker);
  bool look(Worker& worker);
  void read_clock(Worker& worker) const;
  bool try_segment(Worker& worker, SegmentRun& segment);
  void record_times(Worker& worker) const;
  void call_help(const Worker& worker, const SegmentRun& begun);
  void sleep(Worker& worker);
  bool sleep_once(Worker& worker);
  int64_t slice_ns(const Worker& worker, int64_t now) const;
  bool expects(const Worker& worker) const;
  void warm_up(Worker& worker, int64_t due_ns);
  bool force_devices();
  bool needs_help(const SegmentRun& segment);
  int64_t next_due_ns(const Worker& worker);
  int64_t spins_for_ns(const Worker& worker) const;
  static void expect(Worker& worker, int64_t idle_ns);
  void note_idle(Worker& worker) const;
  void rest_here();
  void stand_by();

  RunState& run_;
  const bool crowded_; // more workers than processors: one that finds nothing lets others run (docs/decisions/0043)
  int64_t expect_least_ns_; // a worker spins through waits that it expects to be shorter
  std::vector<std::unique_ptr<Worker>> workers_;
  std::atomic<bool> resting_{false};
  std::mutex rest_mutex_;
  std::condition_variable rest_changed_;
  size_t running_ = 0, at_rest_ = 0; // workers, under rest_mutex_
};

// Names handlers that exceed their budget, reports what waits for what when nothing moves, tells the progress, and has
// the segments cut once more if their first cut was guessed.
class Monitor {
 public:
  Monitor(RunState& run, Workers& workers);
  ~Monitor();
  void start();
  void stop();

 private:
  // How far the monitor has gone with a call that does not return.
  enum class Stage { fine, named, interrupted, given_up };
  // The last call that a segment, a reader or a device was seen in.
  struct Watch {
    const HandlerRun* inside = nullptr;
    uint64_t progress = 0; // the segment's; for a call outside a segment: its tick
    uint64_t calls = 0;    // the step's; it may be a source that is asked again and again
    int64_t since_ns = 0;
    bool moves = false; // it is in that call now, and not in one that only asks again
    Stage stage = Stage::fine;
    int64_t interrupted_ns = 0;
  };
  void loop();
  void watch_calls(int64_t now);
  void watch_call(Watch& watch, const HandlerRun* inside, uint64_t progress, int64_t now);
  void watch_budget(Watch& watch, int64_t now);
  void give_up(const Watch& watch, int64_t now);
  std::string what_follows(const HandlerRun& inside) const;
  uint64_t tick_of(const Watch& watch) const;
  void tell(const std::string& line) const;
  void watch_progress(int64_t now);
  void watch_stopping(int64_t now);
  void report_waiting(int64_t now);
  void report_waiting_elsewhere();
  bool awaits_home() const;
  void watch_movement(int64_t now);
  void give_up_hung_device(int64_t now);
  void report_progress(int64_t now);

  RunState& run_;
  SecondCut second_cut_;
  LossWatch loss_watch_;
  std::vector<Watch> watches_;
  uint64_t progressed_ = 0; // sum of all segments' progress
  int64_t progressed_at_ns_ = 0, moved_at_ns_ = 0, begin_ns_ = 0;
  int64_t stopping_since_ns_ = 0, interrupted_all_ns_ = 0;
  bool idle_reported_ = false;
  std::vector<std::string> waiting_told_, elsewhere_told_; // to other nodes; of other nodes, in this idle report
  std::mutex mutex_;
  std::condition_variable wake_;
  bool stopping_ = false;
  std::thread thread_;
};

// "boxes waits for video (tick 17)", a line each.
std::vector<std::string> waiting_lines(const RunState& run);

} // namespace millrace::exec
