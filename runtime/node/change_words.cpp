// Writes and reads requests for changes, and their replies, as JSON; see change_words.h.
#include "node/change_words.h"

#include <nlohmann/json.hpp>

#include "fleet/statement.h"
#include "node/documents.h"
#include "node/reading.h"

namespace millrace::node {

namespace {

using nlohmann::json;

json json_of(const Error& error) {
  return {{"code", error.code},
          {"what", error.what},
          {"notes", error.notes},
          {"nearest", error.nearest},
          {"edit", error.edit}};
}

Error error_of(const json& told) {
  Error error;
  error.code = told.at("code").get<int>();
  error.what = told.at("what").get<std::string>();
  error.notes = told.at("notes").get<std::vector<std::string>>();
  error.nearest = told.at("nearest").get<std::string>();
  error.edit = told.at("edit").get<std::string>();
  if (error.notes.size() > fleet::kNotesMax) error.notes.resize(fleet::kNotesMax);
  return error;
}

uint64_t index_of(const json& tick) {
  if (!tick.is_number_unsigned()) throw Failure(code::other_version, "a tick is no whole number");
  return tick.get<uint64_t>();
}

} // namespace

std::string write_changes(const ChangesRequest& request) {
  json told = json::array();
  for (const exec::ParamChange& change : request.changes)
    told.push_back({change.handler, change.param, change.text, change.by});
  return text_of({{"changes", told}, {"make", request.make}}, "the request of this node");
}

std::string write_answer(const ChangesAnswer& answer) {
  if (answer.error) return text_of({{"error", json_of(*answer.error)}}, "the answer of this node");
  json ticks = json::array();
  for (const exec::TickOfClock& tick : answer.ticks) ticks.push_back({tick.clock, tick.tick});
  return text_of({{"ticks", ticks}, {"away", answer.away}}, "the answer of this node");
}

ChangesRequest read_changes(const std::string& body, const std::string& whose) {
  return reading(whose, [&] {
    const json told = json::parse(body);
    ChangesRequest request;
    request.make = told.at("make").get<bool>();
    for (const json& change : told.at("changes").get_ref<const json::array_t&>())
      request.changes.push_back({change.at(0).get<std::string>(), change.at(1).get<std::string>(),
                                 change.at(2).get<std::string>(),
                                 change.size() > 3 ? change.at(3).get<std::string>() : ""}); // older nodes tell none
    return request;
  });
}

ChangesAnswer read_answer(const std::string& body, const std::string& whose) {
  return reading(whose, [&] {
    const json told = json::parse(body);
    ChangesAnswer answer;
    if (told.contains("error")) {
      answer.error = error_of(told.at("error"));
      return answer;
    }
    for (const json& tick : told.at("ticks").get_ref<const json::array_t&>())
      answer.ticks.push_back({tick.at(0).get<std::string>(), index_of(tick.at(1))});
    answer.away = told.at("away").get<std::vector<std::string>>();
    return answer;
  });
}

} // namespace millrace::node
