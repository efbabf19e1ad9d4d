// A video decoder that writes its pictures into blocks of the plan.
//
// FFmpeg asks for a picture's memory before it knows when the picture will be shown, writes it from its own threads,
// and later reads pictures that were already given away, as references for others. So blocks are borrowed from a lender
// and go back when FFmpeg releases the picture. A picture is copied if the decoder uses its own memory, if the picture
// has another format, or if the lender has no block left.
#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <string>

#include "plugins/media/av.h"
#include "plugins/media/log.h"
#include "plugins/media/pixel_formats.h"

namespace millrace::media {

// Lends blocks. Called from any thread.
class BlockLender {
 public:
  virtual ~BlockLender() = default;
  // False if there is no block to lend.
  virtual bool borrow(mr_block& block) = 0;
  virtual void give_back(const mr_block& block) = 0;
};

struct DecoderSettings {
  int threads = 0;            // 0: as many as there are cores
  std::string decoder;        // FFmpeg's name; "": the codec's first
  bool crops_exactly = false; // at the left; else FFmpeg may show more columns, see shown_size.h
  bool is_prompt = false;     // no picture waits for the next ones, as it does if each thread decodes one of its own
};

// Frames are taken from one thread. The lender must outlive the decoder and all frames that it gave.
class Decoder {
 public:
  // Throws std::runtime_error, in words, if there is no decoder or it refuses the stream.
  Decoder(const AVStream& stream, const DecoderSettings& settings, Log& log);
  Decoder(const Decoder&) = delete;
  Decoder& operator=(const Decoder&) = delete;
  ~Decoder();

  // From now on the decoder puts pictures of this format and size into blocks of `lender`; null: into FFmpeg's own
  // memory.
  void work_in(BlockLender* lender, Pixel pixel, uint32_t width, uint32_t height);

  // As avcodec_send_packet (null: the end) and avcodec_receive_frame: 0, AVERROR(EAGAIN), AVERROR_EOF or an error.
  int send(const AVPacket* packet) { return avcodec_send_packet(codec_.get(), packet); }
  int receive(AVFrame* frame) { return avcodec_receive_frame(codec_.get(), frame); }
  // Forgets all packets sent so far. Needed after a seek.
  void flush() { avcodec_flush_buffers(codec_.get()); }

  // The block that holds the frame. Each block is returned once, since it can be the value of one tick only. Null if
  // the frame lies elsewhere or its block was returned before, which happens if a stream shows a picture twice.
  const mr_block* block_to_give(const AVFrame& frame);

  const AVCodecContext& codec() const { return *codec_; }
  // The most pictures that the decoder holds at a time: its references and those that its threads work on.
  uint32_t held_max() const;
  // Bytes that a picture of this format takes in a block, with the margin that decoders write beyond its edges.
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
  std::map<const uint8_t*, Lent> lent_; // by the block's first byte
};

} // namespace millrace::media
