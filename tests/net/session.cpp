// A session and its peer: the table of what may come when, greetings and their refusals, cuts, and leaving.
#include "net/session.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <string>

#include "tests/net/talk.h"
#include "tests/net/two_nodes.h"

namespace millrace::net {
namespace {

using test::Buffer;
using test::Contents;
using test::TwoNodes;

using test::exact;
using test::good_record;
using test::kPairing;
using test::Talk;

enum class Where : uint8_t { down, dialling, greeting_of_dialler, greeting_of_accepted, up, closing };

// A session with this lane in this state; false if there is no such state.
bool reach(Talk& talk, Where where, uint32_t lane) {
  const bool dials = talk.options.dials;
  if (where == Where::greeting_of_accepted && (dials || lane != 0)) return false;
  if ((where == Where::dialling || where == Where::greeting_of_dialler) && !dials) return false;
  if (where == Where::up || where == Where::closing) {
    talk.come_up(lane == 1);
    if (where == Where::up) return true;
    talk.feed(lane, good_record(talk, RecordType::hello, lane)); // refused, and not said yet
    talk.events();
    return true;
  }
  if (where == Where::down) return true;
  if (lane == 1) talk.come_up();
  if (where == Where::greeting_of_accepted) {
    REQUIRE(talk.session.accept(talk.hello(), true, talk.now) == Fault::none);
  } else if (where == Where::greeting_of_dialler) {
    talk.dial(lane);
  } else {
    talk.session.on_time(talk.now);
  }
  talk.events();
  return true;
}

bool may_come(Where where, uint32_t lane, RecordType type) {
  if (type == RecordType::refuse) return true;
  if (where == Where::greeting_of_dialler) return type == RecordType::welcome;
  if (lane == 0)
    return type == RecordType::state || type == RecordType::ping || type == RecordType::pong ||
           type == RecordType::go_away || type == RecordType::message;
  return type == RecordType::open || type == RecordType::tick || type == RecordType::data || type == RecordType::end ||
         type == RecordType::change;
}

void check_cell(bool dials, Where where, uint32_t lane, RecordType type) {
  INFO((dials ? "dials" : "accepts") << ", state " << static_cast<int>(where) << ", lane " << lane << ", "
                                     << name_of(type));
  Talk talk(dials);
  if (!reach(talk, where, lane)) return;
  if (type == RecordType::data && where == Where::up && lane == 1) talk.feed(1, good_record(talk, RecordType::tick, 1));
  const bool was_up = talk.session.is_up(lane), was_connected = talk.session.is_connected(lane);
  talk.feed(lane, good_record(talk, type, lane));
  const std::vector<EventType> events = talk.events();
  const auto told = [&](EventType event) { return std::count(events.begin(), events.end(), event) > 0; };
  if (where == Where::down || where == Where::dialling || where == Where::closing) {
    CHECK_MESSAGE(events.empty(), "nothing is read");
    CHECK(talk.session.is_up(lane) == was_up);
    CHECK(talk.session.is_connected(lane) == was_connected);
  } else if (!may_come(where, lane, type)) {
    CHECK(told(EventType::refused));
    CHECK(talk.fault == Fault::unexpected);
    CHECK(talk.hear(lane).back() == RecordType::refuse);
    CHECK_MESSAGE(!talk.session.is_connected(lane), "once the refusal was written");
  } else if (type == RecordType::refuse) {
    CHECK(told(EventType::was_refused));
    CHECK(told(EventType::close));
    CHECK(talk.fault == Fault::leaving);
    CHECK(!talk.session.is_connected(lane));
  } else {
    CHECK(!told(EventType::refused));
    CHECK_MESSAGE(talk.session.is_up(lane), "it is up, or stays so");
  }
}

// A refusal by the accepting side.
Fault answer(Talk& talk, const Hello& hello) {
  const Fault fault = talk.session.accept(hello, true, talk.now);
  if (fault != Fault::lane) CHECK(talk.session.is_connected(hello.lane) == (fault == Fault::none));
  return fault;
}

} // namespace

TEST_CASE("each type of record in each state of a connection is taken as the table says, or refused as unexpected") {
  int cells = 0;
  for (const bool dials : {false, true})
    for (const Where where : {Where::down, Where::dialling, Where::greeting_of_dialler, Where::greeting_of_accepted,
                              Where::up, Where::closing})
      for (const uint32_t lane : {0u, 1u})
        for (uint8_t type = 1; type <= kRecordTypeLast; ++type, ++cells)
          check_cell(dials, where, lane, static_cast<RecordType>(type));
  CHECK(cells == 2 * 6 * 2 * kRecordTypeLast);
}

TEST_CASE("a side that takes more than 5 s to greet is let go, and dialled again") {
  Talk talk(true);
  talk.dial(0);
  talk.session.on_time(talk.now + kGreetingNs - 1);
  CHECK(talk.session.is_connected(0));
  CHECK(talk.session.next_timer(talk.now) == talk.now + kGreetingNs);
  talk.now += kGreetingNs;
  talk.session.on_time(talk.now);
  CHECK(talk.events() == std::vector{EventType::refused, EventType::close});
  CHECK(talk.fault == Fault::slow_greeting);
  const int64_t next = talk.session.next_timer(talk.now);
  CHECK(next > talk.now + kRedialFirstNs / 2);
  CHECK(next <= talk.now + kRedialFirstNs);
  Talk other(false);
  REQUIRE(other.session.accept(other.hello(), true, other.now) == Fault::none);
  other.session.on_time(other.now + kGreetingNs);
  CHECK(other.told(EventType::close));
  CHECK(!other.session.is_connected(0));
}

TEST_CASE("the highest version of both ranges is chosen, and ranges that do not meet are refused") {
  Self self;
  self.version_least = 2;
  self.version_most = 4;
  const auto chosen = [&](uint16_t least, uint16_t most) {
    Talk talk(false, self);
    Hello hello = talk.hello();
    hello.version_least = least;
    hello.version_most = most;
    const Fault fault = answer(talk, hello);
    return fault == Fault::none ? static_cast<int>(talk.session.version()) : -static_cast<int>(fault);
  };
  CHECK(chosen(1, 1) == -static_cast<int>(Fault::version)); // older
  CHECK(chosen(5, 9) == -static_cast<int>(Fault::version)); // newer
  CHECK(chosen(1, 2) == 2);
  CHECK(chosen(1, 3) == 3);
  CHECK(chosen(3, 3) == 3);
  CHECK(chosen(2, 4) == 4);
  CHECK(chosen(4, 9) == 4);
  const auto taken = [&](uint16_t least, uint16_t most) {
    Talk talk(true, self);
    talk.dial(0);
    Hello hello = talk.hello(0, kPairing);
    hello.version_least = least;
    hello.version_most = most;
    talk.welcome(0, hello);
    talk.events();
    return talk.session.is_up(0) ? Fault::none : talk.fault;
  };
  CHECK(taken(2, 2) == Fault::none);
  CHECK(taken(4, 4) == Fault::none);
  CHECK(taken(1, 1) == Fault::version);
  CHECK(taken(5, 5) == Fault::version);
  CHECK_MESSAGE(taken(2, 3) == Fault::version, "a WELCOME says one version");
}

TEST_CASE(
    "a side that is dialled by another version, or one that needs a feature, tells its owner with both versions") {
  Self self;
  self.version_least = 2;
  self.version_most = 4;
  Talk talk(false, self);
  const auto refused = [&](const Hello& hello) {
    const Fault fault = answer(talk, hello);
    CHECK(talk.told(EventType::refused));
    CHECK(talk.fault == fault);
    return std::string(talk.session.refusal(fault));
  };
  Hello hello = talk.hello();
  hello.version_least = hello.version_most = 1;
  CHECK(refused(hello) ==
        "the two nodes have no protocol version in common: the one that dials speaks mrl/1, the other "
        "one mrl/2 to mrl/4");
  hello.version_most = 4;
  hello.mandatory = 1;
  CHECK(refused(hello) == sentence_of(Fault::feature));
  hello.lane = 1; // a data connection belongs to a control connection, of which the owner has heard
  CHECK(answer(talk, hello) == Fault::feature);
  CHECK(talk.events().empty());
}

TEST_CASE("features are those of both sides, and a mandatory one that the other lacks is refused") {
  Self self;
  self.features = 0b0111;
  self.mandatory = 0b0001;
  const auto common = [&](uint64_t features, uint64_t mandatory) {
    Talk talk(false, self);
    Hello hello = talk.hello();
    hello.features = features;
    hello.mandatory = mandatory;
    const Fault fault = answer(talk, hello);
    return fault == Fault::none ? static_cast<int>(talk.session.features()) : -static_cast<int>(fault);
  };
  CHECK(common(0b0001, 0) == 0b0001);
  CHECK(common(0b1011, 0b0010) == 0b0011); // an unknown optional one is ignored
  CHECK(common(0b1001, 0b1000) == -static_cast<int>(Fault::feature));
  CHECK(common(0b0110, 0) == -static_cast<int>(Fault::feature));
  Talk talk(true, self);
  talk.dial(0);
  Hello hello = talk.hello(0, kPairing);
  hello.features = 0b1001; // one that was not offered
  talk.welcome(0, hello);
  CHECK(talk.told(EventType::refused));
  CHECK(talk.fault == Fault::feature);
}

TEST_CASE("another node, another run and another plan are refused, on both sides") {
  const auto check = [](auto change, Fault expected) {
    Talk accepting(false), dialling(true);
    Hello hello = accepting.hello();
    change(hello);
    CHECK(answer(accepting, hello) == expected);
    dialling.dial(0);
    hello = dialling.hello(0, kPairing);
    change(hello);
    dialling.welcome(0, hello);
    CHECK(dialling.told(EventType::refused));
    CHECK(dialling.fault == expected);
  };
  check([](Hello& hello) { hello.node[31] = std::byte{1}; }, Fault::node);
  check([](Hello& hello) { ++hello.run; }, Fault::plan);
  check([](Hello& hello) { hello.brief[0] = std::byte{1}; }, Fault::plan);
  check([](Hello& hello) { hello.lane = 2; }, Fault::lane);
  Talk talk(true);
  talk.dial(0);
  talk.welcome(0, talk.hello(0, 0));
  CHECK(talk.told(EventType::refused));
  CHECK_MESSAGE(talk.fault == Fault::session, "a WELCOME names a pairing");
}

TEST_CASE("a second process with the peer's identity is refused while the first is heard") {
  Talk talk(false);
  talk.come_up();
  Hello other = talk.hello();
  other.session = 99;
  CHECK(talk.session.accept(other, true, talk.now) == Fault::running_already);
  CHECK(talk.session.is_up(0));
  talk.now += kSuspectAfterNs;
  CHECK(talk.session.accept(other, true, talk.now) == Fault::none);
  CHECK(!talk.told(EventType::met));
  talk.feed(0, talk.ping());
  CHECK(talk.told(EventType::met));
  CHECK(talk.session.pairings() == 2);
}

TEST_CASE("a data connection of a pairing that is over, or that nobody had, is refused as stale") {
  Talk talk(false);
  CHECK(talk.session.accept(talk.hello(1, kPairing), true, talk.now) == Fault::stale);
  CHECK(talk.session.accept(talk.hello(1, 0), true, talk.now) == Fault::stale);
  talk.come_up(true);
  CHECK(talk.session.accept(talk.hello(1, talk.pairing + 2), true, talk.now) == Fault::stale);
  Hello other = talk.hello(1, talk.pairing);
  other.session = 99;
  CHECK(talk.session.accept(other, true, talk.now) == Fault::stale);
  CHECK_MESSAGE(talk.session.is_up(1), "the one that was there stays");
  Talk another(true);
  another.come_up();
  another.dial(1);
  Hello welcome = another.hello(1, kPairing);
  ++welcome.connection;
  another.welcome(1, welcome);
  CHECK(another.told(EventType::refused));
  CHECK_MESSAGE(another.fault == Fault::lane, "a WELCOME names the connection over which it goes");
  Talk dialling(true);
  dialling.come_up();
  dialling.dial(1);
  dialling.welcome(1, dialling.hello(1, kPairing + 2));
  CHECK(dialling.told(EventType::refused));
  CHECK(dialling.fault == Fault::stale);
}

TEST_CASE("a second connection of one session takes the place of the first") {
  Talk talk(false);
  talk.come_up(true);
  REQUIRE(talk.giver.make());
  talk.feed(1, good_record(talk, RecordType::open, 1));
  talk.feed(1, Bytes(good_record(talk, RecordType::tick, 1)).first(30)); // half of a record
  REQUIRE(talk.session.accept(talk.hello(1, talk.pairing), true, talk.now) == Fault::none);
  CHECK(talk.hear(1) == std::vector{RecordType::welcome, RecordType::open});
  talk.feed(1, good_record(talk, RecordType::open, 1));
  CHECK(talk.hear(1) == std::vector{RecordType::tick, RecordType::data});
  REQUIRE(talk.session.accept(talk.hello(0, talk.pairing), true, talk.now) == Fault::none);
  talk.feed(0, talk.ping());
  CHECK(talk.events() == std::vector{EventType::back});
  CHECK(talk.session.is_up(1));
  CHECK(talk.session.pairings() == 1);
}

TEST_CASE("another control connection tells every state again, for the last one may be lost") {
  Talk talk(false);
  talk.come_up(true);
  talk.feed(1, good_record(talk, RecordType::open, 1));
  REQUIRE(talk.giver.make());
  talk.hear(1);
  talk.now += kStateEveryNs;
  const auto says_both = [&] {
    const std::vector<RecordType> types = talk.hear(0);
    if (std::count(types.begin(), types.end(), RecordType::state) == 0) return false;
    REQUIRE(types.back() == RecordType::state);
    ByteReader reader(talk.last);
    StateEntry first, second;
    REQUIRE(read_state_entry(reader, first) == Fault::none);
    if (reader.at_end() || read_state_entry(reader, second) != Fault::none) return false;
    return first.of_sender != second.of_sender && (first.sender.passed_ns == test::media_of(0)) == first.of_sender &&
           (second.sender.passed_ns == test::media_of(0)) == second.of_sender;
  };
  CHECK(says_both());
  talk.now += kStateEveryNs;
  CHECK(talk.hear(0).empty());
  REQUIRE(talk.session.accept(talk.hello(0, talk.pairing), true, talk.now) == Fault::none);
  talk.feed(0, talk.ping());
  talk.now += kStateEveryNs;
  CHECK(says_both());
}

TEST_CASE("the offset of another process is not that of the one before") {
  Talk talk(false);
  talk.come_up();
  talk.feed(0, talk.pong(talk.now, 0, 0));
  CHECK(talk.session.offset(talk.now).known);
  talk.now += kAwayAfterNs;
  talk.session.on_time(talk.now);
  talk.events();
  Hello other = talk.hello();
  other.session = 99;
  REQUIRE(talk.session.accept(other, true, talk.now) == Fault::none);
  CHECK(talk.session.offset(talk.now).known);
  talk.feed(0, talk.ping());
  CHECK(talk.told(EventType::met));
  CHECK(!talk.session.offset(talk.now).known);
}

TEST_CASE("a HELLO that comes late does not end the pairing of two living processes") {
  TwoNodes nodes({});
  nodes.add(0, 1, 4, {});
  nodes.begin(0);
  nodes.begin(1);
  nodes.pass(0); // dials; the HELLO lies there
  nodes.send(0, 0, SIZE_MAX);
  nodes.pass(kGreetingNs); // the dialling side has given it up
  nodes.pass(kSecond);
  REQUIRE(nodes.connections().size() == 2);
  nodes.send(0, 0, SIZE_MAX);
  nodes.listen(1);
  nodes.deliver(0, 0, SIZE_MAX);
  for (int n = 0; n < 3; ++n) nodes.way(0).giver->make();
  for (int n = 0; n < 9; ++n) {
    nodes.pass(kMillisecond);
    for (uint32_t lane : {0u, 1u}) {
      nodes.send(0, lane, SIZE_MAX);
      for (uint32_t i = 1; i < nodes.connections().size(); ++i) nodes.listen(i);
      nodes.deliver(1, lane, SIZE_MAX);
      nodes.send(1, lane, SIZE_MAX);
      nodes.deliver(0, lane, SIZE_MAX);
    }
  }
  REQUIRE(nodes.way(0).taker->arrived() == 3);
  nodes.listen(0);
  CHECK(nodes.last_answer() == Fault::none);
  nodes.run(8 * kSecond);
  CHECK(nodes.session(1).pairings() == 1);
  CHECK(nodes.session(0).pairings() == 1);
  CHECK(nodes.way(0).giver->lost() == 0);
  CHECK(nodes.is_all_there());
  CHECK(nodes.broken() == nullptr);
}

TEST_CASE("a refusal says why, to both sides") {
  Talk talk(true);
  talk.come_up(true);
  talk.feed(0, test::record_of(RecordType::refuse, test::body_of([](ByteWriter& writer) {
                                 write_farewell({Fault::plan, "shelf runs another plan"}, writer);
                               })));
  CHECK(talk.events() == std::vector{EventType::was_refused, EventType::close});
  CHECK(talk.fault == Fault::plan);
  CHECK(talk.sentence == "shelf runs another plan");
  CHECK(talk.session.next_timer(talk.now) > talk.now + kRedialFirstNs / 2);

  Talk other(false);
  other.come_up();
  other.feed(0, test::record_of(RecordType::ping, Buffer(kPingBytes + 1)));
  CHECK(other.events() == std::vector{EventType::refused, EventType::away});
  REQUIRE(other.hear(0).back() == RecordType::refuse);
  Farewell said;
  REQUIRE(read_farewell(other.last, said) == Fault::none);
  CHECK(said.code == Fault::length);
  CHECK(said.sentence == sentence_of(Fault::length));
  CHECK(other.events() == std::vector{EventType::close});

  std::array<std::byte, 1024> room;
  for (const bool checks_bodies : {false, true}) {
    const size_t size = write_refusal(Fault::node, sentence_of(Fault::node), checks_bodies, room);
    Inbox inbox;
    inbox.begin(checks_bodies);
    std::copy_n(room.begin(), size, inbox.room().begin());
    inbox.received(size);
    REQUIRE(inbox.next() == Inbox::Next::record);
    REQUIRE(read_farewell(inbox.body(), said) == Fault::none);
    CHECK(said.code == Fault::node);
  }
}

TEST_CASE("a refusal that the peer does not read is given up after a second") {
  Talk talk(false);
  talk.come_up();
  talk.feed(0, good_record(talk, RecordType::hello, 0));
  CHECK(talk.session.is_connected(0));
  talk.session.on_time(talk.now + kSecond);
  CHECK(!talk.session.is_connected(0));
  CHECK(talk.told(EventType::close));
}

TEST_CASE("however much a peer writes after it was refused, there is room to read it") {
  for (const uint32_t lane : {0u, 1u}) {
    Talk talk(false);
    talk.come_up(true);
    const Buffer garbage(kInboxBytes, std::byte{0x5A});
    for (int n = 0; n < 3; ++n) talk.feed(lane, garbage);
    CHECK(talk.told(EventType::refused));
    CHECK(talk.fault == Fault::head_checksum);
  }
}

TEST_CASE("a peer that is silent is suspect, then away; its connections are let go, and it is dialled again") {
  Talk talk(true);
  talk.come_up(true);
  talk.now += kSuspectAfterNs;
  talk.session.on_time(talk.now);
  CHECK(talk.events() == std::vector{EventType::suspect});
  talk.feed(0, talk.ping());
  CHECK(talk.events() == std::vector{EventType::there});
  talk.feed(1, good_record(talk, RecordType::tick, 1));
  talk.now += kAwayAfterNs;
  talk.session.on_time(talk.now);
  CHECK(talk.session.presence() == Presence::away);
  CHECK(!talk.session.is_connected(0));
  CHECK(!talk.session.is_connected(1));
  CHECK(talk.told(EventType::away));
  talk.session.on_time(talk.now);
  CHECK_MESSAGE(talk.events() == std::vector{EventType::dial}, "control alone; the data connection comes after it");
}

TEST_CASE("a dial that fails is tried again after 0.1 s, doubling to 5 s, each wait twice") {
  TwoNodes nodes({});
  nodes.begin(0);
  nodes.begin(1);
  nodes.let_dials_fail(true);
  std::vector<int64_t> waits;
  int64_t before = nodes.now_ns();
  for (int n = 0; n < 18; ++n) {
    nodes.pass(nodes.session(0).next_timer(nodes.now_ns()) - nodes.now_ns());
    waits.push_back(nodes.now_ns() - before);
    before = nodes.now_ns();
  }
  CHECK(waits[0] == 0);
  CHECK(waits[1] == 0);
  int64_t expected = kRedialFirstNs;
  for (size_t n = 2; n < waits.size(); ++n) {
    CHECK(waits[n] <= expected);
    CHECK(waits[n] > expected * 3 / 4 - 1);
    if (n % 2 == 1) expected = std::min(2 * expected, kRedialMaxNs);
  }
  CHECK(expected == kRedialMaxNs);
  nodes.let_dials_fail(false);
  nodes.run(6 * kSecond);
  CHECK(nodes.session(0).is_up(0));
  CHECK(nodes.session(0).is_up(1));
}

TEST_CASE("after an outage of up to 1 s a link flows again within 0.4 s, whatever came before") {
  TwoNodes nodes({});
  nodes.add(0, 1, 4, {});
  nodes.begin(0);
  nodes.begin(1);
  nodes.run(kSecond);
  int64_t longest_ns = 0;
  for (uint64_t turn = 0; turn < 300; ++turn) {
    CAPTURE(turn);
    const uint64_t drawn = test::mixed(turn);
    const auto below = [&](int shift, int64_t ns) { return static_cast<int64_t>(drawn >> shift & 255) * ns / 255; };
    nodes.run(below(0, 400 * kMillisecond)); // some were up for less than 0.1 s
    // A long outage before; and one connection learns of a cut before the other.
    const bool is_short = drawn >> 40 & 3;
    const int64_t away_ns = is_short ? below(8, kSecond) : kSecond + below(8, 5 * kSecond);
    const int64_t begun_ns = nodes.now_ns();
    nodes.let_dials_fail(true);
    const auto first = static_cast<uint32_t>(drawn >> 42 & 1);
    nodes.cut_both(first);
    for (int64_t late = below(16, 20 * kMillisecond); late > 0; late -= kMillisecond) nodes.pass(kMillisecond);
    nodes.cut_both(1 - first);
    while (nodes.now_ns() < begun_ns + away_ns) nodes.pass(kMillisecond);
    nodes.let_dials_fail(false);
    const uint64_t arrived = nodes.way(0).taker->arrived();
    const int64_t back_ns = nodes.now_ns();
    nodes.way(0).giver->make();
    while (nodes.way(0).taker->arrived() == arrived && nodes.now_ns() < back_ns + 9 * kSecond)
      nodes.run(kMillisecond, kMillisecond);
    if (is_short) longest_ns = std::max(longest_ns, nodes.now_ns() - back_ns);
  }
  // The steps of this test are 1 ms, and a link needs some of them.
  CHECK(longest_ns <= 410 * kMillisecond);
  CHECK(longest_ns > 300 * kMillisecond);
  nodes.run(kSecond);
  CHECK(nodes.is_all_there());
  CHECK(nodes.broken() == nullptr);
}

TEST_CASE("parcels arrive both ways, in order and each once, through cuts at any byte") {
  for (const bool checks_bodies : {false, true})
    for (uint64_t seed = 1; seed <= 20; ++seed) {
      INFO("seed " << seed);
      TwoNodes nodes({2, checks_bodies, seed});
      Contents contents;
      contents.values = 2;
      contents.bytes_max = 4000;
      nodes.add(0, 1, 3, contents);
      nodes.add(1, 1, 2, contents);
      nodes.add(1, 2, 4, {});
      nodes.begin(0);
      nodes.begin(1);
      for (uint64_t turn = 0; turn < 120; ++turn) {
        const uint64_t drawn = test::mixed(seed * 1000 + turn);
        nodes.pass(static_cast<int64_t>(drawn % 7) * kMillisecond);
        for (size_t i = 0; i < 3; ++i) nodes.way(i).giver->make(drawn >> 8 & 1 ? drawn % 3 : 0);
        nodes.exchange(1 + drawn % 3000);
        if (drawn % 5 == 0) nodes.send(drawn >> 9 & 1, 1 + (drawn >> 10 & 1), drawn >> 20 & 1023);
        if (drawn % 7 == 0) nodes.cut_both(static_cast<uint32_t>(drawn >> 11 & 3) % 3);
        if (drawn % 11 == 0) nodes.cut(drawn >> 12 & 1, static_cast<uint32_t>(drawn >> 13 & 3) % 3);
        if (drawn % 3) nodes.take_in_all();
      }
      nodes.run(12 * kSecond, 50 * kMillisecond);
      CHECK(nodes.is_all_there());
      CHECK(nodes.broken() == nullptr);
      CHECK(nodes.session(0).pairings() == 1);
      for (size_t i = 0; i < 3; ++i) {
        CHECK(nodes.way(i).giver->lost() == 0);
        CHECK(nodes.way(i).taker->arrived() == nodes.way(i).giver->made());
        CHECK(nodes.session(nodes.way(i).from).outgoing(nodes.way(i).plan.number)->counts().acknowledged ==
              nodes.way(i).taker->arrived());
      }
    }
}

TEST_CASE("another process is met anew, and what the one before had not acknowledged is lost") {
  TwoNodes nodes({});
  nodes.add(0, 1, 4, {});
  nodes.add(1, 1, 4, {});
  nodes.begin(0);
  nodes.begin(1);
  for (int n = 0; n < 10; ++n)
    for (size_t i : {0u, 1u}) nodes.way(i).giver->make();
  nodes.run(kSecond / 10);
  REQUIRE(nodes.is_all_there());
  nodes.begin(1);
  for (int n = 0; n < 10; ++n)
    for (size_t i : {0u, 1u}) nodes.way(i).giver->make();
  nodes.run(8 * kSecond, 50 * kMillisecond);
  CHECK(nodes.count(0, EventType::met) == 2);
  CHECK(nodes.session(0).pairings() == 2);
  CHECK(nodes.is_all_there());
  CHECK(nodes.broken() == nullptr);
  CHECK(nodes.way(1).taker->arrived() == 20);
  CHECK(nodes.session(0).incoming(1)->counts().lost == 2); // two ticks that nobody made: the index says so
}

TEST_CASE("the two clocks' offset is known after the first ping") {
  TwoNodes nodes({});
  nodes.begin(0);
  nodes.begin(1);
  nodes.run(kSecond);
  for (uint32_t side : {0u, 1u}) {
    const Heartbeat::Offset offset = nodes.session(side).offset(nodes.now_ns());
    REQUIRE(offset.known);
    CHECK(std::abs(offset.offset_ns) <= offset.error_ns);
  }
}

TEST_CASE("a node that leaves takes nothing new, and goes once all that both sides had sent has arrived") {
  for (const uint32_t side : {0u, 1u}) {
    CAPTURE(side);
    TwoNodes nodes({});
    nodes.add(0, 1, 8, {});
    nodes.add(1, 1, 8, {});
    nodes.begin(0);
    nodes.begin(1);
    for (int n = 0; n < 5; ++n)
      for (size_t i : {0u, 1u}) nodes.way(i).giver->make();
    nodes.run(20 * kMillisecond, kMillisecond);
    nodes.session(side).leave();
    const uint64_t given[] = {nodes.way(0).giver->given(), nodes.way(1).giver->given()};
    nodes.run(kSecond / 10);
    for (size_t i : {0u, 1u}) nodes.way(i).giver->make();
    nodes.run(5 * kSecond, 50 * kMillisecond);
    CHECK(nodes.count(1 - side, EventType::leaving) == 1);
    for (size_t i : {0u, 1u}) {
      CHECK(nodes.count(static_cast<uint32_t>(i), EventType::drained) == 1);
      CHECK(nodes.way(i).giver->given() == given[i]);
      CHECK(nodes.way(i).taker->arrived() == given[i]);
      CHECK(nodes.way(i).giver->acknowledged() == given[i]);
      CHECK(nodes.session(static_cast<uint32_t>(i)).next_timer(nodes.now_ns()) > nodes.now_ns() + 3600 * kSecond);
    }
    CHECK(nodes.broken() == nullptr);
  }
  Talk talk(false);
  talk.come_up();
  talk.session.leave();
  talk.feed(0, test::record_of(RecordType::go_away, test::body_of([](ByteWriter& writer) {
                                 write_farewell({Fault::drained, "all of it"}, writer);
                               })));
  talk.hear(0);
  talk.session.cut(0, talk.now);
  CHECK(talk.told(EventType::drained));
  CHECK_MESSAGE(answer(talk, talk.hello()) == Fault::leaving, "a peer that dials again learns that the node has left");
}

} // namespace millrace::net
