// Two sessions and the connections between them, moved by hand: side 0 dials, side 1 accepts.
//
// A connection is two queues of bytes. Either end may be cut, and bytes that are under way may still arrive after it. A
// HELLO waits until the accepting side looks at it, as it does while a listener is slow.
#pragma once

#include <cstring>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "net/crc32c.h"
#include "net/session.h"
#include "tests/net/ends.h"

namespace millrace::net::test {

constexpr uint32_t kNoConnection = UINT32_MAX;

class TwoNodes {
 public:
  struct Options {
    uint32_t data_lanes = 1;
    bool checks_bodies = true;
    uint64_t seed = 1;
    bool plan_comes_later = false; // by follow()
  };
  struct Connection {
    uint32_t lane = 0;
    std::array<std::vector<std::byte>, 2> pipes; // by the side that wrote
    std::array<bool, 2> is_open{true, false};    // the side still has it
    bool is_greeted = false;                     // the accepting side has looked at its HELLO
    std::array<std::vector<size_t>, 2> said;     // the hash of each message, by the side that said it
    std::array<size_t, 2> heard{};               // by the side that heard them
  };
  // One direction of parcels.
  struct Way {
    CrossingPlan plan;
    Contents contents;
    uint32_t from = 0;
    std::unique_ptr<Giver> giver;
    std::unique_ptr<Taker> taker;
  };

  explicit TwoNodes(const Options& options) : options_(options) {
    for (auto& lanes : at_) lanes.fill(kNoConnection);
  }

  void add(uint32_t from, uint32_t lane, uint32_t depth, const Contents& contents) {
    Way way;
    way.plan = plan_of(static_cast<uint16_t>(ways_.size()), lane, depth, contents);
    way.contents = contents;
    way.from = from;
    way.giver = std::make_unique<Giver>(contents, depth);
    way.taker = std::make_unique<Taker>(contents, depth);
    ways_.push_back(std::move(way));
  }

  // A process of this side begins: the first, or another one after the one before was killed.
  void begin(uint32_t side) {
    for (uint32_t lane = 0; lane < kLanesMax; ++lane) lose(side, lane);
    for (Way& way : ways_) begin_ends(way, side);
    sessions_[side] = std::make_unique<Session>(session_options(side));
    if (!options_.plan_comes_later) add_ways(side);
  }
  // The side follows a plan of this number, which has all ways.
  void follow(uint32_t side, uint8_t plan = 1) {
    add_ways(side);
    sessions_[side]->follow(7, plan, {std::byte{plan}}, now_ns_);
    look_at_events(side);
  }
  void forget_plan(uint32_t side) {
    sessions_[side]->forget_plan();
    look_at_events(side);
  }
  void end_plan(uint32_t side) {
    sessions_[side]->end_plan();
    look_at_events(side);
  }

  void add_ways(uint32_t side) {
    for (Way& way : ways_)
      if (way.from == side)
        sessions_[side]->add(way.plan, *way.giver);
      else
        sessions_[side]->add(way.plan, *way.taker);
  }

  SessionOptions session_options(uint32_t side) {
    SessionOptions options;
    options.self.node[0] = static_cast<std::byte>(1 + side);
    options.peer[0] = static_cast<std::byte>(2 - side);
    options.self.session = ++processes_;
    options.dials = side == 0;
    options.data_lanes = options_.data_lanes;
    options.seed = mixed(options_.seed * 1000 + processes_);
    options.plan_comes_later = options_.plan_comes_later;
    return options;
  }

  // ---- one thing at a time ----

