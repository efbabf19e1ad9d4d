// Rings of blocks: which block a tick gets, how long it is held, and what is given back when nobody reads it any more.
#include "memory/ring.h"

#include <doctest/doctest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <cstdint>
#include <cstring>
#include <random>
#include <set>
#include <string>

#include <thread>
#include <vector>

#include "tests/seed.h"

using namespace millrace::memory;

namespace {

// A ring in memory of its own.
struct Rig {
  Rig(uint32_t length, bool dynamic, uint64_t capacity = 100, bool host_readable = true)
      : bytes(length * block_bytes(capacity) / sizeof(Unit)),
        ring({length, dynamic, capacity}, reinterpret_cast<std::byte*>(bytes.data()), host_readable) {}
  struct alignas(256) Unit {
    unsigned char bytes[256];
  };
  std::vector<Unit> bytes;
  Ring ring;
};

// Foreign memory and objects count here how often they were given back.
std::atomic<int> given_back{0};
void give_back(void*) { ++given_back; }

void stand_for_foreign(Block& block) {
  static const int constant = 7;
  block.foreign = &constant;
  block.foreign_release = give_back;
}
void make_object(Block& block) {
  block.value->header.kind = MR_KIND_OBJECT;
  block.value->as.object = {&given_back, give_back};
}

struct Ending {
  int signal;
  std::string said;
};

// Runs in a child, so that the end of it is not ours.
template <class F>
Ending end_of(F&& body) {
  int ends[2];
  REQUIRE(pipe(ends) == 0);
  const pid_t child = fork();
  REQUIRE(child >= 0);
  if (child == 0) {
    std::signal(SIGABRT, SIG_DFL); // the test framework would report the child's end as its own
    dup2(ends[1], STDERR_FILENO);
    body();
    _exit(0);
  }
  close(ends[1]);
  Ending ending{0, {}};
  char part[512];
  for (ssize_t n = 0; (n = read(ends[0], part, sizeof part)) > 0;) ending.said.append(part, static_cast<size_t>(n));
  close(ends[0]);
  int status = 0;
  waitpid(child, &status, 0);
  if (WIFSIGNALED(status)) ending.signal = WTERMSIG(status);
  return ending;
}

} // namespace

TEST_CASE("3.2: the block of a static ring is a function of the index, whoever still looks at it") {
  Rig rig(3, false);
  CHECK(rig.ring.length() == 3);
  for (uint64_t index = 0; index < 20; ++index) {
    Block& block = rig.ring.take(index);
    CHECK(&block == &rig.ring.block(static_cast<uint32_t>(index % 3)));
    hold(&block); // counts nothing: the plan knows that its readers end with their ticks
    CHECK(block.holds == 0);
  }
  CHECK(rig.ring.high_water() == 3);
}

TEST_CASE("3.2: blocks lie side by side at multiples of 256 bytes, a value and its capacity each") {
  for (const uint64_t capacity : {uint64_t{0}, uint64_t{1}, uint64_t{256}, uint64_t{257}, uint64_t{5000}}) {
    CAPTURE(capacity);
    Rig rig(4, true, capacity);
    CHECK(block_bytes(capacity) % 256 == 0);
    CHECK(block_bytes(capacity) >= sizeof(mr_value) + capacity);
    CHECK(block_bytes(capacity) < sizeof(mr_value) + capacity + 256);
    for (uint32_t i = 0; i < 4; ++i) {
      const Block& block = rig.ring.block(i);
      CHECK(reinterpret_cast<uintptr_t>(block.value) ==
            reinterpret_cast<uintptr_t>(rig.bytes.data()) + i * block_bytes(capacity));
      CHECK(block.data == reinterpret_cast<uint8_t*>(block.value) + sizeof(mr_value));
      CHECK(block.ring == &rig.ring);
    }
  }
}

TEST_CASE("3.2: a dynamic ring gives the first free block and passes over those that are held") {
  Rig rig(4, true);
  Block& first = rig.ring.take(0);
  CHECK(first.holds == 1);
  hold(&first);    // a queue
  release(&first); // the tick is over
  std::vector<Block*> seen;
  for (uint64_t index = 1; index <= 6; ++index) {
    Block& block = rig.ring.take(index);
    CHECK(&block != &first);
    seen.push_back(&block);
    release(&block);
  }
  CHECK(std::set<Block*>(seen.begin(), seen.end()).size() == 1); // the others need no pages
  release(&first);
  std::set<Block*> after;
  for (uint64_t index = 7; index <= 10; ++index) after.insert(&rig.ring.take(index));
  CHECK(after.count(&first) == 1);
  CHECK(after.size() == 4);
}

TEST_CASE("3.2: of holders that release at the same time one is the last, and gives back what the block stands for") {
  Rig rig(2, true);
  const int before = given_back;
  constexpr int kRounds = 2000;
  for (int round = 0; round < kRounds; ++round) {
    Block& block = rig.ring.take(static_cast<uint64_t>(round));
    stand_for_foreign(block);
    hold(&block);
    std::atomic<int> there{0};
    const auto let_go = [&] {
      ++there;
      while (there < 2) continue; // both begin at once
      release(&block);
    };
    std::thread other(let_go);
    let_go();
    other.join();
    REQUIRE(given_back == before + round + 1);
  }
}

