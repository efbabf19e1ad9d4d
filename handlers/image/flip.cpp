// image.flip: mirrors, turns or transposes a picture.
#include <millrace/handler.h>

#include <utility>

#include "handlers/gpu/image_kernels.h"
#include "handlers/image/picture.h"
#include "handlers/image/turn.h"

namespace millrace::handlers {
namespace {

constexpr const char* kFlipManual = &R"(
Mirrors a picture or turns it by quarters. `mode` is `horizontal` (left and right change places),
`vertical` (top and bottom), `both` (a half turn), `rotate90` and `rotate270` (clockwise),
`transpose` (mirrored at the diagonal from the top left) or `transverse` (at the other diagonal).
Quarter turns and diagonals swap width and height.

Pixels are moved and never changed. In nv12, i420 and p010 chroma has half the size: if a side that
is mirrored is odd, chroma comes to lie one pixel beside its luma.

    test.pattern width=640 height=480 ! image.flip mode=rotate90 ! null.sink
)"[1];

Turn turn_named(const std::string& name) {
  if (name == "vertical") return Turn::vertical;
  if (name == "both") return Turn::both;
  if (name == "rotate90") return Turn::rotate90;
  if (name == "rotate270") return Turn::rotate270;
  if (name == "transpose") return Turn::transpose;
  return name == "transverse" ? Turn::transverse : Turn::horizontal;
}

class Flip final : public Handler {
 public:
  Flip() {
    stateless();
    no_allocation();
    capturable();
    converts();
  }

  void configure(const Formats& formats) override {
    turn_ = turn_named(*mode_);
    if (swaps_sides(turn_)) std::swap(formats.out(out_).width, formats.out(out_).height);
    if (swaps_sides(turn_)) std::swap(formats.out(out_).aspect_num, formats.out(out_).aspect_den);
  }

  void process(Tick& tick, Cpu&) {
    const ImageView in = video_(tick);
    turn_picture(turn_, in, allocate(tick, in));
  }

  void process(Tick& tick, Cuda& cuda) {
    const ImageView in = video_(tick);
    const ImageSpan out = allocate(tick, in);
    gpu::check(gpu::library_of(cuda).image->turn(cuda.stream(), turn_, gpu::on_device(in), gpu::on_device(out)));
  }

 private:
  ImageSpan allocate(Tick& tick, const ImageView& in) {
    if (!swaps_sides(turn_)) return out_.allocate_like(tick, in);
    const ImageSpan out = out_.allocate(tick, in.pixel(), in.height(), in.width());
    mr_value& value = *out_.raw(tick).value;
    take_over(in, value);
    std::swap(value.as.image.aspect_num, value.as.image.aspect_den);
    return out;
  }

  Input<Image> video_{*this, "video",
                      pixels({Pixel::gray8, Pixel::rgb8, Pixel::bgr8, Pixel::rgba8, Pixel::bgra8, Pixel::nv12,
                              Pixel::i420, Pixel::p010})};
  Output<Image> out_{*this, "video", like(video_)};
  Param<std::string> mode_{
      *this,
      "mode",
      "horizontal",
      "how the picture is turned",
      choices({"horizontal", "vertical", "both", "rotate90", "rotate270", "transpose", "transverse"}),
      says_turn};
  Turn turn_ = Turn::horizontal;
};

} // namespace

const mr_handler_type& image_flip_type() {
  static const mr_handler_type type =
      detail::Type<Flip>::table("image.flip", "Mirrors or turns a picture", kFlipManual);
  return type;
}

} // namespace millrace::handlers
