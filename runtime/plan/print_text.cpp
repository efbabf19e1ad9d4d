// The plan as a person reads it, like SQL's EXPLAIN: what runs where and why, and every step that the runtime added.
#include <fmt/format.h>

#include <algorithm>

#include "memory/ring.h"
#include "plan/describe_crossing.h"
#include "plan/far_feeds.h"
#include "plan/format_text.h"
#include "plan/predict.h"

namespace millrace::plan {

namespace {

std::string rate_words(const graph::Rational& rate) {
  if (rate.denominator == 1) return fmt::format("{}/s", rate.numerator);
  return fmt::format("{}/{} per s", rate.numerator, rate.denominator);
}

class Printer {
 public:
  explicit Printer(const Plan& plan) : plan_(plan) {
    for (const HandlerPlan& handler : plan.handlers) {
      name_width_ = std::max(name_width_, handler.name.size());
      type_width_ = std::max(type_width_, handler.type.size());
    }
  }

  std::string text() {
    heading();
    clocks();
    segments();
    crossings();
    elsewhere();
    edges();
    memory();
    inserted();
    list("notes", plan_.notes);
    return std::move(text_);
  }

 private:
  void line(const std::string& words) {
    text_ += words;
    while (!text_.empty() && text_.back() == ' ') text_.pop_back();
    text_ += '\n';
  }

  void heading() {
    line(fmt::format("{}: {} {}, {} on {}", plan_.name.empty() ? "pipeline" : plan_.name, handler_count(),
                     count_of(plan_.edges.size(), "edge"), count_of(plan_.segments.size(), "segment"),
                     count_of(plan_.threads, "thread")));
    latency();
  }

  std::string handler_count() const {
    const std::string all = count_of(plan_.handlers.size(), "handler");
    if (!plan_.is_over_nodes()) return all + ',';
    const auto here = std::count_if(plan_.handlers.begin(), plan_.handlers.end(),
                                    [&](const HandlerPlan& handler) { return handler.node == plan_.node; });
    return fmt::format("{}, {} of them on this node ({});", all, here, plan_.nodes[plan_.node]);
  }

  void latency() {
    const PredictedLatency latency = predict_latency(plan_);
    const std::string title = plan_.is_over_nodes() ? "latency on this node, without links" : "latency";
    if (latency.unknown == 0)
      return line(fmt::format("{}: {:.{}f} µs predicted", title, latency.us, latency.us < 10 ? 2 : 0));
    const std::string missing = count_of(latency.unknown, "cost") + " not known";
    if (latency.us < 1) return line(title + ": " + missing);
    line(fmt::format("{}: at least {:.0f} µs predicted, {}", title, latency.us, missing));
  }

  void clocks() {
    line("\nclocks");
    size_t width = 4;
    for (const Clock& clock : plan_.clocks) width = std::max(width, clock.name.size());
    for (uint32_t c = 0; c < plan_.clocks.size(); ++c) {
      const Clock& clock = plan_.clocks[c];
      std::string words = fmt::format("  {:<{}}  {}", name_of(clock), width, mode_word(clock));
      if (clock.rate.numerator > 0) words += ", " + rate_words(clock.rate);
      if (clock.live) words += ", live";
      if (clock.driver != kNone) words += ", ticks from " + plan_.steps[clock.driver].name;
      for (size_t i = 0; i < clock.leaders.size(); ++i)
        words += (i == 0 ? ", led by " : " and ") + plan_.clocks[clock.leaders[i]].name;
      const uint32_t home = plan_.paces[c].node; // a clock's own pace has its number
      if (plan_.is_over_nodes()) words += ", begins on " + plan_.nodes[home];
      if (home != plan_.node) { // its window is in the home's plan
        line(words);
        continue;
      }
      words += fmt::format("; window {}: {} in flight", clock.in_flight + clock.pending, clock.in_flight);
      if (clock.pending > 0) words += fmt::format(" + {} pending", clock.pending);
      line(words);
    }
  }

