// Describes crossings in words, for the printed plan; see describe_crossing.h.
#include "plan/describe_crossing.h"

#include <algorithm>

#include "plan/draft.h"
#include "plan/far_feeds.h"
#include "plan/format_text.h"
#include "plan/memory.h"

namespace millrace::plan {

namespace {

void add_words(std::string& text, const char* between, const std::string& words) {
  text += (text.empty() ? "" : between) + words;
}

// "overlay.boxes (latest)" for each edge that reads the crossing's values from another pace.
std::string posted_words(const Plan& plan, const Channel& channel) {
  std::string text;
  for (const uint32_t e : channel.edges)
    add_words(text, ", ", plan.edges[e].to + " (" + policy_word(plan.edges[e].policy) + ")");
  return text;
}

// Any edge that carries value number `value` of the channel.
const EdgePlan& edge_of(const Plan& plan, const Channel& channel, uint32_t value) {
  const auto at = std::find(channel.entries.begin(), channel.entries.end(), value);
  return plan.edges[channel.edges[static_cast<size_t>(at - channel.entries.begin())]];
}

} // namespace

std::string value_name(const Plan& plan, const Channel& channel, uint32_t value) {
  return edge_of(plan, channel, value).from;
}

std::string output_name(const Plan& plan, uint32_t o) {
  const Output& output = plan.outputs[o];
  const CrossingPlan* crossing = arrival_of(plan, o);
  if (!crossing) return plan.steps[output.step].name + "." + output.name;
  const Feed& feed = feed_of(plan.paces[crossing->to], output.port);
  return value_name(plan, plan.channels[feed.channel], output.port - feed.first);
}

std::vector<CrossingValue> values_of(const Plan& plan, const CrossingPlan& crossing) {
  const Channel& channel = plan.channels[crossing.channel];
  std::vector<CrossingValue> values;
  const auto add = [&](uint32_t output, uint32_t delay) {
    const mr_format& format = plan.outputs[output].format;
    const auto number = static_cast<uint32_t>(values.size());
    values.push_back({value_name(plan, channel, number), format, delay, capacity_of(format)});
  };
  if (crossing.departs) {
    for (const StepInput& input : plan.steps[channel.from].inputs) add(input.output, input.delay);
    return values;
  }
  const Pace& pace = plan.paces[crossing.to];
  for (const Feed& feed : pace.feeds) {
    if (feed.channel != crossing.channel) continue;
    for (uint32_t v = 0; v < feed.count; ++v) {
      const EdgePlan& edge = edge_of(plan, channel, v);
      // The gate looks back for readers within the pace. Readers in other paces look back themselves.
      const bool is_within = edge.target_step != kNone && plan.steps[edge.target_step].pace == crossing.to;
      add(plan.steps[pace.entry].outputs[feed.first + v], is_within ? edge.delay : 0);
    }
  }
  return values;
}

std::string parcel_words(const Plan& plan, const CrossingPlan& crossing) {
  std::string words;
  uint64_t bytes = 0;
  bool is_known = true;
  for (const CrossingValue& value : values_of(plan, crossing)) {
    add_words(words, ", ", value.name);
    if (value.delay > 0) words += " of " + count_of(value.delay, "tick") + " before";
    const std::string format = format_words(value.format);
    if (!format.empty()) words += " " + format;
    is_known = is_known && value.bytes != UINT64_MAX;
    bytes += value.bytes;
  }
  if (words.empty()) return "ticks without values";
  return words + (is_known ? ", at most " + bytes_words(bytes) + " a tick" : ", of unknown size");
}

const char* delivery_word(const CrossingPlan& crossing) {
  return crossing.delivery == graph::Delivery::live ? "live" : "reliable";
}

std::string use_words(const Plan& plan, const CrossingPlan& crossing) {
  if (plan.paces[crossing.to].stage > 0) return "joined by " + stage_words(plan, crossing.to);
  std::string text;
  const std::string posted = posted_words(plan, plan.channels[crossing.channel]);
  if (!posted.empty()) text = "posted for " + posted;
  for (uint32_t c = 0; c < plan.clocks.size(); ++c) {
    const std::vector<uint32_t>& leaders = plan.paces[c].led_by;
    if (std::find(leaders.begin(), leaders.end(), crossing.to) == leaders.end()) continue;
    const Clock& leader = plan.clocks[plan.paces[crossing.to].clock];
    add_words(text, "; ", "tells clock " + name_of(plan.clocks[c]) + " how far clock " + name_of(leader) + " is");
  }
  return text;
}

} // namespace millrace::plan
