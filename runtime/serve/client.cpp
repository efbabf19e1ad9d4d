// Sends requests and waits for their answers; see client.h.
#include "serve/client.h"

#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <system_error>
#include <thread>
#include <utility>

#include "net/system/local.h"
#include "observe/error.h"
#include "observe/error_codes.h"
#include "observe/printable.h"
#include "observe/steady_ms.h"
#include "serve/message.h"

namespace millrace::serve {

namespace {

using nlohmann::ordered_json;

// The description of a thousand handlers has some megabytes.
constexpr size_t kAnswerBytesMax = 16 << 20;
// The pause before a busy run is dialled again.
constexpr std::chrono::milliseconds kAgainAfter{50};
// The least that the last try waits for its answer.
constexpr int64_t kTryMs = 500;

[[noreturn]] void fail(const std::string& what) { throw Failure(code::run_does_not_answer, what); }

// False: the time is over.
bool await(int socket, short events, int64_t until_ms) {
  pollfd watched{socket, events, 0};
  while (true) {
    const int64_t left_ms = std::max<int64_t>(until_ms - steady_ms(), 0);
    const int ready = ::poll(&watched, 1, static_cast<int>(left_ms));
    if (ready >= 0) return ready > 0;
    if (errno != EINTR) fail("the run cannot be waited for: " + std::generic_category().message(errno));
  }
}

int number_of(const std::string& text) {
  int number = 0;
  if (text.starts_with("MR")) std::from_chars(text.data() + 2, text.data() + text.size(), number);
  return number;
}

// The run's own error, as it would have been printed there.
[[noreturn]] void rethrow(const ordered_json& error) {
  const std::string message = printable(error.value("message", "it refuses"));
  const ordered_json data = error.value("data", ordered_json::object());
  const int number = data.is_object() ? number_of(data.value("code", "")) : 0;
  if (number == 0 && error.value("code", 0) == static_cast<int>(RpcCode::busy)) throw Busy(message);
  if (number == 0 && error.value("code", 0) == static_cast<int>(RpcCode::bad_params)) throw WrongParams(message);
  if (number == 0) fail("the run refuses: " + message);
  Error told{number, message, {}, {}, printable(data.value("nearest", "")), printable(data.value("edit", ""))};
  for (const ordered_json& note : data.value("notes", ordered_json::array()))
    if (note.is_string()) told.notes.push_back(printable(note.get<std::string>()));
  throw Failure(std::move(told));
}

} // namespace

HungUp::HungUp() : Failure(code::run_does_not_answer, "the run has hung up") {}
WrongParams::WrongParams(const std::string& sentence)
    : Failure(code::run_does_not_answer, "the run refuses: " + sentence) {}
Busy::Busy(const std::string& sentence) : Failure(code::run_does_not_answer, "the run is busy: " + sentence) {}

std::optional<ControlClient> ControlClient::dial(const std::filesystem::path& path) {
  std::string why;
  net::Descriptor socket = net::dial_local(path.string(), why);
  if (!socket) return std::nullopt;
  return ControlClient(std::move(socket));
}

void ControlClient::send(const std::string& line, int64_t until_ms) {
  size_t sent = 0;
  while (sent < line.size()) {
    const ssize_t taken = ::send(socket_.number(), line.data() + sent, line.size() - sent, MSG_DONTWAIT | MSG_NOSIGNAL);
    if (taken > 0) sent += static_cast<size_t>(taken);
    if (taken >= 0 || errno == EINTR) continue;
    if (errno != EAGAIN && errno != EWOULDBLOCK) throw HungUp();
    if (!await(socket_.number(), POLLOUT, until_ms)) fail("the run takes no request");
  }
}

std::optional<std::string> ControlClient::receive(int64_t until_ms) {
  for (size_t looked_at = 0;;) { // there is no line end before it
    const size_t end = received_.find('\n', looked_at);
    if (end != std::string::npos) {
      std::string line = received_.substr(0, end);
      received_.erase(0, end + 1);
      return line;
    }
    if (received_.size() > kAnswerBytesMax) fail("the run's answer has no end");
    if (!await(socket_.number(), POLLIN, until_ms)) return std::nullopt;
    std::array<char, 4096> bytes;
    const ssize_t got = ::recv(socket_.number(), bytes.data(), bytes.size(), MSG_DONTWAIT);
    if (got == 0 || (got < 0 && errno != EAGAIN && errno != EWOULDBLOCK && errno != EINTR)) throw HungUp();
    looked_at = received_.size();
    if (got > 0) received_.append(bytes.data(), static_cast<size_t>(got));
  }
}

std::optional<ordered_json> ControlClient::call(const std::string& method, const ordered_json& params,
                                                int patience_ms) {
  const int64_t until_ms = steady_ms() + patience_ms;
  const ordered_json request = {{"jsonrpc", "2.0"}, {"id", ++last_id_}, {"method", method}, {"params", params}};
  try {
    send(request.dump(-1, ' ', false, ordered_json::error_handler_t::replace) + "\n", until_ms);
  } catch (const HungUp&) { // it may have said why before: that is read below
  }
  while (const std::optional<std::string> line = receive(until_ms)) {
    try {
      const ordered_json answer = ordered_json::parse(*line);
      const ordered_json id = answer.value("id", ordered_json());
      if (answer.contains("error") && (id.is_null() || id == last_id_)) rethrow(answer.at("error"));
      if (id == last_id_) return answer.at("result"); // another id: the answer to a request that was given up
    } catch (const ordered_json::exception&) {
      fail("the run answers what is no answer: " + printable(*line));
    }
  }
  return std::nullopt;
}

// ---- greeting ------------------------------------------------------------------------------------------------------

namespace {

// The commands use no method of a later version, so that they can ask a run of an older program.
constexpr int kProtocolSpoken = 2;
// A run of an older version speaks an older protocol, which stop and set have as well.
std::optional<ordered_json> say_hello(ControlClient& client, int patience_ms) {
  const int64_t until_ms = steady_ms() + patience_ms;
  try {
    return client.call("hello", {{"protocol", kProtocolSpoken}, {"role", "steer"}, {"name", "millrace"}}, patience_ms);
  } catch (const WrongParams&) {
    return client.call("hello", {{"protocol", kProtocolMin}, {"role", "steer"}},
                       static_cast<int>(std::max<int64_t>(until_ms - steady_ms(), 1)));
  }
}

} // namespace

Greeting Greeting::of(const std::filesystem::path& path, int patience_ms) {
  const int64_t until_ms = steady_ms() + patience_ms;
  Greeting greeting;
  do {
    if (!greeting.why.empty()) std::this_thread::sleep_for(kAgainAfter);
    std::string why;
    int error = 0;
    net::Descriptor socket = net::dial_local(path.string(), why, error);
    if (!socket && (error == ECONNREFUSED || error == ENOENT)) return {State::gone, "", nullptr, std::nullopt};
    if (!socket && error != EAGAIN) return {State::refuses, "cannot be reached: " + why, nullptr, std::nullopt};
    if (!socket) { // the system dials no further, and nobody has taken in those who wait
      greeting = {State::silent, "takes in nobody, and others wait there", nullptr, std::nullopt};
      continue;
    }
    ControlClient client(std::move(socket));
    try {
      const int left_ms = static_cast<int>(std::max(until_ms - steady_ms(), std::min<int64_t>(kTryMs, patience_ms)));
      std::optional<ordered_json> hello = say_hello(client, left_ms);
      if (!hello) return {State::silent, "does not answer", nullptr, std::nullopt};
      return {State::answers, "", std::move(*hello), std::move(client)};
    } catch (const HungUp&) { // the next one finds nobody if it has ended
      greeting = {State::refuses, "hangs up", nullptr, std::nullopt};
    } catch (const Busy& busy) {
      greeting = {State::busy, busy.error().what.substr(std::string("the run ").size()), nullptr, std::nullopt};
    } catch (const Failure& failure) {
      return {State::refuses, "cannot be asked: " + failure.error().what, nullptr, std::nullopt};
    }
  } while (steady_ms() < until_ms);
  return greeting;
}

} // namespace millrace::serve
