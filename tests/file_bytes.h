// Whole files in one call, for tests that damage them or compare them.
#pragma once

#include <fstream>
#include <iterator>
#include <string>

namespace millrace {

inline std::string bytes_of(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

inline void put_bytes(const std::string& path, const std::string& bytes) {
  std::ofstream(path, std::ios::binary) << bytes;
}

} // namespace millrace
