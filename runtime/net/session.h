// One peer over all its connections: greeting, versions, crossings, and going on after a cut.
//
// It does no I/O and keeps no time. Its owner (the link's thread, a simulator or a fuzzer) tells it what happened on a
// connection and how late it is, moves bytes by room() and gather(), and polls for events. It never calls back into its
// owner; it calls the crossings' Departures and Arrivals.
//
// Two processes that met are a pairing, with a random number that the accepting side draws. It says that both remember
// the same parcels. A HELLO that names the current pairing goes on with it. For any other HELLO the accepting side
// proposes a new pairing in WELCOME: numbers begin at 0, and parcels that the old one had not acknowledged are lost.
// The side that dialled begins it with WELCOME, and sends a PING at once. The accepting side begins it with that
// answer, and keeps the old pairing until then: a HELLO may come late, from a process that has died or has dialled
// again since.
//
// A record that may not come now, or not on this connection, is refused. In these states of a connection may come:
//
//   greeting, of the dialler       WELCOME, REFUSE
//   greeting, control, accepted    any that may come when it is up: with it the connection is up
//   up, control                    STATE, PING, PONG, MESSAGE, GOAWAY, REFUSE
//   up, data                       OPEN, CHANGE, TICK, DATA, END, REFUSE
//   down, dialling, closing        nothing is read
//
// Presence is measured on the control connection alone: suspect after 1.5 s of silence, away after 3 s. A peer that is
// away loses all its connections, and is dialled again.
//
// A data connection in which bytes vanish is cut alone (lane_watch.h), dialled again, and brings what was not
// acknowledged once more. The peer's PONGs say how much has come, and each is looked at when it comes. So this has no
// timer but that of the pings: the cut is at most one ping and one round trip late, and a process that was stopped
// hears the peer before it judges it.
//
// A process that contradicts itself (fault.h: is_contradiction) is refused on all its connections, told why, and is
// away from then on: whoever waits for it waits no longer than for one that is cut off. Another process of the peer may
// come.
//
// Messages go over the control connection beside all this (messages.h): documents of the owner, which says them by
// say() and takes the peer's by take_message(). A cut of control loses those that are under way, and the owner says
// again, after `met` or `back`, what still holds. On the way out everything else goes first: a PING, a PONG, a STATE or
// a GOAWAY waits for one chunk at most.
//
// Nodes talk before they have a plan. Such a session (`plan_comes_later`) begins with control alone, which compares no
// runs and no plans. Once follow() has told it the plan, its data connections are dialled and accepted, and those
// compare. Nothing is said of crossings before a data connection has come up, because only then is it known that the
// peer has them too. A side that dials too soon is refused (`plan`), and dials again.
//
// When a side leaves, both take no more parcels. The side that dialled says `drained` once all of its own are
// acknowledged. The accepting side says so after it has heard that, once its own are acknowledged too. The side that
// dialled then ends the connections. If that last word is lost in a cut, the next dial says the same: it is refused
// because the peer has left. Where the plan comes later, the side that did not leave goes on: another process of the
// peer may come.
#pragma once

#include <array>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "net/heartbeat.h"
#include "net/lane.h"
#include "net/messages.h"
#include "observe/random.h"

namespace millrace::net {

// This process, as it tells its peers.
struct Self {
  std::array<std::byte, 32> node{};
  uint64_t session = 0; // random; not 0
  uint64_t run = 0;
  uint32_t revision = 0; // the fleet's plan has this number
  std::array<std::byte, 32> brief{};
  uint16_t version_least = kVersionLeast, version_most = kVersionMost;
  uint64_t features = 0, mandatory = 0;
};

struct SessionOptions {
  Self self;
  std::array<std::byte, 32> peer{}; // the peer's node id
  bool dials = false;               // this side dials, the other one accepts
  uint32_t data_lanes = 1;
  uint64_t seed = 0; // random: for pairings and jitter
  bool plan_comes_later =
      false; // by follow(); else `self` has it, and all crossings are added before the first connection
};

enum class EventType : uint8_t {
  dial,        // connect `lane`, then call dialled() or cut()
  close,       // let the connection of `lane` go; the session has done so
  met,         // the peer is there with a new pairing: another process, or the first
  back,        // the peer is there again, and the pairing goes on
  there,       // heard again after it was suspect
  suspect,     // not heard for 1.5 s
  away,        // not heard for 3 s
  refused,     // this side refused the peer, or gave a connection up: `fault`
  was_refused, // the peer refused this side: `fault` and `sentence`
  leaving,     // the peer is about to leave: nothing new is sent either way
  drained,     // both sides have all that was sent; the link is over
  message,     // messages of the peer wait for take_message(); told once until all were taken
};

struct Event {
  EventType type{};
  uint32_t lane = 0;
  Fault fault{};
  std::string_view sentence; // valid until the session is called again
};

class Session {
 public:
  explicit Session(const SessionOptions& options);

