// The log of a runtime: what reaches whom, in which form, and what becomes of what does not fit.
#include "observe/log.h"

#include <doctest/doctest.h>

#include <atomic>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <mutex>
#include <nlohmann/json.hpp>
#include <regex>
#include <sstream>
#include <thread>

#include "observe/error.h"
#include "observe/log_lines.h"

using namespace millrace;
namespace fs = std::filesystem;

namespace {

constexpr int64_t kSecond = 1'000'000'000;

class Folder {
 public:
  Folder() {
    std::string name = (fs::temp_directory_path() / "millrace-log-XXXXXX").string();
    REQUIRE(mkdtemp(name.data()) != nullptr);
    path_ = name;
  }
  ~Folder() { fs::remove_all(path_); }
  std::string operator/(const std::string& name) const { return (path_ / name).string(); }

 private:
  fs::path path_;
};

std::vector<std::string> lines_of(const std::string& path) {
  std::ifstream file(path);
  std::vector<std::string> lines;
  for (std::string line; std::getline(file, line);) lines.push_back(line);
  return lines;
}

// The lines that a terminal shows. Read after a flush.
struct Terminal {
  std::vector<std::string> lines;
  LogSettings settings() {
    LogSettings settings;
    settings.on_line = [this](const std::string& line) { lines.push_back(line); };
    return settings;
  }
};

LogRecord full_record() {
  LogRecord record;
  record.level = LogLevel::warning;
  record.time_ns = 1'714'564'800'123'456'789; // 2024-05-01T12:00:00
  record.code = "MR0602";
  record.handler = "blur";
  record.clock = "main";
  record.tick = 17;
  record.stream = 2;
  record.text = "takes \"long\"";
  return record;
}

// A function of an application that lets nothing through until it is told to.
class Gate {
 public:
  void pass() {
    waiting_.store(true);
    waiting_.notify_all();
    open_.wait(false);
  }
  void await_somebody() { waiting_.wait(false); }
  void open() {
    open_.store(true);
    open_.notify_all();
  }

 private:
  std::atomic<bool> waiting_{false}, open_{false};
};

} // namespace

