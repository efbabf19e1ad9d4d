// The time that all nodes of a run go by: 0 is the start that the coordinator set, on its clock. Each node follows that
// clock by the offset that its link measures.
//
//   run time
//     ^              / slews by at most 500 ppm until it is right again: it never goes back
//   0 |------------/----> this machine's clock
//  -1s|___________/   stands still until the start is known
//
// It knows by how much it may be wrong: what it has not slewed yet, the error of the offset when that was measured, and
// how far the two clocks may have drifted apart since. It slews faster than they drift, so it catches up.
//
// One thread sets it, and any may read it.
#pragma once

#include <atomic>
#include <cstdint>

#include "device/timeline.h"

namespace millrace::node {

class RunTime final : public device::Timeline {
 public:
  // `machine` goes on with real time and outlives this.
  explicit RunTime(const device::Timeline& machine) : machine_(machine) {}

  int64_t now_ns() const override;

  // The coordinator's clock is ahead of this machine's by `ns`, right to `error_ns`. error_ns 0: they are one clock.
  struct Offset {
    int64_t ns = 0, error_ns = 0;
  };
  // How far this may be from the coordinator's run time now; 0 before begin().
  int64_t error_ns() const override;

  // Time 0 is, or was, at this time of the coordinator's clock.
  void begin(int64_t zero_ns, const Offset& offset);
  // The offset is measured again. Before begin() this does nothing.
  void follow(const Offset& offset);

  static constexpr int64_t kBeforeStartNs = -1'000'000'000;
  static constexpr int64_t kSlewPpm = 500;

 private:
  // Run time = the machine's time + offset_ns + what it has slewed since from_ns. It slews until until_ns. error_ns:
  // that of the offset, at from_ns.
  struct Line {
    int64_t from_ns = 0, until_ns = 0, offset_ns = 0, error_ns = 0;
    bool faster = false;
    int64_t offset_at(int64_t machine_ns) const;
    int64_t error_at(int64_t machine_ns) const;
  };
  Line line() const; // torn if it is changed meanwhile
  // A line that did not change while it was read, and the machine's time then.
  struct Reading {
    Line line;
    int64_t machine_ns;
  };
  Reading read() const;
  // The line changes between these two calls, and readers wait meanwhile. The writer and the readers read the machine's
  // time while no change can come between: by a line that has ended the time would go back.
  void begin_change();
  void end_change(const Line& line);

  const device::Timeline& machine_;
  int64_t zero_ns_ = 0; // on the coordinator's clock
  std::atomic<bool> is_begun_{false};
  // The line; a reader reads again if `changes_` was odd or has changed meanwhile.
  std::atomic<uint64_t> changes_{0};
  std::atomic<int64_t> from_ns_{0}, until_ns_{0}, offset_ns_{0}, error_ns_{0};
  std::atomic<bool> faster_{false};
};

} // namespace millrace::node
