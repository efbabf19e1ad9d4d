// view.window: pictures on the screen.
#include <memory>
#include <stdexcept>
#include <string>

#include "millrace/handler.h"
#include "plugins/opencv/display.h"
#include "plugins/opencv/picture.h"
#include "plugins/opencv/screen.h"

namespace millrace::opencv {
namespace {

constexpr const char* kManual = &R"(
Shows pictures in a window of the size of the first one.

The window shows the newest picture and never slows the pipeline: pictures that come faster than the
screen shows them are passed over. A file is shown at its own speed with `--clock realtime`, or
`clock: { mode: realtime, rate: 25 }` in the pipeline.

Closing the window ends the run; with `closed=fail` it ends with an error that says so, with
`closed=discard` it goes on without the window. Without a display (an X server; Wayland has one
inside) the run is refused; with `without_display=discard` it says so once and the pictures are
discarded. All windows of a process are shown by one thread of their own.

    video.file path=media/vtest.avi ! view.window title=street without_display=discard
)"[1];

class ViewWindow final : public Handler {
 public:
  ViewWindow() { cost_hint_us(200); } // a copy of 768 × 576

  void start() override {
    discards_ = false;
    const std::string missing = why_no_display();
    if (missing.empty()) {
      window_ = Screen::instance().open(title_->empty() ? "millrace" : *title_);
      return;
    }
    if (*without_display_ == "fail")
      throw std::runtime_error(missing + "; `without_display: discard` would run without a window");
    log(MR_LOG_WARNING, missing + ": pictures are discarded");
    discards_ = true;
  }

  void process(Tick& tick, Cpu&) {
    if (discards_) return;
    if (Screen::instance().is_closed(*window_)) return on_closed(tick);
    Screen::instance().show(*window_, mat_of(video_(tick)));
  }

  // The last picture is seen, however short the stream.
  void drain() override {
    if (window_) Screen::instance().wait_until_shown(*window_);
  }
  void stop() override {
    if (window_) Screen::instance().close(*window_);
    window_.reset();
  }

 private:
  void on_closed(Tick& tick) {
    if (*closed_ == "end") return tick.end();
    if (*closed_ == "fail")
      throw std::runtime_error("the window was closed (`closed: discard` would go on without it)");
    log(MR_LOG_INFO, "the window was closed: pictures are discarded");
    discards_ = true;
  }

  Input<Image> video_{*this, "video", pixels({Pixel::gray8, Pixel::bgr8}), help("the pictures")};
  Param<std::string> title_{*this, "title", "", "the window's title; empty: millrace"};
  Param<std::string> closed_{*this, "closed", "end", "what follows when a person closes the window",
                             choices({"end", "fail", "discard"})};
  Param<std::string> without_display_{*this, "without_display", "fail", "what happens where there is no display",
                                      choices({"fail", "discard"})};

  std::shared_ptr<Screen::Window> window_;
  bool discards_ = false;
};

MILLRACE_HANDLER(ViewWindow, "view.window", "Shows pictures in a window", kManual)

} // namespace
} // namespace millrace::opencv
