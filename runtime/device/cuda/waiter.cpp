// The one thread of a device that waits: for hosts that have gone to sleep, and for words that the device does not
// know.
#include <algorithm>

#include "device/cuda/cuda_device.h"

namespace millrace::device::cuda {
namespace {

// How often a word is looked at that nobody rings for: far below a tick, and 20,000 looks a second are little.
constexpr int64_t kForeignLookNs = 50'000;
// How often the words of a device that failed are set anew, in case the hardware wrote an older one.
constexpr int64_t kAfterFailureNs = 1'000'000;

} // namespace

void CudaDevice::watch() {
  if (!watched_.exchange(true)) wake_.ring();
}

void CudaDevice::ring(const CudaStream& stream) {
  if (stream.bell) stream.bell->ring_if_asleep();
}

// Opens the gates of streams that wait for words of others. True while some are closed.
bool CudaDevice::open_gates() {
  const std::lock_guard lock(foreign_mutex_);
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

// How far all words are together: changes whenever one has moved.
uint64_t CudaDevice::progress() const {
  uint64_t sum = 0;
  const size_t count = stream_count_.load(std::memory_order_acquire);
  for (size_t s = 0; s < count; ++s) sum += streams_[s]->completed.load(std::memory_order_acquire);
  return sum;
}

void CudaDevice::wait_loop() {
  make_current();
  uint64_t rung_at = 0; // the progress at which hosts were last rung
  const auto ring_all = [&] {
    rung_at = progress();
    const size_t count = stream_count_.load(std::memory_order_acquire);
    for (size_t s = 0; s < count; ++s) ring(*streams_[s]);
  };
  while (!closing_) {
    const uint32_t heard = wake_.rings();
    if (poisoned()) {
      complete_all();
      wake_.sleep(heard, kAfterFailureNs);
      continue;
    }
    const bool gates = open_gates();
    if (!watched_.exchange(false)) {
      wake_.sleep(heard, gates ? kForeignLookNs : 0);
      continue;
    }
    while (CudaStream* const stream = closing_ || poisoned() || gates ? nullptr : most_wanted()) {
      if (call<Call::EventRecord>(waiters_event_, stream->handle)) call<Call::EventSynchronize>(waiters_event_);
      ring_all();
      if (!stream->bell || !stream->bell->anyone_asleep()) break;
    }
    if (progress() != rung_at) ring_all(); // it was over before it was looked at: who sleeps has not seen it
    if (gates) watched_ = true;            // looks again, and does not block where a gate may open
  }
}

} // namespace millrace::device::cuda
