// Numbers with a decimal point: one locale for all threads, and each gets its own back.
#include "observe/plain_numbers.h"

#include <doctest/doctest.h>

#include <clocale>
#include <string>
#include <thread>

using namespace millrace;

TEST_CASE("all threads share one locale with a decimal point, and have their own again afterwards") {
  const locale_t before = uselocale(nullptr);
  locale_t here = nullptr, inside = nullptr, there = nullptr;
  {
    const PlainNumbers plain;
    here = uselocale(nullptr);
    CHECK(std::localeconv()->decimal_point == std::string("."));
    {
      const PlainNumbers again;
      inside = uselocale(nullptr);
    }
    CHECK(uselocale(nullptr) == here);
    std::thread([&] {
      const PlainNumbers plain_there;
      there = uselocale(nullptr);
    }).join();
  }
  CHECK(here != before);
  CHECK(inside == here);
  CHECK(there == here);
  CHECK(uselocale(nullptr) == before);
}
