// Follows the coordinator's clock; see run_time.h.
#include "node/run_time.h"

#include <algorithm>
#include <cstdlib>

namespace millrace::node {

namespace {

constexpr int64_t kSlewDivisor = 1'000'000 / RunTime::kSlewPpm; // a ns of slewing takes so many ns

} // namespace

int64_t RunTime::Line::offset_at(int64_t machine_ns) const {
  const int64_t slewed = std::max<int64_t>(std::min(machine_ns, until_ns) - from_ns, 0) / kSlewDivisor;
  return offset_ns + (faster ? slewed : -slewed);
}

RunTime::Line RunTime::line() const {
  for (;;) {
    const uint64_t before = changes_.load(std::memory_order_acquire);
    Line line{from_ns_.load(std::memory_order_relaxed), until_ns_.load(std::memory_order_relaxed),
              offset_ns_.load(std::memory_order_relaxed), faster_.load(std::memory_order_relaxed)};
    std::atomic_thread_fence(std::memory_order_acquire);
    if (before % 2 == 0 && changes_.load(std::memory_order_relaxed) == before) return line;
  }
}

void RunTime::set(const Line& line) {
  const uint64_t changes = changes_.load(std::memory_order_relaxed);
  changes_.store(changes + 1, std::memory_order_relaxed);
  std::atomic_thread_fence(std::memory_order_release);
  from_ns_.store(line.from_ns, std::memory_order_relaxed);
  until_ns_.store(line.until_ns, std::memory_order_relaxed);
  offset_ns_.store(line.offset_ns, std::memory_order_relaxed);
  faster_.store(line.faster, std::memory_order_relaxed);
  changes_.store(changes + 2, std::memory_order_release);
}

int64_t RunTime::now_ns() const {
  if (!is_begun_.load(std::memory_order_acquire)) return kBeforeStartNs;
  const int64_t machine_ns = machine_.now_ns();
  return std::max(machine_ns + line().offset_at(machine_ns), kBeforeStartNs);
}

void RunTime::begin(int64_t zero_ns, int64_t offset_ns) {
  zero_ns_ = zero_ns;
  set({0, 0, offset_ns - zero_ns, false});
  is_begun_.store(true, std::memory_order_release);
}

void RunTime::follow(int64_t offset_ns) {
  if (!is_begun_.load(std::memory_order_relaxed)) return;
  const int64_t machine_ns = machine_.now_ns();
  const int64_t now = line().offset_at(machine_ns), wanted = offset_ns - zero_ns_;
  set({machine_ns, machine_ns + std::abs(wanted - now) * kSlewDivisor, now, wanted > now});
}

} // namespace millrace::node
