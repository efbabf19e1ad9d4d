// Copies what an address gives into a temporary file, for a film that has to be read in another order than it comes.
#pragma once

#include <cstdint>
#include <string>

#include "plugins/media/av.h"

namespace millrace::media {

class SpooledFile {
 public:
  // Makes a file without a name in the folder for temporary files; it goes with this object. Throws std::runtime_error.
  SpooledFile();
  ~SpooledFile();
  SpooledFile(const SpooledFile&) = delete;
  SpooledFile& operator=(const SpooledFile&) = delete;

  // Copies until the end. Returns 0, FFmpeg's error, or AVERROR(EFBIG) if there are more than `bytes_max`. Throws
  // std::runtime_error if the file cannot be written.
  int fill(AVIOContext& from, uint64_t bytes_max);
  // The address by which libavformat opens it.
  std::string url() const;

 private:
  int descriptor_ = -1;
};

} // namespace millrace::media
