// The log's writer: its thread, and the sinks of its logger; see log.h.
#include "observe/log.h"

#include <semaphore.h>
#include <spdlog/logger.h>
#include <spdlog/sinks/base_sink.h>
#include <spdlog/sinks/rotating_file_sink.h>

#include <algorithm>
#include <charconv>
#include <chrono>
#include <cstring>
#include <ctime>
#include <deque>
#include <filesystem>
#include <mutex>
#include <thread>

#include "observe/error.h"
#include "observe/error_codes.h"
#include "observe/line_fold.h"
#include "observe/log_lines.h"
#include "observe/printable.h"
#include "observe/secrets.h"
#include "observe/start_thread.h"

namespace millrace {

namespace {

// Pauses between two looks at the queue: the shortest, after an entry was found, and the longest, after a long silence.
constexpr int64_t kNapLeastNs = 1'000'000, kNapMostNs = 100'000'000;
// flush() checks this often whether everything is written.
constexpr long kFlushLookNs = 50'000;
// Lost entries are reported at most this often.
constexpr int64_t kLossToldEveryNs = 1'000'000'000;

using SinkLock = spdlog::details::null_mutex; // one thread writes

spdlog::level::level_enum level_of(LogLevel level) {
  switch (level) {
    case LogLevel::debug: return spdlog::level::debug;
    case LogLevel::info: return spdlog::level::info;
    case LogLevel::warning: return spdlog::level::warn;
    case LogLevel::error: return spdlog::level::err;
  }
  return spdlog::level::err;
}

int64_t wall_ns() {
  timespec now{};
  clock_gettime(CLOCK_REALTIME, &now);
  return int64_t{now.tv_sec} * 1'000'000'000 + now.tv_nsec;
}

// The record that is being written. Messages of spdlog have no fields, so its sinks look here.
struct Current {
  LogRecord record;
  std::string code;
  const LogEntry* entry = nullptr;
};

class LineFormatter final : public spdlog::formatter {
 public:
  LineFormatter(const Current& current, LogFormat format) : current_(current), format_(format) {}
  void format(const spdlog::details::log_msg&, spdlog::memory_buf_t& out) override {
    const std::string line = format_ == LogFormat::json ? json_line(current_.record) : text_line(current_.record);
    out.append(line.data(), line.data() + line.size());
    out.push_back('\n');
  }
  std::unique_ptr<spdlog::formatter> clone() const override {
    return std::make_unique<LineFormatter>(current_, format_);
  }

 private:
  const Current& current_;
  const LogFormat format_;
};

// Turns an exception of any other type into one of spdlog's, which catches only std::exception.
template <class Function, class Argument>
void call(const Function& function, const Argument& argument) {
  try {
    function(argument);
  } catch (const std::exception&) {
    throw;
  } catch (...) {
    throw spdlog::spdlog_ex("a function that takes it failed");
  }
}

class TerminalSink final : public spdlog::sinks::base_sink<SinkLock> {
 public:
  TerminalSink(const Current& current, const LogSettings& settings) : current_(current), settings_(settings) {}

  // Shows sentences of streams that were held back to be shown together; `all`: also those that are not due yet.
  void show_held(int64_t now_ns, bool all) {
    fold_.look(now_ns, all, [this](const LogRecord& record) { call(settings_.on_line, terminal_line(record)); });
  }

 private:
  void sink_it_(const spdlog::details::log_msg&) override {
    const LogRecord& record = current_.record;
    const LogLevel least = current_.entry->by_handler ? settings_.line_level_of_handlers : settings_.line_level;
    if (!current_.entry->on_terminal || record.level < least) return;
    const bool json = settings_.line_format == LogFormat::json;
    if (!json && current_.entry->by_handler && !fold_.shows(record)) return;
    call(settings_.on_line, json                    ? json_line(record)
                            : current_.entry->as_is ? std::string(record.text)
                                                    : terminal_line(record));
  }
  void flush_() override {}

