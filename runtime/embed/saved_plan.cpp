// Reads and compares saved plans; see saved_plan.h.
#include "embed/saved_plan.h"

#include <cmath>

#include "embed/json_fields.h"
#include "observe/error_codes.h"
#include "plan/domain.h"
#include "plan/print.h"

namespace millrace::embed {

namespace {

using nlohmann::json;

const JsonFields kSavedPlan(code::bad_saved_plan, "the saved plan cannot be used");

const json& part(const json& document, const char* key, bool is_list) {
  const auto at = document.find(key);
  if (at == document.end())
    kSavedPlan.refuse("the file", std::string("lacks ") + key + "; `millrace plan --json` writes it");
  if (is_list ? !at->is_array() : !at->is_object()) kSavedPlan.refuse(key, is_list ? "is no list" : "is no object");
  return *at;
}

// The parts of a plan that decide what a run does: they must be the same again. Prices, reasons and notes may change
// with the machine.
json what_runs(const json& plan) {
  json kept = json::object();
  for (const char* key : {"workers", "domains", "memory", "rings"}) kept[key] = plan.value(key, json());
  const auto keep = [&](const char* list, std::initializer_list<const char*> keys) {
    const json entries = plan.value(list, json::array());
    for (const auto& [at, entry] : entries.items())
      for (const char* key : keys) kept[list][at][key] = entry.is_object() ? entry.value(key, json()) : json();
  };
  keep("handlers", {"type", "domain", "segment", "clock", "every", "instances"});
  keep("clocks", {"name", "mode", "rate", "in_flight", "pending"});
  keep("edges", {"from", "to", "policy", "delay"});
  keep("transfers", {"edge", "route", "bytes"});
  keep("segments", {"domain", "steps", "worker"});
  return kept;
}

std::string shown(const json& value) { return value.is_null() ? "nothing" : value.dump(); }

} // namespace

SavedPlan parse_plan(const std::string& text) {
  const json document = kSavedPlan.parse(text);
  kSavedPlan.whole(document, "version", 1, 1, "the file");
  SavedPlan saved;
  saved.text = text;
  saved.workers = static_cast<uint32_t>(kSavedPlan.whole(document, "workers", 1, 1024, "the file"));
  if (document.contains("library_threads"))
    saved.library_threads =
        static_cast<uint32_t>(kSavedPlan.whole(document, "library_threads", 0, 1 << 20, "the file"));
  for (const json& domain : part(document, "domains", true)) {
    if (!domain.is_string()) kSavedPlan.refuse("domains", "has no names");
    saved.domains.push_back(domain.get<std::string>());
    if (!plan::parse_domain(saved.domains.back())) kSavedPlan.refuse("domains", "names no domain: " + domain.dump());
  }
  for (const auto& [name, handler] : part(document, "handlers", false).items()) {
    if (!handler.is_object()) kSavedPlan.refuse("handlers." + name, "is no object");
    const auto domain = kSavedPlan.text(handler, "domain", "handlers." + name);
    if (!domain) kSavedPlan.refuse("handlers." + name, "lacks domain");
    saved.places[name] = *domain;
    const auto cost_us = kSavedPlan.number(handler, "cost_us", 0, 1e12, "handlers." + name);
    const std::optional<plan::Domain> parsed = plan::parse_domain(*domain);
    if (parsed && parsed->is_host() && cost_us) saved.costs_ns[name] = std::llround(*cost_us * 1000);
  }
  return saved;
}

void require_same(const SavedPlan& saved, const plan::Plan& compiled) {
  const json before = what_runs(json::parse(saved.text)), now = what_runs(json::parse(plan::print_json(compiled)));
  const json changes = json::diff(before, now);
  if (changes.empty()) return;
  const json::json_pointer at(changes[0].at("path").get<std::string>());
  const auto look = [&](const json& plan) { return plan.contains(at) ? shown(plan.at(at)) : "nothing"; };
  throw Failure(Error{
      code::plan_mismatch,
      "the saved plan does not fit this pipeline on this machine: " + at.to_string().substr(1) + " is not what it was",
      {},
      {"saved: " + look(before), "now: " + look(now)},
      "",
      "millrace plan --json, to save it anew"});
}

} // namespace millrace::embed
