// image.adjust: changes brightness, contrast, gamma and saturation of a picture.
#include <millrace/handler.h>

#include "handlers/gpu/image_kernels.h"
#include "handlers/image/tone.h"

namespace millrace::handlers {
namespace {

constexpr const char* kAdjustManual = &R"(
Changes brightness, contrast, gamma and saturation of a picture. A channel v of 0 to 1 becomes

    v' = clamp((v - 0.5) * contrast + 0.5 + brightness) ^ (1 / gamma)
    v" = Y + saturation * (v' - Y)     with the luma Y = 0.299 R' + 0.587 G' + 0.114 B' (BT.601)

All four may change while it runs; at 0, 1, 1 and 1 the picture stays as it is. Arithmetic is fixed
point, rounded to nearest after each of the two lines. Alpha stays, and gray8 has no saturation.

In nv12, i420 and p010 the first line works on luma, within the picture's range, and chroma is
multiplied by contrast * saturation. Without gamma the result is the same as in RGB, unless values
are clamped there. Chroma stays at its place, in the middle of its 2x2 pixels. A GPU gives the same
bytes.

    test.pattern ! image.adjust brightness=0.1 contrast=1.2 gamma=1.4 saturation=0.5 ! null.sink
)"[1];

class Adjust final : public Handler {
 public:
  Adjust() {
    stateless();
    no_allocation();
    capturable();
  }

  void start() override { adjuster_.set(asked()); }

  void process(Tick& tick, Cpu&) {
    if (adjuster_.settings() != asked()) adjuster_.set(asked());
    const ImageView in = video_(tick);
    adjuster_.run(in, out_.allocate_like(tick, in));
  }

  void process(Tick& tick, Cuda& cuda) {
    if (adjuster_.settings() != asked()) adjuster_.set(asked());
    const ImageView in = video_(tick);
    const ImageSpan out = out_.allocate_like(tick, in);
    gpu::check(gpu::library_of(cuda).image->adjust(cuda.stream(), adjuster_, gpu::on_device(in), gpu::on_device(out)));
  }

 private:
  ToneSettings asked() const { return {brightness_, contrast_, gamma_, saturation_}; }

  Input<Image> video_{*this, "video",
                      pixels({Pixel::gray8, Pixel::rgb8, Pixel::bgr8, Pixel::rgba8, Pixel::bgra8, Pixel::nv12,
                              Pixel::i420, Pixel::p010})};
  Output<Image> out_{*this, "video", like(video_)};
  Param<double> brightness_{*this, "brightness", 0, "added; 1 is from black to white", range(-1, 1), live};
  Param<double> contrast_{*this, "contrast", 1, "around middle gray; 0 leaves only that", range(0, kContrastMax), live};
  Param<double> gamma_{*this, "gamma", 1, "above 1 brightens the middle", range(kGammaMin, kGammaMax), live};
  Param<double> saturation_{*this, "saturation", 1, "0: gray", range(0, kSaturationMax), live};
  ToneAdjuster adjuster_;
};

} // namespace

const mr_handler_type& image_adjust_type() {
  static const mr_handler_type type = detail::Type<Adjust>::table(
      "image.adjust", "Changes brightness, contrast, gamma and saturation of a picture", kAdjustManual);
  return type;
}

} // namespace millrace::handlers
