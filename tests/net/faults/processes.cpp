// A peer's process that is stopped and continued loses and doubles nothing; one that is killed is known for gone.
#include <signal.h>
#include <stdlib.h>

#include <filesystem>

#include "tests/net/faults/measure.h"
#include "tests/net/faults/peer.h"

using namespace millrace;
using namespace millrace::net;
using namespace millrace::net::test;

namespace {

struct TemporaryFolder {
  TemporaryFolder() {
    std::string text = (std::filesystem::temp_directory_path() / "millrace-faults-XXXXXX").string();
    REQUIRE(::mkdtemp(text.data()) != nullptr);
    path = text;
  }
  ~TemporaryFolder() { std::filesystem::remove_all(path); }
  std::string path;
};

// This process's node, which dials the other one's.
class Here {
 public:
  Here()
      : own(Road::tls),
        sender(contents_to_peer(), kPeerDepth, progress),
        reader(contents_from_peer(), kPeerDepth, progress) {}

  void dial(const PeerProcess& peer) {
    node = std::make_unique<Node>(own, peer.id(), progress);
    node->options.endpoints = {parse_endpoint("127.0.0.1:" + std::to_string(peer.port()))};
    node->add_link();
    node->session->add(plan_of(0, 1, kPeerDepth, contents_to_peer()), sender);
    node->session->add(plan_of(1, 1, kPeerDepth, contents_from_peer()), reader);
    node->reactor.start();
  }
  void allow(uint64_t parcels) {
    sender.allowed = parcels;
    node->reactor.ring();
  }
  bool is_told(EventType type, uint64_t times) {
    return progress.wait([&] { return node->events.count(type) >= times; }, 30 * kSecond);
  }

  Progress progress;
  Credentials own;
  Sender sender;
  Reader reader;
  std::unique_ptr<Node> node;
};

} // namespace

TEST_CASE("A process that is stopped for 1 s, or until it is away, and is continued loses and doubles nothing") {
  for (const int64_t stopped_ms : {int64_t{1000}, int64_t{is_long() ? 5000 : 3500}}) {
    CAPTURE(stopped_ms);
    const TemporaryFolder folder;
    Here here;
    PeerProcess peer(folder.path, 0, here.own.id, 0);
    here.dial(peer);
    here.allow(UINT64_MAX);
    peer.allow(UINT64_MAX);
    REQUIRE(here.progress.wait([&] { return here.reader.arrived > 50 && here.sender.acknowledged > 50; }));
    const auto& events = here.node->events;
    peer.signal(SIGSTOP);
    const int64_t begun_ns = monotonic_ns();
    if (stopped_ms > 3000) {
      CHECK(here.is_told(EventType::suspect, 1));
      CHECK(here.is_told(EventType::away, 1));
      const double away_s = static_cast<double>(events.first(EventType::away)->at_ns - begun_ns) / 1e9;
      CHECK(away_s >= 2.4);
      CHECK((away_s < 4 || !kMeasures));
    }
    here.progress.wait([] { return false; }, begun_ns + stopped_ms * kMillisecond - monotonic_ns());
    const uint64_t arrived = here.reader.arrived, acknowledged = here.sender.acknowledged;
    peer.signal(SIGCONT);
    const int64_t continued_ns = monotonic_ns();
    CHECK(here.progress.wait(
        [&] { return here.reader.arrived > arrived + 50 && here.sender.acknowledged > acknowledged + 50; }));
    std::printf("stopped %d ms: flowing again after %.0f ms\n", static_cast<int>(stopped_ms),
                static_cast<double>(monotonic_ns() - continued_ns) / 1e6);
    CHECK((stopped_ms > 3000 || events.count(EventType::away) == 0));
    CHECK(events.count(EventType::met) == 1);
    // Everything that was given arrives, once.
    here.allow(here.sender.given);
    here.node->ask([](Session&) { return 0; });
    const uint64_t given = here.sender.given;
    CHECK(here.progress.wait([&] { return here.sender.acknowledged == given; }));
    const PeerProcess::Counts counts = peer.counts();
    CHECK(counts.is_right);
    CHECK(counts.arrived == given);
    CHECK(counts.met == 1);
    CHECK(counts.lost + here.sender.lost == 0);
    CHECK(here.reader.broken.load() == nullptr);
    CHECK(here.sender.broken.load() == nullptr);
  }
}

TEST_CASE("A process that is killed and started anew is met as another one, and both ends count the same losses") {
  const TemporaryFolder folder;
  Here here;
  auto peer = std::make_unique<PeerProcess>(folder.path, 0, here.own.id, 0);
  here.dial(*peer);
  here.allow(UINT64_MAX);
  uint64_t first_index = 0, lost_here = 0;
  for (uint64_t round = 1; round <= 3; ++round) {
    CAPTURE(round);
    peer->allow(100);
    REQUIRE(here.is_told(EventType::met, round));
    REQUIRE(here.progress.wait([&] { return here.reader.last_index == first_index + 99; }));
    REQUIRE(here.progress.wait([&] { return here.sender.acknowledged > round * 50; }));
    CHECK(peer->counts().is_right);
    // The new process begins 57 indices later: its first parcel says that all before were left out.
    const uint64_t last = here.reader.last_index;
    here.reader.other_may_come = true;
    const uint16_t port = peer->port();
    const NodeId id = peer->id();
    peer->kill();
    first_index = last + 58;
    peer = std::make_unique<PeerProcess>(folder.path, port, here.own.id, first_index);
    CHECK(peer->id() == id);
    REQUIRE(here.is_told(EventType::met, round + 1));
    lost_here = here.sender.lost;
    CHECK(lost_here <= round * kPeerDepth);
  }
  peer->allow(100);
  REQUIRE(here.progress.wait([&] { return here.reader.last_index == first_index + 99; }));
  here.allow(here.sender.given);
  here.node->ask([](Session&) { return 0; });
  const uint64_t given = here.sender.given;
  REQUIRE(here.progress.wait([&] { return here.sender.acknowledged + here.sender.lost == given; }));
  CHECK(here.sender.lost == lost_here);
  const auto counted = here.node->ask([](Session& session) {
    return std::array{session.outgoing(0)->counts().lost, session.incoming(1)->counts().lost,
                      session.incoming(1)->counts().arrived, session.pairings()};
  });
  CHECK(counted[0] == lost_here);
  CHECK(counted[1] == 3 * 57); // no process told of the ticks between its predecessor's last and its own first
  CHECK(counted[2] == 400);
  CHECK(counted[3] == 4);
  CHECK(here.progress.wait([&] { return peer->counts().acknowledged == 100; }));
  const PeerProcess::Counts counts = peer->counts();
  CHECK(counts.is_right);
  CHECK(counts.last_index == given - 1);
  CHECK(here.reader.broken.load() == nullptr);
}
