// view.events: what a person does in a browser, as records.
#include <cmath>
#include <cstdint>
#include <string>

#include "millrace/handler.h"
#include "millrace/payload/marks.h"
#include "plugins/viewer/viewer.h"

namespace millrace::viewer {
namespace {

constexpr const char* kViewEventsManual = &R"(
Gives what a person does in the browser that has control of a view.remote: `events` are pointer,
wheel and keys; `pointer` is where the pointer is, as a point for marks.dots; `camera`, `look` and
`dims` are what was chosen with them. `camera`, `look` and `dims` come on the first tick and when
they change, so other handlers read them with `policy: latest`. A camera that changes has `moving`
set, and comes again without it once it has been at rest for a fifth of a second.

On a clock with other sources it gives what has happened by then, and no tick waits for it. On a
clock of its own it makes a tick when something happens, at most `fps` times a second.

    test.pattern fps=30 ! view.remote ; view.events name=hand ; hand.events ! record.to_json path=-
)"[1];

constexpr size_t kOne = 1;

class ViewEvents final : public Handler {
 public:
  void probe(Facts& facts) override {
    facts.follows();
    facts.live();
    facts.rate(std::llround(*fps_ * 1000), 1000);
  }

  void start() override {
    viewer_ = &share<Viewer>(*name_);
    reset();
  }
  void stop() override { viewer_ = nullptr; }
  void reset() override {
    has_given_ = false;
    begun_ns_ = moved_ns_ = -1;
  }

  void process(Tick& tick, Cpu&) {
    const int64_t now = now_ns();
    if (begun_ns_ < 0) begun_ns_ = now;
    const auto period_ns = static_cast<int64_t>(1e9 / *fps_);
    if (has_given_ && now - given_ns_ < period_ns * 3 / 4) return tick.not_yet(); // beats come a little early at times
    const int64_t media_ns = tick.follows() ? tick.media_time_ns() : now - begun_ns_;
    Happened happened = viewer_->take(media_ns, !has_given_);
    say_whether_it_moves(happened.camera, now);
    if (!happened.is_anything()) return tick.not_yet();
    if (!happened.events.empty()) give(tick, events_, happened.events, media_ns);
    if (!happened.camera.empty()) give(tick, camera_, happened.camera, media_ns);
    if (!happened.look.empty()) give(tick, look_, happened.look, media_ns);
    if (!happened.dims.empty()) give(tick, dims_, happened.dims, media_ns);
    if (happened.pointer_changed) {
      std::vector<Point> pointer;
      if (happened.has_pointer) pointer.push_back({happened.pointer[0], happened.pointer[1]});
      give(tick, pointer_, pointer, media_ns);
    }
    has_given_ = true;
    given_ns_ = now;
  }

 private:
  // A camera that changes is on its way, and comes once more when it has been at rest for a while.
  void say_whether_it_moves(std::vector<ViewCamera>& camera, int64_t now) {
    constexpr int64_t kRestNs = 200'000'000;
    if (!camera.empty() && has_given_) {
      camera_was_ = camera.front();
      camera.front().moving = 1;
      moved_ns_ = now;
    } else if (moved_ns_ >= 0 && now - moved_ns_ >= kRestNs) {
      camera = {camera_was_};
      moved_ns_ = -1;
    }
  }
  template <class Record>
  static void give(Tick& tick, const Output<Records<Record>>& output, const std::vector<Record>& records,
                   int64_t media_ns) {
    if (!output.connected()) return;
    const auto to = output.allocate(tick, records.size());
    std::copy(records.begin(), records.end(), to.begin());
    output.header(tick).pts_ns = media_ns;
  }

  Output<Records<ViewEvent>> events_{*this, "events", count_max(kEventsMax), help("pointer, wheel and keys, in order")};
  Output<Records<Point>> pointer_{*this, "pointer", count_max(kOne), help("where the pointer is; none: elsewhere")};
  Output<Records<ViewCamera>> camera_{*this, "camera", count_max(kOne), help("from where it is looked at")};
  Output<Records<ViewLook>> look_{*this, "look", count_max(kOne), help("how values become colours")};
  Output<Records<ViewDims>> dims_{*this, "dims", count_max(kOne), help("which slice is shown")};
  Param<std::string> name_{*this, "view", "main", "that of a view.remote", joins("viewer")};
  Param<double> fps_{*this, "fps", 60.0, "values a second at most", range(0.1, 1000), unit("1/s")};

  Viewer* viewer_ = nullptr; // from start to stop
  bool has_given_ = false;
  int64_t given_ns_ = 0, begun_ns_ = -1;
  ViewCamera camera_was_{};
  int64_t moved_ns_ = -1; // the camera's last change, if it was not said yet that it is at rest
};

MILLRACE_HANDLER(ViewEvents, "view.events", "Gives what a person does in a browser", kViewEventsManual)

} // namespace
} // namespace millrace::viewer
