// draw.text: writes a line of text over a picture.
#include <millrace/handler.h>

#include <algorithm>
#include <array>
#include <ctime>
#include <stdexcept>

#include "handlers/draw/caption.h"
#include "handlers/draw/glyphs.h"
#include "handlers/draw/ink_band.h"
#include "handlers/draw/packed_sheet.h"
#include "handlers/gpu/draw_kernels.h"
#include "handlers/record/any_records.h"

namespace millrace::handlers {
namespace {

constexpr const char* kTextManual = &R"(
Writes a line of text (UTF-8) onto a picture, in the picture's own memory if the plan allows. `x`
and `y` are the top-left corner of the line; negative ones count from the right or the bottom edge.
Words in braces are filled in:

    {index}            the tick's index
    {time}             its media time as h:mm:ss.mmm
    {clock}, {utc}     the time of day when it is drawn, here and in UTC: 2030-12-31 23:59:59
    {clock:%H:%M:%S}   the same in a form of date(1); {utc:%H:%M:%S} likewise
    {boxes.count}      the number of records at the input `boxes`; {records.count}: at `records`
    {boxes.score}      a field of the first box; for `records` any field that their type declares
    {{                 a brace

Numbers with a fraction are rounded to two decimals. A dash means that an input has no value in the
tick, or no record. With a time of day no two runs make the same picture, and the handler runs on
the CPU only.

A `box` under the text or an `outline` around its letters keeps the text readable on any picture.
Both are colours; "" is none. The box is `padding` larger than the line. Neither moves the text.

nv12, i420 and p010 are drawn on as they are. A chroma sample lies in the middle of its 2x2 pixels
and is blended by the share of them that is covered. The numbers of a colour are those of the
picture's matrix and range.

Without `font` the font is DejaVu Sans from the system's usual font folders. If it is missing, the
handler reports that before the first tick. Letters that the font lacks are taken from another font
of the machine; those that none has are empty boxes, and a warning names them.

    test.pattern ! draw.text text="frame {index} at {time}" size=32 box="#000000a0" ! null.sink
)"[1];

// The inputs that records come from, in the order of a caption's sources.
constexpr size_t kBoxes = 0, kRecords = 1;
using TickRecords = std::array<draw::LineRecords, draw::kLineSourcesMax>;

class Text final : public Handler {
 public:
  Text() {
    stateless();
    no_allocation();
    capturable();
  }

  void probe(Facts& facts) override {
    // No kernel knows the time of day.
    if (Caption::shows_clock(*text_)) facts.cost_us(0, -1);
  }

  void configure(const Formats& formats) override {
    width_ = formats.in(video_).width;
    check_color("color", *color_, false);
    check_color("box", *box_, true);
    check_color("outline", *outline_, true);
    // The type of records that come over a delayed edge is unknown in the first of the plan's two rounds of
    // configuration.
    if (records_.connected() && !formats.in(records_).schema) return;
    const std::array<CaptionSource, draw::kLineSourcesMax> sources = {
        CaptionSource{"boxes", boxes_.connected(), record_type_of<Box>()},
        CaptionSource{"records", records_.connected(), formats.in(records_).records}};
    caption_ = Caption(*text_, sources);
    if (!sheet_.bytes().empty()) return;
    make_glyphs();
    sheet_ = PackedSheet(glyphs_, caption_, outline_->empty() ? nullptr : &outlines_);
    needs_scratch(sheet_.bytes().size());
  }

  void start() override {
    ink_color_ = parse_color(*color_).value_or(Color{});
    box_color_ = parse_color(*box_).value_or(Color{});
    outline_color_ = parse_color(*outline_).value_or(Color{});
    // An instance that is made while the run goes on is started even if configure() refused.
    if (sheet_.bytes().empty()) make_glyphs();
    if (!glyphs_.missing().empty())
      log(MR_LOG_WARNING, "no font of this machine has " + quoted_letters(glyphs_.missing()) +
                              ": an empty box is drawn instead; a font file that has them: font=FILE");
    band_.reserve(width_);
    if (Caption::shows_clock(*text_)) tzset(); // reads the time zone's file here, and not in a tick
  }

  void process(Tick& tick, Cpu&) {
    const ImageSpan picture = out_.modify(tick, video_);
    const TickRecords records = {records_of(tick, boxes_), records_of(tick, records_)};
    const std::string_view line = caption_.line(tick.index(), tick.media_time_ns(), records, std::time(nullptr));
    if (line.empty()) return;
    const int64_t width = glyphs_.width(line), left = x_ >= 0 ? *x_ : picture.width() + x_ - width;
    const int64_t top = top_in(picture), height = glyphs_.ascent() + glyphs_.descent(),
                  baseline = top + glyphs_.ascent();
    const Rectangle box = {left - padding_, top - padding_, left + width + padding_, top + height + padding_};
    const ColorForm form(picture);
    const Ink ink = ink_of(ink_color_, form), box_ink = ink_of(box_color_, form),
              outline_ink = ink_of(outline_color_, form);
    const auto paint = [&](auto&& target) {
      if (!box_->empty()) target.fill(box, box_ink);
      if (!outline_->empty()) target.write(outlines_, line, left, baseline, outline_ink);
      target.write(glyphs_, line, left, baseline, ink);
    };
    const GlyphSet& widest = outline_->empty() ? glyphs_ : outlines_;
    int64_t first = baseline - widest.rise(), last = baseline + widest.fall();
    if (!box_->empty()) first = std::min(first, box.top), last = std::max(last, box.bottom);
    paint_over(picture, band_, first, last, paint);
  }

  // The line is made on the device, which knows the index and time of a tick even if the host does not call process()
  // for it (a replayed graph).
  void process(Tick& tick, Cuda& cuda) {
    const ImageSpan picture = out_.modify(tick, video_);
    const gpu::DrawKernels& draw = *gpu::library_of(cuda).draw;
    gpu::check(draw.upload(cuda.stream(), cuda.scratch(), sheet_.bytes().data(), sheet_.bytes().size()));
    gpu::TextLine line{};
    line.sheet = sheet_.sheet(cuda.scratch());
    line.caption = sheet_.caption(cuda.scratch());
    line.caption_count = sheet_.caption_count();
    std::copy(caption_.values().begin(), caption_.values().end(), line.values);
    line.records[kBoxes] = records_on_device(tick, boxes_);
    line.records[kRecords] = records_on_device(tick, records_);
    line.ink = ink_of(ink_color_, ColorForm(picture));
    line.x = static_cast<int32_t>(*x_);
    const auto top = static_cast<int32_t>(top_in(picture));
    line.baseline = top + glyphs_.ascent();
    line.top = line.baseline - sheet_.top();
    line.bottom = line.baseline + sheet_.bottom();
    line.outline_first = sheet_.outline_first();
    line.outline = ink_of(outline_color_, ColorForm(picture));
    line.boxed = !box_->empty();
    if (line.boxed) {
      line.padding = static_cast<int32_t>(*padding_);
      line.box_top = top - line.padding;
      line.box_bottom = top + glyphs_.ascent() + glyphs_.descent() + line.padding;
      line.box = ink_of(box_color_, ColorForm(picture));
      line.top = std::min(line.top, line.box_top);
      line.bottom = std::max(line.bottom, line.box_bottom);
    }
    gpu::check(draw.text(cuda.stream(), line, cuda.tick(), gpu::on_device(picture)));
  }

 private:
  static void check_color(const std::string& name, const std::string& color, bool may_be_none) {
    if ((may_be_none && color.empty()) || parse_color(color)) return;
    throw std::invalid_argument(name + " '" + color + "' is neither \"#rrggbb\" nor \"#rrggbbaa\"");
  }

  // Throws std::runtime_error if the font is missing.
  void make_glyphs() {
    glyphs_ = GlyphSet(*font_, static_cast<uint32_t>(*size_), *text_);
    if (!outline_->empty()) outlines_ = glyphs_.outlined(static_cast<uint32_t>(*outline_width_));
  }

  int64_t top_in(const ImageSpan& picture) const {
    return y_ >= 0 ? *y_ : picture.height() + y_ - glyphs_.ascent() - glyphs_.descent();
  }

  // Empty if the port has no value.
  template <class Port>
  static draw::LineRecords records_of(const Tick& tick, const Port& port) {
    if (!port.present(tick)) return {};
    return {port.raw(tick).value, port.raw(tick).data};
  }
  template <class Port>
  static draw::LineRecords records_on_device(const Tick& tick, const Port& port) {
    if (!port.present(tick)) return {};
    return {Cuda::value_of(port.raw(tick)), port.raw(tick).data};
  }

  Input<Image> video_{*this, "video", drawable_pixels()};
  Input<Records<Box>> boxes_{*this, "boxes", optional, help("the records that {boxes.count} and its like show")};
  Input<Any> records_{*this, "records", optional, of_records,
                      help("any records, which {records.count} and its like show")};
  Output<Image> out_{*this, "video", in_place(video_)};
  Param<std::string> text_{*this, "text", "{index}", "the text; words in braces are filled in"};
  Param<int64_t> x_{*this, "x", 16, "left edge; negative: from the right", range(-65536, 65536), unit("px"), live};
  Param<int64_t> y_{*this, "y", 16, "top edge; negative: from the bottom", range(-65536, 65536), unit("px"), live};
  Param<int64_t> size_{*this, "size", 24, "of the letters", range(4, 512), unit("px")};
  Param<std::string> color_{*this, "color", "#ffffff", "\"#rrggbb\" or \"#rrggbbaa\""};
  Param<std::string> box_{*this, "box", "", "colour of a box under the text, such as \"#000000a0\"; empty: no box"};
  Param<int64_t> padding_{*this, "padding", 6, "of the box around the text", range(0, 512), unit("px")};
  Param<std::string> outline_{*this, "outline", "", "colour of an outline around the letters; empty: none"};
  Param<int64_t> outline_width_{*this, "outline_width", 2, "of the outline", range(1, 16), unit("px")};
  Param<std::string> font_{*this, "font", "", "a font file; empty: DejaVu Sans", reads_path};
  Caption caption_;
  GlyphSet glyphs_, outlines_;
  PackedSheet sheet_; // the letters that the text and its numbers need
  Color ink_color_, box_color_, outline_color_;
  InkBand band_;
  uint32_t width_ = 0;
};

} // namespace

const mr_handler_type& draw_text_type() {
  static const mr_handler_type type =
      detail::Type<Text>::table("draw.text", "Writes a line of text over a picture", kTextManual);
  return type;
}

} // namespace millrace::handlers
