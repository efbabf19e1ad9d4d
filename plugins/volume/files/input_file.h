// A regular file that is open for reading.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "plugins/volume/files/volume_file.h"

namespace millrace::volume {

// The functions throw VolumeFileError.
class InputFile {
 public:
  explicit InputFile(std::string path);
  ~InputFile();
  InputFile(const InputFile&) = delete;
  InputFile& operator=(const InputFile&) = delete;

  const std::string& path() const { return path_; }
  uint64_t size() const { return size_; } // when it was opened
  // Reads target.size() bytes. A file that has become shorter is an error. Any thread may call it.
  void read_at(uint64_t offset, std::span<uint8_t> target) const;
  // The first bytes, at most `count`.
  std::vector<uint8_t> first_bytes(size_t count) const;
  // Maps size() bytes, to be read alone. The mapping outlives this object.
  std::shared_ptr<const uint8_t> map() const;

 private:
  std::string path_;
  int file_ = -1;
  uint64_t size_ = 0;
};

} // namespace millrace::volume
