// One memory file mapped twice: at the address that the host sees every access faults, and bodies and copies use the
// other one. So an address of a simulated device that reaches the host faults at once, as a GPU's would.
#pragma once

#include <cstddef>
#include <cstdint>

namespace millrace::device {

class TwinMapping {
 public:
  // Maps `bytes`, a whole number of pages. seen() is null if the system gives no memory.
  explicit TwinMapping(uint64_t bytes);
  ~TwinMapping();
  TwinMapping(const TwinMapping&) = delete;
  TwinMapping& operator=(const TwinMapping&) = delete;

  std::byte* seen() const { return seen_; }       // the address that the host sees: never accessible
  std::byte* working() const { return working_; } // the device's own
  uint64_t bytes() const { return bytes_; }

 private:
  uint64_t bytes_;
  std::byte* seen_ = nullptr;
  std::byte* working_ = nullptr;
};

} // namespace millrace::device
