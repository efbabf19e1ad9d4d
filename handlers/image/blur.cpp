// image.blur: blurs a picture with a Gaussian.
#include <millrace/handler.h>

#include "handlers/gpu/image_kernels.h"
#include "handlers/image/gaussian.h"

namespace millrace::handlers {
namespace {

constexpr const char* kBlurManual = &R"(
Blurs a picture with a Gaussian of `sigma` pixels (kernel radius: three sigma, rounded up). Borders
are reflected without repeating the edge. Every channel is blurred alike; the chroma of nv12, i420
and p010 with half the sigma, because it has half the size. A chroma sample lies in the middle of
its 2x2 pixels. Arithmetic is fixed point, rounded half up, and at most 1 away from the real-valued
convolution; the ten bits of p010 are at most 4 of their 1024 steps away. `sigma` may change while
it runs; 0 copies. A GPU's result is at most 1 away from the CPU's.

    test.pattern width=640 height=480 ! image.blur sigma=2 ! null.sink
)"[1];

class Blur final : public Handler {
 public:
  Blur() {
    stateless();
    no_allocation();
    capturable();
  }

  void configure(const Formats& formats) override { row_numbers_ = size_t{formats.in(video_).width} * 4; }

  void start() override {
    blur_.reserve(row_numbers_);
    blur_.set_sigma(sigma_);
  }

  void process(Tick& tick, Cpu&) {
    if (blur_.sigma() != sigma_) blur_.set_sigma(sigma_);
    const ImageView in = video_(tick);
    blur_.run(in, out_.allocate_like(tick, in));
  }

  void process(Tick& tick, Cuda& cuda) {
    if (blur_.sigma() != sigma_) blur_.set_sigma(sigma_);
    const ImageView in = video_(tick);
    const ImageSpan out = out_.allocate_like(tick, in);
    gpu::check(gpu::library_of(cuda).image->blur(cuda.stream(), gpu::on_device(in), gpu::on_device(out), blur_.kernel(),
                                                 blur_.chroma_kernel()));
  }

 private:
  Input<Image> video_{*this, "video",
                      pixels({Pixel::gray8, Pixel::rgb8, Pixel::bgr8, Pixel::rgba8, Pixel::bgra8, Pixel::nv12,
                              Pixel::i420, Pixel::p010})};
  Output<Image> out_{*this, "video", like(video_)};
  Param<double> sigma_{*this, "sigma", 2, "strength", range(0, kSigmaMax), unit("px"), live};
  GaussianBlur blur_;
  size_t row_numbers_ = 0;
};

} // namespace

const mr_handler_type& image_blur_type() {
  static const mr_handler_type type =
      detail::Type<Blur>::table("image.blur", "Blurs a picture with a Gaussian", kBlurManual);
  return type;
}

} // namespace millrace::handlers
