// Reads one picture file, and explains what is wrong with a file that cannot be read.
#pragma once

#include <span>
#include <string>

#include <opencv2/core.hpp>

namespace millrace::opencv {

// The picture as 8-bit BGR, or BGRA if `alpha` is set (opaque if the file has no transparency); colours are not
// multiplied by alpha. Deeper pictures are reduced to 8 bits; a rotation that the file asks for is applied. If the file
// holds more pictures than the one that is read, `note` gets a sentence about it, else "". Throws std::runtime_error,
// naming the file, if it is missing, empty, not a regular file, larger than 1 GB, cut off, of no known kind, or cannot
// be decoded.
cv::Mat read_picture(const std::string& path, bool alpha, std::string* note = nullptr);

// False for a PNG or JPEG file that is cut off. OpenCV returns such a JPEG with its missing part in grey and reports no
// error.
bool reaches_its_end(std::span<const unsigned char> bytes);

} // namespace millrace::opencv
