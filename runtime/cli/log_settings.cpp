// Reads -v, --log-level, --log-file and --log-format; see log_settings.h.
#include "cli/log_settings.h"

#include <algorithm>

#include "observe/log_lines.h"

namespace millrace::cli {

namespace {

LogLevel level_named(const std::string& name) {
  for (const LogLevel level : {LogLevel::debug, LogLevel::info, LogLevel::warning})
    if (name == name_of(level)) return level;
  return LogLevel::error;
}

} // namespace

LogSettings log_settings(const RunCommand& command) {
  LogSettings settings;
  const LogFormat format = command.log_format == "json" ? LogFormat::json : LogFormat::text;
  if (!command.log_file.empty()) {
    settings.file = command.log_file;
    settings.file_format = format;
    if (!command.log_level.empty()) settings.file_level = level_named(command.log_level);
  } else {
    settings.line_format = format;
    if (!command.log_level.empty())
      settings.line_level = settings.line_level_of_handlers = level_named(command.log_level);
  }
  if (command.verbose > 0) {
    const LogLevel asked = command.verbose > 1 ? LogLevel::debug : LogLevel::info;
    settings.line_level = std::min(settings.line_level, asked);
    settings.line_level_of_handlers = std::min(settings.line_level_of_handlers, asked);
  }
  return settings;
}

} // namespace millrace::cli
