// Scripts as text, their schedules and the rules that they make, without sockets and without a clock.
#include <doctest/doctest.h>

#include <map>
#include <string>
#include <variant>
#include <vector>

#include "rules.h"
#include "schedule.h"
#include "script.h"
#include "tests/milliseconds.h"

namespace millrace::chaos {

namespace {

Script script_of(std::string_view text) {
  auto read = read_script(text);
  const auto* mistake = std::get_if<Mistake>(&read);
  REQUIRE_MESSAGE(mistake == nullptr, (mistake ? mistake->sentence : ""));
  return std::get<Script>(read);
}

std::string mistake_of(std::string_view text) {
  const auto read = read_script(text);
  const auto* mistake = std::get_if<Mistake>(&read);
  return mistake ? std::to_string(mistake->line) + ": " + mistake->sentence : "";
}

// Each event as "milliseconds fault".
std::vector<std::string> events_of(Schedule schedule, size_t most) {
  std::vector<std::string> events;
  while (events.size() < most) {
    const auto event = schedule.next();
    if (!event) break;
    events.push_back(std::to_string(event->at_ns / kMs) + " " + text_of(event->fault));
  }
  return events;
}

Event event_of(int64_t at_ns, std::string_view text) { return {.at_ns = at_ns, .fault = script_of(text).at(0).fault}; }

} // namespace

TEST_CASE("each fault is read and written back as it was") {
  for (const char* text :
       {"latency 20ms", "jitter 5ms down", "bandwidth 10MB/s up", "slice 1..7", "flip 1/1000000 connection 3",
        "stall for 1500ms", "half-open up for 2s", "cut", "cut down connection 2", "reset up", "refuse for 250us",
        "blackhole connection 1", "limit 100KB", "limit 4MiB", "limit 0B", "clear up connection 9"})
    CHECK(text_of(script_of(text).at(0).fault) == text);
  CHECK(text_of(script_of("pause both").at(0).fault) == "stall");
  CHECK(text_of(script_of("slice 5").at(0).fault) == "slice 5..5");
  CHECK(text_of(script_of("latency 1.5s").at(0).fault) == "latency 1500ms");
  CHECK(text_of(script_of("bandwidth 64KiB/s").at(0).fault) == "bandwidth 64KiB/s");
}

TEST_CASE("a script has a statement a line or between semicolons, and comments") {
  const Script script = script_of(
      "# a bad day\n  latency 20ms ; jitter 5ms # both\r\n\nat 1.5s cut;\nevery 2s±500ms reset up repeat 3\n");
  REQUIRE(script.size() == 4);
  CHECK(script[2].at_ns == 1500 * kMs);
  CHECK(script[3].every_ns == 2000 * kMs);
  CHECK(script[3].spread_ns == 500 * kMs);
  CHECK(script[3].repeat == 3);
  CHECK(script_of("every 2s+-500ms cut").at(0).spread_ns == 500 * kMs);
  CHECK(script_of("every 2s ±500ms cut").at(0).spread_ns == 500 * kMs);
  CHECK(script_of("every 1m cut").at(0).every_ns == 60000 * kMs);
  CHECK(script_of("").empty());
}

TEST_CASE("a mistake in a script is told with its line, what was expected and the nearest word") {
  const std::string faults =
      "a fault (latency, jitter, bandwidth, slice, flip, stall, half-open, cut, reset, refuse, blackhole, limit, "
      "clear, "
      "pause)";
  const std::vector<std::pair<std::string, std::string>> mistakes{
      {"cut\nlatncy 5ms", "2: expected at, every or " + faults + ", found 'latncy'; the nearest word is 'latency'"},
      {"att 5s cut", "1: expected at, every or " + faults + ", found 'att'; the nearest word is 'at'"},
      {"at 5s", "1: expected " + faults + ", found the end of the statement"},
      {"at noon cut", "1: expected the moment as a time such as 20ms, 1.5s or 2m, found 'noon'"},
      {"at -5s cut", "1: expected the moment as a time such as 20ms, 1.5s or 2m, found '-5s'"},
      {"at 500h cut; at 9999999h cut", "1: expected the moment as a time such as 20ms, 1.5s or 2m, found '9999999h'"},
      {"at infs cut", "1: expected the moment as a time such as 20ms, 1.5s or 2m, found 'infs'"},
      {"latency 20", "1: expected the latency as a time such as 20ms, 1.5s or 2m, found '20'"},
      {"latency", "1: expected the latency as a time such as 20ms, 1.5s or 2m, found the end of the statement"},
      {"bandwidth 10MB", "1: expected the bandwidth as 10MB/s, found '10MB'"},
      {"bandwidth 0MB/s", "1: expected the bandwidth as 10MB/s, found '0MB/s'"},
      {"slice 7..1", "1: expected the slice as 1..7, found '7..1'"},
      {"slice 0..1", "1: expected the slice as 1..7, found '0..1'"},
      {"flip 0.001", "1: expected the flip as 1/1000000, found '0.001'"},
      {"flip 1/0", "1: expected the flip as 1/1000000, found '1/0'"},
      {"limit lots", "1: expected the limit as 100KB, found 'lots'"},
      {"stall dwn",
       "1: expected up, down, both, connection, for, repeat or the end of the statement, found 'dwn'; the nearest word "
       "is 'down'"},
      {"stall connection 0", "1: expected the connection as a whole number from 1, found '0'"},
      {"stall for", "1: expected the duration as a time such as 20ms, 1.5s or 2m, found the end of the statement"},
      {"cut for 2s", "1: cut lasts no time and takes no 'for'"},
      {"refuse up", "1: refuse concerns whole connections and takes no direction"},
      {"refuse connection 2", "1: refuse concerns all new connections and takes no 'connection'"},
      {"at 5s cut repeat 2", "1: 'repeat' belongs to a statement that begins with 'every'"},
      {"every 5s±5s cut", "1: the spread of '5s±5s' is not shorter than its period"},
      {"every 10us cut", "1: the period '10us' is shorter than 1ms"},
      {"every 5s± cut", "1: expected a period such as 2s or 2s±500ms, found '5s±'"},
      {"every", "1: expected a period such as 2s or 2s±500ms, found the end of the statement"},
  };
  for (const auto& [text, told] : mistakes) CHECK(mistake_of(text) == told);
  std::string long_script;
  for (size_t n = 0; n <= kStatementsMax; ++n) long_script += "cut\n";
  CHECK(mistake_of(long_script) == "10001: a script has at most 10000 statements");
}

TEST_CASE("a schedule is in the order of times, and statements of one time in the order of the script") {
  const Script script = script_of("at 5ms cut; stall; every 2ms reset repeat 3; at 4ms clear");
  CHECK(events_of(Schedule(script, 1), 99) ==
        std::vector<std::string>{"0 stall", "2 reset", "4 reset", "4 clear", "5 cut", "6 reset"});
}

TEST_CASE("the same seed gives the same schedule, another seed another one") {
  const Script script = script_of("every 20ms±10ms cut; every 30ms±1ms reset");
  CHECK(events_of(Schedule(script, 7), 100) == events_of(Schedule(script, 7), 100));
  CHECK(events_of(Schedule(script, 7), 100) != events_of(Schedule(script, 8), 100));
  // A statement's times do not change with the statements after it.
  const auto alone = events_of(Schedule(script_of("every 20ms±10ms cut"), 7), 20);
  auto both = events_of(Schedule(script, 7), 30);
  std::erase_if(both, [](const std::string& event) { return event.ends_with("reset"); });
  REQUIRE(both.size() < alone.size());
  CHECK(std::equal(both.begin(), both.end(), alone.begin()));

  const auto drawn = [](uint64_t seed) { return events_of(Schedule::at_random(seed, 1000 * kMs), 200); };
  CHECK(drawn(3) == drawn(3));
  CHECK(drawn(3) != drawn(4));
}

TEST_CASE("distances of 'every' stay within its spread and use all of it") {
  Schedule schedule(script_of("every 20ms±10ms cut repeat 1000"), 5);
  int64_t before = 0, least = 1000 * kMs, most = 0, count = 0;
  while (const auto event = schedule.next()) {
    least = std::min(least, event->at_ns - before);
    most = std::max(most, event->at_ns - before);
    before = event->at_ns;
    ++count;
  }
  CHECK(count == 1000);
  CHECK(least >= 10 * kMs);
  CHECK(least < 11 * kMs);
  CHECK(most <= 30 * kMs);
  CHECK(most > 29 * kMs);
}

TEST_CASE("random faults are of all kinds, can be written as a script, and come at the mean distance") {
  Schedule schedule = Schedule::at_random(1, 1000 * kMs);
  std::map<Kind, int> kinds;
  int64_t last = 0;
  for (int n = 0; n < 2000; ++n) {
    const auto event = schedule.next();
    REQUIRE(event);
    ++kinds[event->fault.kind];
    CHECK(script_of(text_of(event->fault)).at(0).fault == event->fault);
    last = event->at_ns;
  }
  CHECK(kinds.size() == kKinds);
  CHECK(last / 2000 > 950 * kMs);
  CHECK(last / 2000 < 1050 * kMs);
}

TEST_CASE("the last statement wins, and an earlier one holds again when it ends") {
  Rules rules;
  rules.add(event_of(0, "latency 10ms"));
  rules.add(event_of(0, "latency 20ms up for 5ms"));
  CHECK(rules.conditions(1, Direction::up).latency_ns == 20 * kMs);
  CHECK(rules.conditions(1, Direction::down).latency_ns == 10 * kMs);
  CHECK(rules.next_end() == 5 * kMs);
  rules.end_until(5 * kMs);
  CHECK(rules.conditions(1, Direction::up).latency_ns == 10 * kMs);
  CHECK(!rules.next_end());
}

TEST_CASE("a fault concerns its connection and direction alone, and clear ends what it names") {
  Rules rules;
  rules.add(event_of(0, "stall up connection 2"));
  rules.add(event_of(0, "flip 1/10 down"));
  CHECK(rules.conditions(1, Direction::up) == Conditions{});
  CHECK(rules.conditions(2, Direction::up).is_stalled);
  CHECK(!rules.conditions(2, Direction::down).is_stalled);
  CHECK(rules.conditions(2, Direction::down).flip_one_in == 10);
  rules.add(event_of(1, "clear down connection 2"));
  CHECK(rules.conditions(2, Direction::down) == Conditions{});
  CHECK(rules.conditions(1, Direction::down).flip_one_in == 10);
  CHECK(rules.conditions(2, Direction::up).is_stalled);
  rules.add(event_of(2, "clear"));
  CHECK(rules.conditions(2, Direction::up) == Conditions{});
  CHECK(rules.count() == 0);
}

TEST_CASE("doors stand open or shut by the rules") {
  Rules rules;
  rules.add(event_of(0, "refuse for 5ms"));
  rules.add(event_of(0, "blackhole connection 2"));
  CHECK(rules.is_refusing());
  CHECK(rules.is_blackhole(2));
  CHECK(!rules.is_blackhole(1));
  rules.add(event_of(1, "clear up"));
  CHECK(rules.is_blackhole(2));
  rules.add(event_of(1, "clear connection 2"));
  CHECK(!rules.is_blackhole(2));
  CHECK(rules.is_refusing());
  rules.end_until(5 * kMs);
  CHECK(!rules.is_refusing());
}

TEST_CASE("rules stay few however often a fault comes again") {
  Rules rules;
  Schedule schedule(
      script_of("every 1ms latency 5ms; every 2ms stall up for 10ms; every 3ms clear down; every 1ms limit 1KB"), 1);
  for (int n = 0; n < 10'000; ++n) rules.add(*schedule.next());
  CHECK(rules.count() == 4);
}

} // namespace millrace::chaos
