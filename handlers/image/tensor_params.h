// The common part of handlers that make tensors of pictures: the pictures that they take, and the parameters that
// describe the tensor's numbers.
#pragma once

#include <millrace/handler.h>

#include <string>

#include "handlers/image/picture.h"
#include "handlers/image/to_tensor.h"

namespace millrace::handlers {

inline Pixels tensor_sources() {
  return pixels(
      {Pixel::gray8, Pixel::rgb8, Pixel::bgr8, Pixel::rgba8, Pixel::bgra8, Pixel::nv12, Pixel::i420, Pixel::p010});
}

// Announces tensors of this form at an output.
inline Format& announce_tensor(const Formats& formats, const Output<Tensor>& out, const TensorForm& form) {
  const auto shape = shape_of(form);
  return formats.tensor(out, tensor_dtype(form), {shape[0], shape[1], shape[2], shape[3]});
}

// A tensor of this form with the times of the picture that it is made of.
inline TensorSpan allocate_tensor(Tick& tick, const Output<Tensor>& out, const TensorForm& form, const ImageView& in) {
  const TensorSpan tensor = out.allocate(tick, tensor_dtype(form), shape_of(form));
  take_over_times(in.header(), out.header(tick));
  return tensor;
}

struct [[gnu::visibility("hidden")]] TensorParams { // hidden like its members
  explicit TensorParams(Handler & owner)
      : dtype(owner, "dtype", "f32", "half or single precision", choices({"f16", "f32"})),
        layout(owner, "layout", "nchw", "channel after channel, or pixel after pixel", choices({"nchw", "nhwc"})),
        order(owner, "order", "rgb", "of the channels", choices({"rgb", "bgr"})),
        mean(owner, "mean", "0", "subtracted from red, green and blue of 0 to 1; one number for all"),
        deviation(owner, "std", "1", "divisors after that; one number for all") {}

  // The form without its size. Throws std::invalid_argument if `mean` or `std` is invalid.
  TensorForm form() const { return tensor_form({*dtype, *layout, *order, *mean, *deviation}); }

  Param<std::string> dtype, layout, order, mean, deviation;
};

} // namespace millrace::handlers
