// The coordinator of a fleet: gathers the offers of all nodes, gives each its brief, starts them together, and ends the
// run of all as one.
//
// It does no I/O and keeps no time. Its owner tells it what happens on the links and what it was asked for, and polls
// for events. The coordinator's own node is a member like the others, on a link that is never cut.
//
//   phase      goes on                                                              when
//   gathering  compiling (event compile)                                            every node has offered
//   compiling  preparing, with the next revision                                       compiled()
//              ending                                                               refuse()
//   preparing  running, with one zero for all (orders: start)                       every node is ready
//              gathering                                                            a node's process has gone
//              ending                                                               a node is unable
//   running    ending (orders: over; event over)                                    every node that is not given up is
//   done ending     -
//
// A process starts at most once, and a revision has one set of briefs and one zero. While the run goes on:
//
//   the clocks of all homes have ended           all are told: no end comes from a node that is away
//   all that are needed are done                 the others are told to stop, for the same reason
//   a node fails                                 all nodes end their runs by the earliest failure of its clock
//   a stream fails on a node                     all nodes end the stream by the earliest failure of its latest epoch,
//                                                and go on (B11)
//   a node is away longer than the patience,     if a clock waits for it: all end (MR0804); else nothing
//   or leaves
//   a node's process is a new one                if it is no home and no clock waits for it: it gets the same brief and
//                                                is started with the same zero; else all end (MR0806)
//   something takes long on a node               the others are told what its run waits for
//   a node asks another one (request)            it is asked; if it is not there, the reply says so
//
// Two processes with the name of one node: the later one gets its place if the earlier one is not heard any more, which
// takes up to 3 s to see, and is refused else. A process that has lost its place is refused too (MR0809).
//
// Limits. Nothing is kept on disk: if the coordinator's process ends, its run ends. No node joins a run that has begun
// but one that was there before.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <string>
#include <vector>

#include "fleet/event_queue.h"
#include "fleet/statement.h"

namespace millrace::fleet {

// A link to one process, as its owner counts them. A number is never used again.
using Link = uint32_t;

struct CoordinatorOptions {
  std::vector<std::string> nodes; // names in the pipeline, by number; the first one is the coordinator's own
  std::string pipeline;           // hash of the canonical pipeline
  std::string canonical;          // the pipeline itself
  uint64_t process = 0;           // random, not 0
  int64_t patience_ns = 30'000'000'000;
};

// One node's part of a plan.
struct Part {
  Brief brief;         // its revision is filled in by the coordinator
  uint32_t stage = 0;  // the last one of the node: later stages are started first
  bool needed = false; // home of a clock, or a clock that waits has a part here: the run ends without it
};

class Coordinator {
 public:
  struct Event {
    enum class Type : uint8_t {
      say,      // `text` to `link`
      compile,  // from offer() of each node; answer at once by compiled() or refuse()
      answered, // `text` to the question of ask(), or "" because the node's process has gone
      waits,    // before the start, said every 2 s: for `nodes`, which are not there
      refused,  // a process that cannot be a node of this fleet: which of `nodes` it wanted to be, and `error`
      begun,    // all are started, with zero `at_ns`
      given_up, // nothing more is expected of `nodes`: `text` says why
      over,     // `failure`, or it went well; report() has those of all that are done
    };
    Type type{};
    Link link = 0;
    std::string text;
    std::vector<std::string> nodes;
    int64_t at_ns = 0;
    std::optional<RunFailure> failure;
    std::optional<Error> error; // refused
  };

  explicit Coordinator(const CoordinatorOptions& options);

  // ---- links: a process is there, or there again on the same link; it is not heard for 3 s; its link is over, and
  // nothing comes from it any more
  void back(Link link, int64_t now_ns);
  // The link's peer has proved to be this node, and can offer for no other one.
  void introduce(Link link, const std::string& node);
  // `why`: for people; "": it is just not heard.
  void away(Link link, int64_t now_ns, const std::string& why = "");
  void gone(Link link, int64_t now_ns);
  // The same, and its process said that it ends: nobody waits for it.
  void left(Link link, int64_t now_ns);
  void received(Link link, std::string_view text, int64_t now_ns);
  // The least round trip that was measured.
  void round_trip(Link link, int64_t round_trip_ns);

  // ---- answers and orders of the owner
  // One part for each node, by number; all have one hash.
  void compiled(std::vector<Part> parts, int64_t now_ns);
  void refuse(const Error& error);
  // Before the start: it is over for all, by this.
  void call_off(const Error& error);
  // While it compiles: asks the node. There is one question at a time; a node that is away is asked once it is back.
  void ask(uint32_t node, std::string body);
  void forget_question(); // it counts as not answered
  // Sources end, and with them the run. Before the start: it is over.
  void stop(int64_t now_ns);

