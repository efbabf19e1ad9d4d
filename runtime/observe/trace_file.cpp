// Writes the trace of a run; see trace_file.h. The format is Chrome's JSON ("Trace Event Format"), which Perfetto
// reads.
#include "observe/trace_file.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <ostream>

namespace millrace {

namespace {

constexpr uint64_t kIndexMask = (uint64_t{1} << kTraceIndexBits) - 1;

struct Placed {
  TraceSpan span;
  size_t track;
};

class Writer {
 public:
  Writer(const TraceOfRun& run, std::ostream& out) : run_(run), out_(out) {}

  void write() {
    out_ << R"({"displayTimeUnit":"ns","traceEvents":[)"
         << "\n";
    name("process_name", 0, run_.name.empty() ? "millrace" : run_.name);
    uint64_t forgotten = 0;
    for (size_t t = 0; t < run_.rings.size(); ++t) {
      const TraceRing& ring = *run_.rings[t];
      name("thread_name", t, ring.name());
      forgotten += ring.forgotten();
      for (const TraceSpan& span : ring.spans()) spans_.push_back({span, t});
    }
    for (const Placed& placed : spans_) slice(placed);
    arrows();
    out_ << "\n],\"otherData\":{\"forgotten_spans\":\"" << forgotten << "\"}}\n";
  }

 private:
  void event(const nlohmann::ordered_json& json) {
    if (!first_) out_ << ",\n";
    first_ = false;
    out_ << json.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
  }

  void name(const char* what, size_t track, const std::string& text) {
    event({{"ph", "M"}, {"name", what}, {"pid", 1}, {"tid", track}, {"args", {{"name", text}}}});
  }

  double us(int64_t ticks) const { return run_.clock.ns(ticks) / 1000; }

  void slice(const Placed& placed) {
    static constexpr const char* kCategories[] = {"handler", "source", "copy", "clock"};
    const TraceSpan& span = placed.span;
    const bool instant = span.kind == TraceKind::admit;
    nlohmann::ordered_json json = {{"ph", instant ? "i" : "X"},
                                   {"name", instant ? "tick" : run_.steps[span.step]},
                                   {"cat", kCategories[static_cast<size_t>(span.kind)]},
                                   {"pid", 1},
                                   {"tid", placed.track},
                                   {"ts", us(span.begin)}};
    if (instant)
      json["s"] = "t"; // drawn on its track
    else
      json["dur"] = std::max(us(span.end) - us(span.begin), 0.0);
    if (span.kind == TraceKind::read)
      json["args"] = {{"value", span.trace_id}};
    else
      json["args"] = {{"tick", span.trace_id & kIndexMask}, {"clock", run_.clocks[span.trace_id >> kTraceIndexBits]}};
    event(json);
  }

  // Draws an arrow from each call of a tick to the next one if that is on another track.
  void arrows() {
    std::erase_if(spans_, [](const Placed& placed) {
      return placed.span.kind == TraceKind::admit || placed.span.kind == TraceKind::read;
    });
    std::stable_sort(spans_.begin(), spans_.end(), [](const Placed& a, const Placed& b) {
      return std::pair(a.span.trace_id, a.span.begin) < std::pair(b.span.trace_id, b.span.begin);
    });
    uint64_t id = 0;
    for (size_t i = 1; i < spans_.size(); ++i) {
      const Placed &from = spans_[i - 1], &to = spans_[i];
      if (from.span.trace_id != to.span.trace_id || from.track == to.track) continue;
      ++id;
      const auto end = [&](const char* phase, const Placed& at) {
        nlohmann::ordered_json json = {{"ph", phase}, {"id", id},        {"name", "tick"},         {"cat", "tick"},
                                       {"pid", 1},    {"tid", at.track}, {"ts", us(at.span.begin)}};
        if (phase[0] == 'f') json["bp"] = "e"; // ends at the enclosing slice, not at the next one
        event(json);
      };
      end("s", from);
      end("f", to);
    }
  }

  const TraceOfRun& run_;
  std::ostream& out_;
  std::vector<Placed> spans_;
  bool first_ = true;
};

} // namespace

void write_trace(const TraceOfRun& run, std::ostream& out) { Writer(run, out).write(); }

} // namespace millrace
