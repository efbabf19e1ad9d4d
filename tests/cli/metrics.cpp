// The text that Prometheus reads: names, types, escaping, and what is not known.
#include <doctest/doctest.h>

#include "cli/metrics_text.h"
#include "observe/report.h"
#include "serve/web.h"

using namespace millrace;
using namespace millrace::cli;

namespace {

bool has_line(const std::string& text, const std::string& line) {
  return ("\n" + text).find("\n" + line + "\n") != std::string::npos;
}

} // namespace

TEST_CASE("Counts are counters and times are seconds") {
  Report report;
  report.ticks_run = 300;
  report.ticks_late = 2;
  report.duration_s = 10;
  HandlerReport handler;
  handler.name = "blur";
  handler.type = "image.blur";
  handler.domain = "cpu";
  handler.calls = 300;
  handler.sampled = 4;
  handler.p50_us = 1500;
  handler.sampled_us = 6000;
  report.handlers.push_back(handler);
  report.pools["cpu"].allocated_bytes = 4096;
  const std::string text = metrics_text(report);
  CHECK(has_line(text, "# TYPE millrace_ticks_total counter"));
  CHECK(has_line(text, "millrace_ticks_total{outcome=\"run\"} 300"));
  CHECK(has_line(text, "millrace_ticks_total{outcome=\"late\"} 2"));
  CHECK(has_line(text, "# TYPE millrace_handler_call_seconds summary"));
  CHECK(has_line(text,
                 "millrace_handler_call_seconds{handler=\"blur\",type=\"image.blur\",domain=\"cpu\",quantile="
                 "\"0.5\"} 0.0015"));
  CHECK(has_line(text, "millrace_handler_call_seconds_sum{handler=\"blur\",type=\"image.blur\",domain=\"cpu\"} 0.006"));
  CHECK(has_line(text, "millrace_handler_call_seconds_count{handler=\"blur\",type=\"image.blur\",domain=\"cpu\"} 4"));
  CHECK(has_line(text, "millrace_pool_allocated_bytes{domain=\"cpu\"} 4096"));
}

TEST_CASE("Backslashes, quotes and line breaks in a label are escaped") {
  Report report;
  PathReport path;
  path.sink = "a\\b\"c\nd ü";
  report.paths.push_back(path);
  CHECK(has_line(metrics_text(report), "millrace_path_predicted_seconds{sink=\"a\\\\b\\\"c\\nd ü\"} 0"));
}

TEST_CASE("A latency that two machines' clocks measured has its error beside it, and no other has") {
  Report report;
  PathReport near, far;
  near.sink = "near";
  far.sink = "far";
  far.home = "edge";
  far.clock_error_us = 1250;
  report.paths = {near, far};
  const std::string text = metrics_text(report);
  CHECK(has_line(text, "millrace_path_latency_clock_error_seconds{sink=\"far\",home=\"edge\"} 0.00125"));
  CHECK(text.find("error_seconds{sink=\"near\"") == std::string::npos);
}

TEST_CASE("An edge that compares times of two machines' clocks has their error, and no other has") {
  Report report;
  report.edges.resize(2);
  report.edges[0] = {"b.out", "both.right", "align", 1, 0, {}};
  report.edges[0].clock_error_us = 2500;
  report.edges[1] = {"a.out", "both.left", "sync", 1, 0, {}};
  const std::string text = metrics_text(report);
  CHECK(has_line(text, "millrace_edge_clock_error_seconds{from=\"b.out\",to=\"both.right\",policy=\"align\"} 0.0025"));
  CHECK(text.find("error_seconds{from=\"a.out\"") == std::string::npos);
}

TEST_CASE("Groups have their firings by items, the times of items and firings, and late items by stream") {
  Report report;
  GroupReport group;
  group.name = "model";
  group.set = "cameras";
  group.budget_ms = 50;
  group.items = 9;
  group.firings_of = {{1, 1}, {8, 1}};
  group.places = 9;
  group.places_filled = 9;
  group.waiting_p50_us = 2000;
  group.waiting_sum_us = 18000;
  group.buckets = {{8, 1, 6000, 6000, 6000}};
  group.late = {{"gate7", 2, 3}};
  report.groups.push_back(group);
  const std::string text = metrics_text(report), labels = "{group=\"model\",set=\"cameras\"";
  CHECK(has_line(text, "# TYPE millrace_group_firings_total counter"));
  CHECK(has_line(text, "millrace_group_firings_total" + labels + ",items=\"1\"} 1"));
  CHECK(has_line(text, "millrace_group_firings_total" + labels + ",items=\"8\"} 1"));
  CHECK(has_line(text, "millrace_group_places_total" + labels + "} 9"));
  CHECK(has_line(text, "millrace_group_places_filled_total" + labels + "} 9"));
  CHECK(has_line(text, "millrace_group_waiting_seconds" + labels + ",quantile=\"0.5\"} 0.002"));
  CHECK(has_line(text, "millrace_group_waiting_seconds_count" + labels + "} 9"));
  CHECK(has_line(text, "millrace_group_firing_seconds_sum" + labels + ",places=\"8\"} 0.006"));
  CHECK(has_line(text, "millrace_group_late_items_total" + labels + ",stream=\"gate7\",outcome=\"settled\"} 2"));
  CHECK(has_line(text, "millrace_group_late_items_total" + labels + ",stream=\"gate7\",outcome=\"dropped\"} 3"));
  CHECK(has_line(text, "millrace_group_budget_seconds" + labels + "} 0.05"));
  CHECK(text.find("millrace_group_limit_items") == std::string::npos); // nothing is learnt

  report.groups[0].limit = 4;
  report.groups[0].limit_set_by = "budget";
  report.groups[0].rate = 90;
  const std::string learnt = metrics_text(report);
  CHECK(has_line(learnt, "millrace_group_limit_items" + labels + ",set_by=\"budget\"} 4"));
  CHECK(has_line(learnt, "millrace_group_items_per_second" + labels + "} 90"));
}

TEST_CASE("Without a sample a quantile is not a number, and nothing is said of what there is none of") {
  const std::string text = metrics_text({});
  CHECK(has_line(text, "millrace_latency_seconds{quantile=\"0.99\"} NaN"));
  CHECK(has_line(text, "millrace_latency_seconds_count 0"));
  CHECK(text.find("millrace_edge") == std::string::npos);
}

TEST_CASE("Two edges of the same names are one sample: a scrape may not have it twice") {
  Report report;
  EdgeReport edge;
  edge.from = "a.out";
  edge.to = "b.in";
  edge.policy = "delay";
  edge.delivered = 3;
  edge.dropped = {{"busy", 1}};
  report.edges = {edge, edge};
  const std::string text = metrics_text(report);
  CHECK(has_line(text, "millrace_edge_delivered_total{from=\"a.out\",to=\"b.in\",policy=\"delay\"} 6"));
  CHECK(has_line(text, "millrace_edge_dropped_total{from=\"a.out\",to=\"b.in\",policy=\"delay\",cause=\"busy\"} 2"));
}

TEST_CASE("What the page's server has refused is counted by cause") {
  serve::WebRefusals refused;
  refused.origin = 3;
  refused.no_place = 1;
  const std::string text = web_metrics_text(refused);
  CHECK(has_line(text, "# TYPE millrace_web_refused_total counter"));
  CHECK(has_line(text, "millrace_web_refused_total{cause=\"origin\"} 3"));
  CHECK(has_line(text, "millrace_web_refused_total{cause=\"no_place\"} 1"));
  CHECK(has_line(text, "millrace_web_refused_total{cause=\"token\"} 0"));
}
