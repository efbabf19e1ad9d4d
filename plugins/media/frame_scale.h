// Scales a frame of FFmpeg's into a picture of another size, for films whose pictures change their size.
#pragma once

#include "millrace/handler.h"
#include "plugins/media/av.h"
#include "plugins/media/pixel_formats.h"

namespace millrace::media {

// A part of a picture, in pixels. Its corners are even, so that it covers whole samples of chroma.
struct FittedPart {
  int x = 0, y = 0, width = 0, height = 0;
};

// The largest part in the middle of a target in which a picture keeps its proportions as they are shown. The shapes of
// the pixels count.
FittedPart fitted_part(int width, int height, const Meaning& shape, int target_width, int target_height,
                       const Meaning& target_shape);

// Not thread safe.
class FrameScaler {
 public:
  // `fits`: keeps the proportions and makes the rest black, or transparent if the picture has alpha; else the frame
  // fills the picture. The numbers keep the frame's matrix and range. Throws std::runtime_error if libswscale cannot do
  // it.
  void scale(const AVFrame& frame, const Meaning& shape, const ImageSpan& picture, const Meaning& target_shape,
             bool fits);

 private:
  Scaler scaler_;
  Frame part_; // libswscale may write beyond the part that it fills
};

} // namespace millrace::media
