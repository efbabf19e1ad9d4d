// All calls into the driver that this process makes, whoever makes them: counted by CUPTI, where it is there.
#pragma once

#include <cstdint>
#include <map>
#include <string>

namespace millrace::test {

// One at a time. While it lives each call costs a little more.
class DriverCalls {
 public:
  DriverCalls();
  ~DriverCalls();
  DriverCalls(const DriverCalls&) = delete;
  DriverCalls& operator=(const DriverCalls&) = delete;

  const std::string& why_not() const { return why_not_; } // "": calls are counted
  std::map<std::string, uint64_t> counts() const;         // since it was made, by the function's name

 private:
  std::string why_not_;
  void* library_ = nullptr;
  void* subscriber_ = nullptr;
};

} // namespace millrace::test
