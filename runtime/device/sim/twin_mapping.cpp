// The two mappings of a memory file.
#include "device/sim/twin_mapping.h"

#include <sys/mman.h>
#include <unistd.h>

namespace millrace::device {

TwinMapping::TwinMapping(uint64_t bytes) : bytes_(bytes) {
  const int file = memfd_create("millrace-sim", MFD_CLOEXEC);
  if (file < 0) return;
  if (ftruncate(file, static_cast<off_t>(bytes)) == 0) {
    void* seen = mmap(nullptr, bytes, PROT_NONE, MAP_SHARED, file, 0);
    void* working = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    if (seen != MAP_FAILED && working != MAP_FAILED) {
      seen_ = static_cast<std::byte*>(seen);
      working_ = static_cast<std::byte*>(working);
    } else {
      if (seen != MAP_FAILED) munmap(seen, bytes);
      if (working != MAP_FAILED) munmap(working, bytes);
    }
  }
  close(file); // the mappings keep the memory
}

TwinMapping::~TwinMapping() {
  if (!seen_) return;
  munmap(seen_, bytes_);
  munmap(working_, bytes_);
}

} // namespace millrace::device
