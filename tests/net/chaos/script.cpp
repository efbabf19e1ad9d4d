// Reads scripts of faults, tells mistakes in them, and writes faults as text.
#include "script.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <span>

#include "millrace/nearest.h"

namespace millrace::chaos {

namespace {

enum class Argument : uint8_t { none, time, rate, range, share, size };

struct Entry {
  std::string_view name, example;
  Argument argument;
  bool has_direction, has_connection, lasts;
  std::string_view meaning;
};

// One entry for each Kind, in its order.
constexpr std::array<Entry, kKinds> kEntries{{
    {"latency", "20ms", Argument::time, true, true, true, "bytes arrive that much later"},
    {"jitter", "5ms", Argument::time, true, true, true, "the latency differs by up to that much; order is kept"},
    {"bandwidth", "10MB/s", Argument::rate, true, true, true, "no more than so many bytes pass in a second"},
    {"slice", "1..7", Argument::range, true, true, true, "bytes are written in slices of these lengths"},
    {"flip", "1/1000000", Argument::share, true, true, true, "one byte in so many has one of its bits flipped"},
    {"stall", "", Argument::none, true, true, true, "no byte passes, and none is lost (also: pause)"},
    {"half-open", "", Argument::none, true, true, true, "bytes vanish while the connection stays"},
    {"cut", "", Argument::none, true, true, false, "what waits is written, then the connection ends in order"},
    {"reset", "", Argument::none, true, true, false, "the connection is reset; up: for the server, down: the dialler"},
    {"refuse", "", Argument::none, false, false, true, "new connections are refused"},
    {"blackhole", "", Argument::none, false, true, true, "new connections are accepted, and no byte of them passes"},
    {"limit", "100KB", Argument::size, true, true, true, "the connection is cut after so many bytes of a direction"},
    {"clear", "", Argument::none, true, true, false, "ends all conditions of these directions and connections"},
}};

struct Unit {
  std::string_view name;
  double factor;
};

constexpr Unit kTimeUnits[] = {{"ns", 1},  {"us", 1e3}, {"µs", 1e3},  {"ms", 1e6},
                               {"s", 1e9}, {"m", 60e9}, {"h", 3600e9}};
constexpr Unit kSizeUnits[] = {{"", 1},     {"B", 1},        {"KB", 1e3},     {"kB", 1e3},    {"MB", 1e6},
                               {"GB", 1e9}, {"KiB", 0x1p10}, {"MiB", 0x1p20}, {"GiB", 0x1p30}};
// Larger numbers are typing errors: a year, and a pebibyte.
constexpr double kTimeMaxNs = 365.0 * 86400e9, kSizeMax = 0x1p50;

std::optional<int64_t> read_quantity(std::string_view text, std::span<const Unit> units, double most) {
  double number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number, std::chars_format::fixed);
  if (error != std::errc() || text.front() == '-' || !std::isfinite(number)) return std::nullopt;
  const std::string_view unit = text.substr(static_cast<size_t>(end - text.data()));
  for (const Unit& one : units)
    if (one.name == unit && number * one.factor <= most) return std::llround(number * one.factor);
  return std::nullopt;
}

std::optional<int64_t> read_size(std::string_view text) { return read_quantity(text, kSizeUnits, kSizeMax); }

std::string quoted(std::string_view text) { return "'" + std::string(text) + "'"; }

bool takes(std::string_view& text, std::string_view beginning) {
  if (!text.starts_with(beginning)) return false;
  text.remove_prefix(beginning.size());
  return true;
}

// Reads the words of one statement; a mistake leaves it as an exception, which read_script() turns into a value.
class Reader {
 public:
  Reader(std::string_view text, size_t line) : line_(line) {
    for (size_t at = 0; (at = text.find_first_not_of(" \t\r", at)) != std::string_view::npos;) {
      const size_t end = std::min(text.find_first_of(" \t\r", at), text.size());
      words_.push_back(text.substr(at, end - at));
      at = end;
    }
  }

  bool is_empty() const { return words_.empty(); }

  Statement read() {
    Statement statement;
    read_when(statement);
    read_fault(statement.fault);
    while (!ended()) read_suffix(statement);
    return statement;
  }

 private:
  bool ended() const { return at_ == words_.size(); }
  std::string_view word() const { return ended() ? "" : words_[at_]; }

  [[noreturn]] void expected(const std::string& what, const std::vector<std::string>& names = {}) const {
    std::string sentence = "expected " + what + ", found ";
    sentence += ended() ? "the end of the statement" : quoted(word());
    const std::string nearest = nearest_name(word(), names);
    throw Mistake{line_, sentence + (nearest.empty() ? "" : "; the nearest word is " + quoted(nearest))};
  }

