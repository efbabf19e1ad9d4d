// Counts operator new of this program: once a crossing is open, a session allocates nothing, whatever is cut.
//
// Parcels alone are under way: messages allocate (net/messages.h).
//
// malloc's other callers are not counted; the core has none. Nor has it a lock: tests/tidy refuses <mutex> there.
#include <doctest/doctest.h>

#include "cli/count_allocations.h"
#include "tests/net/two_nodes.h"

namespace millrace::net {
namespace {

using test::Contents;

// Two sessions whose bytes are carried straight from one into the other, so that only they could allocate.
struct Pair {
  static SessionOptions options(uint32_t side) {
    SessionOptions made;
    made.self.node[0] = static_cast<std::byte>(1 + side);
    made.peer[0] = static_cast<std::byte>(2 - side);
    made.self.session = 1 + side;
    made.dials = side == 0;
    made.seed = side;
    return made;
  }

  Pair() {
    for (uint16_t way = 0; way < 2; ++way) {
      sessions[way].add(test::plan_of(way, 1, 4, contents), givers[way]);
      sessions[1 - way].add(test::plan_of(way, 1, 4, contents), takers[way]);
    }
  }

  bool carry(uint32_t from, uint32_t lane, size_t slice) {
    bool moved = false;
    while (is_there[lane]) {
      const std::span<const Bytes> pieces = sessions[from].gather(lane, now);
      if (pieces.empty()) break;
      const std::span<std::byte> room = sessions[1 - from].room(lane);
      const size_t size = std::min({pieces[0].size(), room.size(), slice});
      std::memcpy(room.data(), pieces[0].data(), size);
      sessions[from].sent(lane, size, now);
      sessions[1 - from].received(lane, size, now);
      moved = true;
      look_at_events();
    }
    return moved;
  }

  void look_at_events() {
    for (uint32_t side : {0u, 1u})
      for (Event event; sessions[side].poll(event);) {
        if (event.type == EventType::dial) dial(event.lane);
        if (event.type == EventType::close) cut(event.lane);
        if (event.type == EventType::refused) ++refusals;
      }
  }

  void dial(uint32_t lane) {
    sessions[0].dialled(lane, true, now);
    std::array<std::byte, kHeadBytes + kHelloBytes + kCrcBytes> said;
    size_t size = 0;
    for (const Bytes piece : sessions[0].gather(lane, now)) {
      std::memcpy(said.data() + size, piece.data(), piece.size());
      size += piece.size();
    }
    sessions[0].sent(lane, size, now);
    Hello hello;
    is_there[lane] = read_hello(Bytes(said).subspan(kHeadBytes, kHelloBytes), hello) == Fault::none &&
                     sessions[1].accept(hello, true, now) == Fault::none;
    if (!is_there[lane]) sessions[0].cut(lane, now);
  }

  void cut(uint32_t lane) {
    is_there[lane] = false;
    for (Session& session : sessions) session.cut(lane, now);
  }

  void run(int rounds, size_t slice) {
    for (int n = 0; n < rounds; ++n) {
      now += kMillisecond;
      for (Session& session : sessions) session.on_time(now);
      look_at_events();
      for (test::Giver& giver : givers) giver.make(n % 5 == 0 ? 2 : 0);
      while (carry(0, 0, slice) | carry(1, 0, slice) | carry(0, 1, slice) | carry(1, 1, slice)) {
      }
      for (test::Taker& taker : takers)
        while (taker.take_in()) {
        }
    }
  }

  Contents contents{3, 2, 100'000};
  std::array<test::Giver, 2> givers{test::Giver(contents, 4), test::Giver(contents, 4)};
  std::array<test::Taker, 2> takers{test::Taker(contents, 4), test::Taker(contents, 4)};
  std::array<Session, 2> sessions{Session(options(0)), Session(options(1))};
  std::array<bool, 2> is_there{};
  int64_t now = kSecond;
  int refusals = 0;
};

} // namespace

TEST_CASE("once a crossing is open nothing is allocated, through cuts of either connection") {
  Pair pair;
  pair.run(5, SIZE_MAX);
  REQUIRE(pair.takers[0].arrived() > 0);
  const testing::AllocationCounter counter = cli::allocation_counter();
  const uint64_t before = counter.counted();
  counter.count(true);
  for (const size_t slice : {size_t{1'000'000}, size_t{1448}, size_t{9000}})
    for (int turn = 0; turn < 8; ++turn) {
      pair.run(30, slice);
      // In the middle of a record.
      const std::span<const Bytes> pieces = pair.sessions[0].gather(1, pair.now);
      if (!pieces.empty()) pair.sessions[0].sent(1, pieces[0].size() / 2, pair.now);
      pair.cut(turn % 3 == 2 ? 0 : 1);
      if (turn % 4 == 3) pair.cut(1);
    }
  pair.run(500, 65'536);
  counter.count(false);
  CHECK(counter.counted() == before);
  CHECK(pair.refusals == 0);
  for (size_t way : {0u, 1u}) {
    CHECK(pair.takers[way].arrived() > 600);
    CHECK(pair.takers[way].broken() == nullptr);
    CHECK(pair.givers[way].broken() == nullptr);
    CHECK(pair.givers[way].lost() == 0);
  }
}

} // namespace millrace::net
