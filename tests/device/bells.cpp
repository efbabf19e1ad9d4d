// Each thread sleeps on its own bell.
#include "device/bells.h"

#include <doctest/doctest.h>

namespace millrace::test {
namespace {

TEST_CASE("a ring is heard by the one that waits on that bell, and by no other") {
  device::Bells bells(3);
  CHECK_FALSE(bells.any_waits());
  bells.prepare_wait(1);
  bells.prepare_wait(2);
  CHECK(bells.any_waits());
  const uint32_t first = bells.epoch(1), second = bells.epoch(2);
  CHECK_FALSE(bells.ring(0)); // nobody waits there
  CHECK(bells.ring(1));
  CHECK(bells.epoch(1) != first);
  CHECK(bells.epoch(2) == second);
  bells.wait(1, first, 0); // returns at once: it was rung
  bells.ring_all();
  CHECK(bells.epoch(2) != second);
  bells.cancel_wait(1);
  bells.cancel_wait(2);
  CHECK_FALSE(bells.any_waits());
}

} // namespace
} // namespace millrace::test
