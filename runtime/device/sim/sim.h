// A device in host memory, for tests and for machines without a GPU: what CUDA silently tolerates is an error here
// (semantics.md 4.10). Work runs later than it is submitted, the host cannot reach the device's memory, time and faults
// are as the options say.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>

#include "device/device.h"
#include "device/pinned_ranges.h"
#include "device/timeline.h"

namespace millrace::device {

// Faults that strike at a place counted in the order of submission, so that they strike there on every run and in every
// mode. Counts begin at 1; 0: never. A replay counts all bodies and copies in it; it fails as a whole, before the
// first.
struct SimFaults {
  uint64_t out_of_memory = 0; // the n-th allocate() finds none
  uint64_t fail_run = 0;      // the n-th body faults instead of running
  uint64_t fail_copy = 0;     // the n-th copy faults
  uint64_t lose_device = 0;   // the device is lost when the n-th body or copy would begin
  uint64_t hang_command = 0;  // the n-th body or copy does not begin before the device is poisoned
  // Where bodies enqueue:
  uint64_t fail_record = 0; // the n-th recording cannot be had
  uint64_t fail_replay = 0; // the device is lost when the n-th replay is submitted
};

// A body that enqueues leaves its kernels here: Stream::native points to one. Device::run() takes
// bodies of the other kind on it too.
class SimQueue {
 public:
  // Runs on the device's time, after what was launched before it, with addresses as bodies have them.
  virtual void launch(std::function<void()> kernel) = 0;

 protected:
  ~SimQueue() = default;
};

// A test watches a device whose bodies enqueue, and says how long they take. Empty functions are not called.
struct SimWatcher {
  std::function<void(const std::string& call)> called; // "body NAME", "begin", "end", "hold", "let go", "allocate"
  std::function<int64_t(size_t bodies)> span_ns;       // of a span with so many bodies; empty: there are no spans
  // With threads: what each replay takes at least, counted from 0, and that it is over. Any thread.
  std::function<int64_t(uint64_t replay)> takes_ns;
  std::function<void(uint64_t replay)> ends;
  std::function<void()> warmed_up;
  // Set: like hardware the device rings for nobody who has not asked it to watch; told how many replays there were. Any
  // thread.
  std::function<void(uint64_t replays)> watched;
};

// There are three ways in which time passes:
//  threads      (time null)      a worker thread a stream. Copies take at least the time that latency and bandwidth
//                                say.
//  virtual      (time given)     no threads: commands last as long as declared, on `time`; a copy engine a direction
//                                and one for bodies, first come first served. A command takes effect when it ends.
//  adversarial                   nothing runs until force() or force_any(), then one ready command after another in an
//                                order that the seed gives. Unwritten and discarded bytes hold kPoison.
class SimFabric;
// What joins the simulated devices of one runtime. Null options.fabric: the device has no peers.
std::shared_ptr<SimFabric> make_fabric();

// How a device reaches the memory of another one on its fabric.
struct SimPeer {
  bool copies = true;     // it can copy from there
  int64_t latency_ns = 0; // of such a copy
  double bandwidth = 0;   // bytes per ns; 0: it takes its latency alone
  bool accesses = false;  // its bodies can read there
};

struct SimOptions {
  std::string domain = "sim:0";
  uint64_t bytes_limit = 1ull << 30;
  // A stream that has more than this under way poisons the device: submission never waits. The deepest window
  // (semantics.md 1.5) has a few commands for each handler.
  uint32_t commands_max = 4096;
  int64_t latency_ns = 0;    // of a copy
  double bandwidth_up = 0;   // host to device, bytes per ns; 0: a copy takes its latency alone
  double bandwidth_down = 0; // device to host
  // Copies take their time, but move no more than so many bytes: benchmarks that look at times alone.
  uint64_t bytes_moved_max = UINT64_MAX;
  double speed = 1; // virtual: a body takes its declared cost divided by this
  // What begins while k other engines of the device are at work takes 1 + k × contention times as long.
  double contention = 0;
  std::shared_ptr<SimFabric> fabric;
  std::map<std::string, SimPeer> peers; // by domain
  bool adversarial = false;
  uint64_t seed = 0;           // adversarial: of the order
  VirtualTime* time = nullptr; // outlives the device; not with adversarial
  // Shared by the devices of a runtime. Null: all host memory counts as pinned.
  std::shared_ptr<const PinnedRanges> pinned;
  // Copies, discards and bodies that say what they touch (Work::accesses) poison the device where no stream order,
  // fence or wait of the host puts one behind an earlier one of the same bytes, and one of the two writes. Exact in
  // adversarial mode; elsewhere it finds what has not yet come to pass by itself. What two devices do to the same host
  // memory is not compared.
  bool check_races = false;
  // Bodies may enqueue (Device::enqueuing), as a GPU's do. Like a GPU's, the words of a device that has failed then say
  // kFailed.
  bool enqueues = false;
  SimWatcher watcher;
  SimFaults faults;
};

inline constexpr unsigned char kPoison = 0xDB;

// Never fails: what cannot be had is told by allocate(). A device is destroyed once nobody waits for its words; what
// has not begun by then is given up.
std::unique_ptr<Device> make_sim(const SimOptions& options);

} // namespace millrace::device
