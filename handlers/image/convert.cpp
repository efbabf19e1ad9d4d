// image.convert: changes the pixel format of a picture.
#include <millrace/handler.h>

#include "handlers/gpu/image_kernels.h"
#include "handlers/image/color.h"
#include "handlers/image/picture.h"
#include "handlers/image/planes.h"

namespace millrace::handlers {
namespace {

constexpr const char* kConvertManual = &R"(
Changes the pixel format of a picture. The input may have any of the formats that `to` names; a
picture that has the wanted format already is passed on unchanged, with 0 copies.

`matrix` and `range` say what the numbers of nv12, i420 and p010 mean when the handler makes one of
them; incoming pictures carry their own. Gray is BT.601 luma, full range. Arithmetic is fixed point,
rounded half up, and at most 1 away from the real-valued formula; a GPU gives the same bytes. Chroma
is the mean of each 2x2 block; in the other direction the whole block has that one chroma. Alpha is
kept if both formats have it and is 255 if only the target has it.

p010 has 10 bits, the upper ones of 16. From RGB all 10 bits are calculated. Between p010 and nv12
or i420 of the same matrix and range each number is scaled. Other matrices and ranges are converted
through RGB of 8 bits.

    test.pattern ! image.convert to=nv12 range=limited ! null.sink
)"[1];

uint32_t color_named(const std::string& name) {
  if (name == "bt2020") return MR_COLOR_BT2020;
  return name == "bt709" ? MR_COLOR_BT709 : MR_COLOR_BT601;
}

class Convert final : public Handler {
 public:
  Convert() {
    stateless();
    no_allocation();
    capturable();
    converts();
  }

  void configure(const Formats& formats) override {
    const Format& in = formats.in(video_);
    Format& out = formats.image(out_, pixel_named(*to_), in.width, in.height);
    out.size_kind = in.size_kind;
    take_over_meaning(in, out);
    tag(out.color, out.range);
  }

  void start() override { pixel_ = pixel_named(*to_); }

  void process(Tick& tick, Cpu&) {
    const ImageView in = video_(tick);
    if (is_wanted(in)) return out_.forward(tick, video_);
    convert_pixels(in, allocate(tick, in));
  }

  void process(Tick& tick, Cuda& cuda) {
    const ImageView in = video_(tick);
    if (is_wanted(in)) return out_.forward(tick, video_);
    const ImageSpan out = allocate(tick, in);
    gpu::check(gpu::library_of(cuda).image->convert(cuda.stream(), gpu::on_device(in), gpu::on_device(out)));
  }

 private:
  ImageSpan allocate(Tick& tick, const ImageView& in) {
    const ImageSpan out = out_.allocate(tick, pixel_, in.width(), in.height());
    mr_value& value = *out_.raw(tick).value;
    take_over(in, value);
    tag(value.as.image.color, value.as.image.range);
    return out;
  }

  bool is_wanted(const ImageView& in) const {
    uint32_t color = 0, range = 0;
    tag(color, range);
    return in.pixel() == pixel_ && in.value().as.image.color == color && in.value().as.image.range == range;
  }

  void tag(uint32_t& color, uint32_t& range) const {
    const bool ycbcr = halves_chroma(pixel_named(*to_));
    color = ycbcr ? color_named(*matrix_) : uint32_t{MR_COLOR_SRGB};
    range = ycbcr && *range_ == "limited" ? MR_RANGE_LIMITED : MR_RANGE_FULL;
  }

  static Pixels convertible() {
    return pixels(
        {Pixel::gray8, Pixel::rgb8, Pixel::bgr8, Pixel::rgba8, Pixel::bgra8, Pixel::nv12, Pixel::i420, Pixel::p010});
  }

  Input<Image> video_{*this, "video", convertible()};
  Output<Image> out_{*this, "video", convertible(), may_repeat};
  Param<std::string> to_{*this,
                         "to",
                         "rgb8",
                         "pixel format to make",
                         choices({"gray8", "rgb8", "bgr8", "rgba8", "bgra8", "nv12", "i420", "p010"}),
                         says_pixels};
  Param<std::string> matrix_{
      *this,      "matrix", "bt601", "how nv12, i420 and p010 are made from RGB", choices({"bt601", "bt709", "bt2020"}),
      says_matrix};
  Param<std::string> range_{*this,
                            "range",
                            "limited",
                            "numbers of nv12, i420 and p010: luma 16 to 235 of 255, or all",
                            choices({"full", "limited"}),
                            says_range};
  Pixel pixel_ = Pixel::none;
};

} // namespace

const mr_handler_type& image_convert_type() {
  static const mr_handler_type type =
      detail::Type<Convert>::table("image.convert", "Changes the pixel format of a picture", kConvertManual);
  return type;
}

} // namespace millrace::handlers
