// Ends a waiting call of FFmpeg, on a request from another thread or at a deadline.
#pragma once

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <string>
#include <thread>

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

  // From now on a call may wait this long, and all calls together `in_all_s`; 0: for ever.
  void allow(double seconds, double in_all_s = 0) {
    timeout_ = in_ticks(seconds);
    in_all_ = in_ticks(in_all_s);
    allowed_ = Clock::now();
    begin();
  }
  // Starts the time of a call again, from now.
  void begin() { begun_ = Clock::now(); }
  // A format is opened: bytes that it reads start the time of a call again. The pointer is read at each look and may be
  // null; null ends this.
  void watch(AVFormatContext* const* format) {
    watched_ = format;
    seen_bytes_ = 0;
    if (format) has_ended_ = false;
  }
  // Sleeps until then. False if it is asked to end before.
  bool rest_until(std::chrono::steady_clock::time_point due) const {
    for (;;) {
      if (is_asked()) return false;
      const Clock::duration left = due - Clock::now();
      if (left <= left.zero()) return true;
      std::this_thread::sleep_for(std::min<Clock::duration>(left, kRestSlice));
    }
  }
  // The reason why a waiting call should end now, if any.
  Why why() const {
    if (is_asked()) return Why::asked;
    const Clock::time_point now = Clock::now();
    const bool is_silent = timeout_ > Clock::duration::zero() && now - begun_ > timeout_;
    const bool is_long = in_all_ > Clock::duration::zero() && now - allowed_ > in_all_;
    return is_silent || is_long ? Why::late : Why::none;
  }
  // True if a call of the watched format was ended. Its protocol may be in the middle of a packet, so it is of no use.
  bool has_ended() const { return has_ended_; }
  // The limit with which it was ended.
  int64_t ended_after_ns() const { return ended_after_.count(); }

  // Words for a call that failed with this status; "" if we did not end it.
  std::string words(int status) const {
    const Why reason = why();
    if (reason == Why::late) return "it did not answer in time (`timeout`)";
    return reason == Why::asked || status == AVERROR_EXIT ? "it was interrupted" : "";
  }

  AVIOInterruptCB callback() {
    return {[](void* self) { return static_cast<Interrupt*>(self)->look() ? 1 : 0; }, this};
  }

 private:
  using Clock = std::chrono::steady_clock;
  static constexpr std::chrono::milliseconds kRestSlice{20}; // a request to end is noticed after it at the latest

  static Clock::duration in_ticks(double seconds) {
    return std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(seconds));
  }

  bool look() {
    const AVFormatContext* format = watched_ ? *watched_ : nullptr;
    if (const int64_t bytes = format && format->pb ? format->pb->bytes_read : 0; bytes > seen_bytes_) {
      seen_bytes_ = bytes;
      begun_ = Clock::now();
    }
    if (why() == Why::none) return false;
    if (!has_ended_) ended_after_ = timeout_;
    return has_ended_ = true;
  }

  std::atomic<bool> own_{false};
  const std::atomic<bool>& asked_ = own_;
  Clock::duration timeout_{}, in_all_{};
  Clock::time_point begun_ = Clock::now(), allowed_ = begun_;
  AVFormatContext* const* watched_ = nullptr;
  int64_t seen_bytes_ = 0;
  bool has_ended_ = false;
  std::chrono::nanoseconds ended_after_{};
};

} // namespace millrace::media
