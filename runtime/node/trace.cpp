// Writes and reads the traces of nodes; see trace.h.
#include "node/trace.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "fleet/statement.h"

namespace millrace::node {

using nlohmann::json;

namespace {

constexpr size_t kNumbersOfEvent = 5, kEventBytesLeast = 2 * kNumbersOfEvent; // a digit and a comma each
constexpr auto kLastKind = static_cast<uint32_t>(TraceKind::item);

// Differences of any two numbers: they wrap.
uint64_t difference(uint64_t to, uint64_t from) { return to - from; }

// The begin of the oldest of the `count` newest events; count > 0.
int64_t begin_of_newest(const TraceOfRun& trace, size_t count) {
  std::vector<int64_t> begins;
  for (const TraceTrack& track : trace.tracks)
    for (const TraceEvent& event : track.events) begins.push_back(event.begin_ns);
  if (begins.size() <= count) return INT64_MIN;
  const auto at = begins.end() - static_cast<ptrdiff_t>(count);
  std::nth_element(begins.begin(), at, begins.end());
  return *at;
}

json events_of(const TraceTrack& track, int64_t from_ns, uint64_t& left_out) {
  json events = json::array();
  TraceEvent before;
  for (const TraceEvent& event : track.events) {
    if (event.begin_ns < from_ns) {
      ++left_out;
      continue;
    }
    const auto begin = static_cast<uint64_t>(event.begin_ns), begin_before = static_cast<uint64_t>(before.begin_ns);
    events.push_back(static_cast<int64_t>(difference(begin, begin_before)));
    events.push_back(static_cast<int64_t>(difference(event.trace_id, before.trace_id)));
    events.push_back(event.duration_ns);
    events.push_back(event.step);
    events.push_back(static_cast<uint32_t>(event.kind));
    before = event;
  }
  return events;
}

std::string text_of(const TraceOfRun& trace, int64_t from_ns) {
  uint64_t left_out = 0;
  json tracks = json::array();
  for (const TraceTrack& track : trace.tracks)
    tracks.push_back({{"name", track.name}, {"events", events_of(track, from_ns, left_out)}});
  const json document = {{"begin_ns", trace.begin_ns}, {"error_ns", trace.error_ns}, {"forgotten", trace.forgotten},
                         {"left_out", left_out},       {"steps", trace.steps},       {"clocks", trace.clocks},
                         {"tracks", std::move(tracks)}};
  return document.dump(-1, ' ', false, json::error_handler_t::replace);
}

// Quotes of names are escaped within a statement.
size_t bytes_in_statement(const std::string& text) {
  return text.size() +
         static_cast<size_t>(std::count_if(text.begin(), text.end(), [](char c) { return c == '"' || c == '\\'; }));
}

TraceTrack read_track(const json& document, const TraceOfRun& trace, bool& is_sound) {
  TraceTrack track;
  track.name = document.at("name");
  const json& numbers = document.at("events");
  is_sound = is_sound && numbers.is_array() && numbers.size() % kNumbersOfEvent == 0;
  uint64_t begin = 0, trace_id = 0;
  for (size_t i = 0; is_sound && i < numbers.size(); i += kNumbersOfEvent) {
    begin += static_cast<uint64_t>(numbers[i].get<int64_t>());
    trace_id += static_cast<uint64_t>(numbers[i + 1].get<int64_t>());
    const auto duration_ns = numbers[i + 2].get<int64_t>();
    const auto step = numbers[i + 3].get<uint64_t>(), kind = numbers[i + 4].get<uint64_t>();
    is_sound = duration_ns >= 0 && step < trace.steps.size() && kind <= kLastKind &&
               trace_id >> kTraceIndexBits < trace.clocks.size();
    track.events.push_back({static_cast<int64_t>(begin), duration_ns, trace_id, static_cast<uint32_t>(step),
                            static_cast<TraceKind>(kind)});
  }
  return track;
}

} // namespace

std::string write_node_trace(const TraceOfRun& trace, size_t bytes_most) {
  for (size_t count = bytes_most / kEventBytesLeast; count > 0;) {
    const std::string text = text_of(trace, begin_of_newest(trace, count));
    const size_t bytes = bytes_in_statement(text);
    if (bytes <= bytes_most) return text;
    count = std::min(count - 1, static_cast<size_t>(static_cast<double>(count) * 0.95 *
                                                    static_cast<double>(bytes_most) / static_cast<double>(bytes)));
  }
  return "";
}

std::optional<TraceOfRun> read_node_trace(const std::string& text) {
  if (fleet::nests_deeper(text, fleet::kNestingMax)) return std::nullopt;
  try {
    const json document = json::parse(text);
    TraceOfRun trace;
    trace.begin_ns = document.at("begin_ns");
    trace.error_ns = document.at("error_ns");
    trace.forgotten = document.at("forgotten");
    trace.left_out = document.at("left_out");
    trace.steps = document.at("steps");
    trace.clocks = document.at("clocks");
    bool is_sound = true;
    for (const json& track : document.at("tracks")) trace.tracks.push_back(read_track(track, trace, is_sound));
    return is_sound ? std::optional(std::move(trace)) : std::nullopt;
  } catch (const json::exception&) {
    return std::nullopt;
  }
}

std::vector<TraceOfRun> traces_of_all(TraceOfRun own, const std::string& node,
                                      const std::map<std::string, std::string>& traces) {
  std::vector<TraceOfRun> all;
  all.push_back(std::move(own));
  all[0].name = node;
  for (const auto& [name, text] : traces) {
    std::optional<TraceOfRun> trace = read_node_trace(text);
    if (!trace) continue;
    trace->name = name;
    all.push_back(std::move(*trace));
  }
  return all;
}

} // namespace millrace::node
