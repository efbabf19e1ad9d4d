// The options of the command's log as the log takes them.
#pragma once

#include "cli/commands.h"
#include "observe/log.h"

namespace millrace::cli {

// The caller adds the function that receives the lines.
LogSettings log_settings(const RunCommand& command);

} // namespace millrace::cli
