// Gives the packets that a live source sent while it was opened, without a burst.
#pragma once

#include <chrono>
#include <cstdint>

namespace millrace::media {

// Packets are read ahead to learn what a live source sends, and more come meanwhile. All of them at once would be more
// than the readers of a live stream keep. So they are given twice as fast as their times say, until one has to be
// waited for. Not thread safe; it knows no clock of its own.
class CatchUp {
 public:
  using Clock = std::chrono::steady_clock;

  void start() {
    is_under_way_ = true;
    last_ns_ = INT64_MIN;
  }
  void stop() { is_under_way_ = false; }
  bool is_under_way() const { return is_under_way_; }
  // No packet is given before.
  Clock::time_point due() const { return due_; }

  // A packet is given that was asked for then. `time_ns`: its time in the stream; INT64_MIN: not known. If times tell
  // no step, it is `usual_step_ns`; 0: not known.
  void gave(Clock::time_point asked, int64_t time_ns, int64_t usual_step_ns);
  // This packet had not been read ahead, and came after this wait.
  void waited(Clock::duration wait) { is_under_way_ = wait < step_ / 4; }

 private:
  bool is_under_way_ = false;
  Clock::time_point due_;
  std::chrono::nanoseconds step_{};
  int64_t last_ns_ = INT64_MIN;
};

} // namespace millrace::media
