// One direction's bytes in virtual time: delays, bandwidth, slices, flips, and bounds.
#include <doctest/doctest.h>

#include <bit>
#include <cmath>
#include <cstring>
#include <string>
#include <vector>

#include "sample.h"
#include "stream.h"
#include "tests/milliseconds.h"
#include "tests/part.h"

namespace millrace::chaos {

namespace {

// Puts all of `text` into the stream; false if there is no room.
bool put(Stream& stream, std::string_view text, int64_t now_ns) {
  while (!text.empty()) {
    const auto room = stream.room();
    if (room.empty()) return false;
    const size_t count = std::min(room.size(), text.size());
    std::memcpy(room.data(), text.data(), count);
    stream.received(count, now_ns);
    text.remove_prefix(count);
  }
  return true;
}

// Takes one write's bytes.
std::string take(Stream& stream, int64_t now_ns) {
  const Next next = stream.next(now_ns);
  std::string text(next.bytes.size(), ' ');
  if (!text.empty()) std::memcpy(text.data(), next.bytes.data(), text.size());
  stream.sent(text.size(), now_ns);
  return text;
}

// Takes all that leaves until the stream has nothing more, and moves the time as it asks.
std::string take_all(Stream& stream, int64_t& now_ns) {
  std::string text;
  while (true) {
    const Next next = stream.next(now_ns);
    if (next.wait_until_ns) {
      CHECK(*next.wait_until_ns > now_ns);
      now_ns = *next.wait_until_ns;
    } else if (next.bytes.empty()) {
      return text;
    } else {
      text += take(stream, now_ns);
    }
  }
}

} // namespace

TEST_CASE("bytes leave as they came, and the ending after them") {
  Stream stream(1, 1);
  CHECK(put(stream, "abc", 0));
  stream.end(Ending::in_order, 0);
  CHECK(take(stream, 0) == "abc");
  CHECK(stream.next(0).ending == Ending::in_order);
}

TEST_CASE("latency holds bytes and the ending for exactly its time") {
  Stream stream(1, 1);
  stream.set({.latency_ns = 20 * kMs});
  CHECK(put(stream, "abc", 0));
  CHECK(put(stream, "def", 5 * kMs));
  stream.end(Ending::in_order, 7 * kMs);
  CHECK(stream.next(0).wait_until_ns == 20 * kMs);
  CHECK(take(stream, 20 * kMs) == "abc");
  CHECK(stream.next(20 * kMs).wait_until_ns == 25 * kMs);
  CHECK(take(stream, 25 * kMs) == "def");
  CHECK(stream.next(25 * kMs).wait_until_ns == 27 * kMs);
  CHECK(stream.next(27 * kMs).ending == Ending::in_order);
}

TEST_CASE("with jitter each byte is late within its bounds, and order is kept") {
  Stream stream(1, 1);
  stream.set({.latency_ns = 20 * kMs, .jitter_ns = 5 * kMs});
  int64_t least = 1000 * kMs, most = 0;
  for (int n = 0; n < 200; ++n) { // each alone, so that none waits for an earlier one
    int64_t now = n * 100 * kMs;
    const int64_t began = now;
    CHECK(put(stream, "x", now));
    CHECK(take_all(stream, now) == "x");
    least = std::min(least, now - began);
    most = std::max(most, now - began);
  }
  CHECK(least >= 15 * kMs);
  CHECK(least < 16 * kMs);
  CHECK(most <= 25 * kMs);
  CHECK(most > 24 * kMs);

  std::string sent;
  int64_t now = 100'000 * kMs;
  for (int n = 0; n < 200; ++n, now += kMs / 10) {
    sent += static_cast<char>(n);
    CHECK(put(stream, sent.substr(sent.size() - 1), now));
  }
  CHECK(take_all(stream, now) == sent);
}

TEST_CASE("bandwidth is met within 1 %, also where timers are late, and unused bandwidth is not saved up") {
  Stream stream(1, 1);
  stream.set({.bytes_per_s = 1'000'000});
  const std::string text = sample(1'000'000);
  int64_t now = 5000 * kMs;
  CHECK(put(stream, text, now));
  CHECK(take_all(stream, now) == text);
  CHECK(now > 5990 * kMs - 2 * kMs);
  CHECK(now < 6010 * kMs);

  now = 9000 * kMs;
  CHECK(put(stream, text, now));
  size_t count = 0;
  while (count < text.size()) {
    const Next next = stream.next(now);
    if (next.wait_until_ns) {
      now = *next.wait_until_ns + 3 * kMs; // each timer late by 3 ms
    } else {
      count += take(stream, now).size();
    }
  }
  CHECK(now > 9990 * kMs - 2 * kMs);
  CHECK(now < 10010 * kMs);
}

TEST_CASE("slices have lengths within their range, and all of them") {
  Stream stream(1, 1);
  stream.set({.slice_least = 1, .slice_most = 7});
  const std::string text = sample(10'000);
  CHECK(put(stream, text, 0));
  std::string taken;
  std::vector<int> lengths(8);
  while (taken.size() < text.size()) {
    const std::string slice = take(stream, 0);
    REQUIRE(slice.size() >= 1);
    REQUIRE(slice.size() <= 7);
    ++lengths[slice.size()];
    taken += slice;
  }
  CHECK(taken == text);
  for (size_t length = 1; length <= 7; ++length) CHECK(lengths[length] > 200);
}

TEST_CASE("flips change about the share of bytes, one bit of each, and the same ones however the reads are divided") {
  const std::string text = sample(static_cast<size_t>(test::part_of(4'000'000)));
  const auto flipped = [&](size_t read_size) {
    Stream stream(5, 1);
    stream.set({.flip_one_in = 1000});
    std::string taken;
    for (size_t at = 0; at < text.size(); at += read_size) {
      CHECK(put(stream, text.substr(at, read_size), 0));
      int64_t now = 0;
      taken += take_all(stream, now);
    }
    return std::pair(taken, stream.bits_flipped());
  };
  const auto [taken, bits] = flipped(100'000);
  REQUIRE(taken.size() == text.size());
  uint64_t differing = 0, several = 0;
  for (size_t at = 0; at < text.size(); ++at) {
    const int count = std::popcount(static_cast<uint8_t>(taken[at] ^ text[at]));
    differing += static_cast<uint64_t>(count);
    if (count > 1) ++several;
  }
  CHECK(several == 0);
  CHECK(differing == bits);
  const double share = static_cast<double>(bits) / static_cast<double>(text.size());
  const double spread = 5 * std::sqrt(1e-3 / static_cast<double>(text.size())); // five standard deviations
  CHECK(share == doctest::Approx(1e-3).epsilon(spread * 1e3));
  CHECK(flipped(1234).first == taken);

  Stream all(5, 1);
  all.set({.flip_one_in = 1});
  CHECK(put(all, text.substr(0, 1000), 0));
  CHECK(take(all, 0).size() == 1000);
  CHECK(all.bits_flipped() == 1000);
}

TEST_CASE("a stall loses nothing, and a half-open direction loses all and holds the ending") {
  Stream stream(1, 1);
  CHECK(put(stream, "abc", 0));
  stream.set({.is_stalled = true});
  CHECK(put(stream, "def", 0));
  CHECK(stream.next(kMs).bytes.empty());
  stream.set({.is_half_open = true});
  CHECK(put(stream, "lost", 0)); // and what came before still leaves
  CHECK(take(stream, 0) == "abcdef");
  stream.end(Ending::in_order, 0);
  CHECK(!stream.next(0).ending);
  CHECK(stream.bytes_vanished() == 4);
  stream.set({});
  CHECK(stream.next(0).ending == Ending::in_order);
}

TEST_CASE("a limit ends the stream after exactly its bytes, and a new limit counts anew") {
  Stream stream(1, 1);
  stream.set({.limit_bytes = 5, .limit_id = 1});
  CHECK(put(stream, "abc", 0));
  stream.set({.limit_bytes = 5, .limit_id = 2});
  CHECK(put(stream, "defghij", 0));
  CHECK(take(stream, 0) == "abcdefgh");
  CHECK(stream.next(0).ending == Ending::limit);
  CHECK(put(stream, "more", 0));
  CHECK(stream.next(0).ending == Ending::limit);
}

TEST_CASE("a cut sends what waits without delay") {
  Stream stream(1, 1);
  stream.set({.latency_ns = 5000 * kMs, .bytes_per_s = 1, .is_stalled = true});
  CHECK(put(stream, "abc", 0));
  stream.cut();
  CHECK(put(stream, "too late", 0));
  CHECK(take(stream, 0) == "abc");
  CHECK(stream.next(0).ending == Ending::cut);
}

TEST_CASE("at most 4 MiB and 65,536 times wait, and the ring goes round") {
  Stream stream(1, 1);
  stream.set({.is_stalled = true});
  const std::string text = sample(100'000);
  std::string expected;
  while (!stream.room().empty()) {
    const size_t count = std::min(stream.room().size(), text.size());
    CHECK(put(stream, text.substr(0, count), 0));
    expected += text.substr(0, count);
  }
  CHECK(stream.waiting() == kBufferedMax);
  stream.set({});
  std::string taken = take(stream, 0);
  taken += take(stream, 0);
  CHECK(put(stream, text, 0));
  expected += text;
  int64_t now = 0;
  taken += take_all(stream, now);
  CHECK((taken == expected)); // too long to be printed

  Stream marked(1, 1);
  marked.set({.latency_ns = 1000 * kMs});
  size_t count = 0;
  while (count < kBufferedMax && put(marked, "x", static_cast<int64_t>(count) + 1)) ++count;
  CHECK(count == kMarksMax);
}

} // namespace millrace::chaos
