// When a connection is dialled again: at once after a cut, then after 0.1 s, doubling to 5 s, each wait twice and each
// with jitter. One that was up for less than 0.1 s is not dialled at once, so that a line that cuts every connection
// costs ten dials a second.
//
// A link whose line was away for up to 1 s flows again less than 1 s after the line is back. Waits come twice for that:
//
//   wait, s             0   0.1  0.1  0.2   0.2   0.4   0.4   0.8
//   dial, s, latest     0   0.1  0.2  0.4   0.6   1.0   1.4   2.2
//   dial, s, soonest    0   0.08 0.15 0.30  0.45  0.75  1.05  1.65
//
// With the most jitter the seventh dial is at 1.05 s, so none that fails within 1 s is followed by a wait of 0.8 s: the
// line is found at most 0.4 s after it is back. That leaves 0.6 s for the dial that is failing when it comes back, and
// then for two connections one after the other, control and data, each with its handshake. Both took at most 6 ms on an
// idle machine, and 41 ms with four busy programs a core (TLS, tests/net/faults). An outage that is a bit longer than
// 1 s costs little: up to 2.25 s no wait is longer than 0.8 s. With each wait once it was 0.8 s already from 0.53 s on,
// and 1.6 s from 1.13 s on.
//
// Each connection has its own waits. Once control is up, data connections are dialled at once, however long they had
// still to wait. A dial that nobody refuses or answers is TCP's to repeat, after 1 s, then 3 s.
#pragma once

#include <algorithm>
#include <cstdint>

#include "net/limits.h"

namespace millrace::net {

class Redial {
 public:
  void succeeded(int64_t now_ns) {
    wait_ns_ = 0;
    is_second_ = false;
    up_ns_ = now_ns;
  }
  // The peer refused the connection, or was refused: it will be so the next time too. Each refusal doubles the wait,
  // also where the connection was up in between, unless it was up for long.
  void refused(int64_t now_ns) {
    if (now_ns - up_ns_ >= kRedialMaxNs) refusal_ns_ = 0;
    refusal_ns_ = doubled(refusal_ns_);
    wait_ns_ = std::max(wait_ns_, refusal_ns_);
  }

  // The time of the next attempt. `random` spreads peers that were all cut off by one router: by up to a quarter.
  int64_t next_ns(int64_t now_ns, uint64_t random) {
    if (now_ns - up_ns_ < kRedialFirstNs) wait_ns_ = std::max(wait_ns_, kRedialFirstNs);
    const int64_t wait = wait_ns_ - static_cast<int64_t>(random % 1024) * (wait_ns_ / 4) / 1024;
    const bool is_last = wait_ns_ == 0 || is_second_;
    if (is_last) wait_ns_ = doubled(wait_ns_);
    is_second_ = !is_last;
    return now_ns + wait;
  }

 private:
  static int64_t doubled(int64_t ns) { return ns == 0 ? kRedialFirstNs : std::min(2 * ns, kRedialMaxNs); }

  int64_t wait_ns_ = 0, refusal_ns_ = 0;
  bool is_second_ = false;        // the next wait is one that comes for the second time
  int64_t up_ns_ = -kRedialMaxNs; // when it came up last
};

} // namespace millrace::net
