// Two nodes of one machine with a real link between them, and ends of crossings that check every byte.
//
// All bytes of a parcel follow from its index (tests/net/ends.h), so an end needs nothing of the other one and may be
// in another process. Ends belong to the link's thread; tests raise limits, read counts, and wait for progress.
#pragma once

#include <doctest/doctest.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "net/system/listener.h"
#include "net/system/reactor.h"
#include "tests/net/ends.h"

namespace millrace::net::test {

inline int64_t monotonic_ns() { return std::chrono::steady_clock::now().time_since_epoch().count(); }

// Wakes a test whenever something has happened that it may be waiting for.
class Progress {
 public:
  void tell() {
    if (waiting_.load() == 0) return;
    const std::lock_guard lock(mutex_);
    ++told_;
    changed_.notify_all();
  }
  // False if it has not happened within the time. `done` may ask a node.
  template <class Done>
  bool wait(Done done, int64_t patience_ns = 60 * kSecond) {
    const auto end = std::chrono::steady_clock::now() + std::chrono::nanoseconds(patience_ns);
    ++waiting_;
    bool is_done = false;
    do {
      const uint64_t before = told_.load();
      is_done = done();
      if (is_done) break;
      // A look every 20 ms too, for what nobody tells.
      std::unique_lock lock(mutex_);
      changed_.wait_until(lock, std::min(end, std::chrono::steady_clock::now() + std::chrono::milliseconds(20)),
                          [&] { return told_.load() != before; });
    } while (std::chrono::steady_clock::now() < end);
    --waiting_;
    return is_done;
  }

 private:
  std::atomic<int> waiting_{0};
  std::atomic<uint64_t> told_{0};
  std::mutex mutex_;
  std::condition_variable changed_;
};

// The run at the sender: gives parcels 0, 1, 2 … as far as it is allowed to, then an end if it shall.
class Sender final : public Departure {
 public:
  Sender(const Contents& contents, uint32_t depth, Progress& progress, uint64_t first_index = 0)
      : contents_(contents),
        depth_(depth),
        first_(first_index),
        progress_(progress),
        blocks_(size_t{depth} * contents.values),
        values_(blocks_.size()) {
    for (auto& block : blocks_) block.assign(std::max(1u, contents.bytes_max), 0xDD);
  }

  bool next(Parcel& parcel) override {
    const uint64_t count = given.load(std::memory_order_relaxed);
    const bool is_end = count == allowed.load(std::memory_order_acquire) && ends.load();
    if (has_ended_ || (count >= allowed.load(std::memory_order_acquire) && !is_end)) return false;
    const uint64_t index = first_ + count;
    parcel.tick.index = index;
    parcel.tick.media_time_ns = media_of(index);
    parcel.tick.trace_id = mixed(index);
    parcel.previous = count == 0 ? kNoIndex : index - 1;
    if (count == 0 && index > 0) parcel.gaps[parcel.gap_count++] = {kCauseLink, index};
    parcel.end = has_ended_ = is_end;
    parcel.token = count;
    if (!is_end) put_values(parcel, index);
    given.store(count + 1, std::memory_order_release);
    return true;
  }

  void let_go(const Parcel& parcel, bool was_acknowledged) override {
    if (parcel.token != acknowledged + lost) broken = "parcels are let go in order, each once";
    for (uint32_t v = 0; v < contents_.values; ++v) {
      auto& block = blocks_[parcel.token % depth_ * contents_.values + v];
      std::fill(block.begin(), block.begin() + static_cast<ptrdiff_t>(std::min<size_t>(block.size(), 4096)), 0xDD);
    }
    ++(was_acknowledged ? acknowledged : lost);
    progress_.tell();
  }

  int64_t passed_ns() const override {
    const uint64_t index = first_ + given.load(std::memory_order_relaxed);
    return index == 0 ? INT64_MIN : media_of(index) - 1;
  }

  std::atomic<uint64_t> allowed{0}; // parcels in all
  std::atomic<bool> ends{false};    // an end follows the last
  std::atomic<uint64_t> given{0}, acknowledged{0}, lost{0};
  std::atomic<const char*> broken{nullptr};

