// Connects far paces: finds their feeds and makes the steps at both ends; see far_feeds.h.
#include "plan/far_feeds.h"

#include <algorithm>
#include <iterator>

#include "plan/clock_circles.h"
#include "plan/format_text.h"
#include "plan/memory.h"
#include "plan/stages.h"

namespace millrace::plan {

const Feed& feed_of(const Pace& pace, uint32_t output) {
  return *std::find_if(pace.feeds.begin(), pace.feeds.end(),
                       [&](const Feed& feed) { return output - feed.first < feed.count; });
}

namespace {

// Ticks that may wait at a far pace beside those that are pending before it: one is on its way while another is used.
constexpr uint32_t kFarDepthLeast = 2;
// Ticks of a round trip for which memory is laid out, at most.
constexpr uint32_t kFarDepthMost = 64;
// Time beside the way: threads are woken at both ends.
constexpr int64_t kSlackNs = 2'000'000;

} // namespace

const CrossingPlan* crossing_of(const Plan& plan, uint32_t channel) {
  const auto at = std::find_if(plan.crossings.begin(), plan.crossings.end(),
                               [&](const CrossingPlan& crossing) { return crossing.channel == channel; });
  return at == plan.crossings.end() ? nullptr : &*at;
}

const CrossingPlan* arrival_of(const Plan& plan, uint32_t o) {
  const Output& output = plan.outputs[o];
  const Step& entry = plan.steps[output.step];
  if (!entry.is<EntryStep>() || output.origin != kNone) return nullptr;
  return crossing_of(plan, feed_of(plan.paces[entry.pace], output.port).channel);
}

void hold_feeds(Plan& plan) {
  for (Channel& channel : plan.channels) {
    if (!channel.far) continue;
    const uint32_t pace = plan.steps[channel.to == kNone ? channel.from : channel.to].pace;
    channel.depth = std::max(channel.depth, plan.clocks[plan.paces[pace].clock].held_ticks);
    channel.capacity = channel.depth;
  }
}

FarFeeds::FarFeeds(Expansion& all) : all_(all), draft_(all.draft), plan_(all.plan) {
  for (uint32_t e = 0; e < draft_.edges.size(); ++e) {
    const DraftEdge& edge = draft_.edges[e];
    const uint32_t from = source_of(e).pace, to = target_of(e).pace, base = target_of(e).base;
    if (!joins_tick(edge)) {
      if (source_of(e).node != target_of(e).node) add_value(posting_pace_for(from, target_of(e).node, e), e, false);
    } else if (from != to && base != kNone && all_.gate_pace(edge) == base && from != base) {
      add_value(base, e, to == base);
    }
  }
  for (uint32_t c = 0; c < plan_.clocks.size(); ++c)
    for (uint32_t& leader : plan_.paces[c].led_by)
      if (draft_.homes[leader] != draft_.homes[c]) leader = posting_pace_for(leader, draft_.homes[c], kNone);
  feed_the_unfed();
  for (auto& [ends, feed] : feeds_) make_feed(ends, feed);
}

uint32_t FarFeeds::posting_pace(uint32_t e) const {
  const DraftEdge& edge = draft_.edges[e];
  if (joins_tick(edge) || source_of(e).node == target_of(e).node) return kNone;
  return posting_.at({source_of(e).pace, target_of(e).node, edge.source, edge.source_output});
}

uint32_t FarFeeds::value_in(uint32_t pace, uint32_t edge) const {
  if (!is_here(pace)) return kNone;
  const Found& feed = feeds_.at({pace, source_of(edge).pace});
  const auto at =
      std::find_if(feed.edges.begin(), feed.edges.end(), [&](const auto& one) { return one.first == edge; });
  return plan_.steps[plan_.paces[pace].entry].outputs[feed.first + at->second];
}

void FarFeeds::add_value(uint32_t pace, uint32_t e, bool looks_back) {
  const DraftEdge& edge = draft_.edges[e];
  Value value{edge.source, edge.source_output, 0, false, false};
  if (looks_back) { // the gate sees every tick before, so it is the one that looks back
    value.delay = edge.declared->delay;
    value.initial_empty = edge.declared->initial_empty;
    value.repeat_last = value.delay > 0 && !all_.is_optional(edge);
  }
  Found& feed = feeds_[{pace, source_of(e).pace}];
  auto at = std::find(feed.values.begin(), feed.values.end(), value);
  if (at == feed.values.end()) at = feed.values.insert(at, value);
  feed.edges.emplace_back(e, static_cast<uint32_t>(at - feed.values.begin()));
}

uint32_t FarFeeds::posting_pace_for(uint32_t from, uint32_t node, uint32_t e) {
  // A pace that tells a clock without sources how far its leader is (8.11) waits for no value.
  const uint32_t handler = e == kNone ? kNone : draft_.edges[e].source;
  const uint32_t output = e == kNone ? 0 : draft_.edges[e].source_output;
  const auto [at, is_new] =
      posting_.try_emplace({from, node, handler, output}, static_cast<uint32_t>(plan_.paces.size()));
  if (is_new) {
    Pace pace;
    pace.kind = PaceKind::far;
    pace.clock = plan_.paces[from].clock;
    pace.node = node;
    plan_.paces.push_back(pace);
    if (e != kNone) plan_.paces.back().level = source_of(e).owed_after;
  }
  return at->second;
}

// A far pace that reads nothing of its ticks still runs each of them: its clock's own pace tells it.
void FarFeeds::feed_the_unfed() {
  for (uint32_t p = 0; p < plan_.paces.size(); ++p) {
    if (plan_.paces[p].kind != PaceKind::far) continue;
    const auto at = feeds_.lower_bound({p, 0});
    if (at == feeds_.end() || at->first.first != p) feeds_[{p, plan_.paces[p].clock}];
  }
}

void FarFeeds::make_feed(const Ends& ends, Found& feed) {
  const auto [to, from] = ends;
  const bool from_here = is_here(from), to_here = is_here(to);
  if (!from_here && !to_here) return;
  const auto number = static_cast<uint32_t>(plan_.channels.size());
  plan_.channels.emplace_back();
  {
    Channel& channel = plan_.channels.back();
    channel.kind = ChannelKind::gate;
    channel.every_tick = true;
    channel.far = true;
    channel.depth = std::max({kFarDepthLeast, 1 + plan_.paces[to].level, ticks_on_the_way(to)});
    for (const auto& [edge, value] : feed.edges) {
      channel.edges.push_back(edge);
      channel.entries.push_back(value);
    }
  }
  if (from_here) plan_.channels[number].from = make_gate(ends, feed, number);
  if (to_here) {
    Pace& pace = plan_.paces[to];
    if (pace.entry == kNone) pace.entry = all_.add_step(EntryStep{}, entry_name(to), to);
    feed.first = static_cast<uint32_t>(plan_.steps[pace.entry].outputs.size());
    pace.feeds.push_back({number, feed.first, static_cast<uint32_t>(feed.values.size())});
    plan_.channels[number].to = pace.entry;
    make_outputs(to, feed, from_here);
  }
  if (from_here && to_here) return;
  if (to_here) plan_.paces[to].way_ns = draft_.options.round_trip_ns / 2;
  const Clock& clock = plan_.clocks[plan_.paces[to].clock];
  plan_.crossings.push_back({name_of(clock) + "/" + std::to_string(from) + ">" + std::to_string(to),
                             node_of(from_here ? to : from), number, from_here, from, to, delivery_of(clock, feed)});
}

// Under a clock that waits nothing is left out, and `live` acts as `reliable` (7.8). One edge that asks for all ticks
// gets them for the others of its crossing too.
graph::Delivery FarFeeds::delivery_of(const Clock& clock, const Found& feed) const {
  const bool is_asked_for = std::any_of(feed.edges.begin(), feed.edges.end(), [&](const auto& edge) {
    return draft_.edges[edge.first].declared->delivery == graph::Delivery::reliable;
  });
  return clock.realtime() && !is_asked_for ? graph::Delivery::live : graph::Delivery::reliable;
}

std::string FarFeeds::gate_name(const Ends& ends) const {
  const auto [to, from] = ends;
  return "to " + (is_here(to) ? stage_words(plan_, to) : node_of(to));
}

std::string FarFeeds::entry_name(uint32_t pace) const {
  const auto first = feeds_.lower_bound({pace, 0});
  const auto last = feeds_.upper_bound({pace, kNone});
  const uint32_t from = first->first.second;
  if (std::next(first) == last && !is_here(from)) return "from " + node_of(from);
  return "join of " + stage_words(plan_, pace);
}

// The ticks of a round trip; also of feeds within a node, which hold as many beside those that go over links.
uint32_t FarFeeds::ticks_on_the_way(uint32_t pace) const {
  const Clock& clock = plan_.clocks[plan_.paces[pace].clock];
  if (draft_.options.round_trip_ns == 0 || clock.rate.numerator == 0) return 0;
  return std::min(kFarDepthMost, 1 + ticks_in(draft_.options.round_trip_ns + kSlackNs, clock.rate));
}

uint32_t FarFeeds::make_gate(const Ends& ends, const Found& feed, uint32_t channel) {
  const uint32_t gate = all_.add_step(GateStep{channel}, gate_name(ends), ends.second);
  for (const Value& value : feed.values) {
    StepInput input;
    input.output = output_of(value);
    input.required = false;
    input.delay = value.delay;
    input.initial_empty = value.initial_empty;
    input.repeat_last = value.repeat_last;
    plan_.steps[gate].inputs.push_back(input);
  }
  for (const auto& [edge, value] : feed.edges)
    if (plan_.steps[gate].inputs[value].edge == kNone) plan_.steps[gate].inputs[value].edge = edge;
  return gate;
}

void FarFeeds::make_outputs(uint32_t pace, Found& feed, bool from_here) {
  for (const Value& value : feed.values) {
    const DraftHandler& maker = draft_.handlers[value.handler];
    const std::string& name = maker.info->ports[maker.output_port[value.output]].name;
    const uint32_t from = from_here ? output_of(value) : kNone;
    const uint32_t domain = from_here ? plan_.outputs[from].domain : 0;
    const uint32_t output = all_.add_output(plan_.paces[pace].entry, name, maker.outputs[value.output], domain);
    plan_.outputs[output].origin = from;
    plan_.outputs[output].connected = true;
  }
}

bool FarFeeds::is_here(uint32_t pace) const { return plan_.paces[pace].node == draft_.options.node; }

uint32_t FarFeeds::output_of(const Value& value) const {
  const uint32_t made = draft_.handler_output[value.handler] + value.output;
  const auto finished = all_.finished.find(made);
  return finished == all_.finished.end() ? made : finished->second;
}

} // namespace millrace::plan
