// Cuts messages into chunks, and puts them together again.
#include "net/messages.h"

#include <utility>

namespace millrace::net {

bool OutgoingMessages::add(std::string text) {
  if (text.empty() || text.size() > kMessageBytesMax) return false;
  if (waiting_.size() == kMessagesWaitingMax) return false;
  if (waiting_bytes_ + text.size() > kMessagesWaitingBytesMax) return false;
  waiting_bytes_ += text.size();
  waiting_.push_back(std::move(text));
  return true;
}

void OutgoingMessages::clear() {
  waiting_.clear();
  waiting_bytes_ = number_ = at_ = 0;
}

void OutgoingMessages::write_next(Outbox& outbox, int64_t now_ns) {
  if (waiting_.empty() || now_ns < next_ns() || !outbox.has_room(kMessageChunkBytes)) return;
  const std::string& text = waiting_.front();
  const size_t bytes = chunk_bytes();
  const bool is_last = at_ + bytes == text.size();
  ByteWriter body = outbox.body(kMessageChunkBytes);
  body.put_text(std::string_view(text).substr(at_, bytes));
  outbox.add({RecordType::message, is_last ? kLastChunk : uint8_t{0}, 0, 0, number_, static_cast<uint32_t>(at_)}, body);
  rate_.take(bytes, now_ns);
  at_ += bytes;
  if (!is_last) return;
  waiting_bytes_ -= text.size();
  waiting_.pop_front();
  ++number_;
  at_ = 0;
}

void IncomingMessages::begin() {
  cut();
  whole_.clear();
  waiting_bytes_ = 0;
}

void IncomingMessages::cut() {
  std::string().swap(coming_); // 4 MiB are not kept for the next one
  number_ = 0;
}

// read_head() has looked at the chunk's own place and length.
Fault IncomingMessages::read(const Head& head, Bytes body, int64_t now_ns) {
  if (head.number != number_) return Fault::number;
  if (head.at != coming_.size()) return Fault::place;
  if (now_ns < rate_.free_at_ns(body.size())) return Fault::message_rate;
  if (whole_.size() == kMessagesWaitingMax) return Fault::message_waiting;
  if (waiting_bytes_ + coming_.size() + body.size() > kMessagesWaitingBytesMax) return Fault::message_waiting;
  rate_.take(body.size(), now_ns);
  coming_.append(reinterpret_cast<const char*>(body.data()), body.size());
  if (head.flags != kLastChunk) return Fault::none;
  waiting_bytes_ += coming_.size();
  whole_.push_back(std::exchange(coming_, {}));
  ++number_;
  return Fault::none;
}

bool IncomingMessages::take(std::string& text) {
  if (whole_.empty()) return false;
  text = std::move(whole_.front());
  whole_.pop_front();
  waiting_bytes_ -= text.size();
  return true;
}

} // namespace millrace::net
