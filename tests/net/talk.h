// One session under test, and a peer that says what the test lets it say, record by record.
#pragma once

#include <doctest/doctest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "net/session.h"
#include "tests/net/ends.h"
#include "tests/net/wire.h"

namespace millrace::net::test {

constexpr uint64_t kPairing = 5; // of a session that dials

inline Contents exact(uint32_t bytes) {
  Contents contents;
  contents.bytes_max = bytes;
  contents.is_exact = true;
  return contents;
}

// One session, and a peer that says what the test lets it say. The session sends crossing 0 and reads crossing 1.
struct Talk {
  // `waits`: the clock of its crossings waits for every tick, and never begins anew.
  explicit Talk(bool dials, Self self = {}, bool waits = false) : options(options_of(dials, self)), session(options) {
    CrossingPlan out = plan_of(0, 1, 4, exact(10)), in = plan_of(1, 1, 4, exact(10));
    out.leaves_out = out.begins_anew = in.leaves_out = in.begins_anew = !waits;
    session.add(out, giver);
    session.add(in, taker);
  }

  static SessionOptions options_of(bool dials, Self self) {
    SessionOptions made;
    made.self = self;
    made.self.node[0] = std::byte{1};
    made.peer[0] = std::byte{2};
    made.self.session = 77;
    made.self.run = 9;
    made.dials = dials;
    made.seed = 1;
    return made;
  }
  // The greeting that the session takes.
  Hello hello(uint32_t lane = 0, uint64_t of_pairing = 0) const {
    Hello made;
    made.version_least = options.self.version_least;
    made.version_most = options.dials ? options.self.version_least : options.self.version_most;
    made.features = options.self.features;
    made.node[0] = std::byte{2};
    made.session = 88;
    made.run = 9;
    made.pairing = of_pairing;
    made.lane = lane;
    made.connection = lane == 0 ? 0 : connection;
    return made;
  }

  void feed(uint32_t lane, Bytes bytes) {
    while (!bytes.empty()) {
      const std::span<std::byte> room = session.room(lane);
      REQUIRE(!room.empty());
      const size_t size = std::min(room.size(), bytes.size());
      std::copy_n(bytes.begin(), size, room.begin());
      session.received(lane, size, now);
      bytes = bytes.subspan(size);
      if (!session.is_connected(lane)) return;
    }
  }
  void welcome(uint32_t lane, const Hello& said) {
    feed(lane, record_of(RecordType::welcome, body_of([&](ByteWriter& writer) { write_hello(said, writer); })));
  }
  // An answer to a PING that left so long ago, and the bytes that the peer has received of the data connection.
  Buffer pong(int64_t asked_ns, uint64_t of_connection, uint64_t bytes) const {
    Pong said;
    said.times.t1 = asked_ns;
    said.lanes[0] = {of_connection, bytes};
    return record_of(RecordType::pong, body_of([&](ByteWriter& writer) { write_pong(said, writer); }));
  }
  // The types of records that the session has to say, and the body of the last.
  std::vector<RecordType> hear(uint32_t lane) {
    Buffer bytes;
    for (const Bytes piece : session.gather(lane, now)) bytes.insert(bytes.end(), piece.begin(), piece.end());
    session.sent(lane, bytes.size(), now);
    if (lane == 1) written += bytes.size();
    std::vector<RecordType> types;
    for (size_t at = 0; at < bytes.size();) {
      Head head;
      REQUIRE(read_head(Bytes(bytes).subspan(at).first<kHeadBytes>(), head) == Fault::none);
      types.push_back(head.type);
      last.assign(bytes.begin() + static_cast<ptrdiff_t>(at + kHeadBytes),
                  bytes.begin() + static_cast<ptrdiff_t>(at + kHeadBytes + head.length));
      at += kHeadBytes + head.length + kCrcBytes;
    }
    return types;
  }
  // The events since the last call.
  std::vector<EventType> events() {
    std::vector<EventType> types;
    for (Event event; session.poll(event);) {
      types.push_back(event.type);
      if (event.type == EventType::refused || event.type == EventType::was_refused) fault = event.fault;
      if (event.type == EventType::was_refused) sentence = event.sentence;
    }
    return types;
  }
  bool told(EventType type) {
    const std::vector<EventType> types = events();
    return std::count(types.begin(), types.end(), type) > 0;
  }
  Buffer ping() const {
    return record_of(RecordType::ping, body_of([&](ByteWriter& writer) { writer.put(now); }));
  }

