// Numbers to little-endian bytes and back. A reader that runs out of bytes says so once, at the end.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string_view>
#include <type_traits>

namespace millrace::net {

using Bytes = std::span<const std::byte>;

// Writes into bytes that its owner measured: a write beyond them is dropped and makes `fits` false.
class ByteWriter {
 public:
  explicit ByteWriter(std::span<std::byte> room) : room_(room) {}

  template <class Number>
  void put(Number number) {
    static_assert(std::is_integral_v<Number>);
    if (!reserve(sizeof number)) return;
    auto bits = static_cast<std::make_unsigned_t<Number>>(number);
    for (size_t i = 0; i < sizeof number; ++i)
      room_[size_ - sizeof number + i] = static_cast<std::byte>(static_cast<uint64_t>(bits) >> (8 * i));
  }
  void put_bytes(Bytes bytes) {
    if (reserve(bytes.size()) && !bytes.empty())
      std::memcpy(room_.data() + size_ - bytes.size(), bytes.data(), bytes.size());
  }
  void put_text(std::string_view text) { put_bytes(std::as_bytes(std::span(text.data(), text.size()))); }

  size_t size() const { return size_; }
  bool fits() const { return fits_; }
  Bytes written() const { return room_.first(size_); }
  std::span<std::byte> rest() { return room_.subspan(size_); }
  void advance(size_t bytes) { reserve(bytes); } // after writing into rest()

 private:
  bool reserve(size_t bytes) {
    fits_ = fits_ && bytes <= room_.size() - size_;
    if (fits_) size_ += bytes;
    return fits_;
  }

  std::span<std::byte> room_;
  size_t size_ = 0;
  bool fits_ = true;
};

// Reads what a peer wrote: a read beyond the end gives zeros and makes `good` false.
class ByteReader {
 public:
  explicit ByteReader(Bytes bytes) : bytes_(bytes) {}

  template <class Number>
  Number get() {
    static_assert(std::is_integral_v<Number>);
    uint64_t bits = 0;
    const Bytes from = take(sizeof(Number));
    for (size_t i = 0; i < from.size(); ++i) bits |= static_cast<uint64_t>(from[i]) << (8 * i);
    return static_cast<Number>(bits);
  }
  // The next `count` bytes; none if fewer are left.
  Bytes take(size_t count) {
    good_ = good_ && count <= bytes_.size();
    if (!good_) return {};
    const Bytes taken = bytes_.first(count);
    bytes_ = bytes_.subspan(count);
    return taken;
  }
  template <size_t kSize, class Byte>
  void take_into(std::array<Byte, kSize>& array) {
    const Bytes from = take(kSize);
    if (!from.empty()) std::memcpy(array.data(), from.data(), kSize);
  }

  bool good() const { return good_; }
  bool at_end() const { return bytes_.empty(); }
  Bytes rest() const { return bytes_; }

 private:
  Bytes bytes_;
  bool good_ = true;
};

} // namespace millrace::net
