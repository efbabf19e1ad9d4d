// Decides if a value says yes; see truth.h.
#include "handlers/flow/truth.h"

namespace millrace::handlers {

namespace {

// Looks at the bytes, so that every dtype is served: zero has all bits zero, and a float zero may have its sign bit
// set.
bool first_element_is_zero(const TensorView& tensor) {
  const DType dtype = tensor.dtype();
  const size_t bytes = size_t{dtype.bits} * dtype.lanes / 8;
  const bool is_float = dtype.code == MR_DTYPE_FLOAT || dtype.code == MR_DTYPE_BFLOAT;
  for (size_t i = 0; i < bytes; ++i) {
    const bool holds_sign =
        is_float && dtype.bits >= 8 && (i + 1) % (dtype.bits / 8) == 0; // the highest byte of a lane
    if (tensor.data()[i] & (holds_sign ? 0x7f : 0xff)) return false;
  }
  return true;
}

} // namespace

bool says_yes(const mr_input& input) {
  if (!input.value) return false;
  switch (input.value->header.kind) {
    case MR_KIND_RECORDS: return input.value->as.records.count > 0;
    case MR_KIND_TENSOR: {
      const TensorView tensor = Tensor::view(input);
      return tensor.element_count() > 0 && !first_element_is_zero(tensor);
    }
    default: return true;
  }
}

} // namespace millrace::handlers
