// The coordinator alone: each test plays the members and the owner.
#include "fleet/coordinator.h"

#include <doctest/doctest.h>

#include <map>
#include <memory>

#include "observe/error_codes.h"

namespace millrace::fleet {
namespace {

constexpr int64_t kOneSecond = 1'000'000'000;

// A coordinator of edge and gpu, with what it said last to each link.
struct Fleet {
  explicit Fleet(std::vector<bool> needed = {true, true}) : needed_(std::move(needed)) {
    CoordinatorOptions options;
    options.nodes = {"edge", "gpu"};
    options.pipeline = "file";
    options.process = 77;
    coordinator = std::make_unique<Coordinator>(options);
  }

  void poll() {
    Coordinator::Event event;
    while (coordinator->poll(event)) {
      using Type = Coordinator::Event::Type;
      if (event.type == Type::over) ++overs, failure = event.failure;
      if (event.type == Type::refused) refused.push_back(event.error->code);
      if (event.type == Type::waits) waits = event.nodes;
      if (event.type == Type::begun) zero_ns = event.at_ns;
      if (event.type == Type::answered) answers.push_back(event.text);
      if (event.type == Type::given_up) given_up = event.nodes, why_given_up = event.text;
      if (event.type == Type::compile) {
        ++compiles;
        if (compiles_itself) coordinator->compiled(parts(), now_ns);
      }
      if (event.type != Type::say) continue;
      Statement statement;
      std::string why;
      REQUIRE_MESSAGE(read_statement(event.text, statement, why), why);
      if (const auto* brief = std::get_if<Brief>(&statement)) briefs[event.link] = *brief;
      if (const auto* question = std::get_if<Question>(&statement)) questions[event.link].push_back(*question);
      if (const auto* request = std::get_if<Request>(&statement)) requests[event.link].push_back(*request);
      if (const auto* reply = std::get_if<Reply>(&statement)) replies[event.link].push_back(*reply);
      if (const auto* over = std::get_if<StreamOver>(&statement)) {
        REQUIRE(orders[event.link].step != Order::Step::over); // nothing is heard after that
        streams[event.link].push_back(over->failure);
      }
      if (const auto* order = std::get_if<Order>(&statement)) orders[event.link] = *order, said.push_back(event.link);
    }
  }

  std::vector<Part> parts() const {
    std::vector<Part> made(2);
    for (size_t node = 0; node < 2; ++node) {
      made[node].brief.hash = "plan";
      made[node].stage = static_cast<uint32_t>(node);
      made[node].needed = needed_[node];
    }
    return made;
  }

  std::vector<std::string> answers;
  std::map<Link, std::vector<Question>> questions;
  std::map<Link, std::vector<Request>> requests;
  std::map<Link, std::vector<Reply>> replies;
  void say(Link link, const Statement& statement) {
    coordinator->received(link, to_text(statement), now_ns);
    poll();
  }
  void offer(Link link, const std::string& node, uint64_t process, const std::string& pipeline = "file") {
    coordinator->back(link, now_ns);
    say(link, Offer{node, process, "", pipeline, ""});
  }
  void state(Link link, State::Step step, std::optional<RunFailure> of_run = {}) {
    State said_state{step, coordinator->revision(), "plan", "report", {}, std::move(of_run)};
    if (step == State::Step::unable) said_state.error = Error{701, "no room", {}, {}, {}, {}};
    say(link, said_state);
  }
  void pass(int64_t ns) {
    now_ns += ns;
    coordinator->on_time(now_ns);
    poll();
  }
  void away(Link link) {
    coordinator->away(link, now_ns);
    poll();
  }
  void leave(Link link) {
    coordinator->left(link, now_ns);
    poll();
  }
  // Both nodes are there and run.
  void start() {
    offer(1, "edge", 10);
    offer(2, "gpu", 20);
    state(1, State::Step::ready);
    state(2, State::Step::ready);
    REQUIRE(orders[1].step == Order::Step::start);
  }

  std::unique_ptr<Coordinator> coordinator;
  int64_t now_ns = 5 * kOneSecond;
  std::map<Link, Order> orders;
  std::map<Link, Brief> briefs;
  std::map<Link, std::vector<RunFailure>> streams; // that are over
  std::vector<Link> said;                          // links that were given an order, in turn
  std::vector<int> refused;
  std::vector<std::string> waits, given_up;
  std::string why_given_up;
  std::optional<RunFailure> failure;
  int64_t zero_ns = 0;
  int overs = 0, compiles = 0;
  bool compiles_itself = true;

