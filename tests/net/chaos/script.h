// A script of faults: read from text, checked, and written back as text.
//
// The proxy stands between a dialler and a server. `up` is from the dialler to the server, `down` the other way. A
// script says when faults begin, which direction and connection they concern, and how long they last. Each line is one
// statement; `;` separates statements too, so that a script fits on a command line. `#` begins a comment.
//
//   statement := [when] fault [argument] { up | down | both | connection N | for TIME | repeat N }
//   when      := at TIME | every TIME[±TIME]          (`+-` is read as `±`)
//
// Times count from the start of the proxy. A statement without `when` begins at once. `every 2s±500ms` draws each
// distance anew from 1.5 to 2.5 s, the first one too; `repeat 3` ends it after three times. A fault concerns both
// directions of all connections, also those that come later, unless the statement says otherwise. Connections are
// counted from 1 in the order in which they were accepted.
//
// There are three kinds of faults. *Conditions* (latency, jitter, bandwidth, slice, flip, stall, half-open, limit) hold
// for a direction until `for` is over, a later statement replaces them, or `clear` ends them; the last statement wins,
// and once it ends an earlier one holds again. *Doors* (refuse, blackhole) concern connections at the moment they come.
// *Strokes* (cut, reset) concern the connections that are open at that moment and last no time.
//
// Latency and jitter are given to bytes when the proxy reads them, and `clear` does not take them back: bytes that wait
// keep their time, and later ones never overtake them. A half-open direction that recovers has a hole in its stream. A
// connection that came into a blackhole never leaves it; a cut or a reset ends it like any other. Dialling itself is
// neither delayed nor slowed down.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace millrace::chaos {

enum class Kind : uint8_t {
  latency,
  jitter,
  bandwidth,
  slice,
  flip,
  stall,
  half_open,
  cut,
  reset,
  refuse,
  blackhole,
  limit,
  clear
};
inline constexpr size_t kKinds = 13;

// A script of more statements is a mistake: each is looked at for every event.
inline constexpr size_t kStatementsMax = 10'000;
// `every` may not be shorter, or the proxy would do nothing else.
inline constexpr int64_t kPeriodLeastNs = 1'000'000;

enum class Direction : uint8_t { up = 0, down = 1 };

// The directions and connections that a fault concerns.
struct Scope {
  bool up = true, down = true;
  size_t connection = 0; // counted from 1; 0: all

  bool has(Direction direction) const { return direction == Direction::up ? up : down; }
  bool has(size_t number) const { return connection == 0 || connection == number; }
  bool is_all() const { return up && down && connection == 0; }
  bool operator==(const Scope&) const = default;
};

struct Fault {
  Kind kind = Kind::clear;
  int64_t amount = 0; // latency, jitter: ns; bandwidth: bytes/s; flip: one byte in so many; limit: bytes; slice: least
  int64_t most = 0;   // slice: the longest, bytes
  Scope scope;
  std::optional<int64_t> duration_ns; // empty: until something else ends it
  bool operator==(const Fault&) const = default;
};

struct Statement {
  Fault fault;
  int64_t at_ns = 0;
  int64_t every_ns = 0; // 0: once
  int64_t spread_ns = 0;
  std::optional<int64_t> repeat; // times that `every` comes; empty: without end
};

using Script = std::vector<Statement>;

// A mistake in a script: the line, counted from 1, and a sentence that says what was expected.
struct Mistake {
  size_t line = 0;
  std::string sentence;
};

std::variant<Script, Mistake> read_script(std::string_view text);

// "1.5s", "20ms", "5us"; empty if the text is none, or is beyond 365 days.
std::optional<int64_t> read_time_ns(std::string_view text);

std::string_view name_of(Kind kind);
// The fault as a script writes it: "latency 20ms up connection 2 for 1s".
std::string text_of(const Fault& fault);
// The grammar and one line for each fault, for --help.
std::string grammar_help();

} // namespace millrace::chaos
