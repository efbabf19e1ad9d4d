// Makes frames for an encoder: lends the picture's memory if the encoder copies at once, else copies, repacks or
// converts.
#pragma once

#include "millrace/handler.h"
#include "plugins/media/av.h"
#include "plugins/media/pixel_formats.h"

namespace millrace::media {

struct BufferPoolDeleter {
  void operator()(AVBufferPool* pool) const { av_buffer_pool_uninit(&pool); }
};

// True for YCbCr, the formats whose numbers have a matrix and a range.
bool has_matrix(AVPixelFormat format);

// The meaning of a picture's numbers after conversion from `source` to `target`. YCbCr keeps its matrix and range.
// YCbCr made from RGB gets limited range and the matrix that players assume for `height` rows. `is_jpeg`: matrix bt601
// and full range, as JPEG has no other.
Meaning encoded_meaning(const Meaning& picture, Pixel source, AVPixelFormat target, int height, bool is_jpeg);

class FrameMaker {
 public:
  // Makes frames of `target` with the given meaning. `may_lend`: the encoder releases a picture before it returns
  // (copies_at_once).
  FrameMaker(AVPixelFormat target, bool may_lend, const Meaning& meaning);

  // The picture as a frame. If is_lent(), the frame uses the picture's memory and must not outlive the picture. Throws
  // std::invalid_argument if the picture cannot be converted.
  AVFrame* lend(const ImageView& picture);
  // The same, in memory of its own.
  AVFrame* copy(const ImageView& picture);
  bool is_lent() const { return lent_; }

  // Ends the use of the frame. Throws std::logic_error if the encoder still holds lent memory.
  void release();

  // The number of pictures whose numbers libswscale has changed.
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

// Repacks 10 bits in the high bits of 16 and interleaved chroma into 10 bits in the low bits and three planes.
void repack_p010(const ImageView& picture, AVFrame& target);
// Repacks interleaved chroma into three planes.
void repack_nv12(const ImageView& picture, AVFrame& target);

} // namespace millrace::media