TEST_CASE("3.2: a block and its generation name a buffer for ever") {
  for (const bool dynamic : {false, true}) {
    CAPTURE(dynamic);
    Rig rig(3, dynamic);
    std::set<std::pair<Block*, uint64_t>> names;
    for (uint64_t index = 0; index < 30; ++index) {
      Block& block = rig.ring.take(index);
      CHECK(block.generation == (dynamic ? index : index / 3) + 1);
      CHECK(names.emplace(&block, block.generation).second);
      release(&block);
    }
  }
}

TEST_CASE("3.2: a ring of a device is never looked at by the host") {
  Rig rig(2, true, 64, false);
  std::vector<Rig::Unit> before(rig.bytes.size());
  std::memset(before.data(), 0xA5, before.size() * sizeof(Rig::Unit));
  std::memset(rig.bytes.data(), 0xA5, rig.bytes.size() * sizeof(Rig::Unit));
  for (uint64_t index = 0; index < 10; ++index) release(&rig.ring.take(index));
  rig.ring.retire_all();
  CHECK(std::memcmp(rig.bytes.data(), before.data(), before.size() * sizeof(Rig::Unit)) == 0);
}

TEST_CASE("3.2: foreign memory is given back once, when the last hold ends") {
  given_back = 0;
  {
    Rig rig(2, true);
    Block& block = rig.ring.take(0);
    stand_for_foreign(block);
    hold(&block);
    release(&block);
    CHECK(given_back == 0);
    release(&block);
    CHECK(given_back == 1);
    CHECK(block.foreign == nullptr);
    for (uint64_t index = 1; index < 6; ++index) release(&rig.ring.take(index));
  }
  CHECK(given_back == 1);
}

TEST_CASE("3.2: in a static ring foreign memory is given back once, when its block is taken again") {
  given_back = 0;
  Rig rig(2, false);
  stand_for_foreign(rig.ring.take(0));
  release(&rig.ring.block(0)); // of no matter to a static ring
  rig.ring.take(1);
  CHECK(given_back == 0);
  rig.ring.take(2);
  CHECK(given_back == 1);
  rig.ring.take(4);
  CHECK(given_back == 1);
}

TEST_CASE("3.2: a host object is deleted once: with its last hold, with the next use of its block, or with its ring") {
  given_back = 0;
  {
    Rig held(2, true);
    Block& block = held.ring.take(0);
    make_object(block);
    hold(&block);
    release(&block);
    CHECK(given_back == 0);
    release(&block);
    CHECK(given_back == 1);
  }
  CHECK(given_back == 1);
  {
    Rig reused(1, false);
    make_object(reused.ring.take(0));
    reused.ring.take(1);
    CHECK(given_back == 2);
    make_object(reused.ring.block(0));
    CHECK(given_back == 2);
  }
  CHECK(given_back == 3);
}

TEST_CASE("3.3: a block may be released from any thread, and what its readers saw was not written under them") {
  constexpr uint32_t kLength = 8;
  constexpr uint64_t kTicks = 20'000;
  const uint32_t seed = millrace::random_seed();
  CAPTURE(seed);
  Rig rig(kLength, true, sizeof(uint64_t));
  // Two lists of one slot a block: the producer hands over, each reader checks, twice, and releases.
  std::atomic<Block*> mail[2][kLength] = {};
  std::atomic<uint64_t> torn{0}, read[2] = {};
  const auto look = [&](size_t reader) {
    for (uint64_t index = 0; index < kTicks; ++index) {
      Block* block = nullptr;
      while (!(block = mail[reader][index % kLength].exchange(nullptr, std::memory_order_acquire)))
        std::this_thread::yield();
      uint64_t first = 0, second = 0;
      std::memcpy(&first, block->data, sizeof first);
      std::memcpy(&second, block->data, sizeof second);
      if (first != index || second != index) ++torn;
      release(block);
      read[reader].store(index + 1, std::memory_order_release);
    }
  };
  std::thread a(look, 0), b(look, 1);
  std::mt19937 random(seed);
  for (uint64_t index = 0; index < kTicks; ++index) {
    // At most kLength - 1 are held before one more is taken: the bound that a plan would have counted.
    const uint64_t ahead = 1 + random() % (kLength - 1);
    for (const auto& count : read)
      while (index - count.load(std::memory_order_acquire) >= ahead) std::this_thread::yield();
    Block& block = rig.ring.take(index);
    std::memcpy(block.data, &index, sizeof index);
    hold(&block);
    for (auto& box : mail) box[index % kLength].store(&block, std::memory_order_release);
  }
  a.join();
  b.join();
  CHECK(torn == 0);
  for (uint32_t i = 0; i < kLength; ++i) CHECK(rig.ring.block(i).holds == 0);
  uint64_t taken = 0;
  for (uint32_t i = 0; i < kLength; ++i) taken += rig.ring.block(i).generation;
  CHECK(taken == kTicks);
}

TEST_CASE("3.2: a ring that was planned too short asserts, and says so") {
  const Ending ending = end_of([] {
    Rig rig(3, true);
    for (uint64_t index = 0; index < 4; ++index) rig.ring.take(index);
  });
  CHECK(ending.signal == SIGABRT);
  CHECK(ending.said.find("its length was planned too short") != std::string::npos);
  CHECK(end_of([] {
          Rig rig(3, true);
          for (uint64_t index = 0; index < 3; ++index) rig.ring.take(index);
        }).signal == 0);
}

TEST_CASE("3.3: a block that is released more often than it is held asserts") {
  const Ending ending = end_of([] {
    Rig rig(1, true);
    Block& block = rig.ring.take(0);
    release(&block);
    release(&block);
  });
  CHECK(ending.signal == SIGABRT);
  CHECK(ending.said.find("released as often as it is held") != std::string::npos);
}
