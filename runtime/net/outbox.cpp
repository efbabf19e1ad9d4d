// Queues records as pieces for one gathering write.
#include "net/outbox.h"

#include "net/crc32c.h"
#include "observe/error.h"

namespace millrace::net {

void Outbox::begin(bool checks_bodies) {
  checks_bodies_ = checks_bodies;
  used_bytes_ = piece_begin_ = piece_end_ = mark_begin_ = mark_end_ = 0;
  added_bytes_ = sent_bytes_ = 0;
}

bool Outbox::has_room(size_t body_bytes_most) const {
  return used_bytes_ + kHeadBytes + body_bytes_most + kCrcBytes <= kOutboxBytes && piece_end_ + 3 <= kPiecesMax &&
         mark_end_ < kPiecesMax;
}

ByteWriter Outbox::body(size_t body_bytes_most) {
  MR_ASSERT(has_room(body_bytes_most), "a record is written where there is room for it");
  return ByteWriter({bytes_.get() + used_bytes_ + kHeadBytes, body_bytes_most});
}

void Outbox::add(Head head, const ByteWriter& body) {
  MR_ASSERT(body.fits(), "a record's body was measured before it was written");
  head.length = static_cast<uint32_t>(body.size());
  std::byte* const begin = bytes_.get() + used_bytes_;
  write_head(head, std::span<std::byte, kHeadBytes>(begin, kHeadBytes));
  size_t size = kHeadBytes + body.size();
  if (checks_bodies_) {
    ByteWriter checksum({begin + size, kCrcBytes});
    checksum.put(crc32c(body.written()));
    size += kCrcBytes;
  }
  used_bytes_ += size;
  add_piece({begin, size});
}

bool Outbox::add_farewell(RecordType type, Fault code, std::string_view sentence) {
  if (!has_room(kFarewellBytesMax)) return false;
  ByteWriter farewell = body(kFarewellBytesMax);
  write_farewell({code, sentence}, farewell);
  add(type, farewell);
  return true;
}

void Outbox::add_data(Head head, Bytes body) {
  MR_ASSERT(has_room(0), "a record is written where there is room for it");
  head.length = static_cast<uint32_t>(body.size());
  std::byte* const begin = bytes_.get() + used_bytes_;
  write_head(head, std::span<std::byte, kHeadBytes>(begin, kHeadBytes));
  used_bytes_ += kHeadBytes;
  add_piece({begin, kHeadBytes});
  add_piece(body);
  if (!checks_bodies_) return;
  ByteWriter checksum({begin + kHeadBytes, kCrcBytes});
  checksum.put(crc32c(body));
  used_bytes_ += kCrcBytes;
  add_piece({begin + kHeadBytes, kCrcBytes});
}

// Records that lie one after the other go as one piece.
void Outbox::add_piece(Bytes bytes) {
  added_bytes_ += bytes.size();
  if (!empty()) {
    Bytes& last = pieces_[piece_end_ - 1];
    if (last.data() + last.size() == bytes.data()) {
      last = {last.data(), last.size() + bytes.size()};
      return;
    }
  }
  pieces_[piece_end_++] = bytes;
}

void Outbox::mark(uint16_t crossing, uint64_t number) { marks_[mark_end_++] = {added_bytes_, number, crossing}; }

void Outbox::sent(size_t bytes) {
  sent_bytes_ += bytes;
  MR_ASSERT(sent_bytes_ <= added_bytes_, "no more bytes are sent than there are");
  while (bytes > 0) {
    Bytes& first = pieces_[piece_begin_];
    if (bytes < first.size()) {
      first = first.subspan(bytes);
      return;
    }
    bytes -= first.size();
    ++piece_begin_;
  }
  if (empty()) used_bytes_ = piece_begin_ = piece_end_ = 0;
}

bool Outbox::take_mark(Mark& mark) {
  if (mark_begin_ == mark_end_) {
    mark_begin_ = mark_end_ = 0;
    return false;
  }
  if (marks_[mark_begin_].at_bytes > sent_bytes_) return false;
  mark = marks_[mark_begin_++];
  return true;
}

} // namespace millrace::net
