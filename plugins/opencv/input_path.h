// Where pictures and videos are read from: what a path must be before a decoder is asked, and the words for what it is
// not.
#pragma once

#include <cstdint>
#include <stdexcept>
#include <string>

namespace millrace::opencv {

// More pixels than this are no picture to work on: 16K cinema, and more than 400 MB of bgr8.
inline constexpr double kPixelsMax = 1 << 27;

// "cannot read the KIND 'PATH': WHY", to be thrown; the kind is "picture" or "video".
std::runtime_error cannot_read(const std::string& kind, const std::string& path, const std::string& why);

// The bytes of a regular file, at least one: reading such a file does not block, which is why its handlers have nothing
// to interrupt. Throws cannot_read().
uint64_t size_of_input(const std::string& kind, const std::string& path);

} // namespace millrace::opencv
