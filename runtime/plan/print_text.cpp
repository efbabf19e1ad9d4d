// The plan as a person reads it, like SQL's EXPLAIN: what runs where and why, and every step that the runtime added.
// Templates are printed once, with a count, and streams that differ by name: see fold.h.
#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <utility>

#include "memory/ring.h"
#include "observe/secrets.h"
#include "plan/describe_crossing.h"
#include "plan/describe_group.h"
#include "plan/domain.h"
#include "plan/explained.h"
#include "plan/fold_segments.h"
#include "plan/format_text.h"
#include "plan/memory.h"
#include "plan/notes.h"
#include "plan/plan_words.h"
#include "plan/predict.h"
#include "plan/print.h"
#include "plan/variants.h"

namespace millrace::plan {

namespace {

// "worker 0", "workers 0 to 2", "workers 0, 2"
std::string worker_words(const std::set<uint32_t>& homes) {
  const uint32_t first = *homes.begin(), last = *homes.rbegin();
  if (homes.size() == 1) return fmt::format("worker {}", first);
  if (homes.size() > 2 && last - first + 1 == homes.size()) return fmt::format("workers {} to {}", first, last);
  return fmt::format("workers {}", fmt::join(homes, ", "));
}

class Printer {
 public:
  explicit Printer(const Plan& plan)
      : plan_(plan),
        names_(plan),
        named_(names_.empty() ? Plan() : names_.named_by_template(plan)),
        words_(plan_, names_, false),
        all_words_(by_template(), names_, !names_.empty()) {}

  std::string text() {
    heading();
    clocks();
    groups();
    segments();
    crossings();
    elsewhere();
    edges();
    memory();
    inserted();
    notes();
    return std::move(text_);
  }

 private:
  // A copy of the plan with template names, so that rows of different streams compare equal.
  const Plan& by_template() const { return names_.empty() ? plan_ : named_; }

  void line(const std::string& words) {
    text_ += names_.empty() ? words : names_.with_short_lists(words);
    while (!text_.empty() && text_.back() == ' ') text_.pop_back();
    text_ += '\n';
  }

  // "64 streams, "; "1 stream and room for 7 more (+1, …), ": seats are called by their numbers.
  std::string count_streams() const {
    if (names_.empty()) return "";
    std::vector<std::string> seats;
    for (const Clock& clock : plan_.clocks)
      if (clock.is_seat) seats.push_back(clock.name.substr(clock.name.find('+')));
    const std::string there = count_of(names_.stream_count() - seats.size(), "stream") + ", ";
    if (seats.empty()) return there;
    return fmt::format("{} and room for {} more ({}{}), ", there.substr(0, there.size() - 2), seats.size(), seats[0],
                       seats.size() > 1 ? ", …" : "");
  }

  void heading() {
    const std::string streams = count_streams();
    const std::string others =
        plan_.library_threads > 0 ? fmt::format(", and {} of libraries", plan_.library_threads) : "";
    line(fmt::format("{}: {}{} {}, {} on {}{}", plan_.name.empty() ? "pipeline" : plan_.name, streams, handler_count(),
                     count_of(plan_.edges.size(), "edge"), count_of(plan_.segments.size(), "segment"),
                     count_of(plan_.threads, "thread"), others));
    latency();
  }

  std::string handler_count() const {
    const std::string all = count_of(plan_.handlers.size(), "handler");
    if (!plan_.is_over_nodes()) return all + ',';
    const auto here = std::count_if(plan_.handlers.begin(), plan_.handlers.end(),
                                    [&](const HandlerPlan& handler) { return handler.node == plan_.node; });
    return fmt::format("{}, {} of them on this node ({});", all, here, plan_.nodes[plan_.node]);
  }

  void latency() {
    const PredictedLatency latency = predict_latency(plan_);
    const std::string title = plan_.is_over_nodes() ? "latency on this node, without links" : "latency";
    if (latency.unknown == 0)
      return line(fmt::format("{}: {:.{}f} µs predicted", title, latency.us, latency.us < 10 ? 2 : 0));
    const std::string missing = count_of(latency.unknown, "cost") + " not known";
    if (latency.us < 1) return line(title + ": " + missing);
    line(fmt::format("{}: at least {:.0f} µs predicted, {}", title, latency.us, missing));
  }

