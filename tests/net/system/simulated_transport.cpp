// The simulated network keeps the contract of the transports, so that a session in a simulation meets what it meets
// over sockets. Time is virtual.
#include <doctest/doctest.h>

#include <algorithm>
#include <memory>

#include "tests/net/sim/network.h"
#include "tests/net/system/transport_suite.h"
#include "tests/seed.h"

namespace millrace::net::test {
namespace {

// An end of a simulated connection, as a transport.
class SimulatedTransport : public Transport {
 public:
  explicit SimulatedTransport(std::unique_ptr<sim::End> end) : end_(std::move(end)) {
    end_->on_ready([this] { is_ready_ = true; });
  }

  Moved handshake() override { return has_failed() ? Moved::failed : Moved::some; }
  Transfer read(std::span<std::byte> room) override {
    if (has_failed()) return {Moved::failed, 0};
    if (room.empty()) return {Moved::some, 0};
    return transfer_of(end_->read(room), Moved::want_read);
  }
  Transfer write(std::span<const Bytes> pieces) override {
    if (has_failed()) return {Moved::failed, 0};
    pieces = pieces.first(std::min(pieces.size(), kPiecesMax));
    if (std::all_of(pieces.begin(), pieces.end(), [](Bytes piece) { return piece.empty(); })) return {Moved::some, 0};
    return transfer_of(end_->write(pieces), Moved::want_write);
  }
  Moved shut() override {
    if (has_failed()) return Moved::failed;
    end_->shut();
    return Moved::some;
  }

  int descriptor() const override { return -1; }
  bool checks_bytes() const override { return true; } // nothing damages them
  const NodeId* peer() const override { return nullptr; }
  Trouble trouble() const override { return has_failed() ? Trouble::connection : Trouble::none; }
  const std::string& why() const override { return why_; }

  uint64_t number() const { return end_->number(); }
  bool is_ready() const { return is_ready_; }
  void forget_ready() { is_ready_ = false; }

 private:
  bool has_failed() const { return !why_.empty(); }
  Transfer transfer_of(sim::Transfer transfer, Moved blocked) {
    switch (transfer.moved) {
      case sim::Moved::some: return {Moved::some, transfer.bytes};
      case sim::Moved::would_block: return {blocked, transfer.bytes};
      case sim::Moved::closed: return {Moved::closed, transfer.bytes};
      case sim::Moved::failed: break;
    }
    why_ = "the peer closed the connection without ending the stream";
    return {Moved::failed, transfer.bytes};
  }

  std::unique_ptr<sim::End> end_;
  bool is_ready_ = false;
  std::string why_;
};

constexpr sim::Address kDiallerAddress = 1, kListenerAddress = 2;

struct SimulatedWorld {
  device::VirtualTime time;
  sim::Network network{time, Random(random_seed())};

  Ends connect() {
    Ends ends;
    network.listen(kListenerAddress, this, [&](std::unique_ptr<sim::End> end) {
      ends.right = std::make_unique<SimulatedTransport>(std::move(end));
    });
    network.dial(kDiallerAddress, kListenerAddress, [&](std::unique_ptr<sim::End> end) {
      REQUIRE(end);
      ends.left = std::make_unique<SimulatedTransport>(std::move(end));
    });
    while (!ends.left || !ends.right) REQUIRE(time.step());
    network.unlisten(kListenerAddress, this);
    return ends;
  }

  // Fails the test if the network calls none of them although one could go on: no event is left then.
  void wait(std::initializer_list<Waiting> list) {
    const auto end_of = [](const Waiting& waiting) { return static_cast<SimulatedTransport*>(&waiting.end); };
    for (const Waiting& waiting : list) end_of(waiting)->forget_ready();
    const auto is_ready = [&](const Waiting& waiting) { return waiting.waits() && end_of(waiting)->is_ready(); };
    while (std::none_of(list.begin(), list.end(), is_ready)) REQUIRE(time.step());
  }
};

Way simulated_way(const std::string& name, const sim::Line& line) {
  const auto world = std::make_shared<SimulatedWorld>();
  world->network.line(kDiallerAddress, kListenerAddress) = line;
  world->network.line(kListenerAddress, kDiallerAddress) = line;
  Way way;
  way.name = name;
  way.connect = [world] { return world->connect(); };
  way.wait = [world](std::initializer_list<Waiting> list) { world->wait(list); };
  way.reset = [world](std::unique_ptr<Transport> end) {
    world->network.cut(static_cast<SimulatedTransport&>(*end).number(), 0, 0);
  };
  way.checks_bytes = true;
  way.has_descriptor = false;
  return way;
}

} // namespace

TEST_CASE("a simulated connection keeps the contract") { check_contract(simulated_way("simulated", {})); }

TEST_CASE("a simulated connection that is slow, jittered and sliced keeps the contract") {
  sim::Line line;
  line.latency_ns = 20 * kMillisecond;
  line.jitter_ns = 30 * kMillisecond;
  line.bytes_per_second = 10'000'000;
  line.buffer_bytes = 128 * kKiB; // the suite writes up to 100,000 bytes that nobody reads yet
  line.slice_most = 5000;
  check_contract(simulated_way("slow, jittered and sliced", line));
}

} // namespace millrace::net::test
