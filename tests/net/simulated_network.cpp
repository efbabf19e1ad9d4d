// The simulated network by itself: what a byte stream of it does when it is slow, sliced, full, closed, cut or blocked.
#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <vector>

#include "tests/net/sim/network.h"

namespace millrace::net::sim {
namespace {

// Two ends of one connection.
struct Wire {
  explicit Wire(const Line& line = {}) {
    network.line(1, 2) = network.line(2, 1) = line;
    network.listen(2, this, [this](std::unique_ptr<End> end) { listener = std::move(end); });
    network.dial(1, 2, [this](std::unique_ptr<End> end) { dialler = std::move(end); });
    run(kSecond);
    REQUIRE(dialler);
    REQUIRE(listener);
  }
  void run(int64_t for_ns) {
    bool is_there = false;
    time.schedule(time.now_ns() + for_ns, [&] { is_there = true; });
    while (!is_there) time.step();
  }
  static std::vector<std::byte> bytes(size_t count) {
    std::vector<std::byte> made(count);
    for (size_t i = 0; i < count; ++i) made[i] = static_cast<std::byte>(i * 31 + i / 256);
    return made;
  }
  static Transfer write(End& end, const std::vector<std::byte>& all) {
    const Bytes piece(all);
    return end.write({&piece, 1});
  }
  // All that can be read now; `last` is why there is no more.
  static std::vector<std::byte> read(End& end, Moved& last) {
    std::vector<std::byte> all;
    std::array<std::byte, 5000> room;
    Transfer transfer;
    while ((transfer = end.read(room)).moved == Moved::some)
      all.insert(all.end(), room.begin(), room.begin() + static_cast<std::ptrdiff_t>(transfer.bytes));
    last = transfer.moved;
    return all;
  }

