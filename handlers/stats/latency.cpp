// stats.latency: measures how long after their beat values come by.
#include <millrace/handler.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>

#include "handlers/stats/latency_window.h"
#include "handlers/stats/readout.h"

namespace millrace::handlers {
namespace {

constexpr const char* kLatencyManual = &R"(
Measures how long after its beat each value comes to it, and hands values on unchanged, whatever
they are: `out` is `in`. On a picture it writes the median and 99th percentile of the last `window`
values (nv12 and i420: in luma only; p010: not at all). `latency` has a record for every value that
could be measured: p50, p99 and maximum in microseconds, and the number of values that they cover.

A tick's deadline is one period of the clock after the beat that it was due at. The period is
`1 / rate`, or, if `rate` is 0, the shortest step from one deadline to the next. That step is exact
under a `realtime` clock. Under the clock of a live source, whose deadlines follow its jitter, it is
at most as wrong as the source is late. Ticks without a deadline (a `free` clock, a file) cannot be
measured: `latency` is empty, and the picture says `no deadline`. The report of the run has the time
that the whole tick takes there.

It measures wall time, so the numbers in pictures differ from run to run. `draw: false` leaves
pictures alone.

    test.pattern fps=50 live=true ! stats.latency name=late rate=50 ; late.out ! null.sink
)"[1];

class LatencyMeter final : public Handler {
 public:
  LatencyMeter() {
    no_allocation();
    cost_hint_us(8);
  }

  void configure(const Formats& formats) override { readout_.configure(formats.in(in_)); }
  void start() override {
    times_ns_ = LatencyWindow(static_cast<uint32_t>(*window_));
    due_times_ = DueTimes(rate_ > 0 ? std::llround(1e9 / rate_) : 0);
    readout_.start();
  }
  void reset() override {
    times_ns_.clear();
    due_times_.clear();
  }

  void process(Tick& tick, Cpu&) {
    const auto due = due_times_.due_ns(tick.deadline_ns());
    if (due) times_ns_.add(now_ns() - *due);
    const bool needed = readout_.wanted() || latency_.connected();
    const Latency latency = needed ? times_ns_.latency() : Latency{};
    readout_.show(readout_.pass(tick, in_, out_), text_of(latency, tick.deadline_ns() != 0));
    if (due && latency_.connected()) latency_.allocate(tick, 1)[0] = latency;
  }

 private:
  std::string_view text_of(const Latency& latency, bool has_deadline) {
    if (latency.count == 0) return has_deadline ? "p50 -- ms" : "no deadline";
    char* end = append(line_.data(), "p50 ", latency.p50_us);
    end = append(end, "  p99 ", latency.p99_us);
    return {line_.data(), static_cast<size_t>(end - line_.data())};
  }
  // Appends the label, and milliseconds with two decimals.
  static char* append(char* end, std::string_view label, double us) {
    end = std::copy(label.begin(), label.end(), end);
    const double shown = std::clamp(us / 1000, -1e9, 1e9);
    end = std::to_chars(end, end + kNumberMax, shown, std::chars_format::fixed, 2).ptr;
    return std::copy_n(" ms", 3, end);
  }

  static constexpr size_t kNumberMax = 16; // ten digits, a sign, a point and two more digits
  static constexpr size_t kLineMax = 64;

  Input<Any> in_{*this, "in", help("anything but host objects")};
  Output<Any> out_{*this, "out", in_place(in_), help("the same value, with the numbers if it is a picture")};
  Output<Records<Latency>> latency_{*this, "latency", count_max(1), help("what is measured")};
  Param<int64_t> window_{*this, "window", 240, "number of values that it covers", range(1, LatencyWindow::kCountMax)};
  Param<double> rate_{*this,         "rate",     0, "beats a second of the clock; 0: taken from the deadlines",
                      range(0, 1e6), unit("1/s")};
  Readout readout_{*this};
  LatencyWindow times_ns_;
  DueTimes due_times_;
  std::array<char, kLineMax> line_{};
};

} // namespace

const mr_handler_type& stats_latency_type() {
  static const mr_handler_type type = detail::Type<LatencyMeter>::table(
      "stats.latency", "Measures how long after their beat values come by", kLatencyManual);
  return type;
}

} // namespace millrace::handlers
