// A member alone: each test plays the coordinator and the owner.
#include "fleet/member.h"

#include <doctest/doctest.h>

#include "observe/error_codes.h"

namespace millrace::fleet {
namespace {

using Type = Member::Event::Type;

struct Played {
  Played() : member(Offer{"gpu", 20, "", "file", ""}, "edge", 30'000'000'000) {
    member.back();
    poll();
  }
  void poll() {
    Member::Event event;
    while (member.poll(event)) {
      if (event.type == Type::say) {
        Statement statement;
        std::string why;
        REQUIRE(read_statement(event.text, statement, why));
        if (const auto* state = std::get_if<State>(&statement)) last = *state, ++states, in_turn += "state ";
        if (const auto* over = std::get_if<StreamOver>(&statement)) in_turn += "stream ", stream = over->failure;
        if (std::holds_alternative<Offer>(statement)) ++offers;
        if (const auto* answer = std::get_if<Answer>(&statement)) answers.push_back(answer->body);
      } else {
        events.push_back(event);
      }
    }
  }
  std::vector<std::string> answers;
  void hear(const Statement& statement) {
    member.received(to_text(statement));
    poll();
  }
  void order(Order::Step step, uint32_t revision = 1, uint64_t process = 77) {
    Order said;
    said.step = step;
    said.process = process;
    said.revision = revision;
    said.brief = "plan";
    said.zero_ns = 5;
    if (step == Order::Step::refused)
      said.error = Error{code::running_already, "gpu is running already", {}, {}, {}, {}};
    hear(said);
  }
  void prepare(uint32_t revision = 1) {
    hear(Brief{revision, "plan", "{}"});
    order(Order::Step::prepare, revision);
  }
  void run() {
    prepare();
    member.prepared(1, "{}");
    order(Order::Step::start);
    poll();
    REQUIRE(types() == std::vector<Type>{Type::prepare, Type::start});
    events.clear();
  }
  std::vector<Type> types() const {
    std::vector<Type> all;
    for (const Member::Event& event : events) all.push_back(event.type);
    return all;
  }

