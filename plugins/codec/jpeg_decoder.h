// Decodes JPEG pictures to RGB with libjpeg-turbo.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "plugins/codec/jpeg_handle.h"

namespace millrace::codec {

// One thread at a time calls it. Both functions throw std::runtime_error in a sentence for bytes that are damaged, that
// are no JPEG, or whose colours are neither gray nor YCbCr nor RGB. A picture with any damage is refused as a whole.
class JpegDecoder {
 public:
  struct Size {
    uint32_t width, height;
  };
  JpegDecoder();

  // Looks at the header alone, and takes no memory of the picture's size.
  Size size_of(std::span<const uint8_t> bytes);
  // Writes red, green, blue; `size` is that of the header, and `stride` at least three times its width.
  void decode(std::span<const uint8_t> bytes, Size size, uint8_t* target, size_t stride);

 private:
  void begin();
  [[noreturn]] void refuse(std::span<const uint8_t> bytes, const std::string& words);

  JpegHandle handle_;
};

} // namespace millrace::codec
