// Natural order: known neighbours, and that it is an order at all.
#include "plugins/opencv/natural_order.h"

#include <doctest/doctest.h>

#include <random>
#include <string>
#include <vector>

#include "tests/seed.h"

using millrace::opencv::natural_less;

TEST_CASE("numbers in names compare as numbers, of any length") {
  const std::vector<std::string> ordered = {"",
                                            "1",
                                            "01",
                                            "2",
                                            "10",
                                            "a",
                                            "a0",
                                            "a1",
                                            "a1b",
                                            "a2",
                                            "a10",
                                            "a10.png",
                                            "a010.png",
                                            "a10a",
                                            "a11",
                                            "a18446744073709551616",
                                            "a18446744073709551617",
                                            "b/2/1",
                                            "b/2/3",
                                            "b/10/1",
                                            "\xC3\xA9"};
  for (size_t i = 0; i < ordered.size(); ++i)
    for (size_t j = 0; j < ordered.size(); ++j) {
      INFO(ordered[i], " and ", ordered[j]);
      CHECK(natural_less(ordered[i], ordered[j]) == (i < j));
    }
}

TEST_CASE("natural order is a strict total order") {
  const uint32_t seed = millrace::random_seed();
  INFO("seed ", seed);
  std::mt19937 random(seed);
  const auto name = [&] {
    std::string text;
    for (auto length = random() % 6; length > 0; --length) text += "019a."[random() % 5];
    return text;
  };
  bool total = true, transitive = true;
  for (int trial = 0; trial < 200'000; ++trial) {
    const std::string a = name(), b = name(), c = name();
    total = total && natural_less(a, b) + natural_less(b, a) == (a != b);
    if (natural_less(a, b) && natural_less(b, c)) transitive = transitive && natural_less(a, c);
  }
  CHECK(total);
  CHECK(transitive);
}
