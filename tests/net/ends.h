// A sender and a reader for tests of sessions. Every byte of a parcel follows from its index, so each end knows what
// the other one has.
//
// Neither end allocates after its construction. A block is overwritten as soon as it is free, so that a link which
// still uses it brings bytes that nobody gave. What is wrong is kept as the sentence that was broken: null if nothing
// is.
#pragma once

#include <algorithm>
#include <array>
#include <cstring>
#include <vector>

#include "net/crossing.h"
#include "observe/random.h"

namespace millrace::net::test {

inline uint64_t mixed(uint64_t bits) { return Random(bits).next(); }

// The values of a crossing's ticks: packets of up to `bytes_max` bytes; one in five is empty or has no bytes.
struct Contents {
  uint64_t seed = 1;
  uint32_t values = 1;
  uint32_t bytes_max = 100;
  bool is_exact = false; // each value is there, with bytes_max bytes

  uint64_t draw(uint64_t index, uint32_t value) const { return mixed(seed * 0x51ED27u + index * 131 + value); }
  bool is_empty(uint64_t index, uint32_t value) const { return !is_exact && draw(index, value) % 10 == 0; }
  uint32_t bytes(uint64_t index, uint32_t value) const {
    if (is_exact) return bytes_max;
    const uint64_t drawn = draw(index, value);
    return drawn % 10 == 1 ? 0 : static_cast<uint32_t>((drawn >> 8) % (uint64_t{bytes_max} + 1));
  }
  mr_value header(uint64_t index, uint32_t value) const {
    mr_value made{};
    made.header.kind = MR_KIND_PACKET;
    made.header.present = 1;
    made.header.pts_ns = static_cast<int64_t>(index);
    made.header.extent_bytes = bytes(index, value);
    made.as.packet.codec = static_cast<uint32_t>(draw(index, value));
    return made;
  }
  // A period of 256 bytes that differs for each value, so that bytes of another place or value are found.
  std::array<uint8_t, 256> period(uint64_t index, uint32_t value) const {
    std::array<uint8_t, 256> bytes;
    uint64_t word = draw(index, value);
    for (size_t at = 0; at < bytes.size(); at += 8, word = word * 0xD1342543DE82EF95u + 1)
      std::memcpy(bytes.data() + at, &word, 8);
    return bytes;
  }
  void fill(uint8_t* data, uint64_t index, uint32_t value) const {
    std::array<uint8_t, 256> repeated = period(index, value);
    for (uint32_t at = 0, size = bytes(index, value); at < size; at += 256, ++repeated[at / 256 % 256])
      std::memcpy(data + at, repeated.data(), std::min<size_t>(256, size - at));
  }
  bool matches(const Value& got, uint64_t index, uint32_t value) const {
    if (is_empty(index, value)) return !got.value && got.cause == value % kCausesMax;
    const mr_value expected = header(index, value);
    if (!got.value || std::memcmp(got.value, &expected, sizeof expected) != 0) return false;
    std::array<uint8_t, 256> repeated = period(index, value);
    for (uint32_t at = 0, size = bytes(index, value); at < size; at += 256, ++repeated[at / 256 % 256])
      if (std::memcmp(got.data + at, repeated.data(), std::min<size_t>(256, size - at)) != 0) return false;
    return true;
  }
};

constexpr int64_t media_of(uint64_t index) { return static_cast<int64_t>(index) * 1000 + 1; }

inline CrossingPlan plan_of(uint16_t number, uint32_t lane, uint32_t depth, const Contents& contents) {
  CrossingPlan plan;
  plan.name = "main/" + std::to_string(number) + ">gpu";
  plan.number = number;
  plan.lane = lane;
  plan.depth = depth;
  plan.formats.resize(contents.values);
  for (mr_format& format : plan.formats) {
    format.size = sizeof(mr_format);
    format.kind = MR_KIND_PACKET;
  }
  plan.capacities.assign(contents.values, contents.bytes_max);
  return plan;
}

// The run at the sender. Ticks are made, wait for the link to take them, and are held until it lets them go.
class Giver : public Departure {
 public:
  static constexpr size_t kMadeMax = 64;

