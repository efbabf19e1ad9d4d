// Finds circles of clocks, refuses those that may stand still, and gives windows to the others; see clock_circles.h.
#include "plan/clock_circles.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <deque>
#include <map>
#include <set>

#include "observe/error.h"
#include "observe/error_codes.h"
#include "plan/format_text.h"
#include "plan/machine.h"
#include "plan/memory.h"
#include "plan/step.h"
#include "plugin/handler_info.h"

namespace millrace::plan {

namespace {

// One spare tick: the times in a file are rounded, and a value that is a little early is no failure.
constexpr uint32_t kSpareTicks = 1;

using ClockEdges = std::vector<std::pair<uint32_t, uint32_t>>; // clocks at both ends; the direction does not count

// The edges of a shortest way from one clock to another without the edge `without`; empty: there is none.
std::vector<uint32_t> way_without(const ClockEdges& edges, uint32_t without, uint32_t from, uint32_t to) {
  std::map<uint32_t, uint32_t> by; // clock → the edge that reached it
  std::deque<uint32_t> todo{from};
  by[from] = kNone;
  while (!todo.empty() && !by.contains(to)) {
    const uint32_t at = todo.front();
    todo.pop_front();
    for (uint32_t e = 0; e < edges.size(); ++e) {
      const auto [a, b] = edges[e];
      if (e == without || (a != at && b != at)) continue;
      const uint32_t next = a == at ? b : a;
      if (by.try_emplace(next, e).second) todo.push_back(next);
    }
  }
  std::vector<uint32_t> way;
  if (!by.contains(to)) return way;
  for (uint32_t at = to; at != from;) {
    const uint32_t e = by[at];
    way.push_back(e);
    at = edges[e].first == at ? edges[e].second : edges[e].first;
  }
  std::reverse(way.begin(), way.end());
  return way;
}

std::string quoted_clock(const Clock& clock) { return "\"" + name_of(clock) + "\""; }

bool blocks(const DraftEdge& edge) {
  return edge.declared->policy == graph::Policy::queue && edge.declared->full == graph::Full::block;
}

// "a.out → b.in, latest, of "left" to "right""
std::string described(const Draft& draft, const DraftEdge& edge) {
  return draft.port_name(edge.source, false, edge.source_output) + " → " +
         draft.port_name(edge.target, true, edge.target_input) + " is " + policy_word(edge.declared->policy) +
         ", from clock " + quoted_clock(draft.plan.clocks[draft.handlers[edge.source].clock]) + " to " +
         quoted_clock(draft.plan.clocks[draft.handlers[edge.target].clock]);
}

// Refuses a blocking queue if its clocks are joined by another way too (8.2).
void refuse_blocking_queues(const Draft& draft, const std::vector<const DraftEdge*>& crossing,
                            const ClockEdges& clocks) {
  for (uint32_t e = 0; e < crossing.size(); ++e) {
    if (!blocks(*crossing[e])) continue;
    const auto [from, to] = clocks[e];
    const std::vector<uint32_t> way = way_without(clocks, e, from, to);
    if (way.empty()) continue;
    Error error{code::clock_deadlock,
                "the queue " + draft.port_name(crossing[e]->source, false, crossing[e]->source_output) + " → " +
                    draft.port_name(crossing[e]->target, true, crossing[e]->target_input) +
                    " could stand still for ever: the clocks " + quoted_clock(draft.plan.clocks[from]) + " and " +
                    quoted_clock(draft.plan.clocks[to]) + " wait for each other by another way too",
                crossing[e]->declared->place,
                {},
                "",
                "full: drop_oldest"};
    for (const uint32_t other : way) error.notes.push_back(described(draft, *crossing[other]));
    error.notes.push_back("a full queue makes its writer late in media time, and the others wait for it");
    throw Failure(std::move(error));
  }
}

// The handlers downstream of this one (`forwards`) or upstream of it, itself included.
std::vector<bool> reached_by(const Draft& draft, uint32_t handler, bool forwards) {
  std::vector<bool> reached(draft.handlers.size());
  std::vector<uint32_t> todo{handler};
  reached[handler] = true;
  while (!todo.empty()) {
    const uint32_t at = todo.back();
    todo.pop_back();
    for (const DraftEdge& edge : draft.edges) {
      const uint32_t near = forwards ? edge.source : edge.target, far = forwards ? edge.target : edge.source;
      if (near != at || reached[far]) continue;
      reached[far] = true;
      todo.push_back(far);
    }
  }
  return reached;
}

// Refuses loops of handlers across clocks that wait for later times. Each tick of a loop needs an earlier tick of its
// own, by `delay`. If it waits for later times on its way, the tick that it needs may be later than those that it has.
void refuse_late_loops(const Draft& draft, const std::vector<const DraftEdge*>& crossing) {
  const bool delays = std::any_of(draft.edges.begin(), draft.edges.end(),
                                  [](const DraftEdge& edge) { return edge.declared->delay > 0; });
  if (!delays) return;
  for (const DraftEdge* edge : crossing) {
    const std::vector<bool> after = reached_by(draft, edge->target, true);
    if (!after[edge->source]) continue;
    const std::vector<bool> before = reached_by(draft, edge->source, false);
    std::string why = edge->declared->policy == graph::Policy::align ? "align waits for later values" : "";
    for (uint32_t h = 0; h < draft.handlers.size() && why.empty(); ++h)
      if (after[h] && before[h] && draft.handlers[h].info->max_pending > 0)
        why = draft.handlers[h].declared->name + " answers later";
    if (why.empty()) continue;
    throw Failure(Error{code::clock_deadlock,
                        "a loop of handlers could stand still for ever: " + described(draft, *edge),
                        edge->declared->place,
                        {why + ", and what it waits for needs an earlier value of its own"},
                        "",
                        "policy: latest"});
  }
}

// The edges between clocks on which one clock waits for the other, and those clocks.
std::pair<std::vector<const DraftEdge*>, ClockEdges> waiting_edges(const Draft& draft) {
  std::pair<std::vector<const DraftEdge*>, ClockEdges> found;
  for (const DraftEdge& edge : draft.edges) {
    const uint32_t from = draft.clock_from(edge), to = draft.clock_to(edge);
    if (!edge.crosses_clocks || (draft.plan.clocks[to].realtime() && !blocks(edge))) continue;
    found.first.push_back(&edge);
    found.second.emplace_back(from, to);
  }
  return found;
}

int64_t time_of(uint32_t ticks, const graph::Rational& rate) { // rounded down, as beats are
  return static_cast<int64_t>(
      std::floor(1e9L * ticks * static_cast<long double>(rate.denominator) / static_cast<long double>(rate.numerator)));
}

uint32_t clock_at(const Plan& plan, uint32_t step) { return plan.paces[plan.steps[step].pace].clock; }

bool makes_wait(const Plan& plan, const Channel& channel) {
  if (channel.kind == ChannelKind::gate || channel.same_clock) return false;
  const bool blocking = channel.kind == ChannelKind::queue && channel.full == graph::Full::block;
  return blocking || !plan.clocks[clock_at(plan, channel.to)].realtime();
}

} // namespace

uint32_t ticks_in(int64_t span_ns, const graph::Rational& rate) {
  constexpr long double kMost = 1e9L; // no window is that long; memory refuses it
  return static_cast<uint32_t>(
      std::min(kMost, std::ceil(static_cast<long double>(span_ns) * static_cast<long double>(rate.numerator) /
                                (1e9L * static_cast<long double>(rate.denominator)))));
}

void refuse_standing_circles(const Draft& draft) {
  const auto [crossing, clocks] = waiting_edges(draft);
  refuse_blocking_queues(draft, crossing, clocks);
  refuse_late_loops(draft, crossing);
}

namespace {

// Edges between clocks, each with those that share its channel: readers in one pace that take the same `latest`.
std::vector<const DraftEdge*> one_a_channel(const Draft& draft, const std::vector<const DraftEdge*>& crossing) {
  std::vector<const DraftEdge*> kept;
  const auto shares = [&](const DraftEdge& a, const DraftEdge& b) {
    return a.source == b.source && a.source_output == b.source_output &&
           draft.handlers[a.target].pace == draft.handlers[b.target].pace &&
           a.declared->policy == graph::Policy::latest && b.declared->policy == graph::Policy::latest &&
           a.declared->lag == b.declared->lag && a.declared->initial_empty == b.declared->initial_empty;
  };
  for (const DraftEdge* edge : crossing)
    if (std::none_of(kept.begin(), kept.end(), [&](const DraftEdge* other) { return shares(*other, *edge); }))
      kept.push_back(edge);
  return kept;
}

} // namespace

std::vector<bool> may_be_on_circle(const Draft& draft) {
  const ClockEdges edges = waiting_edges(draft).second;
  std::vector<bool> on_circle(draft.plan.clocks.size());
  for (uint32_t e = 0; e < edges.size(); ++e) {
    const auto [from, to] = edges[e];
    if (!way_without(edges, e, from, to).empty()) on_circle[from] = on_circle[to] = true;
  }
  return on_circle;
}

void find_circles(Draft& draft) {
  std::vector<Clock>& all = draft.plan.clocks;
  ClockEdges edges;
  for (const DraftEdge* edge : one_a_channel(draft, waiting_edges(draft).first))
    edges.emplace_back(draft.handlers[edge->source].clock, draft.handlers[edge->target].clock);
  for (uint32_t e = 0; e < edges.size(); ++e) {
    const auto [from, to] = edges[e];
    if (way_without(edges, e, from, to).empty()) continue; // a bridge
    const uint32_t joined = std::min({from, to, all[from].circle, all[to].circle});
    for (const uint32_t old : {all[from].circle, all[to].circle})
      for (Clock& clock : all)
        if (old != kNone && clock.circle == old) clock.circle = joined;
    all[from].circle = all[to].circle = joined;
  }
}

bool ClockCircles::joins(const Channel& channel) const {
  if (!makes_wait(plan_, channel)) return false;
  const uint32_t from = plan_.clocks[clock_at(plan_, channel.from)].circle;
  return from != kNone && from == plan_.clocks[clock_at(plan_, channel.to)].circle;
}

std::vector<uint32_t> ClockCircles::round(uint32_t clock) const {
  std::vector<uint32_t> clocks;
  for (uint32_t c = 0; c < plan_.clocks.size(); ++c)
    if (has(clock) && plan_.clocks[c].circle == plan_.clocks[clock].circle) clocks.push_back(c);
  return clocks;
}

int64_t ClockCircles::span_ns(uint32_t clock) const {
  int64_t span = 0;
  for (const Channel& channel : plan_.channels) {
    if (!joins(channel) || plan_.clocks[clock_at(plan_, channel.from)].circle != plan_.clocks[clock].circle) continue;
    if (channel.kind == ChannelKind::align) span += channel.within_ns;
    // Ticks owed before the writer make the reader wait. Ticks owed before the reader make a writer wait that needs
    // room.
    for (const uint32_t end : {channel.from, channel.to}) {
      const graph::Rational& rate = plan_.clocks[clock_at(plan_, end)].rate;
      const uint32_t owed = plan_.steps[end].level;
      if (owed > 0 && rate.numerator > 0) span += time_of(owed + kSpareTicks, rate);
    }
  }
  return span;
}

uint32_t ClockCircles::owed_most(uint32_t clock) const {
  uint32_t most = 0;
  for (const Channel& channel : plan_.channels)
    for (const uint32_t end : {channel.from, channel.to})
      if (joins(channel) && clock_at(plan_, end) == clock) most = std::max(most, plan_.steps[end].level);
  return most;
}

uint32_t ClockCircles::owed_least(uint32_t clock) const {
  uint32_t least = kNone;
  for (const Channel& channel : plan_.channels) {
    if (!joins(channel) || clock_at(plan_, channel.from) != clock) continue;
    const Step& writer = plan_.steps[channel.from];
    least = std::min(least, plan_.paces[writer.pace].kind == PaceKind::clock ? writer.level : 0);
  }
  return least == kNone ? 0 : least;
}

std::vector<uint32_t> ClockCircles::waits() const {
  std::vector<uint32_t> numbers(plan_.steps.size(), 0);
  std::vector<std::set<uint32_t>> sets(plan_.steps.size());
  bool changed = false;
  for (uint32_t c = 0; c < plan_.channels.size(); ++c)
    if (joins(plan_.channels[c])) changed = sets[plan_.channels[c].to].insert(c).second || changed;
  const auto add = [&](uint32_t step, uint32_t from) {
    const size_t before = sets[step].size();
    sets[step].insert(sets[from].begin(), sets[from].end());
    return sets[step].size() > before;
  };
  while (changed) {
    changed = false;
    for (uint32_t s = 0; s < plan_.steps.size(); ++s) {
      const Step& step = plan_.steps[s];
      for (const StepInput& input : step.inputs)
        if (input.output != kNone) changed = add(s, plan_.outputs[input.output].step) || changed;
      for (const uint32_t before : step.after) changed = add(s, before) || changed;
      const auto* copy = std::get_if<CopyStep>(&step.kind);
      for (const uint32_t reader : copy ? copy->readers : std::vector<uint32_t>{}) // it asks for their inputs
        for (const StepInput& input : plan_.steps[reader].inputs)
          if (input.output != kNone && input.required) changed = add(s, plan_.outputs[input.output].step) || changed;
      if (plan_.paces[step.pace].gate != kNone) changed = add(s, plan_.paces[step.pace].gate) || changed;
    }
    for (const Channel& channel : plan_.channels)
      if (channel.same_clock && is_whole(channel)) changed = add(channel.to, channel.from) || changed;
  }
  std::map<std::set<uint32_t>, uint32_t> known{{{}, 0}};
  for (uint32_t s = 0; s < plan_.steps.size(); ++s)
    numbers[s] = known.try_emplace(sets[s], static_cast<uint32_t>(known.size())).first->second;
  return numbers;
}

namespace {

class HoldCircles {
 public:
  explicit HoldCircles(Draft& draft) : draft_(draft), plan_(draft.plan), circles_(draft.plan) {}

