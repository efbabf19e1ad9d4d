// A run that goes on until it is destroyed, for tests of what clients see of it.
#pragma once

#include <memory>
#include <string>

namespace millrace::exec {
class Tap;
struct TapOptions;
} // namespace millrace::exec

namespace millrace::test {

class EndlessRun {
 public:
  explicit EndlessRun(const std::string& one_line);
  ~EndlessRun();
  std::shared_ptr<exec::Tap> tap(const std::string& output, const exec::TapOptions& options);

 private:
  struct Parts;
  std::unique_ptr<Parts> parts_;
};

} // namespace millrace::test