  // Each process of the sender has a number of its own, which its ticks say as their clock.
  Giver(const Contents& contents, uint32_t depth, uint64_t first_index = 0, uint32_t process = 0)
      : contents_(contents),
        depth_(depth),
        process_(process),
        next_index_(first_index),
        blocks_(depth * contents.values),
        values_(depth * contents.values) {
    for (auto& block : blocks_) block.resize(std::max(1u, contents.bytes_max));
  }

  // The run makes the next tick, after leaving out some for the cause. False if too many wait.
  bool make(uint64_t left_out = 0, Cause cause = kCauseLink, bool end = false) {
    if (made_ - given_ == kMadeMax || has_ended_) return false;
    Made& tick = ticks_[made_++ % kMadeMax];
    tick.previous = last_index_;
    tick.left_out = last_index_ == kNoIndex ? next_index_ : left_out; // the first one tells of all before it
    tick.cause = cause;
    tick.index = last_index_ == kNoIndex ? next_index_ : last_index_ + 1 + left_out;
    tick.end = has_ended_ = end;
    last_index_ = tick.index;
    return true;
  }

  bool next(Parcel& parcel) override {
    if (given_ == made_) return false;
    const Made& tick = ticks_[given_ % kMadeMax];
    parcel.tick.clock = process_;
    parcel.tick.index = tick.index;
    parcel.tick.media_time_ns = media_of(tick.index);
    parcel.tick.trace_id = mixed(tick.index);
    parcel.previous = tick.previous;
    parcel.end = tick.end;
    parcel.token = given_;
    if (tick.left_out > 0) parcel.gaps[parcel.gap_count++] = {tick.cause, tick.left_out};
    if (!tick.end) put_values(parcel);
    ++given_;
    return true;
  }

  void let_go(const Parcel& parcel, bool acknowledged) override {
    if (parcel.token != let_go_) broken_ = "parcels are let go in order, each once";
    if (parcel.end) broken_ = "an end is not let go";
    ++let_go_;
    ++(acknowledged ? acknowledged_ : lost_);
    for (uint32_t v = 0; v < contents_.values; ++v) {
      auto& block = blocks_[parcel.token % depth_ * contents_.values + v];
      std::fill(block.begin(), block.end(), uint8_t{0xDD});
      values_[parcel.token % depth_ * contents_.values + v] = {};
    }
  }

  int64_t passed_ns() const override {
    if (given_ < made_) return media_of(ticks_[given_ % kMadeMax].index) - 1;
    return last_index_ == kNoIndex ? INT64_MIN : media_of(last_index_);
  }

  uint64_t made() const { return made_; }
  uint64_t given() const { return given_; }
  uint64_t acknowledged() const { return acknowledged_; }
  uint64_t lost() const { return lost_; }
  uint64_t last_index() const { return last_index_; }
  uint32_t process() const { return process_; }
  uint64_t next_index() const { return last_index_ == kNoIndex ? next_index_ : last_index_ + 1; }
  bool has_ended() const { return has_ended_; }
  const char* broken() const { return broken_; }

 private:
  struct Made {
    uint64_t index, previous, left_out;
    Cause cause;
    bool end;
  };

  void put_values(Parcel& parcel) {
    if (given_ - let_go_ >= depth_) broken_ = "at most `depth` parcels are held";
    parcel.value_count = static_cast<uint8_t>(contents_.values);
    for (uint32_t v = 0; v < contents_.values; ++v) {
      Value& value = parcel.values[v];
      value = {};
      value.cause = static_cast<Cause>(v % kCausesMax);
      if (contents_.is_empty(parcel.tick.index, v)) continue;
      const size_t place = parcel.token % depth_ * contents_.values + v;
      values_[place] = contents_.header(parcel.tick.index, v);
      contents_.fill(blocks_[place].data(), parcel.tick.index, v);
      value = {&values_[place], blocks_[place].data(), 0};
    }
  }

  Contents contents_;
  uint32_t depth_;
  uint32_t process_;
  uint64_t next_index_;
  std::vector<std::vector<uint8_t>> blocks_;
  std::vector<mr_value> values_;
  std::array<Made, kMadeMax> ticks_{};
  uint64_t made_ = 0, given_ = 0, let_go_ = 0, acknowledged_ = 0, lost_ = 0;
  uint64_t last_index_ = kNoIndex;
  bool has_ended_ = false;
  const char* broken_ = nullptr;
};

// The run at the reader. Parcels arrive, and are taken in when the test says so.
class Taker : public Arrival {
 public:
  Taker(const Contents& contents, uint32_t depth)
      : contents_(contents),
        depth_(depth),
        blocks_(depth * contents.values),
        values_(depth * contents.values),
        waiting_(depth) {
    for (auto& block : blocks_) block.resize(std::max(1u, contents.bytes_max));
  }

