// Pictures as an encoder wants them: lent where it copies at once, else copied, repacked or converted.
#pragma once

#include "millrace/handler.h"
#include "plugins/media/av.h"
#include "plugins/media/pixel_formats.h"

namespace millrace::media {

struct BufferPoolDeleter {
  void operator()(AVBufferPool* pool) const { av_buffer_pool_uninit(&pool); }
};

class FrameMaker {
 public:
  // Frames of `target`. `may_lend`: the encoder has let go of a picture when it returns (copies_at_once).
  // `full_range`: the encoder takes YCbCr of full range only.
  FrameMaker(AVPixelFormat target, bool may_lend, bool full_range);

  // The picture as a frame. Where it is_lent(), its memory is the picture's own and the frame must not outlive it.
  // Throws std::invalid_argument for what cannot be converted.
  AVFrame* lend(const ImageView& picture);
  // The same in memory of the frame's own.
  AVFrame* copy(const ImageView& picture);
  bool is_lent() const { return lent_; }

  // Ends the use of the frame. Throws std::logic_error where somebody still holds lent memory.
  void release();

  // Pictures whose numbers were changed, by libswscale.
  int64_t converted() const { return converted_; }

 private:
  AVFrame* fresh(int width, int height);
  void convert(const ImageView& picture, AVPixelFormat source);

  AVPixelFormat target_;
  bool may_lend_, full_range_, lent_ = false;
  Frame frame_;
  std::unique_ptr<AVBufferPool, BufferPoolDeleter> pool_;
  size_t pool_bytes_ = 0;
  Scaler scaler_;
  int64_t converted_ = 0;
};

// 10 bits in the high bits of 16, chroma interleaved, into 10 bits in the low bits, three planes.
void repack_p010(const ImageView& picture, AVFrame& target);

} // namespace millrace::media
