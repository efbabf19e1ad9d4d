// What ends a call of FFmpeg that waits: a wish from another thread, or a deadline.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <string>

#include "plugins/media/av.h"

namespace millrace::media {

// ask() may come from any thread, all else from the one that calls FFmpeg.
class Interrupt {
 public:
  enum class Why { none, asked, late };

  Interrupt() = default;
  // Goes by a wish that is kept elsewhere, and outlives this: ask() and clear() have no effect.
  explicit Interrupt(const std::atomic<bool>& asked) : asked_(asked) {}
  Interrupt(const Interrupt&) = delete;
  Interrupt& operator=(const Interrupt&) = delete;

  // Ends what waits now, or the next that would, until clear().
  void ask() { own_.store(true, std::memory_order_relaxed); }
  void clear() { own_.store(false, std::memory_order_relaxed); }
  bool is_asked() const { return asked_.load(std::memory_order_relaxed); }

  // From now on a call may wait so long; 0: for ever.
  void allow(double seconds) {
    timeout_ = std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(seconds));
    begun_ = Clock::now();
  }
  // The same time again, from now.
  void begin() { begun_ = Clock::now(); }
  // Why a call that waits should end now.
  Why why() const {
    if (is_asked()) return Why::asked;
    return timeout_ > Clock::duration::zero() && Clock::now() - begun_ > timeout_ ? Why::late : Why::none;
  }

  // Of a call that failed with this status; "" where it did not end because of us.
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
