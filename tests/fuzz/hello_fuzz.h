// A greeting from a stranger: as the HELLO that a session is asked to accept, and as the WELCOME to one that has
// dialled.
//
// The first byte says how the rest is taken. The rest is the bytes of the connection, or a good greeting with those
// bytes added to it, and its checksums may be put right, so that every field is reached.
#pragma once

#include <array>
#include <memory>
#include <vector>

#include "net/crc32c.h"
#include "net/session.h"

namespace millrace::net {
namespace fuzz {

struct Greeting {
  bool checks_bodies = false, is_added = false, is_repaired = false, is_welcome = false;
  uint32_t lane = 0;
  size_t slice = 1;
  std::vector<std::byte> bytes;
};

inline SessionOptions greeted_options(bool dials) {
  SessionOptions options;
  options.self.node[0] = std::byte{1};
  options.peer[0] = std::byte{2};
  options.self.session = 77;
  options.self.run = 5;
  options.self.revision = 1;
  options.self.brief[3] = std::byte{9};
  options.self.version_most = 3;
  options.self.version_least = 2;
  options.self.features = 0b1011;
  options.self.mandatory = 0b0001;
  options.dials = dials;
  options.data_lanes = 2;
  options.seed = 1;
  return options;
}

// The greeting that the session would take.
inline Hello good_hello(bool is_welcome) {
  const Self self = greeted_options(false).self;
  Hello hello;
  hello.version_least = is_welcome ? 3 : 1;
  hello.version_most = 3;
  hello.features = is_welcome ? 0b0011 : 0b0111;
  hello.node[0] = std::byte{2};
  hello.session = 88;
  hello.pairing = is_welcome ? 1 : 0;
  hello.run = self.run;
  hello.brief = self.brief;
  return hello;
}

inline Greeting greeting_of(Bytes input) {
  Greeting greeting;
  ByteReader reader(input);
  const auto how = reader.get<uint8_t>();
  greeting.checks_bodies = how & 1;
  greeting.is_added = how & 2;
  greeting.is_repaired = how & 4;
  greeting.is_welcome = how & 8;
  greeting.slice = how & 16 ? 1000 : 1 + (how >> 5);
  const size_t tail = greeting.checks_bodies ? kCrcBytes : 0;
  const Bytes rest = reader.rest().first(std::min<size_t>(reader.rest().size(), 2048));
  greeting.bytes.resize(greeting.is_added ? std::max(rest.size(), kHeadBytes + kHelloBytes + tail) : rest.size());
  if (greeting.is_added) {
    Head head;
    head.type = greeting.is_welcome ? RecordType::welcome : RecordType::hello;
    head.length = kHelloBytes;
    write_head(head, std::span<std::byte, kHeadBytes>(greeting.bytes.data(), kHeadBytes));
    ByteWriter writer(std::span<std::byte>(greeting.bytes).subspan(kHeadBytes, kHelloBytes));
    write_hello(good_hello(greeting.is_welcome), writer);
  }
  for (size_t i = 0; i < rest.size(); ++i) greeting.bytes[i] ^= rest[i];
  if (!greeting.is_repaired || greeting.bytes.size() < kHeadBytes) return greeting;
  const std::span<std::byte> bytes(greeting.bytes);
  ByteWriter(bytes.subspan(kHeadBytes - kCrcBytes)).put(crc32c(bytes.first(kHeadBytes - kCrcBytes)));
  const auto length = ByteReader(bytes.subspan(4)).get<uint32_t>();
  if (tail > 0 && length <= bytes.size() - kHeadBytes && bytes.size() - kHeadBytes - length >= tail)
    ByteWriter(bytes.subspan(kHeadBytes + length)).put(crc32c(bytes.subspan(kHeadBytes, length)));
  return greeting;
}

// The first record of what a session has to say; false if that is no record.
inline bool first_record(Session& session, uint32_t lane, int64_t now_ns, Head& head, std::vector<std::byte>& body) {
  std::vector<std::byte> said;
  for (const Bytes piece : session.gather(lane, now_ns)) said.insert(said.end(), piece.begin(), piece.end());
  if (said.size() < kHeadBytes) return false;
  if (read_head(Bytes(said).first<kHeadBytes>(), head) != Fault::none) return false;
  if (said.size() < kHeadBytes + head.length) return false;
  body.assign(said.begin() + kHeadBytes, said.begin() + kHeadBytes + head.length);
  return true;
}

inline const char* look_at_hello(const Greeting& greeting) {
  Inbox inbox; // as a listener has it
  inbox.begin(greeting.checks_bodies);
  Inbox::Next next = Inbox::Next::nothing;
  for (size_t at = 0; at < greeting.bytes.size() && next == Inbox::Next::nothing;) {
    const std::span<std::byte> room = inbox.room();
    if (room.empty()) return "there is room for the next bytes";
    const size_t size = std::min({room.size(), greeting.slice, greeting.bytes.size() - at});
    std::copy_n(greeting.bytes.begin() + static_cast<ptrdiff_t>(at), size, room.begin());
    inbox.received(size);
    at += size;
    next = inbox.next();
  }
  Hello hello;
  if (next != Inbox::Next::record || inbox.head().type != RecordType::hello) return nullptr;
  if (read_hello(inbox.body(), hello) != Fault::none) return nullptr;
  // A session that has refused a peer is as it was, so the next greeting comes to the same one.
  static std::unique_ptr<Session> kept;
  if (!kept) kept = std::make_unique<Session>(greeted_options(false));
  const Fault fault = kept->accept(hello, greeting.checks_bodies, kSecond);
  if (fault != Fault::none && kept->is_connected(0)) return "a refused peer has no connection";
  const std::unique_ptr<Session> accepted = fault == Fault::none ? std::move(kept) : nullptr;
  if (fault >= Fault::count) return "a fault has a name";
  if (hello.lane != 0 && fault == Fault::none) return "control comes first";
  if (!accepted) return nullptr;
  const Self self = greeted_options(false).self;
  Head head;
  std::vector<std::byte> body;
  Hello said;
  if (!first_record(*accepted, 0, kSecond, head, body) || head.type != RecordType::welcome)
    return "WELCOME comes first";
  if (read_hello(body, said) != Fault::none) return "a WELCOME can be read";
  if (said.version_least != said.version_most || said.version_most > hello.version_most ||
      said.version_most < hello.version_least || said.version_most > self.version_most)
    return "the chosen version is one of both";
  if (said.features != (self.features & hello.features) || (hello.mandatory & ~said.features) != 0)
    return "the features are those of both";
  return hello.node == greeted_options(false).peer && said.pairing != 0 ? nullptr : "the peer is the one that is known";
}

// Hands the greeting to a session that has dialled; null if that went well. `was_met` says how it ended.
inline const char* answer_dial(Session& session, const Greeting& greeting, int64_t now_ns, bool& was_met) {
  session.dialled(0, greeting.checks_bodies, now_ns);
  for (size_t at = 0; at < greeting.bytes.size();) {
    const std::span<std::byte> room = session.room(0);
    if (room.empty()) return "there is room for the next bytes";
    const size_t size = std::min({room.size(), greeting.slice, greeting.bytes.size() - at});
    std::copy_n(greeting.bytes.begin() + static_cast<ptrdiff_t>(at), size, room.begin());
    session.received(0, size, now_ns);
    at += size;
    if (!session.is_connected(0)) break;
  }
  bool was_refused = false;
  for (Event event; session.poll(event);) {
    if (event.fault >= Fault::count && event.type != EventType::was_refused) return "a fault has a name";
    was_met = was_met || event.type == EventType::met;
    was_refused = was_refused || event.type == EventType::refused || event.type == EventType::was_refused;
  }
  if (session.is_up(0) && !was_met) return "a connection is up once the peer was met";
  return session.is_up(0) && was_refused ? "a refused connection is not up" : nullptr;
}

inline const char* look_at_welcome(const Greeting& greeting) {
  // A session that was refused, or has refused its peer, dials again.
  static std::unique_ptr<Session> kept;
  static int64_t now_ns = kSecond;
  if (!kept) kept = std::make_unique<Session>(greeted_options(true));
  now_ns += 10 * kSecond;
  kept->on_time(now_ns);
  bool was_met = false;
  if (const char* rule = answer_dial(*kept, greeting, now_ns, was_met)) return rule;
  if (!was_met) {
    kept->cut(0, now_ns);
    return nullptr;
  }
  const std::unique_ptr<Session> met = std::move(kept);
  const Self self = greeted_options(true).self;
  if (met->version() < self.version_least || met->version() > self.version_most) return "the version is known";
  return (met->features() & ~self.features) == 0 ? nullptr : "the features are known";
}

} // namespace fuzz

// Returns the rule that is broken; null if none is.
inline const char* look_at_greeting(Bytes input) {
  const fuzz::Greeting greeting = fuzz::greeting_of(input);
  return greeting.is_welcome ? fuzz::look_at_welcome(greeting) : fuzz::look_at_hello(greeting);
}

} // namespace millrace::net
