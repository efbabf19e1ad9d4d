// The plan as JSON: the contract of `millrace plan --json` (design.md §6) and what else a tool may want to know.
#include <nlohmann/json.hpp>

#include "observe/secrets.h"
#include "plan/describe_crossing.h"
#include "plan/describe_group.h"
#include "plan/domain.h"
#include "plan/explained.h"
#include "plan/format_text.h"
#include "plan/memory.h"
#include "plan/notes.h"
#include "plan/plan_words.h"
#include "plan/print.h"
#include "plan/template_names.h"

namespace millrace::plan {

namespace {

using nlohmann::ordered_json;

constexpr int kPlanVersion = 1; // raised when a reader of the older form would misunderstand

ordered_json handlers(const Plan& plan, bool has_streams) {
  ordered_json json = ordered_json::object();
  for (const HandlerPlan& handler : plan.handlers) {
    ordered_json& out = json[handler.name];
    out = {{"type", handler.type},
           {"domain", plan.domains[handler.domain].name},
           {"segment", nullptr}, // another node runs it
           {"clock", plan.clocks[handler.clock].name},
           {"every", handler.every},
           {"instances", handler.lanes},
           {"cost_us", static_cast<double>(handler.cost_ns) / 1000.0},
           {"reason", handler.reason}};
    if (handler.step != kNone) {
      const Step& step = plan.steps[handler.step];
      out["segment"] = step.segment;
      if (step.state_bytes() > 0) out["state_bytes"] = step.state_bytes();
    }
    if (plan.is_over_nodes()) out["node"] = plan.nodes[handler.node];
    if (plan.clocks[handler.clock].is_group) {
      out["clock"] = nullptr; // those of the streams
      out["group"] = group_of(plan, handler.clock).name;
    }
    if (!has_streams) continue;
    out["template"] = handler.stream.empty() ? ordered_json() : ordered_json(handler.written_as);
    out["stream"] = handler.stream.empty() ? ordered_json() : ordered_json(handler.stream);
  }
  return json;
}

// The streams of each set, in their order.
ordered_json streams(const Plan& plan) {
  const TemplateNames names(plan);
  ordered_json json = ordered_json::object();
  for (const StreamsOfSet& set : names.sets()) json[set.name] = set.streams;
  return json;
}

ordered_json edges(const Plan& plan) {
  ordered_json json = ordered_json::array();
  for (const EdgePlan& edge : plan.edges) {
    ordered_json out = {{"from", edge.from}, {"to", edge.to}, {"policy", policy_word(edge)}};
    if (edge.delay > 0) out["delay"] = edge.delay;
    if (!edge.note.empty()) out["note"] = edge.note;
    json.push_back(std::move(out));
  }
  return json;
}

ordered_json inserted(const Plan& plan) {
  ordered_json json = ordered_json::array();
  for (const InsertedPlan& inserted : plan.inserted) {
    ordered_json out = {{"handler", plan.handlers[inserted.handler].name},
                        {"from", inserted.from},
                        {"to", inserted.to},
                        {"edge", inserted.source + " → " + reader_words(inserted)},
                        {"domain", plan.domains[plan.handlers[inserted.handler].domain].name},
                        {"reason", inserted.reason},
                        {"predicted_us", inserted.predicted_us},
                        {"bytes", inserted.bytes}};
    if (!inserted.elsewhere.empty()) out["elsewhere"] = inserted.elsewhere;
    json.push_back(std::move(out));
  }
  return json;
}

ordered_json transfers(const Plan& plan) {
  ordered_json json = ordered_json::array();
  for (const TransferPlan& transfer : plan.transfers) {
    json.push_back({{"edge", edge_words(plan, transfer)},
                    {"route", transfer.route},
                    {"bytes", transfer.bytes},
                    {"predicted_us", transfer.predicted_us},
                    {"reason", transfer.reason}});
    if (transfer.one_by_one_us > 0) json.back()["one_by_one_us"] = transfer.one_by_one_us; // only for a packed copy
  }
  return json;
}

ordered_json accesses(const Plan& plan) {
  ordered_json json = ordered_json::array();
  for (const AccessPlan& access : plan.accesses) {
    const EdgePlan& edge = plan.edges[access.edge];
    json.push_back({{"edge", edge.from + " → " + edge.to},
                    {"domain", plan.domains[access.domain].name},
                    {"bytes", access.bytes},
                    {"predicted_us", access.predicted_us},
                    {"copy_us", access.copy_us}});
  }
  return json;
}

ordered_json segments(const Plan& plan) {
  ordered_json json = ordered_json::array();
  for (const Segment& segment : plan.segments) {
    ordered_json names = ordered_json::array(), steps = ordered_json::array();
    for (uint32_t s : segment.steps) {
      if (plan.steps[s].handler() != kNone) names.push_back(plan.steps[s].name);
      steps.push_back(plan.steps[s].name);
    }
    json.push_back({{"domain", plan.domains[segment.domain].name},
                    {"handlers", std::move(names)},
                    {"steps", std::move(steps)},
                    {"worker", segment.home}});
  }
  return json;
}

ordered_json clocks(const Plan& plan) {
  ordered_json json = ordered_json::array();
  for (const Clock& clock : plan.clocks) {
    if (clock.is_group) continue;
    ordered_json out = {{"name", clock.name},
                        {"mode", mode_word(clock)},
                        {"live", clock.live},
                        {"in_flight", clock.in_flight},
                        {"pending", clock.pending}};
    if (clock.rate.numerator > 0) out["rate"] = {clock.rate.numerator, clock.rate.denominator};
    json.push_back(std::move(out));
  }
  return json;
}

ordered_json bytes_of(const std::vector<BytesOf>& values, const char* of) {
  ordered_json json = ordered_json::array();
  for (const BytesOf& value : values) json.push_back({{of, value.name}, {"bytes", value.bytes}, {"us", value.us()}});
  return json;
}

ordered_json group_json(const Plan& plan, const GroupPlan& group) {
  ordered_json out = {{"name", group.name},
                      {"set", group.set},
                      {"handlers", ordered_json::array()},
                      {"rule", rule_word(group.rule)},
                      {"items_max", group.items_max},
                      {"in_flight", group.in_flight},
                      {"of_rows", group.of_rows},
                      {"buckets", buckets_of(group)},
                      {"allowance", ordered_json::object()},
                      {"gathers", ordered_json::array()},
                      {"copies_out", bytes_of(copied_out_of(plan, group), "output")}};
  for (const uint32_t h : group.handlers) {
    out["handlers"].push_back(plan.handlers[h].name);
    if (plan.handlers[h].step == kNone) continue;
    for (ordered_json& input : bytes_of(gathered_by(plan, plan.steps[plan.handlers[h].step]), "input"))
      out["gathers"].push_back(std::move(input));
  }
  for (const uint32_t give : givers_of(group))
    out["allowance"][plan.clocks[plan.paces[plan.steps[give].pace].clock].name] =
        plan.steps[give].as<GiveStep>().allowance;
  if (group.rule == BatchRule::fixed) out["size"] = group.size;
  if (group.rule == BatchRule::fixed && group.wait_ns >= 0) out["wait_ms"] = static_cast<double>(group.wait_ns) / 1e6;
  if (group.budget_ns > 0) out["budget_ms"] = static_cast<double>(group.budget_ns) / 1e6;
  if (group.rule == BatchRule::learnt) out["late"] = group.drop_late ? "drop" : "keep";
  if (const std::optional<OperatingPoint> point = expected_point(plan, group))
    out["expected"] = {{"items", point->items},
                       {"set_by", point->set_by_budget ? "budget" : "load"},
                       {"load", point->load},
                       {"rate", point->rate},
                       {"item_us", static_cast<double>(point->item_ns) / 1000.0}};
  return out;
}

ordered_json rings(const Plan& plan) {
  ordered_json json = ordered_json::array();
  for (const Ring& ring : plan.rings) {
    json.push_back({{"output", output_name(plan, ring.output)},
                    {"domain", plan.domains[ring.domain].name},
                    {"length", ring.length},
                    {"capacity", ring.capacity},
                    {"reasons", ring.reasons}});
  }
  return json;
}

ordered_json parcel_values(const Plan& plan, const CrossingPlan& crossing) {
  ordered_json json = ordered_json::array();
  for (const CrossingValue& value : values_of(plan, crossing)) {
    json.push_back({{"output", value.name}, {"format", format_words(value.format)}, {"bytes", nullptr}});
    if (value.bytes != UINT64_MAX) json.back()["bytes"] = value.bytes;
    if (value.delay > 0) json.back()["delay"] = value.delay;
  }
  return json;
}

ordered_json crossings(const Plan& plan) {
  ordered_json json = ordered_json::array();
  for (const CrossingPlan& crossing : plan.crossings)
    json.push_back({{"name", crossing.name},
                    {"direction", crossing.departs ? "to" : "from"},
                    {"node", crossing.node},
                    {"depth", plan.channels[crossing.channel].depth},
                    {"delivery", delivery_word(crossing)},
                    {"values", parcel_values(plan, crossing)},
                    {"use", use_words(plan, crossing)}});
  return json;
}

} // namespace

std::string print_json(const Plan& plan) {
  ordered_json json;
  json["version"] = kPlanVersion;
  json["name"] = plan.name;
  if (plan.is_over_nodes()) {
    json["node"] = plan.nodes[plan.node];
    json["nodes"] = plan.nodes;
  }
  json["workers"] = plan.workers;
  json["threads"] = plan.threads;
  if (plan.library_threads > 0) json["library_threads"] = plan.library_threads;
  json["domains"] = ordered_json::array();
  for (const Domain& domain : plan.domains) json["domains"].push_back(domain.name);
  json["clocks"] = clocks(plan);
  for (const GroupPlan& group : plan.groups) json["groups"].push_back(group_json(plan, group));
  const ordered_json sets = streams(plan);
  if (!sets.empty()) json["streams"] = sets;
  json["handlers"] = handlers(plan, !sets.empty());
  json["edges"] = edges(plan);
  json["inserted"] = inserted(plan);
  json["transfers"] = transfers(plan);
  json["accesses"] = accesses(plan);
  if (plan.is_over_nodes()) json["crossings"] = crossings(plan);
  json["segments"] = segments(plan);
  json["memory"] = plan.memory;
  json["rings"] = rings(plan);
  json["latency_us"] = plan.latency_us;
  json["notes"] = all_notes(plan);
  hide_secrets(json);
  return json.dump(2, ' ', false, ordered_json::error_handler_t::replace) + "\n"; // paths may be no UTF-8
}

} // namespace millrace::plan
