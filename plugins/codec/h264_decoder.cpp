// Gives libavcodec the units that it can decode, and looks at what comes back; see h264_decoder.h.
#include "plugins/codec/h264_decoder.h"

extern "C" {
#include <libavutil/pixdesc.h>
}

#include <cstring>
#include <limits>
#include <stdexcept>
#include <string>

#include "plugins/codec/planned_size.h"

namespace millrace::codec {

namespace {

// libavcodec rounds sides up to macroblocks, in pairs of rows if pictures are interlaced, and to its vectors.
constexpr uint64_t kHeldStep = 128;
// H.264 keeps at most 16 pictures, beside the one that is decoded and the one that was given out.
constexpr uint64_t kPicturesHeld = 18;
// Players take BT.709 from this many rows on if a stream does not say its matrix, and BT.601 below.
constexpr uint32_t kHdRows = 720;

uint64_t held_pixels(uint32_t width, uint32_t height) {
  const auto held = [](uint64_t side) { return (side + kHeldStep - 1) / kHeldStep * kHeldStep + kHeldStep; };
  return held(width) * held(height);
}

uint32_t matrix_in(const AVFrame& frame) {
  switch (number_of(frame.colorspace)) {
    case AVCOL_SPC_BT709: return MR_COLOR_BT709;
    case AVCOL_SPC_BT470BG:
    case AVCOL_SPC_SMPTE170M: return MR_COLOR_BT601;
    case AVCOL_SPC_BT2020_NCL: return MR_COLOR_BT2020;
    default: return static_cast<uint32_t>(frame.height) >= kHdRows ? MR_COLOR_BT709 : MR_COLOR_BT601;
  }
}

[[noreturn]] void refuse_unit(std::span<const uint8_t> unit, const std::string& words) {
  throw std::runtime_error("an H.264 access unit of " + std::to_string(unit.size()) +
                           " bytes cannot be decoded: " + words);
}

} // namespace

uint64_t h264_decoder_bytes(uint32_t width_max, uint32_t height_max) {
  return held_pixels(width_max, height_max) * 3 / 2 * kPicturesHeld;
}

H264Decoder::H264Decoder(uint32_t width_max, uint32_t height_max)
    : width_max_(width_max), height_max_(height_max), frame_(fresh_frame()), packet_(fresh_packet()) {
  open();
}

void H264Decoder::open() {
  const AVCodec* library = avcodec_find_decoder(AV_CODEC_ID_H264);
  if (!library)
    throw std::runtime_error("this machine's libavcodec was built without its decoder for H.264; install one with it");
  CodecContext codec = fresh_context(library);
  codec->flags |= AV_CODEC_FLAG_LOW_DELAY;
  codec->err_recognition |= AV_EF_EXPLODE;
  codec->thread_count = 1; // threads that work on several pictures give each one late
  codec->max_pixels = static_cast<int64_t>(held_pixels(width_max_, height_max_));
  if (const int opened = avcodec_open2(codec.get(), library, nullptr); opened < 0)
    throw std::runtime_error("libavcodec's decoder for H.264 cannot begin: " + av_words(opened));
  codec_ = std::move(codec);
  is_damaged_ = false;
}

void H264Decoder::reset() {
  open();
  units_ = {};
  waits_ = true;
}

std::optional<Picture> H264Decoder::decode(std::span<const uint8_t> unit) {
  av_frame_unref(frame_.get());
  try {
    const UnitFacts facts = units_.read(unit);
    if (facts.is_orphan) waits_ = true;
    if (facts.has_picture && waits_ && !facts.is_key) {
      ++left_out_;
      return {};
    }
    if (facts.has_picture) require_planned(facts.width, facts.height, {width_max_, height_max_});
    // Damage may leave libavcodec with a delay that a flush does not end. A key frame with its parameter sets needs
    // nothing of before.
    const bool may_be_late = is_damaged_ || codec_->has_b_frames > 0;
    if (may_be_late && facts.is_key && facts.has_sequence_set && facts.has_picture_set) open();
    const std::optional<Picture> picture = decode_unit(unit, facts.has_picture);
    if (facts.has_picture) waits_ = false;
    return picture;
  } catch (...) {
    waits_ = is_damaged_ = true;
    avcodec_flush_buffers(codec_.get()); // it keeps the parameter sets
    throw;
  }
}

std::optional<Picture> H264Decoder::decode_unit(std::span<const uint8_t> unit, bool has_picture) {
  if (unit.size() > static_cast<size_t>(std::numeric_limits<int>::max() - AV_INPUT_BUFFER_PADDING_SIZE))
    refuse_unit(unit, "it is too long");
  if (av_new_packet(packet_.get(), static_cast<int>(unit.size())) < 0) throw std::bad_alloc();
  std::memcpy(packet_->data, unit.data(), unit.size());
  int status = avcodec_send_packet(codec_.get(), packet_.get());
  av_packet_unref(packet_.get());
  if (status < 0 && !has_picture) return {}; // libavcodec takes parameter sets, and then says that there is no picture
  if (status >= 0) status = avcodec_receive_frame(codec_.get(), frame_.get());
  if (status == AVERROR(EAGAIN)) {
    if (has_picture) refuse_unit(unit, "it gives no picture at once, as in a stream of reordered pictures");
    return {};
  }
  if (status < 0) refuse_unit(unit, av_words(status));
  if (frame_->decode_error_flags != 0) refuse_unit(unit, "parts of its picture are missing or damaged");
  const Picture picture = picture_in_frame();
  if (picture.pixel == Pixel::none) {
    const char* name = av_get_pix_fmt_name(static_cast<AVPixelFormat>(frame_->format));
    refuse_unit(unit, "its pictures have the format " + std::string(name ? name : "?") +
                          "; only "
                          "8 bits with 4:2:0 chroma are decoded");
  }
  require_planned(picture.width, picture.height, {width_max_, height_max_}); // libavcodec has the last word
  return picture;
}

Picture H264Decoder::picture_in_frame() const {
  Picture picture;
  switch (frame_->format) {
    case AV_PIX_FMT_YUV420P:
    case AV_PIX_FMT_YUVJ420P: picture.pixel = Pixel::i420; break;
    default: return picture;
  }
  picture.width = static_cast<uint32_t>(frame_->width);
  picture.height = static_cast<uint32_t>(frame_->height);
  const bool is_full = frame_->format == AV_PIX_FMT_YUVJ420P || number_of(frame_->color_range) == AVCOL_RANGE_JPEG;
  picture.range = is_full ? MR_RANGE_FULL : MR_RANGE_LIMITED;
  picture.color = matrix_in(*frame_);
  for (size_t p = 0; p < picture.planes.size() && frame_->data[p]; ++p) {
    picture.planes[p] = frame_->data[p];
    picture.strides[p] = static_cast<size_t>(frame_->linesize[p]);
  }
  return picture;
}

} // namespace millrace::codec
