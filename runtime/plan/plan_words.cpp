// Describes the parts of a plan in words, for its printed text; see plan_words.h.
#include "plan/plan_words.h"

#include <fmt/format.h>

#include <algorithm>

#include "plan/describe_crossing.h"
#include "plan/describe_group.h"
#include "plan/explained.h"
#include "plan/far_feeds.h"
#include "plan/format_text.h"
#include "plan/memory.h"
#include "plugin/handler_info.h"

namespace millrace::plan {

namespace {

std::string rate_words(const graph::Rational& rate) {
  if (rate.denominator == 1) return fmt::format("{}/s", rate.numerator);
  return fmt::format("{}/{} per s", rate.numerator, rate.denominator);
}

bool serves(const Channel& channel, uint32_t edge) {
  return std::find(channel.edges.begin(), channel.edges.end(), edge) != channel.edges.end();
}

} // namespace

std::string reader_words(const InsertedPlan& inserted) {
  std::string text;
  for (const std::string& reader : inserted.readers) text += (text.empty() ? "" : ", ") + reader;
  return text;
}

std::string edge_words(const Plan& plan, const TransferPlan& transfer) {
  std::string text;
  for (uint32_t e : transfer.edges) text += (text.empty() ? "" : ", ") + edge_words(plan.edges[e]);
  return text;
}

std::string PlanWords::clock_words(uint32_t c) const {
  const Clock& clock = plan_.clocks[c];
  std::string words = mode_word(clock);
  if (clock.rate.numerator > 0) words += ", " + rate_words(clock.rate);
  if (clock.live) words += ", live";
  if (clock.driver != kNone) words += ", ticks from " + plan_.steps[clock.driver].name;
  const std::vector<std::string> leaders = names_.clock_names(clock.leaders);
  for (size_t i = 0; i < leaders.size(); ++i) words += (i == 0 ? ", led by " : " and ") + leaders[i];
  const uint32_t home = plan_.paces[c].node; // a clock's own pace has its number
  if (plan_.is_over_nodes()) words += ", begins on " + plan_.nodes[home];
  if (home != plan_.node) return words; // its window is in the home's plan
  words += fmt::format("; window {}: {} in flight", clock.in_flight + clock.pending, clock.in_flight);
  if (clock.pending > 0) words += fmt::format(" + {} pending", clock.pending);
  if (!clock.absent.empty()) words += "; not there yet: " + clock.absent;
  return words;
}

std::string PlanWords::segment_words(const Segment& segment, const std::string& home) const {
  std::string words = plan_.domains[segment.domain].name + ", ";
  if (segment.blocking)
    words += "a thread of its own";
  else if (!segment.thread.empty())
    words += "thread \"" + segment.thread + "\"";
  else if (segment.heavy)
    words += "a thread of its own that submits to it";
  else if (!plan_.on_host(segment.domain))
    words += "the thread that submits to it";
  else
    words += home;
  if (segment.lanes > 1) words += fmt::format(", {} instances", segment.lanes);
  const Pace& pace = plan_.paces[segment.pace];
  if (pace.gate != kNone) {
    const bool on_firing = plan_.channels[plan_.steps[pace.gate].channel()].on_firing;
    words += fmt::format(", lags its clock by at most {}", count_of(pace.window, on_firing ? "firing" : "tick"));
  }
  return words + far_words(pace);
}

std::string PlanWords::far_words(const Pace& pace) const {
  if (pace.kind != PaceKind::far) return "";
  const std::string clock = name_of(plan_.clocks[pace.clock]);
  if (pace.stage == 0) return fmt::format(", ticks of clock {}, window {}", clock, pace.window);
  return fmt::format(", stage {} of clock {}, window {}", pace.stage, clock, pace.window);
}

std::string PlanWords::step_words(uint32_t index) const {
  const Step& step = plan_.steps[index];
  if (step.handler() != kNone) return handler_words(step, plan_.handlers[step.handler()]);
  if (step.is<CopyStep>()) {
    for (const TransferPlan& transfer : plan_.transfers)
      if (transfer.step == index) return transfer_words(step, transfer);
  }
  if (step.is<EntryStep>() && plan_.paces[step.pace].kind == PaceKind::far) return "+ " + far_entry_words(step);
  if (step.is<DealStep>()) return "+ " + step.name + copied_out_words(step);
  if (step.channel() == kNone) return "+ " + step.name;
  return "+ " + step.name + channel_words(step, plan_.channels[step.channel()]);
}

std::string PlanWords::handler_words(const Step& step, const HandlerPlan& handler) const {
  std::string details;
  const auto add = [&](const std::string& detail) { details += (details.empty() ? "" : ", ") + detail; };
  for (uint32_t o : step.outputs) {
    const Output& output = plan_.outputs[o];
    std::string format = format_words(output.format);
    if (!plan_.on_host(step.domain) && plan_.in_host_memory(output.domain))
      format += (format.empty() ? "" : " ") + std::string("in host memory");
    if (!format.empty()) add(format);
    if (!output.owns && output.in_place >= 0) add("written in place");
    if (output.owns && output.in_place >= 0) add("copied before it is written");
  }
  if (handler.every > 1) add(fmt::format("every {} ticks", handler.every));
  if (step.owes() > 0) add(owes_words(step, handler));
  for (const BytesOf& gathered : gathered_by(plan_, step))
    add(fmt::format("gathers {}, up to {} in {:.2g} µs", gathered.name, bytes_words(gathered.bytes), gathered.us()));
  if (handler.cost_ns > 0) add(fmt::format("about {:.3g} µs", static_cast<double>(handler.cost_ns) / 1000));
  if (step.region != kNone)
    add(by_template_ ? "captured in a region" : fmt::format("captured in region {}", step.region));
  // With one domain there was nothing to choose.
  const std::string reason = plan_.domains.size() > 1 ? handler.reason : "";
  return details + (details.empty() || reason.empty() ? "" : "; ") + reason;
}

// ": copies model.output out, 9.2 KiB in 0.94 µs an item"
std::string PlanWords::copied_out_words(const Step& deal) const {
  std::string words;
  for (const BytesOf& copied : copied_out_of(plan_, plan_.groups[deal.as<DealStep>().group]))
    words += fmt::format("{}{} out, {} in {:.2g} µs an item", words.empty() ? ": copies " : "; ", copied.name,
                         bytes_words(copied.bytes), copied.us());
  return words;
}

// The number of results that it may owe, and the gap that its window can hold meanwhile.
std::string PlanWords::owes_words(const Step& step, const HandlerPlan& handler) const {
  std::string words = "owes up to " + count_of(plan_.type_of(handler).max_pending, "result");
  const Pace& pace = plan_.paces[step.pace];
  if (pace.gate != kNone && plan_.channels[plan_.steps[pace.gate].channel()].on_firing) return words;
  const uint32_t gap = handler.gap + pace.gap - 1;
  return words + fmt::format(", {} in a gap of more than {}",
                             plan_.type_of(handler).drains_freely() ? "drained" : "fails", count_of(gap, "tick"));
}

// The output whose bytes a copy carries, whatever domains they came through.
std::string PlanWords::carried(const Step& transfer, size_t member) const {
  uint32_t o = transfer.inputs[member].output;
  for (;;) {
    const Output& output = plan_.outputs[o];
    const Step& step = plan_.steps[output.step];
    if (!step.is<CopyStep>() && !step.is<FinishStep>()) return output_name(plan_, o);
    o = step.inputs[step.is<FinishStep>() ? static_cast<uint32_t>(output.forwards) : output.port].output;
  }
}

std::string PlanWords::transfer_words(const Step& step, const TransferPlan& transfer) const {
  std::string route;
  for (const std::string& domain : transfer.route) route += (route.empty() ? "" : " → ") + domain;
  const std::string time = fmt::format("{:.1f} µs{}", transfer.predicted_us, transfer.guessed ? " by a guess" : "");
  std::string names;
  for (size_t member = 0; member < step.inputs.size(); ++member)
    names += (member == 0 ? "" : ", ") + carried(step, member);
  const std::string one_by_one =
      transfer.one_by_one_us > 0 ? fmt::format(" in one, {:.1f} µs one by one", transfer.one_by_one_us) : "";
  return fmt::format("+ copy {}, {}: {}, {}{}; {}", names, route, bytes_words(transfer.bytes), time, one_by_one,
                     transfer.reason);
}

std::string PlanWords::access_words(const AccessPlan& access) const {
  const Output& output = plan_.outputs[plan_.steps[access.step].inputs[access.input].output];
  return fmt::format("reads {}.{} where it is, in {}: {}, {:.1f} µs; copied it would take {:.1f} µs",
                     plan_.steps[output.step].name, output.name, plan_.domains[access.domain].name,
                     bytes_words(access.bytes), access.predicted_us, access.copy_us);
}

// "from home: main/0>1"; "join of stage 2: main/1>2 from gpu, camera.out from stage 0".
std::string PlanWords::far_entry_words(const Step& entry) const {
  const std::vector<Feed>& feeds = plan_.paces[entry.pace].feeds;
  std::string words;
  for (const Feed& feed : feeds) {
    const Channel& channel = plan_.channels[feed.channel];
    words += words.empty() ? ": " : ", ";
    if (const CrossingPlan* crossing = crossing_of(plan_, feed.channel))
      words += crossing->name + (feeds.size() > 1 ? " from " + crossing->node : "");
    else
      words += fed_words(channel, feed.count) + " from " + stage_words(plan_, plan_.steps[channel.from].pace);
  }
  return entry.name + words;
}

// "camera.out" for each value of a feed.
std::string PlanWords::fed_words(const Channel& channel, size_t count) const {
  std::string names;
  for (uint32_t v = 0; v < count; ++v) names += (v == 0 ? "" : ", ") + value_name(plan_, channel, v);
  return count == 0 ? "each tick" : names;
}

std::string PlanWords::far_gate_words(const Step& gate, const Channel& channel) const {
  if (const CrossingPlan* crossing = crossing_of(plan_, gate.channel())) return ": " + crossing->name;
  return fmt::format(": {}, at most {} wait", fed_words(channel, gate.inputs.size()), count_of(channel.depth, "tick"));
}

std::string PlanWords::channel_words(const Step& step, const Channel& channel) const {
  if (channel.far) return far_gate_words(step, channel);
  if (step.is<GateStep>() && channel.queued)
    return fmt::format(": at most {} wait, then {}", channel.depth, full_word(channel.full));
  if (step.is<GateStep>() && channel.on_firing) return ": the ticks that it fires on pass, and wait for room";
  if (step.is<GateStep>()) return ": a tick that finds it busy passes by";
  if (!step.is<ResolveStep>()) return "";
  if (channel.kind == ChannelKind::latest)
    return channel.lag > 0 ? fmt::format(": {} before", count_of(channel.lag, "tick")) : ": once for all its readers";
  if (channel.kind == ChannelKind::queue)
    return fmt::format(": at most {} wait, then {}", channel.depth, full_word(channel.full));
  return fmt::format(": within {:.1f} ms", static_cast<double>(channel.within_ns) / 1e6);
}

std::string PlanWords::edge_details(uint32_t index, const EdgePlan& edge) const {
  for (const Channel& channel : plan_.channels) {
    if (channel.far || !serves(channel, index)) continue;
    if (edge.policy == graph::Policy::queue)
      return fmt::format(", depth {}, full: {}", channel.depth, full_word(channel.full));
    if (edge.policy == graph::Policy::latest && channel.lag > 0) return fmt::format(", lag {}", channel.lag);
    if (edge.policy == graph::Policy::align)
      return fmt::format(", within {:.1f} ms", static_cast<double>(channel.within_ns) / 1e6);
    if (edge.policy == graph::Policy::sync) return ", read asynchronously";
  }
  return "";
}

std::string PlanWords::link_words(uint32_t edge) const {
  for (const CrossingPlan& crossing : plan_.crossings)
    if (serves(plan_.channels[crossing.channel], edge)) return ", over " + crossing.name;
  const bool is_here = plan_.edges[edge].source_output != kNone || plan_.edges[edge].target_step != kNone;
  return is_here ? "" : ", on other nodes";
}

std::string PlanWords::end_words(const CrossingPlan& crossing) {
  return (crossing.departs ? "to " : "from ") + crossing.node;
}

std::string PlanWords::ring_name(const Ring& ring) const {
  const Output& output = plan_.outputs[ring.output];
  const Step& step = plan_.steps[output.step];
  if (step.is<CopyStep>()) return "copy of " + carried(step, output.port);
  const CrossingPlan* crossing = arrival_of(plan_, ring.output);
  return output_name(plan_, ring.output) + (crossing ? " from " + crossing->node : "");
}

std::string PlanWords::edge_words(uint32_t e) const {
  const EdgePlan& edge = plan_.edges[e];
  std::string words = policy_word(edge);
  if (edge.delay > 0) words += fmt::format(" {}", edge.delay);
  words += edge_details(e, edge) + link_words(e);
  return edge.note.empty() ? words : words + "; " + edge.note;
}

std::string PlanWords::crossing_words(const CrossingPlan& crossing) const {
  return fmt::format("{}; depth {}; {}; {}", parcel_words(plan_, crossing), plan_.channels[crossing.channel].depth,
                     delivery_word(crossing), use_words(plan_, crossing));
}

std::string PlanWords::reason_words(const Ring& ring) {
  std::string reasons;
  for (const std::string& reason : ring.reasons) reasons += (reasons.empty() ? "" : " + ") + reason;
  if (ring.lasting && ring.dynamic) reasons += "; each takes memory while it is in use";
  return reasons + (ring.pinned ? "; pinned" : "");
}

std::string PlanWords::inserted_words(const InsertedPlan& inserted) const {
  const HandlerPlan& handler = plan_.handlers[inserted.handler];
  const std::string cost =
      inserted.predicted_us > 0 ? fmt::format("about {:.3g} µs", inserted.predicted_us) : "cost not known";
  return fmt::format("{}: {} {} → {} between {} and {}, because {}; on {}, {}×{}, {}", handler.name, handler.type,
                     inserted.from, inserted.to, inserted.source, reader_words(inserted), inserted.reason,
                     plan_.domains[handler.domain].name, inserted.width, inserted.height, cost) +
         (inserted.elsewhere.empty() ? "" : "; " + inserted.elsewhere);
}

} // namespace millrace::plan
