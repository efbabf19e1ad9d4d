// The door: how many strangers may wait, from one address, and how fast they may come.
#include <doctest/doctest.h>

#include "net/door.h"

using namespace millrace::net;

namespace {

IpAddress ipv4(uint8_t last) { return {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xFF, 0xFF, 192, 168, 1, last}; }
IpAddress ipv6(uint8_t network, uint8_t last) {
  return {0x20, 0x01, 0x0D, 0xB8, 0, 0, 0, network, 1, 2, 3, 4, 5, 6, 7, last};
}

} // namespace

TEST_CASE("eight connections of one address may wait, and another one once one of them has left") {
  Door door;
  for (uint32_t i = 0; i < kStrangersOfAddressMax; ++i) CHECK(door.enter(ipv4(1), 0));
  CHECK_FALSE(door.enter(ipv4(1), 0));
  CHECK(door.enter(ipv4(2), 0));
  door.leave(ipv4(1), false);
  CHECK(door.enter(ipv4(1), 0));
  CHECK(door.turned_away() == 1);
}

TEST_CASE("the addresses of one IPv6 network count as one, those of IPv4 each for itself") {
  Door door;
  for (uint32_t i = 0; i < kStrangersOfAddressMax; ++i) CHECK(door.enter(ipv6(1, static_cast<uint8_t>(i)), 0));
  CHECK_FALSE(door.enter(ipv6(1, 99), 0));
  CHECK(door.enter(ipv6(2, 99), 0));
  door.leave(ipv6(1, 200), false); // any of the network
  CHECK(door.enter(ipv6(1, 99), 0));
}

TEST_CASE("strangers come in a burst of 64, then 20 a second") {
  Door door;
  uint32_t entered = 0;
  const auto come = [&](int64_t now_ns) {
    for (uint8_t i = 0; i < 100; ++i)
      if (door.enter(ipv4(i), now_ns)) {
        ++entered;
        door.leave(ipv4(i), false);
      }
  };
  come(0);
  CHECK(entered == kStrangersBurst);
  entered = 0;
  for (int64_t ms = 50; ms <= 10'000; ms += 50) come(ms * kMillisecond);
  CHECK(entered == 10 * kStrangersPerSecond);
  entered = 0;
  come(3600 * kSecond); // an hour's tokens are still one burst
  CHECK(entered == kStrangersBurst);
}

TEST_CASE("an address from which a peer was known uses up no rate") {
  Door door;
  CHECK(door.enter(ipv4(7), 0));
  door.leave(ipv4(7), true);
  uint32_t turned_away = 0;
  for (uint32_t i = 0; i < 200; ++i)
    if (door.enter(ipv4(static_cast<uint8_t>(100 + i % 100)), 0))
      door.leave(ipv4(static_cast<uint8_t>(100 + i % 100)), false);
    else
      ++turned_away;
  CHECK(turned_away == 200 - (kStrangersBurst - 1));
  for (uint32_t i = 0; i < 100; ++i) {
    CHECK(door.enter(ipv4(7), 0));
    door.leave(ipv4(7), true);
  }
}

TEST_CASE("128 strangers wait at most") {
  Door door;
  uint32_t entered = 0;
  for (int64_t ms = 0; ms < 60'000; ms += 50)
    if (door.enter(ipv4(static_cast<uint8_t>(entered)), ms * kMillisecond)) ++entered;
  CHECK(entered == kStrangersMax);
  CHECK(door.waiting() == kStrangersMax);
}

TEST_CASE("a stranger has 5 s and 16 KiB") {
  CHECK(Door::deadline_ns(3 * kSecond) == 8 * kSecond);
  CHECK_FALSE(Door::is_too_much(16 * kKiB));
  CHECK(Door::is_too_much(16 * kKiB + 1));
}
