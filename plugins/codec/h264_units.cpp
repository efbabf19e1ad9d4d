// Reads start codes, parameter sets and the first fields of slices; see h264_units.h.
#include "plugins/codec/h264_units.h"

#include <algorithm>
#include <cstddef>
#include <stdexcept>
#include <string>

namespace millrace::codec {

// The fields of a NAL unit after its first byte, without the bytes that keep start codes out of it (7.3.1). Beyond the
// end all bits are 0, and is_over() says so.
class BitReader {
 public:
  explicit BitReader(std::span<const uint8_t> nal) {
    int zeros = 0;
    for (size_t i = 1; i < nal.size() && count_ < bytes_.size(); ++i) {
      if (zeros >= 2 && nal[i] == 3) {
        zeros = 0;
        continue;
      }
      zeros = nal[i] == 0 ? zeros + 1 : 0;
      bytes_[count_++] = nal[i];
    }
  }
  uint32_t bits(uint32_t count) {
    uint32_t value = 0;
    for (uint32_t i = 0; i < count; ++i, ++at_) {
      const bool is_set = at_ / 8 < count_ && (bytes_[at_ / 8] >> (7 - at_ % 8) & 1);
      value = value << 1 | static_cast<uint32_t>(is_set);
    }
    return value;
  }
  // Exp-Golomb (9.1).
  uint32_t number() {
    uint32_t zeros = 0;
    while (zeros < 31 && !is_over() && bits(1) == 0) ++zeros;
    return (1u << zeros) - 1 + bits(zeros);
  }
  int32_t signed_number() {
    const uint32_t code = number();
    return code % 2 ? static_cast<int32_t>(code / 2 + 1) : -static_cast<int32_t>(code / 2);
  }
  bool is_over() const { return at_ > count_ * 8; }

