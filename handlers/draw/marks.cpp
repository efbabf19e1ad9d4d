// draw.marks: paints lists of marks over a picture.
#include <millrace/handler.h>
#include <millrace/payload/marks.h>

#include <algorithm>
#include <stdexcept>
#include <string>

#include "handlers/draw/mark_painter.h"

namespace millrace::handlers {
namespace {

constexpr const char* kMarksManual = &R"(
Paints marks onto the picture in one pass, in the picture's own memory if the plan allows. Marks
are records: segments and boxes with round corners, each with a width, colours and opacity.
Handlers such as marks.boxes and marks.dots make them, record.from_json reads them from a file,
and a plugin can make its own. The input takes up to eight lists; a later list is painted over
the ones before it, and so is a later mark of a list. A list may be absent. Without any the
picture passes unchanged.

`edge: crisp` covers each pixel by the share of it that the shape covers; lines below one pixel
become fainter. `soft` has edges that rise over three pixels (of boxes two). `blend: over` lays
colours over the picture, in the picture's own values, and `add` adds them, as light. All marks
of a pixel are blended before it is rounded. Marks with NaN, of an unknown kind or beyond
±1,000,000 pixels are skipped, and the report counts them (`marks_skipped`).

    test.pattern ! draw.marks name=d ; record.from_json path=examples/data/marks.jsonl ! d.marks
)"[1];

constexpr uint32_t kListsMax = 8;

class Marks final : public Handler {
 public:
  Marks() {
    stateless();
    no_allocation();
  }

  void configure(const Formats& formats) override {
    marks_max_ = 0;
    for (uint32_t list = 0; list < marks_.count(); ++list) {
      const uint64_t most = formats.in(marks_, list).record_count_max;
      if (most > draw::kMarksMax)
        throw std::invalid_argument("list " + std::to_string(list) + " may have " + std::to_string(most) +
                                    " marks, and a list has at most " + std::to_string(draw::kMarksMax) +
                                    "; let its handler make fewer");
      marks_max_ += most;
    }
    const Format& picture = formats.in(video_);
    width_ = picture.width;
    height_ = picture.height;
  }

  void start() override {
    style_.soft = *edge_ == "soft";
    style_.adds = *blend_ == "add";
    painter_.reserve(marks_max_, width_, height_);
  }

  void process(Tick& tick, Cpu&) {
    const ImageSpan picture = out_.modify(tick, video_);
    draw::MarkStyle style = style_;
    style.pixel = picture.pixel();
    painter_.begin(picture, style);
    uint64_t skipped = 0;
    for (uint32_t list = 0; list < marks_.count(); ++list)
      if (marks_.present(tick, list)) skipped += painter_.add(marks_(tick, list));
    if (skipped > 0) count("marks_skipped", static_cast<int64_t>(skipped));
    painter_.paint();
  }

 private:
  Input<Image> video_{*this, "video", pixels({Pixel::gray8, Pixel::rgb8, Pixel::bgr8, Pixel::rgba8, Pixel::bgra8})};
  Inputs<Records<Mark>> marks_{*this,    "marks",      kListsMax,
                               optional, idle_without, help("in pixels of the picture, painted in this order")};
  Output<Image> out_{*this, "video", in_place(video_)};
  Param<std::string> edge_{*this, "edge", "crisp", "of shapes", choices({"crisp", "soft"})};
  Param<std::string> blend_{*this, "blend", "over", "how colours meet the picture", choices({"over", "add"})};
  MarkPainter painter_;
  draw::MarkStyle style_{};
  uint64_t marks_max_ = 0;
  uint32_t width_ = 0, height_ = 0;
};

} // namespace

const mr_handler_type& draw_marks_type() {
  static const mr_handler_type type =
      detail::Type<Marks>::table("draw.marks", "Paints lists of marks over a picture", kMarksManual);
  return type;
}

} // namespace millrace::handlers
