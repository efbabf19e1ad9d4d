// Sends the parcels of one crossing, as far as credit and depth allow.
#include "net/outgoing.h"

#include <algorithm>

#include "net/value_record.h"
#include "observe/error.h"

namespace millrace::net {
namespace {

// A TICK with all values full, or a CHANGE.
size_t tick_bytes_most(const CrossingPlan& plan) {
  return std::max<size_t>(kTickBytesMax + plan.formats.size() * (1 + kValueRecordBytesMax), kChangeBytesMax);
}

Bytes bytes_of(const Value& value) {
  return {reinterpret_cast<const std::byte*>(value.data), static_cast<size_t>(value.value->header.extent_bytes)};
}

} // namespace

Outgoing::Outgoing(const CrossingPlan& plan, Departure& departure)
    : plan_(plan), departure_(departure), held_(new Parcel[plan.depth]) {
  MR_ASSERT(plan.depth > 0 && plan.depth <= kDepthMax && plan.formats.size() <= kValuesMax,
            "a plan keeps a crossing within the limits of a link");
}

void Outgoing::begin_pairing() {
  release(taken_, false);
  acknowledged_ = next_ = taken_ = credit_ = gave_ = 0;
  close();
  departure_.peer_begins();
  if (!ended_) return;
  held(0) = end_;
  taken_ = 1;
  ++counts_.sent;
}

void Outgoing::close() {
  silent_at_ = kNoIndex;
  is_open_ = false;
  in_parcel_ = false;
  change_ = 0;
  has_told_ = false;
}

Fault Outgoing::open(const Open& open) {
  if (open.name != plan_.name) return Fault::open_name;
  if (open.depth != plan_.depth) return Fault::open_depth;
  if (open.delivery != plan_.delivery) return Fault::open_delivery;
  if (open.value_count != plan_.formats.size()) return Fault::open_values;
  for (size_t i = 0; i < plan_.formats.size(); ++i)
    if (open.format_hashes[i] != hash_of(plan_.formats[i])) return Fault::open_format;
  // A plan that leaves nothing out ends with either process, so both are new here.
  if (!plan_.leaves_out && open.expected == 0 && open.credit < plan_.depth) return Fault::no_credit;
  // All that it has was given to some connection, and it still needs what it has not.
  if (is_open_ || open.expected < acknowledged_ || open.expected > gave_) return Fault::open_expected;
  release(open.expected, true);
  // A state may have come first, over the control connection, and said more.
  credit_ = std::max(credit_, open.credit);
  // A parcel may be acknowledged once it was given to this connection: until then its bytes are still to be read here.
  next_ = gave_ = open.expected;
  in_parcel_ = false;
  change_ = 0;
  is_open_ = true;
  return Fault::none;
}

// Blocks of parcels below `before` are free.
void Outgoing::release(uint64_t before, bool acknowledged) {
  for (; acknowledged_ < before; ++acknowledged_) {
    if (!held(acknowledged_).end) departure_.let_go(held(acknowledged_), acknowledged);
    ++(acknowledged ? counts_.acknowledged : counts_.lost);
  }
}

bool Outgoing::take() {
  if (!has_credit()) return false;
  Parcel& parcel = held(taken_);
  parcel.clear();
  if (!departure_.next(parcel)) return false;
  MR_ASSERT(parcel.value_count == (parcel.end ? 0 : plan_.formats.size()), "a parcel has the values of its crossing");
  MR_ASSERT(parcel.changes.size() <= kChangesMax, "a parcel has no more changes than a link carries");
  // A handler's mistake costs its own value, and not the link: the reader would refuse the whole connection.
  for (uint8_t i = 0; i < parcel.value_count; ++i) {
    Value& value = parcel.values[i];
    if (!value.value || fault_of(*value.value, plan_.formats[i], plan_.capacities[i]) == ValueFault::none) continue;
    value = {nullptr, nullptr, kCauseError};
    ++counts_.unsound;
  }
  if (parcel.end) {
    ended_ = true;
    end_ = parcel;
  }
  ++taken_;
  ++counts_.sent;
  for (uint8_t i = 0; i < parcel.gap_count; ++i) counts_.left_out[parcel.gaps[i].cause] += parcel.gaps[i].ticks;
  return true;
}

Outgoing::Wrote Outgoing::write_next(Outbox& outbox, bool takes_new, size_t chunk_bytes_most) {
  if (!is_open_) return Wrote::nothing;
  if (!in_parcel_) {
    if (!outbox.has_room(tick_bytes_most(plan_))) return Wrote::no_room;
    if (next_ == taken_ && !(takes_new && take())) return Wrote::nothing;
    if (next_ >= credit_) return Wrote::nothing; // an end that another process is to learn of
    if (change_ < held(next_).changes.size())
      write_change_record(outbox);
    else
      write_tick_record(outbox);
    return Wrote::record;
  }
  const Bytes chunk = next_chunk();
  if (chunk.size() > chunk_bytes_most || !outbox.has_room(0)) return Wrote::no_room;
  write_chunk(outbox, chunk);
  return Wrote::record;
}

void Outgoing::write_change_record(Outbox& outbox) {
  ByteWriter body = outbox.body(kChangeBytesMax);
  write_change(held(next_).changes[change_], body);
  outbox.add({RecordType::change, 0, plan_.number, 0, next_, change_}, body);
  ++change_;
}

void Outgoing::write_tick_record(Outbox& outbox) {
  const Parcel& parcel = held(next_);
  ByteWriter body = outbox.body(tick_bytes_most(plan_));
  write_tick(parcel, body);
  write_values(parcel, body);
  outbox.add({parcel.end ? RecordType::end : RecordType::tick, 0, plan_.number, 0, next_, 0}, body);
  in_parcel_ = true;
  value_ = 0;
  at_ = 0;
  skip_empty_values(parcel);
  finish_parcel(outbox);
}

// To the next value that has bytes to send.
void Outgoing::skip_empty_values(const Parcel& parcel) {
  const auto is_sent = [&](const Value& value) { return !value.value || at_ == value.value->header.extent_bytes; };
  while (value_ < parcel.value_count && is_sent(parcel.values[value_])) {
    ++value_;
    at_ = 0;
  }
}

void Outgoing::finish_parcel(Outbox& outbox) {
  if (value_ < held(next_).value_count) return;
  outbox.mark(plan_.number, next_);
  in_parcel_ = false;
  change_ = 0;
  ++next_;
}

Bytes Outgoing::next_chunk() {
  const Bytes bytes = bytes_of(held(next_).values[value_]);
  return bytes.subspan(static_cast<size_t>(at_),
                       std::min<size_t>(kChunkBytesMax, bytes.size() - static_cast<size_t>(at_)));
}

void Outgoing::write_chunk(Outbox& outbox, Bytes chunk) {
  outbox.add_data({RecordType::data, static_cast<uint8_t>(value_), plan_.number, 0, next_, static_cast<uint32_t>(at_)},
                  chunk);
  at_ += chunk.size();
  skip_empty_values(held(next_));
  finish_parcel(outbox);
}

Fault Outgoing::read_state(const ReaderState& state) {
  if (state.acknowledged > gave_) return Fault::acknowledged;
  if (state.credit < state.acknowledged) return Fault::credit;
  // States of two connections may overtake each other; each says what was true.
  release(state.acknowledged, true);
  credit_ = std::max(credit_, state.credit);
  return Fault::none;
}

Fault Outgoing::all_has_come(int64_t asked_ns) {
  if (acknowledged_ >= gave_ || acknowledged_ != silent_at_) {
    silent_at_ = acknowledged_ < gave_ ? acknowledged_ : kNoIndex;
    silent_since_ns_ = asked_ns;
  }
  return silent_at_ != kNoIndex && asked_ns - silent_since_ns_ >= kStateSilentNs ? Fault::no_state : Fault::none;
}

bool Outgoing::has_passed() const {
  if (!is_open_) return false;
  const SenderState told = has_told_ ? told_ : SenderState{};
  return departure_.passed_ns() > told.passed_ns || is_stranded() != told.is_stranded;
}

SenderState Outgoing::write_state() {
  has_told_ = true;
  return told_ = {departure_.passed_ns(), taken_, is_stranded()};
}

} // namespace millrace::net
