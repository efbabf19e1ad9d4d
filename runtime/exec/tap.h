// A tap shows what an output of a running pipeline holds, now and then, to somebody outside.
//
// A client arms a tap when it wants a sample. The thread that settles the output sees that, copies what is to be shown
// before anybody reads or writes over the value, and goes on. So the client sets the rate, the run waits for nobody,
// and a tap that is not armed costs nothing. Neither plan nor blocks know of taps
// (docs/decisions/0115).
//
//   idle ── arm() ──► armed ── a tick's value is settled ──► taken ── take() ──► idle
//
// A tap that is armed leaves out a tick if its clock has missed a beat since the tap looked last, and a tick without a
// value. Once it has been armed for `patience_ns` it takes what comes: a clock that is always late is shown all the
// same, and an output that stays silent is shown to be silent.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "exec/tap_sample.h"

namespace millrace::exec {

class TapPoint;

struct TapOptions {
  uint32_t width = 480; // the longer side of a picture in pixels, kTapWidthMin to kTapWidthMax
  // By the run's time. Four samples a second of what is always late cost it next to nothing.
  int64_t patience_ns = 250'000'000;
  // Called when a sample was taken, by the thread that settles, under a lock: it wakes another thread, and calls
  // nothing of the tap. It may be called until the tap is destroyed.
  std::function<void()> on_taken = nullptr;
};

// One client's view of one output. One thread at a time calls it, which is none of the run's. It may outlive the run.
class Tap {
 public:
  // `handler`: its name now. `format`: the output's. All memory is allocated here.
  Tap(std::shared_ptr<TapPoint> point, std::string handler, const mr_format& format, const TapOptions& options);
  ~Tap();
  Tap(const Tap&) = delete;
  Tap& operator=(const Tap&) = delete;

  // A sample is wanted. Nothing happens if it is armed already, if a sample is there, and once the run is gone or the
  // output is another stream's.
  void arm();
  // True once a sample was taken.
  bool has_taken() const { return state_.load(std::memory_order_acquire) == State::taken; }
  // Nothing: there is none, or it is of another stream, which has come in place of the tap's.
  std::optional<TapSample> take();

 private:
  friend class TapPoint;
  enum class State : uint8_t { idle, armed, taken };

  const std::shared_ptr<TapPoint> point_;
  const std::string handler_;
  const TapOptions options_;
  std::atomic<State> state_{State::idle}; // under the point's lock, but from taken to idle
  // The settling thread has these while the tap is armed, the client otherwise.
  int64_t armed_at_ns_ = 0;
  uint64_t missed_seen_ = 0; // beats that its clock had missed when the tap looked last
  uint64_t tick_ = 0;
  int64_t media_ns_ = 0;
  bool is_empty_ = false;
  ValuePick pick_;
};

} // namespace millrace::exec
