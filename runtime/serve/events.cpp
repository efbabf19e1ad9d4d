// Makes events; see events.h.
#include "serve/events.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <mutex>
#include <utility>

#include "exec/counters.h"
#include "observe/error.h"
#include "serve/message.h"

namespace millrace::serve {

using nlohmann::ordered_json;

namespace {

constexpr const char* kTopics[] = {"counters", "state", "params", "log"};
constexpr int64_t kOneFillMs = 40;   // clients that ask within it get the same counters
constexpr int64_t kWindowMs = 1'000; // percentiles are those of one to two of these
constexpr int64_t kStaleMs = 30'000; // nobody has asked for so long: the window begins anew
constexpr size_t kLogLinesMax = 200; // in one event

std::string event_line(const char* topic, ordered_json params) {
  return ordered_json({{"jsonrpc", "2.0"}, {"method", topic}, {"params", std::move(params)}})
      .dump(-1, ' ', false, ordered_json::error_handler_t::replace);
}

double rounded(double number) { return std::round(number * 10) / 10; }

ordered_json columns() {
  const ordered_json times = {"per_s", "p50_us", "p99_us"};
  const auto with_times = [&](ordered_json names) {
    names.insert(names.end(), times.begin(), times.end());
    return names;
  };
  return {{"clocks", with_times({"ticks", "late", "skipped"})},
          {"handlers", with_times({"calls", "errors"})},
          {"edges", {"delivered", "empty", "waiting", "dropped"}},
          {"transfers", with_times({"copies", "bytes"})},
          {"regions", with_times({"handlers", "launches", "one_by_one"})},
          {"crossings", with_times({"parcels", "bytes", "lost", "waiting"})}};
}

} // namespace

// The counters of a run now, and what they were a while ago.
class Events::Window {
 public:
  explicit Window(const std::function<std::shared_ptr<exec::Counters>()>& make)
      : now_(make()), older_(make()), newer_(make()) {}
  // False while there is no run, or if another one came just now.
  bool is_there() const {
    const auto is_alike = [this](const auto& other) {
      return other && other->handlers.size() == now_->handlers.size() && other->edges.size() == now_->edges.size();
    };
    return now_ && is_alike(older_) && is_alike(newer_);
  }
  const std::string& line(int64_t now_ms, double at_s) {
    if (has_line_ && now_ms - filled_ms_ < kOneFillMs) return line_;
    has_line_ = has_line_ && now_ms - filled_ms_ < kStaleMs;
    filled_ms_ = now_ms;
    if (!has_line_) { // the run may be old: its window begins here
      older_ms_ = newer_ms_ = now_ms;
      older_->fill();
      newer_->fill();
    }
    now_->fill(); // last: no count is below those before
    const double window_s = static_cast<double>(now_ms - older_ms_) / 1000;
    line_ = event_line("counters", rows(at_s, window_s));
    has_line_ = true;
    if (now_ms - newer_ms_ < kWindowMs) return line_;
    std::swap(older_, newer_);
    older_ms_ = std::exchange(newer_ms_, now_ms);
    newer_->fill();
    return line_;
  }

 private:
  // Adds the rate of a count, and percentiles of times that were added in the window.
  void add_times(ordered_json& row, uint64_t count, uint64_t count_before, const Histogram& times,
                 const Histogram& before, double window_s) {
    passed_.copy(times);
    passed_.take_away(before);
    row.push_back(window_s > 0 ? rounded(static_cast<double>(count - count_before) / window_s) : 0);
    for (const double quantile : {0.5, 0.99})
      row.push_back(rounded(static_cast<double>(passed_.quantile_ns(quantile)) / 1000));
  }

