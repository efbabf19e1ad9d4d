// Runs with threads of their own at both ends of a link: one thread carries bytes between the sessions, as a link's
// thread does, while the runs' workers put ticks in and take them out.
#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstring>
#include <thread>

#include "embed/link_ends.h"
#include "exec/run.h"
#include "tests/exec/harness.h"

namespace millrace::test {
namespace {

using namespace net;

// Two sessions whose bytes are carried straight from one into the other. Side 0 dials.
class Wire {
 public:
  explicit Wire(std::array<Compiled*, 2> runs) {
    const std::array<std::string, 2> names = {"home", "gpu"};
    for (size_t side : {0u, 1u}) {
      ends_[side] = embed::make_link_ends(runs[side]->live(), runs[side]->plan(), names[1 - side]);
      for (embed::LinkEnd& end : ends_[side])
        if (end.departure)
          sessions_[side].add(end.plan, *end.departure);
        else
          sessions_[side].add(end.plan, *end.arrival);
    }
  }

  // Moves all that can be moved now.
  void move() {
    now_ = std::chrono::steady_clock::now().time_since_epoch().count();
    for (Session& session : sessions_) session.on_time(now_);
    look_at_events();
    for (uint32_t lane : {0u, 1u})
      for (size_t from : {0u, 1u}) carry(from, lane);
  }
  void cut(uint32_t lane) {
    is_there_[lane] = false;
    for (Session& session : sessions_) session.cut(lane, now_);
  }
  void leave() {
    for (Session& session : sessions_) session.leave();
  }
  bool is_drained() const { return drained_ == 2; }
  uint64_t refusals() const { return refusals_; }
  const Session& session(size_t side) const { return sessions_[side]; }

 private:
  static SessionOptions options(uint32_t side) {
    SessionOptions made;
    made.self.node[0] = static_cast<std::byte>(1 + side);
    made.peer[0] = static_cast<std::byte>(2 - side);
    made.self.session = 1 + side;
    made.dials = side == 0;
    made.seed = side;
    return made;
  }

  void carry(size_t from, uint32_t lane) {
    while (is_there_[lane]) {
      const std::span<const Bytes> pieces = sessions_[from].gather(lane, now_);
      if (pieces.empty()) return;
      const std::span<std::byte> room = sessions_[1 - from].room(lane);
      const size_t size = std::min(pieces[0].size(), room.size());
      std::memcpy(room.data(), pieces[0].data(), size);
      sessions_[from].sent(lane, size, now_);
      sessions_[1 - from].received(lane, size, now_);
      look_at_events();
    }
  }

  void look_at_events() {
    for (size_t side : {0u, 1u})
      for (Event event; sessions_[side].poll(event);) {
        if (event.type == EventType::dial) dial(event.lane);
        if (event.type == EventType::close) cut(event.lane);
        if (event.type == EventType::refused) ++refusals_;
        if (event.type == EventType::drained) ++drained_;
      }
  }

  void dial(uint32_t lane) {
    sessions_[0].dialled(lane, true, now_);
    std::array<std::byte, kHeadBytes + kHelloBytes + kCrcBytes> said;
    size_t size = 0;
    for (const Bytes piece : sessions_[0].gather(lane, now_)) {
      std::memcpy(said.data() + size, piece.data(), piece.size());
      size += piece.size();
    }
    sessions_[0].sent(lane, size, now_);
    Hello hello;
    is_there_[lane] = read_hello(Bytes(said).subspan(kHeadBytes, kHelloBytes), hello) == Fault::none &&
                      sessions_[1].accept(hello, true, now_) == Fault::none;
    if (!is_there_[lane]) sessions_[0].cut(lane, now_);
  }

  std::array<std::vector<embed::LinkEnd>, 2> ends_; // before the sessions, which know them
  std::array<Session, 2> sessions_{Session(options(0)), Session(options(1))};
  std::array<bool, 2> is_there_{};
  int64_t now_ = 0;
  uint64_t refusals_ = 0;
  int drained_ = 0;
};

} // namespace

TEST_CASE("7.13: two runs with threads give over a link what one gives, through cuts of its data connection") {
  Pipeline pipeline(
      "t.count name=source count=1000 size=40 ! t.relay name=a add=1000 ! t.relay name=b log=b ! "
      "t.join name=c ! t.sink name=sink log=seen source. ! c.");
  const Ran expected = run(pipeline);
  for (graph::Handler& handler : pipeline.graph.handlers)
    handler.node = handler.name == "a" || handler.name == "b" ? "gpu" : "home";
  for (const uint32_t workers : {1u, 2u}) {
    CAPTURE(workers);
    Setup setup;
    setup.workers = workers;
    setup.nodes = {"home", "gpu"};
    Compiled home(pipeline, setup);
    setup.node = 1;
    Compiled gpu(pipeline, setup);
    Wire wire({&home, &gpu});
    home.live().start();
    gpu.live().start();
    uint64_t cuts = 0;
    while ((!home.live().finished() || !gpu.live().finished()) && wire.refusals() == 0) {
      wire.move();
      if (wire.session(0).outgoing(0)->counts().sent / 200 > cuts) {
        wire.cut(1);
        ++cuts;
      }
      std::this_thread::yield();
    }
    CHECK(cuts >= 4);
    CHECK(wire.refusals() == 0);
    if (wire.refusals() > 0)
      for (Compiled* compiled : {&home, &gpu}) compiled->live().interrupt();
    wire.leave();
    while (!wire.is_drained() && wire.refusals() == 0) wire.move();
    CHECK(wire.session(0).pairings() == 1);
    const Ran at_home = home.wait(), on_gpu = gpu.wait();
    REQUIRE(at_home.error.what == "");
    REQUIRE(on_gpu.error.what == "");
    CHECK(at_home.seen("seen") == expected.seen("seen"));
    CHECK(on_gpu.seen("b") == expected.seen("b"));
  }
}

} // namespace millrace::test
