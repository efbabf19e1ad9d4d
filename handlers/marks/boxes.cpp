// marks.boxes: makes marks of boxes or points.
#include <millrace/handler.h>
#include <millrace/payload/marks.h>

#include <algorithm>
#include <cmath>
#include <stdexcept>
#include <string>

#include "handlers/gpu/mark_kernels.h"
#include "handlers/marks/color_params.h"
#include "handlers/marks/most_marks.h"

namespace millrace::handlers {
namespace {

constexpr const char* kMarksBoxesManual = &R"(
Makes a frame of each box or point, for draw.marks. `size` says how large it is: its `own` size,
which for a point is twice its radius; `fixed`, a square of `side` pixels; that of its `radius`,
a square of the box's area; or of its `age` too, which makes the square 1 + ½·ln(1 + age) times
as large. Only points have an age. Frames have a line of `width` pixels, round corners by
`roundness` (1: as round as can be), and an inside as opaque as `fill` says. `corners` draws only
that part of the shorter side from each corner, with square corners. The id of the track chooses
the colour, or else the class. Without boxes and points the list is empty.

    test.pattern ! draw.marks name=d ; marks.boxes name=m ! d.marks ; test.points ! m.points
)"[1];

draw::BoxSize size_named(const std::string& name) {
  if (name == "fixed") return draw::BoxSize::fixed;
  if (name == "radius") return draw::BoxSize::radius;
  return name == "age" ? draw::BoxSize::age : draw::BoxSize::own;
}

class MarksBoxes final : public Handler {
 public:
  MarksBoxes() {
    stateless();
    no_allocation();
    capturable();
  }

  void configure(const Formats& formats) override {
    if (corners_ > 0 && roundness_ > 0)
      throw std::invalid_argument("corners alone are square; set roundness: 0, or corners: 0 for the whole outline");
    boxes_max_ = boxes_.connected() ? formats.in(boxes_).record_count_max : 0;
    points_max_ = points_.connected() ? formats.in(points_).record_count_max : 0;
    marks_max_ = checked_most_marks(boxes_max_ + points_max_, draw::marks_of_box(style()));
    formats.out(out_).record_count_max = marks_max_;
  }

  void start() override { style_ = style(); }

  void process(Tick& tick, Cpu&) {
    const draw::BoxMarkStyle style = style_now();
    const std::span<const Box> boxes = boxes_.present(tick) ? boxes_(tick) : std::span<const Box>();
    const std::span<const Point> points = points_.present(tick) ? points_(tick) : std::span<const Point>();
    const uint32_t each = draw::marks_of_box(style);
    const std::span<Mark> marks = out_.allocate(tick, (boxes.size() + points.size()) * each);
    Mark* next = marks.data();
    uint32_t number = 0;
    for (const Box& box : boxes) draw::make_box_marks(box, 0, number++, style, std::exchange(next, next + each));
    for (const Point& point : points)
      draw::make_box_marks(draw::box_around(point), point.age, number++, style, std::exchange(next, next + each));
  }

  void process(Tick& tick, Cuda& cuda) {
    Mark* const marks = out_.allocate(tick, marks_max_).data();
    gpu::check(gpu::library_of(cuda).marks->boxes(cuda.stream(), gpu::on_device<Box>(boxes_.raw(tick), boxes_max_),
                                                  gpu::on_device<Point>(points_.raw(tick), points_max_), style_now(),
                                                  {marks, Cuda::count_of(out_.raw(tick))}));
  }

 private:
  draw::BoxMarkStyle style_now() const {
    draw::BoxMarkStyle style = style_;
    style.side = static_cast<float>(*side_);
    style.width = static_cast<float>(*width_);
    style.color.opacity = static_cast<float>(*color_.opacity);
    return style;
  }
  draw::BoxMarkStyle style() const {
    return {size_named(*size_),
            static_cast<float>(*side_),
            static_cast<float>(*width_),
            static_cast<float>(*roundness_),
            static_cast<float>(*corners_),
            static_cast<float>(*fill_),
            color_.style()};
  }

  Input<Records<Box>> boxes_{*this, "boxes", optional, idle_without, help("in pixels of the picture")};
  Input<Records<Point>> points_{*this, "points", optional, idle_without, help("in pixels of the picture")};
  Output<Records<Mark>> out_{*this, "marks", help("those of the boxes first")};
  Param<std::string> size_{*this, "size", "own", "of a frame", choices({"own", "fixed", "radius", "age"})};
  Param<double> side_{*this, "side", 20, "of a frame of fixed size", range(0, 16384), unit("px"), live};
  Param<double> width_{*this, "width", 2, "of the line", range(0, 1000), unit("px"), live};
  Param<double> roundness_{*this, "roundness", 0, "of the corners: their radius, by half of the shorter side",
                           range(0, 1)};
  Param<double> corners_{*this, "corners", 0, "the part of the shorter side drawn from each corner; 0: all",
                         range(0, 0.5)};
  Param<double> fill_{*this, "fill", 0, "opacity of the inside", range(0, 1)};
  MarkColorParams color_{*this};
  draw::BoxMarkStyle style_{}; // as the run began; live parameters may have changed
  uint64_t boxes_max_ = 0, points_max_ = 0, marks_max_ = 0;
};

} // namespace

const mr_handler_type& marks_boxes_type() {
  static const mr_handler_type type = detail::Type<MarksBoxes>::table(
      "marks.boxes", "Makes frames of boxes or points, for draw.marks", kMarksBoxesManual);
  return type;
}

} // namespace millrace::handlers