  [[noreturn]] void wrong(const std::string& sentence) const { throw Mistake{line_, sentence}; }

  int64_t read_time(const std::string& what) {
    const auto time = read_time_ns(word());
    if (!time) expected(what + " as a time such as 20ms, 1.5s or 2m");
    ++at_;
    return *time;
  }

  int64_t read_count(const std::string& what) {
    int64_t count = 0;
    const std::string_view text = word();
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), count);
    if (text.empty() || error != std::errc() || end != text.data() + text.size() || count < 1)
      expected(what + " as a whole number from 1");
    ++at_;
    return count;
  }

  void read_when(Statement& statement) {
    if (word() == "at") {
      ++at_;
      statement.at_ns = read_time("the moment");
    } else if (word() == "every") {
      ++at_;
      read_period(statement);
    }
  }

  // TIME, TIME±TIME, or the same in two words.
  void read_period(Statement& statement) {
    std::string period(word());
    const std::string_view second = at_ + 1 < words_.size() ? words_[at_ + 1] : "";
    const bool in_two = second.starts_with("±") || second.starts_with("+-");
    if (in_two) period += second;
    size_t sign = period.find("±");
    const size_t sign_size = sign == std::string::npos ? 2 : std::string_view("±").size();
    if (sign == std::string::npos) sign = period.find("+-");
    const bool spread_given = sign != std::string::npos;
    const auto every = read_time_ns(std::string_view(period).substr(0, sign));
    const auto spread = spread_given ? read_time_ns(std::string_view(period).substr(sign + sign_size)) : 0;
    if (!every || !spread) expected("a period such as 2s or 2s±500ms");
    if (*every < kPeriodLeastNs) wrong("the period " + quoted(period) + " is shorter than 1ms");
    if (*spread >= *every) wrong("the spread of " + quoted(period) + " is not shorter than its period");
    statement.every_ns = *every;
    statement.spread_ns = *spread;
    at_ += in_two ? 2 : 1;
  }

  void read_fault(Fault& fault) {
    const std::string_view name = word() == "pause" ? "stall" : word();
    const auto* const found =
        std::find_if(kEntries.begin(), kEntries.end(), [&](const Entry& e) { return e.name == name; });
    if (found == kEntries.end()) {
      std::vector<std::string> names;
      for (const Entry& entry : kEntries) names.emplace_back(entry.name);
      names.emplace_back("pause");
      std::string list;
      for (const std::string& one : names) list += (list.empty() ? "" : ", ") + one;
      const bool is_first = at_ == 0;
      if (is_first) names.insert(names.end(), {"at", "every"});
      expected((is_first ? "at, every or a fault (" : "a fault (") + list + ")", names);
    }
    ++at_;
    fault.kind = static_cast<Kind>(found - kEntries.begin());
    read_argument(*found, fault);
  }

  void read_argument(const Entry& entry, Fault& fault) {
    if (entry.argument == Argument::none) return;
    if (entry.argument == Argument::time) {
      fault.amount = read_time("the " + std::string(entry.name));
      return;
    }
    std::string_view text = word();
    std::optional<int64_t> amount;
    if (entry.argument == Argument::rate && text.ends_with("/s")) amount = read_size(text.substr(0, text.size() - 2));
    if (entry.argument == Argument::size) amount = read_size(text);
    if (entry.argument == Argument::share && takes(text, "1/")) amount = read_quantity(text, {{Unit{"", 1}}}, kSizeMax);
    if (entry.argument == Argument::range) {
      const size_t dots = text.find("..");
      amount = read_size(text.substr(0, dots));
      const auto most = dots == std::string_view::npos ? amount : read_size(text.substr(dots + 2));
      if (!most || most < amount) amount.reset();
      fault.most = most.value_or(0);
    }
    // `limit 0B` cuts before the first byte; all else needs at least one.
    if (!amount || (*amount == 0 && entry.argument != Argument::size))
      expected("the " + std::string(entry.name) + " as " + std::string(entry.example));
    fault.amount = *amount;
    ++at_;
  }

  void read_suffix(Statement& statement) {
    const Entry& entry = kEntries[static_cast<size_t>(statement.fault.kind)];
    const std::string name(entry.name);
    Scope& scope = statement.fault.scope;
    if (word() == "up" || word() == "down" || word() == "both") {
      if (!entry.has_direction) wrong(name + " concerns whole connections and takes no direction");
      scope.up = word() != "down";
      scope.down = word() != "up";
      ++at_;
    } else if (word() == "connection") {
      if (!entry.has_connection) wrong(name + " concerns all new connections and takes no 'connection'");
      ++at_;
      scope.connection = static_cast<size_t>(read_count("the connection"));
    } else if (word() == "for") {
      if (!entry.lasts) wrong(name + " lasts no time and takes no 'for'");
      ++at_;
      statement.fault.duration_ns = read_time("the duration");
    } else if (word() == "repeat") {
      if (statement.every_ns == 0) wrong("'repeat' belongs to a statement that begins with 'every'");
      ++at_;
      statement.repeat = read_count("how often");
    } else {
      expected("up, down, both, connection, for, repeat or the end of the statement",
               {"up", "down", "both", "connection", "for", "repeat"});
    }
  }

  std::vector<std::string_view> words_;
  size_t at_ = 0;
  size_t line_;
};

