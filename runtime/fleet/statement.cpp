// Statements to texts and back; see statement.h.
#include "fleet/statement.h"

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>

namespace millrace::fleet {

namespace {

using nlohmann::json;

constexpr std::array kStateSteps = {"offers", "ready", "unable", "runs", "done"};
constexpr std::array kOrderSteps = {"wait", "prepare", "start", "over", "refused"};

const char* name_of(State::Step step) { return kStateSteps[static_cast<size_t>(step)]; }
const char* name_of(Order::Step step) { return kOrderSteps[static_cast<size_t>(step)]; }

// A peer's statement that cannot be used, with the sentence that says why.
struct Refused {
  std::string why;
};

// ---- to JSON -------------------------------------------------------------------------------------------------------

// The reader takes no more, and the first ones say most.
json first_lines(const std::vector<std::string>& lines) {
  json written = json::array();
  for (size_t i = 0; i < std::min(lines.size(), kWaitsMax); ++i) written.push_back(lines[i]);
  return written;
}

json to_json(const Error& error) {
  json written = {{"code", error.code}, {"what", error.what}};
  if (!error.place.file.empty())
    written["place"] = {{"file", error.place.file}, {"line", error.place.line}, {"column", error.place.column}};
  // The reader takes no more, and the first ones say most.
  const size_t notes = std::min(error.notes.size(), kNotesMax);
  for (size_t i = 0; i < notes; ++i) written["notes"].push_back(error.notes[i]);
  if (!error.nearest.empty()) written["nearest"] = error.nearest;
  if (!error.edit.empty()) written["edit"] = error.edit;
  return written;
}

json to_json(const RunFailure& failure) {
  json written = {{"error", to_json(failure.error)},
                  {"node", failure.node},
                  {"clock", failure.clock},
                  {"index", failure.index},
                  {"hopeless", failure.hopeless}};
  if (failure.epoch > 0) written["epoch"] = failure.epoch;
  return written;
}

// The bodies of a statement, one after the other, and what stands for each of them in the JSON: its number of bytes.
class BodyWriter {
 public:
  size_t add(std::string_view body) {
    bodies_ += body;
    return body.size();
  }
  const std::string& all() const { return bodies_; }

 private:
  std::string bodies_;
};

json to_json(const Offer& offer, BodyWriter& bodies) {
  json written = {
      {"node", offer.node}, {"process", offer.process}, {"program", offer.program}, {"pipeline", offer.pipeline}};
  written["body"] = bodies.add(offer.body);
  written["canonical"] = bodies.add(offer.canonical);
  return {{"offer", std::move(written)}};
}

json to_json(const State& state, BodyWriter& bodies) {
  json written = {{"step", name_of(state.step)}, {"revision", state.revision}, {"brief", state.brief}};
  written["body"] = bodies.add(state.body);
  if (!state.trace.empty()) written["trace"] = bodies.add(state.trace);
  if (!state.waits.empty()) written["waits"] = first_lines(state.waits);
  if (state.clocks_over) written["clocks_over"] = true;
  if (state.error) written["error"] = to_json(*state.error);
  if (state.failure) written["failure"] = to_json(*state.failure);
  return {{"state", std::move(written)}};
}

json to_json(const Brief& brief, BodyWriter& bodies) {
  return {{"brief", {{"revision", brief.revision}, {"hash", brief.hash}, {"body", bodies.add(brief.body)}}}};
}

json to_json(const Order& order, BodyWriter&) {
  json written = {{"step", name_of(order.step)}, {"process", order.process}, {"revision", order.revision},
                  {"brief", order.brief},        {"zero_ns", order.zero_ns}, {"stop", order.stop}};
  if (order.failure) written["failure"] = to_json(*order.failure);
  if (order.error) written["error"] = to_json(*order.error);
  if (!order.waits.empty()) written["waits"] = first_lines(order.waits);
  if (order.clocks_over) written["clocks_over"] = true;
  return {{"order", std::move(written)}};
}

json to_json(const StreamOver& over, BodyWriter&) {
  return {{"stream", {{"revision", over.revision}, {"brief", over.brief}, {"failure", to_json(over.failure)}}}};
}

json to_json(const Question& question, BodyWriter& bodies) {
  return {{"question", {{"number", question.number}, {"body", bodies.add(question.body)}}}};
}

json to_json(const Answer& answer, BodyWriter& bodies) {
  return {{"answer", {{"number", answer.number}, {"body", bodies.add(answer.body)}}}};
}

json to_json(const Request& request, BodyWriter& bodies) {
  return {{"request",
           {{"from", request.from},
            {"to", request.to},
            {"process", request.process},
            {"number", request.number},
            {"body", bodies.add(request.body)}}}};
}

json to_json(const Reply& reply, BodyWriter& bodies) {
  return {{"reply",
           {{"to", reply.to}, {"process", reply.process}, {"number", reply.number}, {"body", bodies.add(reply.body)}}}};
}

// ---- from JSON -----------------------------------------------------------------------------------------------------

const json& field(const json& object, const char* key) {
  const auto at = object.find(key);
  if (at == object.end()) throw Refused{std::string("it lacks ") + key};
  return *at;
}

std::string text(const json& object, const char* key) {
  const json& value = field(object, key);
  if (!value.is_string()) throw Refused{std::string(key) + " is no text"};
  return value.get<std::string>();
}

template <class Number>
Number number(const json& object, const char* key) {
  const json& value = field(object, key);
  if (std::is_signed_v<Number> ? !value.is_number_integer() : !value.is_number_unsigned())
    throw Refused{std::string(key) + " is no whole number"};
  const auto read = value.get<Number>();
  if (json(read) != value) throw Refused{std::string(key) + " is too large"};
  return read;
}

bool flag(const json& object, const char* key) {
  const json& value = field(object, key);
  if (!value.is_boolean()) throw Refused{std::string(key) + " is neither true nor false"};
  return value.get<bool>();
}

template <class Step, size_t kCount>
Step step(const json& object, const std::array<const char*, kCount>& names) {
  const std::string name = text(object, "step");
  for (size_t i = 0; i < kCount; ++i)
    if (name == names[i]) return static_cast<Step>(i);
  throw Refused{"step has an unknown name"};
}

// The bodies that follow the JSON. They are taken in the order in which BodyWriter added them.
class BodyReader {
 public:
  explicit BodyReader(std::string_view bodies) : left_(bodies) {}

