// Programs that take turns in one process, so that a noisy machine is as noisy for all; their times as JSON.
#pragma once

#include <cstdint>
#include <cstdio>
#include <functional>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "tests/peers/peer.h"

namespace peers {

using Jobs = std::map<std::string, std::function<void()>>; // by program
using Times = std::map<std::string, std::vector<double>>;  // milliseconds of each round, by program

inline Times in_turns(const Jobs& jobs, int rounds) {
  Times ms;
  for (int round = -1; round < rounds; ++round) // the first one warms up
    for (const auto& [name, job] : jobs) {
      const Stopwatch watch;
      job();
      if (round >= 0) ms[name].push_back(watch.seconds() * 1e3);
    }
  return ms;
}

// Random numbers that are the same in each run.
class Numbers {
 public:
  explicit Numbers(uint32_t seed) : random_(seed) {}
  float operator()(double low, double high) {
    return static_cast<float>(low + (high - low) * static_cast<double>(random_()) / 4294967295.0);
  }

 private:
  std::mt19937 random_;
};

// A compiler may not leave out the work whose result is this number.
inline void keep(uint64_t number) { asm volatile("" : : "r"(number) : "memory"); }

inline void print_json(const std::map<std::string, Times>& works) {
  std::printf("{");
  const char* before = "";
  for (const auto& [work, programs] : works) {
    std::printf("%s\"%s\": {", before, work.c_str());
    before = "";
    for (const auto& [program, ms] : programs) {
      std::printf("%s\"%s\": [", before, program.c_str());
      for (size_t i = 0; i < ms.size(); ++i) std::printf("%s%.4f", i ? ", " : "", ms[i]);
      std::printf("]");
      before = ", ";
    }
    std::printf("}");
    before = ", ";
  }
  std::printf("}\n");
}

} // namespace peers
