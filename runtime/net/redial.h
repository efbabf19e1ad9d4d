// When a connection is dialled again: at once after a cut, then after 0.1 s, doubling to 5 s, each with jitter.
#pragma once

#include <algorithm>
#include <cstdint>

#include "net/limits.h"

namespace millrace::net {

class Redial {
 public:
  // The connection worked. A refusal after that says that it will not work the next time either.
  void succeeded() { wait_ns_ = 0; }
  void refused() { wait_ns_ = std::max(wait_ns_, kRedialFirstNs); }

  // The time of the next attempt. `random` spreads peers that were all cut off by one router: by up to a quarter.
  int64_t next_ns(int64_t now_ns, uint64_t random) {
    const int64_t wait = wait_ns_ - static_cast<int64_t>(random % 1024) * (wait_ns_ / 4) / 1024;
    wait_ns_ = wait_ns_ == 0 ? kRedialFirstNs : std::min(2 * wait_ns_, kRedialMaxNs);
    return now_ns + wait;
  }

 private:
  int64_t wait_ns_ = 0;
};

} // namespace millrace::net
