// Which clock each handler belongs to, and what paces each clock (semantics.md 1.2, 1.3).
#include <set>

#include "graph/quantity.h"
#include "plan/draft.h"

namespace millrace::plan {

namespace {

bool joins_clocks(const DraftEdge& edge) { return edge.declared->policy == graph::Policy::sync; }

uint32_t find_clock(const Draft& draft, const std::string& name, const Place& place) {
  std::vector<std::string> names;
  for (uint32_t i = 0; i < draft.graph.clocks.size(); ++i) {
    if (draft.graph.clocks[i].name == name) return i;
    names.push_back(draft.graph.clocks[i].name);
  }
  throw Failure(Error{301, "there is no clock named \"" + name + "\"", place, {}, nearest_name(name, names), ""});
}

// The clock of a handler that names none: of its sync inputs, else of its other inputs, else the only one.
uint32_t clock_of_inputs(const Draft& draft, uint32_t h) {
  for (const bool sync : {true, false}) {
    std::set<uint32_t> clocks;
    for (uint32_t e : draft.handlers[h].input_edge) {
      if (e == kNone || joins_clocks(draft.edges[e]) != sync || draft.edges[e].declared->delay > 0) continue;
      clocks.insert(draft.handlers[draft.edges[e].source].clock);
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
      throw Failure(Error{406, "the inputs of " + handler.declared->name + " belong to several clocks",
                          handler.declared->place, sides, "",
                          "give the slower ones policy: latest, or name one with clock:"});
    }
  }
  return 0;
}

bool has_rate(const DraftHandler& handler) { return handler.facts.rate_num > 0; }

// Nobody may have asked for realtime: a live source does.
[[noreturn]] void refuse_without_rate(const Draft& draft, uint32_t c, graph::ClockMode declared) {
  Error error{406, "a realtime clock needs a rate, and no source has one", draft.graph.clocks[c].place, {}, "", ""};
  for (const DraftHandler& handler : draft.handlers) {
    if (declared != graph::ClockMode::automatic || handler.clock != c || !handler.facts.live) continue;
    if (error.place.line == 0) error.place = handler.declared->place;
    error.notes.push_back(handler.declared->name + " is live, so its clock is realtime");
    break;
  }
  error.edit = error.place.file == "pipeline" ? "--rate 30" : "clock: { mode: realtime, rate: 30 }";
  throw Failure(std::move(error));
}

// The mode where the file says none: `source` if exactly one source has a rate, `realtime` if any is live, else `free`.
void choose_mode(Draft& draft, uint32_t c) {
  Clock& clock = draft.plan.clocks[c];
  uint32_t rated = 0, live = 0, sources = 0, driver = kNone;
  for (uint32_t h = 0; h < draft.handlers.size(); ++h) {
    const DraftHandler& handler = draft.handlers[h];
    if (handler.clock != c || !handler.is_source()) continue;
    ++sources;
    if (handler.facts.live) ++live;
    if (!has_rate(handler)) continue;
    ++rated;
    driver = h;
  }
  const graph::ClockMode declared = draft.options.clock.value_or(draft.graph.clocks[c].mode);
  clock.mode = declared;
  if (declared == graph::ClockMode::automatic) {
    clock.mode = rated == 1 ? graph::ClockMode::source : live > 0 ? graph::ClockMode::realtime : graph::ClockMode::free;
  }
  if (clock.mode == graph::ClockMode::source) {
    if (driver == kNone || rated > 1) driver = kNone;
    for (uint32_t h = 0; h < draft.handlers.size() && driver == kNone; ++h)
      if (draft.handlers[h].clock == c && draft.handlers[h].is_source()) driver = h;
    if (driver == kNone)
      throw Failure(Error{406,
                          "clock \"" + clock.name + "\" is to follow a source, and has none",
                          draft.graph.clocks[c].place,
                          {},
                          "",
                          "mode: free"});
    clock.driver = driver; // a handler for now; expand() makes it a step
    clock.live = draft.handlers[driver].facts.live;
    if (!clock.rate.numerator)
      clock.rate = {draft.handlers[driver].facts.rate_num, draft.handlers[driver].facts.rate_den};
  }
  if (clock.mode == graph::ClockMode::realtime && !clock.rate.numerator) {
    for (const DraftHandler& handler : draft.handlers)
      if (handler.clock == c && handler.is_source() && has_rate(handler) && !clock.rate.numerator)
        clock.rate = {handler.facts.rate_num, handler.facts.rate_den};
    if (!clock.rate.numerator) refuse_without_rate(draft, c, declared);
  }
  if (clock.mode == graph::ClockMode::free && rated > 1 && !clock.rate.numerator) {
    graph::Rational first;
    for (const DraftHandler& handler : draft.handlers) {
      if (handler.clock != c || !handler.is_source() || !has_rate(handler)) continue;
      const graph::Rational rate{handler.facts.rate_num, handler.facts.rate_den};
      if (first.numerator && first.numerator * rate.denominator != rate.numerator * first.denominator)
        throw Failure(Error{406,
                            "sources of several rates share one free clock",
                            handler.declared->place,
                            {handler.declared->name + " has " + graph::write_rate(rate) + " per s",
                             "one before it has " + graph::write_rate(first) + " per s",
                             "with a rate: of the clock's own each gives what is due at a beat, and nothing where "
                             "nothing is"},
                            "",
                            "give each a clock of its own under clocks:, and say policy: latest where they meet"});
      first = rate;
    }
  }
}

} // namespace

void assign_clocks(Draft& draft) {
  if (draft.graph.clocks.empty()) draft.graph.clocks.push_back({});
  for (const graph::Clock& declared : draft.graph.clocks) {
    Clock clock;
    clock.name = declared.name;
    clock.rate = draft.options.rate.value_or(declared.rate);
    clock.in_flight = declared.in_flight;
    clock.in_flight_least = declared.in_flight_least;
    draft.plan.clocks.push_back(clock);
  }
  for (uint32_t h : draft.order) {
    DraftHandler& handler = draft.handlers[h];
    handler.clock = !handler.declared->clock.empty()
                        ? find_clock(draft, handler.declared->clock, handler.declared->place)
                    : handler.is_source() ? 0
                                          : clock_of_inputs(draft, h);
    if (handler.is_source() && handler.declared->clock.empty() && draft.graph.clocks.size() > 1)
      throw Failure(Error{406,
                          "the source " + handler.declared->name + " does not say which clock it belongs to",
                          handler.declared->place,
                          {},
                          "",
                          "clock: " + draft.graph.clocks[0].name});
  }
  for (DraftEdge& edge : draft.edges) {
    edge.crosses_clocks = draft.handlers[edge.source].clock != draft.handlers[edge.target].clock;
    if (edge.crosses_clocks && (joins_clocks(edge) || edge.declared->delay > 0))
      throw Failure(Error{406,
                          "an edge between clocks needs latest, queue or align",
                          edge.declared->place,
                          {draft.port_name(edge.source, false, edge.source_output) + " is of clock \"" +
                               draft.plan.clocks[draft.handlers[edge.source].clock].name + "\"",
                           draft.port_name(edge.target, true, edge.target_input) + " is of clock \"" +
                               draft.plan.clocks[draft.handlers[edge.target].clock].name + "\""},
                          "",
                          "policy: latest"});
  }
  for (uint32_t c = 0; c < draft.plan.clocks.size(); ++c) choose_mode(draft, c);
}

} // namespace millrace::plan