  void run() {
    for (uint32_t c = 0; c < plan_.clocks.size(); ++c)
      if (circles_.has(c)) hold(c);
  }

 private:
  std::string others(uint32_t clock) const {
    std::string names;
    for (const uint32_t c : circles_.round(clock))
      if (c != clock) names += (names.empty() ? "" : ", ") + quoted_clock(plan_.clocks[c]);
    return names;
  }

  [[noreturn]] void refuse(uint32_t c, const std::string& what, std::vector<std::string> notes,
                           const std::string& edit) const {
    throw Failure(Error{code::window_too_small, "the clock " + quoted_clock(plan_.clocks[c]) + what,
                        draft_.clocks[c].place, std::move(notes), "", edit});
  }

  // Adds the edges of the circle whose readers are on other nodes.
  void add_other_nodes(uint32_t c, int64_t& span, uint32_t& owed) const {
    for (const DraftEdge* edge : one_a_channel(draft_, waiting_edges(draft_).first)) {
      const DraftHandler &source = draft_.handlers[edge->source], &target = draft_.handlers[edge->target];
      if (target.node == draft_.options.node || plan_.clocks[source.clock].circle != plan_.clocks[c].circle ||
          plan_.clocks[target.clock].circle != plan_.clocks[c].circle)
        continue;
      if (edge->declared->policy == graph::Policy::align) span += edge->declared->within_ns;
      for (const uint32_t end : {edge->source, edge->target}) {
        const uint32_t clock = draft_.handlers[end].clock, ticks = draft_.handlers[end].owed_after;
        const graph::Rational& rate = plan_.clocks[clock].rate;
        if (ticks > 0 && rate.numerator > 0) span += time_of(ticks + kSpareTicks, rate);
        if (clock == c) owed = std::max(owed, ticks);
      }
    }
  }