 private:
  void put_values(Parcel& parcel, uint64_t index) {
    parcel.value_count = static_cast<uint8_t>(contents_.values);
    for (uint32_t v = 0; v < contents_.values; ++v) {
      const size_t place = parcel.token % depth_ * contents_.values + v;
      parcel.values[v] = {nullptr, nullptr, static_cast<Cause>(v % kCausesMax)};
      if (contents_.is_empty(index, v)) continue;
      contents_.fill(blocks_[place].data(), index, v);
      values_[place] = contents_.header(index, v);
      parcel.values[v] = {&values_[place], blocks_[place].data(), 0};
    }
  }

  Contents contents_;
  uint32_t depth_;
  uint64_t first_;
  Progress& progress_;
  std::vector<std::vector<uint8_t>> blocks_;
  std::vector<mr_value> values_;
  bool has_ended_ = false;
};

// The run at the reader. It takes a parcel in at once, or as far as a test lets it.
class Reader final : public Arrival {
 public:
  Reader(const Contents& contents, uint32_t depth, Progress& progress)
      : contents_(contents),
        depth_(depth),
        progress_(progress),
        blocks_(size_t{depth} * contents.values),
        values_(blocks_.size()) {
    for (auto& block : blocks_) block.assign(std::max(1u, contents.bytes_max), 0xEE);
  }

  Room room(uint32_t value) override {
    const size_t place = arrived.load(std::memory_order_relaxed) % depth_ * contents_.values + value;
    return {&values_[place], blocks_[place].data(), blocks_[place].size()};
  }

  void arrive(const Parcel& parcel) override {
    const uint64_t index = parcel.tick.index, count = arrived.load(std::memory_order_relaxed);
    if (count >= credit_) broken = "no parcel comes without credit";
    if (has_ended.load()) broken = "no parcel comes after the end";
    check_order(parcel, count);
    if (parcel.tick.media_time_ns != media_of(index) || parcel.tick.trace_id != mixed(index))
      broken = "a tick arrives as it was given";
    if (parcel.value_count != (parcel.end ? 0 : contents_.values)) broken = "a parcel has all values";
    for (uint32_t v = 0; v < parcel.value_count; ++v)
      if (!contents_.matches(parcel.values[v], index, v)) broken = "a value arrives as it was given";
    if (parcel.end) has_ended = true;
    last_index.store(index, std::memory_order_relaxed);
    last_ns.store(monotonic_ns(), std::memory_order_relaxed);
    arrived.store(count + 1, std::memory_order_release);
    progress_.tell();
  }

  uint64_t credit() const override {
    credit_ = std::max(credit_, std::min(arrived.load(std::memory_order_relaxed), takes.load()) + depth_);
    return credit_;
  }

  void passed(int64_t media_ns) override { passed_ns = media_ns; }

  // Another process of the sender begins, with an index of its own.
  std::atomic<bool> other_may_come{false};
  std::atomic<uint64_t> takes{UINT64_MAX}; // parcels that are taken in, at most
  std::atomic<uint64_t> arrived{0}, last_index{kNoIndex};
  std::atomic<int64_t> last_ns{0}, passed_ns{INT64_MIN};
  std::atomic<bool> has_ended{false};
  std::atomic<const char*> broken{nullptr};

 private:
  void check_order(const Parcel& parcel, uint64_t count) {
    const uint64_t last = last_index.load(std::memory_order_relaxed);
    if (count == 0 || (parcel.previous == kNoIndex && other_may_come.exchange(false))) return;
    if (parcel.tick.index <= last) broken = "parcels arrive in order, each once";
    if (parcel.tick.index != last + 1 || parcel.previous != last) broken = "no parcel is missing";
  }

  Contents contents_;
  uint32_t depth_;
  Progress& progress_;
  std::vector<std::vector<uint8_t>> blocks_;
  std::vector<mr_value> values_;
  mutable uint64_t credit_ = 0;
};

// ---- nodes ---------------------------------------------------------------------------------------------------------

enum class Road : uint8_t { ipv4, ipv6, tls, local };
inline constexpr std::array kRoads = {Road::ipv4, Road::ipv6, Road::tls, Road::local};
inline const char* name_of(Road road) { return std::array{"IPv4", "IPv6", "TLS", "local"}[static_cast<size_t>(road)]; }

// An address at which a listener finds a place.
inline Endpoint any_endpoint(Road road) {
  static std::atomic<int> number{0};
  if (road == Road::local)
    return parse_endpoint("local:@millrace-test-" + std::to_string(getpid()) + "-" + std::to_string(++number));
  return parse_endpoint(road == Road::ipv6 ? "[::1]:0" : "127.0.0.1:0");
}

// The name of a node, and its key where the road has TLS.
struct Credentials {
  explicit Credentials(Road road) {
    static std::atomic<uint64_t> number{0};
    if (road == Road::tls) {
      *this = Credentials(Identity::generate());
      return;
    }
    const uint64_t bits = mixed(++number);
    std::memcpy(id.bytes.data(), &bits, sizeof bits);
  }
  explicit Credentials(const Identity& identity) : id(identity.id()), tls(std::make_shared<TlsContext>(identity)) {}

