// Merges the reports of nodes; see report.h.
#include "node/report.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "fleet/statement.h"

namespace millrace::node {

using nlohmann::ordered_json;

namespace {

// Lists of which each node has its own entries.
constexpr const char* kLists[] = {"transfers", "crossings", "links", "surprises", "paths", "regions", "segments"};

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
    for (const auto& [cause, count] : edge["dropped"].items())
      (*same)["dropped"][cause] = (*same)["dropped"].value(cause, uint64_t{0}) + count.get<uint64_t>();
  }
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
  if (!part.contains("handlers")) return;
  for (const auto& [name, handler] : part["handlers"].items()) {
    handler["on"] = node;
    all["handlers"][name] = handler;
  }
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