  // The side writes at most this many bytes to its connection.
  size_t send(uint32_t side, uint32_t lane, size_t most) {
    if (at_[side][lane] == kNoConnection) return 0;
    std::vector<std::byte>& pipe = connections_[at_[side][lane]].pipes[side];
    size_t went = 0;
    for (const Bytes piece : sessions_[side]->gather(lane, now_ns_, chunk_bytes_most_)) {
      const size_t size = std::min(piece.size(), most - went);
      pipe.insert(pipe.end(), piece.begin(), piece.begin() + static_cast<ptrdiff_t>(size));
      went += size;
    }
    if (went > 0) sessions_[side]->sent(lane, went, now_ns_);
    look_at_events(side);
    return went;
  }

  // The side reads at most this many bytes, `slice` at a time. A connection that the other end has let go, and from
  // which all was read, is cut.
  size_t deliver(uint32_t side, uint32_t lane, size_t most, size_t slice = SIZE_MAX) {
    size_t came = 0;
    while (came < most && at_[side][lane] != kNoConnection) {
      Connection& connection = connections_[at_[side][lane]];
      std::vector<std::byte>& pipe = connection.pipes[1 - side];
      if (pipe.empty()) {
        if (!connection.is_open[1 - side] && (connection.is_greeted || side == 1)) cut(side, lane);
        break;
      }
      const std::span<std::byte> room = sessions_[side]->room(lane);
      const size_t size = std::min({room.size(), pipe.size(), slice, most - came});
      if (room.empty()) broken_ = "there is always room for the next bytes";
      if (size == 0) break;
      std::memcpy(room.data(), pipe.data(), size);
      pipe.erase(pipe.begin(), pipe.begin() + static_cast<ptrdiff_t>(size));
      sessions_[side]->received(lane, size, now_ns_);
      came += size;
      look_at_events(side);
    }
    return came;
  }

  // The accepting side looks at the HELLO of one connection, if it is there.
  void listen(uint32_t index) {
    Connection& connection = connections_[index];
    std::vector<std::byte>& pipe = connection.pipes[0];
    if (connection.is_greeted || pipe.size() < kHeadBytes) return;
    Head head;
    Fault fault = read_head(std::span<const std::byte, kHeadBytes>(pipe.data(), kHeadBytes), head);
    if (fault == Fault::none && head.type != RecordType::hello) fault = Fault::unexpected;
    const size_t whole = kHeadBytes + head.length + (options_.checks_bodies ? kCrcBytes : 0);
    if (fault == Fault::none && pipe.size() < whole) return;
    Hello hello;
    if (fault == Fault::none) fault = read_checked(Bytes(pipe).subspan(kHeadBytes), head.length, hello);
    connection.is_greeted = true;
    const uint32_t before =
        fault == Fault::none && hello.lane <= options_.data_lanes ? at_[1][hello.lane] : kNoConnection;
    if (fault == Fault::none) fault = sessions_[1]->accept(hello, options_.checks_bodies, now_ns_);
    last_answer_ = fault;
    if (fault != Fault::none) {
      std::array<std::byte, 1024> refusal;
      const size_t size = write_refusal(fault, sessions_[1]->refusal(fault), options_.checks_bodies, refusal);
      connection.pipes[1].assign(refusal.begin(), refusal.begin() + static_cast<ptrdiff_t>(size));
      look_at_events(1);
      return;
    }
    if (before != kNoConnection) connections_[before].is_open[1] = false;
    pipe.erase(pipe.begin(), pipe.begin() + static_cast<ptrdiff_t>(whole));
    connection.is_open[1] = true;
    connection.lane = hello.lane;
    at_[1][hello.lane] = index;
    look_at_events(1);
  }
  void listen_to_all() {
    for (uint32_t i = 0; i < connections_.size(); ++i) listen(i);
  }

  // One end learns that its connection is gone.
  void cut(uint32_t side, uint32_t lane) {
    if (at_[side][lane] == kNoConnection) return;
    lose(side, lane);
    sessions_[side]->cut(lane, now_ns_);
    look_at_events(side);
  }
  // Both ends learn it, and what was under way is lost.
  void cut_both(uint32_t lane) {
    for (uint32_t side : {0u, 1u})
      if (at_[side][lane] != kNoConnection)
        for (auto& pipe : connections_[at_[side][lane]].pipes) pipe.clear();
    cut(0, lane);
    cut(1, lane);
  }