  void segments() {
    line("\nsegments");
    for (size_t s = 0; s < plan_.segments.size(); ++s) {
      const Segment& segment = plan_.segments[s];
      if (segment.lane > 0) continue; // a copy of one that was shown
      line("  " + segment_words(s, segment));
      for (uint32_t step : segment.steps) {
        line("    " + step_words(plan_.steps[step], step));
        for (const AccessPlan& access : plan_.accesses)
          if (access.step == step) line("    = " + access_words(access));
      }
    }
  }

  std::string segment_words(size_t index, const Segment& segment) const {
    std::string words = fmt::format("{}  {}, ", index, plan_.domains[segment.domain].name);
    if (segment.blocking)
      words += "a thread of its own";
    else if (!segment.thread.empty())
      words += "thread \"" + segment.thread + "\"";
    else if (segment.heavy)
      words += "a thread of its own that submits to it";
    else if (!plan_.on_host(segment.domain))
      words += "the thread that submits to it";
    else
      words += fmt::format("worker {}", segment.home);
    if (segment.lanes > 1) words += fmt::format(", {} instances", segment.lanes);
    const Pace& pace = plan_.paces[segment.pace];
    if (pace.gate != kNone) {
      const bool on_firing = plan_.channels[plan_.steps[pace.gate].channel()].on_firing;
      words += fmt::format(", lags its clock by at most {}", count_of(pace.window, on_firing ? "firing" : "tick"));
    }
    return words + far_words(pace);
  }

  std::string far_words(const Pace& pace) const {
    if (pace.kind != PaceKind::far) return "";
    const std::string clock = name_of(plan_.clocks[pace.clock]);
    if (pace.stage == 0) return fmt::format(", ticks of clock {}, window {}", clock, pace.window);
    return fmt::format(", stage {} of clock {}, window {}", pace.stage, clock, pace.window);
  }

  std::string step_words(const Step& step, uint32_t index) const {
    if (step.handler() != kNone) return handler_words(step, plan_.handlers[step.handler()]);
    if (step.is<CopyStep>()) {
      for (const TransferPlan& transfer : plan_.transfers)
        if (transfer.step == index) return transfer_words(step, transfer);
    }
    if (step.is<EntryStep>() && plan_.paces[step.pace].kind == PaceKind::far) return "+ " + far_entry_words(step);
    if (step.channel() == kNone) return "+ " + step.name;
    return "+ " + step.name + channel_words(step, plan_.channels[step.channel()]);
  }

  std::string handler_words(const Step& step, const HandlerPlan& handler) const {
    std::string words = fmt::format("{:<{}}  {:<{}}  ", handler.name, name_width_, handler.type, type_width_);
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
    if (handler.cost_ns > 0) add(fmt::format("about {:.3g} µs", static_cast<double>(handler.cost_ns) / 1000));
    if (step.region != kNone) add(fmt::format("captured in region {}", step.region));
    // With one domain there was nothing to choose.
    const std::string reason = plan_.domains.size() > 1 ? handler.reason : "";
    return words + details + (details.empty() || reason.empty() ? "" : "; ") + reason;
  }

  // The number of results that it may owe, and the gap that its window can hold meanwhile.
  std::string owes_words(const Step& step, const HandlerPlan& handler) const {
    std::string words = "owes up to " + count_of(plan_.type_of(handler).max_pending, "result");
    const Pace& pace = plan_.paces[step.pace];
    if (pace.gate != kNone && plan_.channels[plan_.steps[pace.gate].channel()].on_firing) return words;
    const uint32_t gap = handler.gap + pace.gap - 1;
    return words + fmt::format(", {} in a gap of more than {}",
                               plan_.type_of(handler).drains_freely() ? "drained" : "fails", count_of(gap, "tick"));
  }

