// Decodes H.264 with libavcodec, one access unit at a time, and waits for a key frame where something is missing.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <utility>

#include "plugins/codec/av.h"
#include "plugins/codec/h264_units.h"
#include "plugins/codec/picture.h"

namespace millrace::codec {

// One thread at a time calls it. It takes no memory for pictures that are larger than its bounds.
class H264Decoder {
 public:
  // The largest picture, in pixels. Throws std::runtime_error if libavcodec has no decoder for H.264.
  H264Decoder(uint32_t width_max, uint32_t height_max);

  // The picture of an access unit; it lies in the decoder's memory until the next call. Nothing if the unit has none,
  // or while a key frame is waited for: at the beginning, after a missing reference and after damage. Throws
  // std::runtime_error in a sentence for a unit that is damaged, too large, or not of 8 bits with 4:2:0 chroma.
  std::optional<Picture> decode(std::span<const uint8_t> unit);

  // Forgets the stream.
  void reset();

  // The number of pictures that were left out while a key frame was waited for, since the last call.
  uint64_t take_left_out() { return std::exchange(left_out_, 0); }

 private:
  void open();
  std::optional<Picture> decode_unit(std::span<const uint8_t> unit, bool has_picture);
  Picture picture_in_frame() const;

  uint32_t width_max_, height_max_;
  CodecContext codec_;
  Frame frame_;
  AvPacket packet_;
  H264Units units_;
  bool waits_ = true;       // for a key frame
  bool is_damaged_ = false; // the context has seen damage
  uint64_t left_out_ = 0;
};

// Bytes that libavcodec may hold for pictures of at most this size.
uint64_t h264_decoder_bytes(uint32_t width_max, uint32_t height_max);

} // namespace millrace::codec
