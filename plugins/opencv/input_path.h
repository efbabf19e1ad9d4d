// Checks an input path before a decoder gets it, and words the errors.
#pragma once

#include <cstdint>
#include <stdexcept>
#include <string>

namespace millrace::opencv {

// The largest accepted picture: 16K cinema, 400 MB of bgr8.
inline constexpr double kPixelsMax = 1 << 27;

// "cannot read the KIND 'PATH': WHY", to be thrown; the kind is "picture" or "video".
std::runtime_error cannot_read(const std::string& kind, const std::string& path, const std::string& why);

// The size of a regular file in bytes, at least 1. Reading such a file does not block, so handlers that read it have
// nothing to interrupt. Throws cannot_read().
uint64_t size_of_input(const std::string& kind, const std::string& path);

} // namespace millrace::opencv
