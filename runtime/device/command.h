// What a stream of a device without hardware holds (cpu, sim): commands in a bounded ring that the stream's own two
// counters describe, so that submitting is a store and the completion word is the ring's tail.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <utility>
#include <variant>
#include <vector>

#include "device/device.h"
#include "millrace/abi.h"

namespace millrace::device {

struct RecordedCommands;

// Addresses are where the bytes are found when the command runs (body_address), not as the host sees them.
struct Copy {
  std::byte* target;
  const std::byte* source;
  uint64_t bytes;
};
struct Fill {
  std::byte* target;
  uint64_t bytes;
  unsigned char value;
};
struct Wait {
  Fence fence;
};
// A body that enqueues left this on its stream.
struct Kernel {
  std::function<void()> run;
};
struct Replay {
  std::shared_ptr<RecordedCommands> recording;
  std::function<void()> first; // what changes from replay to replay; may be empty
};

// What a command occupies while it takes time.
enum class Engine : uint8_t { none, compute, copy_in, copy_out, copy_peer };
inline constexpr uint32_t kEngineCount = 5;

// Injected faults (sim/sim.h) are tied to a command when it is submitted, so that they strike at the same place in
// every mode and on every run.
enum class Injected : uint8_t { none, fault, lost, hang };

struct Command {
  std::variant<Work, Copy, Fill, Wait, Kernel, Replay> operation;
  Engine engine = Engine::none;
  Injected injected = Injected::none;
  int64_t cost_ns = 0;

  const Wait* wait() const { return std::get_if<Wait>(&operation); }
};

// Shared with its replays: a device that is given up never comes to some of them.
struct RecordedCommands {
  explicit RecordedCommands(const std::atomic<bool>& device_failed) : given_up(device_failed) {}

  const std::atomic<bool>& given_up;
  std::vector<Command> commands;
  std::atomic<uint32_t> replays_in_flight{0};
  mr_device_tick tick{}; // of the replay that runs, for kernels
};

struct CommandRecording final : Recording {
  explicit CommandRecording(std::shared_ptr<RecordedCommands> commands) : recorded(std::move(commands)) {}
  ~CommandRecording() override; // asserts that no replay of it is under way

  const std::shared_ptr<RecordedCommands> recorded;
};

// Runs the command here and now; a Wait does nothing. `stop` is asked between the commands of a recording.
void perform(const Command& command, const std::atomic<bool>& stop);

// One thread pushes, one at a time looks at the head and pops.
class QueuedStream : public Stream {
 public:
  explicit QueuedStream(uint32_t commands_max) : slots_(commands_max) {}

  // False where commands_max are under way. Never waits.
  bool push(Command command);

  // Null where nothing is under way.
  const Command* head() const {
    const uint64_t done = done_.load(std::memory_order_relaxed);
    return published_.load(std::memory_order_acquire) > done ? &slots_[done % slots_.size()] : nullptr;
  }
  // Completes the head: advances the completed word and wakes the hosts that wait on it; with `rings` also those that
  // wait on `wakeup`.
  void pop(bool rings = true);
  // Its device is given up while a command may never be over: the word says that all is over, for ever. Any thread.
  void fail();
  uint64_t done() const { return done_.load(std::memory_order_acquire); }

  // Not null between begin_record and end_record; the submitting thread's.
  std::shared_ptr<RecordedCommands> recording;

  std::atomic<uint64_t> reached{0}; // done() when the device failed: it is done with what follows without running it

 private:
  std::vector<Command> slots_;
  std::atomic<uint64_t> published_{0};
  std::atomic<uint64_t> done_{0}; // commands that are over: `completed`, but for one that failed
};

// For devices all of whose streams are queued ones.
inline QueuedStream& queued(Stream& stream) { return static_cast<QueuedStream&>(stream); }

} // namespace millrace::device
