// stats.fps: measures how many values a second come by.
#include <millrace/handler.h>

#include <array>
#include <charconv>

#include "handlers/stats/rate_meter.h"
#include "handlers/stats/readout.h"

namespace millrace::handlers {
namespace {

constexpr const char* kFpsManual = &R"(
Measures how many values a second come to it, over the last `window` seconds (the last 4096 values
at most), and hands them on unchanged, whatever they are: `out` is `in`. On a picture it writes the
number, in the picture's own memory if the plan allows (nv12 and i420: in luma only; p010: not at
all). `rate` has one record for every value but the first: the rate, the number of intervals that it
covers and how long they took together.

It measures wall time, that is, how fast the pipeline runs. So the number in the picture differs
from run to run, also under a `free` clock, whose pictures are otherwise the same each time. With
`time: media` it measures the ticks' media time instead: the speed at which the pictures are meant
to be shown, the same in every run. `draw: false` leaves pictures alone.

An edge from a handler with several outputs names one of them: `fps.out` here.

    test.pattern ! stats.fps name=fps window=2 ; fps.out ! null.sink
)"[1];

class Fps final : public Handler {
 public:
  Fps() {
    no_allocation();
    cost_hint_us(5);
  }

  void configure(const Formats& formats) override { readout_.configure(formats.in(in_)); }
  void start() override {
    meter_.clear();
    readout_.start();
  }
  void reset() override { meter_.clear(); }

  void process(Tick& tick, Cpu&) {
    meter_.add(*time_ == "media" ? tick.media_time_ns() : now_ns(), static_cast<int64_t>(window_ * 1e9));
    const Rate rate = meter_.rate();
    readout_.show(readout_.pass(tick, in_, out_), text_of(rate));
    if (rate.interval_count > 0 && rate_.connected()) rate_.allocate(tick, 1)[0] = rate;
  }

 private:
  std::string_view text_of(const Rate& rate) {
    if (rate.interval_count == 0) return "-- fps";
    constexpr std::string_view kUnit = " fps";
    const int digits = rate.per_second < 1000 ? 1 : 0;
    char* end = std::to_chars(line_.data(), line_.data() + line_.size() - kUnit.size(), rate.per_second,
                              std::chars_format::fixed, digits)
                    .ptr;
    end = std::copy(kUnit.begin(), kUnit.end(), end);
    return {line_.data(), static_cast<size_t>(end - line_.data())};
  }

  Input<Any> in_{*this, "in", help("anything but host objects")};
  Output<Any> out_{*this, "out", in_place(in_), help("the same value, with the number if it is a picture")};
  Output<Records<Rate>> rate_{*this, "rate", count_max(1), help("what is measured")};
  Param<double> window_{*this, "window", 1, "length of time that it covers", range(0.001, 3600), unit("s"), live};
  Param<std::string> time_{*this, "time", "wall", "which time is measured", choices({"wall", "media"})};
  Readout readout_{*this};
  RateMeter meter_;
  std::array<char, 32> line_{}; // long enough: 10^9 a second has ten digits
};

} // namespace

const mr_handler_type& stats_fps_type() {
  static const mr_handler_type type =
      detail::Type<Fps>::table("stats.fps", "Measures how many values a second come by", kFpsManual);
  return type;
}

} // namespace millrace::handlers
