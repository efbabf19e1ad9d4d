// Writes and reads the bodies of briefs, questions and answers; see documents.h.
#include "node/documents.h"

#include <fmt/format.h>
#include <algorithm>
#include <nlohmann/json.hpp>
#include <span>

#include "fleet/statement.h"
#include "net/system/digest.h"
#include "node/reading.h"
#include "plugin/whole.h"

namespace millrace::node {

namespace {

using nlohmann::json;

constexpr size_t kBodyBytesMax = fleet::kStatementBytesMax * 3 / 4; // escaped within a statement it is longer
constexpr double kSecondsMax = 1e9;

} // namespace

json parse_body(const std::string& body, const std::string& whose) {
  json document = read_json(body);
  if (document.is_object() && document.contains("handlers") && document["handlers"].is_object()) return document;
  throw Failure(code::other_version, whose + " cannot be read: it has no handlers");
}

std::string text_of(const json& document, const std::string& what) {
  std::string text = document.dump(-1, ' ', false, json::error_handler_t::replace);
  if (text.size() <= kBodyBytesMax) return text;
  throw Failure(code::other_version, what + " has " + std::to_string(text.size()) +
                                         " bytes, and nodes send each other " + std::to_string(kBodyBytesMax) +
                                         " at most");
}

std::string answer_question(const std::string& question, embed::Preparation& preparation, RecordTypes& records) {
  const json document = read_json(question);
  const auto asked = document.is_object() ? document.find("handler") : document.end();
  for (plan::HandlerFacts& handler : preparation.facts().handlers)
    if (asked != document.end() && *asked == handler.name && handler.answers)
      return text_of(ToldHandlers::answer(document, handler, records), "the answer of this node");
  throw Failure(code::other_version, "a question about a handler that is not here");
}

std::string write_refusal(const Error& error) { return text_of({{"error", error.what}}, "the answer of this node"); }

plan::Options options_by(const Decided& decided, const embed::Preparation& preparation, const std::string& node) {
  const std::vector<std::string> nodes = graph::node_names(preparation.graph());
  const auto at = std::find(nodes.begin(), nodes.end(), node);
  plan::Options options = preparation.options_of_node(static_cast<uint32_t>(at - nodes.begin()));
  options.clock = decided.clock;
  options.rate = decided.rate;
  options.round_trip_ns = decided.round_trip_ns;
  options.placed_by = "the coordinator";
  options.notes = decided.placed.notes;
  for (const plan::ChosenNode& one : decided.placed.handlers)
    if (one.node == node) options.places[one.handler] = one.domain;
  return options;
}

std::string write_brief(embed::Preparation& preparation, const Decided& decided) {
  json brief = {{"handlers", json::object()},
                {"clock", decided.clock ? json(graph::clock_modes().at(static_cast<size_t>(*decided.clock))) : json()},
                {"rate", decided.rate ? json{decided.rate->numerator, decided.rate->denominator} : json()},
                {"ticks", decided.ticks_max},
                {"duration_s", decided.duration_s},
                {"round_trip_ns", decided.round_trip_ns},
                {"placed", json::array()},
                {"notes", decided.placed.notes},
                {"machines", json::object()},
                {"trace", decided.trace}};
  for (const auto& [node, machine] : decided.machines) brief["machines"][node] = json::parse(machine);
  for (const plan::ChosenNode& one : decided.placed.handlers)
    brief["placed"].push_back({one.handler, one.node, one.domain});
  for (const plan::HandlerFacts& handler : preparation.facts().handlers)
    brief["handlers"][handler.name] = ToldHandlers::tell(handler);
  return text_of(brief, "the brief for all nodes");
}

namespace {

// The places of handlers that name no node, which run there from now on.
plan::ChosenNodes read_placed(const json& brief, embed::Preparation& preparation) {
  const std::vector<std::string> nodes = graph::node_names(preparation.graph());
  plan::ChosenNodes placed;
  reading("the brief", [&] {
    placed.notes = brief.at("notes").get<std::vector<std::string>>();
    for (const json& one : brief.at("placed").get_ref<const json::array_t&>())
      placed.handlers.push_back({one.at(0), one.at(1), one.at(2), ""});
  });
  for (const plan::ChosenNode& one : placed.handlers) {
    const graph::Handler* const declared = preparation.graph().find(one.handler);
    if (!declared || !declared->node.empty() || std::find(nodes.begin(), nodes.end(), one.node) == nodes.end())
      throw Failure(code::other_version, "the brief places " + one.handler + " on " + one.node + ", which cannot be");
    preparation.run_on(one.handler, one.node);
  }
  return placed;
}

} // namespace

Decided read_brief(const std::string& brief, const std::string& node, embed::Preparation& preparation,
                   ToldHandlers& told) {
  const json document = parse_body(brief, "the brief");
  const plan::ChosenNodes placed = read_placed(document, preparation);
  for (size_t h = 0; h < preparation.facts().handlers.size(); ++h) {
    const graph::Handler& declared = preparation.graph().handlers[h];
    if (graph::node_of(preparation.graph(), declared) == node) continue;
    const auto handler = document["handlers"].find(declared.name);
    if (handler == document["handlers"].end())
      throw Failure(code::other_version, "the brief does not tell of handler " + declared.name);
    told.take(*handler, preparation.facts().handlers[h]);
  }
  return reading("the brief", [&] {
    Decided decided;
    if (const json& clock = document.at("clock"); !clock.is_null()) {
      const std::vector<std::string>& modes = graph::clock_modes();
      const auto mode = std::find(modes.begin(), modes.end(), clock.get<std::string>());
      if (mode == modes.end()) throw Failure(code::other_version, "its clock mode is not known here");
      decided.clock = static_cast<graph::ClockMode>(mode - modes.begin());
    }
    if (const json& rate = document.at("rate"); !rate.is_null())
      decided.rate = graph::Rational{plugin::Whole{rate.at(0)}, plugin::Whole{rate.at(1)}};
    decided.ticks_max = plugin::Whole{document.at("ticks")};
    decided.duration_s = document.at("duration_s");
    decided.round_trip_ns = plugin::Whole{document.at("round_trip_ns")};
    decided.placed = placed;
    for (const auto& [name, machine] : document.at("machines").get_ref<const json::object_t&>())
      decided.machines[name] = machine.dump();
    decided.trace = document.at("trace");
    const bool has_rate = !decided.rate || (decided.rate->numerator > 0 && decided.rate->denominator > 0);
    const bool has_times = decided.duration_s >= 0 && decided.duration_s <= kSecondsMax && decided.round_trip_ns >= 0;
    if (!has_rate || !has_times || !document["ticks"].is_number_unsigned())
      throw Failure(code::other_version, "it has a number that cannot be");
    return decided;
  });
}

std::string sha256(std::string_view text) {
  std::string digits;
  for (const std::byte byte : net::sha256(std::as_bytes(std::span(text)))) digits += fmt::format("{:02x}", byte);
  return digits;
}

} // namespace millrace::node
