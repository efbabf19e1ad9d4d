// A video decoder that works in blocks of the plan.
//
// FFmpeg asks for the memory of each picture before it knows when that will be shown, writes it from threads of its
// own, and reads pictures again that were given away, as references of later ones. So blocks are borrowed from whoever
// lends them and go back when FFmpeg lets go of the picture. A decoder that brings its own memory, a picture of another
// format or a lender that has none left cost a copy.
#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <string>

#include "plugins/media/av.h"
#include "plugins/media/log.h"
#include "plugins/media/pixel_formats.h"

namespace millrace::media {

// Whoever lends blocks; called from any thread.
class BlockLender {
 public:
  virtual ~BlockLender() = default;
  // False where there is none to lend.
  virtual bool borrow(mr_block& block) = 0;
  virtual void give_back(const mr_block& block) = 0;
};

struct DecoderSettings {
  int threads = 0;     // 0: as many as there are cores
  std::string decoder; // FFmpeg's name; "": the codec's first
};

// Frames are taken from one thread. The lender must outlive the decoder and all frames that it gave.
class Decoder {
 public:
  // Throws std::runtime_error, in words, where there is no decoder or it refuses the stream.
  Decoder(const AVStream& stream, const DecoderSettings& settings, Log& log);
  Decoder(const Decoder&) = delete;
  Decoder& operator=(const Decoder&) = delete;
  ~Decoder();

  // From now on pictures of this format and at most this size come in borrowed blocks; null: in FFmpeg's own memory.
  void work_in(BlockLender* lender, Pixel pixel, uint32_t width, uint32_t height);

  // As avcodec_send_packet (null: the end) and avcodec_receive_frame: 0, AVERROR(EAGAIN), AVERROR_EOF or an error.
  int send(const AVPacket* packet) { return avcodec_send_packet(codec_.get(), packet); }
  int receive(AVFrame* frame) { return avcodec_receive_frame(codec_.get(), frame); }
  // After a seek: what was sent is forgotten.
  void flush() { avcodec_flush_buffers(codec_.get()); }

  // The block that the frame lies in, once: a tick's value is one tick's. Null: it lies elsewhere, or was given before,
  // as a picture is that a stream shows twice.
  const mr_block* block_to_give(const AVFrame& frame);

  const AVCodecContext& codec() const { return *codec_; }
  // How many pictures the decoder may hold at a time: its references and what its threads work on.
  uint32_t held_max() const;
  // Bytes that a picture of this format takes in a block, with what decoders write beyond its edges.
  uint64_t block_bytes(Pixel pixel, uint32_t width, uint32_t height);

 private:
  struct Layout {
    uint64_t offset[MR_PLANES_MAX] = {};
    uint32_t stride[MR_PLANES_MAX] = {};
    uint32_t plane_count = 0;
    uint64_t bytes = 0;
  };

  static int get_buffer(AVCodecContext* codec, AVFrame* frame, int flags);
  static void let_go(void* decoder, uint8_t* data);
  static Layout lay_out(AVCodecContext& codec, AVPixelFormat format, int width, int height);
  bool lend(AVCodecContext& codec, AVFrame& frame);

  Log& log_;
  Codec codec_;
  BlockLender* lender_ = nullptr;
  Pixel pixel_ = Pixel::none;
  uint32_t width_ = 0, height_ = 0;
  std::mutex mutex_;
  struct Lent {
    mr_block block;
    bool given = false;
  };
  std::map<const uint8_t*, Lent> lent_; // by the first byte
};

} // namespace millrace::media