  const Current& current_;
  const LogSettings& settings_;
  LineFold fold_;
};

class RecordSink final : public spdlog::sinks::base_sink<SinkLock> {
 public:
  RecordSink(const Current& current, const LogSettings& settings) : current_(current), settings_(settings) {}

 private:
  void sink_it_(const spdlog::details::log_msg&) override { call(settings_.on_record, current_.record); }
  void flush_() override {}

  const Current& current_;
  const LogSettings& settings_;
};

LogLevel least_of(const LogSettings& settings) {
  LogLevel least{static_cast<uint32_t>(LogLevel::error) + 1}; // above every level: no output listens
  if (settings.on_line) least = std::min({least, settings.line_level, settings.line_level_of_handlers});
  if (!settings.file.empty()) least = std::min(least, settings.file_level);
  if (settings.on_record) least = std::min(least, settings.record_level);
  return least;
}

// Nearly all texts are plain ASCII without an address. Any other text has to be made printable.
bool is_plain(std::string_view text) {
  return text.size() <= LogEntry::kTextMax && !may_have_secrets(text) &&
         std::all_of(text.begin(), text.end(), [](char c) { return c >= ' ' && c <= '~'; });
}

// The text in printable form, not longer than an entry holds.
std::string fitting(std::string_view text) {
  constexpr size_t kForTheCount = 40; // " … (N bytes in all)"
  constexpr size_t kLargest = 5;      // bytes that one byte may become
  std::string fit = printable(text, LogEntry::kTextMax - kForTheCount);
  if (fit.size() > LogEntry::kTextMax) fit = printable(text, (LogEntry::kTextMax - kForTheCount) / kLargest);
  return fit;
}

// The number after "MR"; 0 if the word is no code.
int code_in(std::string_view word) {
  int code = 0;
  if (word.size() != 6 || word.substr(0, 2) != "MR") return 0;
  const auto [end, failed] = std::from_chars(word.data() + 2, word.data() + word.size(), code);
  return failed == std::errc{} && end == word.data() + word.size() ? code : 0;
}

} // namespace

class Log::Writer {
 public:
  Writer(LogSettings settings, LogQueue& queue) : settings_(std::move(settings)), queue_(queue) {
    make_logger();
    sem_init(&wake_, 0, 0);
    thread_ = start_thread("the thread that writes the log", [this] { loop(); });
  }

  ~Writer() {
    stopping_.store(true, std::memory_order_release);
    wake();
    thread_.join();
    sem_destroy(&wake_);
  }

  const LogSource& source(const std::string& handler, const std::string& clock) {
    const std::lock_guard lock(sources_mutex_);
    for (const LogSource& known : sources_)
      if (known.handler == handler && known.clock == clock) return known;
    return sources_.emplace_back(LogSource{handler, clock});
  }

  const LogSource& nobody() const { return nobody_; }
  void wake() { sem_post(&wake_); }
  bool has_failed() const { return is_failure_told_.load(); }
  // The number of a flush, which also shows what is held back.
  uint64_t want_flush() { return flushes_wanted_.fetch_add(1, std::memory_order_acq_rel) + 1; }
  bool has_flushed(uint64_t number, uint64_t count) const {
    return written_.load(std::memory_order_acquire) >= count && flushes_done_.load(std::memory_order_acquire) >= number;
  }

 private:
  void make_logger() {
    std::vector<spdlog::sink_ptr> sinks;
    if (settings_.on_line) sinks.push_back(terminal_ = std::make_shared<TerminalSink>(current_, settings_));
    if (settings_.on_record) {
      sinks.push_back(std::make_shared<RecordSink>(current_, settings_));
      sinks.back()->set_level(level_of(settings_.record_level));
    }
    if (!settings_.file.empty()) sinks.push_back(make_file());
    logger_ = std::make_unique<spdlog::logger>("millrace", sinks.begin(), sinks.end());
    logger_->set_level(spdlog::level::trace);
    logger_->set_error_handler([this](const std::string& why) { tell_failure(why); });
  }

