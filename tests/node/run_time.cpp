// The time of a run follows the coordinator's clock: it stands still, begins, slews, and never goes back.
#include "node/run_time.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdlib>
#include <functional>
#include <random>
#include <thread>
#include <utility>
#include <vector>

#include "net/limits.h"
#include "tests/milliseconds.h"
#include "tests/seed.h"

namespace millrace::node {
namespace {

constexpr int64_t kSecondNs = 1000 * kMs;

// A machine's clock that a test moves by hand.
struct HandClock final : device::Timeline {
  int64_t now_ns() const override {
    const int64_t read = at_ns;
    if (const auto once = std::exchange(meanwhile, nullptr)) once();
    return read;
  }
  int64_t at_ns = 7 * kSecondNs;
  // Called after the next reading of the clock, as if another thread ran then.
  mutable std::function<void()> meanwhile;
};

// A machine's clock that goes on by some time whenever anybody reads it. Each thread knows its own last reading.
struct ReadClock final : device::Timeline {
  int64_t now_ns() const override { return last_read_ns = at_ns.fetch_add(step_ns); }
  int64_t step_ns = kMs; // long, so that a line is far wrong outside of its time
  mutable std::atomic<int64_t> at_ns{0};
  static thread_local int64_t last_read_ns;
};
thread_local int64_t ReadClock::last_read_ns = 0;

// A time of the run; or an offset that was followed.
struct Look {
  int64_t machine_ns, ns;
};

} // namespace

TEST_CASE("the time of a run stands still until the start is known, whatever is measured by then") {
  HandClock machine;
  RunTime time(machine);
  CHECK(time.now_ns() == RunTime::kBeforeStartNs);
  machine.at_ns += 100 * kSecondNs;
  time.follow({5 * kSecondNs, 0});
  CHECK(time.now_ns() == RunTime::kBeforeStartNs);
  CHECK(!time.is_virtual());
}

TEST_CASE("the time of a run is 0 at the zero that the coordinator set on its own clock") {
  HandClock machine;
  RunTime time(machine);
  const int64_t ahead_ns = 40 * kSecondNs; // the coordinator's clock
  const int64_t zero_ns = machine.at_ns + ahead_ns + 200 * kMs;
  time.begin(zero_ns, {ahead_ns, 0});
  CHECK(time.now_ns() == -200 * kMs);
  machine.at_ns += 200 * kMs;
  CHECK(time.now_ns() == 0);
  machine.at_ns += 3;
  CHECK(time.now_ns() == 3);
}

TEST_CASE("the time of a run whose zero is more than a second ahead stands still until the last second") {
  HandClock machine;
  RunTime time(machine);
  time.begin(machine.at_ns + 3 * kSecondNs, {0, 0});
  CHECK(time.now_ns() == RunTime::kBeforeStartNs);
  machine.at_ns += 2 * kSecondNs;
  CHECK(time.now_ns() == RunTime::kBeforeStartNs);
  machine.at_ns += 1;
  CHECK(time.now_ns() == RunTime::kBeforeStartNs + 1);
}

TEST_CASE("a node that learns of the start late begins in the middle of the run") {
  HandClock machine;
  RunTime time(machine);
  time.begin(machine.at_ns - 2 * kSecondNs, {0, 0});
  CHECK(time.now_ns() == 2 * kSecondNs);
}

TEST_CASE("the time of a run slews by 500 ppm both ways, and stops exactly at the offset that was measured") {
  for (const int64_t wrong_by_ns : {300'000, -300'000}) {
    CAPTURE(wrong_by_ns);
    HandClock machine;
    RunTime time(machine);
    time.begin(machine.at_ns, {0, 0});
    const int64_t begin_ns = machine.at_ns;
    time.follow({wrong_by_ns, 0});
    CHECK(time.now_ns() == 0);
    machine.at_ns += 100 * kMs;
    CHECK(time.now_ns() == 100 * kMs + (wrong_by_ns > 0 ? 50'000 : -50'000));
    machine.at_ns += 499 * kMs; // 300 µs take 600 ms
    CHECK(std::abs(time.now_ns() - 599 * kMs) == 299'500);
    machine.at_ns += 1 * kMs;
    CHECK(time.now_ns() == 600 * kMs + wrong_by_ns);
    machine.at_ns += 1000 * kSecondNs;
    CHECK(time.now_ns() == machine.at_ns - begin_ns + wrong_by_ns);
  }
}

TEST_CASE("an offset that is measured again turns the slewing around where it is") {
  HandClock machine;
  RunTime time(machine);
  time.begin(machine.at_ns, {0, 0});
  time.follow({1 * kMs, 0});
  machine.at_ns += kSecondNs; // half of it
  CHECK(time.now_ns() == kSecondNs + 500'000);
  time.follow({0, 0});
  CHECK(time.now_ns() == kSecondNs + 500'000);
  machine.at_ns += kSecondNs;
  CHECK(time.now_ns() == 2 * kSecondNs);
  machine.at_ns += kSecondNs;
  CHECK(time.now_ns() == 3 * kSecondNs);
  time.follow({0, 0});
  machine.at_ns += kSecondNs;
  CHECK(time.now_ns() == 4 * kSecondNs);
}

TEST_CASE("the time of a run never goes back and is never more than 500 ppm wrong, however offsets jump") {
  std::mt19937 random(random_seed());
  const auto up_to = [&](int64_t most) { return std::uniform_int_distribution<int64_t>(0, most)(random); };
  for (int history = 0; history < 100; ++history) {
    CAPTURE(history);
    HandClock machine;
    RunTime time(machine);
    int64_t wanted_ns = up_to(kSecondNs), begin_ns = machine.at_ns;
    time.begin(begin_ns + wanted_ns, {wanted_ns, 0});
    const int64_t zero_ns = begin_ns + wanted_ns;
    for (int turn = 0; turn < 200; ++turn) {
      const int64_t before_ns = time.now_ns(), step_ns = up_to(up_to(1) ? 20 : 200 * kMs);
      machine.at_ns += step_ns;
      const int64_t went_ns = time.now_ns() - before_ns;
      REQUIRE(went_ns >= 0);
      REQUIRE(std::abs(went_ns - step_ns) <= step_ns / 2000 + 1);
      if (up_to(3) > 0) continue;
      const int64_t now_ns = time.now_ns();
      time.follow({wanted_ns += up_to(2 * kMs) - 1 * kMs, 0});
      REQUIRE(time.now_ns() == now_ns);
    }
    machine.at_ns += 2000 * kSecondNs;
    CHECK(time.now_ns() == machine.at_ns + wanted_ns - zero_ns);
  }
}

TEST_CASE("the time of a run is as wrong as the offset, what it has still to slew, and what may have drifted since") {
  HandClock machine;
  RunTime time(machine);
  CHECK(time.error_ns() == 0);
  time.begin(machine.at_ns, {0, 0});
  machine.at_ns += 1000 * kSecondNs;
  CHECK(time.error_ns() == 0); // the coordinator's own clock

  RunTime other(machine);
  other.begin(machine.at_ns, {0, 2 * kMs});
  const auto is_about = [&](int64_t error_ns) {
    CAPTURE(other.error_ns());
    return other.error_ns() >= error_ns && other.error_ns() <= error_ns + 1000;
  };
  CHECK(is_about(2 * kMs));
  machine.at_ns += 10 * kSecondNs;
  CHECK(is_about(2 * kMs + 10'000 * net::kDriftPpmMax));
  other.follow({-kMs, kMs}); // it has 1 ms to slew, which takes 2 s
  CHECK(is_about(2 * kMs));
  machine.at_ns += kSecondNs;
  CHECK(is_about(kMs + kMs / 2 + 1000 * net::kDriftPpmMax));
  machine.at_ns += kSecondNs;
  CHECK(is_about(kMs + 2000 * net::kDriftPpmMax));
}

TEST_CASE("a reader that is held up while the offset changes does not go back") {
  for (const int64_t wrong_by_ns : {100 * kMs, -100 * kMs}) {
    CAPTURE(wrong_by_ns);
    HandClock machine;
    RunTime time(machine);
    time.begin(machine.at_ns, {0, 0});
    time.follow({wrong_by_ns, 0});
    machine.at_ns += kSecondNs;
    const int64_t before_ns = time.now_ns();
    machine.at_ns += 100;
    machine.meanwhile = [&] {
      machine.at_ns += 20 * kMs;
      time.follow({-wrong_by_ns, 0});
    };
    const int64_t held_up_ns = time.now_ns();
    CHECK(held_up_ns >= before_ns);
    CHECK(time.now_ns() >= held_up_ns);
  }
}

TEST_CASE("readers in other threads see what a single thread sees that looks and follows at the same times") {
  constexpr size_t kReads = 50'000;
  ReadClock machine;
  RunTime time(machine);
  time.begin(0, {0, 0});
  std::array<std::vector<Look>, 2> looks;
  std::atomic<int> readers_begun{0}, readers_left{2};
  std::vector<std::thread> readers;
  for (std::vector<Look>& own : looks)
    readers.emplace_back([&] {
      own.reserve(kReads);
      ++readers_begun;
      while (own.size() < kReads) {
        const int64_t run_ns = time.now_ns();
        own.push_back({ReadClock::last_read_ns, run_ns});
      }
      --readers_left;
    });
  while (readers_begun.load() < 2) std::this_thread::yield();
  std::vector<Look> follows;
  while (readers_left.load() > 0) {
    const int64_t offset_ns = follows.size() % 2 ? 800'000 : -900'000;
    time.follow({offset_ns, 0});
    follows.push_back({ReadClock::last_read_ns, offset_ns});
  }
  for (std::thread& reader : readers) reader.join();

  HandClock alone;
  RunTime again(alone);
  again.begin(0, {0, 0});
  std::vector<Look> all = looks[0];
  all.insert(all.end(), looks[1].begin(), looks[1].end());
  std::sort(all.begin(), all.end(), [](const Look& a, const Look& b) { return a.machine_ns < b.machine_ns; });
  uint64_t wrong = 0;
  size_t next = 0;
  for (const Look& look : all) {
    for (; next < follows.size() && follows[next].machine_ns < look.machine_ns; ++next) {
      alone.at_ns = follows[next].machine_ns;
      again.follow({follows[next].ns, 0});
    }
    alone.at_ns = look.machine_ns;
    wrong += again.now_ns() != look.ns;
  }
  CHECK(wrong == 0);
}

} // namespace millrace::node
