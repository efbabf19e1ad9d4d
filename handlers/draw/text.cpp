// draw.text: writes a line of text over a picture.
#include <millrace/handler.h>

#include <stdexcept>

#include "handlers/draw/caption.h"
#include "handlers/draw/glyphs.h"
#include "handlers/draw/packed_sheet.h"
#include "handlers/gpu/draw_kernels.h"

namespace millrace::handlers {
namespace {

constexpr const char* kManual = &R"(
Writes a line of text (UTF-8) over a picture, in its own memory where the plan allows. `{index}`
stands for the tick's index, `{time}` for its media time as h:mm:ss.mmm, `{{` for a brace. `x` and
`y` are the top-left corner of the line, and negative ones count from the right or the bottom edge.
Without `font` it is DejaVu Sans, looked for where systems keep their fonts; where there is none it
says so before the first tick.

    test.pattern ! draw.text text="frame {index} at {time}" size=32 color="#ffff00" ! null.sink
)"[1];

class Text final : public Handler {
 public:
  Text() {
    stateless();
    no_allocation();
    capturable();
  }

  void configure(const Formats&) override {
    if (!parse_color(*color_))
      throw std::invalid_argument("color '" + *color_ + "' is neither \"#rrggbb\" nor \"#rrggbbaa\"");
    caption_ = Caption(*text_);
    if (!sheet_.bytes().empty()) return;
    try {
      sheet_ = PackedSheet(GlyphSet(*font_, static_cast<uint32_t>(*size_), *text_), caption_);
    } catch (const std::runtime_error&) {
      // That there is no such font is said by start(), where it is needed.
    }
    needs_scratch(sheet_.bytes().size());
  }

  void start() override {
    ink_color_ = parse_color(*color_).value_or(Color{});
    glyphs_ = GlyphSet(*font_, static_cast<uint32_t>(*size_), *text_);
  }

  void process(Tick& tick, Cpu&) {
    const ImageSpan picture = out_.modify(tick, video_);
    const std::string_view line = caption_.line(tick.index(), tick.media_time_ns());
    const int64_t left = x_ >= 0 ? *x_ : picture.width() + x_ - glyphs_.width(line);
    const int64_t top = y_ >= 0 ? *y_ : picture.height() + y_ - glyphs_.ascent() - glyphs_.descent();
    glyphs_.draw(picture, line, left, top + glyphs_.ascent(), ink_of(ink_color_, picture.pixel()));
  }

  // The line is made on the device, which knows index and time of a tick that is not called for.
  void process(Tick& tick, Cuda& cuda) {
    const ImageSpan picture = out_.modify(tick, video_);
    const gpu::DrawKernels& draw = *gpu::library_of(cuda).draw;
    gpu::check(draw.upload(cuda.stream(), cuda.scratch(), sheet_.bytes().data(), sheet_.bytes().size()));
    gpu::TextLine line{};
    line.sheet = sheet_.sheet(cuda.scratch());
    line.caption = sheet_.caption(cuda.scratch());
    line.caption_count = sheet_.caption_count();
    line.ink = ink_of(ink_color_, picture.pixel());
    line.x = static_cast<int32_t>(*x_);
    const int64_t top = y_ >= 0 ? *y_ : picture.height() + y_ - glyphs_.ascent() - glyphs_.descent();
    line.baseline = static_cast<int32_t>(top) + glyphs_.ascent();
    line.top = line.baseline - sheet_.top();
    line.bottom = line.baseline + sheet_.bottom();
    gpu::check(draw.text(cuda.stream(), line, cuda.tick(), gpu::on_device(picture)));
  }

 private:
  Input<Image> video_{*this, "video", pixels({Pixel::gray8, Pixel::rgb8, Pixel::bgr8, Pixel::rgba8, Pixel::bgra8})};
  Output<Image> out_{*this, "video", in_place(video_)};
  Param<std::string> text_{*this, "text", "{index}", "what is written; knows {index} and {time}"};
  Param<int64_t> x_{*this, "x", 16, "left edge; negative: from the right", range(-65536, 65536), unit("px"), live};
  Param<int64_t> y_{*this, "y", 16, "top edge; negative: from the bottom", range(-65536, 65536), unit("px"), live};
  Param<int64_t> size_{*this, "size", 24, "of the letters", range(4, 512), unit("px")};
  Param<std::string> color_{*this, "color", "#ffffff", "\"#rrggbb\" or \"#rrggbbaa\""};
  Param<std::string> font_{*this, "font", "", "a font file; empty: DejaVu Sans", reads_path};
  Caption caption_;
  GlyphSet glyphs_;
  PackedSheet sheet_; // of the letters that the text and its numbers need
  Color ink_color_;
};

} // namespace

const mr_handler_type& draw_text_type() {
  static const mr_handler_type type =
      detail::Type<Text>::table("draw.text", "Writes a line of text over a picture", kManual);
  return type;
}

} // namespace millrace::handlers
