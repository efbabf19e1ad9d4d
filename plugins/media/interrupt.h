// Ends a waiting call of FFmpeg, on a request from another thread or at a deadline.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <string>

#include "plugins/media/av.h"

namespace millrace::media {

// ask() may be called from any thread, all other functions from the thread that calls FFmpeg.
class Interrupt {
 public:
  enum class Why { none, asked, late };

  Interrupt() = default;
  // Uses a request flag that is kept elsewhere and outlives this object. ask() and clear() then have no effect.
  explicit Interrupt(const std::atomic<bool>& asked) : asked_(asked) {}
  Interrupt(const Interrupt&) = delete;
  Interrupt& operator=(const Interrupt&) = delete;

  // Ends the current wait and all later ones, until clear().
  void ask() { own_.store(true, std::memory_order_relaxed); }
  void clear() { own_.store(false, std::memory_order_relaxed); }
  bool is_asked() const { return asked_.load(std::memory_order_relaxed); }

  // From now on a call may wait this long; 0: for ever.
  void allow(double seconds) {
    timeout_ = std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(seconds));
    begun_ = Clock::now();
  }
  // Starts the same time again, from now.
  void begin() { begun_ = Clock::now(); }
  // The reason why a waiting call should end now, if any.
  Why why() const {
    if (is_asked()) return Why::asked;
    return timeout_ > Clock::duration::zero() && Clock::now() - begun_ > timeout_ ? Why::late : Why::none;
  }

  // Words for a call that failed with this status; "" if we did not end it.
  std::string words(int status) const {
    const Why reason = why();
    if (reason == Why::late) return "it did not answer in time (`timeout`)";
    return reason == Why::asked || status == AVERROR_EXIT ? "it was interrupted" : "";
  }

  AVIOInterruptCB callback() {
    return {[](void* self) { return static_cast<const Interrupt*>(self)->why() == Why::none ? 0 : 1; }, this};
  }

 private:
  using Clock = std::chrono::steady_clock;
  std::atomic<bool> own_{false};
  const std::atomic<bool>& asked_ = own_;
  Clock::duration timeout_{};
  Clock::time_point begun_ = Clock::now();
};

} // namespace millrace::media
