// Paths with a place for a number: one file a tick.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace millrace::handlers {

// "out/{index}.npy" or "out/%06d.npy"; `{index}` is `%06d`, so that names sort.
class NumberedPath {
 public:
  // Throws std::invalid_argument if there are two places, or if one is in the name of a folder.
  explicit NumberedPath(const std::string& pattern);

  // True if the path has a place for a number; without one, of() returns the path unchanged.
  bool numbered() const { return numbered_; }
  std::string of(uint64_t number) const;
  // The numbers of the existing files, in order. Throws std::runtime_error if the folder cannot be read.
  std::vector<uint64_t> existing() const;

 private:
  std::string before_, after_; // the path before and after the place
  size_t digits_ = 0;          // minimum; shorter numbers get zeros in front
  bool numbered_ = false;
};

} // namespace millrace::handlers