TEST_CASE("a sentence of all streams takes two lines on a terminal, and the file and a program have each of them") {
  const Folder folder;
  for (const LogFormat format : {LogFormat::text, LogFormat::json}) {
    Terminal terminal;
    LogSettings settings = terminal.settings();
    settings.line_format = format;
    settings.file = folder / (format == LogFormat::json ? "of_json.log" : "of_text.log");
    size_t records = 0;
    settings.on_record = [&](const LogRecord&) { ++records; };
    Log log(settings);
    for (int stream = 0; stream < 8; ++stream)
      log.say(LogLevel::warning, log.source("video@s" + std::to_string(stream), "s"), "no sound", {.by_handler = true});
    REQUIRE(log.flush(60'000'000'000));
    CHECK(records == 8);
    CHECK(lines_of(settings.file).size() == 8);
    if (format == LogFormat::json) {
      CHECK(terminal.lines.size() == 8);
    } else {
      CHECK(terminal.lines ==
            std::vector<std::string>{"warning video@s0: no sound", "warning video@s1 and 6 others: no sound"});
    }
  }
}

TEST_CASE("a record is written for a terminal, a reader and a program, and what it lacks is left out") {
  const LogRecord record = full_record();
  CHECK(terminal_line(record) == "warning MR0602: takes \"long\"");
  CHECK(text_line(record) ==
        "2024-05-01T12:00:00.123456Z warning MR0602 (clock main, tick 17, stream 2): takes \"long\"");
  CHECK(json_line(record) ==
        R"({"time":"2024-05-01T12:00:00.123456Z","level":"warning","code":"MR0602","handler":"blur","clock":"main",)"
        R"("tick":17,"stream":2,"text":"takes \"long\""})");
  LogRecord bare;
  bare.text = "it begins";
  CHECK(terminal_line(bare) == "info: it begins");
  CHECK(text_line(bare) == "1970-01-01T00:00:00.000000Z info: it begins");
  CHECK(json_line(bare) == R"({"time":"1970-01-01T00:00:00.000000Z","level":"info","text":"it begins"})");
  bare.handler = "video";
  CHECK(terminal_line(bare) == "info video: it begins");
}

TEST_CASE("each taker has a level of its own, and what nobody takes is not queued") {
  Folder folder;
  Terminal terminal;
  std::vector<std::string> records;
  LogSettings settings = terminal.settings();
  settings.file = folder / "run.log";
  settings.file_level = LogLevel::error;
  settings.on_record = [&](const LogRecord& record) { records.emplace_back(record.text); };
  settings.record_level = LogLevel::info;
  Log log(settings);
  const LogSource& video = log.source("video", "main");
  const char* const words[] = {"debug", "info", "warning", "error"};
  for (const bool by_handler : {false, true})
    for (uint32_t level = 0; level < 4; ++level) {
      Log::Context context;
      context.by_handler = by_handler;
      log.say(static_cast<LogLevel>(level), video, words[level], context);
    }
  REQUIRE(log.flush(10 * kSecond));
  CHECK(terminal.lines == std::vector<std::string>{"warning video: warning", "error video: error", "info video: info",
                                                   "warning video: warning", "error video: error"});
  CHECK(records == std::vector<std::string>{"info", "warning", "error", "info", "warning", "error"});
  CHECK(lines_of(folder / "run.log").size() == 2);
  CHECK_FALSE(log.takes(LogLevel::debug));
  CHECK(log.takes(LogLevel::info));
}

TEST_CASE("a line that terminals know becomes a record, and another one continues it") {
  Terminal terminal;
  std::vector<nlohmann::json> records;
  LogSettings settings = terminal.settings();
  settings.on_record = [&](const LogRecord& record) { records.push_back(nlohmann::json::parse(json_line(record))); };
  Log log(settings);
  const std::vector<std::string> said = {"warning MR0603: nothing has moved for 2.0 s",
                                         "  sink waits for video (tick 3)", "warning: a change was refused: no",
                                         "warning blur and 1 more run on streams: x"};
  for (const std::string& line : said) log.log_line(line);
  REQUIRE(log.flush(10 * kSecond));
  CHECK(terminal.lines == said);
  REQUIRE(records.size() == 4);
  CHECK(records[0]["code"] == "MR0603");
  CHECK(records[0]["text"] == "nothing has moved for 2.0 s");
  CHECK(records[2]["text"] == "a change was refused: no");
  for (const auto& record : records) CHECK(record["level"] == "warning");
}

TEST_CASE("a file that is full becomes the first of the older ones, of which so many are kept, and nothing is torn") {
  Folder folder;
  LogSettings settings;
  settings.file = folder / "run.log";
  settings.file_format = LogFormat::json;
  settings.file_bytes_max = 2'000;
  settings.files_max = 2;
  constexpr int kSaid = 200;
  {
    Log log(settings);
    for (int n = 0; n < kSaid; ++n) log.say(LogLevel::info, log.source(), "sentence " + std::to_string(n));
  }
  CHECK_FALSE(fs::exists(folder / "run.3.log"));
  std::vector<std::string> texts;
  for (const char* name : {"run.2.log", "run.1.log", "run.log"}) { // the oldest first
    CHECK(fs::file_size(folder / name) <= settings.file_bytes_max);
    for (const std::string& line : lines_of(folder / name)) texts.push_back(nlohmann::json::parse(line)["text"]);
  }
  REQUIRE(texts.size() > 10);
  for (size_t i = 0; i < texts.size(); ++i)
    CHECK(texts[i] == "sentence " + std::to_string(kSaid - texts.size() + i)); // the last ones, without a gap
}

TEST_CASE("what finds the queue full is left out, counted and told, and nobody waits for it") {
  Gate gate;
  std::vector<std::string> texts;
  LogSettings settings;
  settings.places = 8;
  settings.on_record = [&](const LogRecord& record) {
    texts.emplace_back(record.text);
    gate.pass();
  };
  {
    Log log(settings);
    log.say(LogLevel::info, log.source(), "0");
    gate.await_somebody(); // the first place is in use until the application returns
    for (int n = 1; n < 20; ++n) log.say(LogLevel::info, log.source(), std::to_string(n));
    CHECK(log.lost() == 12);
    CHECK_FALSE(log.flush(1'000'000)); // it does not wait for ever
    gate.open();
  }
  CHECK(texts ==
        std::vector<std::string>{"0", "1", "2", "3", "4", "5", "6", "7",
                                 "12 sentences are not in the log: they came faster than it could be written"});
}

TEST_CASE("what one thread says comes in the order in which it said it, and nothing twice") {
  constexpr int kThreads = 4, kEach = 20'000;
  std::map<std::string, std::vector<int>> heard;
  LogSettings settings;
  settings.places = 64; // small, so that it runs full
  settings.on_record = [&](const LogRecord& record) {
    if (!record.handler.empty()) heard[std::string(record.handler)].push_back(std::stoi(std::string(record.text)));
  };
  uint64_t lost = 0;
  {
    Log log(settings);
    std::vector<std::thread> threads;
    for (int t = 0; t < kThreads; ++t)
      threads.emplace_back([&, t] {
        const LogSource& source = log.source("h" + std::to_string(t));
        for (int n = 0; n < kEach; ++n) log.say(LogLevel::info, source, std::to_string(n));
      });
    for (std::thread& thread : threads) thread.join();
    lost = log.lost();
  }
  uint64_t count = 0;
  for (const auto& [handler, numbers] : heard) {
    CAPTURE(handler);
    count += numbers.size();
    for (size_t i = 1; i < numbers.size(); ++i) REQUIRE(numbers[i - 1] < numbers[i]);
  }
  CHECK(count + lost == kThreads * kEach);
}

TEST_CASE("two logs do not mix") {
  Folder folder;
  Terminal one, other;
  LogSettings first = one.settings(), second = other.settings();
  first.file = folder / "first.log";
  second.file = folder / "second.log";
  second.line_level = LogLevel::error;
  {
    Log a(first), b(second);
    for (int n = 0; n < 50; ++n) {
      a.say(LogLevel::warning, a.source(), "of the first");
      b.say(LogLevel::warning, b.source(), "of the second");
    }
  }
  CHECK(one.lines == std::vector<std::string>(50, "warning: of the first"));
  CHECK(other.lines.empty());
  for (const auto& [name, words] : {std::pair{"first.log", "of the first"}, std::pair{"second.log", "of the second"}}) {
    const std::vector<std::string> lines = lines_of(folder / name);
    CHECK(lines.size() == 50);
    for (const std::string& line : lines) CHECK(line.ends_with(words));
  }
}

TEST_CASE("what a handler says cannot move the cursor, look like an error of ours, or fill a terminal") {
  Terminal terminal;
  Log log(terminal.settings());
  const LogSource& video = log.source("video");
  log.say(LogLevel::warning, video, "red \x1b[31m\nerror MR0000: forged\r\xff");
  log.say(LogLevel::warning, video, std::string(10'000'000, 'x'));
  log.say(LogLevel::warning, video, std::string(10'000'000, '\x1b'));
  REQUIRE(log.flush(10 * kSecond));
  REQUIRE(terminal.lines.size() == 3);
  CHECK(terminal.lines[0] == "warning video: red \\x1b[31m\n    error MR0000: forged\\x0d\\xff");
  for (const std::string& line : terminal.lines) {
    CHECK(line.size() <= LogEntry::kTextMax + 20);
    CHECK(line.find_first_of("\x1b\r\xff") == std::string::npos);
    CHECK(line.find("\nerror") == std::string::npos);
  }
  for (size_t cut : {1, 2}) CHECK(terminal.lines[cut].ends_with("(10000000 bytes in all)"));
}

TEST_CASE("a function that throws loses its record and no other, and that is told once") {
  Terminal terminal;
  std::vector<std::string> texts;
  LogSettings settings = terminal.settings();
  settings.on_record = [&](const LogRecord& record) {
    if (record.text == "a") throw std::runtime_error("the application's own");
    if (record.text == "b") throw 1;
    texts.emplace_back(record.text);
  };
  Log log(settings);
  for (const char* text : {"a", "b", "c"}) log.say(LogLevel::warning, log.source(), text);
  REQUIRE(log.flush(10 * kSecond));
  CHECK(texts == std::vector<std::string>{"c"});
  CHECK(terminal.lines == std::vector<std::string>{"warning: a",
                                                   "warning: the log is not complete: the application's own",
                                                   "warning: b", "warning: c"});
}

TEST_CASE("a file that cannot be opened is refused, and a disk that becomes full is told once") {
  Folder folder;
  for (const std::string& path : {folder / "no/such/run.log", folder / ""}) {
    LogSettings settings;
    settings.file = path;
    int code = 0;
    try {
      Log log(settings);
    } catch (const Failure& refused) {
      code = refused.error().code;
    }
    CHECK(code == 111);
  }
  Terminal terminal;
  LogSettings settings = terminal.settings();
  settings.file = "/dev/full";
  Log log(settings);
  for (int n = 0; n < 3; ++n) {
    log.say(LogLevel::info, log.source(), "words");
    REQUIRE(log.flush(10 * kSecond));
  }
  REQUIRE(terminal.lines.size() == 1);
  CHECK(terminal.lines[0].starts_with("warning: the log is not complete: "));
}

TEST_CASE("what was said before flush() is in the file when it returns") {
  Folder folder;
  LogSettings settings;
  settings.file = folder / "run.log";
  Log log(settings);
  for (size_t n = 1; n <= 20; ++n) {
    log.say(LogLevel::info, log.source(), "words");
    REQUIRE(log.flush(10 * kSecond));
    CHECK(lines_of(settings.file).size() == n);
  }
}