  void clocks() {
    line("\nclocks");
    const Plan& named = by_template();
    std::vector<Row> rows;
    std::vector<uint32_t> clocks; // by row
    for (uint32_t c = 0; c < plan_.clocks.size(); ++c) {
      if (plan_.clocks[c].is_group) continue;
      clocks.push_back(c);
      rows.push_back({named.clocks[c].name, all_words_.clock_words(c), names_.stream_of_clock(c)});
    }
    struct Shown {
      std::string name, words;
    };
    std::vector<Shown> shown;
    for (const Fold& folded : fold(rows, names_)) {
      const Row& row = rows[folded.rows[0]];
      const uint32_t c = clocks[folded.rows[0]];
      if (folded.is_one())
        shown.push_back({name_of(plan_.clocks[c]), words_.clock_words(c)});
      else
        shown.push_back({counted(row.family, folded.rows.size()), row.key + rest(folded, rows, "; ")});
    }
    size_t width = 4;
    for (const Shown& one : shown) width = std::max(width, one.name.size());
    for (const Shown& one : shown) line(fmt::format("  {:<{}}  {}", one.name, width, one.words));
  }

  void groups() {
    if (plan_.groups.empty()) return;
    line("\ngroups");
    size_t width = 0;
    for (const GroupPlan& group : plan_.groups) width = std::max(width, group.name.size());
    for (const GroupPlan& group : plan_.groups) {
      std::string name = group.name;
      for (const std::string& words : group_lines(plan_, group))
        line(fmt::format("  {:<{}}  {}", std::exchange(name, ""), width, words));
    }
  }

  static std::string counted(const std::string& name, size_t count) { return fmt::format("{} ({})", name, count); }
  // Lists the streams of a folded row, unless the row's name says already which they are.
  std::string rest(const Fold& folded, const std::vector<Row>& rows, const char* between) const {
    return folded.is_rest ? "" : between + stream_words(folded, rows, names_);
  }

  void segments() {
    line("\nsegments");
    const std::vector<FoldedSegment> folded = fold_segments(plan_, by_template(), all_words_, names_);
    size_t name_width = 0, type_width = 0;
    for (const HandlerPlan& handler : plan_.handlers) {
      if (names_.empty() || handler.step == kNone) name_width = std::max(name_width, handler.name.size());
      type_width = std::max(type_width, handler.type.size());
    }
    for (const FoldedSegment& segment : folded)
      for (const std::vector<uint32_t>& steps : segment.lines)
        name_width = std::max(name_width, handler_name(steps).size());
    for (const FoldedSegment& segment : folded) {
      line("  " + segment_words(segment));
      for (const std::vector<uint32_t>& steps : segment.lines) {
        const Step& step = plan_.steps[steps[0]];
        std::string name;
        if (step.handler() != kNone)
          name = fmt::format("{:<{}}  {:<{}}  ", handler_name(steps), name_width, plan_.handlers[step.handler()].type,
                             type_width);
        const bool is_counted = step.handler() == kNone && steps.size() > segment.segments.size();
        const std::string count = is_counted ? fmt::format(" ({})", steps.size()) : "";
        line("    " + name + step_words(steps) + count);
        accesses(steps);
      }
    }
  }

  // "" for a step that the plan added.
  std::string handler_name(const std::vector<uint32_t>& steps) const {
    const uint32_t handler = plan_.steps[steps[0]].handler();
    if (handler == kNone) return "";
    return steps.size() == 1 ? plan_.handlers[handler].name : counted(named_.handlers[handler].name, steps.size());
  }

  std::string segment_words(const FoldedSegment& folded) const {
    const Segment& segment = plan_.segments[folded.segments[0]];
    if (folded.segments.size() == 1)
      return fmt::format("{}  {}", folded.segments[0], words_.segment_words(segment, worker_words({segment.home})));
    std::set<uint32_t> homes;
    for (const uint32_t s : folded.segments) homes.insert(plan_.segments[s].home);
    return fmt::format("{}  {} × {}{}{}", folded.segments[0], folded.segments.size(),
                       all_words_.segment_words(segment, worker_words(homes)), folded.streams.empty() ? "" : "; ",
                       folded.streams);
  }

  std::string step_words(const std::vector<uint32_t>& steps) const {
    if (steps.size() == 1) return words_.step_words(steps[0]);
    Variants variants;
    for (const uint32_t s : steps) variants.add(stream_name(s), all_words_.step_words(s));
    return variants.words();
  }

  const std::string& stream_name(uint32_t s) const {
    return names_.name_of(names_.stream_of_step(plan_, plan_.steps[s]));
  }

