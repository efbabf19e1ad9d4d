// Formats of a handler's ports, as its configure() reads and sets them.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <stdexcept>

#include "millrace/abi.h"
#include "millrace/payload.h"

#pragma GCC visibility push(hidden)
namespace millrace {
inline namespace v1 {

// The format of one port; abi.h describes its fields.
using Format = mr_format;

// The formats of a handler's ports while the plan is made. Throw std::invalid_argument to refuse a combination.
class Formats {
 public:
  Formats(const mr_format* inputs, mr_format* outputs) : inputs_(inputs), outputs_(outputs) {}
  template <class Port>
  const Format& in(const Port& port, uint32_t index = 0) const {
    return inputs_[port.first() + index];
  }
  template <class Port>
  Format& out(const Port& port) const {
    return outputs_[port.first()];
  }
  // An image output of this format and size.
  template <class Port>
  Format& image(const Port& port, Pixel pixel, uint32_t width, uint32_t height) const {
    Format& format = out(port);
    format.pixel_formats = bit_of(pixel);
    format.width = width;
    format.height = height;
    format.size_kind = MR_DIM_FIXED;
    return format;
  }
  // A tensor output of this element type and shape.
  template <class Port>
  Format& tensor(const Port& port, DType dtype, std::initializer_list<int64_t> shape) const {
    if (shape.size() > MR_RANK_MAX) throw std::invalid_argument("a tensor has at most 8 dimensions");
    Format& format = out(port);
    format.dtype_code = dtype.code;
    format.dtype_bits = dtype.bits;
    format.dtype_lanes = dtype.lanes;
    format.rank = 0;
    for (int64_t extent : shape) {
      format.shape_kind[format.rank] = MR_DIM_FIXED;
      format.shape[format.rank++] = extent;
    }
    return format;
  }

 private:
  const mr_format* inputs_;
  mr_format* outputs_;
};

} // namespace v1
} // namespace millrace
#pragma GCC visibility pop
