// Tensors: element types, and the views of a tensor's elements.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <type_traits>

#include "millrace/abi.h"

#pragma GCC visibility push(hidden)
namespace millrace {
inline namespace v1 {

struct DType {
  uint8_t code, bits;
  uint16_t lanes = 1;
  friend bool operator==(const DType&, const DType&) = default;
};
// 16-bit floating-point numbers. As values they are in payload/half_floats.h.
struct Float16;
struct BFloat16;
template <class T>
constexpr DType dtype_of() {
  static_assert(std::is_arithmetic_v<T>, "tensors hold numbers");
  const uint8_t code = std::is_floating_point_v<T> ? MR_DTYPE_FLOAT
                       : std::is_signed_v<T>       ? MR_DTYPE_INT
                                                   : MR_DTYPE_UINT;
  return {code, static_cast<uint8_t>(sizeof(T) * 8), 1};
}
template <>
constexpr DType dtype_of<Float16>() {
  return {MR_DTYPE_FLOAT, 16, 1};
}
template <>
constexpr DType dtype_of<BFloat16>() {
  return {MR_DTYPE_BFLOAT, 16, 1};
}

// Element types that a set can hold: kDTypes[i] is the bit 1u << i of MR_DTYPES_*.
constexpr std::array<DType, 12> kDTypes = {{{MR_DTYPE_INT, 8},
                                            {MR_DTYPE_INT, 16},
                                            {MR_DTYPE_INT, 32},
                                            {MR_DTYPE_INT, 64},
                                            {MR_DTYPE_UINT, 8},
                                            {MR_DTYPE_UINT, 16},
                                            {MR_DTYPE_UINT, 32},
                                            {MR_DTYPE_UINT, 64},
                                            {MR_DTYPE_FLOAT, 16},
                                            {MR_DTYPE_FLOAT, 32},
                                            {MR_DTYPE_FLOAT, 64},
                                            {MR_DTYPE_BFLOAT, 16}}};
// The type's bit in a set of MR_DTYPES_*; 0 if no set can hold it.
constexpr uint32_t bit_of(DType dtype) {
  for (size_t i = 0; i < kDTypes.size(); ++i)
    if (kDTypes[i] == dtype) return 1u << i;
  return 0;
}
// "float32"
inline std::string name_of(DType dtype) {
  constexpr std::array<const char*, 5> kKinds = {"int", "uint", "float", "?", "bfloat"};
  return std::string(dtype.code < kKinds.size() ? kKinds[dtype.code] : "?") + std::to_string(dtype.bits) +
         (dtype.lanes == 1 ? "" : "x" + std::to_string(dtype.lanes));
}

template <class Byte>
class BasicTensor {
 public:
  BasicTensor() = default;
  BasicTensor(const mr_value* value, Byte* data) : value_(value), data_(data) {}

  DType dtype() const {
    return {value_->as.tensor.dtype_code, value_->as.tensor.dtype_bits, value_->as.tensor.dtype_lanes};
  }
  std::span<const int64_t> shape() const { return {value_->as.tensor.shape, value_->as.tensor.rank}; }
  std::span<const int64_t> strides() const { return {value_->as.tensor.strides, value_->as.tensor.rank}; }
  int64_t element_count() const {
    int64_t count = 1;
    for (int64_t extent : shape()) count *= extent;
    return count;
  }
  Byte* data() const { return data_; }
  // The elements of a dense tensor. Throws std::invalid_argument if T is not its dtype.
  template <class T>
  auto elements() const {
    if (dtype() != dtype_of<T>())
      throw std::invalid_argument("the tensor holds " + name_of(dtype()) + ", not " + name_of(dtype_of<T>()));
    using Element = std::conditional_t<std::is_const_v<Byte>, const T, T>;
    return std::span<Element>(reinterpret_cast<Element*>(data_), static_cast<size_t>(element_count()));
  }
  const mr_value& value() const { return *value_; }
  const mr_header& header() const { return value_->header; }

 private:
  const mr_value* value_ = nullptr;
  Byte* data_ = nullptr;
};
using TensorView = BasicTensor<const uint8_t>;
using TensorSpan = BasicTensor<uint8_t>;

namespace detail {
// This is a function of its own, so that check_shape() is short and compilers lay it into each allocate().
[[noreturn, gnu::cold, gnu::noinline]] inline void refuse_negative(std::span<const int64_t> shape) {
  std::string words;
  for (const int64_t extent : shape) words += (words.empty() ? "[" : ", ") + std::to_string(extent);
  throw std::invalid_argument("the tensor's shape " + words + "] has a negative dimension");
}
// Throws std::invalid_argument for more than 8 dimensions and for a negative one.
inline void check_shape(std::span<const int64_t> shape) {
  if (shape.size() > MR_RANK_MAX) throw std::invalid_argument("a tensor has at most 8 dimensions");
  for (const int64_t extent : shape)
    if (extent < 0) refuse_negative(shape);
}
// Describes a dense row-major tensor. The shape was checked. Each number is written once: to clear the record first
// would cost more than the rest of allocate().
inline void lay_out_tensor(DType dtype, std::span<const int64_t> shape, mr_tensor& tensor) {
  tensor.dtype_code = dtype.code;
  tensor.dtype_bits = dtype.bits;
  tensor.dtype_lanes = dtype.lanes;
  tensor.rank = static_cast<uint32_t>(shape.size());
  int64_t count = 1;
  for (size_t d = MR_RANK_MAX; d-- > 0;) {
    const bool is_there = d < shape.size();
    tensor.shape[d] = is_there ? shape[d] : 0;
    tensor.strides[d] = is_there ? count : 0;
    if (is_there) count *= shape[d];
  }
}
} // namespace detail

// The tensors of several items, which lie one after another, as one tensor: rows are its first dimension.
template <class Byte>
class BasicDense {
 public:
  // At first that of one item.
  BasicDense(const mr_value& first, Byte* data) : value_(first), data_(data) {}
  void add_rows(int64_t rows) { value_.as.tensor.shape[0] += rows; }

  DType dtype() const { return tensor().dtype(); }
  std::span<const int64_t> shape() const { return tensor().shape(); }
  int64_t rows() const { return value_.as.tensor.shape[0]; }
  int64_t element_count() const { return tensor().element_count(); }
  Byte* data() const { return data_; }
  // Throws std::invalid_argument if T is not its dtype.
  template <class T>
  auto elements() const {
    return tensor().template elements<T>();
  }

 private:
  BasicTensor<Byte> tensor() const { return {&value_, data_}; }

  mr_value value_;
  Byte* data_;
};
using DenseView = BasicDense<const uint8_t>;
using DenseSpan = BasicDense<uint8_t>;

// The type of a tensor port: Input<Tensor>.
struct Tensor {
  using View = TensorView;
  using Span = TensorSpan;
  static constexpr uint32_t kKind = MR_KIND_TENSOR;
  static constexpr std::string_view kSchema = "millrace.Tensor";
  static std::string type_name() { return "Tensor"; }
  static View view(const mr_input& input) { return {input.value, input.data}; }
};

} // namespace v1
} // namespace millrace
#pragma GCC visibility pop
