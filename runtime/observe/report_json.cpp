// The report of a run as JSON (design.md §6).
#include <algorithm>
#include <iterator>
#include <nlohmann/json.hpp>

#include "observe/report.h"
#include "observe/secrets.h"

namespace millrace {

namespace {

constexpr const char* kLevels[] = {"debug", "info", "warning", "error"};

nlohmann::ordered_json json_of(const HandlerReport& h) {
  nlohmann::ordered_json json = {{"type", h.type},     {"domain", h.domain},   {"calls", h.calls},
                                 {"errors", h.errors}, {"sampled", h.sampled}, {"p50_us", h.p50_us},
                                 {"p99_us", h.p99_us}, {"max_us", h.max_us},   {"predicted_us", h.predicted_us}};
  if (h.finish_sampled > 0)
    json["finish"] = {{"sampled", h.finish_sampled},
                      {"p50_us", h.finish_p50_us},
                      {"p99_us", h.finish_p99_us},
                      {"max_us", h.finish_max_us}};
  if (!h.first_error.empty()) json["first_error"] = h.first_error;
  if (!h.counts.empty()) json["counts"] = h.counts;
  for (const HandlerMessage& message : h.messages)
    json["messages"].push_back({{"level", kLevels[std::min<size_t>(message.level, std::size(kLevels) - 1)]},
                                {"sentence", message.sentence},
                                {"times", message.times}});
  return json;
}

nlohmann::ordered_json json_of(const EdgeReport& e) {
  nlohmann::ordered_json json = {{"from", e.from},           {"to", e.to},       {"policy", e.policy},
                                 {"delivered", e.delivered}, {"empty", e.empty}, {"dropped", e.dropped}};
  if (e.clock_error_us > 0)
    json["align"] = {{"within_us", e.within_us}, {"clock_error_us", e.clock_error_us}, {"too_fine", e.is_too_fine()}};
  return json;
}

nlohmann::ordered_json json_of(const StreamReport& s) {
  nlohmann::ordered_json json = {{"state", s.state},     {"ticks", s.ticks},       {"late", s.late},
                                 {"skipped", s.skipped}, {"restarts", s.restarts}, {"dropped", s.dropped},
                                 {"sampled", s.sampled}, {"p50_us", s.p50_us},     {"p99_us", s.p99_us}};
  if (!s.home.empty()) json["home"] = s.home;
  if (s.error.empty()) return json;
  json["error"] = s.error;
  json["failed_at"] = s.failed_at;
  if (!s.failed_on.empty()) json["failed_on"] = s.failed_on;
  return json;
}

nlohmann::ordered_json json_of(const GroupReport& g) {
  nlohmann::ordered_json json = {{"name", g.name},
                                 {"set", g.set},
                                 {"handlers", g.handlers},
                                 {"rule", g.rule},
                                 {"budget_ms", g.budget_ms},
                                 {"items_max", g.items_max},
                                 {"in_flight", g.in_flight},
                                 {"firings", g.firings},
                                 {"items", g.items},
                                 {"places_filled", g.places_filled},
                                 {"places", g.places},
                                 {"firings_of", nlohmann::ordered_json::object()},
                                 {"waiting_us", {{"p50", g.waiting_p50_us}, {"p99", g.waiting_p99_us}}},
                                 {"buckets", nlohmann::ordered_json::array()}};
  for (const auto& [items, firings] : g.firings_of) json["firings_of"][std::to_string(items)] = firings;
  for (const GroupReport::Bucket& b : g.buckets)
    json["buckets"].push_back({{"items", b.items}, {"firings", b.firings}, {"p50_us", b.p50_us}, {"p99_us", b.p99_us}});
  if (g.limit > 0) {
    json["limit"] = {{"items", g.limit}, {"set_by", g.limit_set_by}};
    json["rate"] = g.rate;
  }
  json["late"] = nlohmann::ordered_json::object();
  for (const GroupReport::LateItems& l : g.late)
    json["late"][l.stream] = {{"settled", l.settled}, {"dropped", l.dropped}};
  return json;
}

// Only where several nodes run the graph.
void add_nodes(const Report& report, nlohmann::ordered_json& json) {
  for (const CrossingReport& c : report.crossings) {
    nlohmann::ordered_json crossing = {{"name", c.name},        {"direction", c.departs ? "to" : "from"},
                                       {"node", c.node},        {"parcels", c.parcels},
                                       {"bytes", c.bytes},      {"lost", c.lost},
                                       {"left_out", c.left_out}};
    if (c.departs) {
      crossing["p50_us"] = c.p50_us;
      crossing["p99_us"] = c.p99_us;
      crossing["waited"] = c.waited;
    }
    json["crossings"].push_back(std::move(crossing));
  }
  for (const LinkReport& l : report.links)
    json["links"].push_back({{"node", l.node},
                             {"state", l.state},
                             {"round_trip_us", l.round_trip_us},
                             {"offset_us", l.offset_us},
                             {"offset_error_us", l.offset_error_us}});
}

} // namespace

std::string to_json(const Result& result) {
  using nlohmann::ordered_json;
  const Report& report = result.report;
  ordered_json json;
  json["version"] = 1;
  json["ok"] = result.ok;
  if (!result.ok) json["error"] = {{"code", format_code(result.error.code)}, {"what", result.error.what}};
  json["ticks"] = {{"run", report.ticks_run}, {"late", report.ticks_late}, {"skipped", report.ticks_skipped}};
  json["duration_s"] = report.duration_s;
  json["handlers"] = ordered_json::object();
  for (const HandlerReport& h : report.handlers) json["handlers"][h.name] = json_of(h);
  json["edges"] = ordered_json::array();
  for (const EdgeReport& e : report.edges) json["edges"].push_back(json_of(e));
  for (const StreamReport& s : report.streams) json["streams"][s.set][s.name] = json_of(s);
  json["groups"] = ordered_json::array();
  for (const GroupReport& g : report.groups) json["groups"].push_back(json_of(g));
  json["transfers"] = ordered_json::array();
  for (const TransferReport& t : report.transfers)
    json["transfers"].push_back({{"from", t.from},
                                 {"to", t.to},
                                 {"edge", t.edge},
                                 {"count", t.count},
                                 {"bytes", t.bytes},
                                 {"sampled", t.sampled},
                                 {"p50_us", t.p50_us},
                                 {"predicted_us", t.predicted_us}});
  add_nodes(report, json);
  json["surprises"] = ordered_json::array();
  for (const Misprediction& s : report.mispredictions)
    json["surprises"].push_back({{"what", s.what}, {"predicted_us", s.predicted_us}, {"measured_us", s.measured_us}});
  json["pools"] = ordered_json::object();
  for (const auto& [domain, pool] : report.pools)
    json["pools"][domain] = {{"allocated_bytes", pool.allocated_bytes},
                             {"high_water_bytes", pool.high_water_bytes},
                             {"steady_allocations", pool.steady_allocations},
                             {"held_blocks", pool.held_blocks}};
  json["latency_us"] = {{"p50", report.latency_p50_us},
                        {"p99", report.latency_p99_us},
                        {"max", report.latency_max_us},
                        {"first", report.latency_first_us},
                        {"sampled", report.latency_sampled}};
  json["paths"] = ordered_json::array();
  for (const PathReport& p : report.paths) {
    json["paths"].push_back({{"sink", p.sink},
                             {"predicted_us", p.predicted_us},
                             {"unknown_costs", p.unknown_costs},
                             {"sampled", p.sampled},
                             {"p50", p.p50_us},
                             {"p99", p.p99_us},
                             {"max", p.max_us},
                             {"first", p.first_us}});
    if (p.home.empty()) continue;
    json["paths"].back()["home"] = p.home;
    json["paths"].back()["clock_error"] = p.clock_error_us;
  }
  json["regions"] = ordered_json::array();
  for (const RegionReport& r : report.regions)
    json["regions"].push_back({{"domain", r.domain},
                               {"handlers", r.handlers},
                               {"launches", r.launches},
                               {"one_by_one", r.one_by_one},
                               {"sampled", r.sampled},
                               {"p50_us", r.p50_us},
                               {"p99_us", r.p99_us}});
  json["devices"] = ordered_json::object();
  for (const DeviceReport& d : report.devices)
    json["devices"][d.domain] = {{"gauges", d.gauges}, {"driver_calls", d.driver_calls}};
  json["revision"] = report.revision;
  json["cut_again"] = report.cut_again;
  json["log"] = {{"lost", report.log_lost}};
  json["segments"] = ordered_json::array();
  for (const SegmentReport& s : report.segments)
    json["segments"].push_back({{"domain", s.domain}, {"handlers", s.handlers}});
  hide_secrets(json);
  // A handler's words may be invalid UTF-8.
  return json.dump(2, ' ', false, ordered_json::error_handler_t::replace);
}

} // namespace millrace
