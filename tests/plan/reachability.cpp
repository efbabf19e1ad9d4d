// Reachability against a search, on random graphs that grow and are joined.
#include "plan/reachability.h"

#include <doctest/doctest.h>

#include <random>
#include <vector>

#include "tests/part.h"

namespace millrace::plan {
namespace {

// The plain way: a search from each node.
class BySearch {
 public:
  explicit BySearch(size_t count) : next_(count) {}
  void add(uint32_t from, uint32_t to) { next_[from].push_back(to); }
  bool leads(uint32_t from, uint32_t to) const {
    std::vector<bool> seen(next_.size());
    std::vector<uint32_t> todo = next_[from];
    while (!todo.empty()) {
      const uint32_t at = todo.back();
      todo.pop_back();
      if (at == to) return true;
      if (seen[at]) continue;
      seen[at] = true;
      todo.insert(todo.end(), next_[at].begin(), next_[at].end());
    }
    return false;
  }

 private:
  std::vector<std::vector<uint32_t>> next_;
};

} // namespace

TEST_CASE("which nodes lead to which is what a search finds, while edges are added and nodes joined") {
  for (uint32_t seed = 1; seed <= test::part_of(60); ++seed) {
    CAPTURE(seed);
    std::mt19937 engine(seed);
    const auto random = [&] { return static_cast<uint32_t>(engine()); };
    const uint32_t count = 1 + random() % 150;
    Reachability reach(count);
    BySearch search(count);
    for (uint32_t e = 0; e < count * 2; ++e) {
      const uint32_t from = random() % count, to = random() % count;
      if (random() % 10 == 0) { // joined
        reach.join(from, to);
        search.add(from, to);
        search.add(to, from);
      } else if (from < to || random() % 8 == 0) { // mostly forwards, as the steps of a plan
        reach.add(from, to);
        search.add(from, to);
      }
      if (random() % 6 != 0) continue; // asked while it grows, or not until the end
      const uint32_t a = random() % count, b = random() % count;
      REQUIRE(reach.leads(a, b) == search.leads(a, b));
    }
    uint32_t wrong = 0; // asserted once: half a million assertions took most of the time
    for (uint32_t a = 0; a < count; ++a)
      for (uint32_t b = 0; b < count; ++b) wrong += reach.leads(a, b) != search.leads(a, b);
    REQUIRE(wrong == 0);
  }
}

} // namespace millrace::plan
