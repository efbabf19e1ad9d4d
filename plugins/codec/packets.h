// Packets of the handlers: their formats, their flags and their times.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <stdexcept>
#include <string>

#include "millrace/handler.h"
#include "plugins/codec/encoder.h"

namespace millrace::codec {

// The pixel formats that encoders take.
inline Pixels encodable() {
  return pixels({Pixel::gray8, Pixel::rgb8, Pixel::bgr8, Pixel::rgba8, Pixel::bgra8, Pixel::nv12, Pixel::i420});
}

// Sets the largest packet for pictures of this format. Throws std::invalid_argument for pictures that are too large.
inline void plan_packets(const EncoderType& type, const EncoderSettings& settings, const Format& pictures,
                         Format& packets) {
  if (pictures.width > type.side_max || pictures.height > type.side_max)
    throw std::invalid_argument("pictures of " + std::to_string(pictures.width) + " × " +
                                std::to_string(pictures.height) + " pixels are too large for " + type.library +
                                ", which takes sides up to " + std::to_string(type.side_max));
  if (pictures.width > 0) packets.bytes_max = type.unit_bytes_max(pictures.width, pictures.height, settings);
}

// Publishes an access unit of the picture `from`.
inline void publish_unit(Tick& tick, const Output<Packet>& output, std::span<const uint8_t> unit, uint32_t code,
                         bool is_key, const ImageView& from) {
  const PacketSpan packet = output.allocate(tick, unit.size());
  std::copy(unit.begin(), unit.end(), packet.bytes.begin());
  mr_header& header = output.header(tick);
  header.duration_ns = from.header().duration_ns;
  header.flags = (is_key ? uint32_t{MR_FLAG_KEYFRAME} : 0u) | (from.header().flags & MR_FLAG_DISCONTINUITY);
  mr_packet& fields = output.raw(tick).value->as.packet;
  fields.codec = code;
  fields.dts_ns = header.pts_ns; // no picture is reordered
}

// Throws std::runtime_error if a packet says that it has another codec. Packets that say none are taken.
inline void require_codec(const PacketView& packet, uint32_t code) {
  const uint32_t said = packet.value->as.packet.codec;
  if (said == 0 || said == code) return;
  const auto letters = [](uint32_t four) {
    std::string text;
    for (int i = 0; i < 4; ++i, four >>= 8) {
      const char letter = static_cast<char>(four & 0xFF);
      text += letter >= ' ' && letter <= '~' ? letter : '?';
    }
    return "'" + text + "'";
  };
  throw std::runtime_error("a packet of the codec " + letters(said) + " came, and this decoder takes " + letters(code));
}

// Gives a decoded picture what its packet's header says.
inline void take_over_header(const PacketView& from, mr_header& to) {
  to.duration_ns = from.value->header.duration_ns;
  to.flags = from.value->header.flags & MR_FLAG_DISCONTINUITY;
}

} // namespace millrace::codec
