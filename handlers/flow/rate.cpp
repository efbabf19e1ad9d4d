// flow.rate: lowers a rate.
#include <millrace/handler.h>

#include "handlers/flow/beat.h"

namespace millrace::handlers {
namespace {

constexpr const char* kRateManual = &R"(
Hands on fewer values than it gets; the ticks between are empty, and nothing is copied. `one_in: k`
keeps the first of every k values that come (`every: k` at a handler counts ticks instead).
`per_second` divides media time into so many beats a second and keeps the first value of each beat.
So 30 a second become exactly 25, and slower values all pass. Two values in neighbouring beats may
be closer to each other than one beat. With both, `per_second` limits the values that `one_in`
keeps. Both may change while it runs.

A rate cannot be raised here: within a clock a port carries at most one value a tick, so there is
nowhere to put a repeated one. An edge with `policy: latest` to a faster clock repeats values.

    test.pattern width=320 height=240 count=60 fps=30 ! flow.rate per_second=10 ! null.sink
)"[1];

class RateLimiter final : public Handler {
 public:
  RateLimiter() {
    no_allocation();
    cost_hint_us(0.02);
  }

  void start() override { reset(); }
  void reset() override {
    come_ = 0;
    has_beat_ = false;
  }

  void process(Tick& tick, Cpu&) {
    if (come_++ % static_cast<uint64_t>(*one_in_) != 0) return;
    if (per_second_ > 0) {
      const int64_t beat = beat_of(tick.media_time_ns(), per_second_);
      const bool same = has_beat_ && beat == beat_ && per_second_ == beat_rate_;
      has_beat_ = true;
      beat_ = beat;
      beat_rate_ = per_second_;
      if (same) return;
    }
    out_.forward(tick, in_);
  }

 private:
  Input<Any> in_{*this, "in", help("anything")};
  Output<Any> out_{*this, "out", forward(in_), help("the same value, or none")};
  Param<double> per_second_{
      *this, "per_second",        0,          "values a second of media time at most; 0: no limit",
      live,  range(0, 1'000'000), unit("1/s")};
  Param<int64_t> one_in_{*this, "one_in", 1, "keeps the first of so many values", live, at_least(1)};
  uint64_t come_ = 0; // values since the stream began
  int64_t beat_ = 0;  // the last beat that had a value, of beat_rate_ a second
  double beat_rate_ = 0;
  bool has_beat_ = false;
};

} // namespace

const mr_handler_type& flow_rate_type() {
  static const mr_handler_type type = detail::Type<RateLimiter>::table("flow.rate", "Lowers a rate", kRateManual);
  return type;
}

} // namespace millrace::handlers
