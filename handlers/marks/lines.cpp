// marks.lines: makes marks of links between points.
#include <millrace/handler.h>
#include <millrace/payload/marks.h>

#include <algorithm>
#include <cmath>
#include <string>

#include "handlers/gpu/mark_kernels.h"
#include "handlers/marks/color_params.h"
#include "handlers/marks/most_marks.h"

namespace millrace::handlers {
namespace {

constexpr const char* kMarksLinesManual = &R"(
Makes a line of each link between two points, for draw.marks. A line has `width` pixels. Its colour
runs from that of the one point to that of the other, by the ids of their tracks, or is `color`. Its
opacity falls with the life of the link, and with its length if `length_max` says at which length
nothing is left. A link without length, or with one end that is not finite, is a dot. Without links
or points the list is empty.

With `shape: curve` lines are quadratic curves. They lead from the lower id to the higher. The
control point lies beside the middle by `offset` plus `overshoot` times the line's length: below it
if the line leads to the right.

    marks.lines name=m ! null.sink ; test.points name=p ! m.points ; p. ! points.links ! m.links
)"[1];

class MarksLines final : public Handler {
 public:
  MarksLines() {
    stateless();
    capturable();
    no_allocation();
  }

  void configure(const Formats& formats) override {
    links_max_ = links_.connected() ? formats.in(links_).record_count_max : 0;
    points_max_ = points_.connected() ? formats.in(points_).record_count_max : 0;
    marks_max_ = checked_most_marks(links_max_, 1);
    formats.out(out_).record_count_max = marks_max_;
  }

  void start() override {
    color_style_ = color_.style();
    curved_ = *shape_ == "curve";
  }

  void process(Tick& tick, Cpu&) {
    const bool has_both = links_.present(tick) && points_.present(tick);
    const std::span<const Link> links = has_both ? links_(tick) : std::span<const Link>();
    const std::span<const Point> points = has_both ? points_(tick) : std::span<const Point>();
    const draw::LineStyle style = style_now();
    const std::span<Mark> marks = out_.allocate(tick, links.size());
    for (size_t l = 0; l < links.size(); ++l)
      draw::make_line_mark(links[l], points.data(), points.size(), style, marks[l]);
  }

  void process(Tick& tick, Cuda& cuda) {
    Mark* const marks = out_.allocate(tick, marks_max_).data();
    gpu::check(gpu::library_of(cuda).marks->lines(cuda.stream(), gpu::on_device<Link>(links_.raw(tick), links_max_),
                                                  gpu::on_device<Point>(points_.raw(tick), points_max_), style_now(),
                                                  {marks, Cuda::count_of(out_.raw(tick))}));
  }

 private:
  draw::LineStyle style_now() const {
    const auto offset = static_cast<float>(*offset_ + *overshoot_);
    draw::LineStyle style{static_cast<float>(*width_), static_cast<float>(*length_max_), curved_, offset, color_style_};
    style.color.opacity = static_cast<float>(*color_.opacity);
    return style;
  }

  Input<Records<Link>> links_{*this, "links", optional, idle_without, help("between the points")};
  Input<Records<Point>> points_{*this, "points", optional, idle_without, help("in pixels of the picture")};
  Output<Records<Mark>> out_{*this, "marks"};
  Param<double> width_{*this, "width", 1, "of a line", range(0, 1000), unit("px"), live};
  Param<double> length_max_{*this,      "length_max", 0, "of a line that has faded; 0: none fades", range(0, 100000),
                            unit("px"), live};
  Param<std::string> shape_{*this, "shape", "straight", "of a line", choices({"straight", "curve"})};
  Param<double> offset_{*this, "offset", 0.3, "of a curve from the middle, by its length", range(-4, 4), live};
  Param<double> overshoot_{*this, "overshoot", 0, "more of it", range(-4, 4), live};
  MarkColorParams color_{*this};
  uint64_t links_max_ = 0, points_max_ = 0, marks_max_ = 1;
  bool curved_ = false;
  draw::MarkColor color_style_{}; // as the run began; live parameters may have changed
};

} // namespace

const mr_handler_type& marks_lines_type() {
  static const mr_handler_type type =
      detail::Type<MarksLines>::table("marks.lines", "Makes lines of links, for draw.marks", kMarksLinesManual);
  return type;
}

} // namespace millrace::handlers
