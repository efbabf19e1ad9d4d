// A simulated process: one session with its connections, driven as a reactor would drive it, with a run at its ends.
//
// It works in rounds. A round is a row of calls: take what was accepted and dialled, read and receive on each
// connection, time, gather and write and tell what was sent. Each session call is followed by polling. A process may be
// stopped or killed before any one of these calls; a stopped process goes on with that call, while its sockets' buffers
// live on.
//
// Single threaded. It outlives no network, history or virtual time that it was given.
#pragma once

#include <array>
#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "device/timeline.h"
#include "net/session.h"
#include "tests/net/sim/history.h"
#include "tests/net/sim/network.h"
#include "tests/net/sim/run.h"

namespace millrace::net::sim {

// A machine's monotonic clock: it begins anywhere and is a little fast or slow.
struct Clock {
  int64_t offset_ns = 0;
  int64_t drift_ppm = 0;
  int64_t at(int64_t virtual_ns) const;
  // The first virtual time at which the clock shows at least this.
  int64_t when(int64_t own_ns) const;
};

struct ProcessSetup {
  SessionOptions session; // `dials` says which side this is
  Address address = 0, peer_address = 0;
  Clock clock;
  bool checks_bodies = true;
  int64_t wake_ns_most = 0; // from an event to the round that looks at it, drawn
  uint32_t epoch = 0;       // for its makers' first ticks
  uint64_t first_index = 0;
};

class Process {
 public:
  Process(device::VirtualTime& time, Network& network, History& history, Random random, const ProcessSetup& setup,
          const std::vector<CrossingSetup>& crossings);
  ~Process();

  // Ends that others made, beside those of `crossings`. Before start().
  void add(const CrossingPlan& plan, Departure& departure) { session_.add(plan, departure); }
  void add(const CrossingPlan& plan, Arrival& arrival) { session_.add(plan, arrival); }
  // With SessionOptions::plan_comes_later: Session::follow() with all ends, those of `crossings` among them, and
  // Session::forget_plan(). Neither while it is stopped or dead.
  void follow(uint32_t revision, const std::array<std::byte, 32>& brief);
  void forget_plan();
  // Begins to listen or dial, and to make ticks.
  void start();
  // Looks at all that may have changed: a parcel or a credit of such an end.
  void wake();
  // Takes effect after so many more calls of the session; 0: now.
  void stop(uint64_t calls, int64_t for_ns);
  void kill(uint64_t calls);
  void go_on();
  // It is neither stopped nor killed by what was said before.
  void spare() { calls_until_ = 0; }
  // Takes the process out of the link, as Session::leave().
  void leave();
  // Session::say(). False as well while it is stopped or dead.
  bool say(const std::string& text);
  // Each message of the peer, and each event as it comes. They may be changed while no call of the process is under
  // way.
  std::function<void(const std::string& text)> on_message;
  std::function<void(const Event& event)> on_event;

  bool is_dead() const { return dead_; }
  const ProcessSetup& setup() const { return setup_; }
  const Session& session() const { return session_; }
  int64_t now_ns() const { return setup_.clock.at(time_.now_ns()); }
  // Null where the crossing has its other end here.
  const Maker* maker(uint16_t crossing) const { return ends_[crossing].maker.get(); }
  const Taker* taker(uint16_t crossing) const { return ends_[crossing].taker.get(); }
  Taker* taker(uint16_t crossing) { return ends_[crossing].taker.get(); }
  // All makers have given their ends to the session, and all of it was acknowledged.
  bool has_sent_all() const;
  bool has_got_all() const;
  bool is_drained() const { return count(EventType::drained) > 0; }
  // The connection of a lane, for the network; false if there is none.
  bool connection(uint32_t lane, uint64_t& number) const;

  struct Seen {
    Event event;
    int64_t at_ns = 0; // virtual
  };
  const std::vector<Seen>& events() const { return events_; }
  uint64_t count(EventType type) const;

 private:
  struct Ends {
    std::unique_ptr<Maker> maker;
    std::unique_ptr<Taker> taker;
  };
  struct Stranger {
    std::unique_ptr<End> end;
    std::unique_ptr<Inbox> inbox;
    int64_t give_up_ns = 0;
  };
  // A connection that is over: it is read to its end, so that closing it does not destroy what was written last.
  struct Farewell {
    std::unique_ptr<End> end;
    int64_t give_up_ns = 0;
  };
  struct Dialled {
    uint32_t lane = 0;
    std::unique_ptr<End> end;
  };
  enum class Stage : uint8_t { welcome, dialled, read, received, time, write, sent, farewell };

  void add_ends();
  void later(int64_t after_ns, std::function<void()> call);
  void round();
  bool step();
  bool is_interrupted();
  void next_lane(Stage after);
  void end_round();
  void meet_strangers();
  bool meet(Stranger& stranger);
  void take_dialled();
  void read();
  void write();
  void poll();
  void act(const Event& event);
  void take_messages();
  void dial(uint32_t lane);
  void look_at_pairing();
  void look_at_offset();
  void part_from(std::unique_ptr<End> end);
  void part();
  void schedule_tick(uint16_t crossing);
  void tick(uint16_t crossing);
  void die();

  device::VirtualTime& time_;
  Network& network_;
  History& history_;
  Random random_;
  ProcessSetup setup_;
  const std::vector<CrossingSetup>& crossings_;
  std::vector<Ends> ends_;
  Session session_;
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);

  std::vector<std::unique_ptr<End>> lanes_;
  std::vector<Stranger> strangers_;
  std::vector<Farewell> farewells_;
  std::deque<Dialled> dialled_;
  std::deque<std::unique_ptr<End>> backlog_; // accepted by the system

  Stage stage_ = Stage::welcome;
  uint32_t lane_ = 0;
  size_t moved_ = 0; // bytes of the read or write that the session is still to be told of
  uint32_t reads_ = 0;
  bool in_round_ = false, is_scheduled_ = false, again_ = false;
  int64_t timer_at_ns_ = INT64_MAX;

  bool stopped_ = false, dead_ = false, leaving_ = false;
  uint64_t calls_until_ = 0; // the interruption; 0: none
  bool then_dies_ = false;
  int64_t stops_for_ns_ = 0;
  int64_t last_round_ns_ = -1;
  uint64_t rounds_at_once_ = 0;
  uint64_t pairing_ = 0;
  std::vector<Seen> events_;
  std::vector<std::function<void()>> missed_; // while it was stopped
};

} // namespace millrace::net::sim
