// Implements outcome.h.
#include "embed/outcome.h"

#include <utility>

#include "observe/error.h"
#include "observe/error_codes.h"
#include "observe/report.h"

namespace millrace::embed {

void check_threads(uint32_t threads) {
  if (threads > kThreadsMax)
    throw Failure(code::bad_command_line,
                  "threads: " + std::to_string(threads) + " is more than " + std::to_string(kThreadsMax));
}

Outcome outcome_of(const Result& result, std::string report) {
  Outcome outcome;
  outcome.ok = result.ok;
  if (!result.ok) {
    outcome.code = format_code(result.error.code);
    outcome.error = format_error(result.error);
  }
  outcome.ticks = result.report.ticks_run;
  outcome.duration_s = result.report.duration_s;
  outcome.report = std::move(report);
  return outcome;
}

} // namespace millrace::embed
