// Maps each family of errors to an exit code, and prints the last error of a command; see exit_code.h.
#include "cli/exit_code.h"
#include "observe/error_codes.h"

#include <cstdio>

namespace millrace::cli {

ExitCode exit_code_of(const Error& error) {
  switch (error.code) {
    case code::probe_failed: return kInvalidPipeline; // a source that cannot be opened: nothing ran
    case code::object_over_nodes:
    case code::loop_over_nodes:
    case code::clock_on_two_nodes:
    case code::not_over_nodes:
    case code::crossing_too_large: return kInvalidPipeline; // it cannot be spread over its nodes: nothing ran
    case code::other_pipeline:
    case code::unreachable_node:
    case code::other_peer:
    case code::other_version:
    case code::unknown_peer:
    case code::running_already:
    case code::not_met:
    case code::unable_node: return kInvalidPipeline; // the nodes could not agree: nothing ran
    case code::link_address: return kWrongUsage;
    case code::run_does_not_answer:
    case code::control_not_open: return kRunFailed; // the command was right
    case code::model_call:
    case code::model_memory: return kRunFailed;
    case code::illegal_device_access:
    case code::device_lost: return kDeviceLost;
    default: break;
  }
  switch (error.code / 100) {
    case 1: return kWrongUsage;
    case 2:
    case 3:
    case 4:
    case 9: return kInvalidPipeline;
    case 5: return kPluginNotLoaded;
    default: return kRunFailed;
  }
}

int fail(const Error& error, int code) {
  std::fflush(stdout);
  std::fprintf(stderr, "%s\n", format_error(error).c_str());
  return code;
}

} // namespace millrace::cli
