// Writes a whole file, and gives the reason if that fails.
#pragma once

#include <span>
#include <string>

namespace millrace::opencv {

// Replaces the file's content. Throws std::runtime_error "cannot write the picture 'PATH': REASON (at byte N)". Raises
// no signal, not even above the file size limit or on a pipe without a reader.
void write_picture_bytes(const std::string& path, std::span<const unsigned char> bytes);

} // namespace millrace::opencv
