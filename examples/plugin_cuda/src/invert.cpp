// acme.invert: inverts a picture, as far as one likes.
#include <millrace/handler.h>

#include "invert_kernel.h"

namespace mr = millrace;

namespace {

struct Invert final : mr::Handler {
  mr::Input<mr::Image> video{*this, "video", mr::pixels({mr::Pixel::gray8, mr::Pixel::rgb8, mr::Pixel::bgr8})};
  mr::Output<mr::Image> out{*this, "video", mr::like(video)};
  mr::Param<float> strength{*this, "strength", 1.0f, "0 leaves the picture, 1 inverts it", mr::range(0, 1), mr::live};

  Invert() { capturable(); } // the GPU body enqueues the same work on every tick

  void process(mr::Tick& tick, mr::Cpu&) {
    const mr::ImageView in = video(tick);
    const mr::ImageSpan inverted = out.allocate_like(tick, in);
    for (uint32_t y = 0; y < in.height(); ++y)
      for (uint32_t x = 0; x < in.width() * mr::bytes_per_pixel(in.pixel()); ++x)
        inverted.row(y)[x] = static_cast<uint8_t>(in.row(y)[x] + strength * (255 - 2 * in.row(y)[x]));
  }
#ifdef ACME_CUDA
  // On the host: enqueues and returns. The rows are addresses on the device.
  void process(mr::Tick& tick, mr::Cuda& cuda) {
    const mr::ImageView in = video(tick);
    const mr::ImageSpan inverted = out.allocate_like(tick, in);
    const uint32_t row_bytes = in.width() * mr::bytes_per_pixel(in.pixel());
    enqueue_invert(cuda.stream(), {inverted.row(0), inverted.stride()}, {in.row(0), in.stride()}, row_bytes,
                   in.height(), strength);
  }
#endif
};

} // namespace

MILLRACE_HANDLER(Invert, "acme.invert", "Inverts a picture")
MILLRACE_PLUGIN("acme", "0.1.0")
