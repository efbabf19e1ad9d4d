// Loops that several threads share.
#include "plugins/crew/crew.h"

#include <doctest/doctest.h>

#include <atomic>
#include <stdexcept>
#include <vector>

using namespace millrace;

TEST_CASE("each part is done once, whatever the number of threads, parts and rounds") {
  for (const uint32_t threads : {1u, 2u, 5u}) {
    Crew crew(threads);
    for (size_t round = 0; round < 300; ++round) {
      const size_t count = round % 37, grain = 1 + round % 5;
      std::vector<std::atomic<int>> done(count);
      crew.each(count, grain, [&](size_t begin, size_t end) {
        CHECK(end - begin <= grain);
        for (size_t i = begin; i < end; ++i) ++done[i];
      });
      for (const std::atomic<int>& one : done) REQUIRE(one == 1);
    }
  }
}

TEST_CASE("an exception of a part leaves the loop, and the next loop works as any other") {
  for (const uint32_t threads : {1u, 3u}) {
    Crew crew(threads);
    for (int round = 0; round < 50; ++round) {
      CHECK_THROWS_WITH_AS(crew.each(100, 1,
                                     [&](size_t begin, size_t) {
                                       if (begin % 10 == 7) throw std::runtime_error("the seventh");
                                     }),
                           "the seventh", std::runtime_error);
      std::atomic<int> done = 0;
      crew.each(100, 1, [&](size_t, size_t) { ++done; });
      REQUIRE(done == 100);
    }
  }
}