  std::string take(const json& object, const char* key) {
    const auto bytes = number<uint64_t>(object, key);
    if (bytes > left_.size()) throw Refused{std::string(key) + " has more bytes than have come"};
    const std::string_view body = left_.substr(0, bytes);
    left_.remove_prefix(bytes);
    return std::string(body);
  }
  bool has_more() const { return !left_.empty(); }

 private:
  std::string_view left_;
};

Error read_error(const json& object) {
  Error error;
  error.code = number<int>(object, "code");
  error.what = text(object, "what");
  if (const auto place = object.find("place"); place != object.end())
    error.place = {text(*place, "file"), number<int>(*place, "line"), number<int>(*place, "column")};
  if (const auto notes = object.find("notes"); notes != object.end()) {
    if (!notes->is_array() || notes->size() > kNotesMax) throw Refused{"notes is no list of at most 16 lines"};
    for (const json& note : *notes) {
      if (!note.is_string()) throw Refused{"a note is no text"};
      error.notes.push_back(note.get<std::string>());
    }
  }
  if (object.contains("nearest")) error.nearest = text(object, "nearest");
  if (object.contains("edit")) error.edit = text(object, "edit");
  return error;
}

std::optional<Error> error_of(const json& object) {
  return object.contains("error") ? std::optional(read_error(object["error"])) : std::nullopt;
}

std::optional<RunFailure> failure_of(const json& object) {
  const auto at = object.find("failure");
  if (at == object.end()) return std::nullopt;
  return RunFailure{read_error(field(*at, "error")),
                    text(*at, "node"),
                    text(*at, "clock"),
                    number<uint64_t>(*at, "index"),
                    flag(*at, "hopeless"),
                    at->contains("epoch") ? number<uint32_t>(*at, "epoch") : 0};
}

std::vector<std::string> waits_of(const json& object) {
  std::vector<std::string> lines;
  const auto at = object.find("waits");
  if (at == object.end()) return lines;
  if (!at->is_array() || at->size() > kWaitsMax) throw Refused{"waits is no list of at most 16 lines"};
  for (const json& line : *at) {
    if (!line.is_string()) throw Refused{"a line of waits is no text"};
    lines.push_back(line.get<std::string>());
  }
  return lines;
}

Offer read_offer(const json& object, BodyReader& bodies) {
  return {text(object, "node"),     number<uint64_t>(object, "process"), text(object, "program"),
          text(object, "pipeline"), bodies.take(object, "body"),         bodies.take(object, "canonical")};
}

State read_state(const json& object, BodyReader& bodies) {
  State state;
  state.step = step<State::Step>(object, kStateSteps);
  state.revision = number<uint32_t>(object, "revision");
  state.brief = text(object, "brief");
  state.body = bodies.take(object, "body");
  if (object.contains("trace")) state.trace = bodies.take(object, "trace");
  state.error = error_of(object);
  state.failure = failure_of(object);
  state.waits = waits_of(object);
  state.clocks_over = object.contains("clocks_over") && flag(object, "clocks_over");
  if (state.step == State::Step::unable && !state.error) throw Refused{"it is unable and does not say why"};
  return state;
}

Brief read_brief(const json& object, BodyReader& bodies) {
  return {number<uint32_t>(object, "revision"), text(object, "hash"), bodies.take(object, "body")};
}

Order read_order(const json& object) {
  Order order;
  order.step = step<Order::Step>(object, kOrderSteps);
  order.process = number<uint64_t>(object, "process");
  order.revision = number<uint32_t>(object, "revision");
  order.brief = text(object, "brief");
  order.zero_ns = number<int64_t>(object, "zero_ns");
  order.stop = flag(object, "stop");
  order.failure = failure_of(object);
  order.error = error_of(object);
  order.waits = waits_of(object);
  order.clocks_over = object.contains("clocks_over") && flag(object, "clocks_over");
  if (order.step == Order::Step::refused && !order.error) throw Refused{"it refuses and does not say why"};
  return order;
}

StreamOver read_stream_over(const json& object) {
  StreamOver over{number<uint32_t>(object, "revision"), text(object, "brief"), {}};
  const std::optional<RunFailure> failure = failure_of(object);
  if (!failure || failure->clock.empty() || failure->index == kNoTick)
    throw Refused{"a stream is over and it does not say at which tick"};
  over.failure = *failure;
  return over;
}

std::string request_body(const json& object, BodyReader& bodies) {
  if (number<uint64_t>(object, "body") > kRequestBytesMax) throw Refused{"body has more than 128 KiB"};
  return bodies.take(object, "body");
}

Request read_request(const json& object, BodyReader& bodies) {
  return {text(object, "from"), text(object, "to"), number<uint64_t>(object, "process"),
          number<uint64_t>(object, "number"), request_body(object, bodies)};
}

Reply read_reply(const json& object, BodyReader& bodies) {
  return {text(object, "to"), number<uint64_t>(object, "process"), number<uint64_t>(object, "number"),
          request_body(object, bodies)};
}

Statement read_kind(const std::string& kind, const json& object, BodyReader& bodies) {
  if (kind == "offer") return read_offer(object, bodies);
  if (kind == "state") return read_state(object, bodies);
  if (kind == "brief") return read_brief(object, bodies);
  if (kind == "order") return read_order(object);
  if (kind == "stream") return read_stream_over(object);
  if (kind == "question") return Question{number<uint64_t>(object, "number"), bodies.take(object, "body")};
  if (kind == "answer") return Answer{number<uint64_t>(object, "number"), bodies.take(object, "body")};
  if (kind == "request") return read_request(object, bodies);
  if (kind == "reply") return read_reply(object, bodies);
  throw Refused{"its key is none of offer, state, brief, order, stream, question, answer, request and reply"};
}

Statement read(std::string_view text) {
  if (text.size() > kStatementBytesMax) throw Refused{"it has more than 4 MiB"};
  const size_t head_bytes = std::min(text.find('\n'), text.size());
  const std::string_view head = text.substr(0, head_bytes);
  BodyReader bodies(text.substr(std::min(head_bytes + 1, text.size())));
  if (nests_deeper(head, kNestingMax)) throw Refused{"it is nested more than 32 deep"};
  const json document = json::parse(head, nullptr, false);
  if (document.is_discarded()) throw Refused{"it is no JSON"};
  if (!document.is_object() || document.size() != 1) throw Refused{"it is no object with one key"};
  if (!document.begin()->is_object()) throw Refused{"its value is no object"};
  Statement statement = read_kind(document.begin().key(), *document.begin(), bodies);
  if (bodies.has_more()) throw Refused{"more bytes have come than its bodies have"};
  return statement;
}

} // namespace

bool nests_deeper(std::string_view text, uint32_t most) {
  uint32_t depth = 0;
  bool in_string = false;
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (in_string) {
      if (c == '\\') ++i;
      if (c == '"') in_string = false;
    } else if (c == '"') {
      in_string = true;
    } else if (c == '{' || c == '[') {
      if (++depth > most) return true;
    } else if (c == '}' || c == ']') {
      if (depth > 0) --depth;
    }
  }
  return false;
}

std::string to_text(const Statement& statement) {
  BodyWriter bodies;
  const json head = std::visit([&](const auto& one) { return to_json(one, bodies); }, statement);
  // Replaces what is no UTF-8, as a name of a file may be: a statement always has a text.
  return head.dump(-1, ' ', false, json::error_handler_t::replace) + "\n" + bodies.all();
}

bool read_statement(std::string_view text, Statement& statement, std::string& why) {
  try {
    statement = read(text);
    return true;
  } catch (const Refused& refused) {
    why = refused.why;
    return false;
  }
}

} // namespace millrace::fleet
