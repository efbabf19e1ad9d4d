// Describes groups in words, for the printed plan; see describe_group.h.
#include "plan/describe_group.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <iterator>

#include "batch/controller.h"
#include "plan/describe_crossing.h"
#include "plan/format_text.h"
#include "plan/memory.h"
#include "plan/step.h"
#include "plugin/handler_info.h"

namespace millrace::plan {

namespace {

const Clock& clock_of(const Plan& plan, uint32_t give) { return plan.clocks[plan.paces[plan.steps[give].pace].clock]; }

std::string ms_words(int64_t ns) { return fmt::format("{:.3g} ms", static_cast<double>(ns) / 1e6); }

// "3 streams"; "1 stream and room for 7 more"
std::string streams_words(const Plan& plan, const GroupPlan& group) {
  const std::vector<uint32_t> givers = givers_of(group);
  const auto seats = static_cast<size_t>(
      std::count_if(givers.begin(), givers.end(), [&](uint32_t give) { return clock_of(plan, give).is_seat; }));
  const std::string there = count_of(givers.size() - seats, "stream");
  return seats > 0 ? fmt::format("{} and room for {} more", there, seats) : there;
}

std::string rule_words(const GroupPlan& group) {
  const std::string word = rule_word(group.rule) + ": ";
  if (group.rule == BatchRule::free) return word + "what waits";
  if (group.rule == BatchRule::fixed)
    return word + count_of(group.size, "item") +
           (group.wait_ns < 0 ? "" : ", or fewer once the oldest has waited " + ms_words(group.wait_ns));
  return word + "budget " + ms_words(group.budget_ns) + ", late items " + (group.drop_late ? "dropped" : "kept");
}

// "allowance 3 items a stream", "allowance 2 to 5 items a stream"
std::string allowance_words(const Plan& plan, const GroupPlan& group) {
  uint32_t least = UINT32_MAX, most = 0;
  for (const uint32_t give : givers_of(group)) {
    least = std::min(least, plan.steps[give].as<GiveStep>().allowance);
    most = std::max(most, plan.steps[give].as<GiveStep>().allowance);
  }
  if (most == 0) return "";
  return "allowance " + (least < most ? fmt::format("{} to ", least) : "") + count_of(most, "item") + " a stream";
}

} // namespace

std::string rule_word(BatchRule rule) {
  switch (rule) {
    case BatchRule::fixed: return "fixed";
    case BatchRule::learnt: return "learnt";
    default: return "free";
  }
}

std::vector<uint32_t> buckets_of(const GroupPlan& group) {
  std::vector<uint32_t> buckets;
  for (uint32_t items = 1; items <= group.items_max; items *= 2) buckets.push_back(items);
  return buckets;
}

std::vector<uint32_t> givers_of(const GroupPlan& group) {
  std::vector<uint32_t> givers;
  std::copy_if(group.gives.begin(), group.gives.end(), std::back_inserter(givers),
               [](uint32_t give) { return give != kNone; });
  return givers;
}

std::optional<OperatingPoint> expected_point(const Plan& plan, const GroupPlan& group) {
  if (group.rule != BatchRule::learnt) return std::nullopt;
  OperatingPoint point;
  if (group.curve_ns.empty()) return std::nullopt;
  point.item_ns = group.curve_ns[0];
  int64_t fastest_ns = INT64_MAX;
  for (const uint32_t give : givers_of(group)) {
    const graph::Rational& rate = clock_of(plan, give).rate;
    if (rate.numerator == 0) return std::nullopt;
    point.rate += static_cast<double>(rate.numerator) / static_cast<double>(rate.denominator);
    fastest_ns = std::min(fastest_ns, 1'000'000'000 * rate.denominator / rate.numerator);
  }
  if (point.rate == 0) return std::nullopt;
  std::vector<batch::BucketTime> times;
  for (const uint32_t items : buckets_of(group)) {
    const int64_t ns = group.curve_ns[times.size()];
    times.push_back({items, ns, ns, 0, false});
  }
  const batch::Forecast forecast{batch::ServiceCurve(times)};
  batch::Budget budget;
  budget.budget_ns = group.budget_ns;
  budget.drop_late = group.drop_late;
  batch::Controller controller(budget, point.rate, fastest_ns);
  controller.gave(0, 0, forecast); // sets the limit by the rate that it begins with
  point.items = controller.limit_items(forecast);
  point.set_by_budget = controller.budget_sets_limit(forecast);
  const size_t bucket = forecast.curve().bucket_for(point.items);
  point.load = point.rate * static_cast<double>(forecast.curve().median_ns(bucket)) / 1e9 / point.items;
  return point;
}

std::vector<BytesOf> gathered_by(const Plan& plan, const Step& step) {
  std::vector<BytesOf> gathered;
  const HandlerStep* const called = step.called();
  for (uint32_t i = 0; called && i < called->gathers.size(); ++i) {
    if (called->gathers[i] == 0) continue;
    const HandlerPlan& handler = plan.handlers[called->handler];
    std::string name = handler.name;
    for (size_t p = 0; p < handler.first_entry.size(); ++p) {
      const auto& port = plan.type_of(handler).ports[p];
      if (port.is_input() && handler.first_entry[p] == i) name += "." + port.name;
    }
    gathered.push_back({name, called->gathers[i]});
  }
  return gathered;
}

std::vector<BytesOf> copied_out_of(const Plan& plan, const GroupPlan& group) {
  std::vector<BytesOf> copied;
  for (const uint32_t give : givers_of(group)) {
    const std::vector<uint32_t>& results = plan.steps[give].as<GiveStep>().results;
    for (size_t o = 0; o < results.size(); ++o) {
      const Output& output = plan.outputs[plan.steps[give].outputs[o]];
      if (output.origin != kNone) continue;
      const std::string name = output_name(plan, plan.steps[group.deal].inputs[results[o]].output);
      const uint64_t bytes = output.ring == kNone ? 0 : plan.rings[output.ring].capacity;
      auto at = std::find_if(copied.begin(), copied.end(), [&](const BytesOf& known) { return known.name == name; });
      if (at == copied.end()) at = copied.insert(at, {name, 0});
      at->bytes = std::max(at->bytes, bytes);
    }
  }
  return copied;
}

std::vector<std::string> group_lines(const Plan& plan, const GroupPlan& group) {
  std::vector<std::string> lines;
  lines.push_back(fmt::format("{}: {}, firings of up to {}{}, {} in flight; {}", group.set, streams_words(plan, group),
                              group.items_max, group.of_rows ? " rows" : "", group.in_flight, rule_words(group)));
  if (group.rule == BatchRule::free) return lines;
  std::string more;
  const auto add = [&](const std::string& words) { more += (more.empty() ? "" : "; ") + words; };
  if (group.rule == BatchRule::learnt) add(fmt::format("buckets {}", fmt::join(buckets_of(group), " ")));
  add(allowance_words(plan, group));
  if (const std::optional<OperatingPoint> point = expected_point(plan, group))
    add(fmt::format("expected {} a firing{} (load {:.2f}: {:.4g}/s of {} each)", count_of(point->items, "item"),
                    point->set_by_budget ? ", the most that the budget allows" : "", point->load, point->rate,
                    ms_words(point->item_ns)));
  lines.push_back(more);
  return lines;
}

} // namespace millrace::plan
