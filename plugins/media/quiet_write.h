// A write() that reports failure only by its return value: no SIGPIPE, no SIGXFSZ, no EINTR.
#pragma once

#include <cstddef>
#include <cstdint>

namespace millrace::media {

// Writes once; retries after EINTR. Returns the number of bytes, or -1 with errno set.
ptrdiff_t write_some(int descriptor, const uint8_t* bytes, size_t count);

} // namespace millrace::media