  // The output whose bytes a copy carries, whatever domains they came through.
  std::string carried(const Step& transfer, size_t member) const {
    uint32_t o = transfer.inputs[member].output;
    for (;;) {
      const Output& output = plan_.outputs[o];
      const Step& step = plan_.steps[output.step];
      if (!step.is<CopyStep>() && !step.is<FinishStep>()) return output_name(plan_, o);
      o = step.inputs[step.is<FinishStep>() ? static_cast<uint32_t>(output.forwards) : output.port].output;
    }
  }

  std::string transfer_words(const Step& step, const TransferPlan& transfer) const {
    std::string route;
    for (const std::string& domain : transfer.route) route += (route.empty() ? "" : " → ") + domain;
    const std::string time = fmt::format("{:.1f} µs{}", transfer.predicted_us, transfer.guessed ? " by a guess" : "");
    std::string names;
    for (size_t member = 0; member < step.inputs.size(); ++member)
      names += (member == 0 ? "" : ", ") + carried(step, member);
    const std::string apart =
        transfer.apart_us > 0 ? fmt::format(" in one, {:.1f} µs one by one", transfer.apart_us) : "";
    return fmt::format("+ copy {}, {}: {}, {}{}; {}", names, route, bytes_words(transfer.bytes), time, apart,
                       transfer.reason);
  }

  std::string access_words(const AccessPlan& access) const {
    const Output& output = plan_.outputs[plan_.steps[access.step].inputs[access.input].output];
    return fmt::format("reads {}.{} where it is, in {}: {}, {:.1f} µs; copied it would take {:.1f} µs",
                       plan_.steps[output.step].name, output.name, plan_.domains[access.domain].name,
                       bytes_words(access.bytes), access.predicted_us, access.copy_us);
  }

