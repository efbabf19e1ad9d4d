// encode.h264: pictures become a stream of H.264 without delay.
#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "plugins/codec/h264_encoder.h"
#include "plugins/codec/packets.h"

namespace millrace::codec {
namespace {

constexpr const char* kEncodeH264Manual = &R"(
Each picture becomes a packet with one access unit of H.264 at once, by x264. Units have the form of
Annex B and carry the codec `H264`. A key frame has its parameter sets with it, so a reader can
begin there. It comes at the beginning, every `key_interval` pictures, after a pause for which the
stream began anew, and when the pictures change their size.

`bit_rate` may change while it runs. The bits are shared out over pictures by `fps`, and a buffer of
half a second bounds them. A slower `preset` makes better pictures of the same bits.

The colours are BT.709, limited range, and the stream says so; 4:2:0, so that each 2x2 block has one
colour, the mean of its pixels. Nv12 and i420 of another matrix or range are converted. The last
column of an odd width and the last row of an odd height are repeated: decoded pictures have even
sizes. A packet's memory is planned as twice the picture's in 4:2:0.

    test.pattern count=30 ! encode.h264 bit_rate=2000000 ! decode.h264 ! null.sink
)"[1];

class EncodeH264 final : public Handler {
 public:
  EncodeH264() { cost_hint_us(12000); } // 1920 × 1080 in rgb8, one thread

  static void offers(Offers& offers) {
    const std::string why = kH264Type.why_missing();
    offers.add("encoders", "h264", why.empty() ? kH264Type.library : why);
  }

  void configure(const Formats& formats) override {
    const Format& in = formats.in(video_);
    plan_packets(kH264Type, settings(), in, formats.out(packets_));
    takes_host_memory(uint64_t{in.width} * in.height * (*preset_ == "ultrafast" ? kBytesAPixel : kBytesAPixelSlower));
  }

  void start() override { encoder_ = kH264Type.make(settings()); }
  void reset() override {
    if (encoder_) encoder_ = kH264Type.make(settings());
  }
  void stop() override { encoder_.reset(); }

  void process(Tick& tick, Cpu&) {
    const ImageView picture = video_(tick);
    if (picture.width() == 0) return; // an empty value
    encoder_->change(settings());
    if (picture.header().flags & MR_FLAG_DISCONTINUITY) encoder_->ask_key();
    const bool is_key = encoder_->encode(picture_of(picture), unit_);
    publish_unit(tick, packets_, unit_, kH264Code, is_key, picture);
  }

 private:
  // Measured of x264 at 1920 × 1080 with 8 threads: 25 with ultrafast, 45 with medium.
  static constexpr uint64_t kBytesAPixel = 26, kBytesAPixelSlower = 48;

  EncoderSettings settings() const {
    EncoderSettings settings;
    settings.bit_rate = bit_rate_;
    settings.fps = fps_;
    settings.key_interval = key_interval_;
    settings.preset = *preset_;
    settings.threads = std::max<int64_t>(1, threads_);
    return settings;
  }

  Input<Image> video_{*this, "video", encodable()};
  Output<Packet> packets_{*this, "packets", help("H.264 of Annex B, one access unit a packet")};
  Param<int64_t> bit_rate_{
      *this,         "bit_rate", 4'000'000, "how much the stream may have", range(kBitRateMin, kBitRateMax),
      unit("bit/s"), live};
  Param<double> fps_{
      *this, "fps", 30, "pictures a second, by which the bits are shared out", range(kFpsMin, kFpsMax), unit("1/s")};
  Param<int64_t> key_interval_{*this, "key_interval", 60,
                               "pictures from one key frame to the next at most; 0: only at the beginning",
                               range(0, 1'000'000)};
  Param<std::string> preset_{*this, "preset", "ultrafast", "speed against the quality of the same bits",
                             choices({"ultrafast", "superfast", "veryfast", "faster", "fast", "medium"})};
  Param<int64_t> threads_{
      *this, "threads", 0, "encode one picture; 0: a share of the run's", range(0, kThreadsMax), counts_threads};
  std::unique_ptr<Encoder> encoder_;
  std::vector<uint8_t> unit_;
};

MILLRACE_HANDLER(EncodeH264, "encode.h264", "Encodes pictures as a stream of H.264 without delay", kEncodeH264Manual)

} // namespace
} // namespace millrace::codec
