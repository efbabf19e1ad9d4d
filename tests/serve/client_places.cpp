// Tests at given times which client has a place and which one gives way.
#include "serve/client_places.h"

#include <doctest/doctest.h>

#include <random>
#include <set>

#include "tests/seed.h"

using namespace millrace::serve;

namespace {

constexpr ClientLimits kSmall{.clients = 2, .arrivals = 3, .arrives_ms = 1000, .idle_ms = 100, .answer_ms = 5000};
using Gone = std::optional<uint64_t>;

// Clients 1 and 2 have come at 0 and have both places.
ClientPlaces full() {
  ClientPlaces places(kSmall);
  for (const uint64_t client : {1, 2}) {
    places.come(client, 0);
    REQUIRE(places.take(client, 0).has);
  }
  return places;
}

} // namespace

TEST_CASE("A client that says nothing takes no place, and its time is over after a second") {
  ClientPlaces places(kSmall);
  CHECK(places.until_overdue_ms(0) == -1);
  places.come(1, 10);
  places.come(2, 20);
  CHECK(places.until_overdue_ms(10) == 1000);
  CHECK(places.overdue(1009) == std::nullopt);
  CHECK(places.overdue(1010) == Gone(1));
  CHECK(places.until_overdue_ms(5000) == 0);
  places.leave(1);
  CHECK(places.overdue(1010) == std::nullopt);
  CHECK(places.until_overdue_ms(1010) == 10);
  CHECK(places.take(2, 1010).has);
  CHECK(places.overdue(99'999) == std::nullopt);
}

TEST_CASE("More arrivals than there may be crowd out the oldest") {
  ClientPlaces places(kSmall);
  for (const uint64_t client : {1, 2, 3}) CHECK(places.come(client, 0) == std::nullopt);
  CHECK(places.take(1, 0).has);
  CHECK(places.come(4, 0) == std::nullopt); // 1 is no arrival any more
  CHECK(places.come(5, 0) == Gone(2));
  CHECK_FALSE(places.take(2, 0).has); // it is gone
}

TEST_CASE("Where all places are taken the one that is idle for longest gives way, and nobody who is not idle") {
  ClientPlaces places = full();
  places.come(3, 50);
  CHECK_FALSE(places.take(3, 99).has);
  places.moved(1, 60);
  const ClientPlaces::Place place = places.take(3, 100);
  CHECK(place.has);
  CHECK(place.gives_way == Gone(2));
  CHECK(places.take(3, 101).gives_way == std::nullopt); // it has one
  places.come(4, 101);
  CHECK_FALSE(places.take(4, 159).has);
  CHECK(places.take(4, 160).gives_way == Gone(1));
}

TEST_CASE("A client that waits for an answer is idle only once no answer can be meant") {
  ClientPlaces places = full();
  places.owe(1, 1);
  places.moved(2, 4950);
  places.come(3, 4950);
  CHECK_FALSE(places.take(3, 4999).has);
  CHECK(places.take(3, 5000).gives_way == Gone(1));
  places.owe(1, 0); // the answer that came too late finds nobody
  places.owe(2, 1);
  places.owe(2, 0);
  places.come(4, 5050);
  CHECK(places.take(4, 5050).gives_way == Gone(2));
}

TEST_CASE("A client that left has left its place to the next one") {
  ClientPlaces places = full();
  places.leave(1);
  places.come(3, 1);
  CHECK(places.take(3, 1).has);
  CHECK(places.take(3, 1).gives_way == std::nullopt);
}

TEST_CASE("Whatever clients do, there are no more of them than places, and whoever asks again and again gets one") {
  const uint32_t seed = millrace::random_seed();
  CAPTURE(seed);
  std::mt19937 random(seed);
  for (int round = 0; round < 200; ++round) {
    ClientPlaces places(kSmall);
    std::set<uint64_t> there, placed;
    uint64_t last = 0;
    int64_t now_ms = 0;
    const auto go = [&](Gone client) {
      if (client) there.erase(*client), placed.erase(*client);
    };
    for (int step = 0; step < 300; ++step) {
      now_ms += static_cast<int64_t>(random() % 40);
      const uint64_t one = 1 + random() % (last + 1);
      switch (random() % 6) {
        case 0:
          go(places.come(++last, now_ms));
          there.insert(last);
          break;
        case 1: {
          const ClientPlaces::Place place = places.take(one, now_ms);
          CHECK((!place.has || there.count(one) == 1));
          go(place.gives_way);
          if (place.has) placed.insert(one);
          break;
        }
        case 2: places.moved(one, now_ms); break;
        case 3: places.owe(one, random() % 2); break;
        case 4:
          places.leave(one);
          go(one);
          break;
        default:
          if (const Gone late = places.overdue(now_ms)) {
            CHECK(placed.count(*late) == 0);
            places.leave(*late);
            go(late);
          }
      }
      CHECK(placed.size() <= kSmall.clients);
      CHECK(there.size() - placed.size() <= kSmall.arrivals);
    }
    go(places.come(++last, now_ms));
    bool has = false;
    for (int i = 0; i < 100 && !has; ++i) has = places.take(last, now_ms += 100).has;
    CHECK(has);
  }
}
