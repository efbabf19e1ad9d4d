// decode.h264: packets of H.264 become pictures.
#include <optional>

#include "plugins/codec/h264_decoder.h"
#include "plugins/codec/packets.h"
#include "plugins/codec/planned_size.h"
#include "plugins/codec/ycbcr.h"

namespace millrace::codec {
namespace {

constexpr const char* kDecodeH264Manual = &R"(
Each packet with an access unit of H.264 (Annex B) becomes a picture in rgb8 at once, by libavcodec.
The stream may come from encode.h264 or from elsewhere, if it has 8 bits, 4:2:0 and no reordered
pictures. Its own tags say which matrix and range its numbers have; without tags it is BT.709 from
720 rows on, else BT.601.

At the beginning, after a packet that did not come, and after a damaged one it waits for a key
frame: until then its output is empty, and the report counts the pictures as `waited_for_key_frame`.

The plan has memory for pictures of `width_max` x `height_max` pixels. A larger one is an error that
says the size to plan for, and is found before its pixels take memory. A damaged packet is an error
that says what is wrong, and `on_error` decides what follows. An empty packet gives no picture.

    test.pattern count=30 ! encode.h264 ! decode.h264 width_max=640 height_max=480 ! null.sink
)"[1];

class DecodeH264 final : public Handler {
 public:
  DecodeH264() { cost_hint_us(5000); } // 1920 × 1080

  void configure(const Formats& formats) override {
    formats.image(video_, Pixel::rgb8, planned().width_max, planned().height_max).size_kind = MR_DIM_BOUNDED;
    takes_host_memory(h264_decoder_bytes(planned().width_max, planned().height_max));
  }

  void start() override { decoder_.emplace(planned().width_max, planned().height_max); }
  void reset() override {
    if (decoder_) decoder_->reset();
  }
  void drain() override { tell_left_out(); }
  void stop() override { decoder_.reset(); }

  void process(Tick& tick, Cpu&) {
    const PacketView packet = packets_(tick);
    if (packet.bytes.empty()) return;
    require_codec(packet, kH264Code);
    if (packet.value->header.flags & MR_FLAG_DISCONTINUITY) decoder_->reset();
    const std::optional<Picture> decoded = decoder_->decode(packet.bytes);
    if (!decoded) return;
    tell_left_out();
    const ImageSpan picture = video_.allocate(tick, Pixel::rgb8, decoded->width, decoded->height);
    take_over_header(packet, video_.header(tick));
    to_rgb(*decoded, picture.plane(0), picture.stride());
  }

 private:
  static constexpr double kSideMax = 16384; // libavcodec's

  PlannedSize planned() const { return {static_cast<uint32_t>(width_max_), static_cast<uint32_t>(height_max_)}; }

  // Once a wait is over: counting is not free.
  void tell_left_out() {
    const uint64_t left_out = decoder_ ? decoder_->take_left_out() : 0;
    if (left_out > 0) count("waited_for_key_frame", static_cast<int64_t>(left_out));
  }

  Input<Packet> packets_{*this, "packets", help("H.264 of Annex B, one access unit a packet")};
  Output<Image> video_{*this, "video", pixels({Pixel::rgb8})};
  Param<int64_t> width_max_{*this, "width_max", 1920, "of the largest picture", range(1, kSideMax), unit("px")};
  Param<int64_t> height_max_{*this, "height_max", 1080, "of the largest picture", range(1, kSideMax), unit("px")};
  std::optional<H264Decoder> decoder_;
};

MILLRACE_HANDLER(DecodeH264, "decode.h264", "Decodes H.264 packets without delay", kDecodeH264Manual)

} // namespace
} // namespace millrace::codec
