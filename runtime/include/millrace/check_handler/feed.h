// Input values for any handler, made from the declarations of its ports.
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <optional>
#include <vector>

#include "millrace/payload/view.h"
#include "millrace/testing.h"

#pragma GCC visibility push(hidden)
namespace millrace {
inline namespace v1 {
namespace testing {
namespace check {

// Sizes and formats of the inputs of one run.
struct Feed {
  uint32_t width = 64, height = 48;  // size of pictures; tensors and packets scale with it
  uint32_t pixel = 0;                // MR_PIXEL_*; 0: the first that the port takes
  DType dtype = dtype_of<int64_t>(); // element type of tensors, if the port takes it or leaves it open
  uint32_t rank = 1;                 // dimensions of tensors, under the same condition
  uint64_t records = 5;
  uint32_t edges = 1;          // number of edges of an input that takes a list
  bool optional_inputs = true; // connected
  bool optional_values = true; // with a value
};

// The feed's element type if the port takes it, else the first that the port takes.
inline DType dtype_for(const mr_format& accepts, const Feed& feed) {
  if (accepts.dtype_bits) return {accepts.dtype_code, accepts.dtype_bits, accepts.dtype_lanes};
  if (!accepts.dtypes || (accepts.dtypes & bit_of(feed.dtype))) return feed.dtype;
  return kDTypes[static_cast<size_t>(std::countr_zero(accepts.dtypes))];
}
inline uint32_t rank_for(const mr_format& accepts, const Feed& feed) {
  if (accepts.rank) return accepts.rank;
  if (!accepts.ranks || (accepts.ranks >> feed.rank & 1)) return feed.rank;
  return static_cast<uint32_t>(std::countr_zero(accepts.ranks));
}

inline uint32_t pixel_for(const mr_format& accepts, const Feed& feed) {
  const uint64_t taken = accepts.kind == MR_KIND_IMAGE ? accepts.pixel_formats : 0;
  if (feed.pixel && (!taken || (taken >> feed.pixel & 1))) return feed.pixel;
  return taken ? static_cast<uint32_t>(std::countr_zero(taken)) : uint32_t{MR_PIXEL_RGB8};
}

// Bytes without a pattern that a handler could mistake for order, the same for the same seed.
inline void scramble(uint8_t* bytes, uint64_t count, uint64_t seed) {
  uint64_t state = seed * 0x9E3779B97F4A7C15ull + 1;
  for (uint64_t i = 0; i < count; ++i) {
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    bytes[i] = static_cast<uint8_t>(state >> 32);
  }
}

// Small numbers, which every element type can hold.
template <class T>
void write_numbers(uint8_t* bytes, uint64_t count, uint64_t seed) {
  for (uint64_t i = 0; i < count; ++i) {
    const T number = static_cast<T>((i * 7 + seed * 3) % 101);
    std::memcpy(bytes + i * sizeof(T), &number, sizeof(T));
  }
}

inline void fill_elements(DType dtype, uint8_t* bytes, uint64_t count, uint64_t seed) {
  const bool real = dtype.code == MR_DTYPE_FLOAT;
  if (real && dtype.bits == 64) return write_numbers<double>(bytes, count, seed);
  if (real && dtype.bits == 32) return write_numbers<float>(bytes, count, seed);
  if (dtype.bits == 64) return write_numbers<int64_t>(bytes, count, seed);
  if (dtype.bits == 32) return write_numbers<int32_t>(bytes, count, seed);
  if (dtype.bits == 16 && dtype.code <= MR_DTYPE_UINT) return write_numbers<int16_t>(bytes, count, seed);
  if (dtype.bits == 8) return write_numbers<uint8_t>(bytes, count, seed);
  std::memset(bytes, 0, count * dtype.bits * dtype.lanes / 8);
}

inline Value image_for(const mr_format& accepts, const Feed& feed, uint64_t seed) {
  const Value value = image(static_cast<Pixel>(pixel_for(accepts, feed)), feed.width, feed.height);
  scramble(value.block()->data(), value.block()->capacity(), seed);
  return value;
}

inline Value tensor_for(const mr_format& accepts, const Feed& feed, uint64_t seed) {
  mr_tensor layout{};
  const DType dtype = dtype_for(accepts, feed);
  layout.dtype_code = dtype.code;
  layout.dtype_bits = dtype.bits;
  layout.dtype_lanes = dtype.lanes;
  layout.rank = rank_for(accepts, feed);
  int64_t count = 1;
  for (uint32_t d = layout.rank; d-- > 0; count *= layout.shape[d]) {
    const bool fixed = accepts.rank && accepts.shape[d] > 0 && accepts.shape_kind[d] == MR_DIM_FIXED;
    layout.shape[d] = fixed ? accepts.shape[d] : d + 1 == layout.rank ? int64_t{feed.width} : 2;
    layout.strides[d] = count;
  }
  const uint64_t bytes = (static_cast<uint64_t>(count) * dtype.bits * dtype.lanes + 7) / 8;
  Value value = testing::detail::fresh_value<Tensor>(bytes);
  value.raw().as.tensor = layout;
  fill_elements(dtype, value.block()->data(), static_cast<uint64_t>(count), seed);
  return value;
}

inline Value records_for(const mr_format& accepts, const Feed& feed, uint64_t seed) {
  const uint64_t count = accepts.record_count_max ? std::min(feed.records, accepts.record_count_max) : feed.records;
  if (!accepts.schema || accepts.schema == schema_of(Box::kSchema)) {
    std::vector<Box> boxes;
    for (uint64_t i = 0; i < count; ++i) {
      const auto at = static_cast<float>((seed * 5 + i * 9) % 40); // some lie beyond a small picture
      boxes.push_back({at, at / 2, 12, 9, 0.5f, static_cast<int32_t>(i % 3), static_cast<int64_t>(i)});
    }
    return records<Box>(boxes);
  }
  // A camera of zeros makes no sense, and may be refused.
  if (accepts.schema == schema_of(ViewCamera::kSchema)) return records(std::vector<ViewCamera>(count));
  if (accepts.schema == schema_of(ViewLook::kSchema)) return records(std::vector<ViewLook>(count));
  Value value(std::make_shared<Block>(count * accepts.record_size));
  value.header() = {accepts.schema, accepts.layout, MR_KIND_RECORDS, 0, 0, 0, 0, 1, count * accepts.record_size};
  value.raw().as.records = {count, accepts.record_size};
  std::memset(value.block()->data(), 0, value.block()->capacity());
  return value;
}

// A value that the input takes; none if only the plugin itself can make one.
inline std::optional<Value> value_for(const mr_port& port, const Feed& feed, uint64_t seed) {
  const mr_format& accepts = port.accepts;
  switch (accepts.kind) {
    case MR_KIND_ANY:
    case MR_KIND_IMAGE: return image_for(accepts, feed, seed);
    case MR_KIND_TENSOR: return tensor_for(accepts, feed, seed);
    case MR_KIND_RECORDS: return records_for(accepts, feed, seed);
    case MR_KIND_PACKET: {
      std::vector<uint8_t> bytes(size_t{feed.width} + 1);
      scramble(bytes.data(), bytes.size(), seed);
      return packet(bytes, static_cast<int64_t>(seed), true);
    }
    default: return {};
  }
}

} // namespace check
} // namespace testing
} // namespace v1
} // namespace millrace
#pragma GCC visibility pop
