// Makes ticks with values that are drawn, and takes them in.
#include "tests/net/sim/run.h"
#include "tests/chance.h"

#include <algorithm>
#include <cstring>

#include "observe/error.h"

namespace millrace::net::sim {

CrossingPlan make_plan(uint16_t number, uint32_t lane, uint32_t depth, Delivery delivery, uint32_t values,
                       uint64_t capacity) {
  CrossingPlan plan;
  plan.name = "main/" + std::to_string(number);
  plan.number = number;
  plan.lane = lane;
  plan.depth = depth;
  plan.delivery = delivery;
  mr_format format{};
  format.kind = MR_KIND_PACKET;
  plan.formats.assign(values, format);
  plan.capacities.assign(values, capacity);
  return plan;
}

// ---- maker ---------------------------------------------------------------------------------------------------------

Maker::Maker(const CrossingSetup& setup, History& history, Random random, uint32_t epoch, uint64_t first)
    : setup_(setup), history_(history), random_(random), epoch_(epoch), index_(first) {
  pending_[kCauseNotThere] = left_out_[kCauseNotThere] = first;
}

bool Maker::tick(int64_t now_ns) {
  if (made_end_) return false;
  if (made_ == setup_.ticks) {
    make_end();
    return false;
  }
  if (chance(random_, setup_.epoch_per_mille)) raise_epoch();
  const bool is_due = index_ % setup_.every == 0;
  const bool is_full = waiting_.size() + taken_.size() >= setup_.plan.depth;
  if (is_due && is_full && setup_.clock_waits) return false;
  ++made_;
  media_ns_ += setup_.period_ns;
  if (!is_due) {
    leave_out(kCauseNotDue);
  } else if (away_ && setup_.plan.delivery == Delivery::live && !setup_.clock_waits) {
    leave_out(kCauseAway);
  } else if (is_full && (setup_.plan.delivery == Delivery::reliable || waiting_.empty())) {
    leave_out(kCauseLink);
  } else {
    make(now_ns);
    if (is_full) leave_out_oldest(kCauseLink);
  }
  ++index_;
  return true;
}

void Maker::make(int64_t now_ns) {
  auto tick = std::make_unique<Tick>();
  tick->parcel.tick = {0, epoch_, index_, media_ns_, media_ns_ + kSecond, random_.next()};
  tick->parcel.begun_ns = now_ns;
  tick->parcel.begun_error_us = static_cast<uint32_t>(index_);
  tick->gaps = pending_;
  pending_ = {};
  make_values(*tick);
  waiting_.push_back(std::move(tick));
  held_max_ = std::max<uint64_t>(held_max_, waiting_.size() + taken_.size());
}

void Maker::make_values(Tick& tick) {
  const auto count = static_cast<uint8_t>(setup_.plan.formats.size());
  tick.parcel.value_count = count;
  tick.values.resize(count);
  tick.bytes.resize(count);
  for (uint8_t i = 0; i < count; ++i) {
    Value& value = tick.parcel.values[i];
    if (chance(random_, setup_.empty_per_mille)) {
      value = {nullptr, nullptr, kCauseNothing};
      continue;
    }
    const bool is_large = chance(random_, setup_.large_per_mille);
    const uint64_t most = is_large ? setup_.plan.capacities[i] : setup_.value_bytes_most;
    const uint64_t size = is_large ? most / 2 + random_.below(most / 2 + 1) : random_.below(most + 1);
    std::vector<uint8_t>& bytes = tick.bytes[i];
    bytes.resize(static_cast<size_t>(size));
    uint64_t word = random_.next();
    for (size_t at = 0; at + 8 <= bytes.size(); at += 8) {
      std::memcpy(bytes.data() + at, &word, 8);
      word += 0x9E3779B97F4A7C15u;
    }
    for (size_t at = bytes.size() & ~size_t{7}; at < bytes.size(); ++at)
      bytes[at] = static_cast<uint8_t>(word >> (at % 8 * 8));
    mr_value& header = tick.values[i];
    header.header.kind = MR_KIND_PACKET;
    header.header.present = 1;
    header.header.extent_bytes = size;
    header.header.pts_ns = static_cast<int64_t>(random_.next() >> 1);
    value = {&header, bytes.data(), 0};
  }
}

void Maker::make_end() {
  media_ns_ += setup_.period_ns;
  auto tick = std::make_unique<Tick>();
  tick->parcel.tick = {0, epoch_, index_, media_ns_, 0, random_.next()};
  tick->parcel.end = true;
  tick->gaps = pending_;
  pending_ = {};
  waiting_.push_back(std::move(tick));
  made_end_ = true;
}

// Its tick and the ticks before it are told with the next parcel of its epoch.
void Maker::leave_out_oldest(Cause cause) {
  const std::unique_ptr<Tick> oldest = std::move(waiting_.front());
  waiting_.pop_front();
  ++oldest->gaps[cause];
  ++left_out_[cause];
  const bool has_next = !waiting_.empty();
  const uint32_t next_epoch = has_next ? waiting_.front()->parcel.tick.epoch : epoch_;
  Counts& into = next_epoch != oldest->parcel.tick.epoch ? untold_ : has_next ? waiting_.front()->gaps : pending_;
  for (size_t i = 0; i < kCausesMax; ++i) into[i] += oldest->gaps[i];
}

void Maker::raise_epoch() {
  for (size_t i = 0; i < kCausesMax; ++i) untold_[i] += pending_[i];
  pending_ = {};
  ++epoch_;
  index_ = 0;
}

void Maker::pair(uint64_t pairing) {
  pairing_ = pairing;
  if (has_end_) history_.given_again({pairing_, setup_.plan.number}, end_);
}

void Maker::peer_away(bool away) {
  away_ = away;
  if (!away || setup_.plan.delivery != Delivery::live || setup_.clock_waits) return;
  while (!waiting_.empty() && !waiting_.front()->parcel.end) leave_out_oldest(kCauseAway);
}

bool Maker::next(Parcel& parcel) {
  if (waiting_.empty()) return false;
  std::unique_ptr<Tick> tick = std::move(waiting_.front());
  waiting_.pop_front();
  Parcel& made = tick->parcel;
  made.previous = has_last_ && last_epoch_ == made.tick.epoch ? last_index_ : kNoIndex;
  made.gap_count = 0;
  for (size_t cause = 0; cause < kCausesMax; ++cause)
    if (tick->gaps[cause] > 0) made.gaps[made.gap_count++] = {static_cast<Cause>(cause), tick->gaps[cause]};
  has_last_ = true;
  last_epoch_ = made.tick.epoch;
  last_index_ = made.tick.index;
  made.token = history_.given({pairing_, setup_.plan.number}, setup_.plan.depth, made);
  parcel = made;
  if (made.end) {
    has_end_ = true;
    end_ = made;
  } else {
    taken_[made.token] = std::move(tick);
  }
  return true;
}

void Maker::let_go(const Parcel& parcel, bool acknowledged) {
  history_.let_go(parcel.token, acknowledged);
  if (!acknowledged) ++lost_;
  taken_.erase(parcel.token);
}

int64_t Maker::passed_ns() const {
  return waiting_.empty() ? media_ns_ : waiting_.front()->parcel.tick.media_time_ns - 1;
}

// ---- taker ---------------------------------------------------------------------------------------------------------

Taker::Taker(const CrossingSetup& setup, History& history, Random random, Later later)
    : setup_(setup), history_(history), random_(random), later_(std::move(later)), slots_(setup.plan.depth) {
  const size_t values = setup.plan.formats.size();
  for (Slot& slot : slots_) {
    slot.values.resize(values);
    for (size_t i = 0; i < values; ++i)
      slot.bytes.emplace_back(new uint8_t[static_cast<size_t>(setup.plan.capacities[i])]);
  }
}

void Taker::pair(uint64_t pairing) {
  pairing_ = pairing;
  arrived_before_ = arrived_;
  history_.promised({pairing_, setup_.plan.number}, credit() - arrived_before_);
}

Room Taker::room(uint32_t value) {
  Slot& slot = slots_[arrived_ % slots_.size()];
  if (slot.is_used) history_.fail("a block was asked for without credit");
  return {&slot.values[value], slot.bytes[value].get(), setup_.plan.capacities[value]};
}

void Taker::arrive(const Parcel& parcel) {
  history_.arrived({pairing_, setup_.plan.number}, parcel);
  count_ticks(parcel);
  if (on_parcel) on_parcel(parcel);
  Slot& slot = slots_[arrived_++ % slots_.size()];
  if (slot.is_used) history_.fail("a parcel arrived in a block that is in use");
  slot.is_used = true;
  slot.parcel = parcel;
  slot.hash = hash_of(parcel);
  ended_ = parcel.end;
  for (uint8_t i = 0; i < parcel.value_count; ++i)
    if (parcel.values[i].value) value_bytes_ += parcel.values[i].value->header.extent_bytes;
  if (!is_taking_) take_in();
}

// After the time that its handlers work on it.
void Taker::take_in() {
  is_taking_ = true;
  int64_t after_ns = random_.between(setup_.taking_least_ns, setup_.taking_most_ns);
  if (chance(random_, setup_.slow_per_mille)) after_ns *= 100;
  later_(after_ns, [this] {
    Slot& slot = slots_[taken_in_ % slots_.size()];
    if (hash_of(slot.parcel) != slot.hash) history_.fail("a block was written while it was in use");
    slot.is_used = false;
    ++taken_in_;
    history_.promised({pairing_, setup_.plan.number}, credit() - arrived_before_);
    is_taking_ = false;
    if (taken_in_ < arrived_) take_in();
    if (on_credit) on_credit();
  });
}

// A link tells each tick between two parcels once: as left out, or as lost with the process that it was sent by.
void Taker::count_ticks(const Parcel& parcel) {
  const mr_tick_info& tick = parcel.tick;
  const bool goes_on = has_last_ && last_epoch_ == tick.epoch && last_index_ < tick.index;
  between_ += tick.index - (goes_on ? last_index_ : parcel.previous) - 1;
  has_last_ = true;
  last_epoch_ = tick.epoch;
  last_index_ = tick.index;
}

void Taker::passed(int64_t media_ns) { history_.passed({pairing_, setup_.plan.number}, media_ns); }

} // namespace millrace::net::sim
