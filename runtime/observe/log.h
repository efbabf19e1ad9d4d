// The log of one runtime: what it and its handlers say, from any thread, to a terminal, a file and an application.
//
//   Log log(settings);
//   const LogSource& video = log.source("video", "main"); // once
//   log.say(LogLevel::info, video, "the film has no sound", {.tick = 17});
//
// say() puts an entry into a bounded queue (log_queue.h) and returns: no lock, no system call, and no allocation where
// the text is plain ASCII that fits. A thread of the log's own writes what is queued, through a logger of spdlog that
// this log alone has. The thread is not woken by say(), since that would be a system call: it looks by itself, soon
// after it found something and up to ten times a second where it finds nothing. flush() and the end wake it.
//
// Each runtime has a log of its own, and spdlog's registry, default logger and thread pool are not used, so that two
// runtimes in one process do not know of each other.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "millrace/log.h"
#include "observe/log_queue.h"

namespace millrace {

// Who speaks. Both may be "".
struct LogSource {
  std::string handler, clock;
};

enum class LogFormat { text, json };

struct LogSettings {
  // A terminal: a line without its end. Of the runtime's own words less is shown than of what handlers say.
  std::function<void(const std::string& line)> on_line;
  LogLevel line_level = LogLevel::warning, line_level_of_handlers = LogLevel::info;
  LogFormat line_format = LogFormat::text;

  std::string file; // "": none. It grows to file_bytes_max and becomes NAME.1.EXT, which becomes NAME.2.EXT, …
  LogLevel file_level = LogLevel::info;
  LogFormat file_format = LogFormat::text;
  size_t file_bytes_max = size_t{10} << 20;
  size_t files_max = 4; // older ones that are kept

  std::function<void(const LogRecord&)> on_record; // an application
  LogLevel record_level = LogLevel::info;

  size_t places = 512; // of the queue, a KiB each
};

class Log {
 public:
  // Opens the file and starts the thread. Throws Failure (MR0111) where the file cannot be written. All functions of
  // the settings are called by that thread, one at a time; what they throw is dropped.
  explicit Log(LogSettings settings);
  ~Log(); // what is queued is written before
  Log(const Log&) = delete;
  Log& operator=(const Log&) = delete;

  // Whether somebody hears what is said at this level.
  bool takes(LogLevel level) const noexcept { return level >= least_; }
  // Valid for as long as the log is. Locks: not for the hot path.
  const LogSource& source(const std::string& handler = "", const std::string& clock = "");

  struct Context {
    uint64_t tick = LogRecord::kNoTick;
    uint32_t stream = LogRecord::kNoStream;
    int code = 0;            // of an error or a warning: 602
    bool by_handler = false; // its own words, not the runtime's of it
    bool on_terminal = true; // false: it was shown there before, or will be
    bool as_is = false;      // on a terminal the text alone: it continues the line before
  };
  // Any thread. The text is made printable, and cut to a KiB. Where the queue is full it is counted and left out.
  void say(LogLevel level, const LogSource& source, std::string_view text, const Context& context) noexcept;
  void say(LogLevel level, const LogSource& source, std::string_view text) noexcept { say(level, source, text, {}); }
  // A line as terminals show it, "warning MR0603: nothing has moved"; one of another form continues the one before.
  void say_line(std::string_view line) noexcept;

  // Until what was said before is written, or for so long. True: it is. May be called where a process ends in a hurry,
  // from a signal's handler too: it allocates nothing and takes no lock.
  bool flush(int64_t at_most_ns) noexcept;
  // Entries that found the queue full.
  uint64_t lost() const noexcept { return queue_.lost(); }

 private:
  class Writer;
  LogLevel least_;
  LogQueue queue_;
  std::unique_ptr<Writer> writer_;
};

} // namespace millrace