  // spdlog would create missing folders. Here a missing folder is an error, as for other files: it may be a typing
  // mistake.
  spdlog::sink_ptr make_file() const {
    const std::filesystem::path folder = std::filesystem::path(settings_.file).parent_path();
    std::error_code ignored;
    if (!folder.empty() && !std::filesystem::is_directory(folder, ignored))
      throw Failure(code::unwritable_file, "cannot write the log " + settings_.file + ": its folder is not there");
    try {
      auto sink = std::make_shared<spdlog::sinks::rotating_file_sink<SinkLock>>(
          settings_.file, settings_.file_bytes_max, settings_.files_max);
      sink->set_level(level_of(settings_.file_level));
      sink->set_formatter(std::make_unique<LineFormatter>(current_, settings_.file_format));
      return sink;
    } catch (const spdlog::spdlog_ex& refused) {
      throw Failure(code::unwritable_file, "cannot write the log " + settings_.file + ": " + refused.what());
    }
  }

  void loop() {
    int64_t nap = kNapLeastNs;
    for (;;) {
      const bool last = stopping_.load(std::memory_order_acquire); // read first: then nothing is said after the look
      const size_t taken = write_queued(last);
      if (last && taken == 0) return;
      nap = taken > 0 ? kNapLeastNs : std::min(2 * nap, kNapMostNs);
      if (taken < queue_.size() / 4 && !last) sleep(nap);
    }
  }

  void sleep(int64_t ns) {
    timespec until{};
    clock_gettime(CLOCK_MONOTONIC, &until);
    const int64_t at = until.tv_nsec + ns;
    until.tv_sec += at / 1'000'000'000;
    until.tv_nsec = at % 1'000'000'000;
    if (sem_clockwait(&wake_, CLOCK_MONOTONIC, &until) != 0) return;
    while (sem_trywait(&wake_) == 0) {
    } // several wake-ups mean one look
  }

  // Writes at most a full queue, so that threads that keep the queue full do not keep the file from being flushed.
  size_t write_queued(bool last) {
    size_t taken = 0;
    const uint64_t flushes = flushes_wanted_.load(std::memory_order_acquire); // read first, as `last`
    while (taken < queue_.size() && queue_.take([this](const LogEntry& entry) { write(entry); })) ++taken;
    if (log_loss(last) || taken > 0) logger_->flush();
    show_held(last || flushes != flushes_done_.load(std::memory_order_relaxed));
    written_.store(queue_.taken(), std::memory_order_release);
    flushes_done_.store(flushes, std::memory_order_release);
    return taken;
  }

  void show_held(bool all) {
    if (!terminal_) return;
    try {
      terminal_->show_held(wall_ns(), all);
    } catch (const std::exception& error) {
      tell_failure(error.what());
    }
  }

  void write(const LogEntry& entry) {
    current_.code = entry.code ? format_code(entry.code) : "";
    current_.entry = &entry;
    current_.record = {entry.level,         entry.time_ns, current_.code, entry.source->handler,
                       entry.source->clock, entry.tick,    entry.stream,  {entry.text, entry.size}};
    const std::chrono::nanoseconds since_1970(entry.time_ns);
    const spdlog::log_clock::time_point time(std::chrono::duration_cast<spdlog::log_clock::duration>(since_1970));
    logger_->log(time, {}, level_of(entry.level), spdlog::string_view_t(entry.text, entry.size));
  }

  bool log_loss(bool last) {
    const uint64_t lost = queue_.lost();
    const int64_t now = wall_ns();
    if (lost == lost_told_ || (!last && now - loss_told_ns_ < kLossToldEveryNs)) return false;
    const std::string words =
        std::to_string(lost - lost_told_) + " sentences are not in the log: they came faster than it could be written";
    lost_told_ = lost;
    loss_told_ns_ = now;
    LogEntry entry;
    entry.source = &nobody_;
    entry.time_ns = now;
    entry.level = LogLevel::warning;
    entry.size = static_cast<uint16_t>(words.copy(entry.text, LogEntry::kTextMax));
    write(entry);
    return true;
  }

