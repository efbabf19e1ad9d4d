// Virtual time runs events in order and takes none itself.
#include "device/timeline.h"

#include <doctest/doctest.h>

#include <limits>
#include <string>
#include <vector>

namespace millrace::device {
namespace {

TEST_CASE("1.2: virtual time goes from event to event, equal times in the order of scheduling") {
  VirtualTime time;
  std::string order;
  time.schedule(20, [&] { order += 'c'; });
  time.schedule(10, [&] { order += 'a'; });
  time.schedule(10, [&] { order += 'b'; });
  CHECK(time.next_ns() == 10);
  CHECK(time.step());
  CHECK(time.now_ns() == 10);
  CHECK(order == "a");
  CHECK(time.step());
  CHECK(time.now_ns() == 10);
  CHECK(time.step());
  CHECK(time.now_ns() == 20);
  CHECK(order == "abc");
  CHECK_FALSE(time.step());
  CHECK(time.empty());
  CHECK(time.next_ns() == std::numeric_limits<int64_t>::max());
}

TEST_CASE("1.2: an event may schedule others, and a time that has passed means now") {
  VirtualTime time;
  std::vector<int64_t> at;
  time.schedule(100, [&] {
    time.schedule(30, [&] { at.push_back(time.now_ns()); });
    time.schedule(150, [&] { at.push_back(time.now_ns()); });
  });
  while (time.step()) {
  }
  CHECK(at == std::vector<int64_t>{100, 150});
}

TEST_CASE("an event may step the timeline in its turn") {
  VirtualTime time;
  std::string order;
  time.schedule(1, [&] {
    order += '(';
    time.step();
    order += ')';
  });
  time.schedule(2, [&] { order += 'x'; });
  while (time.step()) {
  }
  CHECK(order == "(x)");
}

TEST_CASE("watchers look after each event until they leave") {
  VirtualTime time;
  std::string order;
  const int owner = 0;
  time.watch(&owner, [&] { order += 'w'; });
  time.schedule(1, [&] { order += '1'; });
  time.schedule(2, [&] { order += '2'; });
  time.schedule(3, [&] { order += '3'; });
  time.step();
  time.step();
  time.unwatch(&owner);
  time.step();
  CHECK(order == "1w2w3");
}

TEST_CASE("monotonic time does not go back") {
  const MonotonicTime time;
  const int64_t before = time.now_ns();
  CHECK(before > 0);
  CHECK(time.now_ns() >= before);
  CHECK_FALSE(time.is_virtual());
}

} // namespace
} // namespace millrace::device