  void pass(int64_t ns) {
    now_ns_ += ns;
    for (uint32_t side : {0u, 1u}) {
      sessions_[side]->on_time(now_ns_);
      look_at_events(side);
    }
  }

  // ---- messages ----

  // The side says a message of so many bytes. False if its session does not take it.
  bool say(uint32_t side, size_t bytes) {
    std::string text(bytes, ' ');
    Random random(++messages_);
    for (size_t at = 0; at < bytes; at += 8) {
      const uint64_t word = random.next();
      std::memcpy(text.data() + at, &word, std::min<size_t>(8, bytes - at));
    }
    const size_t hash = std::hash<std::string>()(text);
    if (!sessions_[side]->say(std::move(text))) return false;
    connections_[at_[side][0]].said[side].push_back(hash);
    return true;
  }
  size_t heard(uint32_t side) const { return heard_[side]; }
  // Both sides have one control connection, and all that was said on it was heard.
  bool is_all_heard() {
    const Connection* const control = connection(0, 0);
    return control && control == connection(1, 0) && sessions_[0]->is_up(0) && sessions_[1]->is_up(0) &&
           control->heard[0] == control->said[1].size() && control->heard[1] == control->said[0].size();
  }

  // ---- all that can move ----

  // True if a byte moved.
  bool exchange(size_t slice = SIZE_MAX) {
    bool moved = false;
    listen_to_all();
    for (uint32_t lane = 0; lane <= options_.data_lanes; ++lane)
      for (uint32_t side : {0u, 1u}) {
        moved |= send(side, lane, SIZE_MAX) > 0;
        listen_to_all();
        moved |= deliver(1 - side, lane, SIZE_MAX, slice) > 0;
      }
    return moved;
  }
  void settle(int rounds = 100) {
    while (exchange() && rounds-- > 0) {
    }
  }
  // Time passes, and everything that arrives is taken in.
  void run(int64_t ns, int64_t step_ns = 5 * kMillisecond) {
    for (const int64_t end = now_ns_ + ns; now_ns_ < end;) {
      pass(step_ns);
      settle();
      take_in_all();
    }
  }
  void take_in_all() {
    for (Way& way : ways_)
      while (way.taker->take_in()) {
      }
  }

  // ---- looks ----

  Session& session(uint32_t side) { return *sessions_[side]; }
  Way& way(size_t i) { return ways_[i]; }
  size_t way_count() const { return ways_.size(); }
  Connection* connection(uint32_t side, uint32_t lane) {
    return at_[side][lane] == kNoConnection ? nullptr : &connections_[at_[side][lane]];
  }
  std::vector<Connection>& connections() { return connections_; }
  int64_t now_ns() const { return now_ns_; }
  uint32_t count(uint32_t side, EventType type) const { return counts_[side][static_cast<size_t>(type)]; }
  Fault last_refused(uint32_t side) const { return last_refused_[side]; }
  Fault last_was_refused(uint32_t side) const { return last_was_refused_[side]; }
  Fault last_answer() const { return last_answer_; } // of the accepting side to a HELLO
  void let_dials_fail(bool fail) { dials_fail_ = fail; }
  // From now on larger parts of values wait.
  void limit_chunks(size_t bytes) { chunk_bytes_most_ = bytes; }

  const char* broken() const {
    if (broken_) return broken_;
    for (const Way& way : ways_) {
      if (way.giver->broken()) return way.giver->broken();
      if (way.taker->broken()) return way.taker->broken();
    }
    return nullptr;
  }
  // Everything that the runs made has arrived and is acknowledged. A process that was killed took some with it.
  bool is_all_there() const {
    return std::all_of(ways_.begin(), ways_.end(), [&](const Way& way) {
      return way.giver->given() == way.giver->made() &&
             (processes_ > 2 || way.taker->last_index() == way.giver->last_index()) &&
             sessions_[way.from]->outgoing(way.plan.number)->is_drained();
    });
  }

