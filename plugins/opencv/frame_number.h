// The place of a number in a path, as printf and ffmpeg write it: %d, or %06d for at least six digits.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace millrace::opencv {

class FrameNumber {
 public:
  // The first %d, or %01d to %09d, of the path; nothing if there is none. Any other percent sign stands for itself, and
  // so does one in the name of a folder that is there.
  static std::optional<FrameNumber> find(const std::string& pattern);

  std::string path_of(uint64_t number) const;
  // The number of a path that path_of() gives; nothing for any other path: "7" is not the file of "%03d".
  std::optional<uint64_t> number_of(std::string_view path) const;
  const std::string& before() const { return before_; }
  const std::string& after() const { return after_; }

 private:
  std::string before_, after_; // the text before and after the number
  size_t digits_ = 1;          // the fewest digits
};

} // namespace millrace::opencv
