// Sets x264 up for a stream without delay, and gives it one picture at a time; see h264_encoder.h.
#include "plugins/codec/h264_encoder.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <stdexcept>
#include <string>

#include "plugins/codec/av.h"
#include "plugins/codec/ycbcr.h"

namespace millrace::codec {

namespace {

constexpr uint32_t kH264SideMax = 16384; // x264 takes no larger ones
constexpr int kNever = 1 << 30;          // x264's X264_KEYINT_MAX_INFINITE
constexpr int64_t kBuffersASecond = 2;   // the rate's buffer holds half a second
constexpr int kRateUnit = 1000;          // the rate of pictures is rounded to 1/1000 a second
// The finest quantiser. Finer ones cost bits that nobody sees, and noise would take more than twice its own size.
constexpr int kQuantiserMin = 8;
// A macroblock has 384 samples. Of black and white noise x264 made 639 bytes each with that quantiser.
constexpr uint64_t kMacroblockBytesMax = 768;
constexpr uint64_t kHeaderBytes = 4096; // parameter sets, x264's note on itself and headers of slices
constexpr std::array kPresets = {"ultrafast", "superfast", "veryfast", "faster",  "fast",
                                 "medium",    "slow",      "slower",   "veryslow"};

const AVCodec* x264() { return avcodec_find_encoder_by_name("libx264"); }

std::string why_no_x264() {
  if (x264()) return "";
  return "the encoder h264 is not there, because this machine's libavcodec was built without libx264; install one with "
         "it";
}

void require_h264_settings(const EncoderSettings& settings) {
  const auto refuse = [](const std::string& words) { throw std::invalid_argument("the encoder h264 takes " + words); };
  if (settings.bit_rate < kBitRateMin || settings.bit_rate > kBitRateMax)
    refuse("a bit rate from 16,000 to 1,000,000,000 bits a second, not " + std::to_string(settings.bit_rate));
  if (!(settings.fps >= kFpsMin && settings.fps <= kFpsMax)) refuse("from 0.1 to 1000 pictures a second");
  if (settings.threads < 1 || settings.threads > kThreadsMax)
    refuse("from 1 to 64 threads, not " + std::to_string(settings.threads));
  if (settings.key_interval < 0 || settings.key_interval > kNever)
    refuse("an interval of key frames from 0 to 2^30 pictures, not " + std::to_string(settings.key_interval));
  if (std::find(kPresets.begin(), kPresets.end(), settings.preset) == kPresets.end())
    refuse("a preset from ultrafast to veryslow, not '" + settings.preset + "'");
}

int even_side(uint32_t side) { return static_cast<int>(side + side % 2); }

uint64_t h264_bytes_max(uint32_t width, uint32_t height, const EncoderSettings&) {
  const uint64_t blocks = (uint64_t{width} + 15) / 16 * ((uint64_t{height} + 15) / 16);
  return blocks * kMacroblockBytesMax + kHeaderBytes;
}

void set_bit_rate(AVCodecContext& codec, int64_t bit_rate) {
  codec.bit_rate = bit_rate;
  codec.rc_max_rate = bit_rate;
  codec.rc_buffer_size = static_cast<int>(bit_rate / kBuffersASecond);
}

class H264Encoder final : public Encoder {
 public:
  explicit H264Encoder(const EncoderSettings& settings) : packet_(fresh_packet()) {
    require_h264_settings(settings);
    settings_ = settings;
  }

  void change(const EncoderSettings& settings) override {
    require_h264_settings(settings);
    EncoderSettings same_stream = settings;
    same_stream.bit_rate = settings_.bit_rate;
    same_stream.quality = settings_.quality;
    same_stream.subsampling = settings_.subsampling;
    if (!(same_stream == settings_)) codec_.reset();
    settings_ = settings;
    if (codec_) set_bit_rate(*codec_, settings_.bit_rate); // x264 is told with the next picture
  }

  void ask_key() override { key_is_asked_ = true; }

  bool encode(const Picture& picture, std::vector<uint8_t>& unit) override {
    unit.clear();
    require_encodable(picture, "h264", kH264SideMax);
    if (codec_ && (codec_->width != even_side(picture.width) || codec_->height != even_side(picture.height)))
      codec_.reset();
    if (!codec_) open(picture.width, picture.height);
    try {
      return encode_opened(picture, unit);
    } catch (...) {
      codec_.reset();
      unit.clear();
      throw;
    }
  }

