// Joins the runs of several nodes by links in virtual time; see spread.h.
#include "spread.h"

#include <algorithm>
#include <cstring>
#include <optional>

#include "exec/crossing.h"
#include "exec/virtual_driver.h"

namespace millrace::test {

struct Message {
  exec::Parcel parcel;
  std::vector<mr_value> values;
  std::vector<std::vector<uint8_t>> bytes;

  explicit Message(const exec::Parcel& from) : parcel(from), values(from.values.size()), bytes(from.values.size()) {
    for (size_t v = 0; v < values.size(); ++v) {
      exec::ParcelValue& value = parcel.values[v];
      if (!value.value) continue;
      values[v] = *value.value;
      bytes[v].assign(value.data, value.data + values[v].header.extent_bytes);
      value.value = &values[v];
      value.data = bytes[v].data();
    }
  }
  int64_t size() const {
    size_t size = 64;
    for (const auto& one : bytes) size += one.size();
    return static_cast<int64_t>(size);
  }
};

struct Spread::Crossing {
  Crossing(Compiled& sender, const plan::CrossingPlan& out, Compiled& receiver, const plan::CrossingPlan& in)
      : departure(sender.live(), out), arrival(receiver.live(), in) {}
  exec::Departure departure;
  exec::Arrival arrival;
  size_t from = 0, to = 0;
  uint64_t sent = 0, credit = 0, told_credit = 0;
  bool ended = false;
  std::optional<exec::Parcel> in_hand;
};

Spread::Spread(const Pipeline& pipeline, const Nodes& nodes, const Setup& setup)
    : nodes_(nodes), runs_(pipeline, nodes.names, setup, time_) {
  join_crossings();
}

Spread::~Spread() { crossings_.clear(); }

void Spread::join_crossings() {
  for (const NodeRuns::Crossing& one : runs_.crossings()) {
    crossings_.push_back(std::make_unique<Crossing>(runs_[one.from], *one.out, runs_[one.to], *one.in));
    crossings_.back()->from = one.from;
    crossings_.back()->to = one.to;
  }
}

int64_t Spread::arrival_ns(size_t from, size_t to, int64_t bytes) {
  const Link link = nodes_.link(from, to);
  int64_t& free_at = free_at_ns_[{from, to}];
  free_at = std::max(free_at, time_.now_ns()) + static_cast<int64_t>(link.ns_per_byte * static_cast<double>(bytes));
  int64_t at = free_at + link.latency_ns;
  for (const auto& [begin, end] : link.cuts)
    if (at >= begin && at < end) at = end;
  free_at = std::max(free_at, at - link.latency_ns); // none overtakes another
  return at;
}

bool Spread::move(Crossing& crossing) {
  if (const uint64_t credit = crossing.arrival.credit(); credit > crossing.told_credit) {
    crossing.told_credit = credit;
    time_.schedule(arrival_ns(crossing.to, crossing.from, 16), [&crossing, credit] { crossing.credit = credit; });
  }
  if (crossing.ended) return false;
  if (!crossing.in_hand) {
    exec::Parcel parcel;
    if (!crossing.departure.next(parcel)) return false;
    crossing.in_hand = parcel;
  }
  if (!crossing.in_hand->end && crossing.sent == crossing.credit) return false;
  const auto message = std::make_shared<Message>(*crossing.in_hand);
  crossing.in_hand.reset();
  crossing.ended = message->parcel.end;
  if (!crossing.ended) ++crossing.sent, ++parcels_;
  time_.schedule(arrival_ns(crossing.from, crossing.to, message->size()), [this, &crossing, message] {
    for (uint32_t v = 0; v < message->values.size(); ++v) {
      if (!message->parcel.values[v].value) continue;
      const exec::ParcelRoom room = crossing.arrival.room(v);
      if (message->bytes[v].size() > room.capacity) throw std::logic_error("a value is larger than its room");
      *room.value = message->values[v];
      std::memcpy(room.data, message->bytes[v].data(), message->bytes[v].size());
    }
    crossing.arrival.arrive(message->parcel);
    if (!message->parcel.end)
      time_.schedule(arrival_ns(crossing.to, crossing.from, 16), [&crossing] { crossing.departure.let_go(); });
  });
  return true;
}

Ran Spread::run() {
  exec::VirtualDriver driver(time_);
  runs_.start(driver);
  driver.add([this] {
    bool moved = false;
    for (auto& crossing : crossings_) moved = move(*crossing) || moved;
    return moved;
  });
  driver.drive();
  return runs_.wait();
}

} // namespace millrace::test
