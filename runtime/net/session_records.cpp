// A session's records: what may come when, what is written next, and what each record does.
#include <algorithm>

#include "net/session.h"
#include "observe/error.h"

namespace millrace::net {
namespace {

// The crossing with the number that a peer said, if it is there and goes over this connection.
template <class Crossing>
Crossing* on_lane(const std::vector<std::unique_ptr<Crossing>>& crossings, uint16_t number, uint32_t lane) {
  Crossing* const crossing = number < crossings.size() ? crossings[number].get() : nullptr;
  return crossing && crossing->plan().lane == lane ? crossing : nullptr;
}

} // namespace

std::span<std::byte> Session::room(uint32_t lane) { return lanes_[lane].inbox.room(); }

void Session::received(uint32_t lane, size_t bytes, int64_t now_ns) {
  Lane& connection = lanes_[lane];
  // Nothing counts that a refused peer still says.
  if (!wants_bytes(lane)) return;
  connection.inbox.received(bytes);
  connection.watch.received(bytes);
  while (wants_bytes(lane)) {
    Fault fault{};
    switch (connection.inbox.next()) {
      case Inbox::Next::nothing: return;
      case Inbox::Next::record: fault = read_record(lane, now_ns); break;
      case Inbox::Next::data: fault = begin_data(lane); break;
      case Inbox::Next::data_whole: connection.reading->end_data(); break;
      case Inbox::Next::fault: fault = connection.inbox.fault(); break;
    }
    if (fault != Fault::none) return refuse(lane, fault, now_ns);
  }
}

// The table of session.h.
Fault Session::read_record(uint32_t lane, int64_t now_ns) {
  Lane& connection = lanes_[lane];
  const Head& head = connection.inbox.head();
  const Bytes body = connection.inbox.body();
  if (head.type == RecordType::refuse) {
    Farewell farewell;
    if (const Fault fault = read_farewell(body, farewell); fault != Fault::none) return fault;
    const auto end = std::copy(farewell.sentence.begin(), farewell.sentence.end(), sentence_.begin());
    tell(EventType::was_refused, lane, farewell.code, {sentence_.data(), static_cast<size_t>(end - sentence_.begin())});
    connection.redial.refused(now_ns);
    // A peer leaves the link when both sides have all.
    if (farewell.code == Fault::leaving && (leaving_ || peer_leaving_)) peer_drained_ = true;
    drop(lane, now_ns);
    look_at_drain(now_ns);
    return Fault::none;
  }
  if (connection.state == Lane::State::greeting && options_.dials)
    return head.type == RecordType::welcome ? read_welcome(lane, now_ns) : Fault::unexpected;
  if (connection.state == Lane::State::greeting) begin_proposed(now_ns);
  return lane == 0 ? read_control(head, body, now_ns) : read_data_lane(lane);
}

Fault Session::read_control(const Head& head, Bytes body, int64_t now_ns) {
  heartbeat_.heard(now_ns);
  look_at_presence(now_ns);
  if (pings_unanswered_ > kPingsUnansweredMax && head.type != RecordType::pong) return Fault::no_pong;
  ByteReader reader(body);
  switch (head.type) {
    case RecordType::state: return read_state(body);
    case RecordType::ping:
      has_pong_ = true;
      ping_ = {reader.get<int64_t>(), now_ns, 0};
      return Fault::none;
    case RecordType::pong: return read_pong(body, now_ns);
    case RecordType::message: return read_message(head, body, now_ns);
    case RecordType::go_away: {
      Farewell farewell;
      if (const Fault fault = read_farewell(body, farewell); fault != Fault::none) return fault;
      if (!peer_leaving_) tell(EventType::leaving, 0, farewell.code);
      peer_leaving_ = true;
      peer_drained_ = peer_drained_ || farewell.code == Fault::drained;
      look_at_drain(now_ns);
      return Fault::none;
    }
    default: return Fault::unexpected;
  }
}

Fault Session::read_pong(Bytes body, int64_t now_ns) {
  Pong pong;
  if (const Fault fault = net::read_pong(body, pong); fault != Fault::none) return fault;
  for (uint32_t lane = 1; lane <= kDataLanesMax; ++lane) {
    const LaneCount& count = pong.lanes[lane - 1];
    if (lane >= lanes_.size() && count.connection != 0) return Fault::lane;
    if (lane >= lanes_.size() || !is_up(lane)) continue;
    Fault fault = lanes_[lane].watch.heard(count, pong.times.t1, now_ns);
    if (fault == Fault::none && lanes_[lane].watch.has_all_come())
      for (Outgoing* crossing : lanes_[lane].outgoing)
        if (fault == Fault::none) fault = crossing->all_has_come(pong.times.t1);
    if (fault == Fault::vanished) {
      tell(EventType::refused, lane, fault, sentence_of(fault));
      drop(lane, now_ns);
    } else if (fault != Fault::none) {
      return fault;
    }
  }
  pings_unanswered_ = 0;
  heartbeat_.answered(pong.times, now_ns);
  return Fault::none;
}

Fault Session::read_state(Bytes body) {
  ByteReader reader(body);
  while (!reader.at_end()) {
    StateEntry entry;
    if (const Fault fault = read_state_entry(reader, entry); fault != Fault::none) return fault;
    if (entry.crossing >= kCrossingsMax) return Fault::crossing;
    Outgoing* const outgoing = outgoing_[entry.crossing].get();
    Incoming* const incoming = incoming_[entry.crossing].get();
    if (plan_is_over_) continue; // it was said before the peer learnt of it
    if (entry.of_sender ? !incoming : !outgoing) return Fault::crossing;
    const Fault fault = entry.of_sender ? incoming->read_state(entry.sender) : outgoing->read_state(entry.reader);
    if (fault != Fault::none) return fault;
  }
  return Fault::none;
}

Fault Session::read_message(const Head& head, Bytes body, int64_t now_ns) {
  const bool was_told = incoming_messages_.has_whole();
  const Fault fault = incoming_messages_.read(head, body, now_ns);
  if (!was_told && incoming_messages_.has_whole()) tell(EventType::message, 0);
  return fault;
}

Fault Session::read_data_lane(uint32_t lane) {
  const Head& head = lanes_[lane].inbox.head();
  const Bytes body = lanes_[lane].inbox.body();
  switch (head.type) {
    case RecordType::open: {
      Outgoing* const crossing = on_lane(outgoing_, head.crossing, lane);
      if (!crossing) return Fault::crossing;
      Open open;
      const Fault fault = read_open(body, open);
      return fault != Fault::none ? fault : crossing->open(open);
    }
    case RecordType::tick:
    case RecordType::end: {
      Incoming* const crossing = on_lane(incoming_, head.crossing, lane);
      if (!crossing) return Fault::crossing;
      return crossing->read_tick(head, body);
    }
    case RecordType::change: {
      Incoming* const crossing = on_lane(incoming_, head.crossing, lane);
      if (!crossing) return Fault::crossing;
      return crossing->read_change(head, body);
    }
    default: return Fault::unexpected;
  }
}

Fault Session::begin_data(uint32_t lane) {
  Lane& connection = lanes_[lane];
  const Head& head = connection.inbox.head();
  if (lane == 0 || connection.state != Lane::State::up) return Fault::unexpected;
  Incoming* const crossing = on_lane(incoming_, head.crossing, lane);
  if (!crossing) return Fault::crossing;
  std::span<std::byte> target;
  if (const Fault fault = crossing->begin_data(head, target); fault != Fault::none) return fault;
  connection.reading = crossing;
  connection.inbox.read_data(target);
  return Fault::none;
}

// ---- writing -------------------------------------------------------------------------------------------------------

std::span<const Bytes> Session::gather(uint32_t lane, int64_t now_ns, size_t chunk_bytes_most) {
  Lane& connection = lanes_[lane];
  if (!connection.has_connection()) return {};
  if (connection.state == Lane::State::up) {
    if (lane == 0)
      write_control(now_ns);
    else
      connection.write_crossings(!leaving_ && !peer_leaving_, chunk_bytes_most);
  }
  return connection.outbox.pieces();
}

void Session::sent(uint32_t lane, size_t bytes, int64_t now_ns) {
  Lane& connection = lanes_[lane];
  if (!connection.has_connection()) return;
  connection.outbox.sent(bytes);
  if (connection.state == Lane::State::up) connection.watch.sent(bytes, now_ns); // HELLO goes before it is up
  for (Outbox::Mark mark; connection.outbox.take_mark(mark);) outgoing_[mark.crossing]->gave(mark.number);
  if (connection.state == Lane::State::closing && connection.outbox.empty()) drop(lane, now_ns);
}

void Session::write_control(int64_t now_ns) {
  Outbox& outbox = lanes_[0].outbox;
  const bool was_empty = outbox.empty();
  if (heartbeat_.ping_due(now_ns) && outbox.has_room(kPingBytes)) {
    ByteWriter body = outbox.body(kPingBytes);
    body.put(now_ns);
    outbox.add(RecordType::ping, body);
    heartbeat_.pinged(now_ns);
    ++pings_unanswered_;
  }
  if (has_pong_ && outbox.has_room(kPongBytes)) write_pong(now_ns);
  if (states_are_due() && (now_ns >= state_at_ns_ || states_are_urgent())) write_states(now_ns);
  write_farewells();
  // One chunk, after all else, and the next one once it has gone: no PONG waits for more.
  if (was_empty) outgoing_messages_.write_next(outbox, now_ns);
}

void Session::write_pong(int64_t now_ns) {
  Pong pong;
  pong.times = {ping_.t1, ping_.t2, now_ns};
  for (uint32_t lane = 1; lane < lanes_.size(); ++lane) pong.lanes[lane - 1] = lanes_[lane].watch.count();
  ByteWriter body = lanes_[0].outbox.body(kPongBytes);
  net::write_pong(pong, body);
  lanes_[0].outbox.add(RecordType::pong, body);
  has_pong_ = false;
}

bool Session::states_are_urgent() const {
  if (last_states_told_ < last_states_.size()) return true;
  return std::any_of(lanes_.begin(), lanes_.end(), [](const Lane& lane) {
    return std::any_of(lane.incoming.begin(), lane.incoming.end(),
                       [](const Incoming* crossing) { return crossing->is_urgent(); });
  });
}

bool Session::states_are_due() const {
  if (!is_shared_) return false; // the peer may not know the crossings
  if (last_states_told_ < last_states_.size()) return true;
  return std::any_of(lanes_.begin(), lanes_.end(), [](const Lane& lane) {
    return std::any_of(lane.incoming.begin(), lane.incoming.end(),
                       [](const Incoming* crossing) { return crossing->is_due(); }) ||
           std::any_of(lane.outgoing.begin(), lane.outgoing.end(),
                       [](const Outgoing* crossing) { return crossing->has_passed(); });
  });
}

// All crossings that have moved, in one record.
void Session::write_states(int64_t now_ns) {
  Outbox& outbox = lanes_[0].outbox;
  constexpr size_t kBytes = kStateEntryBytes * kStateEntriesMax;
  if (!outbox.has_room(kBytes)) return;
  ByteWriter body = outbox.body(kBytes);
  size_t entries = 0;
  for (const Lane& lane : lanes_) {
    for (Incoming* crossing : lane.incoming)
      if (crossing->is_due() && entries < kStateEntriesMax) {
        write_state_entry({crossing->plan().number, false, crossing->write_state(), {}}, body);
        ++entries;
      }
    for (Outgoing* crossing : lane.outgoing)
      if (crossing->has_passed() && entries < kStateEntriesMax) {
        write_state_entry({crossing->plan().number, true, {}, crossing->write_state()}, body);
        ++entries;
      }
  }
  for (; last_states_told_ < last_states_.size() && entries < kStateEntriesMax; ++entries)
    write_state_entry(last_states_[last_states_told_++], body);
  outbox.add(RecordType::state, body);
  state_at_ns_ = now_ns + kStateEveryNs;
}

// GOAWAY: first that one side leaves, then that all that this side had to send has arrived.
void Session::write_farewells() {
  const auto write = [&](Fault code) {
    return lanes_[0].outbox.add_farewell(RecordType::go_away, code, sentence_of(code));
  };
  if (leaving_ && !told_leaving_) told_leaving_ = write(Fault::leaving);
  if (!(leaving_ || peer_leaving_) || told_drained_) return;
  if (!options_.dials && !peer_drained_) return;
  for (const Lane& lane : lanes_)
    for (const Outgoing* crossing : lane.outgoing)
      if (!crossing->is_drained()) return;
  told_drained_ = write(Fault::drained);
}

} // namespace millrace::net
