// Records that wait to be written to one connection: heads and small bodies in bytes of its own, large bodies in their
// blocks.
//
// Records are added whole. The owner of the connection writes pieces() in order and says how much went. Nothing is
// allocated after construction: a record that finds no room waits with its owner until all that is here has gone.
#pragma once

#include <array>
#include <memory>
#include <span>

#include "net/record.h"

namespace millrace::net {

class Outbox {
 public:
  Outbox() : bytes_(new std::byte[kOutboxBytes]), pieces_(new Bytes[kPiecesMax]), marks_(new Mark[kPiecesMax]) {}

  // A connection begins; what waited for the one before is let go.
  void begin(bool checks_bodies);

  // Room for one record with a body of at most this many bytes of its own.
  bool has_room(size_t body_bytes_most) const;
  // The body is written here, then add() puts a head before it. `head.length` is set from the body.
  ByteWriter body(size_t body_bytes_most);
  void add(Head head, const ByteWriter& body);
  void add(RecordType type, const ByteWriter& body) { add({type, 0, 0, 0, 0, 0}, body); }
  // REFUSE or GOAWAY, with the reason's own sentence. False if there is no room.
  bool add_farewell(RecordType type, Fault code, std::string_view sentence);
  // DATA, whose body stays where it is until it was sent.
  void add_data(Head head, Bytes body);
  // When the record that was added last has gone, take_mark() gives the crossing and number in its head.
  void mark(uint16_t crossing, uint64_t number);

  bool empty() const { return piece_begin_ == piece_end_; }
  uint64_t waiting_bytes() const { return added_bytes_ - sent_bytes_; }
  std::span<const Bytes> pieces() const { return {pieces_.get() + piece_begin_, piece_end_ - piece_begin_}; }
  void sent(size_t bytes);

  struct Mark {
    uint64_t at_bytes;
    uint64_t number;
    uint16_t crossing;
  };
  bool take_mark(Mark& mark);

 private:
  void add_piece(Bytes bytes);

  std::unique_ptr<std::byte[]> bytes_;
  std::unique_ptr<Bytes[]> pieces_;
  std::unique_ptr<Mark[]> marks_;
  size_t used_bytes_ = 0; // all are free again once everything has gone
  size_t piece_begin_ = 0, piece_end_ = 0;
  size_t mark_begin_ = 0, mark_end_ = 0;
  uint64_t added_bytes_ = 0, sent_bytes_ = 0;
  bool checks_bodies_ = false;
};

} // namespace millrace::net
