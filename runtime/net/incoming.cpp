// Takes in the parcels of one crossing: every field is checked before a byte of it is used.
#include "net/incoming.h"

#include <algorithm>
#include <tuple>
#include <utility>

#include "net/value_record.h"

namespace millrace::net {

void Incoming::begin_pairing() {
  arrived_before_ += expected_;
  expected_ = 0;
  told_ = {};
  passed_ = {};
  passed_told_ns_ = INT64_MIN;
  record_stranded(false);
  ended_ = false;
  last_is_of_pairing_ = false;
  close();
}

void Incoming::close() {
  is_open_ = false;
  in_parcel_ = false;
  changes_.clear();
}

Open Incoming::open() {
  is_open_ = true;
  Open open;
  open.name = plan_.name;
  open.depth = plan_.depth;
  open.delivery = plan_.delivery;
  open.value_count = static_cast<uint8_t>(plan_.formats.size());
  for (size_t i = 0; i < plan_.formats.size(); ++i) open.format_hashes[i] = hash_of(plan_.formats[i]);
  told_ = {expected_, credit()};
  open.expected = told_.acknowledged;
  open.credit = told_.credit;
  return open;
}

Fault Incoming::check_next(const Head& head) const {
  if (!is_open_ || in_parcel_) return Fault::unexpected;
  if (ended_) return Fault::after_end;
  if (head.number != expected_) return Fault::number;
  return head.number >= told_.credit ? Fault::credit : Fault::none;
}

Fault Incoming::read_change(const Head& head, Bytes body) {
  if (const Fault fault = check_next(head); fault != Fault::none) return fault;
  if (head.at != changes_.size()) return Fault::place; // there are at most kChangesMax: the head was checked
  Change change;
  if (const Fault fault = net::read_change(body, change); fault != Fault::none) return fault;
  if (!changes_.empty()) {
    const Change& before = changes_.back();
    if (std::tie(change.epoch, change.number) <= std::tie(before.epoch, before.number)) return Fault::number;
  }
  changes_.push_back(std::move(change));
  return Fault::none;
}

// A change comes with the first parcel that it is for.
Fault Incoming::check_changes() {
  if (parcel_.end && !changes_.empty()) return Fault::unexpected;
  for (const Change& change : changes_)
    if (std::tie(change.epoch, change.index) > std::tie(parcel_.tick.epoch, parcel_.tick.index)) return Fault::index;
  parcel_.changes.swap(changes_);
  changes_.clear();
  return Fault::none;
}

Fault Incoming::read_tick(const Head& head, Bytes body) {
  if (const Fault fault = check_next(head); fault != Fault::none) return fault;
  parcel_.clear();
  parcel_.end = head.type == RecordType::end;
  ByteReader reader(body);
  if (const Fault fault = net::read_tick(reader, parcel_); fault != Fault::none) return fault;
  if (const Fault fault = check_order(); fault != Fault::none) return fault;
  if (const Fault fault = check_changes(); fault != Fault::none) return fault;
  if (const Fault fault = read_values(reader); fault != Fault::none) return fault;
  in_parcel_ = true;
  value_ = 0;
  at_ = 0;
  finish_values();
  return Fault::none;
}

// Within a pairing each parcel says the index of the one before, and epochs do not fall. Indices go on in a new epoch,
// or begin again.
Fault Incoming::check_order() {
  const mr_tick_info& tick = parcel_.tick;
  if (!plan_.begins_anew && tick.epoch != 0) return Fault::epoch;
  const bool has_gap = parcel_.gap_count > 0 || (!has_last_ && parcel_.previous != kNoIndex);
  if (!plan_.leaves_out && has_gap) return Fault::leaves_out;
  if (!last_is_of_pairing_) return Fault::none;
  if (tick.epoch < last_epoch_) return Fault::index;
  const bool begins_again = tick.epoch > last_epoch_ && parcel_.previous == kNoIndex;
  return begins_again || parcel_.previous == last_index_ ? Fault::none : Fault::index;
}

Fault Incoming::read_values(ByteReader& reader) {
  const size_t planned = parcel_.end ? 0 : plan_.formats.size();
  if (parcel_.value_count != planned) return Fault::open_values;
  for (uint32_t i = 0; i < parcel_.value_count; ++i) {
    Value& value = parcel_.values[i];
    value = {};
    const auto kind = reader.get<uint8_t>();
    if (kind == kValueEmpty) {
      value.cause = reader.get<uint8_t>();
      if (value.cause >= kCausesMax) return Fault::cause;
    } else if (kind == kValueFull) {
      mr_value read{};
      if (read_value(reader, plan_.formats[i], plan_.capacities[i], read) != ValueFault::none) return Fault::value;
      const Room room = arrival_.room(i);
      *room.value = read;
      value.value = room.value;
      value.data = room.data;
    } else {
      return Fault::value;
    }
  }
  if (!reader.good()) return Fault::body_short;
  return reader.at_end() ? Fault::none : Fault::body_long;
}

Fault Incoming::begin_data(const Head& head, std::span<std::byte>& target) {
  if (!is_open_ || !in_parcel_) return Fault::unexpected;
  if (head.number != expected_) return Fault::number;
  if (head.flags != value_) return Fault::which_value;
  if (head.at != at_) return Fault::place;
  // The value is there: finish_values() has passed all that are empty.
  const uint64_t bytes = parcel_.values[value_].value->header.extent_bytes;
  if (head.length > bytes - at_) return Fault::too_many_bytes;
  target = {reinterpret_cast<std::byte*>(arrival_.room(value_).data) + at_, head.length};
  chunk_ = head.length;
  return Fault::none;
}

void Incoming::end_data() {
  at_ += chunk_;
  finish_values();
}

// Goes on to the next value that has bytes; the parcel has arrived if there is none.
void Incoming::finish_values() {
  const auto is_whole = [&](const Value& value) { return !value.value || at_ == value.value->header.extent_bytes; };
  while (value_ < parcel_.value_count && is_whole(parcel_.values[value_])) {
    ++value_;
    at_ = 0;
  }
  if (value_ < parcel_.value_count) return;
  in_parcel_ = false;
  ended_ = parcel_.end;
  count_gaps();
  has_last_ = last_is_of_pairing_ = true;
  last_epoch_ = parcel_.tick.epoch;
  last_index_ = parcel_.tick.index;
  ++expected_;
  ++counts_.arrived;
  arrival_.arrive(parcel_);
  read_state(passed_);
}

void Incoming::count_gaps() {
  const mr_tick_info& tick = parcel_.tick;
  if (!last_is_of_pairing_ && has_last_ && tick.epoch == last_epoch_ && tick.index > last_index_) {
    // Another process goes on. It tells of ticks since its own last parcel; those between it and ours went with the
    // process before it.
    const bool tells = parcel_.previous != kNoIndex && parcel_.previous >= last_index_;
    parcel_.lost = tells ? parcel_.previous - last_index_ : tick.index - last_index_ - 1;
    counts_.lost += parcel_.lost;
    if (!tells) return;
  }
  for (uint8_t i = 0; i < parcel_.gap_count; ++i) counts_.left_out[parcel_.gaps[i].cause] += parcel_.gaps[i].ticks;
}

bool Incoming::is_urgent() const {
  if (retells_ || !is_open_) return retells_;
  const uint64_t credit_now = credit();
  const bool was_without_credit = told_.credit <= expected_ && credit_now > told_.credit;
  const uint64_t batch = std::clamp<uint64_t>(plan_.depth / 2, 1, kStateEveryParcels);
  return was_without_credit || expected_ - told_.acknowledged >= batch || credit_now - told_.credit >= batch;
}

bool Incoming::is_due() const {
  return retells_ || (is_open_ && (expected_ > told_.acknowledged || credit() > told_.credit));
}

ReaderState Incoming::write_state() {
  retells_ = false;
  return told_ = {expected_, credit()};
}

Fault Incoming::read_state(const SenderState& state) {
  if (state.passed_ns < passed_.passed_ns || state.after < passed_.after) return Fault::state_falls;
  passed_ = state;
  if (expected_ >= passed_.after && passed_.passed_ns > passed_told_ns_) {
    passed_told_ns_ = passed_.passed_ns;
    arrival_.passed(passed_told_ns_);
  }
  // A parcel that comes after these says that it is stranded no more.
  if (expected_ >= passed_.after) record_stranded(passed_.is_stranded && expected_ == passed_.after && !ended_);
  return Fault::none;
}

void Incoming::record_stranded(bool is_stranded) {
  if (std::exchange(is_stranded_, is_stranded) != is_stranded) arrival_.stranded(is_stranded);
}

} // namespace millrace::net
