// The tables of keys, and the reading of values by their keys.
#include "graph/keys.h"

#include <algorithm>
#include <array>
#include <bit>

#include "graph/limits.h"
#include "graph/quantity.h"
#include "observe/error_codes.h"

namespace millrace::graph {

namespace {

// The most for keys that count ticks: more would keep pictures alive for minutes.
constexpr int64_t kTicksMax = 1024;
constexpr int64_t kGapMax = 100'000;
constexpr int64_t kQueueDepthMax = 65'536;
constexpr int64_t kEveryMax = 1'000'000;
// More instances than any machine of today has cores.
constexpr int64_t kConcurrencyMax = 1024;
// The largest bucket that firings are made for. On an H200 a detector of 27 GFLOP took 121 us for each of 32 items and
// 120 us for each of 64.
constexpr int64_t kBatchMax = 64;

template <class Enum>
Enum as(const Setting& setting) {
  return static_cast<Enum>(setting.number);
}
uint32_t count_of(const Setting& setting) { return static_cast<uint32_t>(setting.number); }
std::string unless(int64_t value, int64_t standard) { return value == standard ? "" : std::to_string(value); }
template <class Enum>
std::string word_unless(Enum value, Enum standard, const std::vector<std::string>& words) {
  return value == standard ? "" : words[static_cast<size_t>(value)];
}

// In the order of the enums of graph.h.
const std::vector<std::string> kPolicies = {"sync", "latest", "queue", "align"};
const std::vector<std::string> kFulls = {"block", "drop_oldest", "drop_newest"};
const std::vector<std::string> kOnErrors = {"fail", "skip", "restart", "bypass"};
const std::vector<std::string> kClockModes = {"automatic", "realtime", "free", "source"};
const std::vector<std::string> kOnStreamErrors = {"end", "fail", "restart"}; // in the order of the enum
const std::vector<std::string> kDeliveries = {"live", "reliable"};           // after automatic, which is no word
const std::vector<std::string> kLates = {"drop", "keep"};                    // as above

Error wrong(int code, const KeyInfo& key, const std::string& text, const Place& place, std::string expected) {
  Error error{code, "'" + key.name + "' cannot be '" + shown(text) + "'", place, {}, "", key.name + ": " + key.example};
  error.notes.push_back("expected " + std::move(expected));
  return error;
}

std::string joined(const std::vector<std::string>& words) {
  std::string list;
  for (size_t i = 0; i < words.size(); ++i) list += (i == 0 ? "" : i + 1 == words.size() ? " or " : ", ") + words[i];
  return list;
}

int64_t read_number(const KeyInfo& key, const std::string& text, const Place& place) {
  const std::string range = std::to_string(key.min) + " to " + std::to_string(key.max);
  const bool digits =
      !text.empty() && text.find_first_not_of("0123456789", text[0] == '-' ? 1 : 0) == std::string::npos;
  const auto number = read_whole(text);
  if (number && *number >= key.min && *number <= key.max) return *number;
  throw Failure(wrong(number || (digits && text != "-") ? code::number_out_of_range : code::wrong_kind_of_value, key,
                      text, place, "a whole number from " + range));
}

int64_t read_duration_of(const KeyInfo& key, const std::string& text, const Place& place) {
  const auto ns = read_duration(text);
  if (ns && *ns >= key.min && *ns <= key.max) return *ns;
  if (ns)
    throw Failure(wrong(code::number_out_of_range, key, text, place,
                        "a duration from " + write_duration(key.min) + " to " + write_duration(key.max)));
  Error error = wrong(code::bad_duration_or_rate, key, text, place,
                      "a duration: a number and ns, us, ms, s or m, as in 500us, 40ms, 1.5s");
  if (read_rate(text)) error.edit = key.name + ": " + text + "ms";
  throw Failure(std::move(error));
}

Rational read_rate_of(const KeyInfo& key, const std::string& text, const Place& place) {
  const auto rate = read_rate(text);
  if (!rate)
    throw Failure(wrong(code::bad_duration_or_rate, key, text, place, "beats a second: 30, 29.97 or 30000/1001"));
  if (rate->numerator == 0 || rate->numerator > key.max * rate->denominator)
    throw Failure(wrong(code::number_out_of_range, key, text, place,
                        "more than 0 and at most " + std::to_string(key.max) + " beats a second"));
  return *rate;
}

int64_t read_word(const KeyInfo& key, const std::string& text, const Place& place) {
  if (!text.empty() && text == key.word_not_yet)
    throw Failure(Error{code::key_not_available,
                        "'" + key.name + ": " + text + "' is not there yet",
                        place,
                        {"expected " + joined(key.words)},
                        "",
                        key.name + ": " + key.example});
  const auto found = std::find(key.words.begin(), key.words.end(), text);
  if (found != key.words.end()) return found - key.words.begin();
  Error error = wrong(code::unknown_word, key, text, place, joined(key.words));
  error.nearest = nearest_name(text, key.words);
  error.edit = key.name + ": " + (error.nearest.empty() ? key.example : error.nearest);
  throw Failure(std::move(error));
}

int64_t read_flag(const KeyInfo& key, const std::string& text, const Place& place) {
  if (text == "true" || text == "false") return text == "true" ? 1 : 0;
  throw Failure(wrong(code::unknown_word, key, text, place, "true or false"));
}

// "cpu", or a kind and a number: "cuda:0".
bool is_device(const std::string& text) {
  if (text == "cpu") return true;
  const size_t colon = text.find(':');
  return colon != std::string::npos && colon + 1 < text.size() && is_name(text.substr(0, colon)) &&
         text.find_first_not_of("0123456789", colon + 1) == std::string::npos;
}

std::string read_device(const KeyInfo& key, const std::string& text, const Place& place) {
  if (is_device(text)) return text;
  throw Failure(wrong(code::wrong_kind_of_value, key, text, place, "devices: cpu, cuda:N, sim:N"));
}

// Refuses a number that is no bucket.
void check_power_of_two(const KeyInfo& key, const std::string& text, const Place& place) {
  const auto number = read_whole(text);
  if (!number) return; // read_setting() refuses it
  const int64_t within = std::clamp(*number, key.min, key.max);
  const auto below = static_cast<int64_t>(std::bit_floor(static_cast<uint64_t>(within)));
  if (below == *number) return;
  const int64_t nearest = within - below <= 2 * below - within ? below : 2 * below;
  Error error = wrong(code::number_out_of_range, key, text, place,
                      "a power of two from " + std::to_string(key.min) + " to " + std::to_string(key.max));
  error.edit = key.name + ": " + std::to_string(nearest);
  throw Failure(std::move(error));
}

} // namespace

const std::vector<KeyInfo>& top_keys() {
  static const std::vector<KeyInfo> keys = {
      {"version", Takes::shape, "the version of the file format", "1", 1, 1, {}},
      {"name", Takes::text, "what the pipeline is called in reports", "street", 0, 0, {}},
      {"clock",
       Takes::shape,
       "what paces the pipeline, if the default does not serve",
       "{ mode: realtime, rate: 30 }",
       0,
       0,
       {}},
      {"clocks",
       Takes::shape,
       "several clocks by name, for parts that are not in step",
       "{ left: { mode: source } }",
       0,
       0,
       {}},
      {"handlers", Takes::shape, "the handlers by name, in any order", "{ video: { type: test.pattern } }", 0, 0, {}},
      {"nodes",
       Takes::shape,
       "the nodes that run the pipeline together, by name; the first one coordinates, unless another says so",
       "{ edge: {}, gpu: {} }",
       0,
       0,
       {}},
      {"streams",
       Takes::shape,
       "inputs of a kind by sets, such as cameras; handlers with `for_each:` run for each stream of a set",
       "{ cameras: { items: { gate7: { path: gate7.avi } } } }",
       0,
       0,
       {}},
      {"devices", Takes::not_yet, "a pipeline's own list of devices; --devices gives one", "", 0, 0, {}},
  };
  return keys;
}

const std::vector<Key<Handler>>& handler_keys() {
  static const std::vector<Key<Handler>> keys = {
      {{"type", Takes::shape, "what the handler is: family.name, as `millrace handlers` lists", "image.blur"}},
      {{"input", Takes::shape, "where the handler's only (or only required) input comes from", "video"}},
      {{"inputs", Takes::shape, "where several inputs come from, by port", "{ video: blur, boxes: detect.boxes }"}},
      {{"every", Takes::whole, "runs at every n-th tick; the others settle empty", "3", 1, kEveryMax, {}},
       [](Handler& h, const Setting& s) { h.every = count_of(s); },
       [](const Handler& h) { return unless(h.every, 1); }},
      {{"device", Takes::text, "pins the handler to a device; left out, the plan decides", "cpu"},
       [](Handler& h, const Setting& s) { h.device = s.text; },
       [](const Handler& h) { return h.device; }},
      {{"node", Takes::name, "which of `nodes:` runs the handler; left out, the plan chooses", "edge"},
       [](Handler& h, const Setting& s) { h.node = s.text; },
       [](const Handler& h) { return h.node; }},
      {{"clock", Takes::name, "which of `clocks:` paces the handler; left out, that of its inputs", "left"},
       [](Handler& h, const Setting& s) { h.clock = s.text; },
       [](const Handler& h) { return h.clock; }},
      {{"on_error", Takes::word, "what follows when the handler fails", "skip", 0, 0, kOnErrors},
       [](Handler& h, const Setting& s) { h.on_error = as<OnError>(s); },
       [](const Handler& h) { return word_unless(h.on_error, OnError::fail, kOnErrors); }},
      {{"batch", Takes::shape,
        "how many items of all streams the handler takes together: a number, or keys by which it is fixed or learnt",
        "{ budget: 50ms, max: 32 }"}},
      {{"budget",
        Takes::durations,
        "how long process or finish may take before the handler is named; after a slash: probe, configure, start, "
        "drain, reset or stop",
        "40ms",
        1,
        kDurationNsMax,
        {}},
       [](Handler& h, const Setting& s) {
         h.budget_ns = s.number;
         h.patience_ns = s.second;
       },
       [](const Handler& h) {
         if (h.budget_ns == 0) return std::string();
         return write_duration(h.budget_ns) + (h.patience_ns == 0 ? "" : "/" + write_duration(h.patience_ns));
       }},
      {{"isolate", Takes::not_yet, "handlers in processes of their own", ""}},
      {{"for_each", Takes::shape, "which of `streams:` the handler is a template of: each stream has an instance of it",
        "cameras"},
       nullptr,
       [](const Handler& h) { return h.for_each; }},
      {{"concurrency",
        Takes::whole,
        "how many instances of a stateless handler run; 1 if left out",
        "2",
        1,
        kConcurrencyMax,
        {}},
       [](Handler& h, const Setting& s) { h.concurrency = count_of(s); },
       [](const Handler& h) { return unless(h.concurrency, 0); }},
      {{"priority", Takes::not_yet, "which handler goes first when several compete for a core or device", ""}},
  };
  return keys;
}

const std::vector<Key<Batch>>& batch_keys() {
  static const std::vector<Key<Batch>> keys = {
      {{"size", Takes::whole, "how many items are waited for", "16", 1, kBatchMax, {}},
       [](Batch& b, const Setting& s) { b.size = count_of(s); },
       [](const Batch& b) { return unless(b.size, 0); }},
      {{"wait",
        Takes::duration,
        "how long the oldest item waits for the others at most; left out, a period",
        "5ms",
        0,
        kDurationNsMax,
        {}},
       [](Batch& b, const Setting& s) { b.wait_ns = s.number; },
       [](const Batch& b) { return b.wait_ns < 0 ? "" : write_duration(b.wait_ns); }},
      {{"budget",
        Takes::duration,
        "how long it may take from an item's arrival to its result; how many items are waited for is learnt",
        "50ms",
        1,
        kDurationNsMax,
        {}},
       [](Batch& b, const Setting& s) { b.budget_ns = s.number; },
       [](const Batch& b) { return b.budget_ns == 0 ? "" : write_duration(b.budget_ns); }},
      {{"max",
        Takes::whole,
        "how many items are taken together at most, a power of two; left out, as many as the handlers can",
        "32",
        1,
        kBatchMax,
        {}},
       [](Batch& b, const Setting& s) { b.max = count_of(s); },
       [](const Batch& b) { return unless(b.max, 0); }},
      {{"in_flight",
        Takes::whole,
        "how many batches may be under way at a time; left out, the plan decides",
        "2",
        1,
        2,
        {}},
       [](Batch& b, const Setting& s) { b.in_flight = count_of(s); },
       [](const Batch& b) { return unless(b.in_flight, 0); }},
      {{"late", Takes::word,
        "what becomes of an item that cannot be done within the budget: drop, its outputs are empty; keep, it is done "
        "all the same; left out, drop under a clock in real time and else keep",
        "keep", 0, 0, kLates},
       [](Batch& b, const Setting& s) { b.late = static_cast<Late>(s.number + 1); },
       [](const Batch& b) { return b.late == Late::automatic ? "" : kLates[static_cast<size_t>(b.late) - 1]; }},
      {{"of",
        Takes::word,
        "rows: an item counts as many places as it has rows; left out, it counts one",
        "rows",
        0,
        0,
        {"rows"}},
       [](Batch& b, const Setting&) { b.of_rows = true; },
       [](const Batch& b) { return b.of_rows ? std::string("rows") : ""; }},
  };
  return keys;
}

namespace {

void set_policy(Edge& edge, const Setting& setting) {
  edge.policy = as<Policy>(setting);
  edge.has_policy = true;
}
std::string said_policy(const Edge& edge) {
  const bool is_said = edge.has_policy || edge.policy != Policy::sync;
  return is_said ? kPolicies[static_cast<size_t>(edge.policy)] : "";
}

} // namespace

const std::vector<Key<Edge>>& edge_keys() {
  static const std::vector<Key<Edge>> keys = {
      {{"from", Takes::shape, "the handler, or handler.port, that the input comes from", "detect.boxes"}},
      {{"policy", Takes::word, "which value a tick gets", "latest", 0, 0, kPolicies}, &set_policy, &said_policy},
      {{"lag",
        Takes::whole,
        "with policy: latest within a clock, how many ticks old the value is at least",
        "1",
        0,
        kTicksMax,
        {}},
       [](Edge& e, const Setting& s) { e.lag = count_of(s); },
       [](const Edge& e) { return unless(e.lag, 0); }},
      {{"depth", Takes::whole, "with policy: queue, how many values may wait", "8", 1, kQueueDepthMax, {}},
       [](Edge& e, const Setting& s) { e.depth = count_of(s); },
       [](const Edge& e) { return unless(e.depth, 1); }},
      {{"full", Takes::word, "with policy: queue, what happens when it is full", "drop_oldest", 0, 0, kFulls},
       [](Edge& e, const Setting& s) { e.full = as<Full>(s); },
       [](const Edge& e) { return word_unless(e.full, Full::block, kFulls); }},
      {{"within",
        Takes::duration,
        "with policy: align, how far apart in media time the values may be",
        "20ms",
        1,
        kDurationNsMax,
        {}},
       [](Edge& e, const Setting& s) { e.within_ns = s.number; },
       [](const Edge& e) { return e.within_ns == 0 ? "" : write_duration(e.within_ns); }},
      {{"delay",
        Takes::whole,
        "how many ticks later the value arrives; makes a cycle legal, needs initial",
        "1",
        0,
        kTicksMax,
        {}},
       [](Edge& e, const Setting& s) { e.delay = count_of(s); },
       [](const Edge& e) { return unless(e.delay, 0); }},
      {{"gap",
        Takes::whole,
        "how many ticks without a value may come while the reader owes a result; takes memory",
        "30",
        0,
        kGapMax,
        {}},
       [](Edge& e, const Setting& s) { e.gap = count_of(s); },
       [](const Edge& e) { return unless(e.gap, 0); }},
      {{"initial",
        Takes::word,
        "with delay or policy: latest, what stands in before the first value",
        "empty",
        0,
        0,
        {"empty"}},
       [](Edge& e, const Setting&) { e.initial_empty = true; },
       [](const Edge& e) { return e.initial_empty ? std::string("empty") : ""; }},
      {{"copy", Takes::word, "refuses a plan that would copy here", "forbid", 0, 0, {"forbid"}},
       [](Edge& e, const Setting&) { e.forbid_copy = true; },
       [](const Edge& e) { return e.forbid_copy ? std::string("forbid") : ""; }},
      {{"convert", Takes::word, "refuses a plan that would convert the format here", "forbid", 0, 0, {"forbid"}},
       [](Edge& e, const Setting&) { e.forbid_convert = true; },
       [](const Edge& e) { return e.forbid_convert ? std::string("forbid") : ""; }},
      {{"domain", Takes::text, "where the value has to be delivered: its reader runs there", "sim:0"},
       [](Edge& e, const Setting& s) { e.domain = s.text; },
       [](const Edge& e) { return e.domain; }},
      {{"delivery", Takes::word,
        "where the edge goes to another node: live, the newest values win; reliable, all arrive; left out, live under "
        "a clock in real time and else reliable",
        "reliable", 0, 0, kDeliveries, "durable"},
       [](Edge& e, const Setting& s) { e.delivery = static_cast<Delivery>(s.number + 1); },
       [](const Edge& e) {
         return e.delivery == Delivery::automatic ? "" : kDeliveries[static_cast<size_t>(e.delivery) - 1];
       }},
  };
  return keys;
}

const std::vector<Key<Clock>>& clock_keys() {
  static const std::vector<Key<Clock>> keys = {
      {{"mode", Takes::word, "what makes the ticks", "realtime", 0, 0, kClockModes},
       [](Clock& c, const Setting& s) { c.mode = as<ClockMode>(s); },
       [](const Clock& c) { return word_unless(c.mode, ClockMode::automatic, kClockModes); }},
      {{"rate", Takes::rate, "beats a second, as a number or a fraction", "30", 0, kRateMax, {}},
       [](Clock& c, const Setting& s) { c.rate = s.rate; },
       [](const Clock& c) { return c.rate.numerator == 0 ? "" : write_rate(c.rate); }},
      {{"in_flight",
        Takes::range,
        "how many ticks may be under way at a time, or [least, most] for as many of them as memory has room for; left "
        "out, the plan decides",
        "4",
        1,
        kTicksMax,
        {}},
       [](Clock& c, const Setting& s) {
         c.in_flight = count_of(s);
         c.in_flight_least = static_cast<uint32_t>(s.least);
       },
       [](const Clock& c) {
         const std::string most = unless(c.in_flight, 0);
         return c.in_flight_least == 0 ? most : "[" + std::to_string(c.in_flight_least) + ", " + most + "]";
       }},
      {{"node", Takes::name,
        "which of `nodes:` begins its ticks; left out, that of its sources, or else that of its first handler", "edge"},
       [](Clock& c, const Setting& s) { c.node = s.text; },
       [](const Clock& c) { return c.node; }},
  };
  return keys;
}

const std::vector<Key<Node>>& node_keys() {
  static const std::vector<Key<Node>> keys = {
      {{"address", Takes::text, "where other nodes reach it, as HOST:PORT", "192.168.1.7:7433"},
       [](Node& n, const Setting& s) { n.address = s.text; },
       [](const Node& n) { return n.address; }},
      {{"devices", Takes::devices, "the devices that it may use, in order of preference", "cuda:0"},
       [](Node& n, const Setting& s) { n.devices = s.devices; },
       [](const Node& n) {
         std::string list;
         for (const std::string& device : n.devices) list += (list.empty() ? "[" : ", ") + device;
         return list.empty() ? "" : list + "]";
       }},
      {{"id", Takes::text, "the identity that it has to prove to the others", "mr:MFRA…"},
       [](Node& n, const Setting& s) { n.id = s.text; },
       [](const Node& n) { return n.id; }},
      {{"coordinator", Takes::flag, "true for the node that plans for all; if no node says so, the first", "true"},
       [](Node& n, const Setting& s) { n.coordinator = s.number != 0; },
       [](const Node& n) { return n.coordinator ? std::string("true") : ""; }},
  };
  return keys;
}

const std::vector<Key<StreamSet>>& stream_keys() {
  static const std::vector<Key<StreamSet>> keys = {
      {{"items", Takes::shape,
        "the streams: a map by name, a list, or the files that a pattern finds; each has fields that {FIELD} stands "
        "for",
        "{ gate7: { path: gate7.avi } }"}},
      {{"max", Takes::whole, "how many streams there may be at a time; left out, as many as there are items", "64", 1,
        kStreamsMax},
       [](StreamSet& s, const Setting& value) { s.max = count_of(value); },
       [](const StreamSet& s) { return unless(s.max, 0); }},
      {{"on_error", Takes::word,
        "what becomes of a stream in which a handler fails: end, it ends and the others go on; restart, it begins "
        "anew, "
        "after 0.1 s at first and 30 s at most; fail, the run ends",
        "end", 0, 0, kOnStreamErrors},
       [](StreamSet& s, const Setting& value) { s.on_error = as<OnStreamError>(value); },
       [](const StreamSet& s) { return word_unless(s.on_error, OnStreamError::end, kOnStreamErrors); }},
      {{"clock",
        Takes::word,
        "shared: one clock for all streams, which are in step; left out, each has its own",
        "shared",
        0,
        0,
        {"shared"}},
       [](StreamSet& s, const Setting&) { s.shared_clock = true; },
       [](const StreamSet& s) { return s.shared_clock ? std::string("shared") : ""; }},
  };
  return keys;
}

const std::vector<std::string>& reserved_keys() {
  static const std::vector<std::string> names = names_of(handler_keys());
  return names;
}

bool is_edge_key(const std::string& name) { return find_key(edge_keys(), name) != nullptr; }

Setting read_setting(const KeyInfo& key, const std::string& text, const Place& place) {
  Setting setting;
  switch (key.takes) {
    case Takes::text:
      setting.text = text;
      if (text.empty()) throw Failure(wrong(code::wrong_kind_of_value, key, text, place, "a text"));
      return setting;
    case Takes::name:
      setting.text = text;
      if (!is_name(text))
        throw Failure(wrong(code::bad_name, key, text, place, "letters, digits, '_' and '-', a letter first"));
      return setting;
    case Takes::whole:
    case Takes::range: setting.number = read_number(key, text, place); return setting;
    case Takes::duration: setting.number = read_duration_of(key, text, place); return setting;
    case Takes::durations: {
      const size_t slash = text.find('/');
      setting.number = read_duration_of(key, text.substr(0, slash), place);
      if (slash != std::string::npos) setting.second = read_duration_of(key, text.substr(slash + 1), place);
      return setting;
    }
    case Takes::rate: setting.rate = read_rate_of(key, text, place); return setting;
    case Takes::word: setting.number = read_word(key, text, place); return setting;
    case Takes::flag: setting.number = read_flag(key, text, place); return setting;
    case Takes::devices: setting.devices = {read_device(key, text, place)}; return setting;
    case Takes::not_yet: refuse_not_yet(key, place);
    case Takes::shape: break;
  }
  MR_ASSERT(false, "keys that shape the graph are read by the parser");
  return setting;
}

Setting read_range(const KeyInfo& key, const Value& list, const std::string& file) {
  const auto refuse = [&](int code, const std::string& expected, const std::string& example) {
    Error error = wrong(code, key, to_json_text(list), {file, list.at.line, list.at.column}, expected);
    error.edit = key.name + ": " + example;
    throw Failure(std::move(error));
  };
  const auto is_scalar = [](const Value& value) { return value.kind == Value::Kind::scalar; };
  if (list.kind != Value::Kind::list || list.items.size() != 2 ||
      !std::all_of(list.items.begin(), list.items.end(), is_scalar))
    refuse(code::wrong_kind_of_value, "a whole number, or [least, most]", "[1, " + key.example + "]");
  const auto number = [&](const Value& value) {
    return read_number(key, value.text, {file, value.at.line, value.at.column});
  };
  const int64_t least = number(list.items[0]), most = number(list.items[1]);
  if (least > most)
    refuse(code::number_out_of_range, "the least first, then the most",
           "[" + std::to_string(most) + ", " + std::to_string(least) + "]");
  Setting setting;
  setting.number = most;
  setting.least = least < most ? least : 0; // [3, 3] is 3
  return setting;
}

Setting read_devices(const KeyInfo& key, const Value& list, const std::string& file) {
  const auto place = [&](const Value& value) { return Place{file, value.at.line, value.at.column}; };
  Setting setting;
  if (list.kind == Value::Kind::list)
    for (const Value& item : list.items)
      setting.devices.push_back(
          read_device(key, item.kind == Value::Kind::scalar ? item.text : described(item), place(item)));
  if (setting.devices.empty()) {
    Error error{code::wrong_kind_of_value, "'" + key.name + "' cannot be " + described(list), place(list), {}, "", ""};
    error.notes.push_back("expected one device or more: cpu, cuda:N, sim:N");
    error.edit = key.name + ": [" + key.example + "]";
    throw Failure(std::move(error));
  }
  return setting;
}

void refuse_not_yet(const KeyInfo& key, const Place& place) {
  throw Failure(Error{code::key_not_available,
                      "'" + key.name + "' is not there yet",
                      place,
                      {"it is reserved for " + key.help},
                      "",
                      "leave '" + key.name + "' out"});
}

void check_edge(const Edge& edge, const std::vector<Name>& given, const std::string& file) {
  struct Rule {
    const char* key;
    Policy needed;
    const char* policy;
  };
  static constexpr std::array<Rule, 4> kRules = {{{"lag", Policy::latest, "latest"},
                                                  {"depth", Policy::queue, "queue"},
                                                  {"full", Policy::queue, "queue"},
                                                  {"within", Policy::align, "align"}}};
  const auto at = [&](const std::string& key) -> const Name* {
    const auto found = std::find_if(given.begin(), given.end(), [&](const Name& name) { return name.text == key; });
    return found == given.end() ? nullptr : &*found;
  };
  for (const Rule& rule : kRules)
    if (const Name* name = at(rule.key); name && edge.policy != rule.needed)
      throw Failure(Error{code::conflicting_keys,
                          std::string("'") + rule.key + "' means nothing without policy: " + rule.policy,
                          {file, name->at.line, name->at.column},
                          {},
                          "",
                          std::string("policy: ") + rule.policy});
  if (const Name* policy = at("policy"); policy && edge.policy == Policy::align && edge.within_ns == 0)
    throw Failure(Error{code::missing_key,
                        "policy: align needs 'within'",
                        {file, policy->at.line, policy->at.column},
                        {"expected how far apart in media time the values may be"},
                        "",
                        "within: 20ms"});
}

void read_batch_key(Batch& batch, const Key<Batch>& key, const std::string& text, const Place& name,
                    const Place& value) {
  if (key.name == "max") check_power_of_two(key, text, value);
  key.assign(batch, read_setting(key, text, value));
  if (batch.is_fixed() && (batch.budget_ns > 0 || batch.late != Late::automatic)) {
    const bool fixes = key.name == "size" || key.name == "wait";
    const std::string other = fixes ? (batch.budget_ns > 0 ? "budget" : "late") : (batch.size > 0 ? "size" : "wait");
    throw Failure(Error{code::conflicting_keys,
                        "'" + key.name + "' and '" + other + "' of a batch exclude each other",
                        name,
                        {"with size and wait a batch is fixed, with budget and late it is learnt"},
                        "",
                        "leave '" + key.name + "' out"});
  }
  if (batch.max == 0 || batch.size <= batch.max) return;
  const std::string size = std::to_string(batch.size), max = std::to_string(batch.max);
  throw Failure(Error{code::number_out_of_range,
                      "'size' of a batch is " + size + ", and its 'max' is " + max,
                      value,
                      {"expected a size of at most max"},
                      "",
                      key.name == "size" ? "size: " + max : "max: " + std::to_string(std::bit_ceil(batch.size))});
}

Batch read_batch_size(const std::string& text, const Place& place) {
  KeyInfo key = *find_key(batch_keys(), "size");
  key.name = "batch";
  Batch batch;
  try {
    batch.size = count_of(read_setting(key, text, place));
  } catch (const Failure& failure) {
    Error error = failure.error();
    error.notes.push_back("or keys: " + joined(names_of(batch_keys())));
    throw Failure(std::move(error));
  }
  return batch;
}

void check_batch(const Graph& graph, const Handler& handler, const Place& place) {
  const bool is_template = !handler.for_each.empty();
  if (!is_template && !graph.streams.empty()) return;
  if (is_template)
    throw Failure(Error{code::conflicting_keys,
                        "'" + handler.name + "' has 'for_each' and 'batch'",
                        place,
                        {"a template has an instance for each stream",
                         "handlers outside the streams, which read templates, take items of all streams together"},
                        "",
                        "leave one of them out"});
  throw Failure(Error{code::conflicting_keys,
                      "'" + handler.name + "' has 'batch', and the pipeline has no 'streams:'",
                      place,
                      {"a batch is made of the items of several streams"},
                      "",
                      "leave 'batch' out"});
}

void check_clock(const Graph& graph, const Handler& handler, const Place& place) {
  std::vector<std::string> names;
  for (const Clock& clock : graph.clocks)
    if (!clock.name.empty()) names.push_back(clock.name);
  for (const StreamSet& set : graph.streams) { // their clocks are named like the streams
    if (set.shared_clock) names.push_back(set.name);
    for (const Stream& stream : set.items)
      if (!set.shared_clock) names.push_back(stream.name);
  }
  if (handler.clock.empty() || std::find(names.begin(), names.end(), handler.clock) != names.end()) return;
  Error error{code::unknown_clock,
              "'" + handler.name + "' names the clock '" + handler.clock + "', which is not there",
              place,
              {},
              "",
              ""};
  error.notes.push_back(names.empty() ? "the pipeline has no 'clocks:'" : "expected " + joined(names));
  error.nearest = nearest_name(handler.clock, names);
  error.edit = names.empty() ? "leave 'clock' out" : "clock: " + (error.nearest.empty() ? names[0] : error.nearest);
  throw Failure(std::move(error));
}

void check_node(const Graph& graph, const std::string& whose, const std::string& node, const Place& place) {
  std::vector<std::string> names;
  for (const Node& known : graph.nodes) names.push_back(known.name);
  if (node.empty() || std::find(names.begin(), names.end(), node) != names.end()) return;
  Error error{code::unknown_node, whose + " names the node '" + node + "', which is not there", place, {}, "", ""};
  error.notes.push_back(names.empty() ? "the pipeline has no 'nodes:'" : "expected " + joined(names));
  error.nearest = nearest_name(node, names);
  error.edit = names.empty() ? "leave 'node' out" : "node: " + (error.nearest.empty() ? names[0] : error.nearest);
  throw Failure(std::move(error));
}

void check_for_each(const Graph& graph, const Handler& handler) {
  if (handler.for_each.empty() || graph.find_set(handler.for_each)) return;
  const std::vector<std::string> sets = names_of(graph.streams);
  Error error{code::unknown_set,
              "'" + handler.name + "' is for each of '" + handler.for_each + "', which is no set of streams",
              handler.for_each_place,
              {},
              "",
              ""};
  error.notes.push_back(sets.empty() ? "the pipeline has no 'streams:'" : "expected " + joined(sets));
  error.nearest = nearest_name(handler.for_each, sets);
  error.edit = sets.empty() ? "leave 'for_each' out" : "for_each: " + (error.nearest.empty() ? sets[0] : error.nearest);
  throw Failure(std::move(error));
}

std::vector<std::string> node_names(const Graph& graph) {
  std::vector<std::string> names;
  for (const Node& node : graph.nodes) names.insert(node.coordinator ? names.begin() : names.end(), node.name);
  return names;
}

std::string node_of(const Graph& graph, const Handler& handler) {
  return handler.node.empty() ? node_names(graph).at(0) : handler.node;
}

const std::vector<std::string>& clock_modes() { return kClockModes; }

Error as_assignment(Error error) {
  if (const size_t colon = error.edit.find(": "); colon != std::string::npos) error.edit.replace(colon, 2, "=");
  return error;
}

} // namespace millrace::graph
