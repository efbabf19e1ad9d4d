// Folds the faults in force into the conditions of one direction.
#include "rules.h"

#include <algorithm>

namespace millrace::chaos {

namespace {

bool outlives(const std::optional<int64_t>& one, const std::optional<int64_t>& other) {
  return other && (!one || *one > *other);
}

void apply(const Fault& fault, uint64_t id, Conditions& conditions) {
  switch (fault.kind) {
    case Kind::latency: conditions.latency_ns = fault.amount; break;
    case Kind::jitter: conditions.jitter_ns = fault.amount; break;
    case Kind::bandwidth: conditions.bytes_per_s = fault.amount; break;
    case Kind::slice:
      conditions.slice_least = fault.amount;
      conditions.slice_most = fault.most;
      break;
    case Kind::flip: conditions.flip_one_in = fault.amount; break;
    case Kind::stall: conditions.is_stalled = true; break;
    case Kind::half_open: conditions.is_half_open = true; break;
    case Kind::limit:
      conditions.limit_bytes = fault.amount;
      conditions.limit_id = id;
      break;
    case Kind::clear: conditions = {}; break;
    case Kind::cut:
    case Kind::reset:
    case Kind::refuse:
    case Kind::blackhole: break;
  }
}

} // namespace

void Rules::add(const Event& event) {
  const Fault& fault = event.fault;
  if (fault.kind == Kind::cut || fault.kind == Kind::reset) return;
  if (fault.kind == Kind::clear && fault.scope.is_all()) {
    rules_.clear();
    return;
  }
  std::optional<int64_t> end_ns;
  if (fault.duration_ns) end_ns = event.at_ns + *fault.duration_ns;
  std::erase_if(rules_, [&](const Rule& rule) {
    const bool alike = rule.fault.kind == fault.kind && rule.fault.scope == fault.scope;
    return alike && !outlives(rule.end_ns, end_ns);
  });
  rules_.push_back({fault, end_ns, ++last_id_});
}

void Rules::end_until(int64_t now_ns) {
  std::erase_if(rules_, [&](const Rule& rule) { return rule.end_ns && *rule.end_ns <= now_ns; });
}

std::optional<int64_t> Rules::next_end() const {
  std::optional<int64_t> next;
  for (const Rule& rule : rules_)
    if (outlives(next, rule.end_ns)) next = rule.end_ns;
  return next;
}

Conditions Rules::conditions(size_t connection, Direction direction) const {
  Conditions conditions;
  for (const Rule& rule : rules_)
    if (rule.fault.scope.has(connection) && rule.fault.scope.has(direction)) apply(rule.fault, rule.id, conditions);
  return conditions;
}

bool Rules::is_refusing() const {
  return std::any_of(rules_.begin(), rules_.end(), [](const Rule& rule) { return rule.fault.kind == Kind::refuse; });
}

bool Rules::is_blackhole(size_t connection) const {
  bool is = false;
  for (const Rule& rule : rules_) {
    const Scope& scope = rule.fault.scope;
    if (!scope.has(connection)) continue;
    if (rule.fault.kind == Kind::blackhole) is = true;
    if (rule.fault.kind == Kind::clear && scope.up && scope.down) is = false;
  }
  return is;
}

} // namespace millrace::chaos