  Room room(uint32_t value) override {
    if (arrived_ - taken_in_ >= depth_) broken_ = "nothing arrives without credit";
    const size_t place = arrived_ % depth_ * contents_.values + value;
    return {&values_[place], blocks_[place].data(), contents_.bytes_max};
  }

  void arrive(const Parcel& parcel) override {
    const mr_tick_info& tick = parcel.tick;
    if (arrived_ - taken_in_ >= depth_) broken_ = "nothing arrives without credit";
    const bool is_other = tick.clock > process_;
    if (tick.clock < process_) broken_ = "a process does not come back after another one";
    if (has_ended_ && !is_other) broken_ = "nothing arrives after the end";
    if (last_index_ != kNoIndex && tick.index <= last_index_) broken_ = "parcels arrive in order, each once";
    if (arrived_ > 0 && !is_other && parcel.previous != last_index_) broken_ = "no parcel is missing";
    process_ = tick.clock;
    if (tick.media_time_ns != media_of(tick.index) || tick.trace_id != mixed(tick.index))
      broken_ = "a tick arrives as it was given";
    if (tick.media_time_ns <= passed_ns_) broken_ = "no parcel comes after its time was passed";
    if (parcel.value_count != (parcel.end ? 0 : contents_.values)) broken_ = "a parcel has all values";
    if (!parcel.end) check(parcel.values.data(), tick.index);
    Waiting& waiting = waiting_[arrived_ % depth_];
    waiting.index = tick.index;
    waiting.end = parcel.end;
    std::copy_n(parcel.values.begin(), parcel.value_count, waiting.values.begin());
    for (uint8_t i = 0; i < parcel.gap_count; ++i) left_out_ += parcel.gaps[i].ticks;
    has_ended_ = parcel.end;
    last_index_ = tick.index;
    ++arrived_;
  }

  // Takes the oldest parcel in: its bytes are still those that arrived, and then the blocks are used for other things.
  bool take_in() {
    if (taken_in_ == arrived_) return false;
    const Waiting& waiting = waiting_[taken_in_ % depth_];
    if (!waiting.end) check(waiting.values.data(), waiting.index);
    for (uint32_t v = 0; v < contents_.values; ++v) {
      auto& block = blocks_[taken_in_ % depth_ * contents_.values + v];
      std::fill(block.begin(), block.end(), uint8_t{0xEE});
    }
    ++taken_in_;
    return true;
  }

  uint64_t credit() const override { return taken_in_ + depth_; }

  void passed(int64_t media_ns) override {
    if (media_ns <= passed_ns_) broken_ = "a passed time rises";
    passed_ns_ = media_ns;
  }

  uint64_t arrived() const { return arrived_; }
  uint64_t last_index() const { return last_index_; }
  uint64_t left_out() const { return left_out_; }
  int64_t passed_ns() const { return passed_ns_; }
  bool has_ended() const { return has_ended_; }
  const char* broken() const { return broken_; }

 private:
  struct Waiting {
    uint64_t index;
    bool end;
    std::array<Value, kValuesMax> values;
  };

  void check(const Value* values, uint64_t index) {
    for (uint32_t v = 0; v < contents_.values; ++v)
      if (!contents_.matches(values[v], index, v)) broken_ = "a value arrives as it was given";
  }

  Contents contents_;
  uint32_t depth_;
  std::vector<std::vector<uint8_t>> blocks_;
  std::vector<mr_value> values_;
  std::vector<Waiting> waiting_;
  uint32_t process_ = 0;
  uint64_t arrived_ = 0, taken_in_ = 0, left_out_ = 0;
  uint64_t last_index_ = kNoIndex;
  int64_t passed_ns_ = INT64_MIN;
  bool has_ended_ = false;
  const char* broken_ = nullptr;
};

} // namespace millrace::net::test