  void hold(uint32_t c) {
    Clock& clock = plan_.clocks[c];
    int64_t span = circles_.span_ns(c);
    uint32_t owed = circles_.owed_most(c);
    add_other_nodes(c, span, owed);
    if (clock.rate.numerator == 0 && (span > 0 || owed > 0))
      refuse(c, " needs a rate: it and " + others(c) + " wait for each other",
             {span > 0 ? fmt::format("its ticks may be held for {} ms, and nothing says how many those are", ms(span))
                       : fmt::format("{} of its ticks may be owed, and nothing says how long that is", owed)},
             "rate: 30");
    clock.held_ns = span;
    clock.owed_ticks = owed;
    if (span == 0) return;
    const uint32_t own = circles_.owed_least(c), ticks = ticks_in(span, clock.rate) + 1;
    clock.crowd_ticks = ticks + kSpareTicks;
    if (clock.realtime()) return; // its reads do not wait, so its ticks are not held
    const uint32_t least = ticks > own ? ticks - own : 1;
    if (clock.in_flight > 0 && clock.in_flight < least)
      refuse(c, fmt::format(" has in_flight {}, and needs {}", clock.in_flight, least),
             {fmt::format("it and {} wait for each other, for up to {} ms", others(c), ms(span)),
              fmt::format("so many of its ticks may be held meanwhile, at {} per s", graph_rate(clock))},
             fmt::format("in_flight: {}", least + kSpareTicks));
    if (clock.in_flight_least > 0) clock.in_flight_least = std::max(clock.in_flight_least, least);
    clock.held_ticks = clock.in_flight_least > 0 ? least : clock.in_flight > 0 ? clock.in_flight : least + kSpareTicks;
    clock.crowd_ticks = clock.held_ticks + own;
    plan_.notes.push_back(
        fmt::format("clock {}: at least {} in flight, because it and {} wait for each other, for up to "
                    "{} ms",
                    clock.name, clock.held_ticks, others(c), ms(span)));
  }

  static std::string ms(int64_t ns) { return fmt::format("{:g}", static_cast<double>(ns) / 1e6); }
  static std::string graph_rate(const Clock& clock) {
    return clock.rate.denominator == 1 ? std::to_string(clock.rate.numerator)
                                       : fmt::format("{}/{}", clock.rate.numerator, clock.rate.denominator);
  }

  Draft& draft_;
  Plan& plan_;
  const ClockCircles circles_;
};

} // namespace

void hold_circles(Draft& draft) { HoldCircles(draft).run(); }

} // namespace millrace::plan
