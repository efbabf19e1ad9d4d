// Implements the two ends of a crossing that has no run, and the nodes that they are on; see net_pair.h.
#include "bench/net_pair.h"

#include <unistd.h>

#include <atomic>
#include <chrono>
#include <ctime>
#include <optional>
#include <semaphore>
#include <stdexcept>

#include "bench/measure.h"
#include "net/system/listener.h"
#include "net/system/reactor.h"
#include "plan/plan.h"

namespace millrace::bench {
namespace {

constexpr uint64_t kWarmUp = 20;
constexpr std::chrono::seconds kPatience{60};

// As many parcels as make 8 MiB may be under way, at least two.
uint32_t depth_for(uint64_t bytes) {
  return static_cast<uint32_t>(std::clamp<uint64_t>(8 * net::kMiB / (bytes + 1), 2, net::kDepthMax));
}

net::CrossingPlan plan_of(uint64_t bytes) {
  net::CrossingPlan plan;
  plan.name = "bench/0>reader";
  plan.depth = depth_for(bytes);
  mr_format format{};
  format.size = sizeof format;
  format.kind = MR_KIND_PACKET;
  format.bytes_max = bytes;
  plan.formats = {format};
  plan.capacities = {bytes};
  return plan;
}

struct Block {
  mr_value value{};
  std::vector<uint8_t> data;
};

std::vector<Block> blocks_of(uint32_t count, uint64_t bytes) {
  std::vector<Block> blocks(count);
  for (Block& block : blocks) {
    block.value.header.kind = MR_KIND_PACKET;
    block.value.header.present = 1;
    block.value.header.extent_bytes = bytes;
    block.data.assign(bytes, 0x5A);
  }
  return blocks;
}

// Gives parcels as long as `allowed` says.
class Giver final : public net::Departure {
 public:
  explicit Giver(uint64_t bytes) : blocks_(blocks_of(depth_for(bytes), bytes)) {}

  bool next(net::Parcel& parcel) override {
    if (given_ >= allowed.load(std::memory_order_acquire)) return false;
    const Block& block = blocks_[given_ % blocks_.size()];
    parcel.tick.index = given_;
    parcel.previous = given_ - 1; // the first one has none: -1 is kNoIndex
    parcel.value_count = 1;
    parcel.values[0] = {&block.value, block.data.data(), 0};
    ++given_;
    return true;
  }
  void let_go(const net::Parcel&, bool) override {}
  int64_t passed_ns() const override { return INT64_MIN; }

  std::atomic<uint64_t> allowed{0};

 private:
  std::vector<Block> blocks_;
  uint64_t given_ = 0;
};

class Taker final : public net::Arrival {
 public:
  explicit Taker(uint64_t bytes) : blocks_(blocks_of(depth_for(bytes), bytes)) {}

  net::Room room(uint32_t) override {
    Block& block = blocks_[count_ % blocks_.size()];
    return {&block.value, block.data.data(), block.data.size()};
  }
  void arrive(const net::Parcel&) override {
    // The one who waits is woken once: a call of the system for each parcel would be measured too.
    if (++count_ != awaited.load(std::memory_order_relaxed)) return;
    arrived_ns = monotonic_ns();
    arrived.release();
  }
  uint64_t credit() const override { return count_ + blocks_.size(); }
  void passed(int64_t) override {}

  std::atomic<uint64_t> awaited{0}; // set before the parcels are given
  std::binary_semaphore arrived{0};
  int64_t arrived_ns = 0; // to be read after `arrived`

 private:
  std::vector<Block> blocks_;
  uint64_t count_ = 0;
};

struct Node {
  explicit Node(LinkKind kind, std::byte number) {
    if (kind == LinkKind::tls) {
      identity.emplace(net::Identity::generate());
      tls.emplace(*identity);
    }
    id = identity ? identity->id() : net::NodeId{};
    if (!identity) id.bytes[0] = number;
  }

  std::optional<net::Identity> identity;
  std::optional<net::TlsContext> tls;
  net::NodeId id;
  net::Reactor reactor;
};

// One crossing from `left` to `right`.
class Pair {
 public:
  Pair(LinkKind kind, uint64_t bytes)
      : giver(bytes), taker(bytes), left_(kind, std::byte{1}), right_(kind, std::byte{2}) {
    const net::CrossingPlan plan = plan_of(bytes);
    net::LinkOptions options;
    options.session.self.node = right_.id.bytes;
    options.session.self.session = 2;
    options.session.peer = left_.id.bytes;
    right_.reactor.add(options).add(plan, taker);
    right_.reactor.start();

    net::ListenOptions listen;
    listen.endpoints = {kind == LinkKind::local
                            ? net::parse_endpoint("local:@millrace-bench-" + std::to_string(getpid()))
                            : net::parse_endpoint("127.0.0.1:0")};
    listen.tls = right_.tls ? &*right_.tls : nullptr;
    listen.knows = [id = left_.id](const net::NodeId& peer) { return peer == id; };
    listener_.emplace(listen, [this](net::Guest guest) { right_.reactor.give(std::move(guest)); });

    options.session.self.node = left_.id.bytes;
    options.session.self.session = 1;
    options.session.peer = right_.id.bytes;
    options.peer_name = "reader";
    options.endpoints = listener_->endpoints();
    options.tls = left_.tls ? &*left_.tls : nullptr;
    left_.reactor.add(options).add(plan, giver);
    left_.reactor.start();
  }
  ~Pair() {
    left_.reactor.stop();
    right_.reactor.stop();
  }

  // Lets so many parcels go in all, and waits until they have arrived.
  void send(uint64_t parcels) {
    taker.awaited.store(parcels, std::memory_order_relaxed);
    giver.allowed.store(parcels, std::memory_order_release);
    left_.reactor.ring();
    if (!taker.arrived.try_acquire_for(kPatience))
      throw std::runtime_error("the link of the benchmark has stood still for a minute");
  }

  Giver giver;
  Taker taker;

 private:
  Node left_, right_;
  std::optional<net::Listener> listener_;
};

} // namespace

double send_parcels(LinkKind kind, uint64_t bytes, uint64_t parcels) {
  Pair pair(kind, bytes);
  pair.send(kWarmUp);
  const int64_t begun_ns = monotonic_ns();
  pair.send(kWarmUp + parcels);
  return static_cast<double>(pair.taker.arrived_ns - begun_ns) / 1e9;
}

std::vector<double> send_one_by_one(LinkKind kind, uint64_t bytes, uint64_t parcels, int64_t idle_ns) {
  Pair pair(kind, bytes);
  std::vector<double> ns;
  for (uint64_t i = 1; i <= kWarmUp + parcels; ++i) {
    if (idle_ns > 0) {
      const timespec pause{0, idle_ns};
      nanosleep(&pause, nullptr);
    }
    const int64_t begun_ns = monotonic_ns();
    pair.send(i);
    if (i > kWarmUp) ns.push_back(static_cast<double>(pair.taker.arrived_ns - begun_ns));
  }
  return ns;
}

} // namespace millrace::bench
