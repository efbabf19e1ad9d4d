// The records of a runtime's log; RuntimeOptions::on_log receives them.
#pragma once

#include <cstdint>
#include <string_view>

namespace millrace {
inline namespace v1 {

enum class LogLevel : uint32_t { debug, info, warning, error }; // the numbers of MR_LOG_*

// One event. The texts are valid until the function that receives the record returns.
struct LogRecord {
  static constexpr uint64_t kNoTick = UINT64_MAX;
  static constexpr uint32_t kNoStream = UINT32_MAX;

  LogLevel level = LogLevel::info;
  int64_t time_ns = 0;         // since 1970, UTC
  std::string_view code;       // "MR0602"; "": none
  std::string_view handler;    // its name in the pipeline; "": the record is about no handler
  std::string_view clock;      // its name in the pipeline; "": none
  uint64_t tick = kNoTick;     // index of the clock's tick during whose call it was logged; kNoTick: none
  uint32_t stream = kNoStream; // the handler's own, else that of its first input's value; kNoStream: none
  std::string_view text;       // UTF-8 without control characters; lines after the first are indented
};

} // namespace v1
} // namespace millrace
