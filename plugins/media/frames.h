// Pictures as an encoder wants them: lent where it copies at once, else copied, repacked or converted.
#pragma once

#include "millrace/handler.h"
#include "plugins/media/av.h"
#include "plugins/media/pixel_formats.h"

namespace millrace::media {

struct BufferPoolDeleter {
  void operator()(AVBufferPool* pool) const { av_buffer_pool_uninit(&pool); }
};

// True of YCbCr: formats whose numbers have a matrix and a range.
bool has_matrix(AVPixelFormat format);

// What the numbers of a picture of `source` mean once they are in `target`. YCbCr keeps its matrix and range, made of
// RGB it gets the matrix that players take for so many rows, in limited range. `is_jpeg`: the matrix is bt601 and the
// range full, as JPEG has no other.
Meaning encoded_meaning(const Meaning& picture, Pixel source, AVPixelFormat target, int height, bool is_jpeg);

class FrameMaker {
 public:
  // Frames of `target` whose numbers mean `meaning`. `may_lend`: the encoder has let go of a picture when it returns
  // (copies_at_once).
  FrameMaker(AVPixelFormat target, bool may_lend, const Meaning& meaning);

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
  bool keeps_numbers(const ImageView& picture) const;
  void convert(const ImageView& picture, AVPixelFormat source);

  AVPixelFormat target_;
  bool may_lend_, lent_ = false;
  Meaning meaning_;
  Frame frame_;
  std::unique_ptr<AVBufferPool, BufferPoolDeleter> pool_;
  size_t pool_bytes_ = 0;
  Scaler scaler_;
  int64_t converted_ = 0;
};

// 10 bits in the high bits of 16, chroma interleaved, into 10 bits in the low bits, three planes.
void repack_p010(const ImageView& picture, AVFrame& target);
// Chroma interleaved into three planes.
void repack_nv12(const ImageView& picture, AVFrame& target);

} // namespace millrace::media
