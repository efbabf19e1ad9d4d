// Two nodes in one process, joined by a real link over the loopback, for `millrace bench net` and the rivals'
// comparison.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace millrace::bench {

enum class LinkKind : uint8_t { plain, tls, local };

// Sends `parcels` parcels of one value of `bytes` each as fast as they go, each from a block of its own. Returns the
// seconds from the first parcel's giving to the last one's arrival. Throws std::runtime_error if the link stands still
// for a minute.
double send_parcels(LinkKind kind, uint64_t bytes, uint64_t parcels);

// Sends parcels one by one, each `idle_ns` after the one before has arrived, and returns for each the ns from its
// giving to its arrival, without the first few.
std::vector<double> send_one_by_one(LinkKind kind, uint64_t bytes, uint64_t parcels, int64_t idle_ns);

} // namespace millrace::bench
