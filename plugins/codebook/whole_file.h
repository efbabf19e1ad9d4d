// A file that is written beside its place and gets its name when it is whole.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <system_error>

namespace millrace::codebook {

// The functions throw std::system_error with the reason of the system.
class WholeFile {
 public:
  // Creates "PATH.part-N"; the folder of the path is made if it is missing. A link is followed. What is there and no
  // regular file, such as a device, is refused.
  explicit WholeFile(std::string path);
  // Without commit() nothing is left.
  ~WholeFile();
  WholeFile(const WholeFile&) = delete;
  WholeFile& operator=(const WholeFile&) = delete;

  void write(std::span<const std::byte> bytes);
  // Writes zeros up to an offset.
  void fill_to(size_t offset);
  // Sees to it that the bytes are on the disk, and gives the file its name, in place of one that has it.
  void commit();

 private:
  std::string path_, part_;
  int file_ = -1;
  size_t written_ = 0;
};

} // namespace millrace::codebook
