// Reads requests and writes answers; see message.h.
#include "serve/message.h"

#include <utility>

#include "observe/printable.h"
#include "observe/secrets.h"

namespace millrace::serve {

namespace {

using nlohmann::ordered_json;

// The most of a client's own text that an error repeats.
constexpr size_t kRepeatedBytesMax = 100;
// A request has three levels. To copy or write one takes some hundred bytes of the stack for each.
constexpr int kDepthMax = 32;

std::string quoted(const std::string& text) { return "\"" + printable(text, kRepeatedBytesMax) + "\""; }

std::string line_of(const ordered_json& json) {
  return json.dump(-1, ' ', false, ordered_json::error_handler_t::replace);
}

ordered_json envelope(const ordered_json& id) { return {{"jsonrpc", "2.0"}, {"id", id}}; }

ordered_json parse(std::string_view line) {
  try {
    return ordered_json::parse(line, [](int depth, ordered_json::parse_event_t, const ordered_json&) {
      if (depth >= kDepthMax)
        throw Refused(RpcCode::unreadable, "a message has at most " + std::to_string(kDepthMax) + " levels");
      return true;
    });
  } catch (const ordered_json::parse_error& failed) {
    throw Refused(RpcCode::unreadable, "the message is no JSON", "byte " + std::to_string(failed.byte));
  } catch (const ordered_json::out_of_range&) {
    throw Refused(RpcCode::unreadable, "the message has a number that is too large");
  }
}

void read_id(const ordered_json& message, Request& request) {
  const auto id = message.find("id");
  request.wants_answer = id != message.end();
  if (!request.wants_answer) return;
  if (!id->is_string() && !id->is_number() && !id->is_null())
    throw Refused(RpcCode::no_request, "the id is a number or a string", "/id");
  request.id = *id;
}

} // namespace

Refused::Refused(RpcCode code, std::string message, const std::string& at, const std::string& nearest)
    : code_(code), message_(std::move(message)), data_(ordered_json::object()) {
  if (!at.empty()) data_["at"] = at;
  if (!nearest.empty()) data_["nearest"] = nearest;
}

Refused::Refused(const Error& error)
    : code_(RpcCode::refused),
      message_(shortened(error.what, kPrintedBytesMax)),
      data_({{"code", format_code(error.code)}, {"what", message_}, {"notes", ordered_json::array()}}) {
  for (const std::string& note : error.notes) data_["notes"].push_back(shortened(note, kPrintedBytesMax));
  data_["nearest"] = error.nearest;
  data_["edit"] = shortened(error.edit, kPrintedBytesMax);
}

void read_request(std::string_view line, Request& request) {
  ordered_json message = parse(line);
  if (!message.is_object()) throw Refused(RpcCode::no_request, "a message is one JSON object");
  read_id(message, request);
  const auto version = message.find("jsonrpc");
  if (version == message.end() || *version != "2.0")
    throw Refused(RpcCode::no_request, "a request has \"jsonrpc\": \"2.0\"", "/jsonrpc");
  const auto method = message.find("method");
  if (method == message.end() || !method->is_string())
    throw Refused(RpcCode::no_request, "a request has a method, which is a string", "/method");
  request.method = method->get<std::string>();
  const auto params = message.find("params");
  if (params != message.end()) {
    if (!params->is_object()) throw Refused(RpcCode::bad_params, "params is an object, by name", "/params");
    request.params = std::move(*params);
  }
}

void refuse_others(const Request& request, const std::vector<std::string>& known) {
  for (const auto& [name, value] : request.params.items()) {
    bool is_known = false;
    for (const std::string& one : known) is_known = is_known || one == name;
    if (!is_known)
      throw Refused(RpcCode::bad_params,
                    printable(request.method, kRepeatedBytesMax) + " does not take " + quoted(name) +
                        "; it takes: " + listed_from(name, known),
                    (ordered_json::json_pointer("/params") / shortened(name, kRepeatedBytesMax)).to_string(),
                    nearest_name(name, known));
  }
}

std::string result_line(const ordered_json& id, const ordered_json& result) {
  ordered_json line = envelope(id);
  line["result"] = result;
  hide_secrets(line["result"]);
  return line_of(line);
}

std::string error_line(const ordered_json& id, const Refused& refused) {
  ordered_json line = envelope(id);
  line["error"] = {{"code", static_cast<int>(refused.code())}, {"message", refused.what()}};
  if (!refused.data().empty()) line["error"]["data"] = refused.data();
  hide_secrets(line["error"]);
  return line_of(line);
}

} // namespace millrace::serve
