// Makes tensors of pictures: colours normalised, regions cut out and resized. The arithmetic is in
// handlers/gpu/patch.h.
#pragma once

#include <millrace/payload.h>

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "handlers/gpu/patch.h"

namespace millrace::handlers {

// What both handlers take as text: "f16" or "f32", "nchw" or "nhwc", "rgb" or "bgr"; mean and deviation are three
// numbers with commas between them, or one for all. Throws std::invalid_argument where they are not.
struct TensorSettings {
  std::string dtype, layout, order, mean, deviation;
};
TensorForm tensor_form(const TensorSettings& settings);

inline DType tensor_dtype(const TensorForm& form) {
  return {MR_DTYPE_FLOAT, static_cast<uint8_t>(form.half ? 16 : 32), 1};
}
// Extents of the tensor's four dimensions.
std::array<int64_t, 4> shape_of(const TensorForm& form);

// All of a picture in the form's size, one channel or three. Writes every number of `target`.
void normalize_picture(const ImageView& picture, const TensorForm& form, uint8_t* target);

// Owned by one thread; allocates only where the form becomes wider.
class PatchCutter {
 public:
  void reserve(const TensorForm& form) { columns_.resize(form.width); }
  // The first form.count boxes, each resized to the form's size; patches without a box, or with one that has no area or
  // is not a number, are zero. Writes every number of `target`.
  void run(const ImageView& picture, std::span<const Box> boxes, const TensorForm& form, uint8_t* target);

 private:
  std::vector<Footprint> columns_;
};

} // namespace millrace::handlers
