// Formats a log record in three ways: for a terminal, for a file that people read, for a program.
#pragma once

#include <string>

#include "millrace/log.h"

namespace millrace {

const char* name_of(LogLevel level); // "warning"

// "warning MR0602: blur is in one call for 12.0 s", "info video: the film has no sound": as on stderr, without a time.
std::string terminal_line(const LogRecord& record);
// "2024-05-01T12:00:00.123456Z info video (clock main, tick 17): the film has no sound"
std::string text_line(const LogRecord& record);
// {"time":"2024-05-01T12:00:00.123456Z","level":"info","handler":"video","clock":"main","tick":17,"text":"…"}; fields
// that the record does not have are left out.
std::string json_line(const LogRecord& record);

} // namespace millrace