  device::VirtualTime time;
  Network network{time, Random(1)};
  std::unique_ptr<End> dialler, listener;
};

} // namespace

TEST_CASE("simulated bytes arrive after the latency, in order, in slices from one byte up") {
  Line line;
  line.latency_ns = 10 * kMillisecond;
  line.jitter_ns = 20 * kMillisecond;
  line.slice_most = 3;
  Wire wire(line);
  const std::vector<std::byte> sent = Wire::bytes(1000);
  for (size_t at = 0; at < sent.size(); at += 100)
    CHECK(Wire::write(*wire.dialler, {sent.begin() + static_cast<std::ptrdiff_t>(at),
                                      sent.begin() + static_cast<std::ptrdiff_t>(at + 100)})
              .bytes == 100);
  wire.run(line.latency_ns - 1);
  std::array<std::byte, 100> room;
  CHECK(wire.listener->read(room).moved == Moved::would_block);
  wire.run(30 * kMillisecond);
  CHECK(wire.listener->read(std::span(room).first(0)).moved == Moved::would_block);
  size_t least = 100, most = 0;
  std::vector<std::byte> got;
  for (Transfer transfer; (transfer = wire.listener->read(room)).moved == Moved::some;) {
    least = std::min(least, transfer.bytes);
    most = std::max(most, transfer.bytes);
    got.insert(got.end(), room.begin(), room.begin() + static_cast<std::ptrdiff_t>(transfer.bytes));
  }
  CHECK(least == 1);
  CHECK(most == 3);
  CHECK(got == sent);
}

TEST_CASE("a simulated write is partial when the buffer is full, and goes on when the reader has read") {
  Line line;
  line.buffer_bytes = 1000;
  Wire wire(line);
  bool is_ready = false;
  wire.dialler->on_ready([&] { is_ready = true; });
  CHECK(Wire::write(*wire.dialler, Wire::bytes(1500)).bytes == 1000);
  CHECK(Wire::write(*wire.dialler, Wire::bytes(1)).moved == Moved::would_block);
  wire.run(kSecond);
  CHECK_FALSE(is_ready);
  Moved last{};
  CHECK(Wire::read(*wire.listener, last).size() == 1000);
  CHECK(Wire::write(*wire.dialler, Wire::bytes(1)).moved == Moved::would_block); // it does not know yet
  wire.run(kSecond);
  CHECK(is_ready);
  CHECK(Wire::write(*wire.dialler, Wire::bytes(1)).bytes == 1);
}

TEST_CASE("simulated bytes come at the bandwidth of the line") {
  Line line;
  line.bytes_per_second = 100'000;
  Wire wire(line);
  CHECK(Wire::write(*wire.dialler, Wire::bytes(100'000)).bytes == 100'000);
  wire.run(kSecond / 2);
  Moved last{};
  const size_t half = Wire::read(*wire.listener, last).size();
  CHECK(half > 30'000);
  CHECK(half <= 50'000);
  wire.run(kSecond / 2 + line.latency_ns);
  CHECK(half + Wire::read(*wire.listener, last).size() == 100'000);
}

TEST_CASE("all that was written before a simulated close arrives, and then the end") {
  Wire wire;
  Wire::write(*wire.dialler, Wire::bytes(300));
  wire.dialler.reset();
  wire.run(kSecond);
  Moved last{};
  CHECK(Wire::read(*wire.listener, last) == Wire::bytes(300));
  CHECK(last == Moved::closed);
  // The first write is taken, and is answered by a reset.
  CHECK(Wire::write(*wire.listener, Wire::bytes(1)).moved == Moved::some);
  wire.run(kSecond);
  CHECK(Wire::write(*wire.listener, Wire::bytes(1)).moved == Moved::failed);
}

TEST_CASE("a simulated close with unread bytes resets the connection and takes what was not read with it") {
  Wire wire;
  Wire::write(*wire.listener, Wire::bytes(10));
  Wire::write(*wire.dialler, Wire::bytes(300));
  wire.dialler.reset();
  wire.run(kSecond);
  Moved last{};
  CHECK(Wire::read(*wire.listener, last).empty());
  CHECK(last == Moved::failed);
}

TEST_CASE("a simulated end that is shut goes on reading") {
  Wire wire;
  wire.dialler->shut();
  wire.run(kSecond);
  Moved last{};
  CHECK(Wire::read(*wire.listener, last).empty());
  CHECK(last == Moved::closed);
  Wire::write(*wire.listener, Wire::bytes(10));
  wire.run(kSecond);
  CHECK(Wire::read(*wire.dialler, last) == Wire::bytes(10));
  CHECK(last == Moved::would_block);
  CHECK(Wire::write(*wire.dialler, Wire::bytes(1)).moved == Moved::failed);
}

TEST_CASE("a simulated cut may be learned of by one end alone, and by the other when it is found half open") {
  Wire wire;
  Wire::write(*wire.dialler, Wire::bytes(10));
  wire.run(kMillisecond); // they are there
  Wire::write(*wire.dialler, Wire::bytes(20));
  wire.network.cut(0, 5 * kMillisecond, INT64_MAX);
  wire.run(6 * kMillisecond);
  CHECK(Wire::write(*wire.dialler, Wire::bytes(1)).moved == Moved::failed);
  Moved last{};
  CHECK(Wire::read(*wire.listener, last).size() == 10);
  CHECK(last == Moved::would_block);
  CHECK(Wire::write(*wire.listener, Wire::bytes(1)).moved == Moved::some);
  wire.run(Network::kNoticeNs);
  Wire::read(*wire.listener, last);
  CHECK(last == Moved::failed);
  CHECK(wire.network.connections().empty());
}

TEST_CASE("a blocked direction stalls its bytes and all dials, and the other direction goes on") {
  Wire wire;
  wire.network.block(1, 2, true);
  Wire::write(*wire.dialler, Wire::bytes(10));
  Wire::write(*wire.listener, Wire::bytes(20));
  bool is_done = false;
  std::unique_ptr<End> second;
  const int64_t dialled_ns = wire.time.now_ns();
  wire.network.dial(1, 2, [&](std::unique_ptr<End> end) {
    is_done = true;
    second = std::move(end);
    CHECK(wire.time.now_ns() == dialled_ns + Network::kDialNs);
  });
  wire.run(5 * kSecond);
  CHECK(is_done);
  CHECK_FALSE(second);
  Moved last{};
  CHECK(Wire::read(*wire.listener, last).empty());
  CHECK(Wire::read(*wire.dialler, last).size() == 20);
  wire.network.block(1, 2, false);
  CHECK(Wire::read(*wire.listener, last).size() == 10);
}

TEST_CASE("a simulated dial is refused where nobody listens, and lost dials are not answered") {
  Wire wire;
  wire.network.unlisten(2, &wire);
  int64_t refused_ns = -1, lost_ns = -1;
  const int64_t begin_ns = wire.time.now_ns();
  wire.network.dial(1, 2, [&](std::unique_ptr<End> end) {
    CHECK_FALSE(end);
    refused_ns = wire.time.now_ns();
  });
  wire.network.lose_dials(1000);
  wire.network.dial(1, 2, [&](std::unique_ptr<End> end) {
    CHECK_FALSE(end);
    lost_ns = wire.time.now_ns();
  });
  wire.run(5 * kSecond);
  CHECK(refused_ns == begin_ns + 2 * Line{}.latency_ns);
  CHECK(lost_ns == begin_ns + Network::kDialNs);
}

TEST_CASE("one simulated connection may be held while others go on") {
  Wire wire;
  std::unique_ptr<End> second, second_listener = std::move(wire.listener);
  wire.network.dial(1, 2, [&](std::unique_ptr<End> end) { second = std::move(end); });
  wire.run(kSecond);
  wire.network.hold(0, kSecond);
  Wire::write(*wire.dialler, Wire::bytes(10));
  Wire::write(*second, Wire::bytes(20));
  wire.run(kSecond / 2);
  Moved last{};
  CHECK(Wire::read(*second_listener, last).empty());
  CHECK(Wire::read(*wire.listener, last).size() == 20);
  wire.run(kSecond / 2 + 1);
  CHECK(Wire::read(*second_listener, last).size() == 10);
}

TEST_CASE("bytes of one simulated direction may vanish, with its end, while its writer goes on writing") {
  Line line;
  line.buffer_bytes = 1000;
  Wire wire(line);
  Wire::write(*wire.dialler, Wire::bytes(10));
  wire.run(kMillisecond); // they are there
  Wire::write(*wire.dialler, Wire::bytes(20));
  wire.network.vanish(0, true);
  for (int n = 0; n < 10; ++n) {
    CHECK(Wire::write(*wire.dialler, Wire::bytes(900)).moved == Moved::some);
    wire.run(kMillisecond);
  }
  Moved last{};
  CHECK(Wire::read(*wire.listener, last).size() == 10);
  Wire::write(*wire.listener, Wire::bytes(30));
  wire.run(kMillisecond);
  CHECK(Wire::read(*wire.dialler, last).size() == 30);
  wire.dialler.reset();
  wire.run(kSecond);
  CHECK(Wire::read(*wire.listener, last).empty());
  CHECK(last == Moved::would_block);
}

} // namespace millrace::net::sim
