// The log of one runtime: messages of the runtime and its handlers, from any thread, go to a terminal, a file and an
// application.
//
//   Log log(settings);
//   const LogSource& video = log.source("video", "main"); // once
//   log.say(LogLevel::info, video, "the film has no sound", {.tick = 17});
//
// say() puts an entry into a bounded queue (log_queue.h) and returns: no lock, no system call, and no allocation if the
// text is plain ASCII that fits and has no sign of an address, whose secrets are hidden (secrets.h). The log's own
// thread writes the queued entries, through an spdlog logger that belongs to this log alone. say() does not wake the
// thread, since that would be a system call. The thread polls: 1 ms after it found something, at last every 100 ms
// while it finds nothing. flush() and the end wake it.
//
// Each runtime has its own log, and spdlog's registry, default logger and thread pool are not used. So two runtimes in
// one process share nothing.
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

// The handler and the clock that a message comes from. Both may be "".
struct LogSource {
  std::string handler, clock;
};

enum class LogFormat { text, json };

struct LogSettings {
  // For a terminal: gets a line without its line end. By default the runtime's own messages are shown from warnings on,
  // those of handlers from info on. A sentence that handlers of several streams say takes two lines (line_fold.h), but
  // not as JSON.
  std::function<void(const std::string& line)> on_line;
  LogLevel line_level = LogLevel::warning, line_level_of_handlers = LogLevel::info;
  LogFormat line_format = LogFormat::text;

  std::string file; // "": none. It grows to file_bytes_max and becomes NAME.1.EXT, which becomes NAME.2.EXT, …
  LogLevel file_level = LogLevel::info;
  LogFormat file_format = LogFormat::text;
  size_t file_bytes_max = size_t{10} << 20;
  size_t files_max = 4; // older files that are kept

  std::function<void(const LogRecord&)> on_record; // for an application
  LogLevel record_level = LogLevel::info;

  size_t places = 512; // entries in the queue, 1 KiB each
};

class Log {
 public:
  // Opens the file and starts the thread. Throws Failure (MR0111) if the file cannot be written. All functions of the
  // settings are called by that thread, one at a time; what they throw is dropped.
  explicit Log(LogSettings settings);
  ~Log(); // writes all queued entries first
  Log(const Log&) = delete;
  Log& operator=(const Log&) = delete;

  // True if any output takes messages of this level.
  bool takes(LogLevel level) const noexcept { return level >= least_; }
  // The source stays valid as long as the log. Takes a lock: not for the hot path.
  const LogSource& source(const std::string& handler = "", const std::string& clock = "");

  struct Context {
    uint64_t tick = LogRecord::kNoTick;
    uint32_t stream = LogRecord::kNoStream;
    int code = 0;            // the error or warning code, such as 602
    bool by_handler = false; // the handler's own words, not the runtime's words about it
    bool on_terminal = true; // false: the terminal has shown it or will show it by other means
    bool as_is = false;      // on a terminal only the text is shown: it continues the line before
  };
  // Any thread. The text is made printable and cut to 1000 bytes. If the queue is full, the entry is counted and
  // dropped.
  void say(LogLevel level, const LogSource& source, std::string_view text, const Context& context) noexcept;
  void say(LogLevel level, const LogSource& source, std::string_view text) noexcept { say(level, source, text, {}); }
  // Logs a line in the terminal's form, "warning MR0603: nothing has moved". A line of any other form continues the
  // line before.
  void log_line(std::string_view line) noexcept;

  // Waits until everything said so far is written, at most `at_most_ns`. True: it is written. May be called while the
  // process crashes, also from a signal handler: it allocates nothing and takes no lock.
  bool flush(int64_t at_most_ns) noexcept;
  // True once an output has failed, such as the file on a full disk. Any thread.
  bool has_failed() const noexcept;
  // Entries that found the queue full.
  uint64_t lost() const noexcept { return queue_.lost(); }

 private:
  class Writer;
  LogLevel least_;
  LogQueue queue_;
  std::unique_ptr<Writer> writer_;
};

} // namespace millrace
