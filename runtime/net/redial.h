// When a connection is dialled again: at once after a cut, then after 0.1 s, doubling to 5 s, each with jitter. One
// that was up for less than 0.1 s is not dialled at once, so that a line that cuts every connection costs ten dials a
// second.
#pragma once

#include <algorithm>
#include <cstdint>

#include "net/limits.h"

namespace millrace::net {

class Redial {
 public:
  void succeeded(int64_t now_ns) {
    wait_ns_ = 0;
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
    wait_ns_ = doubled(wait_ns_);
    return now_ns + wait;
  }

 private:
  static int64_t doubled(int64_t ns) { return ns == 0 ? kRedialFirstNs : std::min(2 * ns, kRedialMaxNs); }

  int64_t wait_ns_ = 0, refusal_ns_ = 0;
  int64_t up_ns_ = -kRedialMaxNs; // when it came up last
};

} // namespace millrace::net
