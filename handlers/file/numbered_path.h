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
  // Throws std::invalid_argument where there are two places, or where one is in the name of a folder.
  explicit NumberedPath(const std::string& pattern);

  // Whether there is a place at all; without one, of() is the path as it is.
  bool numbered() const { return numbered_; }
  std::string of(uint64_t number) const;
  // The numbers of the files that there are, in order. Throws std::runtime_error where the folder cannot be read.
  std::vector<uint64_t> existing() const;

 private:
  std::string before_, after_; // the place
  size_t digits_ = 0;          // at least
  bool numbered_ = false;
};

} // namespace millrace::handlers