 private:
  void open(uint32_t width, uint32_t height) {
    if (const std::string why = why_no_x264(); !why.empty()) throw std::runtime_error(why);
    CodecContext codec = fresh_context(x264());
    codec->width = even_side(width);
    codec->height = even_side(height);
    codec->pix_fmt = AV_PIX_FMT_YUV420P;
    codec->colorspace = AVCOL_SPC_BT709;
    codec->color_primaries = AVCOL_PRI_BT709;
    codec->color_trc = AVCOL_TRC_BT709;
    codec->color_range = AVCOL_RANGE_MPEG;
    codec->chroma_sample_location = AVCHROMA_LOC_CENTER; // the mean of a block
    codec->framerate = {static_cast<int>(std::lround(settings_.fps * kRateUnit)), kRateUnit};
    codec->time_base = av_inv_q(codec->framerate);
    codec->gop_size = settings_.key_interval > 0 ? static_cast<int>(settings_.key_interval) : kNever;
    codec->max_b_frames = 0;
    codec->qmin = kQuantiserMin;
    codec->thread_count = static_cast<int>(settings_.threads);
    set_bit_rate(*codec, settings_.bit_rate);
    void* options = codec->priv_data;
    const bool is_set = av_opt_set(options, "preset", settings_.preset.c_str(), 0) >= 0 &&
                        av_opt_set(options, "tune", "zerolatency", 0) >= 0 &&
                        av_opt_set(options, "forced-idr", "1", 0) >= 0 &&
                        av_opt_set(options, "sc_threshold", "0", 0) >= 0; // a cut makes no key frame that nobody asked
    const int opened = is_set ? avcodec_open2(codec.get(), nullptr, nullptr) : AVERROR_OPTION_NOT_FOUND;
    if (opened < 0)
      throw std::runtime_error("libx264 cannot begin with pictures of " + std::to_string(codec->width) + " × " +
                               std::to_string(codec->height) + " pixels: " + av_words(opened));
    frame_ = fresh_frame();
    frame_->format = codec->pix_fmt;
    frame_->width = codec->width;
    frame_->height = codec->height;
    if (av_frame_get_buffer(frame_.get(), 0) < 0) throw std::bad_alloc();
    next_pts_ = 0;
    codec_ = std::move(codec);
  }

  bool encode_opened(const Picture& picture, std::vector<uint8_t>& unit) {
    if (av_frame_make_writable(frame_.get()) < 0) throw std::bad_alloc();
    to_i420(picture, {frame_->data[0], frame_->data[1], frame_->data[2], static_cast<size_t>(frame_->linesize[0]),
                      static_cast<size_t>(frame_->linesize[1]), static_cast<size_t>(frame_->linesize[2])});
    frame_->pts = next_pts_++;
    frame_->pict_type = key_is_asked_ ? AV_PICTURE_TYPE_I : AV_PICTURE_TYPE_NONE;
    int status = avcodec_send_frame(codec_.get(), frame_.get());
    if (status >= 0) status = avcodec_receive_packet(codec_.get(), packet_.get());
    if (status < 0)
      throw std::runtime_error("libx264 cannot encode a picture of " + std::to_string(picture.width) + " × " +
                               std::to_string(picture.height) + " pixels: " + av_words(status));
    const auto bytes = static_cast<uint64_t>(packet_->size);
    const uint64_t bytes_max = h264_bytes_max(picture.width, picture.height, settings_);
    const bool is_key = packet_->flags & AV_PKT_FLAG_KEY;
    if (bytes <= bytes_max) unit.assign(packet_->data, packet_->data + bytes);
    av_packet_unref(packet_.get());
    if (bytes > bytes_max)
      throw std::runtime_error("libx264 made " + std::to_string(bytes) + " bytes of a picture of " +
                               std::to_string(picture.width) + " × " + std::to_string(picture.height) +
                               " pixels; at most " + std::to_string(bytes_max) + " were planned");
    key_is_asked_ = false;
    return is_key;
  }

  EncoderSettings settings_;
  CodecContext codec_; // null: the next picture begins a stream
  Frame frame_;        // has the codec's size; x264 copies it at once
  AvPacket packet_;
  int64_t next_pts_ = 0;
  bool key_is_asked_ = false;
};

std::unique_ptr<Encoder> make_h264(const EncoderSettings& settings) {
  if (const std::string why = why_no_x264(); !why.empty()) throw std::runtime_error(why);
  return std::make_unique<H264Encoder>(settings);
}

} // namespace

const EncoderType kH264Type = {"h264",      kH264Code, kH264SideMax,  "libx264 of libavcodec",
                               why_no_x264, make_h264, h264_bytes_max};

} // namespace millrace::codec