  ordered_json rows(double at_s, double window_s) {
    const exec::Counters &now = *now_, &before = *older_;
    ordered_json clocks = ordered_json::array(), handlers = clocks, edges = clocks, transfers = clocks,
                 regions = clocks, crossings = clocks;
    for (size_t c = 0; c < now.clocks.size(); ++c) {
      const exec::ClockCounters &one = now.clocks[c], &was = before.clocks[c];
      add_times(clocks.emplace_back(ordered_json{one.ticks, one.late, one.skipped}), one.ticks, was.ticks,
                one.latencies, was.latencies, window_s);
    }
    for (size_t h = 0; h < now.handlers.size(); ++h) {
      const exec::HandlerCounters &one = now.handlers[h], &was = before.handlers[h];
      add_times(handlers.emplace_back(ordered_json{one.calls, one.errors}), one.calls, was.calls, one.times, was.times,
                window_s);
    }
    for (const exec::EdgeCounters& one : now.edges) {
      exec::CountsByCause dropped;
      exec::add_drops(one.dropped, dropped);
      edges.push_back({one.delivered, one.empty, one.waiting, ordered_json(dropped)});
    }
    for (size_t t = 0; t < now.transfers.size(); ++t) {
      const exec::TransferCounters &one = now.transfers[t], &was = before.transfers[t];
      add_times(transfers.emplace_back(ordered_json{one.copies, one.bytes}), one.copies, was.copies, one.times,
                was.times, window_s);
    }
    for (size_t r = 0; r < now.regions.size(); ++r) {
      const exec::RegionCounters &one = now.regions[r], &was = before.regions[r];
      add_times(regions.emplace_back(ordered_json{one.handlers, one.launches, one.one_by_one}), one.launches,
                was.launches, one.times, was.times, window_s);
    }
    for (size_t c = 0; c < now.crossings.size(); ++c) {
      const exec::CrossingCounters &one = now.crossings[c], &was = before.crossings[c];
      add_times(crossings.emplace_back(ordered_json{one.parcels, one.bytes, one.lost, one.waiting}), one.parcels,
                was.parcels, one.carried, was.carried, window_s);
    }
    return {{"at_s", rounded(at_s)}, {"window_s", rounded(window_s)}, {"clocks", clocks},   {"handlers", handlers},
            {"edges", edges},        {"transfers", transfers},        {"regions", regions}, {"crossings", crossings}};
  }

  std::shared_ptr<exec::Counters> now_, older_, newer_;
  int64_t filled_ms_ = 0, older_ms_ = 0, newer_ms_ = 0;
  bool has_line_ = false;
  std::string line_;
  Histogram passed_;
};

// Counters that all subscriptions share.
struct Events::Snapshots {
  std::mutex mutex;
  std::unique_ptr<Window> window;   // null before the first event, without a run, and while nobody counts
  std::weak_ptr<const void> counts; // held by subscriptions to counters
  bool have_ended = false;

