// draw.marker: a disc that moves along a path and pulses.
#include <millrace/handler.h>

#include <algorithm>
#include <cmath>

#include "handlers/draw/disc.h"

namespace millrace::handlers {
namespace {

constexpr const char* kMarkerManual = &R"(
Draws a disc onto the picture, in the picture's own memory if the plan allows. The disc moves along
a path and pulses. `path` is `circle` (around the middle), `eight` (a figure of eight as large as
the picture), `line` (from left to right and back) or `still`. One round takes `period`, one pulse
takes `beat`. In a pulse the radius shrinks by the share `pulse` and grows back.

The disc's position depends only on the tick's media time. It is the same in every run, so a disc
that jumps shows lost ticks. The disc's edge is smooth. The disc stays inside the picture if the
picture is large enough, else it is cut off.

    test.pattern ! draw.marker path=eight radius=30 period=3 color="#ff3b30" ! null.sink
)"[1];

MarkerPath path_named(const std::string& name) {
  if (name == "eight") return MarkerPath::eight;
  if (name == "line") return MarkerPath::line;
  return name == "still" ? MarkerPath::still : MarkerPath::circle;
}

class Marker final : public Handler {
 public:
  Marker() {
    stateless();
    no_allocation();
  }

  void configure(const Formats&) override {
    if (!parse_color(*color_))
      throw std::invalid_argument("color '" + *color_ + "' is neither \"#rrggbb\" nor \"#rrggbbaa\"");
  }

  void start() override {
    path_kind_ = path_named(*path_);
    ink_color_ = parse_color(*color_).value_or(Color{});
  }

  void process(Tick& tick, Cpu&) {
    const ImageSpan picture = out_.modify(tick, video_);
    const int64_t now_ns = tick.media_time_ns();
    const double radius = pulsed_radius(radius_, pulse_, phase_at(now_ns, nanoseconds(beat_)));
    const Spot centre = marker_spot(path_kind_, phase_at(now_ns, nanoseconds(period_)), picture.width(),
                                    picture.height(), radius_ + 0.5);
    draw_disc(picture, centre, std::max(radius, kRadiusMin), ink_of(ink_color_, picture.pixel()));
  }

 private:
  static constexpr double kRadiusMin = 0.5; // a smaller disc with a smooth edge has no inside
  static int64_t nanoseconds(double seconds) { return std::max<int64_t>(std::llround(seconds * 1e9), 1); }

  Input<Image> video_{*this, "video", pixels({Pixel::gray8, Pixel::rgb8, Pixel::bgr8, Pixel::rgba8, Pixel::bgra8})};
  Output<Image> out_{*this, "video", in_place(video_)};
  Param<std::string> path_{*this, "path", "circle", "how it moves", choices({"circle", "eight", "line", "still"})};
  Param<double> radius_{*this, "radius", 24, "of the disc", range(kRadiusMin, 4096), unit("px"), live};
  Param<double> period_{*this, "period", 4, "of one round", range(0.001, 86400), unit("s"), live};
  Param<double> pulse_{*this, "pulse", 0.3, "how much of the radius a pulse takes away", range(0, 1), live};
  Param<double> beat_{*this, "beat", 1, "of one pulse", range(0.001, 86400), unit("s"), live};
  Param<std::string> color_{*this, "color", "#ff3b30", "\"#rrggbb\" or \"#rrggbbaa\""};
  MarkerPath path_kind_ = MarkerPath::circle;
  Color ink_color_;
};

} // namespace

const mr_handler_type& draw_marker_type() {
  static const mr_handler_type type =
      detail::Type<Marker>::table("draw.marker", "Draws a disc that moves along a path and pulses", kMarkerManual);
  return type;
}

} // namespace millrace::handlers
