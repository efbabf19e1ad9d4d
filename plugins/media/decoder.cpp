// Implements FFmpeg's get_buffer2 with borrowed blocks; see decoder.h.
#include "plugins/media/decoder.h"

extern "C" {
#include <libavutil/imgutils.h>
#include <libavutil/pixdesc.h>
}

#include <algorithm>
#include <stdexcept>
#include <thread>
#include <utility>

namespace millrace::media {

namespace {

// Rows begin at multiples of this, which the widest vector instructions of a decoder and a GPU's loads need. Luma of
// planar formats is aligned to twice that, so that chroma, which is half as wide, is aligned too.
constexpr uint64_t kRowBytes = 64;
// Decoders read and write up to this many bytes beyond a plane's end (avcodec_default_get_buffer2 adds as many).
constexpr uint64_t kPlanePadding = 64 + 16;
// A stream's size is the size of its pictures. The coded size is rounded up to blocks of at most this many pixels.
constexpr int kCodedBlock = 64;

uint64_t aligned(uint64_t bytes, uint64_t unit) { return (bytes + unit - 1) / unit * unit; }

const AVCodec* codec_for(const AVStream& stream, const std::string& name) {
  const AVCodecID id = stream.codecpar->codec_id;
  const AVCodec* codec = name.empty() ? avcodec_find_decoder(id) : avcodec_find_decoder_by_name(name.c_str());
  const std::string words = avcodec_get_name(id);
  if (!codec && name.empty()) throw std::runtime_error("this FFmpeg has no decoder for " + words);
  if (!codec) throw std::runtime_error("this FFmpeg has no decoder '" + name + "'");
  if (codec->id != id) throw std::runtime_error("the decoder '" + name + "' does not read " + words);
  return codec;
}

// The most reference pictures that a stream of this codec needs at a time.
uint32_t references_of(AVCodecID id) {
  switch (id) {
    case AV_CODEC_ID_H264:
    case AV_CODEC_ID_HEVC: return 16;
    case AV_CODEC_ID_VP9:
    case AV_CODEC_ID_AV1: return 8;
    case AV_CODEC_ID_VP8:
    case AV_CODEC_ID_VP7:
    case AV_CODEC_ID_THEORA: return 3;
    default: return 2;
  }
}

} // namespace

Decoder::Decoder(const AVStream& stream, const DecoderSettings& settings, Log& log) : log_(log) {
  const AVCodec* codec = codec_for(stream, settings.decoder);
  codec_.reset(avcodec_alloc_context3(codec));
  if (!codec_ || avcodec_parameters_to_context(codec_.get(), stream.codecpar) < 0) throw std::bad_alloc();
  codec_->opaque = this;
  log_.answer_for(this);
  codec_->pkt_timebase = stream.time_base;
  const unsigned cores = std::max(1u, std::thread::hardware_concurrency());
  codec_->thread_count = settings.threads > 0 ? settings.threads : static_cast<int>(std::min(cores, 16u));
  if (settings.is_prompt) codec_->thread_type = FF_THREAD_SLICE;
  if (settings.crops_exactly) codec_->flags |= AV_CODEC_FLAG_UNALIGNED;
  codec_->get_buffer2 = &Decoder::get_buffer;
#if LIBAVCODEC_VERSION_MAJOR < 60
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"
  codec_->thread_safe_callbacks = 1; // get_buffer() is thread safe; without this, threads wait for one another
#pragma GCC diagnostic pop
#endif
  const int status = avcodec_open2(codec_.get(), codec, nullptr);
  if (status < 0) log_.forget(this);
  if (status < 0)
    throw std::runtime_error("the decoder " + std::string(codec->name) + " refuses it: " + error_words(status));
}

Decoder::~Decoder() {
  codec_.reset(); // its threads may log until they end
  log_.forget(this);
}

void Decoder::work_in(BlockLender* lender, Pixel pixel, uint32_t width, uint32_t height) {
  lender_ = lender;
  pixel_ = pixel;
  width_ = width;
  height_ = height;
}

uint32_t Decoder::held_max() const {
  const bool by_frame = codec_->active_thread_type & FF_THREAD_FRAME;
  const int threads = by_frame ? std::max(codec_->thread_count, 1) : 1;
  // The 2: the picture that is being written, and one that was asked for and is not given yet.
  return references_of(codec_->codec_id) + static_cast<uint32_t>(threads) + 2;
}

uint64_t Decoder::block_bytes(Pixel pixel, uint32_t width, uint32_t height) {
  const auto coded = [](uint32_t shown, int said) {
    return static_cast<int>(aligned(std::max(shown, static_cast<uint32_t>(std::max(said, 0))), kCodedBlock));
  };
  return lay_out(*codec_, av_format_of(pixel), coded(width, codec_->coded_width), coded(height, codec_->coded_height))
      .bytes;
}

// Lays out planes one after another, each padded as the codec asks.
Decoder::Layout Decoder::lay_out(AVCodecContext& codec, AVPixelFormat format, int width, int height) {
  int alignments[AV_NUM_DATA_POINTERS] = {};
  const AVPixelFormat before = codec.pix_fmt; // padding depends on it, and it is not set before the first picture
  codec.pix_fmt = format;
  avcodec_align_dimensions2(&codec, &width, &height, alignments);
  codec.pix_fmt = before;
  Layout layout;
  layout.plane_count = static_cast<uint32_t>(std::clamp(av_pix_fmt_count_planes(format), 0, int{MR_PLANES_MAX}));
  const AVPixFmtDescriptor* described = av_pix_fmt_desc_get(format);
  for (uint32_t p = 0; p < layout.plane_count; ++p) {
    const bool is_first = p == 0;
    const auto rows = static_cast<uint64_t>(is_first ? height : AV_CEIL_RSHIFT(height, described->log2_chroma_h));
    const auto row_bytes =
        static_cast<uint64_t>(std::max(av_image_get_linesize(format, width, static_cast<int>(p)), 0));
    const uint64_t unit = is_first && layout.plane_count > 1 ? 2 * kRowBytes : kRowBytes;
    layout.stride[p] = static_cast<uint32_t>(aligned(row_bytes, unit));
    layout.offset[p] = layout.bytes;
    layout.bytes = aligned(layout.bytes + layout.stride[p] * rows + kPlanePadding, kRowBytes);
  }
  return layout;
}

// Called from any of the decoder's threads. Their contexts are copies of ours, with the same `opaque`.
int Decoder::get_buffer(AVCodecContext* codec, AVFrame* frame, int flags) {
  auto* decoder = static_cast<Decoder*>(codec->opaque);
  if ((codec->codec->capabilities & AV_CODEC_CAP_DR1) && decoder->lend(*codec, *frame)) return 0;
  return avcodec_default_get_buffer2(codec, frame, flags);
}

bool Decoder::lend(AVCodecContext& codec, AVFrame& frame) {
  const auto format = static_cast<AVPixelFormat>(frame.format);
  if (!lender_ || pixel_of(format) != pixel_) return false;
  // The shown picture has the planned size; the coded one may be larger.
  if (static_cast<uint32_t>(codec.width) != width_ || static_cast<uint32_t>(codec.height) != height_) return false;
  const Layout layout = lay_out(codec, format, frame.width, frame.height);
  mr_block block{};
  if (!lender_->borrow(block)) return false;
  if (block.capacity < layout.bytes) {
    lender_->give_back(block);
    return false;
  }
  {
    const std::lock_guard lock(mutex_);
    lent_[block.data] = {block};
  }
  // Read-only, because some decoders (GIF, screen recordings) draw into their last picture. With this flag they take a
  // new block and copy.
  frame.buf[0] = av_buffer_create(block.data, layout.bytes, &Decoder::let_go, this, AV_BUFFER_FLAG_READONLY);
  if (!frame.buf[0]) {
    let_go(this, block.data);
    return false;
  }
  for (uint32_t p = 0; p < layout.plane_count; ++p) {
    frame.data[p] = block.data + layout.offset[p];
    frame.linesize[p] = static_cast<int>(layout.stride[p]);
  }
  frame.extended_data = frame.data;
  return true;
}

// FFmpeg releases a picture: its last reference and ours are gone.
void Decoder::let_go(void* self, uint8_t* data) {
  Decoder& decoder = *static_cast<Decoder*>(self);
  mr_block block{};
  {
    const std::lock_guard lock(decoder.mutex_);
    const auto lent = decoder.lent_.find(data);
    block = lent->second.block;
    decoder.lent_.erase(lent);
  }
  decoder.lender_->give_back(block);
}

const mr_block* Decoder::block_to_give(const AVFrame& frame) {
  const std::lock_guard lock(mutex_);
  const auto lent = frame.buf[0] ? lent_.find(frame.buf[0]->data) : lent_.end();
  if (lent == lent_.end() || std::exchange(lent->second.given, true)) return nullptr;
  return &lent->second.block;
}

} // namespace millrace::media
