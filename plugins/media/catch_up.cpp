// The arithmetic of packets that wait; see catch_up.h.
#include "plugins/media/catch_up.h"

#include <algorithm>
#include <utility>

#include "plugins/media/pace.h"

namespace millrace::media {

namespace {

constexpr int64_t kStepMaxNs = 200'000'000; // a slow camera is caught up with at once

} // namespace

void CatchUp::gave(Clock::time_point asked, int64_t time_ns, int64_t usual_step_ns) {
  const int64_t told_ns = step_ns(std::exchange(last_ns_, time_ns), time_ns, kStepMaxNs);
  step_ = std::chrono::nanoseconds(told_ns > 0 ? told_ns : std::min(usual_step_ns, kStepMaxNs));
  due_ = asked + step_ / 2;
}

} // namespace millrace::media