 private:
  void begin_ends(Way& way, uint32_t side) {
    if (!sessions_[side]) return;
    if (way.from == side) {
      // A new process goes on later in the clock's count.
      way.giver =
          std::make_unique<Giver>(way.contents, way.plan.depth, way.giver->next_index() + 2, way.giver->process() + 1);
    } else {
      way.taker = std::make_unique<Taker>(way.contents, way.plan.depth);
    }
  }

  Fault read_checked(Bytes rest, size_t length, Hello& hello) const {
    if (options_.checks_bodies && ByteReader(rest.subspan(length)).get<uint32_t>() != crc32c(rest.first(length)))
      return Fault::body_checksum;
    return read_hello(rest.first(length), hello);
  }

  void lose(uint32_t side, uint32_t lane) {
    if (at_[side][lane] == kNoConnection) return;
    connections_[at_[side][lane]].is_open[side] = false;
    at_[side][lane] = kNoConnection;
  }

  void dial(uint32_t side, uint32_t lane) {
    if (dials_fail_) return sessions_[side]->cut(lane, now_ns_);
    if (connections_.size() == kConnectionsKept) forget_one();
    at_[side][lane] = static_cast<uint32_t>(connections_.size());
    connections_.emplace_back().lane = lane;
    sessions_[side]->dialled(lane, options_.checks_bodies, now_ns_);
  }

  // The oldest connection that no side has.
  void forget_one() {
    for (uint32_t i = 0; i < connections_.size(); ++i) {
      if (connections_[i].is_open[0] || connections_[i].is_open[1]) continue;
      connections_.erase(connections_.begin() + i);
      for (auto& lanes : at_)
        for (uint32_t& index : lanes)
          if (index != kNoConnection && index > i) --index;
      return;
    }
  }

  void look_at_events(uint32_t side) {
    for (Event event; sessions_[side]->poll(event);) {
      ++counts_[side][static_cast<size_t>(event.type)];
      switch (event.type) {
        case EventType::dial: dial(side, event.lane); break;
        case EventType::close: lose(side, event.lane); break;
        case EventType::refused: last_refused_[side] = event.fault; break;
        case EventType::was_refused:
          last_was_refused_[side] = event.fault;
          last_sentence_ = event.sentence;
          break;
        case EventType::message: take_messages(side); break;
        default: break;
      }
    }
  }

  void take_messages(uint32_t side) {
    Connection& control = connections_[at_[side][0]];
    const std::vector<size_t>& said = control.said[1 - side];
    for (std::string text; sessions_[side]->take_message(text); ++heard_[side]) {
      const size_t number = control.heard[side]++;
      if (number >= said.size() || said[number] != std::hash<std::string>()(text))
        broken_ = "a message that is heard is the next one that was said on its connection";
    }
  }

  static constexpr size_t kConnectionsKept = 24;

  Options options_;
  uint64_t processes_ = 0;
  int64_t now_ns_ = kSecond;
  std::array<std::unique_ptr<Session>, 2> sessions_;
  std::vector<Way> ways_;
  std::vector<Connection> connections_;
  std::array<std::array<uint32_t, kLanesMax>, 2> at_; // the connection that a side has for a lane
  std::array<std::array<uint32_t, 16>, 2> counts_{};
  std::array<Fault, 2> last_refused_{}, last_was_refused_{};
  Fault last_answer_{};
  std::string last_sentence_;
  uint64_t messages_ = 0;
  std::array<size_t, 2> heard_{};
  bool dials_fail_ = false;
  size_t chunk_bytes_most_ = kChunkBytesMax;
  const char* broken_ = nullptr;
};

} // namespace millrace::net::test
