// view.window: shows pictures on the screen.
#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <stdexcept>
#include <string>

#include "millrace/handler.h"
#include "plugins/opencv/display.h"
#include "plugins/opencv/pacer.h"
#include "plugins/opencv/picture.h"
#include "plugins/opencv/screen.h"

namespace millrace::opencv {
namespace {

constexpr const char* kViewWindowManual = &R"(
Shows pictures in a window of the size of the first one.

With `pace` each picture is shown at its media time, counted from the first one, so that a file
plays at its own speed and the pipeline works no faster than that. A late picture is shown at once;
after a stall the film goes on from where it is and does not rush. Under a realtime clock pictures
come at their times already, and nothing waits twice. With `pace=false` the window shows the newest
picture and never slows the pipeline: pictures that come faster than the screen shows them are
passed over.

Closing the window ends the run. With `closed=fail` it ends with an error that says so, with
`closed=discard` it goes on without the window. Without a display (an X server; Wayland has one
inside) the run is refused. With `without_display=discard` it says so once and the pictures are
discarded as fast as they come. One thread of their own shows all windows of a process.

    video.file path=media/vtest.avi ! view.window title=street without_display=discard
)"[1];

constexpr int64_t kLookNs = 50'000'000;          // a window that is closed in a long gap is noticed after this at most
constexpr int64_t kWaitMaxNs = int64_t{1} << 60; // 36 years: a damaged file's time must not overflow

class ViewWindow final : public Handler {
 public:
  ViewWindow() {
    blocking();        // waits until a picture is due
    cost_hint_us(200); // a copy of 768 × 576
  }

  void start() override {
    discards_ = false;
    reset();
    const std::string missing = why_no_display();
    if (missing.empty()) {
      window_ = Screen::instance().open(title_->empty() ? "millrace" : *title_);
      return;
    }
    if (*without_display_ == "fail")
      throw std::runtime_error(missing +
                               "; `without_display: discard` would run without a window, and video.writer in its "
                               "place writes a film\ntry: without_display=discard");
    log(MR_LOG_WARNING, missing + ": pictures are discarded");
    discards_ = true;
  }

  void process(Tick& tick, Cpu&) {
    if (discards_) return;
    if (*pace_) wait_for(pacer_.wait_ns(tick.media_time_ns(), tick.epoch(), now_ns()));
    if (Screen::instance().is_closed(*window_)) return on_closed(tick);
    Screen::instance().show(*window_, mat_of(video_(tick)));
  }

  // Makes sure that the last picture of even the shortest stream is seen.
  void drain() override {
    if (window_) Screen::instance().wait_until_shown(*window_);
  }
  void stop() override {
    if (window_) Screen::instance().close(*window_);
    window_.reset();
  }

  void reset() override {
    pacer_.reset();
    const std::lock_guard lock(mutex_);
    interrupted_ = false;
  }
  void interrupt() override {
    {
      const std::lock_guard lock(mutex_);
      interrupted_ = true;
    }
    changed_.notify_all();
  }

 private:
  // Returns early if it is interrupted or the window is closed.
  void wait_for(int64_t wait_ns) {
    std::unique_lock lock(mutex_);
    const int64_t end_ns = steady_ns() + std::min(wait_ns, kWaitMaxNs);
    for (int64_t left = wait_ns; left > 0; left = end_ns - steady_ns()) {
      const std::chrono::nanoseconds slice(std::min(left, kLookNs));
      if (changed_.wait_for(lock, slice, [&] { return interrupted_; })) break;
      if (Screen::instance().is_closed(*window_)) break;
    }
    interrupted_ = false;
  }
  static int64_t steady_ns() {
    return std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now().time_since_epoch())
        .count();
  }

  void on_closed(Tick& tick) {
    if (*closed_ == "end") return tick.end();
    if (*closed_ == "fail")
      throw std::runtime_error("the window was closed (`closed: discard` would go on without it)");
    log(MR_LOG_INFO, "the window was closed: pictures are discarded");
    discards_ = true;
  }

  Input<Image> video_{*this, "video", pixels({Pixel::gray8, Pixel::bgr8}), newest, square_pixels, help("the pictures")};
  Param<std::string> title_{*this, "title", "", "the window's title; empty: millrace"};
  Param<bool> pace_{*this, "pace", true, "shows each picture at its media time"};
  Param<std::string> closed_{*this, "closed", "end", "what follows when a person closes the window",
                             choices({"end", "fail", "discard"})};
  Param<std::string> without_display_{*this, "without_display", "fail", "what happens if there is no display",
                                      choices({"fail", "discard"})};

  std::shared_ptr<Screen::Window> window_;
  bool discards_ = false;
  Pacer pacer_;
  std::mutex mutex_; // guards interrupted_
  std::condition_variable changed_;
  bool interrupted_ = false;
};

MILLRACE_HANDLER(ViewWindow, "view.window", "Shows pictures in a window", kViewWindowManual)

} // namespace
} // namespace millrace::opencv
