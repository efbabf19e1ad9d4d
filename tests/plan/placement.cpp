// The placement against brute force, on random problems that say their seed.
#include "plan/placement.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <ctime>
#include <random>
#include <string>

#include "tests/part.h"
#include "tests/seed.h"

namespace millrace::plan {

using test::part_of;

namespace {

struct Wanted {
  uint32_t tasks_max = 12, domains = 2;
  double period_us = 0;
  bool impossible = false; // some tasks cannot run everywhere
};

// A graph of tasks that read from earlier ones, with hops from the host to each device and back, none between devices.
Prices random_prices(std::mt19937& random, const Wanted& wanted) {
  const auto up_to = [&](uint32_t most) { return std::uniform_int_distribution<uint32_t>(0, most)(random); };
  const auto any = [&](double from, double to) { return std::uniform_real_distribution<double>(from, to)(random); };
  Prices prices;
  prices.domains = wanted.domains;
  prices.period_us = wanted.period_us;
  prices.workers.assign(wanted.domains, 1);
  prices.workers[0] = 1 + up_to(3);
  prices.hops.assign(wanted.domains * wanted.domains, {});
  for (uint32_t d = 0; d < wanted.domains; ++d) {
    prices.hops[d * wanted.domains + d] = {0, 0};
    if (d == 0) continue;
    prices.hops[d] = {any(1, 20), any(0.00002, 0.001)};
    prices.hops[d * wanted.domains] = {any(1, 20), any(0.00002, 0.001)};
  }
  const uint32_t tasks = 1 + up_to(wanted.tasks_max - 1);
  for (uint32_t t = 0; t < tasks; ++t) {
    Prices::Task task;
    for (uint32_t d = 0; d < wanted.domains; ++d) task.us.push_back(any(1, d == 0 ? 2000 : 800));
    if (wanted.impossible && t > 0 && up_to(3) == 0) task.us[up_to(wanted.domains - 1)] = Prices::kInfeasible;
    if (t == 0)
      for (uint32_t d = 1; d < wanted.domains; ++d) task.us[d] = Prices::kInfeasible; // a source
    task.share = up_to(3) == 0 ? 1.0 / 3 : 1;
    prices.tasks.push_back(task);
    Prices::Buffer buffer;
    buffer.producer = t;
    buffer.bytes = any(100, 3e6);
    buffer.share = task.share;
    prices.buffers.push_back(buffer);
    if (t == 0) continue;
    const uint32_t inputs = 1 + up_to(1);
    for (uint32_t i = 0; i < inputs; ++i) {
      std::vector<uint32_t>& readers = prices.buffers[t - 1 - std::min(t - 1, up_to(3))].readers;
      if (readers.empty() || readers.back() != t) readers.push_back(t);
    }
  }
  return prices;
}

// Every placement that can run.
template <class Each>
void each_placement(const Prices& prices, const Each& each) {
  Places places(prices.tasks.size(), 0);
  for (;;) {
    bool can = true;
    for (size_t t = 0; t < places.size(); ++t) can = can && prices.tasks[t].us[places[t]] != Prices::kInfeasible;
    if (can) each(places);
    size_t t = 0;
    while (t < places.size() && ++places[t] == prices.domains) places[t++] = 0;
    if (t == places.size()) return;
  }
}

// The number by which two placements of this problem are compared first.
double goal(const Prices& prices, const Score& score) {
  return prices.period_us == 0 ? score.load_us : score.overload > 0 ? 1e6 * score.overload : score.latency_us;
}

// That this process had a processor: what else the machine does takes none of it.
double processor_ms() { return static_cast<double>(std::clock()) / CLOCKS_PER_SEC * 1000; }

} // namespace

TEST_CASE("5.5: for two domains without loads the minimum cut is what brute force finds, on 10,000 random graphs") {
  const uint32_t seed = random_seed();
  CAPTURE(seed);
  std::mt19937 random(seed);
  for (int i = 0; i < part_of(10'000); ++i) {
    CAPTURE(i);
    const Prices prices = random_prices(random, {9, 2, 0, i % 2 == 0});
    double least = Prices::kInfeasible;
    each_placement(prices, [&](const Places& places) { least = std::min(least, sum_us(prices, places)); });
    const Places places = least_sum(prices, Places(prices.tasks.size(), 0), 0, 1);
    REQUIRE(sum_us(prices, places) == doctest::Approx(least).epsilon(1e-9));
  }
}

TEST_CASE(
    "5.5: without enumeration the search is within 5 % of the best of all placements, with loads and three domains") {
  const uint32_t seed = random_seed();
  CAPTURE(seed);
  std::mt19937 random(seed);
  int exact = 0;
  const int64_t graphs = part_of(300);
  for (int i = 0; i < graphs; ++i) {
    CAPTURE(i);
    const double period_us = i % 3 == 0 ? 0 : i % 3 == 1 ? 2000 : 16667;
    const Prices prices = random_prices(random, {i % 100 == 99 ? 12u : 7u, 3, period_us, true});
    const Choice choice = choose_places(prices, false);
    CHECK(!choice.exact);
    Score best = choice.score;
    each_placement(prices, [&](const Places& places) {
      const Score score = evaluate(prices, places);
      if (is_better(prices, score, best)) best = score;
    });
    REQUIRE(goal(prices, choice.score) <= 1.05 * goal(prices, best) + 50);
    CHECK(choice.bound_us <= (period_us > 0 ? best.latency_us : best.load_us) * (1 + 1e-9));
    exact += goal(prices, choice.score) <= goal(prices, best) * (1 + 1e-9);
  }
  MESSAGE(exact, " of ", graphs, " were the best itself");
  CHECK(exact > graphs * 8 / 10);
}

TEST_CASE("5.3: what fits comes before what is fast: a device that would be full keeps only what it has room for") {
  // Each takes 6 ms on the device and 9 on the host, of a period of 16.7: the device may hold two, the host's three
  // workers the rest.
  Prices prices;
  prices.domains = 2;
  prices.workers = {3, 1};
  prices.hops = {{0, 0}, {5, 0.0001}, {5, 0.0001}, {0, 0}};
  prices.period_us = 16'667;
  for (uint32_t t = 0; t < 5; ++t) prices.tasks.push_back({{9000, 6000}, 1});
  const Choice choice = choose_places(prices);
  CHECK(choice.exact);
  CHECK(choice.score.overload == 0);
  CHECK(std::count(choice.places.begin(), choice.places.end(), 1u) == 2);
  prices.period_us = 2'000; // nothing can: the smallest overload, and it says so
  CHECK(choose_places(prices).score.overload > 0);
}

TEST_CASE("5.3: streams that are placed alike load each resource as so many graphs beside each other do") {
  const uint32_t seed = random_seed();
  CAPTURE(seed);
  std::mt19937 random(seed);
  for (int i = 0; i < part_of(500); ++i) {
    CAPTURE(i);
    const Prices one = random_prices(random, {8, 3, i % 2 == 0 ? 0.0 : 2000.0});
    const auto tasks = static_cast<uint32_t>(one.tasks.size());
    const auto streams = static_cast<uint32_t>(1 + random() % 5);
    Prices beside = one, alike = one; // each stream by itself; all of them in one
    for (uint32_t s = 1; s < streams; ++s) {
      beside.tasks.insert(beside.tasks.end(), one.tasks.begin(), one.tasks.end());
      for (Prices::Buffer buffer : one.buffers) {
        buffer.producer += s * tasks;
        for (uint32_t& reader : buffer.readers) reader += s * tasks;
        beside.buffers.push_back(buffer);
      }
    }
    for (Prices::Task& task : alike.tasks) task.share *= streams, task.streams = streams;
    for (Prices::Buffer& buffer : alike.buffers) buffer.share *= streams, buffer.streams = streams;
    Places places, places_beside;
    for (const Prices::Task& task : one.tasks) {
      const auto d = static_cast<uint32_t>(random() % one.domains);
      places.push_back(task.us[d] == Prices::kInfeasible ? 0 : d);
    }
    for (uint32_t s = 0; s < streams; ++s) places_beside.insert(places_beside.end(), places.begin(), places.end());
    const Score expected = evaluate(beside, places_beside), score = evaluate(alike, places);
    CHECK(score.load_us == doctest::Approx(expected.load_us));
    CHECK(score.overload == doctest::Approx(expected.overload));
    CHECK(score.bytes == doctest::Approx(expected.bytes));
    CHECK(score.latency_us == doctest::Approx(evaluate(one, places).latency_us)); // that of one stream
    CHECK(sum_us(alike, places) == doctest::Approx(sum_us(beside, places_beside)));
    const Places cheapest = least_sum(alike, Places(tasks, 0), 0, 1);
    CHECK(sum_us(one, cheapest) == doctest::Approx(sum_us(one, least_sum(one, Places(tasks, 0), 0, 1))));
  }
}

TEST_CASE("5.4: of placements that are as fast as each other the one that carries fewer bytes is taken") {
  Prices prices;
  prices.domains = 2;
  prices.workers = {1, 1};
  prices.hops = {{0, 0}, {10, 0.000018}, {10, 0.000018}, {0, 0}};
  prices.period_us = 100'000;
  prices.tasks = {{{100, Prices::kInfeasible}, 1}, {{1000, 960}, 1}, {{100, Prices::kInfeasible}, 1}};
  prices.buffers = {{0, 1000, {1}, 1}, {1, 1000, {2}, 1}};
  CHECK(choose_places(prices).places == Places{0, 0, 0}); // 20 µs less would be two copies more
  prices.tasks[1].us[1] = 300;
  CHECK(choose_places(prices).places == Places{0, 1, 0});
}

TEST_CASE("5.5: each region of a device pays its launch once, and each copy its part of the load") {
  Prices prices;
  prices.domains = 2;
  prices.workers = {1, 1};
  prices.hops = {{0, 0}, {1, 0}, {1, 0}, {0, 0}};
  prices.region_us = {0, 100};
  prices.crossing_us = {0, 10};
  prices.tasks.assign(5, {{1, 1}, 1}); // 0 → 1 → 2 → 3, and 0 → 4
  prices.buffers = {{0, 100, {1, 4}, 1}, {1, 100, {2}, 1}, {2, 100, {3}, 1}};
  const auto load_us = [&](const Places& places) { return evaluate(prices, places).load_us; };
  CHECK(load_us({0, 0, 0, 0, 0}) == 5);
  CHECK(load_us({1, 1, 1, 1, 1}) == 5 + 100);
  CHECK(load_us({0, 1, 1, 1, 0}) == 3 + 100 + 10);
  CHECK(load_us({0, 1, 0, 1, 0}) == 2 + 200 + 30);
  CHECK(load_us({1, 0, 1, 0, 0}) == 2 + 200 + 30); // for 1 and 4 together there is one copy
  CHECK(load_us({0, 1, 0, 0, 1}) == 2 + 100 + 20); // 1 and 4 are one region: no way leads from one to the other
  CHECK(evaluate(prices, {0, 1, 1, 1, 0}).latency_us == 1 + 1 + 100 + 3);
  CHECK(evaluate(prices, {0, 1, 0, 1, 0}).latency_us == 1 + 1 + 101 + 1 + 1 + 1 + 101);
  prices.tasks[1].share = prices.tasks[2].share = 0.5; // they fire on every other tick, and 3 on each
  CHECK(load_us({0, 1, 1, 0, 0}) == 1 + 50 + 10 + 10);
  CHECK(load_us({0, 1, 1, 1, 0}) == 2 + 100 + 10);
  prices.hops[1].overlaps_compute = prices.hops[2].overlaps_compute = false; // then all of a copy is the device's
  CHECK(load_us({0, 1, 1, 0, 0}) == 1 + 50 + 2);
}

TEST_CASE("5.5: a copy from device to device is a part of the load of the one that submits it") {
  Prices prices;
  prices.domains = 3;
  prices.workers = {1, 1, 1};
  prices.hops.assign(9, {1, 0});
  prices.region_us = {0, 0, 0};
  prices.crossing_us = {0, 10, 100};
  prices.tasks.assign(2, {{1, 1, 1}, 1});
  prices.buffers = {{0, 100, {1}, 1}};
  const auto load_us = [&](const Places& places) { return evaluate(prices, places).load_us; };
  CHECK(load_us({1, 2}) == 1 + 100); // who reads
  CHECK(load_us({1, 0}) == 1 + 10);
  prices.pushes = 0b110;
  CHECK(load_us({1, 2}) == 1 + 10); // who has the bytes
  CHECK(load_us({0, 2}) == 1 + 100);
  prices.pushes = 0b010;
  CHECK(load_us({1, 2}) == 1 + 100);
}

namespace {

// The pipeline of `five` and `crossover` in docs/performance.md, on a host with 8 workers and a GPU: source, blur,
// text, waveform, and a sink on the host. What the host's bodies take grows with the pixels; those of the GPU take what
// their launches do, at these sizes. `bodies`: those.
Prices five(double width, const std::vector<double>& bodies) {
  const double pixels = width * width * 9 / 16;
  Prices prices;
  prices.domains = 2;
  prices.workers = {8, 1};
  const HopPrice hop(10, 1 / 49'000.);
  prices.hops = {{0, 0}, hop, hop, {0, 0}};
  prices.tasks = {{{0.3 + 0.0014 * pixels, bodies[0] + 3e-6 * pixels}, 1},
                  {{0.3 + 0.0133 * pixels, bodies[1] + 12e-6 * pixels}, 1},
                  {{0.5 + 0.00003 * pixels, bodies[2] + 0.5e-6 * pixels}, 1},
                  {{2 + 0.0045 * pixels, bodies[3] + 5e-6 * pixels}, 1},
                  {{0.3, Prices::kInfeasible}, 1}};
  for (uint32_t t = 0; t < 4; ++t) prices.buffers.push_back({t, 4 * pixels, {t + 1}, 1});
  return prices;
}

// With the host's time to submit them, as they were measured on a stream that was not held, and without it, an
// estimate: together with a launch they are about what a tick on the GPU takes.
const std::vector<double> kAsSubmitted = {12, 13, 15, 28}, kHeld = {2, 4, 8, 12};

Prices five_with_launches(double width) {
  Prices prices = five(width, kHeld);
  prices.region_us = {0, 6.7};
  prices.crossing_us = {0, 3.6};
  return prices;
}

std::string letters(const Places& places) {
  std::string letters;
  for (const uint32_t domain : places) letters += domain == 0 ? 'c' : 'g';
  return letters;
}

} // namespace

TEST_CASE("5.5: bodies as they are submitted and launches that cost nothing are why work went back and forth") {
  std::string choices; // as in the table `crossover` of 2026-11-22, from 16×9 to 2048×1152
  for (double width = 16; width <= 2048; width *= 2)
    choices += letters(choose_places(five(width, kAsSubmitted)).places) + " ";
  CHECK(choices == "ccccc ccccc cgccc cgcgc ggcgc ggcgc ggggc ggggc ");
}

TEST_CASE("5.5: small pictures stay on the host, large ones go to the device, and none goes back and forth") {
  const Places host(5, 0), device = {1, 1, 1, 1, 0};
  for (double width = 16; width <= 2048; width *= std::sqrt(2)) {
    CAPTURE(width);
    const Prices prices = five_with_launches(width);
    const Choice choice = choose_places(prices);
    const double better = std::min(evaluate(prices, host).load_us, evaluate(prices, device).load_us);
    CHECK(choice.score.load_us <= 1.05 * better);
    const std::string places = letters(choice.places);
    const size_t out = places.find("gc"); // and not in again
    CHECK((out == std::string::npos || places.find('g', out + 1) == std::string::npos));
    if (width < 40) CHECK(choice.places == host);
    if (width > 120) CHECK(choice.places == device);
  }
}

TEST_CASE("3.4: a buffer is carried once for all its readers in a domain, and once to the host for two devices") {
  Prices prices;
  prices.domains = 3;
  prices.workers = {1, 1, 1};
  prices.hops.assign(9, {});
  for (uint32_t d = 0; d < 3; ++d) prices.hops[d * 3] = prices.hops[d] = prices.hops[d * 4] = {0, 0.001};
  prices.tasks.assign(6, {{1, 1, 1}, 1});
  prices.buffers = {{0, 1000, {1, 2, 3, 4, 5}, 1}};
  CHECK(evaluate(prices, {0, 1, 1, 1, 1, 1}).copies == 1);
  CHECK(evaluate(prices, {0, 1, 1, 2, 2, 2}).copies == 2);
  CHECK(evaluate(prices, {1, 0, 2, 2, 2, 1}).copies == 2); // down once, and on from there
  CHECK(evaluate(prices, {1, 2, 2, 2, 2, 1}).copies == 2);
  CHECK(evaluate(prices, {1, 1, 1, 1, 1, 1}).copies == 0);
}

TEST_CASE("5.5: a hop is priced by the size of what goes over it, from piece to piece") {
  plan::HopPrice price;
  price.latency_us = 10;
  price.us_per_byte = {0.01, 0.001, 0.0005, 0.0001};
  CHECK(price.copy_us(0) == doctest::Approx(10));
  for (size_t i = 0; i < kHopSizes.size(); ++i) {
    const auto bytes = static_cast<double>(kHopSizes[i]);
    CHECK(price.copy_us(bytes) == doctest::Approx(10 + bytes * price.us_per_byte[i]));
  }
  const double between = (4096.0 + 65536) / 2;
  CHECK(price.copy_us(between) == doctest::Approx((price.copy_us(4096) + price.copy_us(65536)) / 2));
  CHECK(price.copy_us(64 << 20) == doctest::Approx(10 + (64 << 20) * 0.0001));
}

TEST_CASE("5.3: loads are made of what a copy takes at the median, latencies of what a slow one takes") {
  plan::HopPrice price(10, 0.001);
  CHECK(price.late_copy_us(4096) == price.copy_us(4096)); // nobody measured slow ones
  for (size_t i = 0; i < kHopSizes.size(); ++i)
    price.p99_us[i] = price.copy_us(static_cast<double>(kHopSizes[i])) * (i == 1 ? 3 : 2);
  for (const double bytes : {0.0, 100.0, 4096.0, 1048576.0, 2e6, 1e8})
    CHECK(price.late_copy_us(bytes) == doctest::Approx(2 * price.copy_us(bytes)));
  CHECK(price.late_copy_us(65536) == doctest::Approx(3 * price.copy_us(65536)));
  const double between = (4096.0 + 65536) / 2;
  CHECK(price.late_copy_us(between) == doctest::Approx(2.5 * price.copy_us(between)));
  CHECK(plan::HopPrice().late_copy_us(1) == plan::HopPrice::kInfeasible);

  Prices prices; // 300 µs on the device and 1000 on the host, with 110 µs up and as much down
  prices.domains = 2;
  prices.workers = {1, 1};
  prices.hops = {{0, 0}, {100, 0.01}, {100, 0.01}, {0, 0}};
  prices.period_us = 100'000;
  prices.tasks = {{{100, Prices::kInfeasible}, 1}, {{1000, 300}, 1}, {{100, Prices::kInfeasible}, 1}};
  prices.buffers = {{0, 1000, {1}, 1}, {1, 1000, {2}, 1}};
  const Score before = evaluate(prices, {0, 1, 0});
  CHECK(choose_places(prices).places == Places{0, 1, 0});
  prices.hops[1].p99_us[0] = 10 * prices.hops[1].copy_us(4096); // some copies up take ten times as long
  const Score after = evaluate(prices, {0, 1, 0});
  CHECK(after.load_us == before.load_us);
  CHECK(after.latency_us == doctest::Approx(before.latency_us + 9 * 110));
  CHECK(choose_places(prices).places == Places{0, 0, 0});
}

TEST_CASE("3.6, 5.5: the cheapest ways are what brute force finds, and form a tree") {
  std::mt19937 random(random_seed());
  for (int i = 0; i < 1000; ++i) {
    constexpr uint32_t kDomains = 5;
    std::vector<double> us(kDomains * kDomains, HopPrice::kInfeasible);
    for (double& one : us)
      if (random() % 3 != 0) one = 1 + static_cast<double>(random() % 100);
    const CheapestRoutes ways(kDomains, [&](uint32_t from, uint32_t to) { return us[from * kDomains + to]; });
    std::vector<double> least = us; // Floyd and Warshall
    for (uint32_t d = 0; d < kDomains; ++d) least[d * kDomains + d] = 0;
    for (uint32_t by = 0; by < kDomains; ++by)
      for (uint32_t from = 0; from < kDomains; ++from)
        for (uint32_t to = 0; to < kDomains; ++to)
          least[from * kDomains + to] =
              std::min(least[from * kDomains + to], least[from * kDomains + by] + least[by * kDomains + to]);
    for (uint32_t from = 0; from < kDomains; ++from)
      for (uint32_t to = 0; to < kDomains; ++to) {
        REQUIRE(ways.us(from, to) == least[from * kDomains + to]);
        if (from == to || ways.us(from, to) == HopPrice::kInfeasible) continue;
        const uint32_t before = ways.before(from, to);
        REQUIRE(ways.us(from, to) == ways.us(from, before) + us[before * kDomains + to]);
      }
  }
}

namespace {

// A chain on a host and two devices, of one worker each. The first 8 tasks are cheap on device 1, the last 8 on device
// 2, and all others on the host. But the host would be full long before the devices, so they have to take some of them.
Prices chain_of(uint32_t tasks) {
  Prices prices;
  prices.domains = 3;
  prices.workers = {1, 1, 1};
  prices.hops.assign(9, {5, 0});
  for (uint32_t d = 0; d < 3; ++d) prices.hops[d * 3 + d] = {0, 0};
  for (uint32_t t = 0; t < tasks; ++t) {
    const bool is_first = t < 8, is_last = t >= tasks - 8;
    prices.tasks.push_back({{is_first || is_last ? 100. : 10., is_first ? 5. : 40., is_last ? 5. : 40.}, 1});
    prices.buffers.push_back({t, 1000, {}, 1});
    if (t > 0) prices.buffers[t - 1].readers.push_back(t);
  }
  return prices;
}

// The least load if both devices take `more` tasks beside their own 8, whatever their number.
double load_by_hand_us(const Prices& prices) {
  const auto tasks = static_cast<uint32_t>(prices.tasks.size());
  double least_us = Prices::kInfeasible;
  for (uint32_t more = 0; 2 * (8 + more) <= tasks; ++more) {
    Places places(tasks, 0);
    for (uint32_t t = 0; t < 8 + more; ++t) {
      places[t] = 1;
      places[tasks - 1 - t] = 2;
    }
    least_us = std::min(least_us, evaluate(prices, places).load_us);
  }
  return least_us;
}

} // namespace

TEST_CASE("5.5: a chain for three domains is placed within 2 % of the best by hand, however long it is") {
  for (const uint32_t tasks : {24u, 32u, 33u, 36u, 48u, 64u, 100u, 200u, 1000u}) {
    CAPTURE(tasks);
    const Prices prices = chain_of(tasks);
    const double by_hand_us = load_by_hand_us(prices);
    const Choice choice = choose_places(prices, false);
    CHECK(choice.score.load_us <= 1.02 * by_hand_us);
    CHECK(choice.score.load_us == evaluate(prices, choice.places).load_us);
  }
  CHECK(load_by_hand_us(chain_of(33)) == 130);
  CHECK(load_by_hand_us(chain_of(48)) == 240);
}

TEST_CASE("5.5: ten times as many handlers take at most forty times as long to place") {
  std::mt19937 random(random_seed());
  const auto place_ms = [&](uint32_t tasks) {
    Prices prices;
    do prices = random_prices(random, {tasks, 2, 16'667, false});
    while (prices.tasks.size() < tasks * 9 / 10);
    double least = 1e9;
    for (int i = 0; i < 10; ++i) {
      const double begin = processor_ms();
      choose_places(prices);
      least = std::min(least, processor_ms() - begin);
    }
    return least;
  };
  const double hundred = place_ms(100), thousand = place_ms(1000);
  MESSAGE("100: ", hundred, " ms, 1000: ", thousand, " ms");
  CHECK(thousand < 40 * hundred);
}

} // namespace millrace::plan
