// image.crop: crops a picture to a rectangle.
#include <millrace/handler.h>

#include <bit>

#include "handlers/gpu/image_kernels.h"
#include "handlers/image/crop_picture.h"
#include "handlers/image/picture.h"

namespace millrace::handlers {
namespace {

constexpr const char* kCropManual = &R"(
Cuts a rectangle out of a picture: `width` by `height` pixels, the first of which is `x` from the
left and `y` from the top. A width or height of 0 reaches to the picture's edge.

A rectangle that is not wholly inside the picture is refused, before the first tick if the size of
the pictures is known by then. It is never silently made smaller. In nv12, i420 and p010 `x` and `y`
must be even, since each 2x2 block of pixels shares its chroma; width and height may be odd.

    test.pattern width=640 height=480 ! image.crop x=160 y=120 width=320 height=240 ! null.sink
)"[1];

class Crop final : public Handler {
 public:
  Crop() {
    stateless();
    no_allocation();
    capturable();
  }

  void configure(const Formats& formats) override {
    Format& out = formats.out(out_); // like the input, except for its size
    if (out.width == 0 || out.height == 0) return;
    const bool settled = std::popcount(out.pixel_formats) == 1;
    const auto pixel = settled ? static_cast<Pixel>(std::countr_zero(out.pixel_formats)) : Pixel::none;
    const CropArea area = crop_area(asked(), out.width, out.height, pixel);
    out.width = area.width;
    out.height = area.height;
  }

  void process(Tick& tick, Cpu&) {
    const ImageView in = video_(tick);
    const CropArea area = area_of(in);
    crop_picture(in, area.x, area.y, allocate(tick, in, area));
  }

  void process(Tick& tick, Cuda& cuda) {
    const ImageView in = video_(tick);
    const CropArea area = area_of(in);
    const ImageSpan out = allocate(tick, in, area);
    gpu::check(
        gpu::library_of(cuda).image->crop(cuda.stream(), gpu::on_device(in), area.x, area.y, gpu::on_device(out)));
  }

 private:
  ImageSpan allocate(Tick& tick, const ImageView& in, const CropArea& area) {
    const ImageSpan out = out_.allocate(tick, in.pixel(), area.width, area.height);
    take_over(in, *out_.raw(tick).value);
    return out;
  }

  // An empty area for an empty picture, such as an initial one: there is nothing to crop.
  CropArea area_of(const ImageView& in) const {
    if (in.width() == 0 && in.height() == 0) return {0, 0, 0, 0};
    return crop_area(asked(), in.width(), in.height(), in.pixel());
  }

  CropArea asked() const {
    return {static_cast<uint32_t>(*x_), static_cast<uint32_t>(*y_), static_cast<uint32_t>(*width_),
            static_cast<uint32_t>(*height_)};
  }

  Input<Image> video_{*this, "video",
                      pixels({Pixel::gray8, Pixel::rgb8, Pixel::bgr8, Pixel::rgba8, Pixel::bgra8, Pixel::nv12,
                              Pixel::i420, Pixel::p010})};
  Output<Image> out_{*this, "video", like(video_)};
  Param<int64_t> x_{*this, "x", 0, "of the left edge", range(0, kPictureSideMax), unit("px")};
  Param<int64_t> y_{*this, "y", 0, "of the top edge", range(0, kPictureSideMax), unit("px")};
  Param<int64_t> width_{*this,     "width", 0, "of the rectangle; 0: to the right edge", range(0, kPictureSideMax),
                        unit("px")};
  Param<int64_t> height_{*this,     "height", 0, "of the rectangle; 0: to the bottom edge", range(0, kPictureSideMax),
                         unit("px")};
};

} // namespace

const mr_handler_type& image_crop_type() {
  static const mr_handler_type type =
      detail::Type<Crop>::table("image.crop", "Cuts a rectangle out of a picture", kCropManual);
  return type;
}

} // namespace millrace::handlers
