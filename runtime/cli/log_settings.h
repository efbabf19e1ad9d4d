// The options of the command's log as the log takes them.
#pragma once

#include "cli/commands.h"
#include "observe/log.h"

namespace millrace::cli {

// Where lines go is the caller's to add.
LogSettings log_settings(const RunCommand& command);

} // namespace millrace::cli
