// Streams of a device and points in them: what a program that waits for work needs of a device. See device.h.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>

#include "device/bells.h"

struct mr_device_tick; // abi.h: the numbers of a tick as kernels read them

namespace millrace::device {

class Device;
class Enqueuing;

// The value of a failed device's words: of a cuda device, and of a sim device that enqueues or was declared lost.
inline constexpr uint64_t kFailed = UINT64_MAX;

// A point in a stream. Done when the word has reached the sequence; a null word is always done.
struct Fence {
  const std::atomic<uint64_t>* word = nullptr;
  uint64_t sequence = 0;
  bool done() const { return !word || word->load(std::memory_order_acquire) >= sequence; }
};

enum class StreamKind { compute, copy_in, copy_out, copy_peer };

// Runs work in order. `issued` counts submissions, `completed` counts those that are done; both only grow. The unit is
// the device's own (queued commands on cpu and sim, signals and replays on cuda), and a call may add none, one or
// several. So only fences tell how far a caller's work is.
struct Stream {
  StreamKind kind = StreamKind::compute;
  uint32_t index = 0;               // within its device
  std::atomic<uint64_t>& completed; // in memory that the device can write, if the device writes it by itself
  uint64_t issued = 0;              // belongs to the submitting thread
  // For bodies that enqueue (Enqueuing): the queue that they enqueue to, and the tick that kernels read, in device
  // memory. Between begin_record and end_record both are the recording's.
  void* native = nullptr;
  const mr_device_tick* tick = nullptr;
  // All are rung after `completed` has advanced. Set it before the first command. It is shared, because the waiters may
  // be gone by then.
  std::shared_ptr<Bells> wakeup;

  Stream() : completed(own_word_) {}
  explicit Stream(std::atomic<uint64_t>& word) : completed(word) {}
  virtual ~Stream() = default;

 private:
  std::atomic<uint64_t> own_word_{0};
};

// Bytes that a body reads or writes, by their address as the host sees it.
struct Access {
  const std::byte* address = nullptr;
  uint64_t bytes = 0;
  bool writes = false;
};

} // namespace millrace::device
