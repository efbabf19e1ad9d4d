// decode.jpeg: JPEG packets become pictures.
#include <optional>

#include "plugins/codec/jpeg_decoder.h"
#include "plugins/codec/packets.h"
#include "plugins/codec/planned_size.h"

namespace millrace::codec {
namespace {

constexpr const char* kDecodeJpegManual = &R"(
Each packet with a JPEG picture becomes a picture in rgb8, by libjpeg-turbo. The packet may come
from encode.jpeg or from elsewhere; baseline and progressive, gray and colour are read.

The plan has memory for pictures of `width_max` x `height_max` pixels. A larger one is an error that
says the size to plan for, and is found before its pixels take memory. A packet that is damaged or
no JPEG is an error that says what is wrong, and `on_error` decides what follows. An empty packet
gives no picture.

    test.pattern count=30 ! encode.jpeg ! decode.jpeg width_max=640 height_max=480 ! null.sink
)"[1];

class DecodeJpeg final : public Handler {
 public:
  DecodeJpeg() {
    stateless();
    cost_hint_us(4000); // 1920 × 1080
  }

  void configure(const Formats& formats) override {
    formats.image(video_, Pixel::rgb8, planned().width_max, planned().height_max).size_kind = MR_DIM_BOUNDED;
  }

  void start() override { decoder_.emplace(); }
  void stop() override { decoder_.reset(); }

  void process(Tick& tick, Cpu&) {
    const PacketView packet = packets_(tick);
    if (packet.bytes.empty()) return;
    require_codec(packet, kJpegCode);
    const JpegDecoder::Size size = decoder_->size_of(packet.bytes);
    require_planned(size.width, size.height, planned());
    const ImageSpan picture = video_.allocate(tick, Pixel::rgb8, size.width, size.height);
    take_over_header(packet, video_.header(tick));
    decoder_->decode(packet.bytes, size, picture.plane(0), picture.stride());
  }

 private:
  static constexpr double kSideMax = 65500; // libjpeg's

  PlannedSize planned() const { return {static_cast<uint32_t>(width_max_), static_cast<uint32_t>(height_max_)}; }

  Input<Packet> packets_{*this, "packets", help("JPEG, one picture a packet")};
  Output<Image> video_{*this, "video", pixels({Pixel::rgb8})};
  Param<int64_t> width_max_{*this, "width_max", 1920, "of the largest picture", range(1, kSideMax), unit("px")};
  Param<int64_t> height_max_{*this, "height_max", 1080, "of the largest picture", range(1, kSideMax), unit("px")};
  std::optional<JpegDecoder> decoder_;
};

MILLRACE_HANDLER(DecodeJpeg, "decode.jpeg", "Decodes JPEG packets", kDecodeJpegManual)

} // namespace
} // namespace millrace::codec
