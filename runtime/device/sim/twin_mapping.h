// One memory file mapped twice: at the address that the host sees nobody may touch it, at the other bodies and copies
// work. So an address of a simulated device that reaches the host faults at once, as a GPU's would.
#pragma once

#include <cstddef>
#include <cstdint>

namespace millrace::device {

class TwinMapping {
 public:
  // A whole number of pages. Where the system gives none, seen() is null.
  explicit TwinMapping(uint64_t bytes);
  ~TwinMapping();
  TwinMapping(const TwinMapping&) = delete;
  TwinMapping& operator=(const TwinMapping&) = delete;

  std::byte* seen() const { return seen_; }       // by the host: never accessible
  std::byte* working() const { return working_; } // the device's own
  uint64_t bytes() const { return bytes_; }

 private:
  uint64_t bytes_;
  std::byte* seen_ = nullptr;
  std::byte* working_ = nullptr;
};

} // namespace millrace::device