  void drop() {
    const std::lock_guard lock(mutex);
    window = nullptr;
  }
};

Events::Events(EventSources sources) : sources_(std::move(sources)), snapshots_(std::make_shared<Snapshots>()) {}
Events::~Events() = default;

std::shared_ptr<Subscription> Events::subscribe(const Request& request, ordered_json& answer) const {
  const auto topics = request.params.find("topics");
  if (topics == request.params.end() || !topics->is_array())
    throw Refused(RpcCode::bad_params, "topics are such as [\"counters\", \"log\"]", "/params/topics");
  const std::vector<std::string> names(std::begin(kTopics), std::end(kTopics));
  auto made = std::make_shared<Subscription>();
  for (size_t n = 0; n < topics->size(); ++n) {
    const std::string at = "/params/topics/" + std::to_string(n);
    const ordered_json& topic = (*topics)[n];
    const std::string name = topic.is_string() ? topic.get<std::string>() : "";
    const std::array<std::pair<bool*, bool>, 4> flags = {{{&made->counters, bool(sources_.counters)},
                                                          {&made->state, bool(sources_.state)},
                                                          {&made->params, bool(sources_.values)},
                                                          {&made->log, bool(sources_.log)}}};
    const auto found = std::find(names.begin(), names.end(), name);
    if (found == names.end())
      throw Refused(RpcCode::bad_params, "there is no such topic; there are: " + listed_from(name, names), at,
                    nearest_name(name, names));
    const auto& [flag, is_there] = flags[static_cast<size_t>(found - names.begin())];
    if (!is_there) throw Refused(RpcCode::refused, "this run does not tell its " + name, at);
    *flag = true;
  }
  const auto hz = request.params.find("hz");
  const bool is_number = hz != request.params.end() && hz->is_number();
  const double rate = is_number ? hz->get<double>() : kEventsHz;
  if ((hz != request.params.end() && !is_number) || !(rate >= 0.1 && rate <= kEventsHzMax))
    throw Refused(RpcCode::bad_params, "hz is a number from 0.1 to 20", "/params/hz");
  answer = {{"topics", *topics}, {"hz", rate}};
  if (made->counters) answer["columns"] = columns();
  if (topics->empty()) return nullptr;
  made->period_ms = static_cast<int64_t>(std::round(1000 / rate));
  if (made->log) made->log_next = sources_.log->next();
  if (made->params) try { // from now on
      made->values_text = sources_.values();
      made->values = ordered_json::parse(made->values_text);
    } catch (const Failure&) { // there is no run yet: all of its values are news
    }
  if (!made->counters) return made;
  const std::lock_guard lock(snapshots_->mutex);
  made->counts = snapshots_->counts.lock();
  if (!made->counts) {
    const auto drop = [all = std::weak_ptr(snapshots_)](const void*) {
      if (const std::shared_ptr<Snapshots> still = all.lock()) still->drop();
    };
    made->counts = {snapshots_.get(), drop};
  }
  snapshots_->counts = made->counts;
  return made;
}

std::vector<std::string> Events::take(Subscription& to, int64_t now_ms) {
  to.due_ms = now_ms + to.period_ms;
  std::vector<std::string> lines;
  const std::lock_guard lock(snapshots_->mutex);
  if (snapshots_->have_ended) return lines;
  if (to.state) {
    std::string line = event_line("state", {{"state", sources_.state()}});
    if (line != to.state_told) lines.push_back(line);
    to.state_told = std::move(line);
  }
  if (to.params) try {
      std::string text = sources_.values();
      if (text != to.values_text) {
        ordered_json values = ordered_json::parse(text), changed = ordered_json::object();
        for (const auto& [handler, value] : values.items())
          if (to.values.value(handler, ordered_json()) != value) changed[handler] = value;
        if (!changed.empty()) lines.push_back(event_line("params", {{"handlers", changed}}));
        to.values = std::move(values);
        to.values_text = std::move(text);
      }
    } catch (const Failure&) { // there is no run yet
    }
  if (to.counters) {
    std::unique_ptr<Window>& window = snapshots_->window;
    if (!window) window = std::make_unique<Window>(sources_.counters);
    if (window->is_there())
      lines.push_back(window->line(now_ms, sources_.elapsed_s()));
    else
      window = nullptr;
  }
  if (to.log) {
    const LogTail::Part part = sources_.log->since(to.log_next, kLogLinesMax);
    to.log_next = part.next;
    if (!part.lines.empty() || part.left_out > 0) {
      ordered_json told = ordered_json::array();
      for (const std::string& line : part.lines) told.push_back(ordered_json::parse(line));
      ordered_json params = {{"lines", told}};
      if (part.left_out > 0) params["left_out"] = part.left_out;
      lines.push_back(event_line("log", std::move(params)));
    }
  }
  return lines;
}

void Events::forget_run() { snapshots_->drop(); }

void Events::end() {
  snapshots_->drop();
  const std::lock_guard lock(snapshots_->mutex);
  snapshots_->have_ended = true;
}

} // namespace millrace::serve
