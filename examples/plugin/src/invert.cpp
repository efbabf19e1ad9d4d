// acme.invert: inverts a picture, as far as one likes.
#include <millrace/handler.h>

namespace mr = millrace;

namespace {

struct Invert final : mr::Handler {
  mr::Input<mr::Image> video{*this, "video", mr::pixels({mr::Pixel::gray8, mr::Pixel::rgb8, mr::Pixel::bgr8})};
  mr::Output<mr::Image> out{*this, "video", mr::like(video)};
  mr::Param<float> strength{*this, "strength", 1.0f, "0 leaves the picture, 1 inverts it", mr::range(0, 1), mr::live};

  void process(mr::Tick& tick, mr::Cpu&) {
    const mr::ImageView in = video(tick);
    const mr::ImageSpan inverted = out.allocate_like(tick, in);
    for (uint32_t y = 0; y < in.height(); ++y)
      for (uint32_t x = 0; x < in.width() * mr::bytes_per_pixel(in.pixel()); ++x)
        inverted.row(y)[x] = static_cast<uint8_t>(in.row(y)[x] + strength * (255 - 2 * in.row(y)[x]));
  }
};

} // namespace

MILLRACE_HANDLER(Invert, "acme.invert", "Inverts a picture")
MILLRACE_PLUGIN("acme", "0.1.0")