 private:
  static constexpr size_t kBytesMax = 768; // the fields that are read, with scaling lists, take less
  std::array<uint8_t, kBytesMax> bytes_;
  size_t count_ = 0, at_ = 0; // bytes; bits
};

namespace {

enum NalType : uint32_t { kSlice = 1, kSliceOfIdr = 5, kSequenceSet = 7, kPictureSet = 8 };

void skip_scaling_list(BitReader& in, int size) {
  int32_t last = 8, next = 8;
  for (int i = 0; i < size && !in.is_over(); ++i) {
    if (next != 0) next = (last + in.signed_number() % 256 + 256) % 256;
    last = next == 0 ? last : next;
  }
}

bool has_chroma_fields(uint32_t profile) {
  constexpr std::array kProfiles = {100u, 110u, 122u, 244u, 44u, 83u, 86u, 118u, 128u, 138u, 139u, 134u, 135u};
  return std::find(kProfiles.begin(), kProfiles.end(), profile) != kProfiles.end();
}

// The place after the next start code from `at` on; the size of `unit` if there is none.
size_t after_start_code(std::span<const uint8_t> unit, size_t at) {
  for (; at + 3 <= unit.size(); ++at)
    if (unit[at] == 0 && unit[at + 1] == 0 && unit[at + 2] == 1) return at + 3;
  return unit.size();
}

} // namespace

// The size after cropping, which is counted in samples of chroma (7.4.2.1.1).
void H264Units::read_size(BitReader& in, uint32_t chroma, Sequence& sequence) {
  const uint64_t width = (uint64_t{in.number()} + 1) * 16, rows = (uint64_t{in.number()} + 1) * 16;
  const bool is_progressive = in.bits(1);
  if (!is_progressive) in.bits(1);
  in.bits(1);
  const uint64_t height = is_progressive ? rows : rows * 2;
  const uint64_t step_x = chroma == 1 || chroma == 2 ? 2 : 1, step_y = (chroma == 1 ? 2 : 1) * (is_progressive ? 1 : 2);
  uint64_t across = 0, down = 0;
  if (in.bits(1)) {
    across = (uint64_t{in.number()} + in.number()) * step_x;
    down = (uint64_t{in.number()} + in.number()) * step_y;
  }
  sequence.width = across < width ? width - across : width;
  sequence.height = down < height ? height - down : height;
}

void H264Units::read_sequence(std::span<const uint8_t> nal) {
  BitReader in(nal);
  const uint32_t profile = in.bits(8);
  in.bits(16); // constraints and level
  const uint32_t id = in.number();
  Sequence sequence;
  uint32_t chroma = 1; // 4:2:0
  if (has_chroma_fields(profile)) {
    chroma = in.number();
    if (chroma == 3) sequence.has_planes = in.bits(1);
    in.number(); // bits of luma
    in.number(); // bits of chroma
    in.bits(1);
    const bool has_lists = in.bits(1);
    for (int i = 0; has_lists && i < (chroma == 3 ? 12 : 8); ++i)
      if (in.bits(1)) skip_scaling_list(in, i < 6 ? 16 : 64);
  }
  sequence.number_bits = in.number() + 4;
  const uint32_t order = in.number();
  if (order == 0) in.number();
  if (order == 1) {
    in.bits(1);
    in.signed_number();
    in.signed_number();
    for (uint32_t cycle = std::min(in.number(), 255u); cycle > 0; --cycle) in.signed_number();
  }
  in.number(); // reference pictures
  sequence.allows_gaps = in.bits(1);
  read_size(in, chroma, sequence);
  sequence.is_known = true;
  if (!in.is_over() && id < kSequences && sequence.number_bits <= 16) sequences_[id] = sequence;
}

void H264Units::read_picture_set(std::span<const uint8_t> nal) {
  BitReader in(nal);
  const uint32_t id = in.number(), sequence = in.number();
  if (!in.is_over() && id < kPictureSets && sequence < kSequences) sequence_of_[id] = static_cast<uint8_t>(sequence);
}

void H264Units::read_slice(std::span<const uint8_t> nal, UnitFacts& facts) {
  BitReader in(nal);
  facts.has_picture = true;
  in.number(); // first macroblock
  in.number(); // type
  const uint32_t set = in.number();
  const uint32_t id = set < kPictureSets ? sequence_of_[set] : kUnknown;
  if (id == kUnknown || !sequences_[id].is_known) {
    facts.is_orphan = true;
    return;
  }
  const Sequence& sequence = sequences_[id];
  if (sequence.has_planes) in.bits(2);
  const uint32_t number = in.bits(sequence.number_bits), mask = (1u << sequence.number_bits) - 1;
  facts.is_key = (nal[0] & 31) == kSliceOfIdr;
  facts.width = sequence.width;
  facts.height = sequence.height;
  const bool follows = number == last_number_ || number == ((last_number_ + 1) & mask);
  facts.is_orphan = !facts.is_key && !follows && !sequence.allows_gaps;
  if ((nal[0] & 0x60) && !facts.is_orphan) last_number_ = number;
}

UnitFacts H264Units::read(std::span<const uint8_t> unit) {
  size_t at = after_start_code(unit, 0);
  const auto before = unit.first(at < unit.size() ? at - 3 : 0);
  if (at == unit.size() || std::any_of(before.begin(), before.end(), [](uint8_t byte) { return byte != 0; }))
    throw std::runtime_error("a packet of " + std::to_string(unit.size()) +
                             " bytes is no H.264 of Annex B: it does not begin with a start code (00 00 01)");
  UnitFacts facts;
  while (at < unit.size()) {
    const size_t next = after_start_code(unit, at);
    const std::span<const uint8_t> nal = unit.subspan(at, next - at);
    const uint32_t type = nal[0] & 31;
    if (type == kSequenceSet) read_sequence(nal);
    if (type == kPictureSet) read_picture_set(nal);
    facts.has_sequence_set = facts.has_sequence_set || type == kSequenceSet;
    facts.has_picture_set = facts.has_picture_set || type == kPictureSet;
    if ((type == kSlice || type == kSliceOfIdr) && !facts.has_picture) read_slice(nal, facts);
    at = next;
  }
  return facts;
}

} // namespace millrace::codec