  void accesses(const std::vector<uint32_t>& steps) {
    const auto of = [&](uint32_t step) {
      std::vector<const AccessPlan*> found;
      for (const AccessPlan& access : plan_.accesses)
        if (access.step == step) found.push_back(&access);
      return found;
    };
    for (size_t i = 0; i < of(steps[0]).size(); ++i) {
      Variants variants;
      const PlanWords& words = steps.size() == 1 ? words_ : all_words_;
      for (const uint32_t s : steps)
        variants.add(steps.size() == 1 ? "" : stream_name(s), words.access_words(*of(s)[i]));
      line("    = " + variants.words());
    }
  }

  void edges() {
    line("\nedges");
    const Plan& named = by_template();
    std::vector<Row> rows;
    for (uint32_t e = 0; e < plan_.edges.size(); ++e) {
      Row row;
      row.stream = names_.stream_of_edge(plan_.edges[e]);
      row.family = plan::edge_words(named.edges[e]);
      row.key = row.family + "  " + all_words_.edge_words(e);
      rows.push_back(std::move(row));
    }
    const std::vector<Fold> folds = fold(rows, names_);
    const auto ends = [&](const Fold& folded) {
      return folded.is_one() ? plan::edge_words(plan_.edges[folded.rows[0]]) : rows[folded.rows[0]].family;
    };
    size_t width = 0;
    for (const Fold& folded : folds) width = std::max(width, ends(folded).size());
    for (const Fold& folded : folds) {
      const auto e = static_cast<uint32_t>(folded.rows[0]);
      const std::string gap(width - ends(folded).size() + 2, ' '); // the arrow has as many bytes in each
      const std::string words =
          folded.is_one() ? words_.edge_words(e) : all_words_.edge_words(e) + ", " + stream_words(folded, rows, names_);
      line("  " + ends(folded) + gap + words);
    }
  }

  void crossings() {
    if (plan_.crossings.empty()) return;
    line("\ncrossings");
    const Plan& named = by_template();
    std::vector<Row> rows;
    size_t node_width = 0;
    for (size_t i = 0; i < plan_.crossings.size(); ++i) {
      const CrossingPlan& crossing = named.crossings[i];
      Row row;
      row.stream = names_.stream_of_clock(plan_.paces[crossing.from].clock);
      row.family = crossing.name + words_.end_words(crossing);
      for (const CrossingValue& value : values_of(named, crossing)) row.family += " " + value.name;
      row.key = row.family + "  " + all_words_.crossing_words(crossing);
      rows.push_back(std::move(row));
      node_width = std::max(node_width, words_.end_words(crossing).size());
    }
    const std::vector<Fold> folds = fold(rows, names_);
    const auto name = [&](const Fold& folded) {
      return (folded.is_one() ? plan_ : named).crossings[folded.rows[0]].name;
    };
    size_t name_width = 0;
    for (const Fold& folded : folds) name_width = std::max(name_width, name(folded).size());
    for (const Fold& folded : folds) {
      const CrossingPlan& crossing = plan_.crossings[folded.rows[0]];
      const std::string words = folded.is_one()
                                    ? words_.crossing_words(crossing)
                                    : all_words_.crossing_words(crossing) + "; " + stream_words(folded, rows, names_);
      line(
          fmt::format("  {:<{}}  {:<{}}  {}", name(folded), name_width, words_.end_words(crossing), node_width, words));
    }
  }

  // The handlers that other nodes run, a line for each node.
  void elsewhere() {
    std::vector<std::string> lines;
    for (uint32_t node = 0; node < plan_.nodes.size(); ++node) {
      if (node == plan_.node) continue;
      std::vector<uint32_t> handlers;
      std::vector<Row> rows;
      for (uint32_t h = 0; h < plan_.handlers.size(); ++h) {
        if (plan_.handlers[h].node != node) continue;
        handlers.push_back(h);
        const std::string& name = by_template().handlers[h].name;
        rows.push_back({name, name, names_.stream_of(plan_.handlers[h])});
      }
      std::string names;
      for (const Fold& folded : fold(rows, names_)) {
        const HandlerPlan& handler = plan_.handlers[handlers[folded.rows[0]]];
        names += (names.empty() ? "" : ", ") +
                 (folded.is_one() ? handler.name : counted(rows[folded.rows[0]].family, folded.rows.size())) + " (" +
                 handler.type + ")";
      }
      if (!names.empty()) lines.push_back(plan_.nodes[node] + ": " + names);
    }
    list("on other nodes", lines);
  }

