// Answers requests of the control protocol; see control.h.
#include "serve/control.h"

#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <utility>

#include "graph/graph.h"
#include "observe/printable.h"
#include "observe/report.h"
#include "serve/events.h"
#include "serve/message.h"
#include "serve/taps.h"

namespace millrace::serve {

using nlohmann::ordered_json;

// Requests that wait for a tick. Clients and the run's threads use it.
class Control::Waiting {
 public:
  // The number by which the request is ended. Throws Refused if it may not wait.
  uint64_t begin(const ordered_json& id, Later later) {
    const std::lock_guard lock(mutex_);
    if (is_over_) throw Refused(RpcCode::over, "the run is over");
    if (requests_.size() >= kSetsWaitingMax)
      throw Refused(RpcCode::busy, std::to_string(kSetsWaitingMax) + " requests wait for a tick already");
    requests_[++last_] = {id, std::move(later)};
    return last_;
  }
  void forget(uint64_t number) {
    const std::lock_guard lock(mutex_);
    requests_.erase(number);
  }
  void answer(uint64_t number, const std::function<std::string(const ordered_json& id)>& line) {
    One one;
    {
      const std::lock_guard lock(mutex_);
      const auto found = requests_.find(number);
      if (found == requests_.end()) return;
      one = std::move(found->second);
      requests_.erase(found);
    }
    if (one.later) one.later(line(one.id));
  }
  void end() {
    std::map<uint64_t, One> ended;
    {
      const std::lock_guard lock(mutex_);
      is_over_ = true;
      ended.swap(requests_);
    }
    const Refused over(RpcCode::over, "the run ended before a tick took the changes");
    for (const auto& [number, one] : ended)
      if (one.later) one.later(error_line(one.id, over));
  }

