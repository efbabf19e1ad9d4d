// What the handlers that make tensors of pictures have in common: their pictures, and the parameters that say what the
// tensor's numbers are.
#pragma once

#include <millrace/handler.h>

#include <string>

#include "handlers/image/to_tensor.h"

namespace millrace::handlers {

inline Pixels tensor_sources() {
  return pixels(
      {Pixel::gray8, Pixel::rgb8, Pixel::bgr8, Pixel::rgba8, Pixel::bgra8, Pixel::nv12, Pixel::i420, Pixel::p010});
}

struct [[gnu::visibility("hidden")]] TensorParams { // as its members are
  explicit TensorParams(Handler & owner)
      : dtype(owner, "dtype", "f32", "half or single precision", choices({"f16", "f32"})),
        layout(owner, "layout", "nchw", "channel after channel, or pixel after pixel", choices({"nchw", "nhwc"})),
        order(owner, "order", "rgb", "of the channels", choices({"rgb", "bgr"})),
        mean(owner, "mean", "0", "what is taken off red, green and blue of 0 to 1; one number for all"),
        deviation(owner, "std", "1", "what they are divided by then; one number for all") {}

  // But for its size. Throws std::invalid_argument where the numbers are none.
  TensorForm form() const { return tensor_form({*dtype, *layout, *order, *mean, *deviation}); }

  Param<std::string> dtype, layout, order, mean, deviation;
};

} // namespace millrace::handlers