  // Reported once: a full disk would otherwise give an error for every entry.
  void tell_failure(const std::string& why) {
    if (is_failure_told_.exchange(true) || !settings_.on_line) return;
    try {
      settings_.on_line("warning: the log is not complete: " + printable(why));
    } catch (...) { // on_line may be the function that failed
    }
  }

  const LogSettings settings_;
  LogQueue& queue_;
  Current current_;
  std::unique_ptr<spdlog::logger> logger_;
  std::shared_ptr<TerminalSink> terminal_; // null: nobody takes lines
  std::mutex sources_mutex_;
  std::deque<LogSource> sources_;
  const LogSource nobody_;
  uint64_t lost_told_ = 0;
  int64_t loss_told_ns_ = 0;
  std::atomic<bool> is_failure_told_{false};
  std::atomic<uint64_t> written_{0}, flushes_wanted_{0}, flushes_done_{0};
  std::atomic<bool> stopping_{false};
  sem_t wake_{};
  std::thread thread_;
};

Log::Log(LogSettings settings)
    : least_(least_of(settings)),
      queue_(settings.places),
      writer_(std::make_unique<Writer>(std::move(settings), queue_)) {}

Log::~Log() = default;

const LogSource& Log::source(const std::string& handler, const std::string& clock) {
  return writer_->source(handler, clock);
}

void Log::say(LogLevel level, const LogSource& source, std::string_view text, const Context& context) noexcept {
  if (!takes(level)) return;
  std::string fit;
  if (!is_plain(text)) {
    try {
      fit = fitting(text);
      text = fit;
    } catch (const std::bad_alloc&) {
      text = "(there is no memory left for what was said)";
    }
  }
  queue_.push([&](LogEntry& entry) {
    entry.source = &source;
    entry.time_ns = wall_ns();
    entry.tick = context.tick;
    entry.stream = context.stream;
    entry.level = level;
    entry.code = static_cast<uint16_t>(context.code);
    entry.by_handler = context.by_handler;
    entry.on_terminal = context.on_terminal;
    entry.as_is = context.as_is;
    entry.size = static_cast<uint16_t>(std::min(text.size(), LogEntry::kTextMax));
    std::memcpy(entry.text, text.data(), entry.size);
  });
}

void Log::log_line(std::string_view line) noexcept {
  const LogSource& nobody = writer_->nobody();
  for (const LogLevel level : {LogLevel::debug, LogLevel::info, LogLevel::warning, LogLevel::error}) {
    const std::string_view word = name_of(level);
    if (line.substr(0, word.size()) != word) continue;
    const std::string_view rest = line.substr(word.size());
    const size_t colon = rest.find(": ");
    if (colon == std::string_view::npos) break;
    const std::string_view subject = rest.substr(0, colon);
    Context context;
    if (!subject.empty()) context.code = code_in(subject.substr(1));
    if (!subject.empty() && context.code == 0) break;
    return say(level, nobody, rest.substr(colon + 2), context);
  }
  Context context;
  context.as_is = true;
  say(LogLevel::warning, nobody, line, context);
}

bool Log::has_failed() const noexcept { return writer_->has_failed(); }

bool Log::flush(int64_t at_most_ns) noexcept {
  const uint64_t until = queue_.pushed();
  const uint64_t number = writer_->want_flush();
  writer_->wake();
  const timespec pause{0, kFlushLookNs};
  for (int64_t waited = 0; !writer_->has_flushed(number, until); waited += kFlushLookNs) {
    if (waited >= at_most_ns) return false;
    nanosleep(&pause, nullptr);
  }
  return true;
}

} // namespace millrace
