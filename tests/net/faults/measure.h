// Long and short forms of the fault tests, steady senders, and what is measured of a process.
#pragma once

#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

#include "tests/net/system/ends.h"
#include "tests/part.h"

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define MILLRACE_SANITIZED 1
#endif

namespace millrace::net::test {

// Sanitizers keep memory of their own and take many times as long: sizes and rates are not compared there.
#ifdef MILLRACE_SANITIZED
inline constexpr bool kMeasures = false;
#else
inline constexpr bool kMeasures = true;
#endif

inline bool is_long() {
  const char* form = std::getenv("MILLRACE_NET_FAULTS");
  return form && std::string(form) == "long";
}
// The amount of the form that runs; the short one is a part where MILLRACE_PART says so.
inline int64_t amount(int64_t short_form, int64_t long_form) {
  return is_long() ? long_form : std::max<int64_t>(1, millrace::test::part_of(short_form));
}

inline uint64_t resident_bytes() {
  std::ifstream file("/proc/self/statm");
  uint64_t all = 0, resident = 0;
  file >> all >> resident;
  return resident * static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
}

// "p50 3.1 p99 9.4 max 12.0"
inline std::string percentiles(std::vector<double> values) {
  if (values.empty()) return "none";
  std::sort(values.begin(), values.end());
  const auto at = [&](double part) {
    return values[static_cast<size_t>(part * static_cast<double>(values.size() - 1))];
  };
  std::array<char, 96> text{};
  std::snprintf(text.data(), text.size(), "p50 %.1f p99 %.1f max %.1f (%zu)", at(0.5), at(0.99), values.back(),
                values.size());
  return text.data();
}

// Lets so many parcels a second go, as a camera does, until it is destroyed.
class Pacer {
 public:
  Pacer(Node& node, Crossing& crossing, double per_second)
      : thread_([this, &node, &crossing, per_second] {
          const int64_t begun_ns = monotonic_ns();
          const uint64_t before = crossing.sender->allowed;
          while (!stops_.load()) {
            const double seconds = static_cast<double>(monotonic_ns() - begun_ns) / 1e9;
            crossing.sender->allowed = before + static_cast<uint64_t>(seconds * per_second);
            node.reactor.ring();
            std::this_thread::sleep_for(std::chrono::milliseconds(1));
          }
        }) {}
  ~Pacer() {
    stops_ = true;
    thread_.join();
  }
  Pacer(const Pacer&) = delete;
  Pacer& operator=(const Pacer&) = delete;

 private:
  std::atomic<bool> stops_{false};
  std::thread thread_;
};

// Time that a measurement takes. False if the link breaks meanwhile.
inline bool pass(Pair& pair, int64_t ns) {
  return !pair.progress.wait([&] { return pair.broken() != nullptr; }, ns);
}

} // namespace millrace::net::test
