// draw.boxes: frames what a detector or tracker found.
#include <millrace/handler.h>

#include <array>
#include <cinttypes>
#include <cmath>
#include <cstdio>

#include "handlers/draw/glyphs.h"
#include "handlers/draw/raster.h"

namespace millrace::handlers {
namespace {

constexpr const char* kManual = &R"(
Draws a frame around every box, over the picture, in its own memory where the plan allows. The frame
lies inside its box and takes its colour from the track's id, else from the class, so that a track
keeps its colour. With `labels` the id stands above it. Without boxes (the input is optional) the
picture passes as it is. Labels need a font: DejaVu Sans, looked for where systems keep their fonts,
or `font`.

    test.pattern ! draw.boxes thickness=3 ! null.sink
)"[1];

// Twelve hues that stay apart from each other on a screen and from most pictures.
constexpr std::array<Color, 12> kPalette = {{{230, 25, 75},
                                             {60, 180, 75},
                                             {255, 225, 25},
                                             {0, 130, 200},
                                             {245, 130, 48},
                                             {145, 30, 180},
                                             {70, 240, 240},
                                             {240, 50, 230},
                                             {210, 245, 60},
                                             {250, 190, 212},
                                             {0, 128, 128},
                                             {220, 190, 255}}};

Color color_of(const Box& box) {
  const uint64_t key = box.id >= 0      ? static_cast<uint64_t>(box.id)
                       : box.label >= 0 ? static_cast<uint64_t>(box.label)
                                        : 0;
  return kPalette[key % kPalette.size()];
}

// Letters on a coloured plate are black or white, whichever is further from it.
Color letter_color(Color plate) {
  return 299 * plate.r + 587 * plate.g + 114 * plate.b > 140'000 ? Color{0, 0, 0} : Color{255, 255, 255};
}

// A box beyond any picture, or not a number, is some other handler's mistake; it is not worth a failure here.
constexpr float kPlaceMax = 1e6f;
bool drawable(const Box& box) {
  const auto sane = [](float value) { return std::abs(value) <= kPlaceMax; }; // false for NaN
  return sane(box.x) && sane(box.y) && sane(box.width) && sane(box.height) && box.width > 0 && box.height > 0;
}

class Boxes final : public Handler {
 public:
  Boxes() {
    stateless();
    no_allocation();
  }

  void start() override {
    if (labels_) glyphs_ = GlyphSet(*font_, static_cast<uint32_t>(*size_));
  }

  void process(Tick& tick, Cpu&) {
    const ImageSpan picture = out_.modify(tick, video_);
    if (!boxes_.present(tick)) return;
    for (const Box& box : boxes_(tick)) {
      if (!drawable(box)) continue;
      const Rectangle area = {std::lround(box.x), std::lround(box.y), std::lround(box.x + box.width),
                              std::lround(box.y + box.height)};
      draw_frame(picture, area, *thickness_, ink_of(color_of(box), picture.pixel()));
      if (labels_ && box.id >= 0) draw_label(picture, box, area);
    }
  }

 private:
  // A plate on top of the frame, or inside it where the picture ends above.
  void draw_label(const ImageSpan& picture, const Box& box, const Rectangle& area) const {
    char text[24];
    const int length = std::snprintf(text, sizeof text, "%" PRId64, box.id);
    const std::string_view id(text, static_cast<size_t>(length));
    const int64_t padding = *size_ / 5 + 1, height = glyphs_.ascent() + glyphs_.descent();
    const int64_t top = area.top >= height ? area.top - height : area.top;
    const Color plate = color_of(box);
    fill_rectangle(picture, {area.left, top, area.left + glyphs_.width(id) + 2 * padding, top + height},
                   ink_of(plate, picture.pixel()));
    glyphs_.draw(picture, id, area.left + padding, top + glyphs_.ascent(),
                 ink_of(letter_color(plate), picture.pixel()));
  }

  Input<Image> video_{*this, "video", pixels({Pixel::gray8, Pixel::rgb8, Pixel::bgr8, Pixel::rgba8, Pixel::bgra8})};
  Input<Records<Box>> boxes_{*this, "boxes", optional, help("in pixels of the picture")};
  Output<Image> out_{*this, "video", in_place(video_)};
  Param<int64_t> thickness_{*this, "thickness", 2, "of the frame", range(1, 100), unit("px"), live};
  Param<bool> labels_{*this, "labels", true, "draw the ids of tracks"};
  Param<int64_t> size_{*this, "size", 14, "of the labels' letters", range(4, 512), unit("px")};
  Param<std::string> font_{*this, "font", "", "a font file; empty: DejaVu Sans"};
  GlyphSet glyphs_;
};

} // namespace

const mr_handler_type& draw_boxes_type() {
  static const mr_handler_type type =
      detail::Type<Boxes>::table("draw.boxes", "Frames what a detector or tracker found", kManual);
  return type;
}

} // namespace millrace::handlers
