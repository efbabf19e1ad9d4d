// Words for the printed forms of a plan and its errors, so that they all name things alike.
#pragma once

#include <fmt/format.h>

#include <iterator>
#include <string>

#include "plan/plan.h"

namespace millrace::plan {

// The only clock of a pipeline may have no name of its own.
inline std::string name_of(const Clock& clock) { return clock.name.empty() ? "main" : clock.name; }

inline std::string mode_word(const Clock& clock) {
  switch (clock.mode) {
    case graph::ClockMode::realtime: return "realtime";
    case graph::ClockMode::source: return "source";
    default: return "free";
  }
}

inline std::string policy_word(graph::Policy policy) {
  switch (policy) {
    case graph::Policy::latest: return "latest";
    case graph::Policy::queue: return "queue";
    case graph::Policy::align: return "align";
    default: return "sync";
  }
}

inline std::string policy_word(const EdgePlan& edge) { return edge.delay > 0 ? "delay" : policy_word(edge.policy); }

inline std::string full_word(graph::Full full) {
  switch (full) {
    case graph::Full::drop_oldest: return "drop_oldest";
    case graph::Full::drop_newest: return "drop_newest";
    default: return "block";
  }
}

// "video.video → blur.video"
inline std::string edge_words(const EdgePlan& edge) { return edge.from + " → " + edge.to; }

inline std::string bytes_words(uint64_t bytes) {
  constexpr const char* kUnits[] = {"B", "KiB", "MiB", "GiB", "TiB"};
  size_t unit = 0;
  double value = static_cast<double>(bytes);
  for (; value >= 1024 && unit + 1 < std::size(kUnits); ++unit) value /= 1024;
  return unit == 0 ? fmt::format("{} B", bytes) : fmt::format("{:.1f} {}", value, kUnits[unit]);
}

// "boxes.video, other.video"
inline std::string reader_words(const InsertedPlan& inserted) {
  std::string text;
  for (const std::string& reader : inserted.readers) text += (text.empty() ? "" : ", ") + reader;
  return text;
}

// The edges that a copy serves.
inline std::string edge_words(const Plan& plan, const TransferPlan& transfer) {
  std::string text;
  for (uint32_t e : transfer.edges) text += (text.empty() ? "" : ", ") + edge_words(plan.edges[e]);
  return text;
}

} // namespace millrace::plan
