// Hand-made groups for the tests of the collector and its rules.
#pragma once

#include <string>
#include <vector>

#include "batch/collector.h"
#include "tests/milliseconds.h"

namespace millrace::batch::test {

// Firings of 1 to 64 items, each as long as 0.2 ms and 0.1 ms an item, which never differ.
inline std::vector<BucketTime> even_curve() {
  std::vector<BucketTime> curve;
  for (uint32_t items = 1; items <= 64; items *= 2) {
    const int64_t ns = 200'000 + 100'000 * int64_t{items};
    curve.push_back({items, ns, ns, 0});
  }
  return curve;
}

// Streams of one rate that are all there.
inline void add_streams(Collector& collector, uint32_t count, StreamTerms terms) {
  for (uint32_t s = 0; s < count; ++s) collector.stream_added(s, terms, 0);
}

// "stream:ordinal" of each item, in the order in which they left.
inline std::string words(const Firing* firing) {
  std::string words;
  if (firing == nullptr) return "none";
  for (const Item& item : firing->items)
    words += (words.empty() ? "" : " ") + std::to_string(item.stream) + ":" + std::to_string(item.ordinal);
  return words;
}
inline std::string dropped_words(const Step& step) {
  std::string words;
  for (const Dropped& dropped : step.dropped)
    words += (words.empty() ? "" : " ") + std::to_string(dropped.item.stream) + ":" +
             std::to_string(dropped.item.ordinal) + (dropped.cause == DropCause::late ? " late" : " failed");
  return words;
}

} // namespace millrace::batch::test
