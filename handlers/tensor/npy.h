// Reads and writes NumPy's file format .npy, versions 1 to 3: the header and the order of the elements.
//
// Source: numpy.lib.format. "\x93NUMPY", two bytes of version, the header's length in 2 (version 1) or 4 bytes, lowest
// first, then a Python dictionary in ASCII (UTF-8 in version 3) with 'descr', 'fortran_order' and 'shape', padded with
// spaces and ended by a line break so that the elements begin at a multiple of 64; then the elements, nothing else.
#pragma once

#include <millrace/payload.h>

#include <cstdint>
#include <cstdio>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace millrace::handlers {

struct __attribute__((visibility("hidden"))) NpyHeader { // hidden like DType
  DType dtype{MR_DTYPE_FLOAT, 32, 1};
  bool big_endian = false;
  bool fortran_order = false; // the first dimension runs fastest
  std::vector<int64_t> shape; // at most kNpyRankMax
  uint64_t data_offset = 0;   // offset of the first element in the file

  uint64_t element_bytes() const { return dtype.bits / 8; }
  uint64_t element_count() const;
};

// NumPy's own limit; a tensor has at most 8 dimensions, and a stack one more.
inline constexpr size_t kNpyRankMax = 32;

// True if NumPy has such a type: whole and floating numbers of 8 to 64 bits, one lane, no bfloat16.
bool npy_has(DType dtype);

// Makes the header of a dense row-major array, at least `bytes_min` long, so that it can be written over another one.
std::string npy_header(DType dtype, std::span<const int64_t> shape, size_t bytes_min = 0);

// Reads the header at the file's beginning and goes to the first element. Throws std::runtime_error with the reason but
// without the path. Types that are no plain numbers (objects, structures, complex, text, time) are refused by name.
NpyHeader read_npy_header(std::FILE* file);
// The same for bytes that `read` gives in order; false: there are no more.
NpyHeader read_npy_header(const std::function<bool(void* target, size_t bytes)>& read);
// Parses the dictionary alone.
NpyHeader parse_npy_dictionary(std::string_view text);

// Copies the elements into dense row-major order. Strides are in elements and may be negative; `source` is the element
// at index 0 of all dimensions.
void copy_row_major(const uint8_t* source, std::span<const int64_t> shape, std::span<const int64_t> strides,
                    size_t element_bytes, uint8_t* target);
// The strides of an array whose first dimension runs fastest.
std::vector<int64_t> fortran_strides(std::span<const int64_t> shape);
// Reverses the bytes of each element.
void swap_bytes(std::span<uint8_t> bytes, size_t element_bytes);

} // namespace millrace::handlers
