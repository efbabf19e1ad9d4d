// The methods by which a program watches and steers a run. It knows no transport: messages come in and answers go out
// as text (message.h), and socket.h carries them.
//
//   hello {protocol, role, name}   the version of the program, the pipeline, and the role that is granted: watch or
//                            steer. `name` is how others are told of this client
//   describe                 the plan, as `millrace plan --json` prints it, its types, as `millrace inspect --json`
//                            does, without offers, manual and example, and the pages of handlers
//   get {handler}            the parameters of all handlers of this process or of one, with their values now
//   subscribe {topics, hz}   events from now on (events.h), hz times a second at most; no topics: no more of them
//   tap {output, width, hz}  what an output holds, from now on (taps.h); untap {tap} ends that, and ack {tap} asks for
//                            the next sample
//   set {changes}            live parameters, as {"blur.sigma": 4}; the tick of each clock from which they count, and
//                            the clocks that have ended, and the nodes that are away
//   stop                     sources end and the run drains, as after a first signal
//   streams.list             the sets of streams, with the state and the ticks of each stream
//   streams.add {name, set, fields}   a stream more; the answer comes when it has begun
//   streams.remove {name, set}        one less; the answer comes when it is gone
//
// hello comes first; all that changes something needs the role steer. Where all places are taken, hello and stop are
// answered all the same. A further method is a function and a line in the
// table of control.cpp.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "exec/new_stream.h"
#include "exec/param_change.h"
#include "observe/error.h"

namespace millrace {
struct StreamReport;
}
namespace millrace::exec {
class Counters;
class Tap;
struct TapOptions;
} // namespace millrace::exec
namespace millrace::graph {
struct Stream;
}

namespace millrace::serve {

class ClientTaps;
class Events;
class LogTail;
struct Sample;
struct Subscription;

// The end of a request for changes.
struct SetAnswer {
  std::vector<exec::TickOfClock> ticks;
  std::vector<std::string> away{}; // nodes that take the changes once they are back
  std::optional<Error> error{};    // they are refused
};
using SetDone = std::function<void(const SetAnswer&)>;

// The run as control sees it. The functions are called by the threads that call Control, which may be several.
struct SteeredRun {
  std::string version;  // the program's
  std::string pipeline; // its name, or how the user gave it
  std::string node;     // the one that this process runs; "": all of them
  std::function<double()> elapsed_s;
  // As exec::Run::set() and node::Node::set().
  std::function<void(const std::vector<exec::ParamChange>&, const SetDone&)> set;
  // As embed::Streams; null: the run's streams cannot be changed.
  std::function<void(const std::string& set, const graph::Stream&, exec::StreamDone)> add_stream;
  std::function<void(const std::string& set, const std::string& name, exec::StreamDone)> remove_stream;
  std::function<std::vector<StreamReport>()> streams;
  // A JSON object: the answer to describe. Throws Failure while there is no plan. Null, as the next one: it is refused.
  std::function<std::string()> describe;
  // The answer to get (values.h), of the handler of this name or, with "", of all. Throws Failure: MR0301 if there is
  // none, MR0316 while there is no run.
  std::function<std::string(const std::string& handler)> values;
  // Sources of events (EventSources in events.h); null: clients cannot subscribe to that topic.
  std::function<std::shared_ptr<exec::Counters>()> counters;
  std::function<std::string()> state;
  std::shared_ptr<LogTail> log;
  // As exec::Run::tap(). Throws Failure: MR0316 while there is no run. Null: it is refused.
  std::function<std::shared_ptr<exec::Tap>(const std::string& output, const exec::TapOptions&)> tap;
  // Returns at once, also if the run ends already.
  std::function<void()> stop;
};

// Changes that wait for their tick, of all clients together: a run whose clock stands still must not collect them.
inline constexpr size_t kSetsWaitingMax = 64;

class Control {
 public:
  explicit Control(SteeredRun run);
  ~Control(); // as end()
  Control(const Control&) = delete;
  Control& operator=(const Control&) = delete;

  // A client's standing, from what it has said so far. Its transport keeps it from one message to the next.
  struct Client {
    bool said_hello = false, steers = false;
    bool may_steer = true;                        // by its transport; false: it is granted watch, whatever it asks for
    std::string name;                             // as it said; "": it said none
    std::string no_place;                         // why it may say hello and stop alone; "": it may say anything
    std::shared_ptr<Subscription> subscription{}; // null: it gets no events
    std::shared_ptr<ClientTaps> taps{};           // null: it has tapped nothing
    // Set by the transport before it takes a message: makes it look whether a sample is due. Threads of the run call
    // it, under a lock, while the client has taps: it must not wait. Null: the transport looks by itself.
    std::function<void()> wake{};
  };
  // Takes an answer that was not known at once. Any thread, also one of the run: it must not wait.
  using Later = std::function<void(const std::string& line)>;
  struct Answer {
    std::string line;         // without its end; "": there is none, or none yet
    bool comes_later = false; // `later` is called once, perhaps already
  };
  // Any thread, but one at a time for each client. Throws nothing but std::bad_alloc.
  Answer take(Client& client, std::string_view message, const Later& later);
  // When the next events of a client are due, by the time that events() is given; INT64_MAX: never.
  static int64_t events_due_ms(const Client& client);
  // As events_due_ms(), for samples; 0: there is one. Else it may be due earlier once `wake` is called.
  static int64_t samples_due_ms(const Client& client);
  // The earlier of both: a transport asks for both then, if its client has read all that came before.
  static int64_t due_ms(const Client& client);
  // Lines of events that are due, without their ends. As take().
  std::vector<std::string> events(Client& client, int64_t now_ms);
  // The next sample for a client that reads; nothing if there is none. As take().
  static std::optional<Sample> sample(Client& client, int64_t now_ms);

  // The run goes, and another one may come: no events tell of it any more.
  void forget_run();
  // The run is over: answers everything that still waits for a tick. Nothing is sent afterwards.
  void end();

 private:
  class Waiting;
  struct Call;
  struct Method;
  static const Method* find(const std::string& name);
  void hello(Call& call);
  void describe(Call& call);
  void get(Call& call);
  void subscribe(Call& call);
  void tap(Call& call);
  void untap(Call& call);
  void acknowledge(Call& call);
  void set(Call& call);
  void stop(Call& call);
  void list_streams(Call& call);
  void add_stream(Call& call);
  void remove_stream(Call& call);
  template <class Ask>
  void answer_later(Call& call, Ask&& ask);
  template <class Ask>
  void change_streams(Call& call, Ask&& ask);

  const SteeredRun run_;
  const std::shared_ptr<Waiting> waiting_; // the run may hold it longer than this object lives
  const std::unique_ptr<Events> events_;
};

} // namespace millrace::serve
