// Implements memory, streams, fences and time of one GPU; see cuda_device.h.
#include "device/cuda/cuda_device.h"

#include <algorithm>
#include <cstring>
#include <fstream>

#include "device/cuda/words.h"
#include "millrace/nearest.h"
#include "observe/error.h"
#include "observe/start_thread.h"

namespace millrace::device::cuda {
namespace {

constexpr size_t kLine = 128;      // space for one word: a processor never fetches two words at once
constexpr size_t kStreamsMax = 64; // per device; a run has four
constexpr size_t kTicksMax = 1024; // recordings and streams that have a tick of their own
constexpr size_t kSpansMax = 64;   // open or not reported yet
constexpr uint64_t kSmallCopyMax = 4096;
// A gate with this value is open for every wait of its stream. It is INT64_MAX, because the hardware compares as signed
// numbers.
constexpr uint64_t kAllGates = INT64_MAX;
// The longest time that a stream is held: a body is submitted in microseconds, and a body that waits is noticed soon.
constexpr auto kHeldMax = std::chrono::milliseconds(20);
// The most signals under way on one stream. CUDA itself holds about a thousand launches before it makes the caller
// wait.
constexpr uint64_t kUnderWayMax = CudaStream::kEvents - 1;

Hardware hardware_of(uint32_t ordinal) {
  cudaDeviceProp properties{};
  if (cudaGetDeviceProperties(&properties, static_cast<int>(ordinal)) != cudaSuccess) {
    (void)cudaGetLastError(); // the next call of a submitter says what is wrong
    return {};
  }
  return {properties.name, static_cast<uint32_t>(properties.multiProcessorCount),
          static_cast<uint32_t>(properties.major), static_cast<uint32_t>(properties.minor),
          properties.sharedMemPerBlockOptin};
}

} // namespace

CudaDevice::CudaDevice(uint32_t ordinal, const ModuleOptions& options, std::shared_ptr<Group> group,
                       const void* library)
    : Device("cuda:" + std::to_string(ordinal)),
      ordinal_(ordinal),
      api_(options.faults, status_.sentence),
      pinned_(options.pinned),
      group_(std::move(group)),
      library_(library) {
  if (const std::string wrong = status_.sentence; !wrong.empty()) poison(DeviceError::invalid, wrong);
  make_current();
  if (!api_.is_complete())
    poison(DeviceError::invalid, domain() + ": its driver lacks stream memory operations or graphs of kernels");
  if (poisoned()) return;
  size_t free = 0, total = 0;
  if (!ask<Call::MemGetInfo>(&free, &total)) return;
  bytes_limit_ = total;
  cudaMemPoolProps properties{};
  properties.allocType = cudaMemAllocationTypePinned;
  properties.location = {cudaMemLocationTypeDevice, static_cast<int>(ordinal_)};
  uint64_t keep = UINT64_MAX; // freed memory stays in the pool
  void* words = nullptr;
  const bool made =
      ask<Call::MemPoolCreate>(&pool_, &properties) &&
      ask<Call::MemPoolSetAttribute>(pool_, cudaMemPoolAttrReleaseThreshold, static_cast<void*>(&keep)) &&
      ask<Call::StreamCreateWithPriority>(&setup_, unsigned{cudaStreamNonBlocking}, 0) &&
      ask<Call::HostAlloc>(&words, 2 * kStreamsMax * kLine, unsigned{cudaHostAllocMapped | cudaHostAllocPortable}) &&
      ask<Call::MallocFromPoolAsync>(reinterpret_cast<void**>(&ticks_), kTicksMax * sizeof(mr_device_tick), pool_,
                                     setup_) &&
      ask<Call::StreamSynchronize>(setup_);
  if (!made) return;
  words_ = static_cast<std::byte*>(words);
  std::memset(words_, 0, 2 * kStreamsMax * kLine);
  for (size_t t = kTicksMax; t-- > 0;) free_ticks_.push_back(ticks_ + t);
  spans_.resize(kSpansMax);
  for (TimedSpan& span : spans_)
    if (!ask<Call::EventCreateWithFlags>(&span.begin, 0u) || !ask<Call::EventCreateWithFlags>(&span.end, 0u)) return;
  ask<Call::EventCreateWithFlags>(&waiters_event_, unsigned{cudaEventDisableTiming | cudaEventBlockingSync});
  find_neighbourhood();
  hardware_ = hardware_of(ordinal_);
  if (pinned_ && group_->devices.empty()) { // the first device locks pages for all
    locks_pages_ = true;
    if (const std::string wrong = pinned_->set_locker(this); !wrong.empty()) poison(DeviceError::out_of_memory, wrong);
  }
  try {
    waiter_ = start_thread("the thread that waits for " + domain(), [this, waiting = waiting_] { wait_loop(waiting); });
  } catch (const Failure& refused) {
    poison(DeviceError::invalid, refused.error().what);
  }
}

CudaDevice::~CudaDevice() {
  bool never_answers = false;
  {
    const std::lock_guard lock(waiting_->mutex);
    waiting_->closing = true;
    never_answers = waiting_->in_driver && poisoned();
  }
  waiting_->wake.notify();
  if (waiter_.joinable()) never_answers ? waiter_.detach() : waiter_.join();
  // Opens every gate, so that streams which wait for words that no thread moves any more run out. Otherwise the driver
  // would wait for them in its next call that waits for everything, even in a later device's. Their memory is still
  // there.
  for (auto& stream : streams_)
    if (stream->gate) std::atomic_ref<uint64_t>(*stream->gate).store(kAllGates, std::memory_order_release);
  if (locks_pages_) pinned_->set_locker(nullptr);
  std::erase(group_->devices, this);
  if (poisoned()) return; // calls for such a device may never return, and its context is of no more use
  make_current();
  for (auto& stream : streams_) {
    ask<Call::StreamSynchronize>(stream->handle);
    for (cudaEvent_t event : stream->events) ask<Call::EventDestroy>(event);
    ask<Call::StreamDestroy>(stream->handle);
  }
  for (cudaStream_t side : side_streams_) ask<Call::StreamDestroy>(side);
  for (cudaEvent_t event : capture_events_) ask<Call::EventDestroy>(event);
  for (TimedSpan& span : spans_) {
    ask<Call::EventDestroy>(span.begin);
    ask<Call::EventDestroy>(span.end);
  }
  if (waiters_event_) ask<Call::EventDestroy>(waiters_event_);
  named_arenas_.clear();
  for (const auto& arena : arenas_) {
    if (is_checked_)
      ask<Call::Free>(static_cast<void*>(arena->base));
    else
      ask<Call::FreeAsync>(static_cast<void*>(arena->base), setup_);
  }
  if (ticks_) ask<Call::FreeAsync>(static_cast<void*>(ticks_), setup_);
  if (setup_) {
    ask<Call::StreamSynchronize>(setup_);
    ask<Call::StreamDestroy>(setup_);
  }
  if (words_) ask<Call::FreeHost>(static_cast<void*>(words_));
  if (pool_) ask<Call::MemPoolDestroy>(pool_);
}

// The device that was set last in the calling thread.
uint32_t& CudaDevice::current_of_thread() {
  static thread_local uint32_t current = UINT32_MAX;
  return current;
}

void CudaDevice::make_current() {
  if (current_of_thread() != ordinal_) enter_thread();
}

void CudaDevice::enter_thread() { // a handler may have set another one
  if (check(Call::SetDevice, api_.call<Call::SetDevice>(static_cast<int>(ordinal_)))) current_of_thread() = ordinal_;
}

bool CudaDevice::check(Call call, cudaError_t error) {
  if (error == cudaSuccess) return true;
  const bool memory = error == cudaErrorMemoryAllocation;
  poison(memory ? DeviceError::out_of_memory : DeviceError::fault, domain() + ": " + sentence_of(call, error));
  return false;
}

uint64_t CudaDevice::reached(const Stream& stream) const {
  const auto& asked = static_cast<const CudaStream&>(stream);
  return poisoned() ? asked.reached.load() : asked.completed.load(std::memory_order_acquire);
}

DeviceStatus CudaDevice::status() const {
  const std::lock_guard lock(status_mutex_);
  return status_;
}

void CudaDevice::poison(DeviceError error, const std::string& sentence) {
  {
    const std::lock_guard lock(status_mutex_);
    if (poisoned_.exchange(true)) return;
    status_ = {error, sentence};
    const size_t count = stream_count_.load(std::memory_order_acquire);
    for (size_t s = 0; s < count; ++s) streams_[s]->reached = streams_[s]->completed.load(std::memory_order_acquire);
    lost_ = error == DeviceError::lost;
    if (lost_) group_->any_lost = true;
  }
  complete_all();
  let_all_go();
  waiting_->wake.notify();
}

// Marks everything as over, so that no host waits for ever. The hardware may still write an older word after this, so
// the waiter repeats it.
void CudaDevice::complete_all() {
  const size_t count = stream_count_.load(std::memory_order_acquire);
  for (size_t s = 0; s < count; ++s) {
    streams_[s]->completed.store(kFailed, std::memory_order_release);
    streams_[s]->completed.notify_all();
    ring(*streams_[s]);
  }
}

// ---- memory -----------------------------------------------------------------------------------------------------

Arena* CudaDevice::allocate(uint64_t bytes, ArenaProperties properties, DeviceStatus& status) {
  if (record_allocation()) {
    poison(DeviceError::invalid, domain() + ": " + std::to_string(bytes) + " bytes were asked for in steady state");
    status = this->status();
    return nullptr;
  }
  make_current();
  void* base = nullptr;
  const uint64_t wanted = std::max<uint64_t>(bytes, 1);
  const cudaError_t error = is_checked_ ? api_.call<Call::Malloc>(&base, wanted)
                                        : api_.call<Call::MallocFromPoolAsync>(&base, wanted, pool_, setup_);
  if (error == cudaErrorMemoryAllocation) {
    (void)cudaGetLastError(); // reported here; clears the error, so that no later call reports it again
    status = {DeviceError::out_of_memory, domain() + ": " + std::to_string(bytes) + " bytes are wanted of " +
                                              std::to_string(bytes_limit_) + ", of which " +
                                              std::to_string(bytes_allocated_) + " are taken by this run"};
    return nullptr;
  }
  if (!check(is_checked_ ? Call::Malloc : Call::MallocFromPoolAsync, error) || !ask<Call::StreamSynchronize>(setup_)) {
    status = this->status();
    return nullptr;
  }
  bytes_allocated_ += wanted;
  arenas_.push_back(std::make_unique<Arena>(Arena{static_cast<std::byte*>(base), wanted, properties}));
  status = {};
  return arenas_.back().get();
}

void CudaDevice::name_parts(const Arena& arena, const std::vector<NamedBytes>& parts) {
  if (!is_checked_ || poisoned()) return;
  make_current();
  named_arenas_.push_back(std::make_unique<NvtxArena>(arena, parts));
}

std::string CudaDevice::lock_pages(const std::byte* base, uint64_t bytes) {
  make_current();
  constexpr unsigned kFlags = cudaHostRegisterPortable | cudaHostRegisterMapped;
  const cudaError_t error =
      api_.call<Call::HostRegister>(const_cast<void*>(static_cast<const void*>(base)), bytes, kFlags);
  if (error == cudaSuccess) return "";
  (void)cudaGetLastError();
  return sentence_of(Call::HostRegister, error);
}

bool CudaDevice::unlock_pages(const std::byte* base) {
  if (group_->any_lost) return false; // the lost device may never answer, and may still write there
  make_current();
  const cudaError_t error = api_.call<Call::HostUnregister>(const_cast<void*>(static_cast<const void*>(base)));
  if (error != cudaSuccess) (void)cudaGetLastError();
  return error == cudaSuccess;
}

// Lets this device access the memory of its peers, if the hardware can.
void CudaDevice::enable_peers() {
  make_current();
  for (CudaDevice* peer : group_->devices) {
    int can = 0;
    if (peer == this || poisoned()) continue;
    if (!ask<Call::DeviceCanAccessPeer>(&can, static_cast<int>(ordinal_), static_cast<int>(peer->ordinal_))) return;
    if (!can) continue;
    const cudaError_t error = api_.call<Call::DeviceEnablePeerAccess>(static_cast<int>(peer->ordinal_), 0u);
    if (error == cudaErrorPeerAccessAlreadyEnabled)
      (void)cudaGetLastError();
    else if (!check(Call::DeviceEnablePeerAccess, error))
      return;
    cudaMemAccessDesc access{{cudaMemLocationTypeDevice, static_cast<int>(ordinal_)}, cudaMemAccessFlagsProtReadWrite};
    ask<Call::MemPoolSetAccess>(peer->pool_, static_cast<const cudaMemAccessDesc*>(&access), size_t{1});
  }
}

// ---- streams and fences -----------------------------------------------------------------------------------------

Stream* CudaDevice::create_stream(StreamKind kind) {
  MR_ASSERT(streams_.size() < kStreamsMax, "a device has at most 64 streams");
  make_current();
  const size_t index = streams_.size();
  // A device that could not be made has no words. Its streams share one that is over from the start.
  static std::atomic<uint64_t> over{kFailed};
  auto* word = words_ ? reinterpret_cast<std::atomic<uint64_t>*>(words_ + 2 * index * kLine) : &over;
  auto stream = std::make_unique<CudaStream>(*word);
  stream->kind = kind;
  stream->index = static_cast<uint32_t>(index);
  if (words_ && !poisoned()) {
    stream->gate = reinterpret_cast<uint64_t*>(words_ + (2 * index + 1) * kLine);
    stream->own_tick = take_tick();
    stream->tick = stream->own_tick;
    if (ask<Call::StreamCreateWithPriority>(&stream->handle, unsigned{cudaStreamNonBlocking}, 0)) {
      for (cudaEvent_t& event : stream->events)
        if (!ask<Call::EventCreateWithFlags>(&event, unsigned{cudaEventDisableTiming})) break;
    }
    stream->native = stream->handle;
  }
  streams_.reserve(kStreamsMax); // never moves: the waiter reads it
  streams_.push_back(std::move(stream));
  stream_count_.store(streams_.size(), std::memory_order_release);
  if (poisoned()) complete_all();
  return streams_.back().get();
}

void CudaDevice::copy(Stream& stream, std::byte* target, const std::byte* source, uint64_t bytes) {
  if (poisoned() || bytes == 0) return;
  make_current();
  CudaStream& to = own(stream);
  auto* const on = static_cast<cudaStream_t>(to.native); // the branch's stream, inside a body that is captured
  if (to.recorder) {
    if (!to.recorder->inside) join_branches(to);
    if (bytes <= kSmallCopyMax) { // a kernel starts sooner than the copy engine
      if (const cudaError_t error = launch_copy(on, target, source, bytes); error != cudaSuccess)
        fail_recording(*to.recorder, Call::LaunchKernel, error);
      return;
    }
    record<Call::MemcpyAsync>(*to.recorder, static_cast<void*>(target), static_cast<const void*>(source), bytes,
                              cudaMemcpyDefault, on);
    return;
  }
  ask<Call::MemcpyAsync>(static_cast<void*>(target), static_cast<const void*>(source), bytes, cudaMemcpyDefault, on);
  to.dirty = true;
}

void CudaDevice::clear(Stream& stream, std::byte* target, uint64_t bytes) {
  CudaStream& on = own(stream);
  if (on.recorder) return poison(DeviceError::invalid, domain() + ": clear() while its stream records");
  if (poisoned() || bytes == 0) return;
  make_current();
  ask<Call::MemsetAsync>(static_cast<void*>(target), 0, bytes, static_cast<cudaStream_t>(on.native));
  on.dirty = true;
}

Fence CudaDevice::signal(Stream& stream) {
  CudaStream& at = own(stream);
  if (at.recorder) poison(DeviceError::invalid, domain() + ": signal() while its stream records");
  if (at.dirty) {
    at.dirty = false;
    ++at.issued;
    if (poisoned()) return {&at.completed, at.issued};
    make_current();
    if (at.issued - std::min(at.issued, at.completed.load(std::memory_order_acquire)) > kUnderWayMax)
      poison(DeviceError::invalid,
             domain() + ": a stream has more than " + std::to_string(kUnderWayMax) + " fences under way");
    else if (check(Call::StreamWriteValue, api_.write_value(at.handle, &at.completed, at.issued)))
      record_signal(at);
  }
  return {&at.completed, at.issued};
}

// Called after the write of the word for `issued` is enqueued. Once another stream of the same device has waited for a
// stream, that stream gets an event after each signal. If there are peers, every stream gets one, because other threads
// submit to the peers.
void CudaDevice::record_signal(CudaStream& stream) {
  if (group_->devices.size() > 1 || stream.events_from > 0) record_event(stream);
  stream.signalled.store(stream.issued, std::memory_order_release);
}

void CudaDevice::record_event(CudaStream& stream) {
  ask<Call::EventRecord>(stream.events[stream.issued % CudaStream::kEvents], stream.handle);
  stream.recorded.store(stream.issued, std::memory_order_release);
}

bool CudaDevice::has_room(const Stream& stream) const {
  const uint64_t done = stream.completed.load(std::memory_order_acquire);
  return done >= stream.issued || stream.issued - done < kUnderWayMax / 2;
}

CudaStream* CudaDevice::stream_of(const Fence& fence) const {
  const size_t count = stream_count_.load(std::memory_order_acquire);
  for (size_t s = 0; s < count; ++s)
    if (&streams_[s]->completed == fence.word) return streams_[s].get();
  return nullptr;
}

void CudaDevice::wait(Stream& stream, const Fence& fence) {
  CudaStream& waits = own(stream);
  if (waits.recorder) return poison(DeviceError::invalid, domain() + ": wait() while its stream records");
  if (fence.done() || poisoned()) return;
  make_current();
  for (CudaDevice* device : group_->devices) {
    CudaStream* other = device->stream_of(fence);
    if (!other) continue;
    if (device->poisoned()) return; // its fences are all done
    MR_ASSERT(fence.sequence <= other->signalled.load(std::memory_order_acquire),
              "a wait for a fence that was not issued");
    if (other != &waits) wait_for_event(waits, *device, *other, fence.sequence);
    return;
  }
  wait_for_foreign(waits, fence);
}

void CudaDevice::wait_for_event(CudaStream& stream, CudaDevice& of, CudaStream& other, uint64_t sequence) {
  if (&of == this && group_->devices.size() == 1 && other.events_from == 0) {
    other.events_from = other.issued; // this fence or a later one
    record_event(other);
  }
  // If the event was recorded again since, the fence is long done.
  if (other.recorded.load(std::memory_order_acquire) - sequence >= CudaStream::kEvents) return;
  ask<Call::StreamWaitEvent>(stream.handle, other.event_behind(sequence), 0u);
  stream.dirty = true;
}

// Makes the stream wait for a gate in mapped memory. The waiter opens the gate when it has seen the foreign word.
void CudaDevice::wait_for_foreign(CudaStream& stream, const Fence& fence) {
  close_gate(stream, {fence, &stream, stream.gates + 1});
}

void CudaDevice::close_gate(CudaStream& stream, const Foreign& opened_by) {
  {
    const std::lock_guard lock(foreign_mutex_);
    stream.gates = opened_by.gate;
    foreign_.push_back(opened_by);
  }
  waiting_->wake.notify();
  check(Call::StreamWaitValue, api_.wait_value(stream.handle, stream.gate, stream.gates));
  stream.dirty = true;
}

void CudaDevice::run(Stream&, const Work& work) {
  poison(DeviceError::invalid, domain() + ": " + work.name + " is no kernel, and nothing else runs there by itself");
}

void CudaDevice::call(Stream& stream, const Work& work) {
  if (poisoned()) return;
  make_current();
  CudaStream& on = own(stream);
  const NvtxRange range(work.name);
  if (!on.recorder) {
    work.run(work.context);
    on.dirty = true;
    // Takes the errors of launches that the body did not check; otherwise the next caller would get them.
    if (const cudaError_t left = cudaGetLastError(); left != cudaSuccess)
      on.body_error = "it left a CUDA error: " + std::string(cudaGetErrorString(left));
    return;
  }
  if (!on.recorder->failure.empty()) return;
  stream.native = branch_for(on, work.after);
  on.recorder->inside = true;
  work.run(work.context);
  on.recorder->inside = false;
  const cudaEvent_t done = next_capture_event();
  record<Call::EventRecord>(*on.recorder, done, static_cast<cudaStream_t>(stream.native));
  on.recorder->runs.push_back({static_cast<cudaStream_t>(stream.native), done});
  stream.native = on.handle;
}

void CudaDevice::set_tick(Stream& stream, const TickNumbers& numbers) {
  CudaStream& on = own(stream);
  if (poisoned() || (on.has_numbers && on.numbers == numbers)) return;
  make_current();
  on.numbers = numbers;
  on.has_numbers = true;
  on.dirty = true;
  cudaError_t error = api_.count(Call::LaunchKernel);
  if (error == cudaSuccess)
    error = launch_set_tick(on.handle, on.own_tick, {numbers.index, numbers.media_time_ns, on.issued + 1});
  check(Call::LaunchKernel, error);
}

// ---- time on the device -----------------------------------------------------------------------------------------

bool CudaDevice::begin_span(Stream& stream) {
  CudaStream& of = own(stream);
  if (poisoned() || of.recorder || of.open_span) return false;
  make_current();
  const auto is_free = [](const TimedSpan& span) { return !span.open && span.told; };
  auto span = std::find_if(spans_.begin(), spans_.end(), is_free);
  if (span == spans_.end()) {
    collect_spans();
    span = std::find_if(spans_.begin(), spans_.end(), is_free);
  }
  if (span == spans_.end()) return false;
  span->open = true;
  of.open_span = &*span;
  return ask<Call::EventRecord>(span->begin, of.handle);
}

void CudaDevice::end_span(Stream& stream, const Span& span) {
  CudaStream& of = own(stream);
  MR_ASSERT(of.open_span, "a span ends that has not begun");
  TimedSpan& timed = *std::exchange(of.open_span, nullptr);
  timed.open = false;
  timed.span = span;
  if (poisoned()) return;
  timed.told = !ask<Call::EventRecord>(timed.end, of.handle);
  of.dirty = true; // the next fence comes after the event; the last one would be done too early
  collect_spans(); // after the work was submitted, so nothing waits for this
}

void CudaDevice::collect_spans() {
  if (poisoned()) return;
  make_current();
  for (TimedSpan& span : spans_) {
    if (span.told) continue;
    const cudaError_t error = api_.call<Call::EventQuery>(span.end);
    if (error == cudaErrorNotReady) continue;
    float took_ms = 0;
    if (!check(Call::EventQuery, error) || !ask<Call::EventElapsedTime>(&took_ms, span.begin, span.end)) return;
    span.told = true;
    span.span.tell(span.span.context, static_cast<int64_t>(static_cast<double>(took_ms) * 1e6));
  }
}

// Closes a gate whose word is the device's own. The waiter looks at it too, so the gate opens even if resume() is not
// reached: a body that waits for its stream blocks its thread in the driver, and no call into the driver could help.
void CudaDevice::pause(Stream& stream) {
  CudaStream& held = own(stream);
  if (poisoned() || held.recorder) return;
  make_current();
  const uint64_t gate = held.gates + 1;
  close_gate(held, {{&held.resumed, gate}, &held, gate, std::chrono::steady_clock::now() + kHeldMax});
  if (poisoned()) let_all_go(); // it failed before the gate was there
}

void CudaDevice::resume(Stream& stream) {
  CudaStream& held = own(stream);
  held.resumed.store(held.gates, std::memory_order_release);
  open_gates();
}

// ---- the machine around it --------------------------------------------------------------------------------------

void CudaDevice::find_neighbourhood() {
  char bus[32] = {};
  if (!ask<Call::DeviceGetPCIBusId>(bus, static_cast<int>(sizeof bus), static_cast<int>(ordinal_))) return;
  bus_id_ = bus;
  std::ifstream list("/sys/bus/pci/devices/" + v1::detail::in_small_letters(bus_id_) + "/local_cpulist");
  std::getline(list, local_cpus_);
}

} // namespace millrace::device::cuda
