// The memory of a handler's state in a TableTest.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#pragma GCC visibility push(hidden)
namespace millrace {
inline namespace v1 {
namespace testing {

// Bytes that are aligned as the runtime aligns a state.
class ZeroedMemory {
 public:
  // Makes so many bytes, all zero.
  void assign(uint64_t bytes) { bytes_.assign(bytes > 0 ? static_cast<size_t>(bytes) + kAlign : 0, std::byte{0}); }
  // Null if there are none.
  void* data() {
    void* at = bytes_.data();
    size_t room = bytes_.size();
    return bytes_.empty() ? nullptr : std::align(kAlign, room - kAlign, at, room);
  }

 private:
  static constexpr size_t kAlign = 256;
  std::vector<std::byte> bytes_;
};

} // namespace testing
} // namespace v1
} // namespace millrace
#pragma GCC visibility pop