 private:
  struct One {
    ordered_json id;
    Later later; // null: nobody wants the answer
  };
  std::mutex mutex_;
  std::map<uint64_t, One> requests_;
  uint64_t last_ = 0;
  bool is_over_ = false;
};

// One request on its way to its answer.
struct Control::Call {
  Request request;
  Client& client;
  const Later& later;
  ordered_json result = nullptr;
  bool comes_later = false;
};

struct Control::Method {
  const char* name;
  bool steers;      // needs the role steer
  bool needs_place; // the transport gives places
  void (Control::*answer)(Call&);
  std::vector<std::string> params;
};

const Control::Method* Control::find(const std::string& name) {
  static const std::vector<Method> methods = {
      {"hello", false, false, &Control::hello, {"protocol", "role", "name"}},
      {"describe", false, true, &Control::describe, {}},
      {"get", false, true, &Control::get, {"handler"}},
      {"subscribe", false, true, &Control::subscribe, {"topics", "hz"}},
      {"tap", false, true, &Control::tap, {"output", "width", "hz"}},
      {"untap", false, true, &Control::untap, {"tap"}},
      {"ack", false, true, &Control::acknowledge, {"tap"}},
      {"set", true, true, &Control::set, {"changes"}},
      {"stop", true, false, &Control::stop, {}},
      {"streams.list", false, true, &Control::list_streams, {}},
      {"streams.add", true, true, &Control::add_stream, {"name", "set", "fields"}},
      {"streams.remove", true, true, &Control::remove_stream, {"name", "set"}},
  };
  std::vector<std::string> names;
  for (const Method& method : methods) {
    if (name == method.name) return &method;
    names.emplace_back(method.name);
  }
  throw Refused(RpcCode::unknown_method, "there is no such method; there are: " + listed_from(name, names), "/method",
                nearest_name(name, names));
}

namespace {

// A value as --set would have it.
std::string text_of(const ordered_json& value, const std::string& at) {
  if (value.is_string()) return value.get<std::string>();
  if (value.is_number() || value.is_boolean()) return value.dump();
  throw Refused(RpcCode::bad_params, "a value is a number, true, false or a string", at);
}

std::vector<exec::ParamChange> changes_of(const Request& request, const std::string& by) {
  const auto changes = request.params.find("changes");
  if (changes == request.params.end() || !changes->is_object() || changes->empty())
    throw Refused(RpcCode::bad_params, "set takes changes such as {\"blur.sigma\": 4}", "/params/changes");
  std::vector<exec::ParamChange> read;
  for (const auto& [key, value] : changes->items()) {
    const std::string at =
        (ordered_json::json_pointer("/params/changes") / shortened(key, kPrintedBytesMax)).to_string();
    const size_t dot = key.find('.');
    if (dot == std::string::npos || dot == 0 || dot + 1 == key.size())
      throw Refused(RpcCode::bad_params, "a change is named handler.param", at);
    read.push_back({key.substr(0, dot), key.substr(dot + 1), text_of(value, at), by});
  }
  return read;
}

// The answer to `set`, once each clock has taken the changes or has ended.
std::string set_line(const ordered_json& id, const SetAnswer& answer) {
  if (answer.error) return error_line(id, Refused(*answer.error));
  ordered_json taken = ordered_json::object(), ended = ordered_json::array();
  for (const exec::TickOfClock& tick : answer.ticks) {
    if (tick.tick == exec::kNoTickTook)
      ended.push_back(tick.clock);
    else
      taken[tick.clock] = tick.tick;
  }
  if (taken.empty() && !ended.empty())
    return error_line(id, Refused(RpcCode::over, "what the changes are for ended before a tick took them"));
  ordered_json result = {{"ticks", taken}};
  if (!ended.empty()) result["ended"] = ended;
  if (!answer.away.empty()) result["away"] = answer.away;
  return result_line(id, result);
}

// A parameter that is a text; "" if it is not there and need not be.
std::string text_param(const Request& request, const char* name, bool required) {
  const auto found = request.params.find(name);
  if (found != request.params.end() && found->is_string()) return found->get<std::string>();
  if (found == request.params.end() && !required) return "";
  throw Refused(RpcCode::bad_params, std::string(name) + " is a text", "/params/" + std::string(name));
}

graph::Stream stream_of(const Request& request) {
  graph::Stream stream;
  stream.name = text_param(request, "name", true);
  const auto fields = request.params.find("fields");
  if (fields == request.params.end()) return stream;
  if (!fields->is_object())
    throw Refused(RpcCode::bad_params, "fields are such as {\"path\": \"gate7.avi\"}", "/params/fields");
  for (const auto& [name, value] : fields->items()) {
    const std::string at =
        (ordered_json::json_pointer("/params/fields") / shortened(name, kPrintedBytesMax)).to_string();
    stream.fields.push_back({name, text_of(value, at), {}, {}});
  }
  return stream;
}

ClientTaps& taps_of(const Control::Client& client) {
  if (!client.taps) throw Refused(RpcCode::bad_params, "this client has no taps", "/params/tap");
  return *client.taps;
}

EventSources sources_of(const SteeredRun& run) {
  EventSources sources;
  sources.counters = run.counters;
  sources.state = run.state;
  if (run.values) sources.values = [values = run.values] { return values(""); };
  sources.log = run.log;
  sources.elapsed_s = run.elapsed_s;
  return sources;
}

} // namespace

Control::Control(SteeredRun run)
    : run_(std::move(run)),
      waiting_(std::make_shared<Waiting>()),
      events_(std::make_unique<Events>(sources_of(run_))) {}
Control::~Control() { end(); }

void Control::end() {
  waiting_->end();
  events_->end();
}

void Control::forget_run() { events_->forget_run(); }

int64_t Control::events_due_ms(const Client& client) {
  return client.subscription ? client.subscription->due_ms : INT64_MAX;
}

std::vector<std::string> Control::events(Client& client, int64_t now_ms) {
  if (events_due_ms(client) > now_ms) return {};
  try {
    return events_->take(*client.subscription, now_ms);
  } catch (const ordered_json::exception&) { // a text of the run that cannot be told
    return {};
  }
}

int64_t Control::samples_due_ms(const Client& client) { return client.taps ? client.taps->due_ms() : INT64_MAX; }

int64_t Control::due_ms(const Client& client) { return std::min(events_due_ms(client), samples_due_ms(client)); }

std::optional<Sample> Control::sample(Client& client, int64_t now_ms) {
  return client.taps ? client.taps->take(now_ms) : std::nullopt;
}

Control::Answer Control::take(Client& client, std::string_view message, const Later& later) {
  Call call{{}, client, later};
  const auto refuse = [&](const Refused& refused) -> Answer {
    if (!call.request.wants_answer) return {};
    return {error_line(call.request.id, refused), false};
  };
  try {
    read_request(message, call.request);
    const Method* const method = find(call.request.method);
    if (!client.said_hello && method->answer != &Control::hello)
      throw Refused(RpcCode::no_hello, "hello comes first: it agrees on the protocol", "/method");
    if (method->steers && !client.steers)
      throw Refused(RpcCode::only_watches, std::string(method->name) + " needs a hello with the role steer", "/method");
    if (method->needs_place && !client.no_place.empty())
      throw Refused(RpcCode::busy, client.no_place + "; without a place there are hello and stop", "/method");
    refuse_others(call.request, method->params);
    (this->*method->answer)(call);
  } catch (const Refused& refused) {
    return refuse(refused);
  } catch (const Failure& failure) {
    return refuse(Refused(failure.error()));
  } catch (const ordered_json::exception& wrong) { // a text of the run that cannot be told
    return refuse(Refused(RpcCode::refused, wrong.what()));
  }
  if (!call.request.wants_answer) return {};
  if (call.comes_later) return {"", true};
  return {result_line(call.request.id, call.result), false};
}

void Control::hello(Call& call) {
  const ordered_json& params = call.request.params;
  const auto protocol = params.find("protocol");
  if (protocol == params.end() || !protocol->is_number_integer() || *protocol < kProtocolMin || *protocol > kProtocol)
    throw Refused(RpcCode::bad_params,
                  "this run speaks the protocols " + std::to_string(kProtocolMin) + " to " + std::to_string(kProtocol),
                  "/params/protocol");
  const auto role = params.find("role");
  const bool steers = role != params.end() && *role == "steer";
  if (role != params.end() && !steers && *role != "watch")
    throw Refused(RpcCode::bad_params, "a role is watch or steer", "/params/role",
                  role->is_string() ? nearest_name(role->get<std::string>(), {"watch", "steer"}) : "");
  const std::string name = text_param(call.request, "name", false);
  if (name.size() > kClientNameBytesMax)
    throw Refused(RpcCode::bad_params, "a name has at most " + std::to_string(kClientNameBytesMax) + " bytes",
                  "/params/name");
  call.client.said_hello = true;
  call.client.steers = steers && call.client.may_steer;
  call.client.name = name;
  call.result = {
      {"protocol", *protocol},        {"version", run_.version}, {"role", call.client.steers ? "steer" : "watch"},
      {"pipeline", run_.pipeline},    {"node", run_.node},       {"pid", getpid()},
      {"elapsed_s", run_.elapsed_s()}};
}

void Control::describe(Call& call) {
  if (!run_.describe) throw Refused(RpcCode::refused, "this run does not describe itself");
  call.result = ordered_json::parse(run_.describe());
}

void Control::get(Call& call) {
  if (!run_.values) throw Refused(RpcCode::refused, "this run does not tell its values");
  call.result = ordered_json::parse(run_.values(text_param(call.request, "handler", false)));
}

void Control::subscribe(Call& call) { call.client.subscription = events_->subscribe(call.request, call.result); }

void Control::tap(Call& call) {
  if (!run_.tap) throw Refused(RpcCode::refused, "this run does not show its outputs");
  if (!call.client.taps) call.client.taps = std::make_shared<ClientTaps>();
  call.client.taps->add(call.request, run_.tap, call.client.wake, call.result);
}

void Control::untap(Call& call) {
  taps_of(call.client).remove(call.request);
  call.result = ordered_json::object();
}

void Control::acknowledge(Call& call) {
  taps_of(call.client).acknowledge(call.request);
  call.result = ordered_json::object();
}

// The request waits from now on, under the number that `ask` is given; it does not wait for what `ask` refuses.
template <class Ask>
void Control::answer_later(Call& call, Ask&& ask) {
  const uint64_t number = waiting_->begin(call.request.id, call.request.wants_answer ? call.later : nullptr);
  call.comes_later = true;
  try {
    ask(number);
  } catch (const Failure&) {
    waiting_->forget(number);
    throw;
  }
}

void Control::set(Call& call) {
  const std::vector<exec::ParamChange> changes = changes_of(call.request, call.client.name);
  answer_later(call, [&](uint64_t number) {
    run_.set(changes, [waiting = waiting_, number](const SetAnswer& answer) {
      waiting->answer(number, [&](const ordered_json& id) { return set_line(id, answer); });
    });
  });
}

void Control::list_streams(Call& call) {
  call.result = ordered_json::object();
  if (!run_.streams) return;
  for (const StreamReport& stream : run_.streams()) {
    ordered_json& told = call.result[stream.set][stream.name];
    told = {{"state", stream.state}, {"ticks", stream.ticks}, {"late", stream.late}, {"restarts", stream.restarts}};
    if (!stream.error.empty()) told["error"] = stream.error;
  }
}

template <class Ask>
void Control::change_streams(Call& call, Ask&& ask) {
  if (!run_.add_stream) throw Refused(RpcCode::refused, "the streams of this run cannot be changed");
  answer_later(call, [&](uint64_t number) {
    ask([waiting = waiting_, number](const Error* error) {
      waiting->answer(number, [&](const ordered_json& id) {
        return error ? error_line(id, Refused(*error)) : result_line(id, ordered_json::object());
      });
    });
  });
}

void Control::add_stream(Call& call) {
  const graph::Stream stream = stream_of(call.request);
  const std::string set = text_param(call.request, "set", false);
  change_streams(call, [&](const exec::StreamDone& done) { run_.add_stream(set, stream, done); });
}

void Control::remove_stream(Call& call) {
  const std::string name = text_param(call.request, "name", true), set = text_param(call.request, "set", false);
  change_streams(call, [&](const exec::StreamDone& done) { run_.remove_stream(set, name, done); });
}

void Control::stop(Call& call) {
  run_.stop();
  call.result = {{"state", "draining"}};
}

} // namespace millrace::serve
