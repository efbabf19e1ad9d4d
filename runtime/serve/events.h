// Events: lines that a run sends to clients that have subscribed, without a request for each.
//
//   {"jsonrpc":"2.0","method":"counters","params":{"at_s":12.5,"window_s":1.2,"handlers":[[375,0,30.0,1843.2,2007.0],
//   …], …}}
//
//   counters  rows by the plan's numbers; subscribe is answered with the names of the columns. Rates and percentiles
//   are
//             those of the last `window_s`: one to two seconds, or more if nobody asked meanwhile. The rest counts from
//             the run's beginning. `dropped` is by cause. A region has the numbers of its handlers
//   state     {"state": "starts", "runs" or "drains"}: at first, and when it has changed
//   params    {"handlers": as get}: those of which a value has changed since
//   log       {"lines": […], "left_out": 3}: all that the run logs anywhere, and how many before them are not kept any
//             more
//
// A transport asks for what is due while its client reads. So a client that does not read gets newer counters in place
// of older ones, one line for all changes of a parameter, and the number of log lines that it missed.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "serve/log_tail.h"

namespace millrace::exec {
class Counters;
}

namespace millrace::serve {

struct Request;

// The run as events see it. Any of them may be null; the topic is refused then.
struct EventSources {
  std::function<std::shared_ptr<exec::Counters>()> counters; // those of the run; null while there is none
  std::function<std::string()> state;                        // "starts", "runs", "drains"
  std::function<std::string()> values;                       // as get, of all handlers; throws while there is no run
  std::shared_ptr<LogTail> log;
  std::function<double()> elapsed_s;
};

inline constexpr double kEventsHzMax = 20, kEventsHz = 10;

// Topics of one client, and what it knows already. Its transport's thread has it.
struct Subscription {
  bool counters = false, state = false, params = false, log = false;
  int64_t period_ms = 0, due_ms = 0;
  std::shared_ptr<const void> counts; // with counters: while anybody has it, there are snapshots
  std::string state_told, values_text;
  nlohmann::ordered_json values = nlohmann::ordered_json::object();
  uint64_t log_next = 0;
};

class Events {
 public:
  explicit Events(EventSources sources);
  ~Events();

  // Reads {topics, hz}, and gives the answer. Null: the client has unsubscribed, with no topics. Throws Refused.
  std::shared_ptr<Subscription> subscribe(const Request& request, nlohmann::ordered_json& answer) const;
  // Lines of events that are due now, without their ends; the next are due a period later. Any thread, one at a time
  // for a subscription.
  std::vector<std::string> take(Subscription& to, int64_t now_ms);
  // The run goes: nothing of it is held any more.
  void forget_run();
  // The same, and there are no more events.
  void end();

 private:
  class Window;
  struct Snapshots;
  const EventSources sources_;
  const std::shared_ptr<Snapshots> snapshots_; // subscriptions may outlive it
};

} // namespace millrace::serve
