// Merges the reports of nodes; see report.h.
#include "node/report.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "fleet/statement.h"

namespace millrace::node {

using nlohmann::ordered_json;

namespace {

// Lists of which each node has its own entries.
constexpr const char* kLists[] = {"transfers", "crossings", "links",   "surprises",
                                  "paths",     "groups",    "regions", "segments"};

// Adds the counts of `part` to those of `all`, by their names.
void add_counts(ordered_json& all, const ordered_json& part) {
  for (const auto& [name, count] : part.items()) all[name] = all.value(name, uint64_t{0}) + count.get<uint64_t>();
}

// Each of the nodes at both ends of an edge counts what it has seen of it.
void add_edges(ordered_json& all, ordered_json& part) {
  for (ordered_json& edge : part) {
    const std::string from = edge.at("from"), to = edge.at("to");
    const auto same = std::find_if(all.begin(), all.end(),
                                   [&](const ordered_json& one) { return one["from"] == from && one["to"] == to; });
    if (same == all.end()) {
      all.push_back(std::move(edge));
      continue;
    }
    if (edge.contains("align")) (*same)["align"] = edge["align"]; // the reader's node has it
    for (const char* const count : {"delivered", "empty"})
      (*same)[count] = (*same)[count].get<uint64_t>() + edge[count].get<uint64_t>();
    add_counts((*same)["dropped"], edge["dropped"]);
  }
}

// The instances of a template may be on several nodes. Their times are those of the node that measured most of them.
void add_handler(ordered_json& all, const std::string& name, ordered_json part, const std::string& node) {
  part["on"] = node;
  ordered_json& same = all[name];
  if (same.is_null()) {
    same = std::move(part);
    return;
  }
  ordered_json merged = part["sampled"].get<uint64_t>() > same["sampled"].get<uint64_t>() ? part : same;
  for (const char* const count : {"calls", "errors", "sampled"})
    merged[count] = same[count].get<uint64_t>() + part[count].get<uint64_t>();
  merged["max_us"] = std::max(same["max_us"].get<double>(), part["max_us"].get<double>());
  merged["on"] = same["on"].get<std::string>() + ", " + node;
  for (const ordered_json* const one : {&part, &same}) // the earlier node's, where both have one
    if (one->contains("first_error")) merged["first_error"] = (*one)["first_error"];
  same = std::move(merged);
}

// A stream's numbers are those of its home. It has failed if it has on any node, at the earliest tick that one knows.
void add_stream(ordered_json& same, const ordered_json& part, const std::string& node) {
  if (same.is_null()) {
    same = part;
    return;
  }
  ordered_json merged = part["home"] == node ? part : same;
  merged["dropped"] = same["dropped"];
  add_counts(merged["dropped"], part["dropped"]);
  const ordered_json* failed = nullptr;
  for (const ordered_json* const one : {&std::as_const(same), &part})
    if (one->contains("error") && (!failed || one->at("failed_at") < failed->at("failed_at"))) failed = one;
  for (const char* const key : {"state", "error", "failed_at", "failed_on"})
    if (failed) merged[key] = failed->at(key);
  same = std::move(merged);
}

// Moves the entries of one node's report to `all`.
void add(ordered_json& all, ordered_json& part, const std::string& node) {
  for (const char* const list : kLists) {
    if (!part.contains(list)) continue;
    for (ordered_json& entry : part[list]) {
      entry["on"] = node;
      all[list].push_back(std::move(entry));
    }
    part.erase(list);
  }
  if (part.contains("edges")) add_edges(all["edges"], part["edges"]);
  part.erase("edges");
  if (part.contains("streams"))
    for (const auto& [set, streams] : part["streams"].items())
      for (const auto& [name, stream] : streams.items()) add_stream(all["streams"][set][name], stream, node);
  part.erase("streams");
  if (!part.contains("handlers")) return;
  for (const auto& [name, handler] : part["handlers"].items()) add_handler(all["handlers"], name, handler, node);
  part.erase("handlers");
}

} // namespace

std::string report_of_all(const Result& own, const std::string& node,
                          const std::map<std::string, std::string>& reports) {
  ordered_json part = ordered_json::parse(to_json(own));
  ordered_json all = part;
  for (const char* const list : kLists) all[list] = ordered_json::array();
  all["edges"] = ordered_json::array();
  all["handlers"] = ordered_json::object();
  all.erase("streams");
  add(all, part, node);
  all["nodes"][node] = std::move(part);
  for (const auto& [name, text] : reports) {
    if (fleet::nests_deeper(text, fleet::kNestingMax)) continue;
    try {
      ordered_json other = ordered_json::parse(text), with_it = all;
      if (!other.is_object()) continue;
      add(with_it, other, name);
      with_it["nodes"][name] = std::move(other);
      all = std::move(with_it);
    } catch (const ordered_json::exception&) {
      continue; // `all` is as it was
    }
  }
  return all.dump(2, ' ', false, ordered_json::error_handler_t::replace);
}

} // namespace millrace::node
