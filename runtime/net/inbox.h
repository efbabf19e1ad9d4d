// Reads the records of one connection: small ones from a buffer, large bodies straight into their block.
//
// The owner of the connection reads into room() and says how much came. Small records are read 64 KiB at a time. The
// bytes of DATA go into the block that they belong to; only what came together with its head is copied. After a large
// body just one head is asked for, so that the next body is read into its block too.
#pragma once

#include <memory>
#include <span>

#include "net/record.h"

namespace millrace::net {

class Inbox {
 public:
  Inbox() : buffer_(new std::byte[kInboxBytes]) {}

  // A connection begins. `checks_bodies`: a body ends in a CRC-32C (there is no TLS).
  void begin(bool checks_bodies);

  // The next bytes of the connection go here; never empty.
  std::span<std::byte> room();
  void received(size_t bytes);

  enum class Next : uint8_t { nothing, record, data, data_whole, fault };
  // `record`: a head with its whole body, which stays valid until the next call. `data`: a head alone; the caller says
  // where its body goes by read_data(). `data_whole`: that body is there, and right. `fault`: fault() says why.
  Next next();
  const Head& head() const { return head_; }
  Bytes body() const { return body_; }
  Fault fault() const { return fault_; }

  // The body of the DATA that next() told goes here; target.size() == head().length.
  void read_data(std::span<std::byte> target);

  uint64_t bytes_copied() const { return bytes_copied_; } // from the buffer into blocks

 private:
  Bytes unread() const { return {buffer_.get() + begin_, end_ - begin_}; }
  Next refuse(Fault fault);
  Next finish_data();

  std::unique_ptr<std::byte[]> buffer_;
  size_t begin_ = 0, end_ = 0; // unread bytes of the buffer
  bool checks_bodies_ = false;
  bool has_head_ = false;
  bool expects_large_ = false; // the record before was large: the next one may be, too
  Head head_;
  Bytes body_;
  std::span<std::byte> target_; // rest of the block that DATA fills; its own bytes, not the checksum
  bool in_data_ = false;
  uint32_t crc_ = 0;
  Fault fault_{};
  uint64_t bytes_copied_ = 0;
};

} // namespace millrace::net