  NodeId id;
  std::shared_ptr<TlsContext> tls;
};

// The events that a session told, each with its time.
class Events {
 public:
  struct Told {
    EventType type{};
    uint32_t lane = 0;
    Fault fault{};
    std::string sentence, why;
    int64_t at_ns = 0;
  };

  explicit Events(Progress& progress) : progress_(progress) {}

  void add(const Event& event, const std::string& why) {
    {
      const std::lock_guard lock(mutex_);
      ++counts_[static_cast<size_t>(event.type)];
      if (told_.size() < kKeptMax)
        told_.push_back({event.type, event.lane, event.fault, std::string(event.sentence), why, monotonic_ns()});
    }
    progress_.tell();
  }
  uint64_t count(EventType type) const {
    const std::lock_guard lock(mutex_);
    return counts_[static_cast<size_t>(type)];
  }
  std::vector<Told> told() const {
    const std::lock_guard lock(mutex_);
    return told_;
  }
  // The first of its type, once it is there.
  std::optional<Told> first(EventType type) const {
    for (const Told& each : told())
      if (each.type == type) return each;
    return std::nullopt;
  }
  // The first sentence of a transport; "" if there is none.
  std::string why() const {
    for (const Told& each : told())
      if (!each.why.empty()) return each.why;
    return "";
  }

 private:
  static constexpr size_t kKeptMax = 10'000;
  Progress& progress_;
  mutable std::mutex mutex_;
  std::array<uint64_t, 16> counts_{};
  std::vector<Told> told_;
};

// One crossing, with the ends of both nodes.
struct Crossing {
  CrossingPlan plan;
  Contents contents;
  bool to_right = true;
  std::unique_ptr<Sender> sender;
  std::unique_ptr<Reader> reader;
};

// A process of a node with one link, as far as it can be without a process of its own.
class Node {
 public:
  Node(const Credentials& credentials, const NodeId& peer, Progress& progress)
      : events(progress), credentials_(credentials) {
    static std::atomic<uint64_t> sessions{mixed(static_cast<uint64_t>(monotonic_ns())) >> 1};
    options.session.self.node = credentials.id.bytes;
    options.session.self.session = ++sessions;
    options.session.peer = peer.bytes;
    options.session.seed = mixed(options.session.self.session);
    options.peer_name = "gpu";
    options.tls = credentials_.tls.get();
    options.tell = [this](const Event& event, const std::string& why) { events.add(event, why); };
  }
  ~Node() { reactor.stop(); }
  Node(const Node&) = delete;
  Node& operator=(const Node&) = delete;

  // With the options as they are by now.
  void add_link() { session = &reactor.add(options); }
  void add(Crossing& crossing, bool is_right) {
    if (crossing.to_right != is_right)
      session->add(crossing.plan, *crossing.sender);
    else
      session->add(crossing.plan, *crossing.reader);
  }
  // Runs on the link's thread, and is waited for.
  template <class Work>
  auto ask(Work work) {
    decltype(work(*session)) answer{};
    std::mutex mutex;
    std::condition_variable answered;
    bool is_there = false;
    reactor.post([&] {
      const std::lock_guard lock(mutex);
      answer = work(*session);
      is_there = true;
      answered.notify_one();
    });
    std::unique_lock lock(mutex);
    answered.wait(lock, [&] { return is_there; });
    return answer;
  }
  void leave() {
    reactor.post([this] { session->leave(); });
    reactor.ring();
  }

  LinkOptions options;
  Events events;
  Session* session = nullptr;
  Reactor reactor;

