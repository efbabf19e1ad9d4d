// Streams that are damaged on the way end with a reason: no crash, and no wrong value is taken.
#include <random>

#include "tests/net/faults/line.h"
#include "tests/net/faults/measure.h"
#include "tests/seed.h"

using namespace millrace;
using namespace millrace::net;
using namespace millrace::net::test;

namespace {

// One link, and what its line does to each of its streams.
struct Damaged {
  Damaged(Road road, const std::string& faults, uint64_t seed) : pair(road) {
    Contents mixed_sizes;
    mixed_sizes.seed = seed;
    mixed_sizes.values = 2;
    mixed_sizes.bytes_max = 3000;
    pair.add(true, mixed_sizes, 16);
    pair.add(true, packets(150'000, seed + 1), 2);
    pair.add(false, packets(500, seed + 2), 8);
    pair.listen();
    line.emplace(pair.listener->endpoints()[0], seed);
    line->begin(faults);
    pair.dialled = {line->endpoint()};
    pair.start();
    for (const auto& crossing : pair.crossings) pair.allow(*crossing, UINT64_MAX);
  }

  Pair pair;
  std::optional<Line> line;
};

uint64_t streams_of(std::vector<std::unique_ptr<Damaged>>& links) {
  uint64_t sum = 0;
  for (const auto& link : links) sum += link->line->totals().connections;
  return sum;
}

void damage(Road road, uint64_t streams) {
  std::vector<std::unique_ptr<Damaged>> links;
  struct Faults {
    const char *always, *now_and_then; // the second on average every 80 ms; "": never
  };
  constexpr std::array kFaults = {Faults{"flip 1/20000", ""},
                                  Faults{"flip 1/100000; slice 1..200", ""},
                                  Faults{"flip 1/1000000; slice 1000..4000", "reset up"},
                                  Faults{"flip 1/300000 down; latency 1ms; jitter 1ms", ""},
                                  Faults{"limit 40KB; flip 1/2000000", ""},
                                  Faults{"slice 1..3000", "reset"},
                                  Faults{"flip 1/500000", "half-open up for 5ms"},
                                  Faults{"flip 1/200000 up", "cut"}};
  std::mt19937 random(random_seed());
  uint64_t seed = random_seed();
  for (const Faults& faults : kFaults) links.push_back(std::make_unique<Damaged>(road, faults.always, seed++));
  Progress nothing;
  uint64_t seen = 0;
  while ((seen = streams_of(links)) < streams) {
    for (size_t i = 0; i < links.size(); ++i) {
      REQUIRE(links[i]->pair.broken() == nullptr);
      // A length that was damaged, or a hole in a stream, may leave a reader waiting for bytes that nobody owes.
      if (random() % 100 == 0) links[i]->line->begin("reset");
      if (*kFaults[i].now_and_then && random() % 4 == 0) links[i]->line->begin(kFaults[i].now_and_then);
    }
    nothing.wait([] { return false; }, 20 * kMillisecond);
  }
  uint64_t flipped = 0, refused = 0, parcels = 0;
  for (const auto& link : links) {
    link->line->begin("clear; reset");
    flipped += link->line->totals().bits_flipped;
    for (const Node* node : {link->pair.left.get(), link->pair.right.get()})
      refused += node->events.count(EventType::refused);
  }
  // Once nothing is damaged any more, every link goes on.
  for (const auto& link : links)
    for (const auto& crossing : link->pair.crossings) {
      REQUIRE_MESSAGE(link->pair.arrive(*crossing, crossing->reader->arrived + 20),
                      (link->pair.broken() ? link->pair.broken() : "it stands still"));
      CHECK(crossing->sender->lost == 0);
      parcels += crossing->reader->arrived;
    }
  std::printf("damaged streams (%s): %llu streams, %llu bits flipped, %llu refused by a session, %llu parcels right\n",
              name_of(road), static_cast<unsigned long long>(seen), static_cast<unsigned long long>(flipped),
              static_cast<unsigned long long>(refused), static_cast<unsigned long long>(parcels));
}

} // namespace

TEST_CASE("No wrong value is taken from damaged streams of TCP, which have checksums") {
  damage(Road::ipv4, static_cast<uint64_t>(amount(60, 5000)));
}

TEST_CASE("No wrong value is taken from damaged streams of TLS") {
  damage(Road::tls, static_cast<uint64_t>(amount(60, 5000)));
}
