// Drives runs in virtual time, together with other actors on the same time (semantics.md 1.2, 4.10).
//
//   VirtualDriver driver(time);
//   driver.add(run);                              // started, with RunOptions::virtual_time = &time
//   driver.add([&] { return link.move(); });      // whatever joins runs in a test or a simulation
//   driver.drive();
//   const Result result = run.wait();             // does not drive any more
//
// At each instant all runs and actors move in turns, in the order of add(), until none of them can move. Then the time
// jumps to the next event. Everything is on the calling thread, so events have the same order each time.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "device/timeline.h"

namespace millrace::exec {

class Run;

class VirtualDriver {
 public:
  explicit VirtualDriver(device::VirtualTime& time);
  ~VirtualDriver();
  VirtualDriver(const VirtualDriver&) = delete;
  VirtualDriver& operator=(const VirtualDriver&) = delete;

  // A run that was started on this time, of which it may have its own (RunOptions::time). It must outlive the last
  // drive().
  void add(Run& run);
  // Called again and again at each instant: moves all that can be moved at this instant, and returns true if something
  // moved. Its later events it schedules on the time itself.
  void add(std::function<bool()> actor);
  // Returns once every run has finished or was interrupted, whatever actors and events are left then. If nothing can
  // move and no event is scheduled, each run that has not finished fails with no_progress, and its message lists its
  // steps that wait. An actor whose events never end keeps that from being seen.
  void drive();

 private:
  struct Member;
  void settle_instant();
  void record_ends();
  bool all_over() const;
  int64_t next_event_ns() const;
  bool look_at_cuts(bool nothing_comes);
  void give_up();

  device::VirtualTime& time_;
  std::vector<std::unique_ptr<Member>> members_; // in the order of add()
};

} // namespace millrace::exec
