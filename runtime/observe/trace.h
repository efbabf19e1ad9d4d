// Records what ran when: rings of spans that are written all the time and read when a run is over.
//
// One thread writes a ring, and a full ring forgets its oldest spans. Writing shares nothing and allocates nothing.
// Times are the processor's own ticks, because reading them costs half of what clock_gettime() does (9 ns against 19 ns
// on the machine of docs/performance.md); TraceClock turns them into nanoseconds afterwards.
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>
#if defined(__x86_64__)
#include <x86intrin.h>
#else
#include <chrono>
#endif

namespace millrace {

// Ticks of a counter that runs at one rate on all cores.
inline int64_t trace_ticks() {
#if defined(__x86_64__)
  return static_cast<int64_t>(__rdtsc());
#elif defined(__aarch64__)
  int64_t ticks;
  asm volatile("mrs %0, cntvct_el0" : "=r"(ticks));
  return ticks;
#else
  return std::chrono::steady_clock::now().time_since_epoch().count();
#endif
}

// Converts ticks to nanoseconds by a line through two readings of both clocks: one when the run began, one when its
// trace is read.
class TraceClock {
 public:
  void begin(int64_t ticks, int64_t ns) { ticks_ = ticks, ns_ = ns; }
  void end(int64_t ticks, int64_t ns) {
    if (ticks > ticks_) ns_per_tick_ = static_cast<double>(ns - ns_) / static_cast<double>(ticks - ticks_);
  }
  // Nanoseconds since begin().
  double ns(int64_t ticks) const { return static_cast<double>(ticks - ticks_) * ns_per_tick_; }

 private:
  int64_t ticks_ = 0, ns_ = 0;
  double ns_per_tick_ = 1;
};

// A reader's `read` belongs to a value, which becomes part of some tick later or never. A `firing` of a group is
// followed by an `item` for each of its items. The numbers travel over links and stay as they are.
enum class TraceKind : uint32_t { call, read, copy, admit, firing, item };

// A trace id holds the tick's index in these bits and the tick's clock above them.
inline constexpr uint64_t kTraceIndexBits = 48;

// A span as readers get it. The ring stores it in half the bytes.
struct TraceSpan {
  int64_t begin, end; // ticks
  uint64_t trace_id;  // the tick's, the reader's count of values, or the group's clock and count of firings
  uint32_t step;      // index in the plan
  TraceKind kind;
};

// One track of a trace: a worker, a reader, a stream of a device.
class alignas(64) TraceRing {
 public:
  // `touched`: touches all memory now, so that the first spans cost no page faults.
  TraceRing(std::string name, size_t entries, bool touched)
      : name_(std::move(name)), mask_(std::bit_ceil(entries) - 1), entries_(new Entry[mask_ + 1]) {
    if (touched) std::fill_n(entries_.get(), mask_ + 1, Entry{});
  }

  // Only the one thread that writes this ring.
  void add(const TraceSpan& span) {
    if (span.trace_id != trace_id_) [[unlikely]] {
      trace_id_ = span.trace_id;
      entries_[added_++ & mask_] = {kTickMark | span.trace_id, 0};
    }
    const auto ticks = static_cast<uint64_t>(span.end - span.begin);
    const uint64_t step = uint64_t{span.step} << kTicksBits | uint64_t(span.kind) << kKindShift;
    entries_[added_++ & mask_] = {step | (ticks < kTicksMax ? ticks : kTicksMax), span.end};
  }

  // Adds `count` steps one after another, each with an equal part of the span.
  void add_row(const TraceSpan& span, const uint32_t* steps, uint32_t count) {
    const int64_t each = (span.end - span.begin) / count;
    add({span.begin, span.begin + each, span.trace_id, steps[0], span.kind});
    const auto ticks = std::min(static_cast<uint64_t>(each), kTicksMax) | uint64_t(span.kind) << kKindShift;
    int64_t end = span.begin + each;
    for (uint32_t i = 1; i < count; ++i)
      entries_[added_++ & mask_] = {uint64_t{steps[i]} << kTicksBits | ticks, end += each};
  }

  const std::string& name() const { return name_; }
  // The number of entries that newer ones have overwritten.
  uint64_t forgotten() const { return added_ > mask_ + 1 ? added_ - (mask_ + 1) : 0; }
  // Oldest first. Call it only when the ring's thread no longer writes.
  std::vector<TraceSpan> spans() const {
    std::vector<TraceSpan> all;
    uint64_t trace_id = kUnknown;
    for (uint64_t i = forgotten(); i < added_; ++i) {
      const Entry& entry = entries_[i & mask_];
      if (entry.what & kTickMark) trace_id = entry.what & ~kTickMark;
      if (entry.what & kTickMark || trace_id == kUnknown) continue; // its tick is forgotten
      const auto ticks = static_cast<int64_t>(entry.what & kTicksMax);
      all.push_back({entry.end - ticks, entry.end, trace_id,
                     static_cast<uint32_t>(entry.what >> kTicksBits & kStepMask),
                     static_cast<TraceKind>(entry.what >> kKindShift)});
    }
    return all;
  }

 private:
  // 16 bytes a call. If bit 63 of `what` is set, it is the tick that the next entries belong to; else it holds kind,
  // step and duration.
  struct Entry {
    uint64_t what;
    int64_t end;
  };
  static constexpr uint64_t kTickMark = uint64_t{1} << 63;
  static constexpr uint32_t kTicksBits = 40, kKindShift = 60; // 2⁴⁰ ticks are minutes: the watchdog reports sooner
  static constexpr uint64_t kTicksMax = (uint64_t{1} << kTicksBits) - 1;
  static constexpr uint64_t kStepMask = (uint64_t{1} << (kKindShift - kTicksBits)) - 1; // a million steps
  static constexpr uint64_t kUnknown = UINT64_MAX;

  std::string name_;
  uint64_t mask_, added_ = 0, trace_id_ = kUnknown;
  std::unique_ptr<Entry[]> entries_;
};

} // namespace millrace
