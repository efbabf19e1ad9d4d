// draw.shapes: draws rectangles, circles, ellipses, lines, arrows and polygons over a picture.
#include <millrace/handler.h>

#include "handlers/draw/raster.h"
#include "handlers/draw/shape_mask.h"
#include "handlers/draw/shape_text.h"

namespace millrace::handlers {
namespace {

constexpr const char* kShapesManual = &R"(
Draws shapes onto a picture, antialiased, in the picture's own memory if the plan allows. `shapes`
is a list of them. Each is on a line of its own or separated from the one before by a semicolon:

    rectangle X,Y WIDTHxHEIGHT     line X,Y X,Y …        (two points or more)
    circle X,Y RADIUS              arrow X,Y X,Y         (its tip is the second)
    ellipse X,Y RADIUSxRADIUS      polygon X,Y X,Y X,Y …

A shape may be followed by any of `#rrggbb` or `#rrggbbaa`, `thickness=N`, `filled`, and for
rectangle and ellipse `angle=N` (degrees, clockwise). Lengths are pixels, with or without decimals,
or percentages of the picture's width and height (a circle's radius: of the smaller side), as in
`50%,50%`.

X,Y is the middle of a pixel. For a rectangle it is the top left pixel, and the frame lies inside
the rectangle. Other outlines are centred on their path. Lines have round ends. A polygon that
crosses itself is filled by the even-odd rule. Parts outside the picture are cut off. Later shapes
are drawn over earlier ones. Shapes are laid out once, for the largest picture that the plan allows.

    test.pattern ! draw.shapes shapes="circle 50%,50% 20% filled; arrow 9,90 90,50" ! null.sink
)"[1];

class Shapes final : public Handler {
 public:
  Shapes() {
    stateless();
    no_allocation();
  }

  void configure(const Formats& formats) override {
    if (!parse_color(*color_))
      throw std::invalid_argument("color '" + *color_ + "' is neither \"#rrggbb\" nor \"#rrggbbaa\"");
    parse_shapes(*shapes_);
    width_ = formats.in(video_).width;
    height_ = formats.in(video_).height;
  }

  void start() override {
    masks_.clear();
    const Color color = parse_color(*color_).value_or(Color{});
    for (const Shape& shape : parse_shapes(*shapes_))
      masks_.push_back({shape.color.value_or(color), ShapeMask(shape, width_, height_, thickness_)});
  }

  void process(Tick& tick, Cpu&) {
    const ImageSpan picture = out_.modify(tick, video_);
    for (const Drawn& drawn : masks_) drawn.mask.draw(picture, ink_of(drawn.color, picture.pixel()));
  }

 private:
  struct Drawn {
    Color color;
    ShapeMask mask;
  };

  Input<Image> video_{*this, "video", pixels({Pixel::gray8, Pixel::rgb8, Pixel::bgr8, Pixel::rgba8, Pixel::bgra8})};
  Output<Image> out_{*this, "video", in_place(video_)};
  Param<std::string> shapes_{*this, "shapes", "", "the list of shapes; empty: none"};
  Param<std::string> color_{*this, "color", "#ffffff", "of shapes that have none: \"#rrggbb\" or \"#rrggbbaa\""};
  Param<double> thickness_{*this, "thickness", 2, "of outlines that have none", range(0.1, 1000), unit("px")};
  std::vector<Drawn> masks_;
  uint32_t width_ = 0, height_ = 0;
};

} // namespace

const mr_handler_type& draw_shapes_type() {
  static const mr_handler_type type = detail::Type<Shapes>::table(
      "draw.shapes", "Draws rectangles, circles, lines, arrows and polygons", kShapesManual);
  return type;
}

} // namespace millrace::handlers
