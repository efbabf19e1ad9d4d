// write() whose failure is a return value and nothing else: no SIGPIPE, no SIGXFSZ, no EINTR.
#pragma once

#include <cstddef>
#include <cstdint>

namespace millrace::media {

// Writes once, again after EINTR. Returns how many bytes, or -1 and errno.
ptrdiff_t write_some(int descriptor, const uint8_t* bytes, size_t count);

} // namespace millrace::media
