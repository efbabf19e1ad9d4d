// Joins the runs of several nodes by links in virtual time; see spread.h.
#include "spread.h"

#include <algorithm>
#include <cstring>
#include <optional>

#include "exec/crossing.h"
#include "exec/run.h"
#include "exec/virtual_driver.h"
#include "plan/plan.h"

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
      : departure(sender.live(), out), arrival(receiver.live(), in), credit(arrival.credit()), told_credit(credit) {}
  exec::Departure departure;
  exec::Arrival arrival;
  size_t from = 0, to = 0;
  uint64_t sent = 0, credit, told_credit; // a crossing is opened before the runs begin
  int64_t told_passed_ns = INT64_MIN;
  bool ended = false, told_stranded = false;
  std::optional<exec::Parcel> in_hand;
};

Spread::Spread(const Pipeline& pipeline, const Nodes& nodes, const Setup& setup)
    : nodes_(nodes),
      time_(setup.time ? *setup.time : time_here_),
      runs_(pipeline, nodes.names, setup, time_, nodes.own_times, nodes.tells_after_ns) {
  for (const auto& [from, to, out, in] : runs_.crossings()) {
    crossings_.push_back(std::make_unique<Crossing>(runs_[from], *out, runs_[to], *in));
    crossings_.back()->from = from;
    crossings_.back()->to = to;
    tell_cuts(*crossings_.back(), nodes_.link(from, to));
  }
}

Spread::~Spread() { crossings_.clear(); }

void Spread::tell_cuts(Crossing& crossing, const Link& link) {
  const auto tell = [this, &crossing](int64_t at_ns, bool away) {
    time_.schedule(at_ns, [&crossing, away] {
      crossing.departure.peer_away(away);
      crossing.arrival.away(away);
    });
  };
  for (const auto& [begin, end] : link.cuts) {
    if (link.away_after_ns == 0 || begin + link.away_after_ns >= end) continue;
    tell(begin + link.away_after_ns, true);
    tell(end, false);
  }
}

void Spread::plan_death() {
  if (!nodes_.death) return;
  time_.schedule(nodes_.death->at_ns, [this] {
    is_dead_ = true;
    runs_[nodes_.death->node].live().interrupt();
  });
  time_.schedule(nodes_.death->at_ns + nodes_.death->told_after_ns, [this] {
    for (auto& crossing : crossings_) {
      if (crossing->to == nodes_.death->node) crossing->departure.peer_away(true);
      if (crossing->from == nodes_.death->node) crossing->arrival.away(true);
    }
  });
}

void Spread::plan_stop() {
  if (nodes_.stop_at_ns == 0) return;
  time_.schedule(nodes_.stop_at_ns, [this] {
    for (size_t n = 0; n < runs_.size(); ++n) runs_[n].live().stop();
  });
}

// As the coordinator of a fleet does it. True if the runs have just been told.
bool Spread::tell_clocks_over() {
  for (size_t n = 0; n < runs_.size(); ++n)
    if (are_clocks_over_ || (!is_dead(n) && !runs_[n].live().have_clocks_ended())) return false;
  for (size_t n = 0; n < runs_.size(); ++n) runs_[n].live().clocks_are_over();
  return are_clocks_over_ = true;
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
  if (is_dead(crossing.from) || is_dead(crossing.to)) return false;
  if (const uint64_t credit = crossing.arrival.credit(); credit > crossing.told_credit) {
    crossing.told_credit = credit;
    time_.schedule(arrival_ns(crossing.to, crossing.from, 16), [&crossing, credit] { crossing.credit = credit; });
  }
  if (crossing.ended) return false;
  const int64_t passed = crossing.in_hand ? INT64_MIN : crossing.departure.passed_ns(); // what is in hand was taken
  if (passed > crossing.told_passed_ns) {
    crossing.told_passed_ns = passed;
    time_.schedule(arrival_ns(crossing.from, crossing.to, 16),
                   [&crossing, passed] { crossing.arrival.passed(passed); });
  }
  if (const bool is_stranded = !crossing.in_hand && crossing.departure.is_stranded();
      is_stranded != crossing.told_stranded) {
    crossing.told_stranded = is_stranded;
    time_.schedule(arrival_ns(crossing.from, crossing.to, 16),
                   [&crossing, is_stranded] { crossing.arrival.stranded(is_stranded); });
  }
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
    if (is_dead(crossing.to)) return;
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

Report Spread::report_of(size_t node) { return runs_[node].live().report(); }

Ran Spread::run() {
  exec::VirtualDriver driver(time_);
  runs_.start(driver);
  plan_death();
  plan_stop();
  driver.add([this] {
    bool moved = tell_clocks_over();
    for (auto& crossing : crossings_) moved = move(*crossing) || moved;
    return moved;
  });
  driver.drive();
  return is_dead_ ? runs_.wait(nodes_.death->node) : runs_.wait();
}

} // namespace millrace::test