  void dial(uint32_t lane) {
    session.on_time(now);
    REQUIRE(told(EventType::dial));
    session.dialled(lane, true, now);
    REQUIRE(hear(lane) == std::vector{RecordType::hello});
    if (lane == 0) return;
    Hello said;
    REQUIRE(read_hello(last, said) == Fault::none);
    connection = said.connection;
    written = 0;
  }
  // Up on control, and on the data connection if that is asked for.
  void come_up(bool with_data = false) {
    if (options.dials) {
      dial(0);
      welcome(0, hello(0, kPairing));
      pairing = kPairing;
    } else {
      REQUIRE(session.accept(hello(), true, now) == Fault::none);
      REQUIRE(hear(0) == std::vector{RecordType::welcome});
      Hello said;
      REQUIRE(read_hello(last, said) == Fault::none);
      pairing = said.pairing;
      feed(0, ping());
    }
    REQUIRE(session.is_up(0));
    REQUIRE(told(EventType::met));
    if (!with_data) return;
    if (options.dials) {
      dial(1);
      welcome(1, hello(1, kPairing));
    } else {
      REQUIRE(session.accept(hello(1, pairing), true, now) == Fault::none);
    }
    REQUIRE(session.is_up(1));
    hear(1);
    events();
  }

  SessionOptions options;
  Giver giver{exact(10), 4};
  Taker taker{exact(10), 4};
  Session session;
  int64_t now = kSecond;
  uint64_t pairing = 0;
  uint64_t connection = 1; // the number of the data connection
  uint64_t written = 0;    // bytes that the session wrote to it, without HELLO
  Buffer last;
  Fault fault{};
  std::string sentence;
};

// A good record of the type, for the crossings of Talk.
inline Buffer good_record(const Talk& talk, RecordType type, uint32_t lane) {
  const auto body = [](auto write) { return body_of(write); };
  switch (type) {
    case RecordType::hello:
    case RecordType::welcome:
      return record_of(type, body([&](ByteWriter& writer) { write_hello(talk.hello(lane, kPairing), writer); }));
    case RecordType::open: {
      Open open;
      open.name = "main/0>gpu";
      open.depth = 4;
      open.delivery = Delivery::reliable;
      open.value_count = 1;
      open.format_hashes[0] = hash_of(plan_of(0, 1, 4, exact(10)).formats[0]);
      open.credit = 4;
      return record_of(type, body([&](ByteWriter& writer) { write_open(open, writer); }));
    }
    case RecordType::tick:
    case RecordType::end: {
      Parcel parcel;
      parcel.tick.media_time_ns = media_of(0);
      parcel.tick.trace_id = mixed(0);
      parcel.value_count = type == RecordType::tick ? 1 : 0;
      return record_of({type, 0, 1, 0, 0, 0}, body([&](ByteWriter& writer) {
                         write_tick(parcel, writer);
                         if (parcel.value_count == 0) return;
                         writer.put(kValueFull);
                         write_value(exact(10).header(0, 0), writer);
                       }));
    }
    case RecordType::data: return record_of({type, 0, 1, 0, 0, 0}, Buffer(10));
    case RecordType::state:
      return record_of(type, body([](ByteWriter& writer) { write_state_entry({0, false, {0, 4}, {}}, writer); }));
    case RecordType::ping: return record_of(type, Buffer(kPingBytes));
    case RecordType::pong: return record_of(type, Buffer(kPongBytes));
    case RecordType::message: return record_of({type, kLastChunk, 0, 0, 0, 0}, Buffer(10));
    case RecordType::change: return record_of({type, 0, 1, 0, 0, 0}, some_change());
    default: return record_of(type, some_farewell());
  }
}

} // namespace millrace::net::test
