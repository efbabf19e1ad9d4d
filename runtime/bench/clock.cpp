// `millrace bench clock`: how late a beat is, and whether the clock drifts.
//
// `lateness` is the time from when a beat is due until the handler after the clock's source is entered. The benchmark
// computes due times itself: n periods after the first beat, independent of the runtime. `asleep` is a worker that
// sleeps until a beat (the default), `spinning` one that never sleeps, `nanosleep` a bare thread that only calls
// clock_nanosleep with absolute times, `bare spin` a bare thread that reads the clock until it is time. They take
// turns, a short stretch each, so that a noisy machine is as noisy for all. Each stretch has one p99.9; the row has the
// median and the worst of them.
//
// `drift` is how much later the last thousand of 10^5 beats at 10 kHz were than the first thousand, by their medians:
// 10 s of wall time. `rounding` is from 10^5 beats of 30000/1001 Hz, nearly an hour, in virtual time, where nothing
// else can move a beat: the largest distance of a beat from its exact time.
#include "bench/measure.h"

#include <millrace/handler.h>

#include <algorithm>
#include <cmath>
#include <ctime>

#include "device/timeline.h"
#include "exec/run_options.h"
#include "observe/report.h"

namespace millrace::bench {

namespace {

struct Beat {
  int64_t media_time_ns, entered_ns, deadline_ns;
};
std::vector<Beat>* beats = nullptr;
const device::VirtualTime* virtual_time = nullptr; // null: beats run in the machine's time

struct NotesBeats final : Handler {
  NotesBeats() { no_allocation(); }
  Input<Any> in{*this, "in"};
  void process(Tick& tick, Cpu&) {
    beats->push_back({tick.media_time_ns(), virtual_time ? virtual_time->now_ns() : now_ns(), tick.deadline_ns()});
  }
};

const mr_plugin& clock_plugin() {
  static const mr_handler_type notes = detail::Type<NotesBeats>::table("bench.notes_beats", "Notes when", "");
  static const mr_handler_type* const types[] = {&notes};
  static const mr_plugin plugin = {sizeof(mr_plugin), MR_ABI_VERSION, "bench", "1", types, 1, 0};
  return plugin;
}

std::vector<Beat> run_clock(graph::Rational rate, uint64_t ticks, exec::RunOptions options) {
  graph::Graph graph;
  graph::Clock clock;
  clock.mode = graph::ClockMode::realtime;
  clock.rate = rate;
  graph.clocks.push_back(clock);
  add(graph, "source", "null.source", "");
  add(graph, "notes", "bench.notes_beats", "source");
  std::vector<Beat> noted;
  noted.reserve(ticks);
  beats = &noted;
  virtual_time = options.virtual_time;
  options.ticks_max = ticks;
  run_graph(graph, 1, options, &clock_plugin());
  return noted;
}

// The first beats of a stretch warm up the code and the timer.
constexpr size_t kWarmBeats = 5;

// Beats that were not taken in time are skipped, so a tick's index is not its beat's number.
double number_of(const Beat& beat, double period_ns) {
  return std::round(static_cast<double>(beat.media_time_ns) / period_ns);
}

std::vector<double> lateness_us(const std::vector<Beat>& noted, double period_ns) {
  std::vector<double> late;
  if (noted.empty()) return late;
  // A beat's deadline is the due time of the next beat.
  const double first_ns = static_cast<double>(noted[0].deadline_ns) - (number_of(noted[0], period_ns) + 1) * period_ns;
  for (size_t i = kWarmBeats; i < noted.size(); ++i)
    late.push_back((static_cast<double>(noted[i].entered_ns) - first_ns - number_of(noted[i], period_ns) * period_ns) /
                   1000);
  return late;
}

std::vector<double> bare_lateness_us(double period_ns, uint64_t ticks, bool spins) {
  std::vector<double> late;
  late.reserve(ticks);
  const int64_t begin_ns = monotonic_ns();
  for (uint64_t i = 1; i <= ticks; ++i) {
    const int64_t due_ns = begin_ns + std::llround(static_cast<double>(i) * period_ns);
    const timespec due{due_ns / 1'000'000'000, due_ns % 1'000'000'000};
    if (spins) {
      while (monotonic_ns() < due_ns) {
      }
    } else {
      while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &due, nullptr) != 0) {
      }
    }
    if (i > kWarmBeats) late.push_back(static_cast<double>(monotonic_ns() - due_ns) / 1000);
  }
  return late;
}

void bench_lateness(int64_t rate, uint64_t ticks, std::vector<Row>& rows) {
  constexpr int kRounds = 4;
  constexpr const char* kNames[] = {"asleep", "nanosleep", "spinning", "bare spin"};
  std::vector<double> late[4], p999[4];
  const double period_ns = 1e9 / static_cast<double>(rate);
  for (int r = 0; r < kRounds; ++r) {
    for (size_t v = 0; v < 4; ++v) {
      const bool spins = v >= 2;
      exec::RunOptions options;
      if (spins) options.spin_ns = INT64_MAX;
      const std::vector<double> round = v % 2 == 0 ? lateness_us(run_clock({rate, 1}, ticks, options), period_ns)
                                                   : bare_lateness_us(period_ns, ticks, spins);
      late[v].insert(late[v].end(), round.begin(), round.end());
      p999[v].push_back(quantile(round, 0.999));
    }
  }
  for (size_t v = 0; v < 4; ++v) {
    const std::string variant = std::to_string(rate) + " Hz, " + kNames[v];
    rows.push_back(row_of("clock", variant, "lateness", "us", late[v]));
    rows.push_back(row_of("clock", variant, "lateness_p99.9", "us", p999[v]));
  }
}

void bench_drift(std::vector<Row>& rows) {
  constexpr uint64_t kBeats = 100'000, kEnd = 1'000;
  exec::RunOptions options;
  options.spin_ns = INT64_MAX;
  const std::vector<double> late = lateness_us(run_clock({10'000, 1}, kBeats, options), 1e5);
  if (late.size() >= 2 * kEnd) {
    const double drift =
        quantile({late.end() - kEnd, late.end()}, 0.5) - quantile({late.begin(), late.begin() + kEnd}, 0.5);
    rows.push_back({"clock", "10000 Hz, 10^5", "drift", "us", drift, drift, late.size()});
  }
  device::VirtualTime time;
  options.virtual_time = &time;
  const std::vector<Beat> noted = run_clock({30'000, 1'001}, kBeats, options);
  const double period_ns = 1e9 * 1001 / 30000;
  std::vector<double> off_ns;
  for (const Beat& beat : noted)
    off_ns.push_back(std::abs(static_cast<double>(beat.entered_ns - noted[0].entered_ns) -
                              (number_of(beat, period_ns) - number_of(noted[0], period_ns)) * period_ns));
  const double worst = off_ns.empty() ? 0 : *std::max_element(off_ns.begin(), off_ns.end());
  rows.push_back({"clock", "29.97 Hz, 10^5", "rounding", "ns", worst, worst, off_ns.size()});
}

} // namespace

std::vector<Row> bench_clock() {
  std::vector<Row> rows;
  bench_lateness(60, 150, rows);
  bench_lateness(1000, 1000, rows);
  bench_drift(rows);
  return rows;
}

} // namespace millrace::bench
