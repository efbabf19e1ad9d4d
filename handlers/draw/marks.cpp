// draw.marks: paints lists of marks over a picture.
#include <millrace/handler.h>
#include <millrace/payload/marks.h>

#include <algorithm>
#include <optional>
#include <stdexcept>
#include <string>

#include "handlers/draw/mark_painter.h"
#include "handlers/gpu/mark_kernels.h"

namespace millrace::handlers {
namespace {

constexpr const char* kMarksManual = &R"(
Paints marks onto the picture in one pass, in the picture's own memory if the plan allows. Marks
are records: segments, curves and boxes with round corners, each with a width, colours, opacity.
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

class Marks final : public Handler {
 public:
  Marks() {
    stateless();
    capturable();
  }

  void configure(const Formats& formats) override {
    marks_max_ = 0;
    for (uint32_t list = 0; list < marks_.count(); ++list) {
      const uint64_t most = formats.in(marks_, list).record_count_max;
      if (most > draw::kMarksMax)
        throw std::invalid_argument("list " + std::to_string(list) + " may have " + std::to_string(most) +
                                    " marks, and a list has at most " + std::to_string(draw::kMarksMax) +
                                    "; let its handler make fewer");
      list_max_[list] = most;
      marks_max_ += most;
    }
    needs_scratch(gpu::mark_scratch_bytes(marks_max_));
    const Format& picture = formats.in(video_);
    width_ = picture.width;
    height_ = picture.height;
  }

  void start() override {
    style_.soft = *edge_ == "soft";
    style_.adds = *blend_ == "add";
    place_ = gpu();
    if (place_)
      gpu::check(gpu::library_of(*place_).marks->skipped.begin(place_->stream, place_->scratch));
    else
      painter_.reserve(marks_max_, width_, height_);
  }

  void process(Tick& tick, Cpu&) {
    const ImageSpan picture = out_.modify(tick, video_);
    painter_.begin(picture, style_on(picture));
    uint64_t skipped = 0;
    for (uint32_t list = 0; list < marks_.count(); ++list)
      if (marks_.present(tick, list)) skipped += painter_.add(marks_(tick, list));
    if (skipped > 0) count("marks_skipped", static_cast<int64_t>(skipped));
    painter_.paint();
  }

  void process(Tick& tick, Cuda& cuda) {
    const ImageSpan picture = out_.modify(tick, video_);
    gpu::MarkLists lists;
    lists.count = marks_.count();
    for (uint32_t list = 0; list < lists.count; ++list)
      lists.lists[list] = gpu::on_device<Mark>(marks_.raw(tick, list), list_max_[list]);
    gpu::check(gpu::library_of(cuda).marks->paint(cuda.stream(), lists, style_on(picture), gpu::on_device(picture),
                                                  cuda.scratch(), marks_max_));
  }

  void stop() override {
    if (!place_) return;
    uint64_t skipped = 0;
    const bool is_read = gpu::library_of(*place_).marks->skipped.read(place_->stream, place_->scratch, skipped);
    if (is_read && skipped > 0) count("marks_skipped", static_cast<int64_t>(skipped));
    place_.reset();
  }

 private:
  draw::MarkStyle style_on(const ImageSpan& picture) const {
    draw::MarkStyle style = style_;
    style.pixel = picture.pixel();
    return style;
  }

  Input<Image> video_{*this, "video", pixels({Pixel::gray8, Pixel::rgb8, Pixel::bgr8, Pixel::rgba8, Pixel::bgra8})};
  Inputs<Records<Mark>> marks_{*this,    "marks",      gpu::kMarkListsMax,
                               optional, idle_without, help("in pixels of the picture, painted in this order")};
  Output<Image> out_{*this, "video", in_place(video_)};
  Param<std::string> edge_{*this, "edge", "crisp", "of shapes", choices({"crisp", "soft"})};
  Param<std::string> blend_{*this, "blend", "over", "how colours meet the picture", choices({"over", "add"})};
  MarkPainter painter_;
  draw::MarkStyle style_{};
  uint64_t list_max_[gpu::kMarkListsMax] = {}, marks_max_ = 0; // marks of each list, and of all
  std::optional<GpuPlace> place_;                              // the GPU body's, while it runs
  uint32_t width_ = 0, height_ = 0;
};

} // namespace

const mr_handler_type& draw_marks_type() {
  static const mr_handler_type type =
      detail::Type<Marks>::table("draw.marks", "Paints lists of marks over a picture", kMarksManual);
  return type;
}

} // namespace millrace::handlers
