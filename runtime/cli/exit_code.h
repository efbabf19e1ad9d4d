// Exit codes, a contract with scripts, and how a command ends with an error.
#pragma once

#include "observe/error.h"

namespace millrace::cli {

enum ExitCode {
  kDone = 0,
  kRunFailed = 1,
  kWrongUsage = 2,
  kInvalidPipeline = 3, // found before anything runs
  kPluginNotLoaded = 4,
  kDeviceLost = 5,
  kNotWritten = 6,  // the run is well, and its report, trace or log is not
  kSignalled = 128, // plus the number of the signal: 129, 130, 143
};

// The exit code of a command that ends with this error.
ExitCode exit_code_of(const Error& error);

// Prints the error on stderr, after all that stdout has, and returns the code: the end of a command.
int fail(const Error& error, int code);

} // namespace millrace::cli
