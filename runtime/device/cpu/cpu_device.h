// The host as a device: memory is the host's own, and commands run as they are submitted.
#pragma once

#include <deque>
#include <memory>
#include <mutex>
#include <vector>

#include "device/command.h"
#include "device/device.h"
#include "device/pinned_ranges.h"

namespace millrace::device {

// Like any device, it holds back a stream's commands that come after a fence that is not done. They run once kick(),
// force() or the next submission finds the fence done. So every function belongs to the submitting thread, except
// status(), failed(), reached() and declare_lost().
class CpuDevice final : public Device {
 public:
  // The most commands that a stream holds back. The deepest window (semantics.md 1.5) has a few commands for each
  // handler.
  static constexpr uint32_t kCommandsHeldMax = 4096;

  // Pinned arenas are entered in `pinned` unless it is null. bytes_limit 0: as much as the system gives.
  explicit CpuDevice(std::shared_ptr<PinnedRanges> pinned = nullptr, uint64_t bytes_limit = 0);
  ~CpuDevice() override;

  Arena* allocate(uint64_t bytes, ArenaProperties properties, DeviceStatus& status) override;
  uint64_t bytes_allocated() const override { return bytes_allocated_; }
  uint64_t bytes_limit() const override { return bytes_limit_; }

  Stream* create_stream(StreamKind kind) override;
  void run(Stream& stream, const Work& work) override;
  void copy(Stream& stream, std::byte* target, const std::byte* source, uint64_t bytes) override;
  void clear(Stream& stream, std::byte* target, uint64_t bytes) override;
  void wait(Stream& stream, const Fence& fence) override;
  Fence signal(Stream& stream) override;
  void begin_record(Stream& stream) override;
  std::unique_ptr<Recording> end_record(Stream& stream) override;
  void replay(Stream& stream, Recording& recording, const TickNumbers&, std::span<const RecordedList>) override;

  void kick() override;
  bool force(const Fence& fence) override;
  bool force_any() override;
  DeviceStatus status() const override;
  void declare_lost(const std::string& sentence) override;

 private:
  void submit(Stream& stream, Command command);
  // Runs the commands that the stream holds back, up to a fence that is not done. False if none could run.
  bool advance(QueuedStream& stream);
  void poison(DeviceError error, const std::string& sentence);

  std::shared_ptr<PinnedRanges> pinned_;
  uint64_t bytes_limit_;
  uint64_t bytes_allocated_ = 0;
  std::deque<Arena> arenas_;
  std::vector<std::unique_ptr<QueuedStream>> streams_;
  std::atomic<bool> poisoned_{false};
  mutable std::mutex status_mutex_;
  DeviceStatus status_;
};

} // namespace millrace::device
