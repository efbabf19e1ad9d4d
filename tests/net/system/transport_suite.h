// The contract of a transport: each function here is one sentence of it, and holds on every way that bytes may take.
//
// A way makes two ends that are connected, and passes time until one of them can go on: it polls descriptors, or lets
// virtual time pass. Nothing here knows a socket or a clock.
//
// Every way takes every check, and none is skipped. Some answers differ, and a trait of the way says the right one; the
// check fails where a way gives the other answer.
//
//   trait            plain  TLS  local  simulated
//   tells_reset      yes    yes  no     yes
//   proves_peers     no     yes  no     no
//   checks_bytes     no     yes  yes    yes
//   has_descriptor   yes    yes  yes    no
//
// A simulated network has no signals: there, the check of a write to an end that is gone shows the failure alone.
//
// Other tests look at things that one way alone has: transport.cpp at the options of sockets and at descriptors that
// a local socket passes, tls.cpp at handshakes, simulated_network.cpp at lines that are cut, held or blocked.
#pragma once

#include <doctest/doctest.h>

#include <algorithm>
#include <deque>
#include <functional>
#include <initializer_list>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "net/limits.h"
#include "net/system/transport.h"
#include "tests/seed.h"

namespace millrace::net::test {

struct Ends {
  std::unique_ptr<Transport> left, right;
};

// An end that waits for want_read or want_write. With any other word it does not wait.
struct Waiting {
  Transport& end;
  Moved word;
  bool waits() const { return word == Moved::want_read || word == Moved::want_write; }
};

struct Way {
  std::string name;
  std::function<Ends()> connect; // handshakes are still to be made
  // Until one of them can go on, or a little later. An end that failed can go on too. It may return too early, so that
  // callers try again. Fails the test if that never comes.
  std::function<void(std::initializer_list<Waiting>)> wait;
  std::function<void(std::unique_ptr<Transport>)> reset; // the process of this end is gone, without a word
  bool tells_reset = true;                               // the other end sees `failed` then, not `closed`
  bool proves_peers = false;
  bool checks_bytes = false;
  bool has_descriptor = true; // otherwise it is -1
};

constexpr int kStepsMax = 1'000'000; // of a loop that ends long before

inline Ends connected(const Way& way) {
  Ends ends = way.connect();
  Moved left = Moved::want_write, right = Moved::want_write;
  for (int step = 0; left != Moved::some || right != Moved::some; ++step) {
    REQUIRE(step < kStepsMax);
    if (left != Moved::some) left = ends.left->handshake();
    if (right != Moved::some) right = ends.right->handshake();
    REQUIRE_MESSAGE(left != Moved::failed, ends.left->why());
    REQUIRE_MESSAGE(right != Moved::failed, ends.right->why());
    if (left != Moved::some || right != Moved::some) way.wait({{*ends.left, left}, {*ends.right, right}});
  }
  return ends;
}

inline std::vector<std::byte> random_bytes(size_t size, std::mt19937& random) {
  std::vector<std::byte> bytes(size + 4);
  for (size_t i = 0; i < size; i += 4) {
    const auto word = static_cast<uint32_t>(random());
    std::copy_n(reinterpret_cast<const std::byte*>(&word), 4, bytes.data() + i);
  }
  bytes.resize(size);
  return bytes;
}

inline size_t below(size_t limit, std::mt19937& random) {
  return std::uniform_int_distribution<size_t>(0, limit - 1)(random);
}

// FNV-1a. A failed comparison of two of them prints a line, not megabytes.
inline uint64_t hash_of(Bytes bytes) {
  uint64_t hash = 0xcbf29ce484222325;
  for (const std::byte byte : bytes) hash = (hash ^ std::to_integer<uint64_t>(byte)) * 0x100000001b3;
  return hash;
}

// Bytes that go one way, in pieces of random sizes that wait in a queue as a session's do.
class Flow {
 public:
  Flow(size_t size, uint32_t seed) : random_(seed), bytes_(random_bytes(size, random_)), moved_(bytes_) {
    for (size_t at = 0; at < size;) {
      // Many small, some of a record of TLS, a few large; empty ones in between.
      const size_t most = std::array<size_t, 4>{32, 1024, 20'000, 300'000}[below(4, random_)];
      const size_t piece = std::min(size - at, below(most, random_));
      queue_.push_back({at, piece});
      at += piece;
    }
  }

