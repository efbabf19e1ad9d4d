// Makes arenas with mmap, and runs commands by calling them.
#include "device/cpu/cpu_device.h"

#include <sys/mman.h>

#include <algorithm>

#include "device/host_pages.h"
#include "observe/error.h"

namespace millrace::device {
namespace {

// From this size on, 2 MiB pages of the kernel are worth it: they save misses, and waste at most 1/4 of the memory.
constexpr uint64_t kHugePageArenaMin = 8ull << 20;

} // namespace

CpuDevice::CpuDevice(std::shared_ptr<PinnedRanges> pinned, uint64_t bytes_limit)
    : Device("cpu"), pinned_(std::move(pinned)), bytes_limit_(bytes_limit) {}

CpuDevice::~CpuDevice() {
  poisoned_ = true; // commands that are held back are dropped, not run
  for (const auto& stream : streams_) advance(*stream);
  for (const Arena& arena : arenas_) {
    const bool stays_locked = arena.properties.pinned && pinned_ && !pinned_->remove(arena.base);
    // Leaked: hardware that was given up may still write there, and the next owner of the addresses could not lock
    // them.
    if (stays_locked) continue;
    munmap(arena.base, arena.bytes);
  }
}

Arena* CpuDevice::allocate(uint64_t bytes, ArenaProperties properties, DeviceStatus& status) {
  record_allocation();
  const uint64_t rounded = round_up_to_pages(std::max<uint64_t>(bytes, 1));
  const bool within = rounded >= bytes && (bytes_limit_ == 0 || rounded <= bytes_limit_ - bytes_allocated_);
  void* base = within ? mmap(nullptr, rounded, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) : MAP_FAILED;
  if (base == MAP_FAILED) {
    status = {DeviceError::out_of_memory, "cpu has no " + std::to_string(bytes) + " bytes left"};
    return nullptr;
  }
  if (rounded >= kHugePageArenaMin) madvise(base, rounded, MADV_HUGEPAGE); // advice: a kernel may have no huge pages
  if (properties.pinned && pinned_) {
    if (const std::string wrong = pinned_->add(static_cast<std::byte*>(base), rounded); !wrong.empty()) {
      munmap(base, rounded);
      status = {DeviceError::out_of_memory,
                "cpu cannot lock the pages of " + std::to_string(bytes) + " bytes: " + wrong};
      return nullptr;
    }
  }
  bytes_allocated_ += rounded;
  Arena& arena = arenas_.emplace_back(Arena{static_cast<std::byte*>(base), rounded, properties});
  status = {};
  return &arena;
}

Stream* CpuDevice::create_stream(StreamKind kind) {
  auto stream = std::make_unique<QueuedStream>(kCommandsHeldMax);
  stream->kind = kind;
  stream->index = static_cast<uint32_t>(streams_.size());
  streams_.push_back(std::move(stream));
  return streams_.back().get();
}

void CpuDevice::run(Stream& stream, const Work& work) { submit(stream, {work}); }

void CpuDevice::copy(Stream& stream, std::byte* target, const std::byte* source, uint64_t bytes) {
  submit(stream, {Copy{target, source, bytes}});
}

void CpuDevice::clear(Stream& stream, std::byte* target, uint64_t bytes) {
  if (queued(stream).recording) return poison(DeviceError::invalid, "cpu: clear() while its stream records");
  submit(stream, {Fill{target, bytes, 0}});
}

void CpuDevice::wait(Stream& stream, const Fence& fence) {
  if (queued(stream).recording) return poison(DeviceError::invalid, "cpu: wait() while its stream records");
  for (const auto& own : streams_) {
    MR_ASSERT(fence.word != &own->completed || fence.sequence <= own->issued, "a wait for a fence that was not issued");
  }
  if (!fence.done()) submit(stream, {Wait{fence}});
}

Fence CpuDevice::signal(Stream& stream) {
  if (queued(stream).recording) poison(DeviceError::invalid, "cpu: signal() while its stream records");
  return {&stream.completed, stream.issued};
}

void CpuDevice::begin_record(Stream& stream) {
  MR_ASSERT(!queued(stream).recording, "the stream records already");
  queued(stream).recording = std::make_shared<RecordedCommands>(poisoned_);
}

std::unique_ptr<Recording> CpuDevice::end_record(Stream& stream) {
  MR_ASSERT(queued(stream).recording, "the stream does not record");
  return std::make_unique<CommandRecording>(std::move(queued(stream).recording));
}

void CpuDevice::replay(Stream& stream, Recording& recording, const TickNumbers&, std::span<const RecordedList>) {
  if (queued(stream).recording) return poison(DeviceError::invalid, "cpu: replay() while its stream records");
  submit(stream, {Replay{static_cast<CommandRecording&>(recording).recorded, {}}});
}

void CpuDevice::kick() { force_any(); }

bool CpuDevice::force(const Fence& fence) {
  while (!fence.done()) {
    if (!force_any()) return false;
  }
  return true;
}

bool CpuDevice::force_any() {
  bool moved = false;
  for (const auto& stream : streams_) moved = advance(*stream) || moved;
  return moved;
}

DeviceStatus CpuDevice::status() const {
  const std::lock_guard lock(status_mutex_);
  return status_;
}

void CpuDevice::declare_lost(const std::string& sentence) { poison(DeviceError::lost, sentence); }

void CpuDevice::submit(Stream& stream, Command command) {
  QueuedStream& target = queued(stream);
  if (target.recording) {
    target.recording->commands.push_back(std::move(command));
    return;
  }
  if (!target.push(std::move(command))) {
    return poison(DeviceError::invalid,
                  "cpu: a stream holds back more than " + std::to_string(kCommandsHeldMax) + " commands");
  }
  advance(target);
}

bool CpuDevice::advance(QueuedStream& stream) {
  bool moved = false;
  while (const Command* command = stream.head()) {
    const bool stopped = poisoned_.load(std::memory_order_relaxed);
    if (!stopped && command->wait() && !command->wait()->fence.done()) return moved;
    if (!stopped) perform(*command, poisoned_);
    stream.pop();
    moved = true;
  }
  return moved;
}

void CpuDevice::poison(DeviceError error, const std::string& sentence) {
  const std::lock_guard lock(status_mutex_);
  if (poisoned_.exchange(true)) return;
  status_ = {error, sentence};
}

} // namespace millrace::device
