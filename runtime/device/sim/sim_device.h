// The base of the three kinds of simulated device: memory, checks at submission, and the running of a command. The
// kinds differ in when a command runs.
#pragma once

#include <array>
#include <atomic>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "device/command.h"
#include "device/device.h"
#include "device/sim/access_guard.h"
#include "device/sim/access_races.h"
#include "device/sim/fabric.h"
#include "device/sim/sim.h"
#include "device/sim/twin_mapping.h"

namespace millrace::device {

class SimDevice : public Device, public Enqueuing {
 public:
  // A plan has a few arenas per domain (one per property), and a second plan lives beside it during a swap.
  static constexpr size_t kArenasMax = 256;

  ~SimDevice() override;

  Arena* allocate(uint64_t bytes, ArenaProperties properties, DeviceStatus& status) override;
  uint64_t bytes_allocated() const override { return bytes_allocated_; }
  uint64_t bytes_limit() const override { return options_.bytes_limit; }
  std::byte* body_address(std::byte* address) const override; // any thread

  Stream* create_stream(StreamKind kind) override;
  void run(Stream& stream, const Work& work) override;
  void copy(Stream& stream, std::byte* target, const std::byte* source, uint64_t bytes) override;
  void copy_pageable(Stream& stream, std::byte* target, const std::byte* source, uint64_t bytes) override;
  bool has_room(const Stream& stream) const override;
  void clear(Stream& stream, std::byte* target, uint64_t bytes) override;
  void wait(Stream& stream, const Fence& fence) override;
  Fence signal(Stream& stream) override;
  void discard(Stream& stream, std::byte* address, uint64_t bytes) override;
  bool poisons_discarded() const override { return options_.adversarial; }
  void begin_record(Stream& stream) override;
  std::unique_ptr<Recording> end_record(Stream& stream) override;
  void replay(Stream& stream, Recording& recording, const TickNumbers& numbers,
              std::span<const RecordedList> lists) override;
  void watch() override;

  // enqueuing.cpp
  Enqueuing* enqueuing() override { return options_.enqueues ? this : nullptr; }
  void call(Stream& stream, const Work& work) override;
  std::string take_body_error(Stream&) override { return ""; }
  void set_tick(Stream& stream, const TickNumbers& numbers) override;
  std::string record_failure() const override { return "told to fail"; }
  void warm_up(Stream& stream, Recording& recording) override;
  bool begin_span(Stream& stream) override;
  void end_span(Stream& stream, const Span& span) override;
  void collect_spans() override {}
  void pause(Stream& stream) override;
  void resume(Stream& stream) override;
  const void* library() const override { return nullptr; }

  bool checks_accesses() const override { return options_.check_races; }
  DeviceStatus status() const override;
  bool failed() const override { return poisoned(); }
  uint64_t reached(const Stream& stream) const override;
  bool is_stuck() const override { return poisoned() && executing_.load() > 0; }
  void declare_lost(const std::string& sentence) override;

 protected:
  explicit SimDevice(const SimOptions& options);

  // The submitting thread calls the first two. Any thread calls on_poison, once.
  virtual void on_stream(QueuedStream& stream) = 0;
  virtual void on_command(QueuedStream& stream) = 0;
  virtual void on_poison() = 0;

  // True if the head of a stream may begin.
  bool ready(const Command& command) const;
  // Runs the command, unless the device is poisoned. The caller then pops it.
  void execute(const Command& command);
  // Lets no command begin from now on.
  void give_up() { poisoned_ = true; }
  bool poisoned() const { return poisoned_.load(std::memory_order_acquire); }
  // True if a completed command must notify the event count.
  bool rings() { return !options_.watcher.watched || watched_.exchange(false); }
  // The time that a command takes if it begins while so many other engines of the device are at work.
  int64_t slowed_ns(int64_t cost_ns, uint32_t others) const;
  // Notified when a word has moved, here or on a peer.
  EventCount& moved() { return options_.fabric ? options_.fabric->moved : own_moved_; }

 private:
  struct SimArena {
    Arena arena;
    TwinMapping mapping;
    GuardedRange guard;
    SimArena(uint64_t bytes, ArenaProperties properties, const std::string& domain);
  };
  // One end of a copy, for the time when the copy runs.
  struct End {
    std::byte* address = nullptr; // null: the device may not copy from or to it
    bool on_device = false;
    const SimPeer* peer = nullptr; // the end is in this peer's memory
  };

  // Bytes in the memory of another device of the fabric.
  struct Elsewhere {
    std::byte* address = nullptr;  // as a body or copy sees it; null: no device has it
    const SimPeer* peer = nullptr; // null: this device does not reach it
  };

  Elsewhere find_elsewhere(const std::byte* address, uint64_t bytes) const;
  const SimArena* find_arena(const std::byte* address) const;
  const std::byte* as_host_sees(const std::byte* address) const;
  End find_end(const std::byte* address, uint64_t bytes) const;
  bool refuse_while_recording(Stream& stream, const char* call);
  std::unique_ptr<QueuedStream> make_stream();
  static const mr_device_tick* tick_of(const Stream& stream); // the stream's own, not a recording's
  void submit(Stream& stream, Command command);
  std::function<void()> beginning_of_replay(RecordedCommands& recording, const TickNumbers& numbers,
                                            std::span<const RecordedList> lists);
  void tell(const std::string& call) const;
  void check_races(const QueuedStream& stream, const Command& command);
  void check_race(const QueuedStream& stream, const AccessRaces::Party& party, const Access& access);
  Injected count_and_inject(const Command& command);
  void poison(DeviceError error, const std::string& sentence);
  void fail_words();

  const SimOptions options_;
  EventCount own_moved_;
  uint64_t bytes_allocated_ = 0;
  std::array<std::unique_ptr<SimArena>, kArenasMax> arenas_;
  std::atomic<size_t> arena_count_{0}; // entries below it never change
  std::vector<std::unique_ptr<QueuedStream>> streams_;
  std::mutex streams_mutex_; // poison() reads the streams while one may be added
  std::mutex submitting_; // guards races_, runs_ and copies_: bodies that enqueue may submit from two threads at once
  AccessRaces races_;
  uint64_t allocations_ = 0, runs_ = 0, copies_ = 0, recordings_ = 0; // submitted so far, for SimFaults
  std::atomic<uint64_t> replays_{0};
  std::atomic<size_t> span_bodies_{0}; // called since a span began; two threads may be in bodies
  std::atomic<bool> watched_{false};
  std::atomic<bool> poisoned_{false};
  std::atomic<uint32_t> executing_{0}; // commands that run at this moment
  mutable std::mutex status_mutex_;
  DeviceStatus status_;
};

std::unique_ptr<Device> make_threaded_sim(const SimOptions& options);
std::unique_ptr<Device> make_virtual_sim(const SimOptions& options);
std::unique_ptr<Device> make_adversarial_sim(const SimOptions& options);

} // namespace millrace::device
