// Draws the times of a script's faults, and faults at random.
#include "schedule.h"

#include <algorithm>

namespace millrace::chaos {

namespace {

constexpr int64_t kUs = 1'000, kMs = 1'000'000;

// Amounts that a link may meet, from hardly noticed to very bad.
void draw_amount(Fault& fault, Draw& draw) {
  switch (fault.kind) {
    case Kind::latency: fault.amount = kUs * draw.scaled(100, 200'000); break;
    case Kind::jitter: fault.amount = kUs * draw.scaled(100, 50'000); break;
    case Kind::bandwidth: fault.amount = draw.scaled(10'000, 100'000'000); break;
    case Kind::slice: // up to one Ethernet segment
      fault.amount = draw.scaled(1, 1460);
      fault.most = draw.within(fault.amount, 1460);
      break;
    case Kind::flip: fault.amount = draw.scaled(1'000, 10'000'000); break;
    case Kind::limit: fault.amount = draw.scaled(1'000, 10'000'000); break;
    default: break;
  }
}

Fault draw_fault(Draw& draw, int64_t mean_interval_ns) {
  Fault fault;
  fault.kind = static_cast<Kind>(draw.within(0, kKinds - 1));
  draw_amount(fault, draw);
  const bool whole = fault.kind == Kind::refuse || fault.kind == Kind::blackhole || fault.kind == Kind::clear;
  const int64_t side = draw.within(0, 2);
  if (!whole) fault.scope = {.up = side != 1, .down = side != 2};
  const int64_t duration = draw.within(mean_interval_ns / 10, mean_interval_ns * 3 / 2);
  const bool lasts = fault.kind != Kind::cut && fault.kind != Kind::reset && fault.kind != Kind::clear;
  if (lasts) fault.duration_ns = duration / kUs * kUs;
  return fault;
}

} // namespace

Schedule::Schedule(const Script& script, uint64_t seed) {
  for (const Statement& statement : script) {
    lines_.push_back({.statement = statement, .draw = Draw(seed, lines_.size() + 1), .next_ns = statement.at_ns});
    if (statement.every_ns > 0) {
      lines_.back().next_ns = 0;
      draw_next(lines_.back());
    }
  }
}

Schedule Schedule::at_random(uint64_t seed, int64_t mean_interval_ns) {
  const int64_t mean = std::max(mean_interval_ns, kMs);
  Statement any;
  any.every_ns = mean;
  any.spread_ns = mean * 9 / 10;
  Schedule schedule({any}, seed);
  schedule.mean_interval_ns_ = mean;
  return schedule;
}

void Schedule::draw_next(Line& line) const {
  const Statement& statement = line.statement;
  if (statement.every_ns == 0 || (statement.repeat && line.done == *statement.repeat)) {
    line.next_ns.reset();
    return;
  }
  *line.next_ns += statement.every_ns + line.draw.within(-statement.spread_ns, statement.spread_ns);
}

std::optional<int64_t> Schedule::next_at() const {
  std::optional<int64_t> next;
  for (const Line& line : lines_)
    if (line.next_ns && (!next || *line.next_ns < *next)) next = line.next_ns;
  return next;
}

std::optional<Event> Schedule::next() {
  const std::optional<int64_t> at = next_at();
  if (!at) return std::nullopt;
  Line& line = *std::find_if(lines_.begin(), lines_.end(), [&](const Line& one) { return one.next_ns == at; });
  Event event{.at_ns = *at, .fault = line.statement.fault};
  if (mean_interval_ns_ != 0) event.fault = draw_fault(line.draw, mean_interval_ns_);
  ++line.done;
  draw_next(line);
  return event;
}

} // namespace millrace::chaos
