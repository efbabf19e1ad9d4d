// Values for a handler under test: blocks with guard bytes, and the makers of pictures, tensors, records and packets.
#pragma once

#include <algorithm>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <initializer_list>
#include <memory>
#include <new>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "millrace/handler.h"

#pragma GCC visibility push(hidden)
namespace millrace {
inline namespace v1 {
namespace testing {

// One block as a pipeline has it: an mr_value, and its bytes after it. Guard bytes on both sides detect a handler that
// writes past the block, and protect the heap. Fresh bytes are filled with kUnwritten, so that bytes which the handler
// did not write can be seen.
class Block {
 public:
  static constexpr uint8_t kUnwritten = 0xA5;
  static constexpr uint8_t kGuard = 0x5C;
  static constexpr size_t kGuardBytes = 65536;      // after the bytes: four rows of a 4K picture
  static constexpr size_t kGuardBytesBefore = 4096; // a row of a small one, above its first
  static constexpr size_t kAlignment = 64;          // the runtime promises this much for the first byte

  explicit Block(uint64_t capacity) : capacity_(capacity) {
    const size_t total = kGuardBytesBefore + sizeof(mr_value) + static_cast<size_t>(capacity) + kGuardBytes;
    base_ = static_cast<uint8_t*>(std::aligned_alloc(kAlignment, (total + kAlignment - 1) / kAlignment * kAlignment));
    if (!base_) throw std::bad_alloc();
    std::memset(base_, kGuard, kGuardBytesBefore);
    memory_ = base_ + kGuardBytesBefore;
    new (memory_) mr_value{};
    std::memset(memory_ + sizeof(mr_value), kUnwritten, static_cast<size_t>(capacity));
    std::memset(memory_ + sizeof(mr_value) + capacity, kGuard, kGuardBytes);
    data_ = memory_ + sizeof(mr_value);
  }
  // Foreign bytes with a header of our own. `release` is called after the last reader.
  Block(const void* data, uint64_t bytes, void (*release)(void*), void* context) : Block(0) {
    data_ = static_cast<uint8_t*>(const_cast<void*>(data));
    capacity_ = bytes;
    release_ = release;
    release_context_ = context;
  }
  Block(const Block&) = delete;
  Block& operator=(const Block&) = delete;
  ~Block() {
    const mr_value& last = value();
    if (last.header.kind == MR_KIND_OBJECT && last.as.object.release) last.as.object.release(last.as.object.pointer);
    if (release_) release_(release_context_);
    std::free(base_);
  }

  mr_value& value() { return *reinterpret_cast<mr_value*>(memory_); }
  uint8_t* data() { return data_; }
  uint64_t capacity() const { return capacity_; }
  bool foreign() const { return release_; }
  bool intact() const { return is_guard(memory_ + sizeof(mr_value) + (foreign() ? 0 : capacity_), kGuardBytes); }
  const mr_record_type* record_type = nullptr; // if these are records: the description of their type
  bool intact_before() const { return is_guard(base_, kGuardBytesBefore); }
  uint64_t hash() {
    const auto bytes = reinterpret_cast<const char*>(data_);
    return schema_of({reinterpret_cast<const char*>(memory_), sizeof(mr_value)}) ^
           schema_of({bytes, static_cast<size_t>(value().header.extent_bytes)});
  }

 private:
  // All bytes are equal if each equals the one before it.
  static bool is_guard(const uint8_t* bytes, size_t count) {
    return bytes[0] == kGuard && std::memcmp(bytes, bytes + 1, count - 1) == 0;
  }

  uint8_t* base_ = nullptr;
  uint8_t* memory_ = nullptr;
  uint8_t* data_ = nullptr;
  uint64_t capacity_ = 0;
  void (*release_)(void*) = nullptr;
  void* release_context_ = nullptr;
};

// A value of an input or an output; empty by default. Copies share the bytes.
class Value {
 public:
  Value() = default;
  explicit Value(std::shared_ptr<Block> block) : block_(std::move(block)) {}

  explicit operator bool() const { return block_ != nullptr; }
  const std::shared_ptr<Block>& block() const { return block_; }
  mr_value& raw() const { return block_->value(); }
  mr_header& header() const { return raw().header; }
  const uint8_t* data() const { return block_->data(); }

  ImageSpan image() const { return {&kind(MR_KIND_IMAGE, "an image"), block_->data()}; }
  TensorSpan tensor() const { return {&kind(MR_KIND_TENSOR, "a tensor"), block_->data()}; }
  PacketSpan packet() const {
    mr_value& value = kind(MR_KIND_PACKET, "a packet");
    return {&value, {block_->data(), static_cast<size_t>(value.header.extent_bytes)}};
  }
  template <Record T>
  std::span<T> records() const {
    mr_value& value = kind(MR_KIND_RECORDS, "records");
    if (value.header.schema != schema_of(T::kSchema)) throw std::logic_error("the value holds other records");
    return {reinterpret_cast<T*>(block_->data()), static_cast<size_t>(value.as.records.count)};
  }

  // Sets the presentation time. Use it when the value is made.
  Value at(int64_t pts_ns, int64_t duration_ns = 0) const {
    header().pts_ns = pts_ns;
    header().duration_ns = duration_ns;
    return *this;
  }
  Value from_stream(uint32_t stream) const {
    header().stream = stream;
    return *this;
  }

 private:
  mr_value& kind(uint32_t expected, const char* name) const {
    if (!block_) throw std::logic_error("the value is empty");
    if (raw().header.kind != expected) throw std::logic_error(std::string("the value is not ") + name);
    return raw();
  }
  std::shared_ptr<Block> block_;
};

namespace detail {
template <class Tag>
Value fresh_value(uint64_t bytes) {
  Value value(std::make_shared<Block>(bytes));
  const mr_format accepts = v1::detail::make_port<Tag>(MR_INPUT, "").port.accepts;
  value.header().schema = accepts.schema;
  value.header().layout = accepts.layout;
  value.header().kind = accepts.kind;
  value.header().present = 1;
  value.header().extent_bytes = bytes;
  return value;
}
} // namespace detail

// A picture, every byte `fill`.
inline Value image(Pixel pixel, uint32_t width, uint32_t height, uint8_t fill = 0) {
  mr_image layout{};
  Value value = detail::fresh_value<Image>(lay_out_image(pixel, width, height, layout));
  value.raw().as.image = layout;
  std::memset(value.block()->data(), fill, static_cast<size_t>(value.block()->capacity()));
  return value;
}
// A picture whose first plane is fill(x, y, channel).
template <std::invocable<uint32_t, uint32_t, uint32_t> Fill>
Value image(Pixel pixel, uint32_t width, uint32_t height, Fill&& fill) {
  Value value = image(pixel, width, height);
  const ImageSpan picture = value.image();
  const uint32_t channels = pixel == Pixel::p010 ? 1 : bytes_per_pixel(pixel);
  for (uint32_t y = 0; y < height; ++y)
    for (uint32_t x = 0; x < width; ++x)
      for (uint32_t c = 0; c < channels; ++c) picture.row(y)[x * channels + c] = static_cast<uint8_t>(fill(x, y, c));
  return value;
}

// A dense row-major tensor with these elements; all zero if none are given.
template <class T>
Value tensor(std::initializer_list<int64_t> shape, const std::vector<T>& elements = {}) {
  mr_tensor layout{};
  const DType dtype = dtype_of<T>();
  layout.dtype_code = dtype.code;
  layout.dtype_bits = dtype.bits;
  layout.dtype_lanes = dtype.lanes;
  layout.rank = static_cast<uint32_t>(shape.size());
  if (layout.rank > MR_RANK_MAX) throw std::logic_error("a tensor has at most 8 dimensions");
  std::copy(shape.begin(), shape.end(), layout.shape);
  int64_t count = 1;
  for (uint32_t d = layout.rank; d-- > 0; count *= layout.shape[d]) layout.strides[d] = count;
  if (!elements.empty() && elements.size() != static_cast<size_t>(count))
    throw std::logic_error("the tensor's shape and its elements differ in number");
  Value value = detail::fresh_value<Tensor>(static_cast<uint64_t>(count) * sizeof(T));
  value.raw().as.tensor = layout;
  if (elements.empty())
    std::memset(value.block()->data(), 0, static_cast<size_t>(count) * sizeof(T));
  else
    std::memcpy(value.block()->data(), elements.data(), elements.size() * sizeof(T));
  return value;
}

template <Record T>
Value records(const std::vector<T>& elements) {
  Value value = detail::fresh_value<Records<T>>(elements.size() * sizeof(T));
  value.block()->record_type = record_type_of<T>();
  value.raw().as.records = {elements.size(), sizeof(T)};
  std::copy(elements.begin(), elements.end(), value.records<T>().begin());
  return value;
}

inline Value packet(std::span<const uint8_t> bytes, int64_t dts_ns = 0, bool keyframe = false) {
  Value value = detail::fresh_value<Packet>(bytes.size());
  value.raw().as.packet.dts_ns = dts_ns;
  value.header().flags = keyframe ? uint32_t{MR_FLAG_KEYFRAME} : 0u;
  std::copy(bytes.begin(), bytes.end(), value.block()->data());
  return value;
}

// A host object, deleted with its last reader.
template <class T>
Value object(std::unique_ptr<T> pointer) {
  Value value = detail::fresh_value<Object<T>>(0);
  value.raw().as.object = {pointer.release(), [](void* raw) { delete static_cast<T*>(raw); }};
  return value;
}

} // namespace testing
} // namespace v1
} // namespace millrace
#pragma GCC visibility pop
