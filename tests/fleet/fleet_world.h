// A simulated fleet: a coordinator and its members over links that are slow, are cut and come back, and processes that
// stop, die and come twice. One seed is one history.
//
// A message arrives whole, after those that were said before it, or is lost with its connection. Each side hears of a
// cut 3 s after it last heard the other, as a link's heartbeat tells it.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "device/timeline.h"
#include "fleet/coordinator.h"
#include "fleet/member.h"
#include "observe/random.h"

namespace millrace::fleet {

inline constexpr int64_t kMs = 1'000'000, kSecond = 1'000 * kMs;

struct FleetSetup {
  uint32_t nodes = 2;
  std::vector<bool> needed; // by node
  int64_t latency_ns_most = 20'000'000;
  int64_t run_ns_most = 20'000'000'000; // how long a node's run takes
  uint32_t fails_per_mille = 0;         // of runs: it fails on a tick
  uint32_t unable_per_mille = 0;        // of preparations
  uint32_t streams_most = 0;            // that fail in a run, each on a tick
};

// The tick on which a stream has failed, and its epoch.
struct FailedTick {
  uint32_t epoch = 0;
  uint64_t index = 0;
  // True if it counts, and not the other one.
  bool counts_before(const FailedTick& other) const {
    return epoch > other.epoch || (epoch == other.epoch && index < other.index);
  }
  friend bool operator==(const FailedTick&, const FailedTick&) = default;
};

class FleetWorld {
 public:
  FleetWorld(uint64_t seed, const FleetSetup& setup);

  // A new process of the node; the one before lives on if it was not killed.
  uint32_t begin(uint32_t node);
  void kill(uint32_t process);
  void cut(uint32_t process, int64_t for_ns);
  void pause(uint32_t process, int64_t for_ns); // it neither hears nor says anything, and then hears it all
  void stop() { coordinator.stop(time.now_ns()), poll(); }
  void run_until(int64_t at_ns);
  // True if all is over within that time: at the coordinator, and at each process that lives.
  bool run_to_the_end(int64_t within_ns);

  // The first promise that was not kept; "": none.
  std::string broken;

  struct Process {
    uint32_t node = 0;
    Link link = 0;
    uint64_t number = 0;
    std::unique_ptr<Member> member;
    bool is_dead = false;
    int64_t cut_until_ns = 0, paused_until_ns = 0;
    int64_t arrives_no_earlier_ns[2] = {0, 0}; // by direction: messages keep their order
    uint64_t connection = 0;                   // counts cuts: what an older one carries is lost
    bool heard_by_coordinator = false, hears_coordinator = false;
    uint32_t started_revision = 0, prepared_revision = 0;
    bool runs = false, finished = false, over = false;
    std::optional<RunFailure> own_failure, told_failure;
    std::map<std::string, FailedTick> own_streams, told_streams; // that have failed
    std::optional<Error> over_error;
  };
  const std::vector<std::unique_ptr<Process>>& processes() const { return processes_; }
  // As the coordinator told it.
  bool is_begun = false, is_over = false;
  std::optional<RunFailure> failure;
  uint64_t compiles = 0, refusals = 0, given_up = 0;
  std::vector<std::string> last_waits;

  device::VirtualTime time;
  Random random;
  Coordinator coordinator;

 private:
  void poll();
  void poll(Process& process);
  void act(Process& process, const Member::Event& event);
  void finish(Process& process);
  void fail_streams(Process& process);
  void send(Process& process, bool to_coordinator, std::string text);
  void connect(Process& process);
  void look_for_silence(Process& process, uint64_t connection);
  void later(int64_t after_ns, std::function<void()> call) { time.schedule(time.now_ns() + after_ns, std::move(call)); }
  void later_in(Process& process, int64_t after_ns, std::function<void()> call);
  void require(bool holds, const std::string& sentence);

  FleetSetup setup_;
  std::vector<std::unique_ptr<Process>> processes_;
  std::map<uint32_t, std::string> hash_of_revision_;
  std::map<uint32_t, int64_t> zero_of_epoch_;
};

} // namespace millrace::fleet
