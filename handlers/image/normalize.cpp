// image.normalize: makes a tensor of a picture, at the picture's size.
#include <millrace/handler.h>

#include <array>

#include "handlers/gpu/tensor_kernels.h"
#include "handlers/image/picture.h"
#include "handlers/image/tensor_params.h"

namespace millrace::handlers {
namespace {

constexpr const char* kNormalizeManual = &R"(
Makes a tensor of a picture, as networks take it: red, green and blue, scaled to 0 to 1, become
(value - mean) / std. The shape is [1, 3, height, width], or with `layout: nhwc` [1, height, width,
3]. A gray8 picture has one channel and uses the first of the numbers. `order` is the order of the
channels, while `mean` and `std` are always given as red, green, blue.

nv12, i420 and p010 become RGB by the matrix and range that the picture is tagged with, without
rounding to 8 bits in between. For another size put image.resize before it, or use image.patches,
which does both at once.

    test.pattern ! image.normalize mean=0.485,0.456,0.406 std=0.229,0.224,0.225 ! null.sink
)"[1];

class Normalize final : public Handler {
 public:
  Normalize() {
    stateless();
    no_allocation();
    capturable();
  }

  void configure(const Formats& formats) override {
    const Format& in = formats.in(video_);
    form_ = numbers_.form();
    form_.width = in.width;
    form_.height = in.height;
    form_.channels = in.pixel_formats == bit_of(Pixel::gray8) ? 1 : 3;
    Format& out = announce_tensor(formats, out_, form_);
    const uint32_t rows = form_.interleaved ? 1 : 2;
    out.shape_kind[rows] = out.shape_kind[rows + 1] = in.size_kind;
  }

  void process(Tick& tick, Cpu&) {
    const ImageView in = video_(tick);
    const TensorSpan out = allocate(tick, in);
    normalize_picture(in, form_, out.data());
  }
  void process(Tick& tick, Cuda& cuda) {
    const ImageView in = video_(tick);
    const TensorSpan out = allocate(tick, in);
    gpu::check(gpu::library_of(cuda).tensor->normalize(cuda.stream(), gpu::on_device(in), form_, out.data()));
  }

 private:
  TensorSpan allocate(Tick& tick, const ImageView& in) {
    form_.width = in.width();
    form_.height = in.height();
    form_.channels = in.pixel() == Pixel::gray8 ? 1 : 3;
    return allocate_tensor(tick, out_, form_, in);
  }

  Input<Image> video_{*this, "video", tensor_sources()};
  Output<Tensor> out_{*this, "tensor", dtypes<Float16, float>(), rank(4), help("one picture, three channels or one")};
  TensorParams numbers_{*this};
  TensorForm form_;
};

} // namespace

const mr_handler_type& image_normalize_type() {
  static const mr_handler_type type =
      detail::Type<Normalize>::table("image.normalize", "Makes a tensor of a picture", kNormalizeManual);
  return type;
}

} // namespace millrace::handlers