 private:
  Credentials credentials_;
};

// The left node dials, the right one listens. Crossings are added before start().
class Pair {
 public:
  explicit Pair(Road road, uint32_t lanes = 1) : Pair(road, Credentials(road), Credentials(road), lanes) {}
  Pair(Road road, const Credentials& of_left, const Credentials& of_right, uint32_t lanes = 1)
      : road_(road), lanes_(lanes), left_credentials(of_left), right_credentials(of_right) {
    known = {of_left.id};
  }
  ~Pair() {
    listener.reset();
    left.reset();
    right.reset();
  }
  Pair(const Pair&) = delete;
  Pair& operator=(const Pair&) = delete;

  Crossing& add(bool to_right, const Contents& contents, uint32_t depth, uint32_t lane = 1, uint64_t first_index = 0) {
    auto crossing = std::make_unique<Crossing>();
    crossing->plan = plan_of(static_cast<uint16_t>(crossings.size()), lane, depth, contents);
    crossing->contents = contents;
    crossing->to_right = to_right;
    crossing->sender = std::make_unique<Sender>(contents, depth, progress, first_index);
    crossing->reader = std::make_unique<Reader>(contents, depth, progress);
    crossings.push_back(std::move(crossing));
    return *crossings.back();
  }

  void listen() {
    ListenOptions options;
    options.endpoints = {any_endpoint(road_)};
    options.tls = right_credentials.tls.get();
    options.knows = [this](const NodeId& peer) { return std::find(known.begin(), known.end(), peer) != known.end(); };
    listener.emplace(options, [this](Guest guest) {
      const std::lock_guard lock(right_mutex_);
      if (right) right->reactor.give(std::move(guest));
    });
  }

  std::unique_ptr<Node> make(bool is_right) {
    auto node = is_right ? std::make_unique<Node>(right_credentials, left_credentials.id, progress)
                         : std::make_unique<Node>(left_credentials, right_credentials.id, progress);
    node->options.session.data_lanes = lanes_;
    if (!is_right) node->options.endpoints = dialled.empty() ? listener->endpoints() : dialled;
    return node;
  }
  void start_right() { start_right(make(true)); }
  void start_right(std::unique_ptr<Node> node) {
    node->add_link();
    for (const auto& crossing : crossings) node->add(*crossing, true);
    node->reactor.start();
    const std::lock_guard lock(right_mutex_);
    right = std::move(node);
  }
  void stop_right() {
    std::unique_ptr<Node> gone;
    const std::lock_guard lock(right_mutex_);
    std::swap(gone, right);
  }
  void start_left() { start_left(make(false)); }
  void start_left(std::unique_ptr<Node> node) {
    left = std::move(node);
    left->add_link();
    for (const auto& crossing : crossings) left->add(*crossing, false);
    left->reactor.start();
  }
  void start() {
    if (!listener) listen();
    start_right();
    start_left();
  }

  void ring() {
    left->reactor.ring();
    right->reactor.ring();
  }
  void allow(Crossing& crossing, uint64_t parcels) {
    crossing.sender->allowed.store(parcels, std::memory_order_release);
    ring();
  }
  bool arrive(const Crossing& crossing, uint64_t parcels, int64_t patience_ns = 60 * kSecond) {
    return progress.wait([&] { return crossing.reader->arrived >= parcels || crossing.reader->broken; }, patience_ns) &&
           !broken();
  }
  const char* broken() const {
    for (const auto& crossing : crossings) {
      if (const char* sentence = crossing->sender->broken) return sentence;
      if (const char* sentence = crossing->reader->broken) return sentence;
    }
    return nullptr;
  }

  Progress progress;

 private:
  Road road_;
  uint32_t lanes_;
  std::mutex right_mutex_;

 public:
  Credentials left_credentials, right_credentials;
  std::vector<NodeId> known;     // by the right node; before listen()
  std::vector<Endpoint> dialled; // empty: the listener's
  std::vector<std::unique_ptr<Crossing>> crossings;
  std::optional<Listener> listener;
  std::unique_ptr<Node> left, right;
};

// Packets of exactly this many bytes.
inline Contents packets(uint32_t bytes, uint64_t seed = 1) {
  Contents contents;
  contents.seed = seed;
  contents.bytes_max = bytes;
  contents.is_exact = true;
  return contents;
}

} // namespace millrace::net::test
