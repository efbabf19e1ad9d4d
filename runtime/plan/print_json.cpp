// The plan as JSON: the contract of `millrace plan --json` (design.md §6) and what else a tool may want to know.
#include <nlohmann/json.hpp>

#include "plan/format_text.h"

namespace millrace::plan {

namespace {

using nlohmann::ordered_json;

constexpr int kPlanVersion = 1; // raised when a reader of the older form would misunderstand

ordered_json handlers(const Plan& plan) {
  ordered_json json = ordered_json::object();
  for (const HandlerPlan& handler : plan.handlers)
    json[handler.name] = {{"type", handler.type},
                          {"domain", plan.domains[handler.domain].name},
                          {"segment", handler.step == kNone ? kNone : plan.steps[handler.step].segment},
                          {"clock", plan.clocks[handler.clock].name},
                          {"every", handler.every},
                          {"instances", handler.lanes},
                          {"cost_us", static_cast<double>(handler.cost_ns) / 1000.0},
                          {"reason", handler.reason}};
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
  for (const InsertedPlan& inserted : plan.inserted)
    json.push_back({{"handler", plan.handlers[inserted.handler].name},
                    {"from", inserted.from},
                    {"to", inserted.to},
                    {"edge", inserted.source + " → " + reader_words(inserted)},
                    {"domain", plan.domains[plan.handlers[inserted.handler].domain].name},
                    {"reason", inserted.reason},
                    {"predicted_us", inserted.predicted_us},
                    {"bytes", inserted.bytes}});
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
    if (transfer.apart_us > 0) json.back()["one_by_one_us"] = transfer.apart_us; // only for a packed copy
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

ordered_json rings(const Plan& plan) {
  ordered_json json = ordered_json::array();
  for (const Ring& ring : plan.rings) {
    const Output& output = plan.outputs[ring.output];
    json.push_back({{"output", plan.steps[output.step].name + "." + output.name},
                    {"domain", plan.domains[ring.domain].name},
                    {"length", ring.length},
                    {"capacity", ring.capacity},
                    {"reasons", ring.reasons}});
  }
  return json;
}

} // namespace

std::string print_json(const Plan& plan) {
  ordered_json json;
  json["version"] = kPlanVersion;
  json["name"] = plan.name;
  json["workers"] = plan.workers;
  json["threads"] = plan.threads;
  json["domains"] = ordered_json::array();
  for (const Domain& domain : plan.domains) json["domains"].push_back(domain.name);
  json["clocks"] = clocks(plan);
  json["handlers"] = handlers(plan);
  json["edges"] = edges(plan);
  json["inserted"] = inserted(plan);
  json["transfers"] = transfers(plan);
  json["accesses"] = accesses(plan);
  json["segments"] = segments(plan);
  json["memory"] = plan.memory;
  json["rings"] = rings(plan);
  json["latency_us"] = plan.latency_us;
  json["notes"] = plan.notes;
  return json.dump(2) + "\n";
}

} // namespace millrace::plan
