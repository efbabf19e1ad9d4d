// image.resize: changes the size of a picture.
#include <millrace/handler.h>

#include <algorithm>

#include "handlers/gpu/image_kernels.h"
#include "handlers/image/picture.h"
#include "handlers/image/resample.h"

namespace millrace::handlers {
namespace {

constexpr const char* kResizeManual = &R"(
Changes the size of a picture. If only one of `width` and `height` is given, the other follows from
the shape of the incoming picture.

`method` is `nearest` (one source pixel, for labels and masks), `bilinear` (2x2 pixels, for
enlarging and for small changes) or `area` (the mean of all that a target pixel covers, for making
smaller without aliasing). Pixel centres are at halves, as in OpenCV. Sums are rounded half up and
at most 1 away from the real value. A GPU gives the same bytes; with `area`, and in pictures of one
row or column, they are at most 1 away from the CPU's.

nv12, i420 and p010 are resized as they are: each chroma sample lies in the middle of its 2x2
pixels, and goes by the same method at its own place.

    test.pattern width=640 height=480 ! image.resize width=320 method=area ! null.sink
)"[1];

ResizeMethod method_named(const std::string& name) {
  if (name == "nearest") return ResizeMethod::nearest;
  return name == "area" ? ResizeMethod::area : ResizeMethod::bilinear;
}

class Resize final : public Handler {
 public:
  Resize() {
    stateless();
    capturable();
    converts();
  }

  void configure(const Formats& formats) override {
    const Format& in = formats.in(video_);
    if (width_ == 0 && height_ == 0) throw std::invalid_argument("image.resize needs a width, a height, or both");
    const bool derived = width_ == 0 || height_ == 0;
    if (derived && in.size_kind != MR_DIM_FIXED)
      throw std::invalid_argument("image.resize needs both width and height where pictures may change their size");
    target_width_ = width_ > 0 ? static_cast<uint32_t>(*width_) : in_shape(*height_, in.width, in.height);
    target_height_ = height_ > 0 ? static_cast<uint32_t>(*height_) : in_shape(*width_, in.height, in.width);
    Format& out = formats.out(out_); // like the input, except for its size
    out.width = target_width_;
    out.height = target_height_;
    out.size_kind = MR_DIM_FIXED;
    keep_shape(in, out);
    source_width_ = in.width;
    source_height_ = in.height;
  }

  void start() override {
    if (source_width_ > 0 && source_height_ > 0)
      resampler_.prepare(source_width_, source_height_, target_width_, target_height_, method_named(*method_));
  }

  void process(Tick& tick, Cpu&) {
    const ImageView in = video_(tick);
    if (is_empty(in)) return give_empty(tick, in);
    resampler_.prepare(in.width(), in.height(), target_width_, target_height_, method_named(*method_));
    resampler_.run(in, allocate(tick, in));
  }

  void process(Tick& tick, Cuda& cuda) {
    const ImageView in = video_(tick);
    if (is_empty(in)) return give_empty(tick, in);
    const ImageSpan out = allocate(tick, in);
    gpu::check(gpu::library_of(cuda).image->resize(cuda.stream(), gpu::on_device(in), gpu::on_device(out),
                                                   method_named(*method_)));
  }

 private:
  // An initial picture is empty, so there are no pixels to scale.
  static bool is_empty(const ImageView& in) { return in.width() == 0 || in.height() == 0; }
  void give_empty(Tick& tick, const ImageView& in) {
    out_.allocate(tick, in.pixel(), 0, 0);
    take_over(in, *out_.raw(tick).value);
  }

  ImageSpan allocate(Tick& tick, const ImageView& in) {
    const ImageSpan out = out_.allocate(tick, in.pixel(), target_width_, target_height_);
    mr_value& value = *out_.raw(tick).value;
    take_over(in, value);
    keep_shape(in.value().as.image, value.as.image);
    return out;
  }

  // The length that belongs to `given` if the picture is to keep its shape along : across; rounded to the nearest
  // pixel, at least 1.
  static uint32_t in_shape(int64_t given, uint32_t along, uint32_t across) {
    const int64_t rounded = (2 * given * along + across) / (2 * int64_t{std::max(across, 1u)});
    return static_cast<uint32_t>(std::clamp<int64_t>(rounded, 1, kPictureSideMax));
  }

  Input<Image> video_{*this, "video",
                      pixels({Pixel::gray8, Pixel::rgb8, Pixel::bgr8, Pixel::rgba8, Pixel::bgra8, Pixel::nv12,
                              Pixel::i420, Pixel::p010})};
  Output<Image> out_{*this, "video", like(video_)};
  Param<int64_t> width_{*this,      "width",   0, "0: in the shape of the input", range(0, kPictureSideMax),
                        unit("px"), says_width};
  Param<int64_t> height_{*this,      "height",   0, "0: in the shape of the input", range(0, kPictureSideMax),
                         unit("px"), says_height};
  Param<std::string> method_{*this, "method", "bilinear", "how pixels are weighed",
                             choices({"nearest", "bilinear", "area"})};
  Resampler resampler_;
  uint32_t source_width_ = 0, source_height_ = 0, target_width_ = 0, target_height_ = 0;
};

} // namespace

const mr_handler_type& image_resize_type() {
  static const mr_handler_type type =
      detail::Type<Resize>::table("image.resize", "Changes the size of a picture", kResizeManual);
  return type;
}

} // namespace millrace::handlers
