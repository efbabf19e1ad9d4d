// Reads as much of an H.264 stream as tells whether an access unit can be decoded: Annex B's start codes, the numbers
// of pictures, and which parameter sets came. ITU-T H.264, 7.3.
//
// libavcodec decodes a picture whose reference is missing from whatever it has, and says nothing. So the numbers are
// compared here. A loss of exactly one cycle of numbers (at least 16 pictures) is not seen.
#pragma once

#include <array>
#include <cstdint>
#include <span>

namespace millrace::codec {

class BitReader;

// One access unit.
struct UnitFacts {
  bool has_picture = false;
  bool has_sequence_set = false, has_picture_set = false; // SPS, PPS
  bool is_key = false;                                    // an IDR picture, and its parameter sets are known
  bool is_orphan = false;         // it refers to a picture that did not come, or to parameter sets that did not
  uint64_t width = 0, height = 0; // pixels; 0 if its parameter sets are not known
};

// One thread at a time calls it. It allocates nothing.
class H264Units {
 public:
  // The next access unit of the stream. Throws std::runtime_error in a sentence if it has no start codes.
  UnitFacts read(std::span<const uint8_t> unit);

 private:
  // A sequence parameter set (SPS).
  struct Sequence {
    bool is_known = false, allows_gaps = false, has_planes = false;
    uint32_t number_bits = 0;       // how many a picture's number has
    uint64_t width = 0, height = 0; // pixels
  };
  static void read_size(BitReader& in, uint32_t chroma, Sequence& sequence);
  void read_sequence(std::span<const uint8_t> nal);
  void read_picture_set(std::span<const uint8_t> nal);
  void read_slice(std::span<const uint8_t> nal, UnitFacts& facts);

  static constexpr uint32_t kSequences = 32, kPictureSets = 256, kUnknown = kSequences; // the most that H.264 has
  std::array<Sequence, kSequences> sequences_{};
  std::array<uint8_t, kPictureSets> sequence_of_ = unknown_sets(); // by picture parameter set (PPS)
  uint32_t last_number_ = 0;                                       // the last reference picture's

  static constexpr std::array<uint8_t, kPictureSets> unknown_sets() {
    std::array<uint8_t, kPictureSets> sets{};
    sets.fill(kUnknown);
    return sets;
  }
};

} // namespace millrace::codec
