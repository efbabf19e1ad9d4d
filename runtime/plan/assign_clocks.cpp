// Finds the clock of each handler, and what paces each clock (semantics.md 1.2, 1.3).
#include <algorithm>
#include <set>

#include "graph/quantity.h"
#include "millrace/nearest.h"
#include "observe/error.h"
#include "observe/error_codes.h"
#include "plan/clock_circles.h"
#include "plan/draft.h"
#include "plan/facts.h"
#include "plan/format_text.h"
#include "plan/groups.h"
#include "plan/machine.h"

namespace millrace::plan {

namespace {

bool joins_clocks(const DraftEdge& edge) { return edge.declared->policy == graph::Policy::sync; }

uint32_t find_clock(const Draft& draft, const std::string& name, const Place& place) {
  for (uint32_t i = 0; i < draft.clocks.size(); ++i)
    if (draft.clocks[i].name == name) return i;
  std::vector<std::string> names;
  for (const graph::Clock& clock : draft.clocks) names.push_back(clock.name);
  throw Failure(Error{
      code::unknown_handler, "there is no clock named \"" + name + "\"", place, {}, nearest_name(name, names), ""});
}

// The clock of a handler that names none: that of its sync inputs, else of its other inputs, else the first.
uint32_t clock_of_inputs(const Draft& draft, uint32_t h) {
  for (const bool sync : {true, false}) {
    std::set<uint32_t> clocks;
    for (uint32_t e : draft.handlers[h].input_edge) {
      if (e == kNone || joins_clocks(draft.edges[e]) != sync || draft.edges[e].declared->delay > 0) continue;
      clocks.insert(draft.clock_from(draft.edges[e]));
    }
    if (clocks.size() == 1) return *clocks.begin();
    if (clocks.size() > 1) {
      const DraftHandler& handler = draft.handlers[h];
      std::vector<std::string> sides;
      for (uint32_t e : handler.input_edge)
        if (e != kNone)
          sides.push_back(draft.port_name(draft.edges[e].source, false, draft.edges[e].source_output) +
                          " is of clock \"" + draft.plan.clocks[draft.handlers[draft.edges[e].source].clock].name +
                          "\"");
      throw Failure(
          Error{code::clocks_without_policy, "the inputs of " + handler.declared->name + " belong to several clocks",
                handler.declared->place, sides, "", "give the slower ones policy: latest, or name one with clock:"});
    }
  }
  return 0;
}

bool has_rate(const DraftHandler& handler) { return handler.facts.rate_num > 0; }

// Refuses a realtime clock without a rate. If no person asked for realtime, the error names the live source that
// implies it.
[[noreturn]] void refuse_without_rate(const Draft& draft, uint32_t c, graph::ClockMode declared) {
  Error error{code::clocks_without_policy,
              "a realtime clock needs a rate, and no source has one",
              draft.clocks[c].place,
              {},
              "",
              ""};
  for (const DraftHandler& handler : draft.handlers) {
    if (declared != graph::ClockMode::automatic || handler.clock != c || !handler.facts.live) continue;
    if (error.place.line == 0) error.place = handler.declared->place;
    error.notes.push_back(handler.declared->name + " is live, so its clock is realtime");
    break;
  }
  error.edit = error.place.is_one_line() ? "--rate 30" : "clock: { mode: realtime, rate: 30 }";
  throw Failure(std::move(error));
}

// By clock: its sources. A pipeline with many streams has as many clocks, so no pass asks all handlers for each.
using Sources = std::vector<std::vector<uint32_t>>;

Sources find_sources(const Draft& draft) {
  Sources sources(draft.plan.clocks.size());
  for (uint32_t h = 0; h < draft.handlers.size(); ++h)
    if (draft.handlers[h].is_source()) sources[draft.handlers[h].clock].push_back(h);
  return sources;
}

// Throws unless the clock's sources with a rate have one and the same.
void refuse_several_rates(const Draft& draft, const std::vector<uint32_t>& sources) {
  const auto rate_of = [](const DraftHandler& handler) {
    return graph::Rational{handler.facts.rate_num, handler.facts.rate_den};
  };
  const auto differ = [](const graph::Rational& a, const graph::Rational& b) {
    return a.numerator * b.denominator != b.numerator * a.denominator;
  };
  const DraftHandler *first = nullptr, *other = nullptr;
  for (const uint32_t h : sources) {
    const DraftHandler& handler = draft.handlers[h];
    if (!has_rate(handler)) continue;
    if (!first) first = &handler;
    if (!other && differ(rate_of(*first), rate_of(handler))) other = &handler;
  }
  if (!other) return;
  const auto words = [&](const DraftHandler& handler) {
    return handler.declared->name + " has " + graph::write_rate(rate_of(handler)) + " per s";
  };
  throw Failure(
      Error{code::clocks_without_policy,
            "sources of several rates share one free clock",
            other->declared->place,
            {words(*first), words(*other),
             "with a rate: of the clock's own each gives its value at a beat if one is due, and nothing otherwise"},
            "",
            "give each a clock of its own under clocks:, and say policy: latest where they meet"});
}

// The sources that choose the clock's mode and rate: all but those that follow the others, which have no rate of their
// own then. Where all would follow, none does.
std::vector<uint32_t> choosing(Draft& draft, const std::vector<uint32_t>& sources) {
  std::vector<uint32_t> chosen = sources;
  std::erase_if(chosen, [&](uint32_t h) { return draft.handlers[h].facts.follows != 0; });
  for (const uint32_t h : sources) {
    mr_facts& facts = draft.handlers[h].facts;
    if (chosen.empty())
      facts.follows = 0;
    else if (facts.follows)
      facts.rate_num = facts.live = 0;
  }
  return chosen.empty() ? sources : chosen;
}

// Sets the mode: as declared, else `source` if exactly one source has a rate, `realtime` if any is live, else `free`.
void choose_mode(Draft& draft, uint32_t c, const std::vector<uint32_t>& all_sources) {
  const std::vector<uint32_t> sources = choosing(draft, all_sources);
  Clock& clock = draft.plan.clocks[c];
  uint32_t rated = 0, live = 0, driver = kNone;
  for (const uint32_t h : sources) {
    const DraftHandler& handler = draft.handlers[h];
    if (handler.facts.live) ++live;
    if (!has_rate(handler)) continue;
    ++rated;
    driver = h;
  }
  const graph::ClockMode declared = draft.options.clock.value_or(draft.clocks[c].mode);
  clock.mode = declared;
  if (declared == graph::ClockMode::automatic) {
    clock.mode = rated == 1 ? graph::ClockMode::source : live > 0 ? graph::ClockMode::realtime : graph::ClockMode::free;
  }
  if (clock.mode == graph::ClockMode::source) {
    if (driver == kNone || rated > 1) driver = kNone;
    if (driver == kNone && !sources.empty()) driver = sources[0];
    if (driver == kNone)
      throw Failure(Error{code::clocks_without_policy,
                          "clock \"" + clock.name + "\" is to follow a source, and has none",
                          draft.clocks[c].place,
                          {},
                          "",
                          "mode: free"});
    clock.driver = driver; // a handler for now; expand() makes it a step
    clock.live = draft.handlers[driver].facts.live;
    if (!clock.rate.numerator)
      clock.rate = {draft.handlers[driver].facts.rate_num, draft.handlers[driver].facts.rate_den};
  }
  if (clock.mode == graph::ClockMode::realtime && !clock.rate.numerator) {
    for (const uint32_t h : sources)
      if (const mr_facts& facts = draft.handlers[h].facts; facts.rate_num > 0 && !clock.rate.numerator)
        clock.rate = {facts.rate_num, facts.rate_den};
    if (!clock.rate.numerator) refuse_without_rate(draft, c, declared);
  }
  if (clock.mode == graph::ClockMode::free && rated > 1 && !clock.rate.numerator) refuse_several_rates(draft, sources);
}

// Finds the leaders of a clock without sources: the clocks with sources from which edges lead to it. They say when it
// ends (8.11).
void find_leaders(Draft& draft, uint32_t c, const Sources& sources) {
  if (!sources[c].empty() || draft.plan.clocks[c].is_group) return;
  const auto first = std::find_if(draft.handlers.begin(), draft.handlers.end(),
                                  [&](const DraftHandler& handler) { return handler.clock == c; });
  if (first == draft.handlers.end()) return;
  std::vector<bool> leads(draft.plan.clocks.size());
  leads[c] = true;
  for (bool changed = true; changed;) {
    changed = false;
    for (const DraftEdge& edge : draft.edges) {
      const uint32_t from = draft.clock_from(edge), to = draft.clock_to(edge);
      if (!leads[to] || leads[from]) continue;
      leads[from] = changed = true;
    }
  }
  Clock& clock = draft.plan.clocks[c];
  for (uint32_t other = 0; other < leads.size(); ++other)
    if (leads[other] && !sources[other].empty()) clock.leaders.push_back(other);
  if (clock.leaders.empty())
    throw Failure(Error{
        code::clock_without_source,
        "nothing leads the clock \"" + name_of(clock) + "\": it has no source, and no clock that has one leads to it",
        draft.clocks[c].place.line > 0 ? draft.clocks[c].place : first->declared->place,
        {"so nothing says when it ends"},
        "",
        "an edge from a handler of another clock, or a source of its own"});
  if (clock.rate.numerator == 0) clock.rate = {kNominalRate, 1};
}

// Throws if a key of the edge means nothing between the clocks of its ends (1.3, 2.3).
void check_policy(const Draft& draft, const DraftEdge& edge) {
  const graph::Edge& declared = *edge.declared;
  const auto refuse = [&](int code, const std::string& what, std::vector<std::string> notes, const std::string& edit) {
    const auto clock_of = [&](uint32_t handler) {
      return " is of clock \"" + name_of(draft.plan.clocks[draft.handlers[handler].clock]) + "\"";
    };
    notes.insert(notes.begin(), {draft.port_name(edge.source, false, edge.source_output) + clock_of(edge.source),
                                 draft.port_name(edge.target, true, edge.target_input) + clock_of(edge.target)});
    throw Failure(Error{code, what, declared.place, std::move(notes), "", edit});
  };
  if (edge.crosses_clocks && (joins_clocks(edge) || declared.delay > 0))
    refuse(code::clocks_without_policy, "an edge between clocks needs latest, queue or align", {}, "policy: latest");
  if (edge.crosses_clocks && declared.lag > 0)
    refuse(code::conflicting_keys, "lag: counts the ticks of one clock, and this edge joins two",
           {"between clocks latest is the newest value by media time"}, "remove lag:");
  if (!edge.crosses_clocks && declared.policy == graph::Policy::align)
    refuse(code::conflicting_keys, "policy: align joins two clocks, and both ends of this edge are of one",
           {"it would wait for later ticks of its own clock"}, "policy: latest");
}

} // namespace

void assign_clocks(Draft& draft) {
  draft.clocks = draft.graph.clocks;
  if (draft.clocks.empty()) draft.clocks.push_back({});
  for (const graph::Clock& declared : draft.clocks) {
    Clock clock;
    clock.name = declared.name;
    clock.rate = draft.options.rate.value_or(declared.rate);
    clock.in_flight = declared.in_flight;
    clock.in_flight_least = declared.in_flight_least;
    clock.set = declared.set;
    clock.fails_alone = declared.fails_alone;
    clock.restarts = declared.restarts;
    clock.has_room = declared.has_room;
    clock.is_seat = declared.is_seat;
    clock.is_group = declared.is_group;
    draft.plan.clocks.push_back(clock);
  }
  for (uint32_t h : draft.order) {
    DraftHandler& handler = draft.handlers[h];
    handler.clock = !handler.declared->clock.empty()
                        ? find_clock(draft, handler.declared->clock, handler.declared->place)
                    : handler.is_source() ? 0
                                          : clock_of_inputs(draft, h);
    if (handler.is_source() && handler.declared->clock.empty() && draft.clocks.size() > 1)
      throw Failure(Error{code::clocks_without_policy,
                          "the source " + handler.declared->name + " does not say which clock it belongs to",
                          handler.declared->place,
                          {},
                          "",
                          "clock: " + draft.clocks[0].name});
  }
  for (size_t h = 0; h < draft.facts.handlers.size(); ++h) { // none was inserted yet
    const HandlerFacts& source = draft.facts.handlers[h];
    if (source.absent) draft.plan.clocks[draft.handlers[h].clock].absent = source.absent->what;
  }
  for (DraftEdge& edge : draft.edges) {
    edge.crosses_clocks = draft.clock_from(edge) != draft.clock_to(edge);
    check_policy(draft, edge);
  }
  const Sources sources = find_sources(draft);
  for (uint32_t c = 0; c < draft.plan.clocks.size(); ++c)
    if (!draft.plan.clocks[c].is_group) choose_mode(draft, c, sources[c]);
  settle_groups(draft);
  for (uint32_t c = 0; c < draft.plan.clocks.size(); ++c) find_leaders(draft, c, sources);
  refuse_standing_circles(draft);
}

} // namespace millrace::plan
