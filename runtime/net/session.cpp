// A session's connections: greeting, pairing, cuts, and the records of the control connection.
#include "net/session.h"

#include <algorithm>
#include <bit>
#include <utility>

#include "observe/error.h"

namespace millrace::net {

namespace {

std::string versions_of(uint16_t least, uint16_t most) {
  const std::string first = "mrl/" + std::to_string(least);
  return least == most ? first : first + " to mrl/" + std::to_string(most);
}

} // namespace

Session::Session(const SessionOptions& options)
    : options_(options),
      random_(options.seed),
      lanes_(1 + options.data_lanes),
      outgoing_(kCrossingsMax),
      incoming_(kCrossingsMax),
      follows_(!options.plan_comes_later),
      is_shared_(follows_) {
  MR_ASSERT(options.data_lanes >= 1 && options.data_lanes <= kDataLanesMax, "a link has 1 to 4 data connections");
  MR_ASSERT(options.self.session != 0, "a session's number is not 0");
  if (options.dials) lanes_[0].dial_at_ns = INT64_MIN;
}

void Session::add(const CrossingPlan& plan, Departure& departure) {
  MR_ASSERT(plan.number < kCrossingsMax && plan.lane >= 1 && plan.lane < lanes_.size() && !outgoing_[plan.number],
            "a crossing has a number of its own and a data connection");
  outgoing_[plan.number] = std::make_unique<Outgoing>(plan, departure);
  lanes_[plan.lane].outgoing.push_back(outgoing_[plan.number].get());
}

void Session::add(const CrossingPlan& plan, Arrival& arrival) {
  MR_ASSERT(plan.number < kCrossingsMax && plan.lane >= 1 && plan.lane < lanes_.size() && !incoming_[plan.number],
            "a crossing has a number of its own and a data connection");
  incoming_[plan.number] = std::make_unique<Incoming>(plan, arrival);
  lanes_[plan.lane].incoming.push_back(incoming_[plan.number].get());
}

// ---- the plan ------------------------------------------------------------------------------------------------------

void Session::follow(uint64_t run, uint32_t revision, const std::array<std::byte, 32>& brief, int64_t now_ns) {
  MR_ASSERT(!follows_, "a plan is followed until it is forgotten");
  follows_ = true;
  options_.self.run = run;
  options_.self.revision = revision;
  options_.self.brief = brief;
  if (is_up(0)) dial_data(now_ns);
}

void Session::forget_plan() {
  MR_ASSERT(options_.plan_comes_later && !is_shared_, "a plan that both sides follow is not forgotten");
  drop_plan();
}

void Session::end_plan() {
  MR_ASSERT(options_.plan_comes_later, "a link that has its plan from the start ends with it");
  plan_is_over_ = true;
  for (const auto& crossing : incoming_)
    if (crossing && is_shared_) last_states_.push_back({crossing->plan().number, false, crossing->write_state(), {}});
  drop_plan();
}

void Session::drop_plan() {
  follows_ = false;
  for (uint32_t lane = 1; lane < lanes_.size(); ++lane) {
    if (lanes_[lane].has_connection()) tell(EventType::close, lane);
    let_go(lane); // one that is being dialled is closed when it comes
    lanes_[lane].outgoing.clear();
    lanes_[lane].incoming.clear();
  }
  for (auto& crossing : outgoing_) crossing.reset();
  for (auto& crossing : incoming_) crossing.reset();
}

void Session::dial_data(int64_t now_ns) {
  if (!options_.dials || !follows_ || gone_) return;
  for (uint32_t lane = 1; lane < lanes_.size(); ++lane)
    if (lanes_[lane].state == Lane::State::down) lanes_[lane].dial_at_ns = now_ns;
}

Hello Session::hello(uint32_t lane) const {
  const Self& self = options_.self;
  Hello hello;
  hello.version_least = self.version_least;
  hello.version_most = self.version_most;
  hello.features = self.features;
  hello.mandatory = self.mandatory;
  hello.node = self.node;
  hello.session = self.session;
  hello.pairing = pairing_;
  hello.run = self.run;
  hello.revision = self.revision;
  hello.brief = self.brief;
  hello.lane = lane;
  hello.connection = lanes_[lane].watch.connection();
  return hello;
}

// ---- events --------------------------------------------------------------------------------------------------------

void Session::tell(EventType type, uint32_t lane, Fault fault, std::string_view sentence) {
  MR_ASSERT(event_end_ - event_begin_ < kEventsMax, "the owner of a session polls after each call");
  events_[event_end_++ % kEventsMax] = {type, lane, fault, sentence};
}

bool Session::poll(Event& event) {
  if (event_begin_ == event_end_) return false;
  event = events_[event_begin_++ % kEventsMax];
  return true;
}

// ---- a connection comes --------------------------------------------------------------------------------------------

// All that belonged to the connection before.
void Session::let_go(uint32_t lane) {
  Lane& connection = lanes_[lane];
  for (Outgoing* crossing : connection.outgoing) crossing->close();
  for (Incoming* crossing : connection.incoming) crossing->close();
  connection.outbox.begin(false);
  connection.watch.begin(0);
  connection.state = Lane::State::down;
  connection.reading = nullptr;
  connection.dial_at_ns = connection.give_up_at_ns = INT64_MAX;
  if (lane != 0) return;
  outgoing_messages_.clear();
  incoming_messages_.cut();
}

void Session::connect(uint32_t lane, bool checks_bodies, int64_t now_ns) {
  let_go(lane);
  Lane& connection = lanes_[lane];
  connection.inbox.begin(checks_bodies);
  connection.outbox.begin(checks_bodies);
  connection.state = Lane::State::greeting;
  connection.give_up_at_ns = now_ns + kGreetingNs;
}

void Session::dialled(uint32_t lane, bool checks_bodies, int64_t now_ns) {
  if (gone_ || lanes_[lane].state != Lane::State::dialling) return tell(EventType::close, lane);
  connect(lane, checks_bodies, now_ns);
  if (lane != 0) lanes_[lane].watch.begin(++connections_);
  write_hello(RecordType::hello, lane);
}

void Session::write_hello(RecordType type, uint32_t lane) {
  Hello said = hello(lane);
  if (type == RecordType::welcome) {
    said.version_least = said.version_most = version_;
    said.features = features_;
    said.mandatory &= features_;
    if (lane == 0) said.pairing = proposed_;
  }
  ByteWriter body = lanes_[lane].outbox.body(kHelloBytes);
  net::write_hello(said, body);
  lanes_[lane].outbox.add(type, body);
}

Fault Session::check_peer(const Hello& hello) {
  const Self& self = options_.self;
  other_version_.clear();
  if (hello.node != options_.peer) return Fault::node;
  if (hello.version_least > self.version_most || hello.version_most < self.version_least) {
    const std::string own = versions_of(self.version_least, self.version_most);
    const std::string other = versions_of(hello.version_least, hello.version_most);
    other_version_ = std::string(sentence_of(Fault::version)) + ": the one that dials speaks " +
                     (options_.dials ? own : other) + ", the other one " + (options_.dials ? other : own);
    return Fault::version;
  }
  if ((hello.mandatory & ~self.features) != 0 || (self.mandatory & ~hello.features) != 0) return Fault::feature;
  const bool compares_plans = !options_.plan_comes_later || hello.lane > 0;
  if (compares_plans && (!follows_ || hello.run != self.run || hello.brief != self.brief)) return Fault::plan;
  return hello.lane < lanes_.size() ? Fault::none : Fault::lane;
}

Fault Session::accept(const Hello& hello, bool checks_bodies, int64_t now_ns) {
  if (gone_) return Fault::leaving;
  if (const Fault fault = check_peer(hello); fault != Fault::none) {
    const bool is_other_program = fault == Fault::version || fault == Fault::feature;
    if (is_other_program && hello.lane == 0) tell(EventType::refused, 0, fault, refusal(fault));
    return fault;
  }
  if (condemned_session_ != 0 && hello.session == condemned_session_) return contradiction_;
  if (hello.lane == 0) return accept_control(hello, checks_bodies, now_ns);
  // A data connection may overtake the answer on the control connection.
  const bool is_proposed = hello.pairing == proposed_ && hello.session == proposed_session_;
  if (is_proposed && proposed_ != pairing_ && lanes_[0].state == Lane::State::greeting) begin_proposed(now_ns);
  if (pairing_ == 0 || hello.pairing != pairing_ || hello.session != peer_session_) return Fault::stale;
  connect(hello.lane, checks_bodies, now_ns);
  lanes_[hello.lane].watch.begin(hello.connection);
  write_hello(RecordType::welcome, hello.lane);
  come_up(hello.lane, now_ns);
  return Fault::none;
}

Fault Session::accept_control(const Hello& hello, bool checks_bodies, int64_t now_ns) {
  const bool is_other = pairing_ == 0 || hello.session != peer_session_;
  // While one process is heard, another one with its identity is a mistake of whoever started it.
  if (is_other && is_up(0) && heartbeat_.presence(now_ns) == Presence::there) return Fault::running_already;
  version_ = std::min(hello.version_most, options_.self.version_most);
  features_ = hello.features & options_.self.features;
  connect(0, checks_bodies, now_ns);
  // A pairing that was proposed before may have begun on the other side.
  const bool was_proposed = hello.pairing == proposed_ && hello.session == proposed_session_ && proposed_ != 0;
  if (!is_other && hello.pairing == pairing_)
    proposed_ = pairing_;
  else if (!was_proposed)
    proposed_ = random_.next() | 1;
  proposed_session_ = hello.session;
  write_hello(RecordType::welcome, 0);
  return Fault::none;
}

// The peer has begun the pairing that it was told in WELCOME.
void Session::begin_proposed(int64_t now_ns) {
  const bool goes_on = proposed_ == pairing_;
  if (!goes_on) begin_pairing(proposed_, proposed_session_);
  come_up(0, now_ns);
  tell(goes_on ? EventType::back : EventType::met, 0);
}

// Numbers begin at 0, so no connection of the pairing before is of use.
void Session::begin_pairing(uint64_t pairing, uint64_t peer_session) {
  for (uint32_t lane = 1; lane < lanes_.size(); ++lane)
    if (lanes_[lane].has_connection()) {
      let_go(lane);
      tell(EventType::close, lane);
    }
  for (Lane& lane : lanes_) {
    for (Outgoing* crossing : lane.outgoing) crossing->begin_pairing();
    for (Incoming* crossing : lane.incoming) crossing->begin_pairing();
  }
  pairing_ = pairing;
  peer_session_ = peer_session;
  is_shared_ = !options_.plan_comes_later;
  last_states_.clear();
  ++pairings_;
  heartbeat_.forget();
  peer_leaving_ = peer_drained_ = false;
}

void Session::come_up(uint32_t lane, int64_t now_ns) {
  Lane& connection = lanes_[lane];
  connection.state = Lane::State::up;
  connection.give_up_at_ns = INT64_MAX;
  connection.opens_written = 0;
  connection.redial.succeeded(now_ns);
  if (lane != 0) {
    is_shared_ = true;
    for (Outgoing* crossing : connection.outgoing) crossing->set_tells_stranded((features_ & kFeatureStranded) != 0);
    return;
  }
  heartbeat_.begin(now_ns);
  presence_ = Presence::there;
  has_pong_ = told_leaving_ = told_drained_ = false;
  pings_unanswered_ = 0;
  incoming_messages_.begin();
  last_states_told_ = 0;
  for (Lane& each : lanes_) {
    for (Outgoing* crossing : each.outgoing) crossing->retell();
    for (Incoming* crossing : each.incoming) crossing->retell();
  }
  dial_data(now_ns);
}

Fault Session::read_welcome(uint32_t lane, int64_t now_ns) {
  Hello hello;
  if (const Fault fault = read_hello(lanes_[lane].inbox.body(), hello); fault != Fault::none) return fault;
  if (const Fault fault = check_peer(hello); fault != Fault::none) return fault;
  if (condemned_session_ != 0 && hello.session == condemned_session_) return contradiction_;
  if (hello.lane != lane || hello.connection != lanes_[lane].watch.connection()) return Fault::lane;
  if (hello.version_least != hello.version_most) return Fault::version;
  if ((hello.features & ~options_.self.features) != 0) return Fault::feature;
  if (lane != 0) {
    if (hello.pairing != pairing_ || hello.session != peer_session_) return Fault::stale;
    come_up(lane, now_ns);
    return Fault::none;
  }
  if (hello.pairing == 0) return Fault::session;
  const bool goes_on = hello.pairing == pairing_;
  if (goes_on && hello.session != peer_session_) return Fault::session;
  version_ = hello.version_most;
  features_ = hello.features;
  if (!goes_on) begin_pairing(hello.pairing, hello.session);
  come_up(0, now_ns);
  tell(goes_on ? EventType::back : EventType::met, 0);
  return Fault::none;
}

// ---- a connection goes ---------------------------------------------------------------------------------------------

void Session::cut(uint32_t lane, int64_t now_ns) {
  Lane& connection = lanes_[lane];
  if (connection.state == Lane::State::down) return;
  let_go(lane);
  if (lane == 0) look_at_drain(now_ns);
  if (options_.dials && !gone_ && (lane == 0 || (is_up(0) && follows_)))
    connection.dial_at_ns = connection.redial.next_ns(now_ns, random_.next());
}

void Session::drop(uint32_t lane, int64_t now_ns) {
  if (!lanes_[lane].has_connection()) return;
  cut(lane, now_ns);
  tell(EventType::close, lane);
}

void Session::drop_all(int64_t now_ns) {
  for (uint32_t lane = 0; lane < lanes_.size(); ++lane) drop(lane, now_ns);
}

std::string_view Session::refusal(Fault fault) const {
  return fault == Fault::version && !other_version_.empty() ? std::string_view(other_version_) : sentence_of(fault);
}

// Says why, if the connection is not in the middle of much, and closes.
void Session::refuse(uint32_t lane, Fault fault, int64_t now_ns) {
  const bool was_up = is_up(lane); // else it may be another process
  tell(EventType::refused, lane, fault, refusal(fault));
  end_by_refusal(lane, fault, now_ns);
  if (was_up && is_contradiction(fault)) condemn(fault, now_ns);
}

// It would do the same again, so it is no use to go on with it.
void Session::condemn(Fault fault, int64_t now_ns) {
  condemned_session_ = peer_session_;
  contradiction_ = fault;
  for (uint32_t lane = 0; lane < lanes_.size(); ++lane)
    if (is_up(lane)) end_by_refusal(lane, fault, now_ns);
  if (std::exchange(presence_, Presence::away) != Presence::away) tell(EventType::away, 0, fault, refusal(fault));
}

void Session::end_by_refusal(uint32_t lane, Fault fault, int64_t now_ns) {
  Lane& connection = lanes_[lane];
  connection.redial.refused(now_ns);
  connection.inbox.begin(false); // nothing of it is read any more, and room() has room again
  if (!connection.outbox.add_farewell(RecordType::refuse, fault, refusal(fault))) return drop(lane, now_ns);
  connection.state = Lane::State::closing;
  connection.give_up_at_ns = now_ns + kSecond;
}

size_t write_refusal(Fault fault, std::string_view sentence, bool checks_bodies, std::span<std::byte> bytes) {
  Outbox outbox;
  outbox.begin(checks_bodies);
  outbox.add_farewell(RecordType::refuse, fault, sentence);
  const Bytes whole = outbox.pieces()[0];
  MR_ASSERT(whole.size() <= bytes.size(), "a refusal has room");
  std::copy(whole.begin(), whole.end(), bytes.begin());
  return whole.size();
}

// ---- time ----------------------------------------------------------------------------------------------------------

int64_t Session::next_timer(int64_t now_ns) const {
  int64_t next = INT64_MAX;
  for (const Lane& lane : lanes_) next = std::min({next, lane.dial_at_ns, lane.give_up_at_ns});
  if (presence_ != Presence::away) next = std::min(next, heartbeat_.next_presence_ns(now_ns));
  // Bytes that wait to be written go first, once the connection takes them.
  if (is_up(0) && lanes_[0].outbox.empty()) {
    next = std::min(next, heartbeat_.next_ping_ns());
    if (states_are_due()) next = std::min(next, states_are_urgent() ? now_ns : state_at_ns_);
    next = std::min(next, outgoing_messages_.next_ns());
  }
  return std::max(next, now_ns);
}

void Session::on_time(int64_t now_ns) {
  for (uint32_t lane = 0; lane < lanes_.size(); ++lane) {
    Lane& connection = lanes_[lane];
    if (now_ns >= connection.give_up_at_ns) {
      if (connection.state == Lane::State::greeting) tell(EventType::refused, lane, Fault::slow_greeting);
      connection.redial.refused(now_ns);
      drop(lane, now_ns);
    }
    if (now_ns >= connection.dial_at_ns) {
      connection.dial_at_ns = INT64_MAX;
      connection.state = Lane::State::dialling;
      tell(EventType::dial, lane);
    }
  }
  look_at_presence(now_ns);
  look_at_drain(now_ns);
}

void Session::look_at_presence(int64_t now_ns) {
  if (presence_ == Presence::away) return;
  const Presence now = heartbeat_.presence(now_ns);
  if (now == presence_) return;
  presence_ = now;
  if (now == Presence::there) tell(EventType::there, 0);
  if (now == Presence::suspect) tell(EventType::suspect, 0);
  if (now != Presence::away) return;
  tell(EventType::away, 0);
  // A dead connection brings nothing more, and a new one may find a way. One that is greeting is the new one.
  for (uint32_t lane = 0; lane < lanes_.size(); ++lane)
    if (lane != 0 || lanes_[0].state != Lane::State::greeting) drop(lane, now_ns);
}

// ---- messages ------------------------------------------------------------------------------------------------------

bool Session::say(std::string text) { return is_up(0) && outgoing_messages_.add(std::move(text)); }

bool Session::take_message(std::string& text) { return incoming_messages_.take(text); }

// ---- leaving -------------------------------------------------------------------------------------------------------

void Session::leave() { leaving_ = true; }

void Session::look_at_drain(int64_t now_ns) {
  if (gone_ || !peer_drained_) return;
  // The side that dialled hears the last word. The other one waits until it was heard, or the peer is away.
  if (!options_.dials && (!told_drained_ || lanes_[0].has_connection())) return;
  gone_ = leaving_ || !options_.plan_comes_later;
  peer_leaving_ = peer_drained_ = false;
  presence_ = Presence::away; // nobody is missed from now on
  tell(EventType::drained, 0);
  drop_all(now_ns);
  if (!gone_) return; // another process of the peer may come
  for (Lane& lane : lanes_) lane.dial_at_ns = INT64_MAX;
}

uint64_t Session::bytes_copied() const {
  uint64_t sum = 0;
  for (const Lane& lane : lanes_) sum += lane.inbox.bytes_copied();
  return sum;
}

} // namespace millrace::net
