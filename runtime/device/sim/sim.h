// A device in host memory, for tests and for machines without a GPU. It reports errors that CUDA silently tolerates
// (semantics.md 4.10). Work runs later than it is submitted, and the host cannot reach the device's memory. Options set
// its times and faults.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>

#include "device/sim/faults.h"

namespace millrace::device {

class Device;
class PinnedRanges;
class VirtualTime;

// A body that enqueues leaves its kernels here: Stream::native points to one. The stream also takes bodies of the other
// kind, through Device::run().
class SimQueue {
 public:
  // Runs `kernel` on the device's time, after earlier launches. The kernel uses addresses as bodies see them.
  virtual void launch(std::function<void()> kernel) = 0;

 protected:
  ~SimQueue() = default;
};

// Lets a test watch a device whose bodies enqueue, and set how long they take. Empty functions are not called.
struct SimWatcher {
  std::function<void(const std::string& call)> called; // "body NAME", "begin", "end", "hold", "let go", "allocate"
  std::function<int64_t(size_t bodies)> span_ns;       // the length of such a span; empty: there are no spans
  // takes_ns: with threads, the least time that a replay takes; replays are counted from 0. ends: called once that time
  // is over, before the replay's commands run. Any thread.
  std::function<int64_t(uint64_t replay)> takes_ns;
  std::function<void(uint64_t replay)> ends;
  std::function<void()> warmed_up;
  // If set, the device acts like hardware: it notifies only once for each call of watch(). The function is called by
  // watch() with the number of replays so far. Any thread.
  std::function<void(uint64_t replays)> watched;
};

class SimFabric;
// Connects the simulated devices of one runtime. If options.fabric is null, the device has no peers.
std::shared_ptr<SimFabric> make_fabric();

// How a device reaches the memory of another one on its fabric.
struct SimPeer {
  bool copies = true;     // it can copy from there
  int64_t latency_ns = 0; // per copy from there
  double bandwidth = 0;   // bytes per ns; 0: it takes its latency alone
  bool accesses = false;  // its bodies can read there
};

// Time passes in one of three ways:
//  threads      (time null)      one worker thread per stream. Copies take at least the time that latency and bandwidth
//                                say.
//  virtual      (time given)     no threads: commands last as long as declared, on `time`. There is one copy engine per
//                                direction and one engine for bodies, first come first served. A command takes effect
//                                when it ends.
//  adversarial                   nothing runs until force() or force_any(), then one ready command after another in an
//                                order that the seed gives. Unwritten and discarded bytes hold kPoison.
struct SimOptions {
  std::string domain = "sim:0";
  uint64_t bytes_limit = 1ull << 30;
  // The most commands under way on a stream; more poison the device, because submission never waits. The deepest window
  // (semantics.md 1.5) has a few commands for each handler.
  uint32_t commands_max = 4096;
  int64_t latency_ns = 0;    // per copy
  double bandwidth_up = 0;   // host to device, bytes per ns; 0: a copy takes its latency alone
  double bandwidth_down = 0; // device to host
  // Copies take their full time, but move at most this many bytes. For benchmarks that only look at times.
  uint64_t bytes_moved_max = UINT64_MAX;
  double speed = 1; // virtual: a body takes its declared cost divided by this
  // A command that begins while k other engines of the device are at work takes 1 + k × contention times as long.
  double contention = 0;
  std::shared_ptr<SimFabric> fabric;
  std::map<std::string, SimPeer> peers; // by domain
  bool adversarial = false;
  uint64_t seed = 0;           // adversarial: determines the order
  VirtualTime* time = nullptr; // outlives the device; not with adversarial
  // Shared by the devices of a runtime. Null: all host memory counts as pinned.
  std::shared_ptr<const PinnedRanges> pinned;
  // Poisons the device if a copy, a discard, or a body that declares its accesses (Work::accesses) races with an
  // earlier access to the same bytes: one of the two writes, and no stream order, fence or wait of the host orders
  // them. Exact in adversarial mode. In the other modes a race is missed if the earlier access happens to be over at
  // submission. Accesses of two devices to the same host memory are not compared.
  bool check_races = false;
  // Bodies may enqueue (Device::enqueuing), as on a GPU. As on a GPU, the words of a failed device then hold kFailed.
  bool enqueues = false;
  SimWatcher watcher;
  SimFaults faults;
};

inline constexpr unsigned char kPoison = 0xDB;

// Never fails; allocate() reports missing memory. A device is destroyed once nothing waits for its words; work that has
// not begun by then is dropped.
std::unique_ptr<Device> make_sim(const SimOptions& options);

} // namespace millrace::device