  // Before the first connection or before follow(). Numbers of crossings are those of the plan, the same at both ends.
  void add(const CrossingPlan& plan, Departure& departure);
  void add(const CrossingPlan& plan, Arrival& arrival);

  // With `plan_comes_later`: this side follows a plan from now on, and all its crossings are added.
  void follow(uint64_t run, uint32_t revision, const std::array<std::byte, 32>& brief, int64_t now_ns);
  // Takes the plan and its crossings back, for another one to follow. Not once is_shared().
  void forget_plan();
  // The same at any time, for good: this side's run of the plan is over. Its data connections end, and nothing of its
  // crossings is sent, taken or called any more. The peer still learns how much has arrived. Messages go on.
  void end_plan();
  // The peer follows the same plan: a data connection has come up with this process of it.
  bool is_shared() const { return is_shared_; }

  // ---- connections ----

  // The connection that was asked for is there. `checks_bodies`: its transport does not.
  void dialled(uint32_t lane, bool checks_bodies, int64_t now_ns);
  // A peer has dialled and said this. If the answer is a fault, tell it by write_refusal() and close; else the
  // connection is lane `hello.lane` from now on, in place of the one that it had. The owner hears of it (`refused`) if
  // the two have no version in common, or one lacks a feature that the other one needs.
  Fault accept(const Hello& hello, bool checks_bodies, int64_t now_ns);
  // The sentence of a fault that accept() has just answered.
  std::string_view refusal(Fault fault) const;
  // The connection is gone, or could not be made.
  void cut(uint32_t lane, int64_t now_ns);

  // The next bytes of a connection go here. received() says how many came; then room() is another place.
  std::span<std::byte> room(uint32_t lane);
  void received(uint32_t lane, size_t bytes, int64_t now_ns);
  // The bytes to be written, in order; none if there is nothing to say. sent() says how many went. Parts of values that
  // are larger than `chunk_bytes_most` wait for a later call.
  std::span<const Bytes> gather(uint32_t lane, int64_t now_ns, size_t chunk_bytes_most = kChunkBytesMax);
  void sent(uint32_t lane, size_t bytes, int64_t now_ns);

  // ---- time and events ----

  int64_t next_timer(int64_t now_ns) const;
  void on_time(int64_t now_ns);
  bool poll(Event& event);
  // Takes no more parcels from the run; when all that was sent has arrived on both sides, the link is over.
  void leave();

  // ---- messages ----

  // Sends a message to the peer. False, and nothing is sent, if
  //  - it is empty, or longer than kMessageBytesMax;
  //  - the control connection is not up: before `met`, and from a cut to `back` or `met`;
  //  - kMessagesWaitingMax messages wait to be written, or with it more than kMessagesWaitingBytesMax would wait.
  // True does not say that it arrives: it is lost if control is cut before it has arrived whole, or if the link is over
  // before it was written. Messages that arrive come in order, each once. More than kMessageBytesPerMinuteSaid wait
  // until the rate allows them. gather() writes it; an owner that sleeps has to look at control again.
  bool say(std::string text);
  // The oldest message of the peer that has come; false if there is none. A message that is not taken before the next
  // control connection is up is gone. If more than kMessagesWaitingMax or kMessagesWaitingBytesMax wait, the peer is
  // refused.
  bool take_message(std::string& text);

  // ---- what a person sees ----

  bool is_connected(uint32_t lane) const { return lanes_[lane].has_connection(); }
  // The connection's bytes are read; nothing that a refused peer still says is.
  bool wants_bytes(uint32_t lane) const {
    return lanes_[lane].state == Lane::State::greeting || lanes_[lane].state == Lane::State::up;
  }
  bool is_up(uint32_t lane) const { return lanes_[lane].state == Lane::State::up; }
  bool is_in_the_middle(uint32_t lane) const { return lanes_[lane].is_in_the_middle(); }
  Presence presence() const { return presence_; }
  Heartbeat::Offset offset(int64_t now_ns) const { return heartbeat_.offset(now_ns); }
  uint16_t version() const { return version_; }
  uint64_t features() const { return features_; } // those of both sides
  uint64_t pairing() const { return pairing_; }   // 0: none yet
  uint64_t pairings() const { return pairings_; } // how many there have been
  const Outgoing* outgoing(uint16_t crossing) const { return outgoing_[crossing].get(); }
  const Incoming* incoming(uint16_t crossing) const { return incoming_[crossing].get(); }
  uint64_t bytes_copied() const; // body bytes, in user space

