// Formats counts, sizes and names for the printed forms of a plan and its errors, so that all of them use the same
// words.
#pragma once

#include <fmt/format.h>

#include <bit>
#include <iterator>
#include <string>

#include "millrace/payload.h"
#include "plan/pace.h"
#include "plan/plan.h"

namespace millrace::plan {

// The only clock of a pipeline may have no name of its own.
inline std::string name_of(const Clock& clock) { return clock.name.empty() ? "main" : clock.name; }

// "3 ticks"
inline std::string count_of(size_t count, const char* thing) {
  return fmt::format("{} {}{}", count, thing, count == 1 ? "" : "s");
}

// "stage 2"; with several clocks "stage 2 of fast".
inline std::string stage_words(const Plan& plan, uint32_t pace) {
  const std::string words = fmt::format("stage {}", plan.paces[pace].stage);
  return plan.clocks.size() < 2 ? words : words + " of " + name_of(plan.clocks[plan.paces[pace].clock]);
}

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

inline std::string described_kind(uint32_t kind) {
  switch (kind) {
    case MR_KIND_IMAGE: return "Image";
    case MR_KIND_TENSOR: return "Tensor";
    case MR_KIND_PACKET: return "Packet";
    case MR_KIND_RECORDS: return "Records";
    case MR_KIND_OBJECT: return "Object";
    default: return "Any";
  }
}

inline std::string time_words(double us) {
  return us >= 10'000 ? fmt::format("{:.1f} ms", us / 1000) : fmt::format("{:.0f} µs", us);
}

inline std::string bytes_words(uint64_t bytes) {
  constexpr const char* kUnits[] = {"B", "KiB", "MiB", "GiB", "TiB"};
  size_t unit = 0;
  double value = static_cast<double>(bytes);
  for (; value >= 1024 && unit + 1 < std::size(kUnits); ++unit) value /= 1024;
  return unit == 0 ? fmt::format("{} B", bytes) : fmt::format("{:.1f} {}", value, kUnits[unit]);
}

// "rgb8 640×480", "int64[3]", "8 records": the most that a value may be.
inline std::string format_words(const mr_format& format) {
  switch (format.kind) {
    case MR_KIND_IMAGE: {
      if (std::popcount(format.pixel_formats) != 1) return "image";
      const auto pixel = static_cast<size_t>(std::countr_zero(format.pixel_formats));
      return fmt::format("{} {}×{}", kPixelNames[pixel], format.width, format.height);
    }
    case MR_KIND_TENSOR: {
      const char* type = format.dtype_code == MR_DTYPE_INT     ? "int"
                         : format.dtype_code == MR_DTYPE_UINT  ? "uint"
                         : format.dtype_code == MR_DTYPE_FLOAT ? "float"
                                                               : "bfloat";
      std::string shape;
      for (uint32_t d = 0; d < format.rank; ++d) shape += (d ? "×" : "") + std::to_string(format.shape[d]);
      return fmt::format("{}{}[{}]", type, format.dtype_bits, shape);
    }
    case MR_KIND_RECORDS: return fmt::format("≤{} records", format.record_count_max);
    case MR_KIND_PACKET: return "packet ≤" + bytes_words(format.bytes_max);
    case MR_KIND_OBJECT: return "object";
    default: return "";
  }
}

} // namespace millrace::plan
