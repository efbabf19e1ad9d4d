// draw.boxes: frames what a detector or tracker found.
#include <millrace/handler.h>

#include <algorithm>
#include <cinttypes>
#include <cstdio>
#include <string>
#include <vector>

#include "handlers/draw/box_style.h"
#include "handlers/draw/glyphs.h"
#include "handlers/draw/ink_band.h"
#include "handlers/draw/packed_sheet.h"
#include "handlers/draw/raster.h"
#include "handlers/file/class_names.h"
#include "handlers/gpu/draw_kernels.h"

namespace millrace::handlers {
namespace {

constexpr const char* kBoxesManual = &R"(
Draws a frame around every box onto the picture, in the picture's own memory if the plan allows. The
frame lies inside its box. The track's id chooses the colour, or the class if there is no id, so
that a track keeps its colour. `labels` writes the id above the frame, and before it the name of the
class if `classes` gives one: a text file with the name of a class on each line, that of class 0 on
the first. A class beyond the last line has no name. Without boxes (the input is optional) the
picture passes unchanged, and the plan says so if nothing is connected. Labels need a font: the file
`font`, or DejaVu Sans from the system's usual font folders.

nv12, i420 and p010 are drawn on as they are. A chroma sample lies in the middle of its 2x2 pixels
and is blended by the share of them that is covered. The numbers of a colour are those of the
picture's matrix and range.

    test.pattern ! draw.boxes name=b ; record.from_json path=examples/data/boxes.jsonl ! b.boxes
)"[1];

class Boxes final : public Handler {
 public:
  Boxes() {
    stateless();
    no_allocation();
    capturable();
  }

  void configure(const Formats& formats) override {
    width_ = formats.in(video_).width;
    make_letters();
    needs_scratch(sheet_.bytes().size());
  }

  // An instance that is made while the run goes on is started even if configure() refused.
  void start() override {
    make_letters();
    band_.reserve(width_);
  }

  void process(Tick& tick, Cpu&) {
    const ImageSpan picture = out_.modify(tick, video_);
    if (!boxes_.present(tick)) return;
    const draw::BoxStyle style = style_for(picture, sheet_.bytes().data());
    const auto boxes = boxes_(tick);
    paint_over(picture, band_, 0, picture.height(), [&](auto&& target) {
      for (const Box& box : boxes) {
        if (!draw::drawable(box) || !may_show(target, box, style)) continue;
        const draw::BoxMark mark = draw::mark_of(box, style);
        for (const Rectangle& part : frame_parts(rectangle(mark.frame), style.thickness))
          target.fill(part, style.plates[mark.color]);
        if (labels_ && draw::has_label(mark)) draw_label(target, mark, style);
      }
    });
  }

  void process(Tick& tick, Cuda& cuda) {
    const ImageSpan picture = out_.modify(tick, video_);
    if (!boxes_.present(tick)) return;
    const gpu::DrawKernels& draw = *gpu::library_of(cuda).draw;
    if (labels_) gpu::check(draw.upload(cuda.stream(), cuda.scratch(), sheet_.bytes().data(), sheet_.bytes().size()));
    const mr_input& boxes = boxes_.raw(tick);
    gpu::check(draw.boxes(cuda.stream(), reinterpret_cast<const Box*>(boxes.data),
                          &Cuda::value_of(boxes)->as.records.count, style_for(picture, cuda.scratch()),
                          gpu::on_device(picture)));
  }

 private:
  // Throws std::runtime_error if the font or the file of names is missing. Without labels neither is needed.
  void make_letters() {
    if (!labels_ || !sheet_.bytes().empty()) return;
    if (!classes_->empty()) names_ = read_class_names(*classes_);
    std::string letters;
    for (const std::string& name : names_) letters += name;
    glyphs_ = GlyphSet(*font_, static_cast<uint32_t>(*size_), letters);
    sheet_ = PackedSheet(glyphs_, draw::kBoxGlyphs, names_);
  }

  static Rectangle rectangle(const draw::PixelArea& area) { return {area.left, area.top, area.right, area.bottom}; }

  // `copied` is the address of sheet_'s bytes in the memory of the host or device that draws.
  draw::BoxStyle style_for(const ImageSpan& picture, const void* copied) const {
    return box_style({*thickness_, *size_, *labels_}, ColorForm(picture), glyphs_, sheet_, copied, names_.size());
  }

  // False if the frame and label lie beyond the rows that the target paints now. A label is above its frame's top or
  // right below it.
  template <class Target>
  static bool may_show(const Target& target, const Box& box, const draw::BoxStyle& style) {
    const int64_t tall = style.ascent + style.descent, top = draw::rounded(box.y);
    return target.shows(top - tall, std::max<int64_t>(top + tall, draw::rounded(box.y + box.height)));
  }

  // Clips the letters to their plate.
  template <class Target>
  void draw_label(Target& target, const draw::BoxMark& mark, const draw::BoxStyle& style) const {
    char text[kClassNameBytesMax + 24];
    const char* const name = mark.name >= 0 ? names_[static_cast<size_t>(mark.name)].c_str() : "";
    int length = std::snprintf(text, sizeof text, "%s", name);
    if (mark.id >= 0)
      length += std::snprintf(text + length, sizeof text - static_cast<size_t>(length), "%s%" PRId64,
                              length > 0 ? " " : "", mark.id);
    const Rectangle plate = rectangle(mark.label);
    target.fill(plate, style.plates[mark.color]);
    target.write(glyphs_, {text, static_cast<size_t>(length)}, plate.left + style.padding, plate.top + style.ascent,
                 style.letters[mark.color], plate);
  }

  Input<Image> video_{*this, "video", drawable_pixels()};
  Input<Records<Box>> boxes_{*this, "boxes", optional, idle_without, help("in pixels of the picture")};
  Output<Image> out_{*this, "video", in_place(video_)};
  Param<int64_t> thickness_{*this, "thickness", 2, "of the frame", range(1, 100), unit("px"), live};
  Param<bool> labels_{*this, "labels", true, "draw names of classes and ids of tracks"};
  Param<int64_t> size_{*this, "size", 14, "of the labels' letters", range(4, 512), unit("px")};
  Param<std::string> classes_{*this, "classes", "", "a file with the name of a class on each line", reads_path};
  Param<std::string> font_{*this, "font", "", "a font file; empty: DejaVu Sans", reads_path};
  GlyphSet glyphs_;
  PackedSheet sheet_;              // digits, and the letters of names_
  std::vector<std::string> names_; // by class
  InkBand band_;
  uint32_t width_ = 0;
};

} // namespace

const mr_handler_type& draw_boxes_type() {
  static const mr_handler_type type =
      detail::Type<Boxes>::table("draw.boxes", "Frames what a detector or tracker found", kBoxesManual);
  return type;
}

} // namespace millrace::handlers
