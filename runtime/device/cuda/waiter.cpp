// The one thread of a device that waits: for hosts that have gone to sleep, and for words that the device does not
// know.
#include <algorithm>

#include "device/cuda/cuda_device.h"

namespace millrace::device::cuda {
namespace {

// The interval at which a word that comes without a notification is checked: far below a tick, and 20,000 checks a
// second cost little.
constexpr int64_t kForeignLookNs = 50'000;
// The interval at which the words of a failed device are set again, in case the hardware wrote an older one.
constexpr int64_t kAfterFailureNs = 1'000'000;

} // namespace

void CudaDevice::watch() {
  if (!waiting_->watched.exchange(true)) waiting_->wake.notify();
}

void CudaDevice::ring(const CudaStream& stream) {
  if (stream.wakeup) stream.wakeup->ring_all();
}

// Opens the gates of streams whose foreign words have come. True while some gates are closed.
bool CudaDevice::open_gates() {
  const std::lock_guard lock(foreign_mutex_);
  for (const Foreign& foreign : foreign_)
    if (foreign.held_until != kNotHeld && std::chrono::steady_clock::now() >= foreign.held_until)
      foreign.stream->resumed.store(foreign.gate, std::memory_order_release);
  std::erase_if(foreign_, [&](const Foreign& foreign) {
    const bool first = std::none_of(foreign_.begin(), foreign_.end(), [&](const Foreign& other) {
      return other.stream == foreign.stream && other.gate < foreign.gate && !other.fence.done();
    });
    if (!first || !foreign.fence.done()) return false;
    std::atomic_ref<uint64_t>(*foreign.stream->gate).store(foreign.gate, std::memory_order_release);
    return true;
  });
  return !foreign_.empty();
}

// Ends every pause(), so that no stream is held any more.
void CudaDevice::let_all_go() {
  {
    const std::lock_guard lock(foreign_mutex_);
    for (Foreign& foreign : foreign_)
      if (foreign.held_until != kNotHeld) foreign.held_until = {};
  }
  open_gates();
}

// The stream whose next fence hosts most likely wait for: copies down first, then bodies, then copies up.
CudaStream* CudaDevice::most_wanted() const {
  CudaStream* found = nullptr;
  const auto rank = [](const CudaStream& stream) {
    if (stream.kind == StreamKind::copy_out) return 0;
    return stream.kind == StreamKind::compute ? 1 : 2;
  };
  const size_t count = stream_count_.load(std::memory_order_acquire);
  for (size_t s = 0; s < count; ++s) {
    CudaStream* const stream = streams_[s].get();
    const uint64_t done = stream->completed.load(std::memory_order_acquire);
    if (done >= stream->signalled.load(std::memory_order_acquire)) continue;
    if (!found || rank(*stream) < rank(*found)) found = stream;
  }
  return found;
}

// The sum of all words: it changes whenever one has moved.
uint64_t CudaDevice::progress() const {
  uint64_t sum = 0;
  const size_t count = stream_count_.load(std::memory_order_acquire);
  for (size_t s = 0; s < count; ++s) sum += streams_[s]->completed.load(std::memory_order_acquire);
  return sum;
}

// Blocks until the stream's next fence is done. False if the device is destroyed meanwhile; nothing of it may then be
// touched.
bool CudaDevice::await(Waiting& waiting, CudaStream& stream) {
  const uint64_t next = stream.completed.load(std::memory_order_acquire) + 1;
  cudaEvent_t event = stream.event_behind(next);
  if (stream.recorded.load(std::memory_order_acquire) < next) { // no stream waits for it: take all that is enqueued
    const std::lock_guard lock(recording_mutex_);
    event = waiters_event_;
    if (!ask<Call::EventRecord>(event, stream.handle)) return true;
  }
  if (open_gates()) return true; // a gate closed meanwhile may be before the event, and this thread must open it
  const cudaError_t injected = api_.count(Call::EventSynchronize);
  {
    const std::lock_guard lock(waiting.mutex);
    if (waiting.closing) return false;
    waiting.in_driver = true;
  }
  const cudaError_t error = injected != cudaSuccess ? injected : cudaEventSynchronize(event);
  const std::lock_guard lock(waiting.mutex);
  waiting.in_driver = false;
  if (waiting.closing) return false;
  check(Call::EventSynchronize, error);
  return true;
}

void CudaDevice::wait_loop(const std::shared_ptr<Waiting>& waiting) {
  make_current();
  uint64_t rung_at = 0; // the progress at which hosts were last rung
  const auto closing = [&] {
    const std::lock_guard lock(waiting->mutex);
    return waiting->closing;
  };
  const auto ring_all = [&] {
    rung_at = progress();
    const size_t count = stream_count_.load(std::memory_order_acquire);
    for (size_t s = 0; s < count; ++s) ring(*streams_[s]);
  };
  while (true) {
    const uint32_t heard = waiting->wake.epoch();
    if (closing()) return;
    if (poisoned()) {
      complete_all();
      waiting->wake.wait(heard, kAfterFailureNs);
      continue;
    }
    const bool gates = open_gates();
    if (!waiting->watched.load() || gates) { // looks again and does not block while a gate may open
      if (gates && progress() != rung_at) ring_all();
      waiting->wake.wait(heard, gates ? kForeignLookNs : 0);
      continue;
    }
    waiting->watched = false;
    // Waits only once: that wakes all hosts, and those that sleep on ask again, unless their sleep is short in any
    // case.
    CudaStream* const stream = poisoned() ? nullptr : most_wanted();
    if (stream && !await(*waiting, *stream)) return;
    // Without a stream everything was over before this look, and the sleepers have not seen it.
    if (stream || progress() != rung_at) ring_all();
  }
}

} // namespace millrace::device::cuda
