// Statements: all that the coordinator of a fleet and its members say to each other, and their texts.
//
// Each statement says what holds now, not what has changed. A link loses the messages that were under way when it was
// cut, so each side says again what still holds once it hears the other, and a statement that comes twice does nothing.
//
//   offer   member to coordinator: who it is, and what it can do
//   state   member to coordinator: how far it has come with a brief
//   brief   coordinator to member: a revision, and the part of the plan that the member carries out
//   order   coordinator to member: what the member is to do with its brief
//
// A stream ends alone (B11), so its end is a statement of its own. All that hold are said again, and each comes before
// the state or the order that says that its run is over:
//
//   stream  member to coordinator: a handler of the stream has failed here
//           coordinator to member: the stream is over, by the earliest tick on which any node has said so
//
// A stream that begins anew has failed in one epoch of its clock, and a failure of a later one takes its place.
//
// Two more are asked and answered while the coordinator compiles. A question that comes twice is answered twice.
//
//   question  coordinator to member: about a handler of the member
//   answer    member to coordinator: to the question with the same number
//
// While they run, a node may ask another one, by way of the coordinator. A request says who asks, so that a request
// that comes twice is carried out once:
//
//   request   member to coordinator, and on to the node that it is to
//   reply     that node to coordinator, and on to the process that asked; without a body: the node is not there
//
// A text is one line of JSON, and then the statement's bodies as they are. The JSON has the bytes of each body:
//
//   {"brief":{"body":4711,"revision":1,"hash":"5f0c…"}}
//   4,711 bytes
//
// Bodies are what offers, briefs, parts, reports, traces, questions, answers, requests and replies are about. This
// folder passes them on and does not read them. So a body of a megabyte costs a copy at each end, and no reading of
// JSON within JSON.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "observe/error.h"

namespace millrace::fleet {

inline constexpr size_t kStatementBytesMax = size_t{4} << 20; // a plan of 1,000 handlers takes 1 MB
inline constexpr uint32_t kNestingMax = 32;                   // depth of a statement's JSON
inline constexpr size_t kNotesMax = 16;                       // lines of an error that travel
inline constexpr size_t kWaitsMax = 16;                       // lines of one statement that say what is waited for

inline constexpr size_t kStreamFailuresMax = 10'000; // a pipeline has no more handlers (graph/limits.h)

inline constexpr uint64_t kNoTick = UINT64_MAX;

// A failure that ends the run of all nodes. With a clock and an index no handler is called on later ticks of that clock
// (semantics.md 2.6).
struct RunFailure {
  Error error;
  std::string node;         // that failed
  std::string clock;        // "": it belongs to no tick
  uint64_t index = kNoTick; // a tick of the clock
  bool hopeless = false;    // ticks in flight will never end: nobody waits for them
  uint32_t epoch = 0;       // that tick's, if its clock is a stream's (decision 0067)
};

// True if it takes the place of a failure of the same stream: it is of a later epoch, or of an earlier tick of this
// one.
inline bool supersedes(const RunFailure& failure, const RunFailure& known) {
  if (failure.epoch != known.epoch) return failure.epoch > known.epoch;
  return failure.index < known.index;
}

struct Offer {
  std::string node;
  uint64_t process = 0; // random, of the process
  std::string program;  // its version, for people
  std::string pipeline; // hash of the canonical pipeline
  std::string body;
  std::string canonical{}; // the pipeline itself, for people who ask in what two of them differ
};

struct State {
  enum class Step : uint8_t { offers, ready, unable, runs, done };
  Step step = Step::offers;
  uint32_t revision = 0;             // the brief that it follows; 0: none
  std::string brief;                 // hash
  std::string body;                  // about its part once it is ready, its report once it is done
  std::optional<Error> error;        // unable: why. done: its part did not end well, though no other node was to end
  std::optional<RunFailure> failure; // its own run has failed
  std::string trace{};               // once it is done; "": none was wanted
  std::vector<std::string> waits{};  // runs: what its run waits for, if something has taken long; a line each
  bool clocks_over = false;          // runs: the clocks whose home it is have ended
};

struct Brief {
  uint32_t revision = 0; // from 1 on
  std::string hash;
  std::string body;
};

struct Order {
  enum class Step : uint8_t { wait, prepare, start, over, refused };
  Step step = Step::wait;
  uint64_t process = 0;  // random, of the coordinator's process
  uint32_t revision = 0; // prepare, start: the brief's
  std::string brief;
  int64_t zero_ns = 0;               // start: the run's time 0, on the coordinator's clock
  bool stop = false;                 // start: sources are to end
  std::optional<RunFailure> failure; // start: the run ends by it
  std::optional<Error> error;        // refused: why. over: the error of the whole run
  // start: what the other nodes wait for, "on gpu: …". wait, prepare: the nodes that are missing.
  std::vector<std::string> waits{};
  bool clocks_over = false; // start: all clocks have ended at their homes
};

// No handler is called on later ticks of the failure's clock, which has an index; all else goes on.
struct StreamOver {
  uint32_t revision = 0; // the brief's
  std::string brief;
  RunFailure failure;
};

struct Question {
  uint64_t number = 0;
  std::string body;
};

struct Answer {
  uint64_t number = 0; // the question's
  std::string body;
};

struct Request {
  std::string from, to; // nodes
  uint64_t process = 0; // that asks
  uint64_t number = 0;  // counts the process's requests from 1 on
  std::string body;
};

struct Reply {
  std::string to;       // the node that asked
  uint64_t process = 0; // and its process
  uint64_t number = 0;  // the request's
  std::string body;     // "": the node that was asked is not there
};

// Changes of parameters: the control socket takes no longer ones.
inline constexpr size_t kRequestBytesMax = size_t{128} << 10;

using Statement = std::variant<Offer, State, Brief, Order, StreamOver, Question, Answer, Request, Reply>;

// True if lists and objects of the JSON lie more than `most` deep in each other. Code that writes such a text again
// calls itself for each level.
bool nests_deeper(std::string_view text, uint32_t most);

std::string to_text(const Statement& statement);
// Reads what a peer said. False: `why` says what is wrong with it, and `statement` is not changed.
bool read_statement(std::string_view text, Statement& statement, std::string& why);

} // namespace millrace::fleet
