// `millrace bench net`: how fast parcels go over a link of two nodes in one process, over the loopback.
//
// A case is the transport and the size of a parcel's one value: TCP as it is (which carries a CRC-32C of its own), TLS
// 1.3 with AES-128-GCM, a Unix socket. `rate` is from the first parcel's giving to the last one's arrival in its block,
// by the value's bytes alone; `parcels` the same in parcels. All cases take turns. `one_way` is the time of a single
// parcel of 1 KiB from its giving to its arrival: `warm` directly after the one before, `idle` 1 ms later, when both
// threads of the link sleep.
#include <array>

#include "bench/measure.h"
#include "bench/net_pair.h"

namespace millrace::bench {
namespace {

struct Kind {
  LinkKind kind;
  const char* name;
};
constexpr Kind kKinds[] = {{LinkKind::plain, "plain"}, {LinkKind::tls, "tls"}, {LinkKind::local, "local"}};

// The last one is 1920 × 1080 in RGB. As many parcels as take some 0.2 s.
struct Size {
  uint64_t bytes, parcels;
  const char* name;
};
constexpr Size kSizes[] = {
    {1024, 100'000, "1 KiB"}, {64 * 1024, 8'000, "64 KiB"}, {1024 * 1024, 600, "1 MiB"}, {6'220'800, 100, "6.2 MB"}};
constexpr int kNetTurns = 9;
constexpr uint64_t kSingles = 2'000, kIdleSingles = 500;
constexpr int64_t kIdleNs = 1'000'000;

} // namespace

std::vector<Row> bench_net() {
  std::array<std::array<std::vector<double>, std::size(kSizes)>, std::size(kKinds)> seconds;
  for (int turn = 0; turn < kNetTurns; ++turn)
    for (size_t s = 0; s < std::size(kSizes); ++s)
      for (size_t k = 0; k < std::size(kKinds); ++k)
        seconds[k][s].push_back(send_parcels(kKinds[k].kind, kSizes[s].bytes, kSizes[s].parcels));
  std::vector<Row> rows;
  for (size_t k = 0; k < std::size(kKinds); ++k) {
    const std::string name = kKinds[k].name;
    for (size_t s = 0; s < std::size(kSizes); ++s) {
      std::vector<double> megabytes, parcels;
      for (const double duration : seconds[k][s]) {
        parcels.push_back(static_cast<double>(kSizes[s].parcels) / duration);
        megabytes.push_back(parcels.back() * static_cast<double>(kSizes[s].bytes) / 1e6);
      }
      rows.push_back(row_of("net", name + ", " + kSizes[s].name, "rate", "MB/s", megabytes));
      rows.push_back(row_of("net", name + ", " + kSizes[s].name, "parcels", "1/s", parcels));
    }
    const auto single = [&](const char* variant, uint64_t parcels, int64_t idle_ns) {
      std::vector<double> us = send_one_by_one(kKinds[k].kind, kSizes[0].bytes, parcels, idle_ns);
      for (double& time : us) time /= 1000;
      rows.push_back(row_of("net", name + ", " + variant, "one_way", "us", us));
    };
    single("warm", kSingles, 0);
    single("idle", kIdleSingles, kIdleNs);
  }
  return rows;
}

} // namespace millrace::bench
