// The causes for which an edge has no value.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <iterator>

namespace millrace::exec {

// Why an edge had no value, counted on the edge (semantics.md 2.1, 2.8). The numbers travel over links and stay as they
// are.
enum class Cause : uint8_t {
  silent,
  every,
  error,
  busy,
  queue_full,
  superseded,
  end,
  not_yet,
  rate,
  unaligned,
  failed,
  restart,
  input,
  link,
  away,
  lost,
  late,
  count
};
inline constexpr const char* kCauseNames[] = {"silent", "every",   "error", "busy",      "queue_full", "superseded",
                                              "end",    "not_yet", "rate",  "unaligned", "failed",     "restart",
                                              "input",  "link",    "away",  "lost",      "late"};
static_assert(std::size(kCauseNames) == static_cast<size_t>(Cause::count));

// How often something was dropped, by cause.
using Drops = std::array<uint64_t, static_cast<size_t>(Cause::count)>;

} // namespace millrace::exec
