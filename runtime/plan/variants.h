// Prints one row for several streams whose rows differ in a part: the majority's words, then the others' exceptions.
// Private to runtime/plan.
//
//   rgb8 1920×1080, every 2 ticks (hall: 1280×720; yard: 640×480)
#pragma once

#include <string>
#include <vector>

namespace millrace::plan {

class Variants {
 public:
  void add(const std::string& stream, const std::string& words);
  std::string words() const;

 private:
  struct Variant {
    std::string words;
    std::vector<std::string> streams;
  };
  std::vector<Variant> variants_;
};

} // namespace millrace::plan