  int64_t next_timer() const;
  void on_time(int64_t now_ns);
  bool poll(Event& event) { return events_.poll(event); }

  // ---- what is known
  // The offer of the process that is there, or was there last; process 0: there was none.
  const Offer& offer(uint32_t node) const { return nodes_[node].offer; }
  bool is_there(uint32_t node) const { return nodes_[node].is_there(); }
  std::vector<std::string> missing() const; // before the start: the nodes that are not there
  // The report of a node that is done; "" for another.
  const std::string& report(uint32_t node) const { return nodes_[node].report; }
  const std::string& trace(uint32_t node) const { return nodes_[node].trace; } // the same
  uint32_t revision() const { return revision_; }
  // All is over, and each process that was there has heard it and left: the owner may leave too.
  bool has_parted() const;
  static constexpr int64_t kLeastLeadNs = 200'000'000; // from the orders to zero
  static constexpr int64_t kSayWaitsEveryNs = 2'000'000'000;
  static constexpr int64_t kNewcomerWaitsNs = 4'000'000'000; // 3 s until a dead process is away, and a second more
  static constexpr size_t kFormerMax = 64;                   // so many processes of one node are remembered

 private:
  enum class Phase : uint8_t { gathering, compiling, preparing, running, ending };
  // A process that wants the place of one that may be dead.
  struct Newcomer {
    Link link = 0; // 0: there is none
    Offer offer;
    int64_t refuse_at_ns = 0;
  };
  struct Node {
    std::string name;
    Part part;
    Newcomer newcomer;
    // The process that is there, or was there last.
    Link link = 0; // 0: it is gone
    Offer offer;   // process 0: there was none yet
    State state;
    bool is_away = true;
    int64_t away_since_ns = 0;
    std::string why_away;
    bool is_started = false;     // it was ordered to start
    bool given_up = false;       // nobody waits for it
    std::deque<uint64_t> former; // processes that lost their place; they do not get it back
    // This process, or one before.
    bool was_started = false, is_done = false;
    std::string report, trace;

    bool is_there() const { return link != 0 && !is_away; }
  };

  Node* node_of(Link link);
  void take(Link link, const Offer& offer, int64_t now_ns);
  void take(Node& node, const State& state, int64_t now_ns);
  void take(const Node& node, const StreamOver& over);
  void pass_on(const Node& from, const Request& request);
  void pass_on(const Reply& reply);
  Node* node_named(const std::string& name);
  void take_newcomer(Node& node, int64_t now_ns);
  void refuse_second(Link link, const std::string& node);
  void take_process(Node& node, Link link, const Offer& offer, int64_t now_ns);
  void refuse_process(Link link, const std::string& node, int code, std::string what,
                      std::vector<std::string> notes = {});
  void give_up(Node& node, const std::string& why);
  void fail(const RunFailure& failure);
  bool has_begun() const { return phase_ == Phase::running || phase_ == Phase::ending; }
  void gather(int64_t now_ns);
  void look(int64_t now_ns);
  void start(int64_t now_ns);
  void end();
  bool is_ready(const Node& node) const;
  bool waits_for(const Node& node) const;
  Order order_for(const Node& node) const;
  std::vector<std::string> waits_beside(const Node& node) const;
  bool is_asked(const Node& node) const;
  void end_question(std::string answer);
  void say(Link link, const Statement& statement);
  void send_all_to(const Node& node);
  void send_start(const Node& node);
  void send_streams(const Node& node);
  void send_orders();

  CoordinatorOptions options_;
  std::vector<Node> nodes_;
  std::map<Link, int64_t> round_trips_;
  std::map<Link, std::string> names_; // that were introduced
  std::optional<Question> asked_;     // not answered yet
  uint32_t asked_node_ = 0;
  uint64_t questions_ = 0;
  Phase phase_ = Phase::gathering;
  uint32_t revision_ = 0;
  int64_t zero_ns_ = 0;
  bool stopping_ = false;
  bool are_clocks_over_ = false;  // every node that is needed says that its clocks have ended
  bool have_homes_ended_ = false; // every node that is needed is done
  std::optional<RunFailure> failure_;
  std::map<std::string, RunFailure> streams_; // that are over, by clock
  int64_t send_waits_ns_ = INT64_MIN;
  std::vector<std::string> told_missing_;
  EventQueue<Event> events_;
};

} // namespace millrace::fleet
