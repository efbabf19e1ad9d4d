// The facts that a handler reports while the plan is made: its rate and its cost (Facts), and the choices that its type
// offers on this machine (Offers).
#pragma once

#include <cstdint>
#include <string>

#include "millrace/abi.h"

#pragma GCC visibility push(hidden)
namespace millrace {
inline namespace v1 {

// The facts of a handler that has reported none yet.
inline mr_facts no_facts() {
  mr_facts facts{};
  facts.size = sizeof facts;
  facts.rate_den = 1;
  facts.time_den = 1;
  facts.tick_count = -1;
  return facts;
}

// Filled in by Handler::probe().
struct Facts {
  mr_facts* raw;
  void rate(int64_t numerator, int64_t denominator = 1) {
    raw->rate_num = numerator;
    raw->rate_den = denominator;
  }
  // The unit to which the source's times are rounded, in seconds: 1/1000 for Matroska, 1/90000 for MPEG-TS. With it the
  // clock finds the beat of a value whose time was rounded. Without it times are taken as right to the nanosecond.
  void time_unit(int64_t numerator, int64_t denominator) {
    raw->time_num = numerator;
    raw->time_den = denominator;
  }
  // The source cannot be slowed: a camera.
  void live() { raw->live = 1; }
  // The other sources of its clock choose the clock's mode and rate, and this one gives what it has by then. It chooses
  // only where it is alone: what a person does with a mouse does not make a film's clock a realtime one.
  void follows() { raw->follows = 1; }
  // With these parameters there is no GPU body.
  void no_gpu_body() { raw->no_gpu_body = 1; }
  // Calls of this source wait for something outside, such as the writer of a pipe. So it gets a thread of its own.
  void waits() { raw->waits = 1; }
  // The number of ticks until the end; -1: unknown.
  void tick_count(int64_t count) { raw->tick_count = count; }
  // The time of one call with these parameters, in microseconds, on the host and on a device. 0: unknown; negative: the
  // body does not run there. It takes precedence over cost_hint_us(), which is one number for the type.
  void cost_us(double cpu, double gpu = 0) {
    raw->cost_cpu_ns = static_cast<int64_t>(cpu * 1000);
    raw->cost_gpu_ns = static_cast<int64_t>(gpu * 1000);
  }
};

// The choices that a handler type offers on this machine, such as codecs. A handler class lists them in
// `static void offers(Offers&)`; `inspect` and `doctor` show them.
class Offers {
 public:
  using Say = void (*)(void* context, const char* part, const char* name, const char* words);
  Offers(void* context, Say say) : context_(context), say_(say) {}
  // `part`: "encoders"; `name`: "h264"; `words`: how to choose it and its purpose.
  void add(const std::string& part, const std::string& name, const std::string& words) {
    say_(context_, part.c_str(), name.c_str(), words.c_str());
  }

 private:
  void* context_;
  Say say_;
};

namespace detail {
template <class H>
concept HasOffers = requires(Offers& offers) {
  H::offers(offers);
};
} // namespace detail

} // namespace v1
} // namespace millrace
#pragma GCC visibility pop