  // One write, of a random number of pieces. Bytes that were offered before come first, at another address. `closed`
  // once all went.
  Moved write(Transport& to) {
    if (sent_ == bytes_.size()) return Moved::closed;
    offered_ = std::max(offered_, 1 + below(kPiecesMax, random_));
    std::swap(bytes_, moved_);
    std::vector<Bytes> pieces;
    for (size_t i = 0; i < std::min({offered_, kPiecesMax, queue_.size()}); ++i)
      pieces.push_back(Bytes(bytes_).subspan(queue_[i].first, queue_[i].second));
    const Transfer transfer = to.write(pieces);
    REQUIRE_MESSAGE(transfer.moved != Moved::failed, to.why());
    REQUIRE((transfer.moved == Moved::some) == (transfer.bytes > 0 || all_empty(pieces)));
    sent_ += transfer.bytes;
    for (size_t bytes = transfer.bytes; !queue_.empty();) {
      const size_t here = std::min(bytes, queue_.front().second);
      queue_.front().first += here;
      queue_.front().second -= here;
      bytes -= here;
      if (queue_.front().second > 0) break;
      queue_.pop_front();
      offered_ -= offered_ > 0;
    }
    return transfer.moved;
  }

  // One read, of a random size. `closed` once all came.
  Moved read(Transport& from) {
    if (received_.size() == bytes_.size()) return Moved::closed;
    std::vector<std::byte> room(1 + below(below(2, random_) == 0 ? 100 : 200'000, random_));
    const Transfer transfer = from.read(room);
    REQUIRE_MESSAGE(transfer.moved != Moved::failed, from.why());
    REQUIRE(transfer.moved != Moved::closed);
    REQUIRE((transfer.moved == Moved::some) == (transfer.bytes > 0));
    received_.insert(received_.end(), room.begin(), room.begin() + static_cast<std::ptrdiff_t>(transfer.bytes));
    return transfer.moved;
  }

  bool is_over() const { return received_.size() >= bytes_.size(); }
  bool is_whole() const { return received_.size() == bytes_.size() && hash_of(received_) == hash_of(bytes_); }

 private:
  static bool all_empty(const std::vector<Bytes>& pieces) {
    return std::all_of(pieces.begin(), pieces.end(), [](Bytes piece) { return piece.empty(); });
  }

  std::mt19937 random_;
  std::vector<std::byte> bytes_, moved_, received_; // the first two are equal
  std::deque<std::pair<size_t, size_t>> queue_;     // offset and size
  size_t offered_ = 0, sent_ = 0;
};

// All that `bytes` holds is written; the other end reads nothing meanwhile, so it has to fit into the way's buffers.
inline void write_all(Transport& to, Bytes bytes) {
  while (!bytes.empty()) {
    const Transfer transfer = to.write({&bytes, 1});
    REQUIRE_MESSAGE(transfer.moved == Moved::some, to.why());
    bytes = bytes.subspan(transfer.bytes);
  }
}

// Reads until nothing moves for a reason other than that nothing is there yet; the reason.
inline Moved read_to_end(const Way& way, Transport& from, std::vector<std::byte>& bytes) {
  std::vector<std::byte> room(50'000);
  for (int step = 0; step < kStepsMax; ++step) {
    const Transfer transfer = from.read(room);
    bytes.insert(bytes.end(), room.begin(), room.begin() + static_cast<std::ptrdiff_t>(transfer.bytes));
    if (transfer.moved == Moved::want_read) way.wait({{from, Moved::want_read}});
    if (transfer.moved == Moved::closed || transfer.moved == Moved::failed) return transfer.moved;
  }
  FAIL("the stream has no end");
  return Moved::failed;
}

inline std::vector<std::byte> read_exactly(const Way& way, Transport& from, size_t size) {
  std::vector<std::byte> bytes(size);
  for (size_t got = 0; got < size;) {
    const Transfer transfer = from.read(std::span(bytes).subspan(got));
    REQUIRE_MESSAGE((transfer.moved == Moved::some || transfer.moved == Moved::want_read), from.why());
    if (transfer.moved == Moved::want_read) way.wait({{from, Moved::want_read}});
    got += transfer.bytes;
  }
  return bytes;
}

// ---- the contract
// ------------------------------------------------------------------------------------------------------

inline void bytes_arrive_in_order_both_ways(const Way& way) {
  for (uint32_t seed = random_seed(); seed < random_seed() + 4; ++seed) {
    CAPTURE(seed);
    const Ends ends = connected(way);
    Flow right(3'000'000, seed), left(2'000'000, seed + 1000);
    for (int step = 0; !right.is_over() || !left.is_over(); ++step) {
      REQUIRE(step < kStepsMax);
      const Moved moved[] = {right.write(*ends.left), right.read(*ends.right), left.write(*ends.right),
                             left.read(*ends.left)};
      if (std::find(std::begin(moved), std::end(moved), Moved::some) == std::end(moved))
        way.wait({{*ends.left, moved[0]}, {*ends.right, moved[1]}, {*ends.right, moved[2]}, {*ends.left, moved[3]}});
    }
    CHECK(right.is_whole());
    CHECK(left.is_whole());
  }
}

inline void an_end_that_nothing_came_to_wants_to_read(const Way& way) {
  const Ends ends = connected(way);
  std::byte room[100];
  for (Transport* end : {ends.left.get(), ends.right.get()}) {
    const Transfer transfer = end->read(room);
    CHECK(transfer.moved == Moved::want_read);
    CHECK(transfer.bytes == 0);
    CHECK(end->trouble() == Trouble::none);
    CHECK(end->why().empty());
    CHECK(end->handshake() == Moved::some); // once more does no harm
  }
}

inline void an_end_says_what_it_is(const Way& way) {
  const Ends ends = connected(way);
  for (Transport* end : {ends.left.get(), ends.right.get()}) {
    CHECK((end->peer() != nullptr) == way.proves_peers);
    CHECK(end->checks_bytes() == way.checks_bytes);
    CHECK((end->descriptor() >= 0) == way.has_descriptor);
  }
}

inline void a_writer_that_nobody_reads_wants_to_write(const Way& way) {
  const Ends ends = connected(way);
  std::mt19937 random(random_seed());
  const std::vector<std::byte> bytes = random_bytes(64 << 20, random);
  size_t sent = 0, partial = 0;
  const auto write = [&] {
    const Bytes rest = Bytes(bytes).subspan(sent);
    const Bytes pieces[] = {rest.first(std::min<size_t>(rest.size(), 1000)),
                            rest.subspan(std::min<size_t>(rest.size(), 1000))};
    const Transfer transfer = ends.left->write(pieces);
    REQUIRE(transfer.moved != Moved::failed);
    sent += transfer.bytes;
    partial += transfer.bytes > 0 && transfer.bytes < rest.size();
    return transfer.moved;
  };
  while (sent < bytes.size())
    if (write() == Moved::want_write) break;
  REQUIRE(sent < bytes.size());
  CHECK(partial > 0);
  // The end that did not read gets all of it, the rest too.
  std::vector<std::byte> received;
  std::vector<std::byte> room(1 << 20);
  while (received.size() < bytes.size()) {
    const Transfer transfer = ends.right->read(room);
    REQUIRE(transfer.moved != Moved::failed);
    received.insert(received.end(), room.begin(), room.begin() + static_cast<std::ptrdiff_t>(transfer.bytes));
    const Moved writes = sent < bytes.size() ? write() : Moved::closed;
    if (transfer.moved == Moved::want_read && writes != Moved::some)
      way.wait({{*ends.left, writes}, {*ends.right, Moved::want_read}});
  }
  CHECK(hash_of(received) == hash_of(bytes));
}

inline void a_stream_that_is_shut_ends_after_its_last_byte(const Way& way) {
  std::mt19937 random(random_seed());
  for (const size_t size : {0, 1, 30'000}) {
    CAPTURE(size);
    const Ends ends = connected(way);
    const std::vector<std::byte> there = random_bytes(size, random), back = random_bytes(size, random);
    write_all(*ends.left, there);
    CHECK(ends.left->shut() == Moved::some);
    std::vector<std::byte> received;
    CHECK(read_to_end(way, *ends.right, received) == Moved::closed);
    CHECK(hash_of(received) == hash_of(there));
    std::byte room[10];
    CHECK(ends.right->read(room).moved == Moved::closed);
    // The other direction goes on.
    write_all(*ends.right, back);
    CHECK(ends.right->shut() == Moved::some);
    received.clear();
    CHECK(read_to_end(way, *ends.left, received) == Moved::closed);
    CHECK(hash_of(received) == hash_of(back));
    CHECK(ends.left->trouble() == Trouble::none);
    CHECK(ends.right->trouble() == Trouble::none);
  }
}

inline void nothing_is_lost_when_an_end_goes_after_it_shut(const Way& way) {
  std::mt19937 random(random_seed());
  Ends ends = connected(way);
  const std::vector<std::byte> bytes = random_bytes(100'000, random);
  write_all(*ends.left, bytes);
  CHECK(ends.left->shut() == Moved::some);
  ends.left.reset();
  std::vector<std::byte> received;
  CHECK(read_to_end(way, *ends.right, received) == Moved::closed);
  CHECK(hash_of(received) == hash_of(bytes));
}

inline void a_reset_is_told_and_stays(const Way& way) {
  Ends ends = connected(way);
  way.reset(std::move(ends.left));
  std::vector<std::byte> received;
  const Moved end = read_to_end(way, *ends.right, received);
  CHECK(received.empty());
  if (!way.tells_reset) {
    CHECK(end == Moved::closed);
    return;
  }
  CHECK(end == Moved::failed);
  CHECK(ends.right->trouble() == Trouble::connection);
  CHECK(ends.right->why() == "the peer closed the connection without ending the stream");
  std::byte bytes[1]{};
  const Bytes piece = bytes;
  CHECK(ends.right->read(bytes).moved == Moved::failed);
  CHECK(ends.right->write({&piece, 1}).moved == Moved::failed);
  CHECK(ends.right->shut() == Moved::failed);
  CHECK(ends.right->handshake() == Moved::failed);
}

inline void an_end_that_goes_with_unread_bytes_resets_the_stream(const Way& way) {
  Ends ends = connected(way);
  write_all(*ends.right, std::vector<std::byte>(10));
  way.wait({{*ends.left, Moved::want_read}});
  ends.left.reset();
  std::vector<std::byte> received;
  CHECK(read_to_end(way, *ends.right, received) == Moved::failed);
  CHECK(received.empty());
  CHECK(ends.right->trouble() == Trouble::connection);
}

inline void a_writer_that_waits_learns_that_its_reader_is_gone(const Way& way) {
  Ends ends = connected(way);
  const std::vector<std::byte> bytes(1 << 20);
  const Bytes piece = bytes;
  Moved moved = Moved::some;
  for (int step = 0; moved == Moved::some; ++step) {
    REQUIRE(step < kStepsMax);
    moved = ends.left->write({&piece, 1}).moved;
  }
  REQUIRE(moved == Moved::want_write);
  ends.right.reset();
  for (int step = 0; moved == Moved::want_write; ++step) {
    REQUIRE(step < kStepsMax);
    way.wait({{*ends.left, Moved::want_write}});
    moved = ends.left->write({&piece, 1}).moved;
  }
  CHECK(moved == Moved::failed);
  CHECK(ends.left->trouble() == Trouble::connection);
}

// The test program leaves SIGPIPE as it is by default, so a signal would end it.
inline void a_write_to_an_end_that_is_gone_fails_without_a_signal(const Way& way) {
  Ends ends = connected(way);
  std::vector<std::byte> bytes(1000);
  const Bytes piece = bytes;
  ends.left.reset();
  Transfer transfer{Moved::some, 0};
  for (int step = 0; transfer.moved == Moved::some || transfer.moved == Moved::want_write; ++step) {
    REQUIRE(step < 10'000);
    if (transfer.moved == Moved::want_write) way.wait({{*ends.right, Moved::want_write}});
    transfer = ends.right->write({&piece, 1});
  }
  CHECK(transfer.moved == Moved::failed);
  CHECK(ends.right->trouble() == Trouble::connection);
}

inline void as_many_pieces_as_a_write_takes_arrive_in_order(const Way& way) {
  std::mt19937 random(random_seed());
  for (const size_t count : {size_t{1}, kPiecesMax - 1, kPiecesMax, kPiecesMax + 1, 3 * kPiecesMax}) {
    CAPTURE(count);
    const Ends ends = connected(way);
    std::vector<std::vector<std::byte>> parts(count);
    std::vector<Bytes> pieces;
    std::vector<std::byte> expected;
    for (std::vector<std::byte>& part : parts) {
      part = random_bytes(below(60, random), random);
      pieces.push_back(part);
      expected.insert(expected.end(), part.begin(), part.end());
    }
    size_t sent = 0;
    for (std::span<const Bytes> rest = pieces; sent < expected.size();) {
      const Transfer transfer = ends.left->write(rest);
      REQUIRE(transfer.moved == Moved::some);
      sent += transfer.bytes;
      size_t looked_at = 0;
      for (const Bytes piece : rest.first(std::min(rest.size(), kPiecesMax))) looked_at += piece.size();
      REQUIRE(transfer.bytes == looked_at); // the way has room for all
      rest = rest.subspan(std::min(rest.size(), kPiecesMax));
    }
    CHECK(hash_of(read_exactly(way, *ends.right, expected.size())) == hash_of(expected));
  }
}

inline void empty_pieces_and_empty_rooms_do_no_harm(const Way& way) {
  const Ends ends = connected(way);
  const std::vector<Bytes> nothing(kPiecesMax);
  for (const std::span<const Bytes> pieces : {std::span<const Bytes>(), std::span<const Bytes>(nothing)}) {
    const Transfer transfer = ends.left->write(pieces);
    CHECK(transfer.moved == Moved::some);
    CHECK(transfer.bytes == 0);
  }
  const Transfer none = ends.right->read({});
  CHECK(none.moved == Moved::some);
  CHECK(none.bytes == 0);
  const std::byte byte{42};
  const Bytes pieces[] = {{}, {}, {&byte, 1}, {}};
  CHECK(ends.left->write(pieces).bytes == 1);
  CHECK(read_exactly(way, *ends.right, 1)[0] == byte);
  std::byte room[1];
  CHECK(ends.right->read(room).moved == Moved::want_read);
}

struct Check {
  const char* sentence;
  void (*run)(const Way&);
};
inline constexpr Check kContract[] = {
    {"bytes arrive in order both ways", bytes_arrive_in_order_both_ways},
    {"an end that nothing came to wants to read", an_end_that_nothing_came_to_wants_to_read},
    {"an end says what it is", an_end_says_what_it_is},
    {"a writer that nobody reads wants to write", a_writer_that_nobody_reads_wants_to_write},
    {"a stream that is shut ends after its last byte", a_stream_that_is_shut_ends_after_its_last_byte},
    {"nothing is lost when an end goes after it shut", nothing_is_lost_when_an_end_goes_after_it_shut},
    {"a reset is told and stays", a_reset_is_told_and_stays},
    {"an end that goes with unread bytes resets the stream", an_end_that_goes_with_unread_bytes_resets_the_stream},
    {"a writer that waits learns that its reader is gone", a_writer_that_waits_learns_that_its_reader_is_gone},
    {"a write to an end that is gone fails without a signal", a_write_to_an_end_that_is_gone_fails_without_a_signal},
    {"as many pieces as a write takes arrive in order", as_many_pieces_as_a_write_takes_arrive_in_order},
    {"empty pieces and empty rooms do no harm", empty_pieces_and_empty_rooms_do_no_harm},
};

// Runs all of it on one way.
inline void check_contract(const Way& way) {
  CAPTURE(way.name);
  for (const Check& check : kContract) {
    const std::string sentence = check.sentence;
    CAPTURE(sentence);
    check.run(way);
  }
}

} // namespace millrace::net::test