 private:
  std::vector<bool> needed_;
};

RunFailure failure_at(uint64_t index) { return {{601, "it failed", {}, {}, {}, {}}, "gpu", "main", index, false}; }

} // namespace

TEST_CASE("a node whose part did not end well stops no other one, and all of them end by its error") {
  for (const bool has_failed_too : {false, true}) {
    Fleet fleet;
    fleet.start();
    fleet.say(1,
              State{State::Step::done, 1, "plan", "report", Error{601, "every stream has failed", {}, {}, {}, {}}, {}});
    CHECK_FALSE(fleet.orders[2].failure);
    CHECK_FALSE(fleet.orders[2].stop);
    if (has_failed_too) fleet.state(2, State::Step::runs, failure_at(7));
    CHECK(fleet.overs == 0);
    fleet.state(2, State::Step::done);
    CHECK(fleet.overs == 1);
    for (const Link link : {Link{1}, Link{2}}) {
      REQUIRE(fleet.orders[link].error);
      CHECK(fleet.orders[link].error->what == (has_failed_too ? "it failed" : "every stream has failed"));
    }
    REQUIRE(fleet.failure);
    CHECK(fleet.failure->node == (has_failed_too ? "gpu" : "edge"));
  }
}

TEST_CASE("a fleet compiles once every node has offered, starts once all are ready, and is over once all are done") {
  Fleet fleet;
  fleet.offer(1, "edge", 10);
  CHECK(fleet.compiles == 0);
  CHECK(fleet.orders[1].step == Order::Step::wait);
  fleet.offer(2, "gpu", 20);
  CHECK(fleet.compiles == 1);
  CHECK(fleet.briefs[1].revision == 1);
  CHECK(fleet.orders[2].step == Order::Step::prepare);
  fleet.state(2, State::Step::ready);
  CHECK(fleet.orders[2].step == Order::Step::prepare);
  fleet.state(1, State::Step::ready);
  CHECK(fleet.orders[1].step == Order::Step::start);
  CHECK(fleet.orders[2].zero_ns == fleet.orders[1].zero_ns);
  CHECK(fleet.zero_ns == fleet.now_ns + Coordinator::kLeastLeadNs);
  fleet.state(1, State::Step::done);
  CHECK(fleet.overs == 0);
  fleet.state(2, State::Step::done);
  CHECK(fleet.overs == 1);
  CHECK(!fleet.failure);
  CHECK(fleet.orders[2].step == Order::Step::over);
  CHECK(fleet.coordinator->report(1) == "report");
  CHECK(!fleet.coordinator->has_parted());
  fleet.coordinator->gone(1, fleet.now_ns);
  fleet.coordinator->gone(2, fleet.now_ns);
  CHECK(fleet.coordinator->has_parted());
}

TEST_CASE("later stages are told to start first, and zero lies three of the longest round trips ahead") {
  Fleet fleet;
  fleet.offer(1, "edge", 10);
  fleet.offer(2, "gpu", 20);
  fleet.coordinator->round_trip(2, kOneSecond);
  fleet.state(2, State::Step::ready);
  fleet.said.clear();
  fleet.state(1, State::Step::ready);
  CHECK(fleet.said == std::vector<Link>{2, 1});
  CHECK(fleet.zero_ns == fleet.now_ns + 3 * kOneSecond);
}

TEST_CASE("every 2 s it says for which nodes it waits") {
  Fleet fleet;
  fleet.offer(1, "edge", 10);
  CHECK(fleet.coordinator->next_timer() == fleet.now_ns + 2 * kOneSecond);
  fleet.pass(2 * kOneSecond);
  CHECK(fleet.waits == std::vector<std::string>{"gpu"});
  fleet.waits.clear();
  fleet.pass(kOneSecond);
  CHECK(fleet.waits.empty());
  fleet.pass(kOneSecond);
  CHECK(fleet.waits == std::vector<std::string>{"gpu"});
}

TEST_CASE(
    "another pipeline, an unknown node and a statement that cannot be read are refused, and nothing is compiled") {
  Fleet fleet;
  fleet.offer(1, "edge", 10);
  fleet.offer(2, "gpu", 20, "other file");
  fleet.offer(3, "gpus", 30);
  fleet.coordinator->received(4, "nonsense", fleet.now_ns);
  fleet.poll();
  CHECK(fleet.refused == std::vector<int>{code::other_pipeline, code::unknown_node, code::other_version});
  CHECK(fleet.orders[2].step == Order::Step::refused);
  CHECK(fleet.orders[2].error->notes == std::vector<std::string>{"edge: file", "gpu: other file"});
  CHECK(fleet.orders[3].error->nearest == "gpu");
  CHECK(fleet.compiles == 0);
}

TEST_CASE("a second process of a node waits 4 s, and is refused if the first is still heard") {
  Fleet fleet;
  fleet.start();
  fleet.offer(3, "gpu", 30);
  CHECK(fleet.refused.empty());
  fleet.pass(4 * kOneSecond - 1);
  CHECK(fleet.refused.empty());
  fleet.pass(1);
  CHECK(fleet.refused == std::vector<int>{code::running_already});
  CHECK(fleet.orders[3].step == Order::Step::refused);
  CHECK(fleet.overs == 0);
}

TEST_CASE("a process that was started again within 3 s of the death of the first gets its place") {
  Fleet fleet({true, false});
  fleet.start();
  fleet.offer(3, "gpu", 30);
  fleet.now_ns += 2 * kOneSecond;
  fleet.away(2);
  CHECK(fleet.refused.empty());
  CHECK(fleet.orders[3].step == Order::Step::prepare);
  CHECK(fleet.briefs[3].revision == 1);
  fleet.state(3, State::Step::ready);
  CHECK(fleet.orders[3].step == Order::Step::start);
  CHECK(fleet.orders[3].zero_ns == fleet.orders[1].zero_ns);
  // The first one was only slow: it has lost its place.
  fleet.offer(2, "gpu", 20);
  CHECK(fleet.orders[2].step == Order::Step::refused);
  CHECK(fleet.orders[2].error->code == code::running_already);
  fleet.away(3);
  fleet.offer(2, "gpu", 20);
  CHECK(fleet.refused.size() == 2);
}

TEST_CASE("a newcomer that is away itself has no claim until it offers again") {
  Fleet fleet({true, false});
  fleet.start();
  fleet.offer(3, "gpu", 30);
  fleet.away(3);
  fleet.away(2);
  CHECK(!fleet.coordinator->is_there(1));
  CHECK(fleet.coordinator->offer(1).process == 20);
  fleet.offer(3, "gpu", 30);
  CHECK(fleet.coordinator->offer(1).process == 30);
}

TEST_CASE("MR0806: a needed node that begins again ends the run of all, for nobody can wait for its ticks") {
  Fleet fleet;
  fleet.start();
  fleet.away(2);
  fleet.offer(3, "gpu", 30);
  REQUIRE(fleet.orders[1].failure);
  CHECK(fleet.orders[1].failure->error.code == code::began_again);
  CHECK(fleet.orders[1].failure->hopeless);
  CHECK(fleet.orders[3].step == Order::Step::wait);
  fleet.state(1, State::Step::done);
  CHECK(fleet.overs == 1);
  CHECK(fleet.failure->error.code == code::began_again);
}

TEST_CASE("MR0804: a needed node that is away for 30 s ends the run of all; a shorter time costs nothing") {
  Fleet fleet;
  fleet.start();
  fleet.away(2);
  fleet.pass(29 * kOneSecond);
  CHECK(!fleet.orders[1].failure);
  fleet.coordinator->back(2, fleet.now_ns);
  fleet.pass(100 * kOneSecond);
  CHECK(!fleet.orders[1].failure);
  fleet.away(2);
  fleet.pass(30 * kOneSecond);
  CHECK(fleet.given_up == std::vector<std::string>{"gpu"});
  REQUIRE(fleet.orders[1].failure);
  CHECK(fleet.orders[1].failure->error.code == code::node_away);
  fleet.state(1, State::Step::done);
  CHECK(fleet.overs == 1);
}

TEST_CASE("a node that nobody needs is given up after 30 s, and the others end well without it") {
  Fleet fleet({true, false});
  fleet.start();
  fleet.away(2);
  fleet.state(1, State::Step::done);
  CHECK(fleet.overs == 0);
  fleet.pass(30 * kOneSecond);
  CHECK(fleet.overs == 1);
  CHECK(!fleet.failure);
}

TEST_CASE("MR0803: a coordinator that is called off before the start ends all, also those that come later") {
  Fleet fleet;
  fleet.offer(1, "edge", 10);
  const Error error{code::other_peer, "somebody else answers as gpu", {}, {}, {}, {}};
  fleet.coordinator->call_off(error);
  fleet.pass(0);
  CHECK(fleet.overs == 1);
  REQUIRE(fleet.failure);
  CHECK(fleet.failure->error.code == code::other_peer);
  CHECK(fleet.orders[1].step == Order::Step::over);
  fleet.offer(2, "gpu", 20);
  CHECK(fleet.orders[2].step == Order::Step::over);
  CHECK(fleet.orders[2].error->code == code::other_peer);
}

TEST_CASE("A coordinator that is called off after the start goes on") {
  Fleet fleet;
  fleet.start();
  fleet.coordinator->call_off({code::other_peer, "somebody else answers as gpu", {}, {}, {}, {}});
  fleet.pass(0);
  CHECK(fleet.overs == 0);
  CHECK(!fleet.orders[1].failure);
}

TEST_CASE("MR0804: a needed node that leaves ends the run of all at once") {
  Fleet fleet;
  fleet.start();
  fleet.leave(2);
  CHECK(fleet.given_up == std::vector<std::string>{"gpu"});
  CHECK(fleet.why_given_up == "gpu has left the run");
  REQUIRE(fleet.orders[1].failure);
  CHECK(fleet.orders[1].failure->error.code == code::node_away);
  CHECK(fleet.orders[1].failure->error.what == "gpu has left the run, and others wait for it");
  CHECK(fleet.orders[1].failure->hopeless);
  CHECK(fleet.overs == 0);
  fleet.state(1, State::Step::done);
  CHECK(fleet.overs == 1);
}

TEST_CASE("a node that nobody needs leaves, and the others go on and end well without waiting for it") {
  Fleet fleet({true, false});
  fleet.start();
  fleet.leave(2);
  CHECK(fleet.given_up == std::vector<std::string>{"gpu"});
  CHECK(fleet.why_given_up == "gpu has left the run: nobody waits for it");
  CHECK(!fleet.orders[1].failure);
  CHECK(!fleet.orders[1].stop);
  CHECK(fleet.coordinator->next_timer() == INT64_MAX);
  fleet.state(1, State::Step::done);
  CHECK(fleet.overs == 1);
  CHECK(!fleet.failure);
}

TEST_CASE("a node that leaves once it is done, or while the run is being stopped, is not missed") {
  Fleet done;
  done.start();
  done.state(2, State::Step::done);
  done.leave(2);
  CHECK(done.given_up.empty());
  CHECK(!done.orders[1].failure);
  done.state(1, State::Step::done);
  CHECK(done.overs == 1);
  CHECK(!done.failure);
  Fleet stopped({true, false});
  stopped.start();
  stopped.coordinator->stop(stopped.now_ns);
  stopped.state(1, State::Step::done);
  CHECK(stopped.overs == 0);
  stopped.leave(2);
  CHECK(stopped.overs == 1);
  CHECK(stopped.given_up.empty());
  CHECK(!stopped.failure);
}

TEST_CASE("a process that leaves before the start makes all prepare anew, as one that is gone does") {
  Fleet fleet;
  fleet.offer(1, "edge", 10);
  fleet.offer(2, "gpu", 20);
  fleet.state(1, State::Step::ready);
  fleet.leave(2);
  CHECK(fleet.given_up.empty());
  CHECK(fleet.orders[1].step == Order::Step::wait);
  fleet.offer(3, "gpu", 30);
  CHECK(fleet.briefs[3].revision == 2);
}

TEST_CASE("a process that leaves while another one waits for its place gives it to that one") {
  Fleet fleet({true, false});
  fleet.start();
  fleet.offer(3, "gpu", 30);
  fleet.leave(2);
  CHECK(fleet.given_up.empty());
  CHECK(fleet.orders[3].step == Order::Step::prepare);
  fleet.state(3, State::Step::ready);
  CHECK(fleet.orders[3].step == Order::Step::start);
  CHECK(!fleet.orders[1].failure);
}

TEST_CASE("a node that left and begins again takes part again if nobody needs it") {
  Fleet fleet({true, false});
  fleet.start();
  fleet.leave(2);
  fleet.offer(3, "gpu", 30);
  fleet.state(3, State::Step::ready);
  CHECK(fleet.orders[3].step == Order::Step::start);
  fleet.state(1, State::Step::done);
  CHECK(fleet.overs == 0);
  fleet.state(3, State::Step::done);
  CHECK(fleet.overs == 1);
  CHECK(!fleet.failure);
}

TEST_CASE("a link that is no node's leaves without any effect") {
  Fleet fleet;
  fleet.start();
  fleet.said.clear();
  fleet.leave(9);
  CHECK(fleet.said.empty());
  CHECK(fleet.given_up.empty());
  CHECK(fleet.overs == 0);
}

TEST_CASE("once all that are needed are done, the others are told to stop, and they are waited for") {
  Fleet fleet({true, false});
  fleet.start();
  CHECK(!fleet.orders[2].stop);
  fleet.state(1, State::Step::done);
  CHECK(fleet.orders[2].step == Order::Step::start);
  CHECK(fleet.orders[2].stop);
  CHECK(!fleet.orders[2].failure);
  CHECK(fleet.overs == 0);
  fleet.said.clear();
  fleet.state(2, State::Step::runs);
  CHECK(fleet.said.empty()); // it is said once
  fleet.state(2, State::Step::done);
  CHECK(fleet.overs == 1);
  CHECK(!fleet.failure);
}

TEST_CASE("a node is told to stop only once every node that is needed is done") {
  Fleet both;
  both.start();
  both.state(1, State::Step::done);
  CHECK(!both.orders[2].stop);
  Fleet other({false, true});
  other.start();
  other.state(1, State::Step::done); // nobody needs it
  CHECK(!other.orders[2].stop);
}

TEST_CASE("a node that was away when the needed ones ended is told to stop once it is back") {
  Fleet fleet({true, false});
  fleet.start();
  fleet.away(2);
  fleet.state(1, State::Step::done);
  fleet.orders.clear();
  fleet.coordinator->back(2, fleet.now_ns);
  fleet.poll();
  CHECK(fleet.orders[2].stop);
  fleet.state(2, State::Step::done);
  CHECK(fleet.overs == 1);
}

TEST_CASE("the earliest failure of a clock is the run's, and a hopeless one makes it hopeless") {
  Fleet fleet;
  fleet.start();
  fleet.state(2, State::Step::runs, failure_at(50));
  CHECK(fleet.orders[1].failure->index == 50);
  fleet.state(1, State::Step::runs, failure_at(60));
  CHECK(fleet.orders[2].failure->index == 50);
  fleet.state(1, State::Step::runs, failure_at(40));
  CHECK(fleet.orders[2].failure->index == 40);
  CHECK(!fleet.orders[2].failure->hopeless);
  fleet.away(2);
  fleet.pass(30 * kOneSecond);
  CHECK(fleet.orders[1].failure->index == 40);
  CHECK(fleet.orders[1].failure->hopeless);
}

TEST_CASE("MR0812: a node that cannot do its part ends the fleet before anything starts") {
  Fleet fleet;
  fleet.offer(1, "edge", 10);
  fleet.offer(2, "gpu", 20);
  fleet.state(1, State::Step::ready);
  fleet.state(2, State::Step::unable);
  CHECK(fleet.overs == 1);
  CHECK(fleet.failure->error.code == code::unable_node);
  CHECK(fleet.failure->error.notes == std::vector<std::string>{"error MR0701: no room"});
  CHECK(fleet.orders[1].step == Order::Step::over);
}

TEST_CASE("a process that goes before the start makes all prepare anew, in another revision") {
  Fleet fleet;
  fleet.offer(1, "edge", 10);
  fleet.offer(2, "gpu", 20);
  fleet.state(1, State::Step::ready);
  fleet.coordinator->gone(2, fleet.now_ns);
  fleet.poll();
  CHECK(fleet.orders[1].step == Order::Step::wait);
  fleet.offer(3, "gpu", 30);
  CHECK(fleet.compiles == 2);
  CHECK(fleet.briefs[1].revision == 2);
  fleet.say(1, State{State::Step::ready, 1, "plan", "", {}, {}}); // of the revision before: it comes late
  fleet.state(3, State::Step::ready);
  CHECK(fleet.orders[3].step == Order::Step::prepare);
  fleet.state(1, State::Step::ready);
  CHECK(fleet.orders[3].step == Order::Step::start);
}

TEST_CASE("a plan that is refused, or a stop before the start, ends the fleet; a stop later goes to all") {
  Fleet refused;
  refused.compiles_itself = false;
  refused.offer(1, "edge", 10);
  refused.offer(2, "gpu", 20);
  refused.coordinator->refuse({code::loop_over_nodes, "a loop", {}, {}, {}, {}});
  refused.poll();
  CHECK(refused.orders[2].error->code == code::loop_over_nodes);
  CHECK(refused.overs == 1);
  Fleet waiting;
  waiting.offer(1, "edge", 10);
  waiting.coordinator->stop(waiting.now_ns);
  waiting.poll();
  CHECK(waiting.overs == 1);
  CHECK(!waiting.failure);
  Fleet running;
  running.start();
  running.coordinator->stop(running.now_ns);
  running.poll();
  CHECK(running.orders[2].stop);
  CHECK(running.overs == 0);
}

TEST_CASE("a run that ends anyway does not wait until a node that nobody needs is back") {
  Fleet fleet({true, false});
  fleet.start();
  fleet.away(2);
  fleet.coordinator->stop(fleet.now_ns);
  fleet.state(1, State::Step::done);
  CHECK(fleet.overs == 1);
  Fleet later({true, false});
  later.start();
  later.state(1, State::Step::done, failure_at(3));
  CHECK(later.overs == 0);
  later.away(2);
  CHECK(later.overs == 1);
}

TEST_CASE("a process that is heard again is told all that it may have missed") {
  Fleet fleet;
  fleet.offer(1, "edge", 10);
  fleet.offer(2, "gpu", 20);
  fleet.briefs.clear();
  fleet.orders.clear();
  fleet.coordinator->back(2, fleet.now_ns);
  fleet.poll();
  CHECK(fleet.briefs[2].revision == 1);
  CHECK(fleet.orders[2].step == Order::Step::prepare);
  fleet.state(1, State::Step::ready);
  fleet.state(2, State::Step::ready);
  fleet.orders.clear();
  fleet.coordinator->back(2, fleet.now_ns);
  fleet.poll();
  CHECK(fleet.orders[2].step == Order::Step::start);
}

TEST_CASE("a question is asked again once the node is back, and counts one answer, to itself alone") {
  Fleet fleet;
  fleet.compiles_itself = false;
  fleet.offer(1, "edge", 10);
  fleet.offer(2, "gpu", 20);
  fleet.coordinator->ask(1, "what");
  fleet.poll();
  REQUIRE(fleet.questions[2].size() == 1);
  CHECK(fleet.questions[2][0].body == "what");
  const uint64_t number = fleet.questions[2][0].number;
  fleet.say(2, Answer{number + 1, "to another"});
  fleet.say(1, Answer{number, "by another"});
  CHECK(fleet.answers.empty());
  fleet.coordinator->away(2, fleet.now_ns);
  fleet.coordinator->back(2, fleet.now_ns);
  fleet.poll();
  REQUIRE(fleet.questions[2].size() == 2);
  CHECK(fleet.questions[2][1].number == number);
  fleet.say(2, Answer{number, "this"});
  fleet.say(2, Answer{number, "this again"});
  CHECK(fleet.answers == std::vector<std::string>{"this"});
}

TEST_CASE("a request goes to the node that it names, and its reply to the process that asked") {
  Fleet fleet;
  fleet.compiles_itself = false;
  fleet.offer(1, "edge", 10);
  fleet.offer(2, "gpu", 20);
  fleet.say(2, Request{"gpu", "edge", 20, 1, "this"});
  REQUIRE(fleet.requests[1].size() == 1);
  CHECK(fleet.requests[1][0].body == "this");
  fleet.say(1, Reply{"gpu", 20, 1, "done"});
  REQUIRE(fleet.replies[2].size() == 1);
  CHECK(fleet.replies[2][0].body == "done");
  fleet.say(1, Reply{"gpu", 19, 1, "to a process that has gone"});
  fleet.say(1, Reply{"cloud", 20, 1, "to nobody"});
  CHECK(fleet.replies[2].size() == 1);
  // In the name of another node or process.
  fleet.say(2, Request{"edge", "gpu", 10, 1, "this"});
  fleet.say(2, Request{"gpu", "edge", 10, 1, "this"});
  CHECK(fleet.requests[1].size() == 1);
  CHECK(fleet.requests[2].empty());
}

TEST_CASE("a request to a node that is not there is replied without a body") {
  Fleet fleet;
  fleet.compiles_itself = false;
  fleet.offer(1, "edge", 10);
  fleet.offer(2, "gpu", 20);
  fleet.say(1, Request{"edge", "nobody", 10, 1, "this"});
  fleet.coordinator->away(2, fleet.now_ns);
  fleet.say(1, Request{"edge", "gpu", 10, 2, "this"});
  REQUIRE(fleet.replies[1].size() == 2);
  CHECK(fleet.replies[1][0].number == 1);
  CHECK(fleet.replies[1][1].number == 2);
  CHECK(fleet.replies[1][1].body.empty());
  CHECK(fleet.requests[2].empty());
}

TEST_CASE("a question to a node that has gone, or of a run that is stopped, ends without an answer") {
  for (const int how : {0, 1, 2, 3}) {
    CAPTURE(how);
    Fleet fleet;
    fleet.compiles_itself = false;
    fleet.offer(1, "edge", 10);
    fleet.offer(2, "gpu", 20);
    if (how == 3) fleet.coordinator->gone(2, fleet.now_ns);
    fleet.coordinator->ask(1, "what");
    if (how == 0) fleet.coordinator->gone(2, fleet.now_ns);
    if (how == 1) fleet.coordinator->stop(fleet.now_ns);
    if (how == 2) fleet.coordinator->forget_question();
    fleet.poll();
    CHECK(fleet.answers == std::vector<std::string>{""});
  }
}

TEST_CASE("2.6: a run that fails between ready and the start ends all as soon as they are started") {
  Fleet fleet;
  fleet.offer(1, "edge", 10);
  fleet.offer(2, "gpu", 20);
  fleet.state(2, State::Step::ready,
              RunFailure{Error{601, "the camera is gone", {}, {}, {}, {}}, "gpu", "main", 0, false});
  CHECK(fleet.orders[1].step == Order::Step::prepare);
  fleet.state(1, State::Step::ready);
  for (const Link link : {1u, 2u}) {
    CHECK(fleet.orders[link].step == Order::Step::start);
    REQUIRE(fleet.orders[link].failure);
    CHECK(fleet.orders[link].failure->error.what == "the camera is gone");
  }
}

TEST_CASE("a peer that has proved to be one node cannot offer for another") {
  Fleet fleet;
  fleet.coordinator->introduce(2, "gpu");
  fleet.offer(2, "edge", 20);
  CHECK(fleet.refused == std::vector<int>{code::unknown_peer});
  CHECK(fleet.orders[2].step == Order::Step::refused);
  fleet.offer(1, "edge", 10);
  fleet.offer(2, "gpu", 21);
  CHECK(fleet.compiles == 1);
}

TEST_CASE("2.8: each node hears what the others wait for, until they go on or are away") {
  Fleet fleet;
  fleet.start();
  State gpu{State::Step::runs, 1, "plan", "", {}, {}, "", {"detect is in a call"}};
  fleet.say(2, gpu);
  CHECK(fleet.orders[1].waits == std::vector<std::string>{"on gpu: detect is in a call"});
  CHECK(fleet.orders[2].waits.empty());
  fleet.said.clear();
  fleet.say(2, gpu);
  CHECK(fleet.said.empty()); // nothing new
  gpu.waits.clear();
  fleet.say(2, gpu);
  CHECK(fleet.orders[1].waits.empty());
  gpu.waits = {"detect is in a call"};
  fleet.say(2, gpu);
  fleet.away(2);
  fleet.coordinator->back(1, fleet.now_ns); // says again what holds
  fleet.poll();
  CHECK(fleet.orders[1].step == Order::Step::start);
  CHECK(fleet.orders[1].waits.empty());
}

TEST_CASE("B11: a stream that fails on a node is over on all of them, by its earliest tick, and the run goes on") {
  Fleet fleet;
  fleet.start();
  RunFailure failure = failure_at(9);
  failure.clock = "hall";
  fleet.say(2, StreamOver{1, "plan", failure});
  for (const Link link : {1u, 2u}) {
    REQUIRE(fleet.streams[link].size() == 1);
    CHECK(fleet.streams[link][0].clock == "hall");
    CHECK(fleet.streams[link][0].node == "gpu");
    CHECK(fleet.streams[link][0].index == 9);
    CHECK(!fleet.orders[link].failure);
  }
  failure.node = "gpu"; // it is edge that says it
  failure.index = 12;
  fleet.say(1, StreamOver{1, "plan", failure});
  CHECK(fleet.streams[2].size() == 1);
  failure.index = 4;
  fleet.say(1, StreamOver{1, "plan", failure});
  REQUIRE(fleet.streams[2].size() == 2);
  CHECK(fleet.streams[2][1].index == 4);
  CHECK(fleet.streams[2][1].node == "edge");
  fleet.say(1, StreamOver{1, "another plan", {failure.error, "", "yard", 1, false}});
  fleet.say(1, StreamOver{2, "plan", {failure.error, "", "yard", 1, false}});
  CHECK(fleet.streams[2].size() == 2);
  fleet.say(2, StreamOver{1, "plan", {failure.error, "", "hall", 20, false, 1}}); // it had begun anew
  fleet.say(1, StreamOver{1, "plan", failure});                                   // and this was before
  REQUIRE(fleet.streams[2].size() == 3);
  CHECK(fleet.streams[2][2].epoch == 1);
  fleet.state(1, State::Step::done);
  fleet.streams.clear(); // lost with a link that is not yet known to be cut
  fleet.state(2, State::Step::done);
  CHECK(fleet.overs == 1);
  CHECK(!fleet.failure);
  for (const Link link : {1u, 2u}) {
    REQUIRE(fleet.streams[link].size() == 1);
    CHECK(fleet.streams[link][0].index == 20);
  }
}

TEST_CASE("B11: a node that was away hears of the streams that ended, also where all is over meanwhile") {
  Fleet fleet({true, false});
  fleet.start();
  RunFailure failure = failure_at(9);
  failure.clock = "hall";
  fleet.away(2);
  fleet.say(1, StreamOver{1, "plan", failure});
  fleet.streams.clear();
  fleet.coordinator->back(2, fleet.now_ns);
  fleet.poll();
  REQUIRE(fleet.streams[2].size() == 1);
  fleet.state(2, State::Step::done);
  fleet.away(2);
  fleet.state(1, State::Step::done);
  REQUIRE(fleet.overs == 1);
  fleet.orders.clear();
  fleet.streams.clear();
  fleet.coordinator->back(2, fleet.now_ns);
  fleet.poll();
  CHECK(fleet.streams[2].size() == 1);
  CHECK(fleet.orders[2].step == Order::Step::over);
}

TEST_CASE("B11: a stream that fails before the start is said once all have started, and not in another revision") {
  Fleet fleet;
  fleet.offer(1, "edge", 10);
  fleet.offer(2, "gpu", 20);
  RunFailure failure = failure_at(0);
  failure.clock = "hall";
  fleet.say(2, StreamOver{1, "plan", failure});
  CHECK(fleet.streams.empty());
  SUBCASE("started") {
    fleet.state(1, State::Step::ready);
    fleet.state(2, State::Step::ready);
    CHECK(fleet.streams[1].size() == 1);
    CHECK(fleet.streams[2].size() == 1);
  }
  SUBCASE("another revision") {
    fleet.leave(2);
    fleet.offer(3, "gpu", 30);
    fleet.state(1, State::Step::ready);
    fleet.state(3, State::Step::ready);
    REQUIRE(fleet.orders[1].step == Order::Step::start);
    CHECK(fleet.streams.empty());
  }
}

TEST_CASE("7.9: once the clocks of all homes have ended each node is told, though none of them is done") {
  const State over{State::Step::runs, 1, "plan", "", {}, {}, "", {}, true};
  Fleet fleet({true, false});
  fleet.start();
  fleet.state(1, State::Step::runs);
  CHECK(!fleet.orders[2].clocks_over);
  fleet.say(1, over);
  for (const Link link : {1u, 2u}) {
    CHECK(fleet.orders[link].step == Order::Step::start);
    CHECK(fleet.orders[link].clocks_over);
    CHECK(!fleet.orders[link].stop);
  }
  Fleet both; // gpu is a home too
  both.start();
  both.say(1, over);
  CHECK(!both.orders[2].clocks_over);
  both.say(2, over);
  CHECK(both.orders[1].clocks_over);
}

TEST_CASE("before the start each node is told which ones are missing, also after one has died that was there") {
  Fleet fleet;
  fleet.offer(1, "edge", 10);
  CHECK(fleet.orders[1].waits == std::vector<std::string>{"gpu"});
  CHECK(fleet.coordinator->missing() == std::vector<std::string>{"gpu"});
  fleet.offer(2, "gpu", 20);
  CHECK(fleet.coordinator->missing().empty());
  REQUIRE(fleet.orders[1].step == Order::Step::prepare);
  CHECK(fleet.orders[1].waits.empty());
  fleet.away(2); // while both prepare
  CHECK(fleet.orders[1].waits == std::vector<std::string>{"gpu"});
  fleet.waits.clear();
  fleet.pass(2 * kOneSecond);
  CHECK(fleet.waits == std::vector<std::string>{"gpu"});
  fleet.coordinator->back(2, fleet.now_ns);
  fleet.poll();
  CHECK(fleet.orders[1].waits.empty());
  fleet.state(1, State::Step::ready);
  fleet.state(2, State::Step::ready);
  CHECK(fleet.orders[1].step == Order::Step::start);
  fleet.away(2);
  CHECK(fleet.coordinator->missing().empty()); // from now on the patience counts
}

TEST_CASE("MR0804: a node that is away because it contradicts itself is given up after the patience, with its fault") {
  Fleet fleet;
  fleet.start();
  fleet.coordinator->away(2, fleet.now_ns, "a parcel came after the crossing's end");
  fleet.poll();
  fleet.pass(30 * kOneSecond);
  REQUIRE(fleet.orders[1].failure);
  CHECK(fleet.orders[1].failure->error.code == code::node_away);
  CHECK(fleet.orders[1].failure->error.notes == std::vector<std::string>{"a parcel came after the crossing's end"});
}

} // namespace millrace::fleet
