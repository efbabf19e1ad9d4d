// Runs commands, and implements the two ends of a stream's ring.
#include "device/command.h"

#include <cstring>

#include "observe/error.h"

namespace millrace::device {
namespace {

struct Performer {
  const std::atomic<bool>& stop;

  void operator()(const Work& work) const {
    if (work.run) work.run(work.context); // null: it only declares the accesses of the body before it
  }
  void operator()(const Kernel& kernel) const { kernel.run(); }
  void operator()(const Copy& copy) const {
    if (copy.bytes > 0) std::memmove(copy.target, copy.source, copy.bytes);
  }
  void operator()(const Fill& fill) const {
    if (fill.bytes > 0) std::memset(fill.target, fill.value, fill.bytes);
  }
  void operator()(const Wait&) const {}
  void operator()(const Replay& replay) const {
    if (replay.first) replay.first();
    for (const Command& command : replay.recording->commands) {
      if (stop.load(std::memory_order_relaxed)) return;
      perform(command, stop);
    }
  }
};

} // namespace

CommandRecording::~CommandRecording() {
  MR_ASSERT(recorded->replays_in_flight.load(std::memory_order_acquire) == 0 || recorded->given_up,
            "a recording was freed before its replay was done");
}

void perform(const Command& command, const std::atomic<bool>& stop) { std::visit(Performer{stop}, command.operation); }

bool QueuedStream::push(Command command) {
  if (issued - done() >= slots_.size()) return false;
  if (const Replay* replay = std::get_if<Replay>(&command.operation)) {
    replay->recording->replays_in_flight.fetch_add(1, std::memory_order_relaxed);
  }
  slots_[issued % slots_.size()] = std::move(command);
  ++issued;
  published_.store(issued, std::memory_order_release);
  return true;
}

void QueuedStream::pop(bool rings) {
  uint64_t done = done_.load(std::memory_order_relaxed);
  if (const Replay* replay = std::get_if<Replay>(&slots_[done % slots_.size()].operation)) {
    replay->recording->replays_in_flight.fetch_sub(1, std::memory_order_release);
  }
  done_.store(done + 1, std::memory_order_release);
  completed.compare_exchange_strong(done, done + 1, std::memory_order_release); // does not change kFailed
  completed.notify_all();
  if (wakeup && rings) wakeup->ring_all();
}

void QueuedStream::fail() {
  completed.store(kFailed, std::memory_order_release);
  completed.notify_all();
  if (wakeup) wakeup->ring_all();
}

} // namespace millrace::device
