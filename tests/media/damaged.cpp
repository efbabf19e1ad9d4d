// Damaged films: whatever is near a film is played or refused, as tests/fuzz/media_fuzz.cpp looks at it.
#include <doctest/doctest.h>

#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "tests/fuzz/packed.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);

namespace {

constexpr unsigned kSeed = 14;
constexpr int kDamagedOfEach = 12;

std::vector<std::string> films() { return millrace::unpacked(MILLRACE_SOURCE_DIR, "media.txt"); }

// Aborts where something does not hold that has to.
void play(const std::string& film) {
  CHECK(LLVMFuzzerTestOneInput(reinterpret_cast<const uint8_t*>(film.data()), film.size()) == 0);
}

} // namespace

TEST_CASE("every film of the fuzzer's corpus is played or refused") {
  const std::vector<std::string> all = films();
  CHECK(all.size() >= 20);
  for (const std::string& film : all) play(film);
}

TEST_CASE("a film that is cut off or has other bytes in it is played or refused") {
  std::mt19937 random(kSeed);
  const auto below = [&](size_t n) { return std::uniform_int_distribution<size_t>(0, n - 1)(random); };
  for (const std::string& film : films()) {
    for (int n = 0; n < kDamagedOfEach; ++n) {
      std::string damaged = film;
      if (n % 4 == 0) damaged.resize(1 + below(film.size()));
      for (size_t bytes = 1 + below(8); bytes > 0; --bytes)
        damaged[below(damaged.size())] = static_cast<char>(n % 3 == 0 ? 0xFF : below(256));
      CAPTURE(n);
      play(damaged);
    }
  }
}
