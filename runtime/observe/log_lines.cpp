// Formats log records as lines; see log_lines.h.
#include "observe/log_lines.h"

#include <fmt/format.h>

#include <ctime>
#include <nlohmann/json.hpp>

namespace millrace {

namespace {

// ISO 8601, UTC, to the microsecond: sorts as text.
std::string time_text(int64_t time_ns) {
  const auto seconds = static_cast<std::time_t>(time_ns / 1'000'000'000);
  std::tm date{};
  gmtime_r(&seconds, &date);
  return fmt::format("{:04}-{:02}-{:02}T{:02}:{:02}:{:02}.{:06}Z", date.tm_year + 1900, date.tm_mon + 1, date.tm_mday,
                     date.tm_hour, date.tm_min, date.tm_sec, time_ns % 1'000'000'000 / 1000);
}

// " (clock main, tick 17, stream 2)". Stream 0 is left out: all values have it if there is only one stream.
std::string where(const LogRecord& record) {
  std::string words;
  const auto add = [&](const std::string& word) { words += (words.empty() ? "" : ", ") + word; };
  if (!record.clock.empty()) add(fmt::format("clock {}", record.clock));
  if (record.tick != LogRecord::kNoTick) add(fmt::format("tick {}", record.tick));
  if (record.stream != LogRecord::kNoStream && record.stream != 0) add(fmt::format("stream {}", record.stream));
  return words.empty() ? "" : " (" + words + ")";
}

// "warning MR0602", "info video", "info"
std::string subject(const LogRecord& record) {
  const std::string_view word = record.code.empty() ? record.handler : record.code;
  return fmt::format("{}{}{}", name_of(record.level), word.empty() ? "" : " ", word);
}

} // namespace

const char* name_of(LogLevel level) {
  switch (level) {
    case LogLevel::debug: return "debug";
    case LogLevel::info: return "info";
    case LogLevel::warning: return "warning";
    case LogLevel::error: return "error";
  }
  return "error";
}

std::string terminal_line(const LogRecord& record) { return subject(record) + ": " + std::string(record.text); }

std::string text_line(const LogRecord& record) {
  return fmt::format("{} {}{}: {}", time_text(record.time_ns), subject(record), where(record), record.text);
}

std::string json_line(const LogRecord& record) {
  nlohmann::ordered_json json = {{"time", time_text(record.time_ns)}, {"level", name_of(record.level)}};
  if (!record.code.empty()) json["code"] = record.code;
  if (!record.handler.empty()) json["handler"] = record.handler;
  if (!record.clock.empty()) json["clock"] = record.clock;
  if (record.tick != LogRecord::kNoTick) json["tick"] = record.tick;
  if (record.stream != LogRecord::kNoStream) json["stream"] = record.stream;
  json["text"] = record.text;
  return json.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
}

} // namespace millrace
