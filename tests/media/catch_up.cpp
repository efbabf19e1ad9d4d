// Packets that were read ahead, in times that the tests choose.
#include "plugins/media/catch_up.h"

#include <doctest/doctest.h>

using namespace millrace::media;
using namespace std::chrono_literals;

TEST_CASE("packets that wait are given twice as fast as their times say, until one has to be waited for") {
  const CatchUp::Clock::time_point begun{};
  CatchUp catch_up;
  CHECK_FALSE(catch_up.is_under_way());
  catch_up.start();
  CHECK(catch_up.due() == begun);
  catch_up.gave(begun, 0, 40'000'000); // the first has none before it, so it is as far as packets usually are
  CHECK(catch_up.due() == begun + 20ms);
  catch_up.gave(begun + 20ms, 100'000'000, 40'000'000);
  CHECK(catch_up.due() == begun + 70ms);
  catch_up.waited(24ms);
  CHECK(catch_up.is_under_way());
  catch_up.waited(26ms);
  CHECK_FALSE(catch_up.is_under_way());
}

TEST_CASE("a time that is unknown, goes back or is damaged makes no long wait, and none for ever") {
  const CatchUp::Clock::time_point begun{};
  CatchUp catch_up;
  catch_up.start();
  catch_up.gave(begun, INT64_MIN, 0);
  CHECK(catch_up.due() == begun);
  catch_up.waited(0ms);
  CHECK_FALSE(catch_up.is_under_way()); // nothing says how fast the packets should come
  catch_up.start();
  catch_up.gave(begun, INT64_MIN + 1, 0);
  catch_up.gave(begun, INT64_MAX, 0);
  CHECK(catch_up.due() == begun + 100ms);
  catch_up.gave(begun, 5, 10'000'000'000);
  CHECK(catch_up.due() == begun + 100ms);
}
