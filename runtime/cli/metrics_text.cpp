// Families of samples, each named once with its type and its help; see metrics_text.h. The format's own page:
// https://prometheus.io/docs/instrumenting/exposition_formats/
#include "cli/metrics_text.h"

#include <fmt/format.h>

#include <cmath>
#include <map>
#include <utility>
#include <vector>

#include "observe/report.h"
#include "serve/web.h"

namespace millrace::cli {

namespace {

using Labels = std::vector<std::pair<std::string, std::string>>;

std::string escaped(const std::string& value) {
  std::string text;
  for (const char c : value) {
    if (c == '\\' || c == '"') text += '\\';
    text += c == '\n' ? std::string("\\n") : std::string(1, c);
  }
  return text;
}

std::string words_of(const Labels& labels) {
  std::string words;
  for (const auto& [name, value] : labels)
    words += fmt::format("{}{}=\"{}\"", words.empty() ? "{" : ",", name, escaped(value));
  return words.empty() ? words : words + "}";
}

std::string number(double value) { return std::isnan(value) ? "NaN" : fmt::format("{}", value); }
double seconds(double us) { return us * 1e-6; }

// One name with its samples. Samples with equal labels are added up: Prometheus refuses a text that has one twice.
class Family {
 public:
  Family(std::string name, const char* type, const char* help) : name_(std::move(name)), type_(type), help_(help) {}
  void add(const Labels& labels, double value, const char* suffix = "") {
    samples_[suffix + words_of(labels)] += value;
  }
  void add(const Labels& labels, uint64_t value) { add(labels, static_cast<double>(value)); }
  // The quantiles of a summary, with its sum and count. Quantiles without a sample are NaN.
  void add_times(const Labels& labels, uint64_t sampled, double p50_us, double p99_us, double sampled_us) {
    for (const auto& [quantile, us] : {std::pair{"0.5", p50_us}, {"0.99", p99_us}}) {
      Labels with = labels;
      with.emplace_back("quantile", quantile);
      add(with, sampled > 0 ? seconds(us) : NAN);
    }
    add(labels, seconds(sampled_us), "_sum");
    add(labels, static_cast<double>(sampled), "_count");
  }
  void add_by_cause(Labels labels, const std::map<std::string, uint64_t>& counts) {
    labels.emplace_back("cause", "");
    for (const auto& [cause, count] : counts) {
      labels.back().second = cause;
      add(labels, count);
    }
  }
  std::string text() const {
    if (samples_.empty()) return "";
    std::string text = fmt::format("# HELP {} {}\n# TYPE {} {}\n", name_, help_, name_, type_);
    for (const auto& [words, value] : samples_) text += fmt::format("{}{} {}\n", name_, words, number(value));
    return text;
  }

