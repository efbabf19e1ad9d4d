// The plan as a person reads it, like SQL's EXPLAIN: what runs where and why, and every step that the runtime added.
#include <fmt/format.h>

#include <algorithm>
#include <bit>

#include "memory/ring.h"
#include "millrace/payload.h"
#include "plan/format_text.h"
#include "plan/predict.h"

namespace millrace::plan {

namespace {

std::string count_of(size_t count, const char* thing) {
  return fmt::format("{} {}{}", count, thing, count == 1 ? "" : "s");
}

std::string rate_words(const graph::Rational& rate) {
  if (rate.denominator == 1) return fmt::format("{}/s", rate.numerator);
  return fmt::format("{}/{} per s", rate.numerator, rate.denominator);
}

// "rgb8 640×480", "int64[3]", "8 records": the most that a value may be.
std::string format_words(const mr_format& format) {
  switch (format.kind) {
    case MR_KIND_IMAGE: {
      if (std::popcount(format.pixel_formats) != 1) return "image";
      const auto pixel = static_cast<size_t>(std::countr_zero(format.pixel_formats));
      return fmt::format("{} {}×{}", kPixelNames[pixel], format.width, format.height);
    }
    case MR_KIND_TENSOR: {
      const char* type = format.dtype_code == MR_DTYPE_INT     ? "int"
                         : format.dtype_code == MR_DTYPE_UINT  ? "uint"
                         : format.dtype_code == MR_DTYPE_FLOAT ? "float"
                                                               : "bfloat";
      std::string shape;
      for (uint32_t d = 0; d < format.rank; ++d) shape += (d ? "×" : "") + std::to_string(format.shape[d]);
      return fmt::format("{}{}[{}]", type, format.dtype_bits, shape);
    }
    case MR_KIND_RECORDS: return fmt::format("≤{} records", format.record_count_max);
    case MR_KIND_PACKET: return "packet ≤" + bytes_words(format.bytes_max);
    case MR_KIND_OBJECT: return "object";
    default: return "";
  }
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
    line(fmt::format("{}: {}, {}, {} on {}", plan_.name.empty() ? "pipeline" : plan_.name,
                     count_of(plan_.handlers.size(), "handler"), count_of(plan_.edges.size(), "edge"),
                     count_of(plan_.segments.size(), "segment"), count_of(plan_.threads, "thread")));
    latency();
  }

  void latency() {
    const PredictedLatency latency = predict_latency(plan_);
    if (latency.unknown == 0)
      return line(fmt::format("latency: {:.{}f} µs predicted", latency.us, latency.us < 10 ? 2 : 0));
    const std::string missing = count_of(latency.unknown, "cost") + " not known";
    if (latency.us < 1) return line("latency: " + missing);
    line(fmt::format("latency: at least {:.0f} µs predicted, {}", latency.us, missing));
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
    return words;
  }

  std::string step_words(const Step& step, uint32_t index) const {
    if (step.handler() != kNone) return handler_words(step, plan_.handlers[step.handler()]);
    if (step.is<CopyStep>()) {
      for (const TransferPlan& transfer : plan_.transfers)
        if (transfer.step == index) return transfer_words(step, transfer);
    }
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
    const Output* output = &plan_.outputs[transfer.inputs[member].output];
    for (;;) {
      const Step& step = plan_.steps[output->step];
      if (!step.is<CopyStep>() && !step.is<FinishStep>()) break;
      const auto from = step.is<FinishStep>() ? static_cast<uint32_t>(output->forwards) : output->port;
      output = &plan_.outputs[step.inputs[from].output];
    }
    return plan_.steps[output->step].name + "." + output->name;
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

  std::string channel_words(const Step& step, const Channel& channel) const {
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
      words += edge_details(static_cast<uint32_t>(e), edge);
      if (!edge.note.empty()) words += "; " + edge.note;
      line(words);
    }
  }

  std::string edge_details(uint32_t index, const EdgePlan& edge) const {
    for (const Channel& channel : plan_.channels) {
      if (std::find(channel.edges.begin(), channel.edges.end(), index) == channel.edges.end()) continue;
      if (edge.policy == graph::Policy::queue)
        return fmt::format(", depth {}, full: {}", channel.depth, full_word(channel.full));
      if (edge.policy == graph::Policy::latest && channel.lag > 0) return fmt::format(", lag {}", channel.lag);
      if (edge.policy == graph::Policy::align)
        return fmt::format(", within {:.1f} ms", static_cast<double>(channel.within_ns) / 1e6);
      if (edge.policy == graph::Policy::sync) return ", read asynchronously";
    }
    return "";
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
    return step.is<CopyStep>() ? "copy of " + carried(step, output.port) : step.name + "." + output.name;
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
