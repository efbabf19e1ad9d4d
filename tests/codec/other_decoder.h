// A decoder that is independent of the encoders: libavcodec's own for JPEG and for H.264, and real-valued formulas to
// RGB.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "plugins/codec/av.h"

namespace millrace::codec {

struct Decoded {
  uint32_t width = 0, height = 0;
  std::vector<uint8_t> rgb;                 // dense rows
  std::vector<uint8_t> first;               // Y, Cb, Cr of the first pixel
  int matrix = 0, range = 0, primaries = 0; // FFmpeg's numbers, which are those of H.273
};

class OtherDecoder {
 public:
  // "jpeg" or "h264".
  explicit OtherDecoder(std::string_view encoder);
  // The picture of this unit, or nothing if the decoder wants another unit first. Fails the test for an error.
  std::optional<Decoded> decode(std::span<const uint8_t> unit);

 private:
  CodecContext codec_;
};

// The left upper part of a picture: it may have a column and a row more.
std::vector<uint8_t> cropped(const Decoded& decoded, uint32_t width, uint32_t height);

} // namespace millrace::codec
