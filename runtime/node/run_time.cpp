// Follows the coordinator's clock; see run_time.h.
#include "node/run_time.h"

#include <algorithm>
#include <cstdlib>

#include "net/limits.h"

namespace millrace::node {

namespace {

constexpr int64_t kSlewDivisor = 1'000'000 / RunTime::kSlewPpm; // a ns of slewing takes so many ns

static_assert(RunTime::kSlewPpm > net::kDriftPpmMax, "else a clock that drifts is never caught up with");

} // namespace

int64_t RunTime::Line::offset_at(int64_t machine_ns) const {
  const int64_t slewed = std::max<int64_t>(std::min(machine_ns, until_ns) - from_ns, 0) / kSlewDivisor;
  return offset_ns + (faster ? slewed : -slewed);
}

int64_t RunTime::Line::error_at(int64_t machine_ns) const {
  if (error_ns == 0) return 0; // it follows nobody
  const int64_t since_ns = std::max<int64_t>(machine_ns - from_ns, 0);
  const int64_t slews_ns = std::max<int64_t>(until_ns - from_ns - since_ns, 0); // from now on
  const int64_t to_slew_ns = slews_ns / kSlewDivisor + 1;
  return to_slew_ns + error_ns + (since_ns / 1'000'000 + 1) * net::kDriftPpmMax;
}

// A reader that sees one part of a change sees the begin of the change too: parts are released and acquired.
RunTime::Line RunTime::line() const {
  return {from_ns_.load(std::memory_order_acquire), until_ns_.load(std::memory_order_acquire),
          offset_ns_.load(std::memory_order_acquire), error_ns_.load(std::memory_order_acquire),
          faster_.load(std::memory_order_acquire)};
}

void RunTime::begin_change() { changes_.fetch_add(1); } // readers see it before the machine's time is read

void RunTime::end_change(const Line& line) {
  from_ns_.store(line.from_ns, std::memory_order_release);
  until_ns_.store(line.until_ns, std::memory_order_release);
  offset_ns_.store(line.offset_ns, std::memory_order_release);
  error_ns_.store(line.error_ns, std::memory_order_release);
  faster_.store(line.faster, std::memory_order_release);
  changes_.fetch_add(1);
}

RunTime::Reading RunTime::read() const {
  for (;;) {
    const uint64_t before = changes_.load(std::memory_order_acquire);
    const Line line_now = line();
    const int64_t machine_ns = machine_.now_ns();
    if (before % 2 == 0 && changes_.load(std::memory_order_acquire) == before) return {line_now, machine_ns};
  }
}

int64_t RunTime::now_ns() const {
  if (!is_begun_.load(std::memory_order_acquire)) return kBeforeStartNs;
  const Reading now = read();
  return std::max(now.machine_ns + now.line.offset_at(now.machine_ns), kBeforeStartNs);
}

int64_t RunTime::error_ns() const {
  if (!is_begun_.load(std::memory_order_acquire)) return 0;
  const Reading now = read();
  return now.line.error_at(now.machine_ns);
}

void RunTime::begin(int64_t zero_ns, const Offset& offset) {
  zero_ns_ = zero_ns;
  begin_change();
  const int64_t machine_ns = machine_.now_ns();
  end_change({machine_ns, machine_ns, offset.ns - zero_ns, offset.error_ns, false});
  is_begun_.store(true, std::memory_order_release);
}

void RunTime::follow(const Offset& offset) {
  if (!is_begun_.load(std::memory_order_relaxed)) return;
  begin_change();
  const int64_t machine_ns = machine_.now_ns();
  const int64_t now = line().offset_at(machine_ns), wanted = offset.ns - zero_ns_;
  end_change({machine_ns, machine_ns + std::abs(wanted - now) * kSlewDivisor, now, offset.error_ns, wanted > now});
}

} // namespace millrace::node
