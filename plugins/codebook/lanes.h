// Rows of numbers in lanes of eight, which give a sum of squares the same bits on every machine.
//
// Element j of a row belongs to lane j mod 8. Each lane is summed in single precision in the order of its elements, and
// the lanes are added as ((0+1)+(2+3))+((4+5)+(6+7)). Rows are filled up with zeros to whole lanes, which changes no
// sum. All files of this plugin are compiled without contraction, so a product is rounded before it is added.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace millrace::codebook {

inline constexpr uint32_t kLanes = 8;
constexpr size_t in_lanes(uint32_t dimensions) { return (size_t{dimensions} + kLanes - 1) / kLanes * kLanes; }

// Eight numbers of one row that the compiler computes with at once.
using Lanes [[gnu::vector_size(kLanes * sizeof(float)), gnu::aligned(alignof(float))]] = float;

// A table of rows, each of whole lanes.
class Rows {
 public:
  Rows() = default;
  Rows(size_t count, uint32_t dimensions) : dimensions_(dimensions), values_(count * in_lanes(dimensions)) {}

  size_t count() const { return dimensions_ == 0 ? 0 : values_.size() / stride(); }
  uint32_t dimensions() const { return dimensions_; }
  size_t stride() const { return in_lanes(dimensions_); } // in numbers
  float* row(size_t index) { return values_.data() + index * stride(); }
  const float* row(size_t index) const { return values_.data() + index * stride(); }
  std::span<float> numbers(size_t index) { return {row(index), dimensions_}; }
  std::span<const float> numbers(size_t index) const { return {row(index), dimensions_}; }
  // Keeps the first rows; new ones are zeros.
  void resize(size_t count) { values_.resize(count * stride()); }

 private:
  uint32_t dimensions_ = 0;
  std::vector<float> values_;
};

} // namespace millrace::codebook
