// Control is with one page at a time. It is taken by the first input, kept by each further one, and given up after ten
// seconds without; another page may take it over at once.
#pragma once

#include <cstdint>

namespace millrace::viewer {

inline constexpr int64_t kLeaseNs = 10'000'000'000;

class Lease {
 public:
  // The page that has control; 0: none.
  uint64_t holder(int64_t now_ns) const { return now_ns < until_ns_ ? holder_ : 0; }
  // Input of a page: true if it counts, because the page has control now.
  bool renew(uint64_t page, int64_t now_ns) {
    const uint64_t has = holder(now_ns);
    if (has != 0 && has != page) return false;
    take(page, now_ns);
    return true;
  }
  void take(uint64_t page, int64_t now_ns) {
    holder_ = page;
    until_ns_ = now_ns + kLeaseNs;
  }
  void leave(uint64_t page) {
    if (holder_ == page) until_ns_ = INT64_MIN;
  }

 private:
  uint64_t holder_ = 0;
  int64_t until_ns_ = INT64_MIN;
};

} // namespace millrace::viewer
