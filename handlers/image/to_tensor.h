// Makes tensors of pictures: normalises colours, and cuts out and resizes regions. The arithmetic is in
// handlers/gpu/patch.h.
#pragma once

#include <millrace/payload.h>

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "handlers/gpu/letterbox.h"
#include "handlers/gpu/patch.h"

namespace millrace::handlers {

// The settings that both handlers take as text: "f16" or "f32", "nchw" or "nhwc", "rgb" or "bgr"; mean and deviation
// are three numbers with commas between them, or one for all. tensor_form() throws std::invalid_argument if they are
// not, or if a deviation is not above 0.
struct TensorSettings {
  std::string dtype, layout, order, mean, deviation;
};
TensorForm tensor_form(const TensorSettings& settings);

inline DType tensor_dtype(const TensorForm& form) {
  return {MR_DTYPE_FLOAT, static_cast<uint8_t>(form.half ? 16 : 32), 1};
}
// The extents of the tensor's four dimensions.
std::array<int64_t, 4> shape_of(const TensorForm& form);

// Normalises the whole picture, which has the form's size, to one channel or three. Writes every number of `target`.
void normalize_picture(const ImageView& picture, const TensorForm& form, uint8_t* target);

// Cuts patches out of pictures. Owned by one thread; allocates only if the form becomes wider.
class PatchCutter {
 public:
  void reserve(const TensorForm& form) { columns_.resize(form.width); }
  // Cuts out the regions of the first form.count boxes and resizes each to the form's size. Patches without a box, or
  // with one that has no area or contains NaN, are zero. Writes every number of `target`.
  void run(const ImageView& picture, std::span<const Box> boxes, const TensorForm& form, uint8_t* target);
  // Resizes the whole picture to the box, and gives the rest of the one patch the value `fill` of 0…1, before it is
  // normalised. Writes every number of `target`.
  void letterbox(const ImageView& picture, const Letterbox& box, float fill, const TensorForm& form, uint8_t* target);

 private:
  std::vector<Footprint> columns_;
};

} // namespace millrace::handlers
