// Writes and reads the bodies of offers and briefs; see documents.h.
#include "node/documents.h"

#include <fmt/format.h>
#include <algorithm>
#include <nlohmann/json.hpp>
#include <span>

#include "fleet/statement.h"
#include "net/system/digest.h"
#include "plugin/whole.h"

namespace millrace::node {

namespace {

using nlohmann::json;

constexpr size_t kBodyBytesMax = fleet::kStatementBytesMax * 3 / 4; // escaped within a statement it is longer
constexpr double kSecondsMax = 1e9;

json parse(const std::string& body, const std::string& whose) {
  json document = read_json(body);
  if (document.is_object() && document.contains("handlers") && document["handlers"].is_object()) return document;
  throw Failure(code::other_version, whose + " cannot be read: it has no handlers");
}

// Words that are no UTF-8, such as those of a plugin, are mended.
std::string text_of(const json& document, const std::string& what) {
  std::string text = document.dump(-1, ' ', false, json::error_handler_t::replace);
  if (text.size() <= kBodyBytesMax) return text;
  throw Failure(code::other_version, what + " has " + std::to_string(text.size()) +
                                         " bytes, and nodes send each other " + std::to_string(kBodyBytesMax) +
                                         " at most");
}

} // namespace

std::string write_offer(embed::Preparation& preparation, const std::string& node) {
  json offer = {{"handlers", json::object()}};
  for (size_t h = 0; h < preparation.facts().handlers.size(); ++h) {
    const graph::Handler& declared = preparation.graph().handlers[h];
    if (graph::node_of(preparation.graph(), declared) != node) continue;
    plan::HandlerFacts handler = preparation.facts().handlers[h];
    if (handler.answers->info().is_source() && handler.outputs.empty())
      handler.outputs = plan::formats_of_source(declared, handler);
    offer["handlers"][declared.name] = ToldHandlers::tell(handler);
  }
  return text_of(offer, "the offer of this node");
}

void take_offers(const std::map<std::string, std::string>& offers, const AskNodes& ask, embed::Preparation& preparation,
                 ToldHandlers& told) {
  std::map<std::string, json> read;
  for (const auto& [node, offer] : offers) read[node] = parse(offer, "the offer of " + node);
  for (size_t h = 0; h < preparation.facts().handlers.size(); ++h) {
    const graph::Handler& declared = preparation.graph().handlers[h];
    const std::string node = graph::node_of(preparation.graph(), declared);
    plan::HandlerFacts& handler = preparation.facts().handlers[h];
    const auto from = read.find(node);
    if (from == read.end()) {
      if (!handler.answers)
        throw Failure(code::unknown_type,
                      "nobody told of " + declared.name + ", and " + declared.type + " is not known here");
      told.listen(handler);
      continue;
    }
    const json& handlers = from->second["handlers"];
    if (!handlers.contains(declared.name))
      throw Failure(code::other_version, node + " does not offer its handler " + declared.name);
    told.take(handlers[declared.name], handler,
              [ask, node](const std::string& question) { return ask(node, question); });
  }
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

std::string write_brief(embed::Preparation& preparation, const Decided& decided) {
  json brief = {{"handlers", json::object()},
                {"clock", decided.clock ? json(graph::clock_modes().at(static_cast<size_t>(*decided.clock))) : json()},
                {"rate", decided.rate ? json{decided.rate->numerator, decided.rate->denominator} : json()},
                {"ticks", decided.ticks_max},
                {"duration_s", decided.duration_s},
                {"round_trip_ns", decided.round_trip_ns}};
  for (const plan::HandlerFacts& handler : preparation.facts().handlers)
    brief["handlers"][handler.name] = ToldHandlers::tell(handler);
  return text_of(brief, "the brief for all nodes");
}

Decided read_brief(const std::string& brief, const std::string& node, embed::Preparation& preparation,
                   ToldHandlers& told) {
  const json document = parse(brief, "the brief");
  for (size_t h = 0; h < preparation.facts().handlers.size(); ++h) {
    const graph::Handler& declared = preparation.graph().handlers[h];
    if (graph::node_of(preparation.graph(), declared) == node) continue;
    const auto handler = document["handlers"].find(declared.name);
    if (handler == document["handlers"].end())
      throw Failure(code::other_version, "the brief does not tell of handler " + declared.name);
    told.take(*handler, preparation.facts().handlers[h]);
  }
  try {
    Decided decided;
    if (const json& clock = document.at("clock"); !clock.is_null()) {
      const std::vector<std::string>& modes = graph::clock_modes();
      const auto mode = std::find(modes.begin(), modes.end(), clock.get<std::string>());
      if (mode == modes.end())
        throw Failure(code::other_version, "the brief knows a clock mode that is not known here");
      decided.clock = static_cast<graph::ClockMode>(mode - modes.begin());
    }
    if (const json& rate = document.at("rate"); !rate.is_null())
      decided.rate = graph::Rational{plugin::Whole{rate.at(0)}, plugin::Whole{rate.at(1)}};
    decided.ticks_max = plugin::Whole{document.at("ticks")};
    decided.duration_s = document.at("duration_s");
    decided.round_trip_ns = plugin::Whole{document.at("round_trip_ns")};
    const bool has_rate = !decided.rate || (decided.rate->numerator > 0 && decided.rate->denominator > 0);
    const bool has_times = decided.duration_s >= 0 && decided.duration_s <= kSecondsMax && decided.round_trip_ns >= 0;
    if (!has_rate || !has_times || !document["ticks"].is_number_unsigned())
      throw Failure(code::other_version, "the brief has a number that cannot be");
    return decided;
  } catch (const json::exception& wrong) {
    throw Failure(code::other_version, std::string("the brief cannot be read: ") + wrong.what());
  } catch (const Failure& wrong) {
    throw Failure(code::other_version, "the brief cannot be read: " + wrong.error().what);
  }
}

std::string sha256(std::string_view text) {
  std::string digits;
  for (const std::byte byte : net::sha256(std::as_bytes(std::span(text)))) digits += fmt::format("{:02x}", byte);
  return digits;
}

} // namespace millrace::node
