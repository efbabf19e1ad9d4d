// Writes a file whole, and says why where that fails.
#pragma once

#include <span>
#include <string>

namespace millrace::opencv {

// What the file held before is gone. Throws std::runtime_error "cannot write the picture 'PATH': REASON (at byte N)".
// Raises no signal, not even above the file size limit or on a pipe without a reader.
void write_picture_bytes(const std::string& path, std::span<const unsigned char> bytes);

} // namespace millrace::opencv
