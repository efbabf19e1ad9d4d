// Writes the trace of a run; see trace_file.h. The format is Chrome's JSON ("Trace Event Format"), which Perfetto
// reads.
#include "observe/trace_file.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <ostream>
#include <utility>

namespace millrace {

namespace {

constexpr uint64_t kIndexMask = (uint64_t{1} << kTraceIndexBits) - 1;

struct Placed {
  TraceEvent event;
  size_t run, track;
  int64_t begin_ns; // since the first trace began
};

class Writer {
 public:
  Writer(const std::vector<TraceOfRun>& runs, std::ostream& out) : runs_(runs), out_(out) {}

  void write() {
    out_ << R"({"displayTimeUnit":"ns","traceEvents":[)"
         << "\n";
    uint64_t forgotten = 0, left_out = 0;
    for (size_t r = 0; r < runs_.size(); ++r) {
      add(r);
      forgotten += runs_[r].forgotten;
      left_out += runs_[r].left_out;
    }
    for (size_t i = 0; i < placed_.size(); ++i) slice(i);
    arrows();
    out_ << "\n],\"otherData\":{\"forgotten_spans\":\"" << forgotten << "\",\"left_out_spans\":\"" << left_out
         << "\"}}\n";
  }

 private:
  void event(const nlohmann::ordered_json& json) {
    if (!first_) out_ << ",\n";
    first_ = false;
    out_ << json.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
  }

  void name(const char* what, size_t run, size_t track, const char* key, const std::string& text) {
    event({{"ph", "M"}, {"name", what}, {"pid", run + 1}, {"tid", track}, {"args", {{key, text}}}});
  }

  void add(size_t r) {
    const TraceOfRun& run = runs_[r];
    name("process_name", r, 0, "name", run.name.empty() ? "millrace" : run.name);
    std::string labels;
    if (run.left_out > 0) labels = std::to_string(run.left_out) + " older events are missing";
    if (run.error_ns > 0)
      labels += (labels.empty() ? "" : ", ") + std::string("times may be wrong by ") +
                std::to_string((run.error_ns + 999) / 1000) + " µs";
    if (!labels.empty()) name("process_labels", r, 0, "labels", labels);
    // Another node says when its trace began: any number may be said.
    const uint64_t shift = static_cast<uint64_t>(run.begin_ns) - static_cast<uint64_t>(runs_[0].begin_ns);
    for (size_t t = 0; t < run.tracks.size(); ++t) {
      name("thread_name", r, t, "name", run.tracks[t].name);
      for (const TraceEvent& one : run.tracks[t].events)
        placed_.push_back({one, r, t, static_cast<int64_t>(static_cast<uint64_t>(one.begin_ns) + shift)});
    }
  }

  static double us(int64_t ns) { return static_cast<double>(ns) / 1000; }

  // The ticks that are the items of a firing: those that follow it on its track.
  nlohmann::ordered_json items_of(size_t firing) const {
    nlohmann::ordered_json items = nlohmann::ordered_json::array();
    for (size_t i = firing + 1; i < placed_.size(); ++i) {
      const Placed& item = placed_[i];
      const bool is_its = std::pair(item.run, item.track) == std::pair(placed_[firing].run, placed_[firing].track) &&
                          item.event.kind == TraceKind::item;
      if (!is_its) break;
      items.push_back(tick_of(item));
    }
    return items;
  }

  nlohmann::ordered_json tick_of(const Placed& placed) const {
    const uint64_t id = placed.event.trace_id;
    return {{"tick", id & kIndexMask}, {"clock", runs_[placed.run].clocks[id >> kTraceIndexBits]}};
  }

  void slice(size_t index) {
    static constexpr const char* kCategories[] = {"handler", "source", "copy", "clock", "group"};
    const Placed& placed = placed_[index];
    if (placed.event.kind == TraceKind::item) return; // told with its firing
    const TraceOfRun& run = runs_[placed.run];
    const TraceEvent& one = placed.event;
    const bool instant = one.kind == TraceKind::admit;
    nlohmann::ordered_json json = {{"ph", instant ? "i" : "X"},
                                   {"name", instant ? "tick" : run.steps[one.step]},
                                   {"cat", kCategories[static_cast<size_t>(one.kind)]},
                                   {"pid", placed.run + 1},
                                   {"tid", placed.track},
                                   {"ts", us(placed.begin_ns)}};
    if (instant)
      json["s"] = "t"; // drawn on its track
    else
      json["dur"] = us(one.duration_ns);
    if (one.kind == TraceKind::firing) {
      const nlohmann::ordered_json items = items_of(index);
      json["name"] = std::to_string(items.size()) + (items.size() == 1 ? " item" : " items");
      json["args"] = {{"firing", one.trace_id & kIndexMask}, {"items", items}};
    } else if (one.kind == TraceKind::read) {
      json["args"] = {{"value", one.trace_id}};
    } else {
      json["args"] = tick_of(placed);
    }
    event(json);
  }

  // Draws an arrow from each call of a tick to the next one if that is on another track. A tick has one id on all
  // nodes.
  void arrows() {
    std::erase_if(placed_, [](const Placed& placed) {
      return placed.event.kind != TraceKind::call && placed.event.kind != TraceKind::copy;
    });
    std::stable_sort(placed_.begin(), placed_.end(), [](const Placed& a, const Placed& b) {
      return std::pair(a.event.trace_id, a.begin_ns) < std::pair(b.event.trace_id, b.begin_ns);
    });
    uint64_t id = 0;
    for (size_t i = 1; i < placed_.size(); ++i) {
      const Placed &from = placed_[i - 1], &to = placed_[i];
      const bool is_same_track = std::pair(from.run, from.track) == std::pair(to.run, to.track);
      if (from.event.trace_id != to.event.trace_id || is_same_track) continue;
      ++id;
      const auto end = [&](const char* phase, const Placed& at) {
        nlohmann::ordered_json json = {{"ph", phase},       {"id", id},        {"name", "tick"},       {"cat", "tick"},
                                       {"pid", at.run + 1}, {"tid", at.track}, {"ts", us(at.begin_ns)}};
        if (phase[0] == 'f') json["bp"] = "e"; // ends at the enclosing slice, not at the next one
        event(json);
      };
      end("s", from);
      end("f", to);
    }
  }

  const std::vector<TraceOfRun>& runs_;
  std::ostream& out_;
  std::vector<Placed> placed_;
  bool first_ = true;
};

} // namespace

void add_track(const TraceRing& ring, const TraceClock& clock, TraceOfRun& run) {
  TraceTrack& track = run.tracks.emplace_back();
  track.name = ring.name();
  run.forgotten += ring.forgotten();
  for (const TraceSpan& span : ring.spans()) {
    const double begin_ns = clock.ns(span.begin);
    const double duration_ns = std::max(clock.ns(span.end) - begin_ns, 0.0);
    track.events.push_back({std::llround(begin_ns), std::llround(duration_ns), span.trace_id, span.step, span.kind});
  }
}

void write_trace(const std::vector<TraceOfRun>& runs, std::ostream& out) { Writer(runs, out).write(); }

} // namespace millrace
