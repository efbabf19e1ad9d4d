// The commands of a stream of a device without hardware (cpu, sim), in a bounded ring. Two counters of the stream
// describe the ring, so submitting is a store, and the completion word is the ring's tail.
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

// Addresses are those that the command uses when it runs (body_address), not those that the host sees.
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
// A kernel that a body or set_tick() has enqueued.
struct Kernel {
  std::function<void()> run;
};
struct Replay {
  std::shared_ptr<RecordedCommands> recording;
  std::function<void()> first; // runs first and sets what changes from replay to replay; may be empty
};

// The engine that a command occupies while it takes time.
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

// Shared with its replays, because a device that is given up never reaches some of them.
struct RecordedCommands {
  explicit RecordedCommands(const std::atomic<bool>& device_failed) : given_up(device_failed) {}

  const std::atomic<bool>& given_up;
  std::vector<Command> commands;
  std::atomic<uint32_t> replays_in_flight{0};
  mr_device_tick tick{}; // numbers of the replay that runs, for kernels
};

struct CommandRecording final : Recording {
  explicit CommandRecording(std::shared_ptr<RecordedCommands> commands) : recorded(std::move(commands)) {}
  ~CommandRecording() override; // asserts that no replay of it is under way

  const std::shared_ptr<RecordedCommands> recorded;
};

// Runs the command here and now; a Wait does nothing. `stop` is checked between the commands of a recording.
void perform(const Command& command, const std::atomic<bool>& stop);

// One thread pushes. One thread at a time looks at the head and pops.
class QueuedStream : public Stream {
 public:
  explicit QueuedStream(uint32_t commands_max) : slots_(commands_max) {}

  // False if commands_max commands are under way. Never waits.
  bool push(Command command);

  // Null if nothing is under way.
  const Command* head() const {
    const uint64_t done = done_.load(std::memory_order_relaxed);
    return published_.load(std::memory_order_acquire) > done ? &slots_[done % slots_.size()] : nullptr;
  }
  // Completes the head: advances the completed word and wakes the hosts that wait on it. With `rings` it also wakes
  // those that wait on `wakeup`.
  void pop(bool rings = true);
  // Sets the completed word to kFailed for ever: its device is given up, and a command may never be over. Any thread.
  void fail();
  uint64_t done() const { return done_.load(std::memory_order_acquire); }

  // Not null between begin_record and end_record; the submitting thread's.
  std::shared_ptr<RecordedCommands> recording;

  std::atomic<uint64_t> reached{0}; // done() when the device failed; later commands are popped without running

 private:
  std::vector<Command> slots_;
  std::atomic<uint64_t> published_{0};
  std::atomic<uint64_t> done_{0}; // commands that are over; equals `completed` until fail()
};

// For devices whose streams are all queued streams.
inline QueuedStream& queued(Stream& stream) { return static_cast<QueuedStream&>(stream); }

} // namespace millrace::device
