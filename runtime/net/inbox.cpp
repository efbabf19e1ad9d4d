// Reads records from a connection's bytes as they come.
#include "net/inbox.h"

#include <algorithm>

#include "net/crc32c.h"
#include "observe/error.h"

namespace millrace::net {

void Inbox::begin(bool checks_bodies) {
  begin_ = end_ = 0;
  checks_bodies_ = checks_bodies;
  has_head_ = expects_large_ = in_data_ = false;
  target_ = {};
  body_ = {};
  fault_ = Fault::none;
}

std::span<std::byte> Inbox::room() {
  if (!target_.empty()) return target_;
  if (begin_ > 0) { // the unread bytes begin one record: at most 32 KiB
    std::memmove(buffer_.get(), buffer_.get() + begin_, end_ - begin_);
    end_ -= begin_;
    begin_ = 0;
  }
  size_t most = kInboxBytes - end_;
  if (expects_large_ && !has_head_) {
    const size_t wanted = kHeadBytes + (in_data_ ? kCrcBytes : 0);
    if (end_ < wanted) most = wanted - end_;
  }
  return {buffer_.get() + end_, most};
}

void Inbox::received(size_t bytes) {
  if (target_.empty()) {
    end_ += bytes;
    return;
  }
  if (checks_bodies_) crc_ = crc32c({target_.data(), bytes}, crc_);
  target_ = target_.subspan(bytes);
}

Inbox::Next Inbox::refuse(Fault fault) {
  fault_ = fault;
  return Next::fault;
}

Inbox::Next Inbox::next() {
  if (fault_ != Fault::none) return Next::fault;
  if (in_data_) return finish_data();
  if (!has_head_) {
    if (unread().size() < kHeadBytes) return Next::nothing;
    const Fault fault = read_head(unread().first<kHeadBytes>(), head_);
    if (fault != Fault::none) return refuse(fault);
    begin_ += kHeadBytes;
    has_head_ = true;
  }
  if (head_.type == RecordType::data) return Next::data;
  const size_t whole = head_.length + (checks_bodies_ ? kCrcBytes : 0);
  if (unread().size() < whole) return Next::nothing;
  body_ = unread().first(head_.length);
  if (checks_bodies_ && ByteReader(unread().subspan(head_.length)).get<uint32_t>() != crc32c(body_))
    return refuse(Fault::body_checksum);
  begin_ += whole;
  has_head_ = expects_large_ = false;
  return Next::record;
}

void Inbox::read_data(std::span<std::byte> target) {
  MR_ASSERT(has_head_ && head_.type == RecordType::data && target.size() == head_.length,
            "the body of a data record goes into as many bytes");
  const size_t here = std::min(unread().size(), target.size());
  if (here > 0) std::memcpy(target.data(), unread().data(), here);
  crc_ = checks_bodies_ ? crc32c(target.first(here)) : 0;
  bytes_copied_ += here;
  begin_ += here;
  target_ = target.subspan(here);
  has_head_ = false;
  in_data_ = true;
  expects_large_ = head_.length >= kInboxBytes;
}

Inbox::Next Inbox::finish_data() {
  if (!target_.empty()) return Next::nothing;
  if (checks_bodies_) {
    if (unread().size() < kCrcBytes) return Next::nothing;
    if (ByteReader(unread()).get<uint32_t>() != crc_) return refuse(Fault::body_checksum);
    begin_ += kCrcBytes;
  }
  in_data_ = false;
  return Next::data_whole;
}

} // namespace millrace::net
