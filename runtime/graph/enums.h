// The choices that a pipeline file names by a word, and a rate: what a plan keeps of the declared graph.
#pragma once

#include <cstdint>

namespace millrace::graph {

enum class Policy { sync, latest, queue, align };
enum class Full { block, drop_oldest, drop_newest };
enum class OnError { fail, skip, restart, bypass };
enum class ClockMode { automatic, realtime, free, source };
enum class Delivery { automatic, live, reliable };
enum class OnStreamError { end, fail, restart };
enum class Late { automatic, drop, keep };

struct Rational {
  int64_t numerator = 0, denominator = 1; // 0: not given
};

} // namespace millrace::graph
