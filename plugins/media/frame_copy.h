// Copies a frame of FFmpeg's into a picture of the plan, for decoders that could not write there themselves.
#pragma once

#include "millrace/handler.h"
#include "plugins/media/av.h"

namespace millrace::media {

// Copies, or converts if the formats differ. Not thread safe.
class FrameCopier {
 public:
  // The frame has the picture's width and height. Throws std::runtime_error if libswscale cannot convert it.
  void copy(const AVFrame& frame, const ImageSpan& picture);

 private:
  Scaler scaler_;
  int from_ = AV_PIX_FMT_NONE, width_ = 0, height_ = 0, range_ = 0;
};

} // namespace millrace::media