  // "from home: main/0>1"; "join of stage 2: main/1>2 from gpu, camera.out from stage 0".
  std::string far_entry_words(const Step& entry) const {
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
  std::string fed_words(const Channel& channel, size_t count) const {
    std::string names;
    for (uint32_t v = 0; v < count; ++v) names += (v == 0 ? "" : ", ") + value_name(plan_, channel, v);
    return count == 0 ? "each tick" : names;
  }

  std::string far_gate_words(const Step& gate, const Channel& channel) const {
    if (const CrossingPlan* crossing = crossing_of(plan_, gate.channel())) return ": " + crossing->name;
    return fmt::format(": {}, at most {} wait", fed_words(channel, gate.inputs.size()),
                       count_of(channel.depth, "tick"));
  }

  std::string channel_words(const Step& step, const Channel& channel) const {
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

  void edges() {
    line("\nedges");
    size_t width = 0;
    for (const EdgePlan& edge : plan_.edges) width = std::max(width, edge.from.size() + edge.to.size());
    for (size_t e = 0; e < plan_.edges.size(); ++e) {
      const EdgePlan& edge = plan_.edges[e];
      const std::string gap(width - edge.from.size() - edge.to.size() + 2, ' ');
      std::string words = "  " + edge_words(edge) + gap + policy_word(edge);
      if (edge.delay > 0) words += fmt::format(" {}", edge.delay);
      words += edge_details(static_cast<uint32_t>(e), edge) + link_words(static_cast<uint32_t>(e));
      if (!edge.note.empty()) words += "; " + edge.note;
      line(words);
    }
  }

  std::string edge_details(uint32_t index, const EdgePlan& edge) const {
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

  static bool serves(const Channel& channel, uint32_t edge) {
    return std::find(channel.edges.begin(), channel.edges.end(), edge) != channel.edges.end();
  }

  std::string link_words(uint32_t edge) const {
    for (const CrossingPlan& crossing : plan_.crossings)
      if (serves(plan_.channels[crossing.channel], edge)) return ", over " + crossing.name;
    const bool is_here = plan_.edges[edge].source_output != kNone || plan_.edges[edge].target_step != kNone;
    return is_here ? "" : ", on other nodes";
  }

  void crossings() {
    if (plan_.crossings.empty()) return;
    line("\ncrossings");
    size_t name_width = 0, node_width = 0;
    for (const CrossingPlan& crossing : plan_.crossings) {
      name_width = std::max(name_width, crossing.name.size());
      node_width = std::max(node_width, end_words(crossing).size());
    }
    for (const CrossingPlan& crossing : plan_.crossings)
      line(fmt::format("  {:<{}}  {:<{}}  {}; depth {}; {}; {}", crossing.name, name_width, end_words(crossing),
                       node_width, parcel_words(plan_, crossing), plan_.channels[crossing.channel].depth,
                       delivery_word(crossing), use_words(plan_, crossing)));
  }

  static std::string end_words(const CrossingPlan& crossing) {
    return (crossing.departs ? "to " : "from ") + crossing.node;
  }

  // The handlers that other nodes run, a line for each node.
  void elsewhere() {
    std::vector<std::string> lines;
    for (uint32_t node = 0; node < plan_.nodes.size(); ++node) {
      if (node == plan_.node) continue;
      std::string names;
      for (const HandlerPlan& handler : plan_.handlers)
        if (handler.node == node) names += (names.empty() ? "" : ", ") + handler.name + " (" + handler.type + ")";
      if (!names.empty()) lines.push_back(plan_.nodes[node] + ": " + names);
    }
    list("on other nodes", lines);
  }

  void memory() {
    line("\nmemory");
    size_t width = 0;
    for (const Ring& ring : plan_.rings) width = std::max(width, ring_name(ring).size());
    for (const Domain& domain : plan_.domains) {
      const auto sum = plan_.memory.find(domain.name);
      if (sum == plan_.memory.end()) continue;
      line(fmt::format("  {}  {}", domain.name, bytes_words(sum->second)));
      for (const Ring& ring : plan_.rings)
        if (&plan_.domains[ring.domain] == &domain)
          line(fmt::format("    {:<{}}  {}", ring_name(ring), width, ring_words(ring)));
    }
  }

  std::string ring_name(const Ring& ring) const {
    const Output& output = plan_.outputs[ring.output];
    const Step& step = plan_.steps[output.step];
    if (step.is<CopyStep>()) return "copy of " + carried(step, output.port);
    const CrossingPlan* crossing = arrival_of(plan_, ring.output);
    return output_name(plan_, ring.output) + (crossing ? " from " + crossing->node : "");
  }

  std::string ring_words(const Ring& ring) const {
    std::string reasons;
    for (const std::string& reason : ring.reasons) reasons += (reasons.empty() ? "" : " + ") + reason;
    return fmt::format("{} × {}: {}{}", ring.length, bytes_words(memory::block_bytes(ring.capacity)), reasons,
                       ring.pinned ? "; pinned" : "");
  }

  void inserted() {
    std::vector<std::string> lines;
    for (const InsertedPlan& inserted : plan_.inserted) {
      const HandlerPlan& handler = plan_.handlers[inserted.handler];
      const std::string cost =
          inserted.predicted_us > 0 ? fmt::format("about {:.3g} µs", inserted.predicted_us) : "cost not known";
      lines.push_back(fmt::format("{}: {} {} → {} between {} and {}, because {}; on {}, {}×{}, {}", handler.name,
                                  handler.type, inserted.from, inserted.to, inserted.source, reader_words(inserted),
                                  inserted.reason, plan_.domains[handler.domain].name, inserted.width, inserted.height,
                                  cost));
    }
    list("inserted", lines);
  }

  void list(const char* title, const std::vector<std::string>& lines) {
    if (lines.empty()) return;
    line(std::string("\n") + title);
    for (const std::string& words : lines) line("  " + words);
  }

  const Plan& plan_;
  std::string text_;
  size_t name_width_ = 0, type_width_ = 0;
};

} // namespace

std::string print_text(const Plan& plan) { return Printer(plan).text(); }

} // namespace millrace::plan