 private:
  Hello hello(uint32_t lane) const;
  void tell(EventType type, uint32_t lane, Fault fault = {}, std::string_view sentence = {});

  Fault check_peer(const Hello& hello);
  Fault accept_control(const Hello& hello, bool checks_bodies, int64_t now_ns);
  void begin_proposed(int64_t now_ns);
  void begin_pairing(uint64_t pairing, uint64_t peer_session);
  void drop_plan();
  void dial_data(int64_t now_ns);
  void let_go(uint32_t lane);
  void connect(uint32_t lane, bool checks_bodies, int64_t now_ns);
  void come_up(uint32_t lane, int64_t now_ns);
  void drop(uint32_t lane, int64_t now_ns);
  void drop_all(int64_t now_ns);
  void refuse(uint32_t lane, Fault fault, int64_t now_ns);
  void end_by_refusal(uint32_t lane, Fault fault, int64_t now_ns);
  void condemn(Fault fault, int64_t now_ns);

  Fault read_record(uint32_t lane, int64_t now_ns);
  Fault read_welcome(uint32_t lane, int64_t now_ns);
  Fault read_control(const Head& head, Bytes body, int64_t now_ns);
  Fault read_data_lane(uint32_t lane);
  Fault read_pong(Bytes body, int64_t now_ns);
  Fault read_state(Bytes body);
  Fault read_message(const Head& head, Bytes body, int64_t now_ns);
  Fault begin_data(uint32_t lane);
  void write_hello(RecordType type, uint32_t lane);
  void write_control(int64_t now_ns);
  void write_pong(int64_t now_ns);
  void write_states(int64_t now_ns);
  void write_farewells();
  bool states_are_urgent() const;
  bool states_are_due() const;
  void look_at_presence(int64_t now_ns);
  void look_at_drain(int64_t now_ns);

  SessionOptions options_;
  Random random_;
  std::vector<Lane> lanes_;
  uint64_t connections_ = 0;                        // data connections that this side has dialled
  std::vector<std::unique_ptr<Outgoing>> outgoing_; // by the crossing's number
  std::vector<std::unique_ptr<Incoming>> incoming_;

  bool follows_;   // there is a plan
  bool is_shared_; // the peer follows it too
  bool plan_is_over_ = false;
  std::vector<StateEntry> last_states_; // once the plan is over: how much of each crossing had arrived
  size_t last_states_told_ = 0;         // as many were written to this control connection

  // The peer.
  uint64_t pairing_ = 0, peer_session_ = 0, pairings_ = 0;
  uint64_t proposed_ = 0, proposed_session_ = 0; // in the last WELCOME of the control connection
  uint16_t version_ = 0;
  uint64_t features_ = 0;
  Presence presence_ = Presence::away;
  Heartbeat heartbeat_;
  OutgoingMessages outgoing_messages_;
  IncomingMessages incoming_messages_;

  // A process of the peer that has contradicted itself is refused for good, and so counts as away. 0: there is none.
  uint64_t condemned_session_ = 0;
  Fault contradiction_{};
  uint32_t pings_unanswered_ = 0;

  // To be written on the control connection.
  bool has_pong_ = false;
  Times ping_;              // that the PONG answers
  int64_t state_at_ns_ = 0; // no earlier, unless it is urgent

  // Leaving.
  bool leaving_ = false, peer_leaving_ = false, peer_drained_ = false, gone_ = false;
  bool told_leaving_ = false, told_drained_ = false;

  static constexpr size_t kEventsMax = 64;
  std::array<Event, kEventsMax> events_{};
  size_t event_begin_ = 0, event_end_ = 0;
  std::array<char, kSentenceBytesMax> sentence_{};
  std::string other_version_; // the sentence of Fault::version for the last HELLO; "": it fits
};

// A whole REFUSE record, for a connection that has no session.
size_t write_refusal(Fault fault, std::string_view sentence, bool checks_bodies, std::span<std::byte> bytes);

} // namespace millrace::net