  Member member;
  State last;
  std::string in_turn; // states and streams, as they were said
  RunFailure stream;
  int states = 0, offers = 0;
  std::vector<Member::Event> events;
};

} // namespace

TEST_CASE("a member offers, prepares its brief, starts when it is told to, and is over after it was done") {
  Played gpu;
  CHECK(gpu.offers == 1);
  gpu.hear(Brief{1, "plan", "{}"});
  CHECK(gpu.events.empty()); // a brief alone is no order
  gpu.order(Order::Step::prepare);
  CHECK(gpu.types() == std::vector<Type>{Type::prepare});
  gpu.order(Order::Step::start);
  CHECK(gpu.types() == std::vector<Type>{Type::prepare}); // it is not ready
  gpu.member.prepared(1, "memory");
  gpu.poll();
  CHECK(gpu.last.step == State::Step::ready);
  CHECK(gpu.last.body == "memory");
  gpu.order(Order::Step::start);
  gpu.order(Order::Step::start);
  CHECK(gpu.types() == std::vector<Type>{Type::prepare, Type::start});
  CHECK(gpu.events[1].zero_ns == 5);
  gpu.member.finished("report");
  gpu.poll();
  CHECK(gpu.last.step == State::Step::done);
  CHECK_FALSE(gpu.last.error);
  gpu.order(Order::Step::over);
  CHECK(gpu.types().back() == Type::over);
  CHECK(!gpu.events.back().error);
}

TEST_CASE("a node that is done says why its part did not go well") {
  Played gpu;
  gpu.prepare();
  gpu.member.prepared(1, "memory");
  gpu.order(Order::Step::start);
  gpu.member.finished("report", "", Error{601, "every stream has failed", {}, {}, {}, {}});
  gpu.poll();
  CHECK(gpu.last.step == State::Step::done);
  REQUIRE(gpu.last.error);
  CHECK(gpu.last.error->what == "every stream has failed");
}

TEST_CASE(
    "a brief of a later revision takes the place of one that is not started, and an answer to the older is ignored") {
  Played gpu;
  gpu.prepare();
  gpu.prepare(2);
  CHECK(gpu.types() == std::vector<Type>{Type::prepare, Type::drop, Type::prepare});
  gpu.member.prepared(1, "");
  gpu.poll();
  CHECK(gpu.states == 0);
  gpu.member.unable(2, {701, "no room", {}, {}, {}, {}});
  gpu.poll();
  CHECK(gpu.last.step == State::Step::unable);
  CHECK(gpu.last.revision == 2);
  gpu.prepare(1); // lower
  gpu.prepare(2); // again
  CHECK(gpu.events.size() == 3);
  gpu.prepare(3);
  CHECK(gpu.types().back() == Type::prepare);
}

TEST_CASE("a process that has run follows no other revision and starts no second time") {
  Played gpu;
  gpu.run();
  gpu.prepare(2);
  gpu.order(Order::Step::start, 2);
  gpu.order(Order::Step::start, 1);
  CHECK(gpu.events.empty());
  CHECK(gpu.member.revision() == 1);
}

TEST_CASE("stop and failure are told once, and a failure again when it is another") {
  Played gpu;
  gpu.run();
  Order order;
  order.step = Order::Step::start;
  order.process = 77;
  order.revision = 1;
  order.brief = "plan";
  order.stop = true;
  gpu.hear(order);
  gpu.hear(order);
  CHECK(gpu.types() == std::vector<Type>{Type::stop});
  order.failure = RunFailure{{601, "it failed", {}, {}, {}, {}}, "edge", "main", 9, false};
  gpu.hear(order);
  gpu.hear(order);
  order.failure->index = 8;
  gpu.hear(order);
  order.failure->hopeless = true;
  gpu.hear(order);
  CHECK(gpu.types() == std::vector<Type>{Type::stop, Type::fail, Type::fail, Type::fail});
  CHECK(gpu.events[2].failure->index == 8);
}

TEST_CASE("its own failure is said with its name, and all that holds is said again when the coordinator is back") {
  Played gpu;
  gpu.run();
  gpu.member.away(0);
  gpu.member.failed({{601, "it failed", {}, {}, {}, {}}, "", "main", 3, false});
  gpu.poll();
  CHECK(!gpu.last.failure); // nobody hears it
  gpu.member.back();
  gpu.poll();
  CHECK(gpu.offers == 2);
  REQUIRE(gpu.last.failure);
  CHECK(gpu.last.failure->node == "gpu");
  CHECK(gpu.last.failure->index == 3);
}

TEST_CASE("MR0804: a member whose coordinator is away for 30 s fails its run and is over") {
  Played gpu;
  gpu.run();
  gpu.member.away(7);
  CHECK(gpu.member.next_timer() == 30'000'000'007);
  gpu.member.on_time(30'000'000'006);
  gpu.poll();
  CHECK(gpu.events.empty());
  gpu.member.on_time(30'000'000'007);
  gpu.poll();
  CHECK(gpu.types() == std::vector<Type>{Type::fail, Type::over});
  CHECK(gpu.events[0].failure->hopeless);
  CHECK(gpu.events[1].error->code == code::node_away);
  CHECK(gpu.member.next_timer() == INT64_MAX);
}

TEST_CASE("MR0806: another coordinator ends a member that follows a brief, and is followed by one that does not") {
  Played waiting;
  waiting.order(Order::Step::wait, 0, 77);
  waiting.order(Order::Step::wait, 0, 78);
  CHECK(waiting.events.empty());
  Played gpu;
  gpu.run();
  gpu.order(Order::Step::wait, 0, 78);
  CHECK(gpu.types() == std::vector<Type>{Type::fail, Type::over});
  CHECK(gpu.events[1].error->code == code::began_again);
}

TEST_CASE("a member that is refused, or hears nonsense, is over with the reason, and says nothing more") {
  Played refused;
  refused.order(Order::Step::refused);
  CHECK(refused.types() == std::vector<Type>{Type::over});
  CHECK(refused.events[0].error->code == code::running_already);
  refused.member.back();
  refused.poll();
  CHECK(refused.offers == 1);
  Played gpu;
  gpu.member.received("nonsense");
  gpu.poll();
  CHECK(gpu.events[0].error->code == code::other_version);
}

TEST_CASE("a member is asked about its handlers, and answers each question as often as it comes") {
  Played played;
  for (int times = 1; times <= 2; ++times) {
    played.hear(Question{7, "what"});
    REQUIRE(played.events.size() == static_cast<size_t>(times));
    CHECK(played.events.back().type == Type::question);
    CHECK(played.events.back().number == 7);
    CHECK(played.events.back().text == "what");
    played.member.answered(7, "this");
    played.poll();
    CHECK(played.answers.size() == static_cast<size_t>(times));
  }
  played.member.away(0);
  played.member.answered(7, "lost");
  played.poll();
  CHECK(played.answers.size() == 2);
}

TEST_CASE("a member hears requests to its node, and replies to its process alone") {
  Played played;
  const std::string node = "gpu";
  played.hear(Request{"edge", node, 1, 5, "this"});
  REQUIRE(played.events.size() == 1);
  CHECK(played.events.back().type == Type::request);
  CHECK(played.events.back().request.number == 5);
  played.hear(Request{"edge", "cloud", 1, 6, "this"});
  played.hear(Reply{node, 999'999, 7, "of a process before"});
  played.hear(Reply{"cloud", 7, 7, "of another node"});
  CHECK(played.events.size() == 1);
}

TEST_CASE("2.6: a run that fails before its start is told with the state") {
  Played played;
  played.prepare();
  played.member.failed(RunFailure{Error{601, "the camera is gone", {}, {}, {}, {}}, "", "main", 0, false});
  played.poll();
  CHECK(!played.last.failure); // it is not ready yet
  played.member.prepared(1, "{}");
  played.poll();
  REQUIRE(played.last.failure);
  CHECK(played.last.step == State::Step::ready);
  CHECK(played.last.failure->node == "gpu");
  played.prepare(2); // another part, which has not failed
  played.member.prepared(2, "{}");
  played.poll();
  CHECK(!played.last.failure);
}

TEST_CASE("2.8: a member says what its run waits for while it runs, and tells what others wait for when that changes") {
  Played gpu;
  gpu.member.waits({"too early"});
  gpu.run();
  CHECK(gpu.last.waits.empty());
  gpu.member.waits({"a line"});
  gpu.poll();
  CHECK(gpu.last.waits == std::vector<std::string>{"a line"});
  Order order{Order::Step::start, 77, 1, "plan", 5, false, {}, {}, {"on edge: it is late"}};
  for (int times = 0; times < 2; ++times) gpu.hear(order);
  REQUIRE(gpu.types() == std::vector<Type>{Type::waits});
  CHECK(gpu.events[0].lines == order.waits);
  order.waits.clear();
  gpu.hear(order);
  REQUIRE(gpu.events.size() == 2);
  CHECK(gpu.events[1].lines.empty());
  gpu.member.finished("{}");
  gpu.poll();
  CHECK(gpu.last.waits.empty());
}

TEST_CASE("B11: a member says that a stream has failed before its state, and ends one that failed elsewhere once") {
  Played gpu;
  gpu.prepare();
  gpu.member.stream_failed({{601, "it failed", {}, {}, {}, {}}, "", "hall", 3, false});
  gpu.poll();
  CHECK(gpu.in_turn == "");
  gpu.member.prepared(1, "{}");
  gpu.poll();
  CHECK(gpu.in_turn == "stream state ");
  CHECK(gpu.stream.node == "gpu");
  gpu.member.stream_failed({{601, "it failed", {}, {}, {}, {}}, "", "hall", 9, false, 1});
  gpu.member.stream_failed({{601, "it failed", {}, {}, {}, {}}, "", "hall", 2, false}); // by a slower thread
  gpu.poll();
  CHECK(gpu.stream.epoch == 1);
  gpu.in_turn.clear();
  const StreamOver over{1, "plan", {{601, "it failed", {}, {}, {}, {}}, "edge", "yard", 7, false}};
  gpu.hear(over); // it is said again at the start
  CHECK(gpu.types() == std::vector<Type>{Type::prepare});
  gpu.order(Order::Step::start);
  gpu.in_turn.clear();
  gpu.events.clear();
  StreamOver earlier = over, later = over, other = over, again = over;
  earlier.failure.index = 5;
  later.failure.index = 8;
  other.revision = 2;
  again.failure.index = 30;
  again.failure.epoch = 1; // the stream had begun anew
  for (const StreamOver& one : {other, over, over, later, earlier, again, earlier, again}) gpu.hear(one);
  REQUIRE(gpu.types() == std::vector<Type>{Type::fail_stream, Type::fail_stream, Type::fail_stream});
  CHECK(gpu.events[0].failure->index == 7);
  CHECK(gpu.events[1].failure->index == 5);
  CHECK(gpu.events[2].failure->index == 30);
  gpu.member.finished("report");
  gpu.poll();
  gpu.member.away(0);
  gpu.in_turn.clear();
  gpu.member.back();
  gpu.poll();
  CHECK(gpu.in_turn == "stream state ");
  CHECK(gpu.last.step == State::Step::done);
  gpu.hear(StreamOver{1, "plan", {over.failure.error, "edge", "gate", 1, false}}); // after its end
  CHECK(gpu.types().back() == Type::fail_stream);
}

TEST_CASE("7.9: a member says once that the clocks at its node have ended, and tells once that those of all have") {
  Played gpu;
  gpu.member.clocks_over(); // before the start it has none
  gpu.poll();
  CHECK(gpu.states == 0);
  gpu.run();
  const int said = static_cast<int>(gpu.states);
  gpu.member.clocks_over();
  gpu.member.clocks_over();
  gpu.poll();
  CHECK(static_cast<int>(gpu.states) == said + 1);
  CHECK(gpu.last.clocks_over);
  Order order;
  order.step = Order::Step::start;
  order.process = 77;
  order.revision = 1;
  order.brief = "plan";
  order.clocks_over = true;
  gpu.hear(order);
  gpu.hear(order);
  CHECK(gpu.types() == std::vector<Type>{Type::clocks_over});
}

TEST_CASE("a member knows which nodes are missing until the start") {
  Played gpu;
  CHECK(gpu.member.missing().empty());
  Order order;
  order.process = 77;
  order.waits = {"cloud"};
  gpu.hear(order);
  CHECK(gpu.member.missing() == std::vector<std::string>{"cloud"});
  gpu.run();
  CHECK(gpu.member.missing().empty());
}

TEST_CASE("MR0804: a member that gives its coordinator up says by which fault that was away") {
  Played gpu;
  gpu.run();
  gpu.member.away(0, "the peer does not answer pings");
  gpu.member.on_time(30'000'000'000);
  gpu.poll();
  REQUIRE(gpu.types().back() == Type::over);
  REQUIRE(gpu.events.back().error);
  CHECK(gpu.events.back().error->code == code::node_away);
  CHECK(gpu.events.back().error->notes.back() == "the peer does not answer pings");
}

} // namespace millrace::fleet