  void memory() {
    line("\nmemory");
    std::vector<Row> rows;
    for (size_t r = 0; r < plan_.rings.size(); ++r) {
      const Ring& ring = by_template().rings[r];
      Row row;
      row.stream = names_.stream_of_step(plan_, plan_.steps[plan_.outputs[ring.output].step]);
      row.family = fmt::format("{} {}", ring.domain, all_words_.ring_name(ring));
      row.key = row.family + "  " + ring_words(ring, 1);
      rows.push_back(std::move(row));
    }
    const std::vector<Fold> folds = fold(rows, names_);
    const auto name = [&](const Fold& folded) {
      return folded.is_one() ? words_.ring_name(plan_.rings[folded.rows[0]])
                             : all_words_.ring_name(named_.rings[folded.rows[0]]);
    };
    size_t width = 0;
    for (const Fold& folded : folds) width = std::max(width, name(folded).size());
    for (const Domain& domain : plan_.domains) {
      const auto sum = plan_.memory.find(domain.name);
      if (sum == plan_.memory.end()) continue;
      line(fmt::format("  {}  {}", domain.name, bytes_words(sum->second)));
      for (const Fold& folded : folds) {
        const size_t r = folded.rows[0];
        if (&plan_.domains[plan_.rings[r].domain] != &domain) continue;
        const std::string words = folded.is_one()
                                      ? ring_words(plan_.rings[r], 1)
                                      : ring_words(named_.rings[r], folded.rows.size()) + rest(folded, rows, "; ");
        line(fmt::format("    {:<{}}  {}", name(folded), width, words));
      }
      memory_of_bodies(domain, width, "what it works in", &Step::scratch_bytes);
      memory_of_bodies(domain, width, "what it takes by itself", &Step::taken_bytes);
      memory_of_bodies(domain, width, "its state", &Step::state_bytes);
    }
  }

  // The bytes that handlers there have beside rings, for this purpose.
  void memory_of_bodies(const Domain& domain, size_t width, const char* purpose, uint64_t (Step::*bytes)() const) {
    std::vector<const Step*> steps;
    std::vector<Row> rows;
    for (size_t s = 0; s < plan_.steps.size(); ++s) {
      const Step& step = plan_.steps[s];
      if ((step.*bytes)() == 0 || &plan_.domains[step.domain] != &domain) continue;
      const std::string& name = by_template().steps[s].name;
      steps.push_back(&step);
      rows.push_back({name, name + "  " + bytes_words((step.*bytes)()), names_.stream_of_step(plan_, step)});
    }
    for (const Fold& folded : fold(rows, names_)) {
      const size_t first = folded.rows[0], count = folded.rows.size();
      const std::string name = folded.is_one() ? steps[first]->name : rows[first].family;
      const std::string times = folded.is_one() ? "" : fmt::format("{} × ", count);
      const std::string streams = folded.is_one() ? "" : rest(folded, rows, "; ");
      line(fmt::format("    {:<{}}  {}{}: {}{}", name, width, times, bytes_words((steps[first]->*bytes)()), purpose,
                       streams));
    }
  }

  // "64 × 3 × 9.2 KiB = 1.7 MiB: 3 in flight" for the rings of 64 streams.
  static std::string ring_words(const Ring& ring, size_t count) {
    const uint64_t block = memory::block_bytes(ring.capacity);
    const std::string words = fmt::format("{} × {}", ring.length, bytes_words(block));
    const std::string reasons = ": " + PlanWords::reason_words(ring);
    if (count == 1) return words + reasons;
    return fmt::format("{} × {} = {}", count, words, bytes_words(count * ring.length * block)) + reasons;
  }

  void inserted() {
    std::vector<Row> rows;
    for (size_t i = 0; i < plan_.inserted.size(); ++i) {
      const InsertedPlan& inserted = by_template().inserted[i];
      rows.push_back({by_template().handlers[inserted.handler].name, all_words_.inserted_words(inserted),
                      names_.stream_of(plan_.handlers[inserted.handler])});
    }
    std::vector<std::string> lines;
    for (const Fold& folded : fold(rows, names_)) {
      const size_t i = folded.rows[0];
      lines.push_back(folded.is_one() ? words_.inserted_words(plan_.inserted[i])
                                      : rows[i].key + "; " + stream_words(folded, rows, names_));
    }
    list("inserted", lines);
  }

  void notes() { list("notes", notes_by_template(plan_, all_notes(plan_))); }

  void list(const char* title, const std::vector<std::string>& lines) {
    if (lines.empty()) return;
    line(std::string("\n") + title);
    for (const std::string& words : lines) line("  " + words);
  }

  const Plan& plan_;
  const TemplateNames names_;
  const Plan named_; // by template; empty without streams
  const PlanWords words_, all_words_;
  std::string text_;
};

} // namespace

std::string print_text(const Plan& plan) { return without_secrets(Printer(plan).text()); }

} // namespace millrace::plan
