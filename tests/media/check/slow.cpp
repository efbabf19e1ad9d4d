// check.slow: hands its pictures on after a time that it does not use the processor for, as a network does.
#include <chrono>
#include <condition_variable>
#include <mutex>

#include "millrace/handler.h"

namespace millrace::check {
namespace {

class Slow final : public Handler {
 public:
  Slow() { blocking(); }

  void process(Tick& tick, Cpu&) {
    std::unique_lock lock(mutex_);
    ended_.wait_for(lock, std::chrono::milliseconds(*ms_), [this] { return interrupted_; });
    out_.forward(tick, video_);
  }
  void interrupt() override {
    {
      const std::lock_guard lock(mutex_);
      interrupted_ = true;
    }
    ended_.notify_all();
  }

 private:
  Input<Image> video_{*this, "video", help("the pictures")};
  Output<Image> out_{*this, "video", millrace::forward(video_)};
  Param<int> ms_{*this, "ms", 100, "how long each takes", at_least(0), unit("ms")};
  std::mutex mutex_;
  std::condition_variable ended_;
  bool interrupted_ = false;
};

MILLRACE_HANDLER(Slow, "check.slow", "Hands pictures on after a time")

} // namespace
} // namespace millrace::check