 private:
  std::string name_;
  const char* type_;
  const char* help_;
  std::map<std::string, double> samples_;
};

std::string ticks_text(const Report& report) {
  Family duration("millrace_run_duration_seconds", "gauge", "Time since the run began.");
  duration.add({}, report.duration_s);
  Family ticks(
      "millrace_ticks_total", "counter",
      "Ticks of all clocks: run, late (their beat found the window full), skipped (the clock itself came late).");
  ticks.add({{"outcome", "run"}}, report.ticks_run);
  ticks.add({{"outcome", "late"}}, report.ticks_late);
  ticks.add({{"outcome", "skipped"}}, report.ticks_skipped);
  Family latency(
      "millrace_latency_seconds", "summary",
      "From a tick's beginning, or when it was due, until its last handler was done; of ticks that were measured.");
  latency.add_times({}, report.latency_sampled, report.latency_p50_us, report.latency_p99_us,
                    report.latency_sampled_us);
  return duration.text() + ticks.text() + latency.text();
}

std::string handlers_text(const Report& report) {
  Family calls("millrace_handler_calls_total", "counter", "Calls of a handler.");
  Family errors("millrace_handler_errors_total", "counter", "Calls of a handler that failed.");
  Family times("millrace_handler_call_seconds", "summary", "Time of one call, of those that are timed.");
  Family max("millrace_handler_call_max_seconds", "gauge", "Time of the longest call that was timed.");
  for (const HandlerReport& handler : report.handlers) {
    const Labels labels = {{"handler", handler.name}, {"type", handler.type}, {"domain", handler.domain}};
    calls.add(labels, handler.calls);
    errors.add(labels, handler.errors);
    times.add_times(labels, handler.sampled, handler.p50_us, handler.p99_us, handler.sampled_us);
    max.add(labels, seconds(handler.max_us));
  }
  return calls.text() + errors.text() + times.text() + max.text();
}

std::string edges_text(const Report& report) {
  Family delivered("millrace_edge_delivered_total", "counter", "Values that a handler was given over an edge.");
  Family empty("millrace_edge_empty_total", "counter", "Ticks on which an edge had no value.");
  Family dropped("millrace_edge_dropped_total", "counter", "Values that were dropped on an edge, by cause.");
  Family error("millrace_edge_clock_error_seconds", "gauge",
               "By how much the times of values may be wrong to each other that align compares.");
  for (const EdgeReport& edge : report.edges) {
    const Labels labels = {{"from", edge.from}, {"to", edge.to}, {"policy", edge.policy}};
    delivered.add(labels, edge.delivered);
    empty.add(labels, edge.empty);
    dropped.add_by_cause(labels, edge.dropped);
    if (edge.clock_error_us > 0) error.add(labels, seconds(edge.clock_error_us));
  }
  return delivered.text() + empty.text() + dropped.text() + error.text();
}

std::string streams_text(const Report& report) {
  Family state("millrace_stream_state", "gauge",
               "1 for the state in which a stream is: runs, stalled, ended, failed or down.");
  Family ticks("millrace_stream_ticks_total", "counter", "Ticks of a stream: run, late, skipped.");
  Family restarts("millrace_stream_restarts_total", "counter", "How often a stream that had failed began anew.");
  Family dropped("millrace_stream_dropped_total", "counter", "Values that a stream's handlers did not get, by cause.");
  Family latency("millrace_stream_latency_seconds", "summary", "As millrace_latency_seconds, of a stream's ticks.");
  for (const StreamReport& stream : report.streams) {
    const Labels labels = {{"set", stream.set}, {"stream", stream.name}};
    const auto with = [&](const char* name, const char* value) {
      Labels more = labels;
      more.push_back({name, value});
      return more;
    };
    for (const char* known : {"runs", "stalled", "ended", "failed", "down"})
      state.add(with("state", known), known == stream.state ? 1.0 : 0.0);
    ticks.add(with("outcome", "run"), stream.ticks);
    ticks.add(with("outcome", "late"), stream.late);
    ticks.add(with("outcome", "skipped"), stream.skipped);
    restarts.add(labels, stream.restarts);
    dropped.add_by_cause(labels, stream.dropped);
    latency.add_times(labels, stream.sampled, stream.p50_us, stream.p99_us, stream.sampled_us);
  }
  return state.text() + ticks.text() + restarts.text() + dropped.text() + latency.text();
}

std::string groups_text(const Report& report) {
  Family firings("millrace_group_firings_total", "counter", "Firings of a group, by their number of items.");
  Family places("millrace_group_places_total", "counter", "Places that the firings of a group were made for.");
  Family filled("millrace_group_places_filled_total", "counter", "Those of them that items filled.");
  Family waiting("millrace_group_waiting_seconds", "summary", "From when an item was given until it fired.");
  Family times("millrace_group_firing_seconds", "summary",
               "From when a firing began until its items were dealt out, by the places that it was made for.");
  Family late("millrace_group_late_items_total", "counter",
              "Items that were late: settled after they were due, or dropped before they fired.");
  Family budget("millrace_group_budget_seconds", "gauge", "The time that an item may take.");
  Family limit("millrace_group_limit_items", "gauge", "The items that are waited for, by what sets it: load, budget.");
  Family rate("millrace_group_items_per_second", "gauge", "Items that the streams give, as the rule measures it.");
  for (const GroupReport& group : report.groups) {
    const Labels labels = {{"group", group.name}, {"set", group.set}};
    const auto with = [&](const char* name, const std::string& value) {
      Labels more = labels;
      more.push_back({name, value});
      return more;
    };
    for (const auto& [items, count] : group.firings_of) firings.add(with("items", std::to_string(items)), count);
    places.add(labels, group.places);
    filled.add(labels, group.places_filled);
    waiting.add_times(labels, group.items, group.waiting_p50_us, group.waiting_p99_us, group.waiting_sum_us);
    for (const GroupReport::Bucket& bucket : group.buckets)
      times.add_times(with("places", std::to_string(bucket.items)), bucket.firings, bucket.p50_us, bucket.p99_us,
                      bucket.sum_us);
    for (const GroupReport::LateItems& of : group.late) {
      Labels stream = with("stream", of.stream);
      stream.push_back({"outcome", "settled"});
      late.add(stream, of.settled);
      stream.back().second = "dropped";
      late.add(stream, of.dropped);
    }
    if (group.budget_ms > 0) budget.add(labels, group.budget_ms * 1e-3);
    if (group.limit == 0) continue;
    limit.add(with("set_by", group.limit_set_by), uint64_t{group.limit});
    rate.add(labels, group.rate);
  }
  return firings.text() + places.text() + filled.text() + waiting.text() + times.text() + late.text() + budget.text() +
         limit.text() + rate.text();
}

std::string memory_text(const Report& report) {
  Family copies("millrace_transfer_copies_total", "counter", "Copies between domains.");
  Family bytes("millrace_transfer_bytes_total", "counter", "Bytes copied between domains.");
  for (const TransferReport& transfer : report.transfers) {
    const Labels labels = {{"from", transfer.from}, {"to", transfer.to}, {"edge", transfer.edge}};
    copies.add(labels, transfer.count);
    bytes.add(labels, transfer.bytes);
  }
  Family allocated("millrace_pool_allocated_bytes", "gauge", "Memory that the plan laid out in a domain.");
  Family high("millrace_pool_high_water_bytes", "gauge", "The most of it that was in use at one time.");
  for (const auto& [domain, pool] : report.pools) {
    allocated.add({{"domain", domain}}, pool.allocated_bytes);
    high.add({{"domain", domain}}, pool.high_water_bytes);
  }
  return copies.text() + bytes.text() + allocated.text() + high.text();
}

std::string nodes_text(const Report& report) {
  Family parcels("millrace_crossing_parcels_total", "counter", "Ticks that went to another node, or came from it.");
  Family bytes("millrace_crossing_bytes_total", "counter", "Bytes of their values.");
  Family lost("millrace_crossing_lost_total", "counter", "Ticks that went with a process of the other node.");
  Family left_out("millrace_crossing_left_out_total", "counter", "Ticks that were left out at this end, by cause.");
  for (const CrossingReport& crossing : report.crossings) {
    const Labels labels = {
        {"crossing", crossing.name}, {"direction", crossing.departs ? "to" : "from"}, {"node", crossing.node}};
    parcels.add(labels, crossing.parcels);
    bytes.add(labels, crossing.bytes);
    lost.add(labels, crossing.lost);
    left_out.add_by_cause(labels, crossing.left_out);
  }
  Family up("millrace_node_up", "gauge", "1 while another node is heard, 0 while it is suspect or away.");
  Family round_trip("millrace_link_round_trip_seconds", "gauge", "The least round trip that was measured of late.");
  Family offset("millrace_link_clock_offset_seconds", "gauge", "How far the other node's clock is ahead.");
  Family error("millrace_link_clock_offset_error_seconds", "gauge", "By how much that offset may be wrong.");
  for (const LinkReport& link : report.links) {
    const Labels labels = {{"node", link.node}};
    up.add(labels, uint64_t{link.state == "there"});
    if (link.round_trip_us == 0) continue;
    round_trip.add(labels, seconds(link.round_trip_us));
    offset.add(labels, seconds(link.offset_us));
    error.add(labels, seconds(link.offset_error_us));
  }
  return parcels.text() + bytes.text() + lost.text() + left_out.text() + up.text() + round_trip.text() + offset.text() +
         error.text();
}

std::string paths_text(const Report& report) {
  Family times("millrace_path_latency_seconds", "summary",
               "From a tick's beginning, or when it was due, until this sink was done; of ticks that were measured.");
  Family predicted("millrace_path_predicted_seconds", "gauge", "The plan's prediction: the known costs on the way.");
  Family error("millrace_path_latency_clock_error_seconds", "gauge",
               "By how much a latency may be wrong: it was measured by the clocks of two machines.");
  for (const PathReport& path : report.paths) {
    if (!path.home.empty()) error.add({{"sink", path.sink}, {"home", path.home}}, seconds(path.clock_error_us));
    times.add_times({{"sink", path.sink}}, path.sampled, path.p50_us, path.p99_us, path.sampled_us);
    predicted.add({{"sink", path.sink}}, seconds(path.predicted_us));
  }
  return times.text() + predicted.text() + error.text();
}

} // namespace

std::string web_metrics_text(const serve::WebRefusals& refused) {
  Family family("millrace_web_refused_total", "counter", "Requests, connections and pages that --web has refused.");
  family.add_by_cause({}, {{"host", refused.host},
                           {"origin", refused.origin},
                           {"malformed", refused.malformed},
                           {"crowded_out", refused.crowded_out},
                           {"silent", refused.silent},
                           {"token", refused.token},
                           {"no_place", refused.no_place}});
  return family.text();
}

std::string metrics_text(const Report& report) {
  return ticks_text(report) + handlers_text(report) + edges_text(report) + streams_text(report) + groups_text(report) +
         memory_text(report) + nodes_text(report) + paths_text(report);
}

} // namespace millrace::cli
