// encode.jpeg: pictures become JPEG packets.
#include <memory>
#include <string>
#include <vector>

#include "plugins/codec/jpeg_encoder.h"
#include "plugins/codec/packets.h"

namespace millrace::codec {
namespace {

constexpr const char* kEncodeJpegManual = &R"(
Each picture becomes a packet with one JPEG picture (JFIF), by libjpeg-turbo. A packet is a key
frame and carries the codec `JPEG`.

`quality` goes from 1, the smallest packets, to 100, and may change while it runs. `subsampling`
says how much colour is kept: 4:2:0 has one colour for each 2x2 block, 4:4:4 has all of them. Gray
pictures stay gray.

The colours are those of JFIF: BT.601, full range. Nv12 and i420 of whatever matrix and range are
converted to RGB first. Alpha is dropped. All sizes are kept, also odd ones, up to 65500 pixels a
side. A packet's memory is planned by the largest that libjpeg-turbo may make, about twice the
picture.

    test.pattern count=30 ! encode.jpeg quality=80 ! decode.jpeg width_max=1280 ! null.sink
)"[1];

class EncodeJpeg final : public Handler {
 public:
  EncodeJpeg() {
    stateless();
    cost_hint_us(4000); // 1920 × 1080 in rgb8
  }

  static void offers(Offers& offers) { offers.add("encoders", "jpeg", kJpegType.library); }

  void configure(const Formats& formats) override {
    plan_packets(kJpegType, settings(), formats.in(video_), formats.out(packets_));
    const Format& in = formats.in(video_);
    constexpr uint64_t kRgbBytes = 3; // a pixel of YCbCr, which is converted
    takes_host_memory(formats.out(packets_).bytes_max + uint64_t{in.width} * in.height * kRgbBytes);
  }

  void start() override { encoder_ = kJpegType.make(settings()); }
  void stop() override { encoder_.reset(); }

  void process(Tick& tick, Cpu&) {
    const ImageView picture = video_(tick);
    if (picture.width() == 0) return; // an empty value
    encoder_->change(settings());
    const bool is_key = encoder_->encode(picture_of(picture), unit_);
    publish_unit(tick, packets_, unit_, kJpegCode, is_key, picture);
  }

 private:
  EncoderSettings settings() const {
    EncoderSettings settings;
    settings.quality = static_cast<int>(quality_);
    settings.subsampling = *subsampling_ == "444" ? Subsampling::none_444 : Subsampling::both_420;
    return settings;
  }

  Input<Image> video_{*this, "video", encodable()};
  Output<Packet> packets_{*this, "packets", help("JPEG, one picture a packet")};
  Param<int64_t> quality_{
      *this, "quality", 75, "1: the smallest packets; 100: the best", range(kQualityMin, kQualityMax), live};
  Param<std::string> subsampling_{*this, "subsampling", "420", "colour for each 2x2 block, or for each pixel",
                                  choices({"420", "444"})};
  std::unique_ptr<Encoder> encoder_;
  std::vector<uint8_t> unit_;
};

MILLRACE_HANDLER(EncodeJpeg, "encode.jpeg", "Encodes pictures as JPEG packets", kEncodeJpegManual)

} // namespace
} // namespace millrace::codec
