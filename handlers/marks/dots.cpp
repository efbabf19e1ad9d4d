// marks.dots: makes marks of points.
#include <millrace/handler.h>
#include <millrace/payload/marks.h>

#include <algorithm>
#include <string>

#include "handlers/gpu/mark_kernels.h"
#include "handlers/marks/color_params.h"
#include "handlers/marks/most_marks.h"

namespace millrace::handlers {
namespace {

constexpr const char* kMarksDotsManual = &R"(
Makes a dot of each point, for draw.marks: a `disc`, a `ring`, a `square`, a `diamond`, a `plus`
or a `cross`. Its radius is `radius`, or with 0 the point's own; the sides of a square are twice
as long. Ring, plus and cross have lines of `width` pixels. The id of the track chooses the
colour, or else the class. Without points the list is empty.

    test.pattern ! draw.marks name=d ; test.points ! marks.dots shape=ring ! d.marks
)"[1];

draw::DotShape shape_named(const std::string& name) {
  if (name == "ring") return draw::DotShape::ring;
  if (name == "square") return draw::DotShape::square;
  if (name == "diamond") return draw::DotShape::diamond;
  if (name == "plus") return draw::DotShape::plus;
  return name == "cross" ? draw::DotShape::cross : draw::DotShape::disc;
}

class MarksDots final : public Handler {
 public:
  MarksDots() {
    stateless();
    no_allocation();
    capturable();
  }

  void configure(const Formats& formats) override {
    points_max_ = points_.connected() ? formats.in(points_).record_count_max : 0;
    marks_max_ = checked_most_marks(points_max_, draw::marks_of_dot(style()));
    formats.out(out_).record_count_max = marks_max_;
  }

  void start() override { style_ = style(); }

  void process(Tick& tick, Cpu&) {
    const draw::DotStyle style = style_now();
    const std::span<const Point> points = points_.present(tick) ? points_(tick) : std::span<const Point>();
    const uint32_t each = draw::marks_of_dot(style);
    const std::span<Mark> marks = out_.allocate(tick, points.size() * each);
    for (uint32_t p = 0; p < points.size(); ++p)
      draw::make_dot_marks(points[p], p, style, marks.data() + size_t{p} * each);
  }

  void process(Tick& tick, Cuda& cuda) {
    Mark* const marks = out_.allocate(tick, marks_max_).data();
    gpu::check(gpu::library_of(cuda).marks->dots(cuda.stream(), gpu::on_device<Point>(points_.raw(tick), points_max_),
                                                 style_now(), {marks, Cuda::count_of(out_.raw(tick))}));
  }

 private:
  draw::DotStyle style_now() const {
    draw::DotStyle style = style_;
    style.radius = static_cast<float>(*radius_);
    style.width = static_cast<float>(*width_);
    style.color.opacity = static_cast<float>(*color_.opacity);
    return style;
  }
  draw::DotStyle style() const {
    return {shape_named(*shape_), static_cast<float>(*radius_), static_cast<float>(*width_), color_.style()};
  }

  Input<Records<Point>> points_{*this, "points", optional, idle_without, help("in pixels of the picture")};
  Output<Records<Mark>> out_{*this, "marks"};
  Param<std::string> shape_{*this, "shape", "disc", "of a dot",
                            choices({"disc", "ring", "square", "diamond", "plus", "cross"})};
  Param<double> radius_{*this, "radius", 4, "of a dot; 0: the point's own", range(0, 8192), unit("px"), live};
  Param<double> width_{*this, "width", 2, "of the line of ring, plus and cross", range(0, 1000), unit("px"), live};
  MarkColorParams color_{*this};
  draw::DotStyle style_{}; // as the run began; live parameters may have changed
  uint64_t points_max_ = 0, marks_max_ = 0;
};

} // namespace

const mr_handler_type& marks_dots_type() {
  static const mr_handler_type type =
      detail::Type<MarksDots>::table("marks.dots", "Makes dots of points, for draw.marks", kMarksDotsManual);
  return type;
}

} // namespace millrace::handlers