// The largest unit that has no fraction: 1500000 is "1500us".
std::string with_unit(int64_t amount, std::span<const Unit> units) {
  const Unit* best = &units.front();
  for (const Unit& unit : units) {
    const auto factor = static_cast<int64_t>(unit.factor);
    if (amount % factor == 0 && amount != 0 && factor > static_cast<int64_t>(best->factor)) best = &unit;
  }
  return std::to_string(amount / static_cast<int64_t>(best->factor)) + std::string(best->name);
}

} // namespace

std::optional<int64_t> read_time_ns(std::string_view text) {
  return text.empty() ? std::nullopt : read_quantity(text, kTimeUnits, kTimeMaxNs);
}

std::string_view name_of(Kind kind) { return kEntries[static_cast<size_t>(kind)].name; }

std::variant<Script, Mistake> read_script(std::string_view text) {
  Script script;
  size_t line = 1;
  try {
    while (!text.empty()) {
      const size_t end = text.find('\n');
      std::string_view rest = text.substr(0, end);
      rest = rest.substr(0, rest.find('#'));
      text = end == std::string_view::npos ? "" : text.substr(end + 1);
      while (!rest.empty()) {
        const size_t semicolon = rest.find(';');
        Reader reader(rest.substr(0, semicolon), line);
        rest = semicolon == std::string_view::npos ? "" : rest.substr(semicolon + 1);
        if (reader.is_empty()) continue;
        if (script.size() == kStatementsMax)
          return Mistake{line, "a script has at most " + std::to_string(kStatementsMax) + " statements"};
        script.push_back(reader.read());
      }
      ++line;
    }
  } catch (const Mistake& mistake) {
    return mistake;
  }
  return script;
}

std::string text_of(const Fault& fault) {
  const Entry& entry = kEntries[static_cast<size_t>(fault.kind)];
  std::string text(entry.name);
  switch (entry.argument) {
    case Argument::none: break;
    case Argument::time: text += " " + with_unit(fault.amount, std::span(kTimeUnits).first(5)); break;
    case Argument::rate: text += " " + with_unit(fault.amount, std::span(kSizeUnits).subspan(1)) + "/s"; break;
    case Argument::range: text += " " + std::to_string(fault.amount) + ".." + std::to_string(fault.most); break;
    case Argument::share: text += " 1/" + std::to_string(fault.amount); break;
    case Argument::size: text += " " + with_unit(fault.amount, std::span(kSizeUnits).subspan(1)); break;
  }
  if (!fault.scope.down) text += " up";
  if (!fault.scope.up) text += " down";
  if (fault.scope.connection != 0) text += " connection " + std::to_string(fault.scope.connection);
  if (fault.duration_ns) text += " for " + with_unit(*fault.duration_ns, std::span(kTimeUnits).first(5));
  return text;
}

std::string grammar_help() {
  std::string text =
      "A script has one statement a line; ';' separates statements too, '#' begins a comment:\n"
      "  [at TIME | every TIME[±TIME]] FAULT [up | down | both] [connection N] [for TIME] [repeat N]\n"
      "Times count from the start; a statement without one begins at once. 'repeat' ends an 'every' after N times.\n"
      "up is from the dialler to the server. A fault concerns both directions of all connections unless it says\n"
      "otherwise, and lasts until 'for' is over, the same fault comes again, or 'clear'.\n"
      "TIME is 100us, 20ms, 1.5s, 2m; sizes are 100B, 64KB, 10MB or 64KiB, 4MiB.\n"
      "Faults:\n";
  for (const Entry& entry : kEntries) {
    std::string usage = "  " + std::string(entry.name) + " " + std::string(entry.example);
    usage.resize(std::max<size_t>(usage.size() + 1, 22), ' ');
    text += usage + std::string(entry.meaning) + "\n";
  }
  return text + "Example: -e 'latency 20ms; jitter 5ms down; every 2s±1s cut repeat 10; at 5s stall up for 500ms'\n";
}

} // namespace millrace::chaos
