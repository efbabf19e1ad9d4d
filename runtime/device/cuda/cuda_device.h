// An NVIDIA GPU as a device.
//
// Problem. CUDA's calls are asynchronous, but there is no cheap way to wait for their end. Asking whether something is
// over is a call into the driver that takes a lock, and a callback costs more than the tick that it ends.
//
// Why this way. Each stream has a word in mapped host memory. Outside graphs the stream itself writes it (a stream
// write of the driver, done by the copy engine or the front end); in a graph a kernel does. So a waiting thread reads
// memory and calls nothing. If another stream has to wait, an event without a time is recorded. When hosts have gone to
// sleep, one waiter thread blocks in an event, sees errors there, and notifies the hosts' event count.
//
// Invariants.
//  - One thread submits, and no function that it calls waits for the device; only bodies are called by several threads
//    (Enqueuing::call). allocate() and the functions that it calls may wait, and are not called in steady state.
//  - The word of a stream only grows until the device fails. An event events[sequence mod kEvents], if there is one,
//    was recorded after the write of the word.
//  - All words of a failed device hold kFailed, so every fence is done, issued before or after (device.h).
//
// Limits. This is no memory manager: arenas live as long as the device.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "device/cuda/api.h"
#include "device/cuda/nvtx.h"
#include "device/cuda/words.h"
#include "device/device.h"
#include "device/event_count.h"
#include "device/module.h"
#include "device/pinned_ranges.h"
#include "millrace/abi.h"

namespace millrace::device::cuda {

class CudaDevice;
struct Recorder;

// The devices of one runtime, which may wait for each other and copy from each other.
struct Group {
  std::vector<CudaDevice*> devices;
  std::atomic<bool> any_lost{false}; // stays true once the device is gone: its hardware may still be at work
};

struct TimedSpan {
  cudaEvent_t begin = nullptr, end = nullptr;
  Span span;
  bool open = false, told = true;
};

struct CudaStream final : Stream {
  // The most sequences that can be waited for at a time; a window has a few signals for each tick in flight.
  static constexpr uint64_t kEvents = 256;

  explicit CudaStream(std::atomic<uint64_t>& word) : Stream(word) {}

  cudaStream_t handle = nullptr;
  std::array<cudaEvent_t, kEvents> events{};
  // Each sequence from this one up to `recorded` has an event after it. 0: no stream of its device has waited for it
  // yet.
  std::atomic<uint64_t> events_from{0};
  std::atomic<uint64_t> recorded{0};
  std::atomic<uint64_t> signalled{0}; // the latest `issued` that is signalled, for other threads
  std::atomic<uint64_t> reached{0};   // `completed` when the device failed
  bool dirty = false;                 // something was enqueued since the last signal
  mr_device_tick* own_tick = nullptr;
  TickNumbers numbers;
  bool has_numbers = false;
  uint64_t* gate = nullptr; // mapped; the stream waits for it instead of a foreign word
  uint64_t gates = 0;
  std::atomic<uint64_t> resumed{0};   // pause() is over up to this gate
  std::unique_ptr<Recorder> recorder; // while it records
  TimedSpan* open_span = nullptr;
  std::string body_error;

  // The event after the sequence, which is at most `recorded`. Sequences before `events_from` use its event.
  cudaEvent_t event_behind(uint64_t sequence) const {
    return events[std::max(sequence, events_from.load(std::memory_order_acquire)) % kEvents];
  }
};

// The graph of one slot.
struct CudaRecording final : Recording {
  CudaDevice* device = nullptr;
  cudaGraph_t graph = nullptr;
  cudaGraphExec_t exec = nullptr;
  cudaGraphNode_t set_tick = nullptr;
  CUDA_KERNEL_NODE_PARAMS set_tick_kernel{};
  mr_device_tick* tick = nullptr;
  mr_device_tick value{}; // numbers of the latest launch
  ListWords lists{};      // its lists
  ~CudaRecording() override;
};

// The state of a stream while it records. Bodies that do not need each other go to streams of their own, so that they
// become branches of the graph.
struct Recorder {
  struct Ran {
    cudaStream_t stream;
    cudaEvent_t done;
  };
  std::vector<Ran> runs;
  std::vector<cudaStream_t> sides; // in use
  mr_device_tick* tick = nullptr;
  cudaEvent_t begun = nullptr;
  bool inside = false; // a body is being called
  std::string failure; // the first error of the capture; ends the capture, not the device
};

// The state that the waiter thread may still read after its device is gone: if the hardware never answers, the thread
// stays blocked in the driver.
struct Waiting {
  EventCount wake;
  std::atomic<bool> watched{false};
  std::mutex mutex;
  bool closing = false;   // under the mutex
  bool in_driver = false; // under the mutex
};

class CudaDevice final : public Device, public Enqueuing, private PageLocker {
 public:
  CudaDevice(uint32_t ordinal, const ModuleOptions& options, std::shared_ptr<Group> group, const void* library);
  ~CudaDevice() override;

  Arena* allocate(uint64_t bytes, ArenaProperties properties, DeviceStatus& status) override;
  void name_parts(const Arena& arena, const std::vector<NamedBytes>& parts) override;
  uint64_t bytes_allocated() const override { return bytes_allocated_; }
  uint64_t bytes_limit() const override { return bytes_limit_; }

  Stream* create_stream(StreamKind kind) override;
  void run(Stream& stream, const Work& work) override;
  Enqueuing* enqueuing() override { return this; }
  void call(Stream& stream, const Work& work) override;
  std::string take_body_error(Stream& stream) override { return std::exchange(own(stream).body_error, {}); }
  bool has_room(const Stream& stream) const override;
  void set_tick(Stream& stream, const TickNumbers& numbers) override;
  void copy(Stream& stream, std::byte* target, const std::byte* source, uint64_t bytes) override;
  void clear(Stream& stream, std::byte* target, uint64_t bytes) override;
  void wait(Stream& stream, const Fence& fence) override;
  Fence signal(Stream& stream) override;
  void begin_record(Stream& stream) override;
  std::unique_ptr<Recording> end_record(Stream& stream) override;
  std::string record_failure() const override { return record_failure_; }
  void replay(Stream& stream, Recording& recording, const TickNumbers& numbers,
              std::span<const RecordedList> lists) override;
  void warm_up(Stream& stream, Recording& recording) override;
  bool begin_span(Stream& stream) override;
  void end_span(Stream& stream, const Span& span) override;
  void collect_spans() override;
  void pause(Stream& stream) override;
  void resume(Stream& stream) override;
  void watch() override;
  void kick() override { waiting_->wake.notify(); }
  DeviceStatus status() const override;
  bool failed() const override { return poisoned(); }
  uint64_t reached(const Stream& stream) const override;
  bool is_stuck() const override { return lost_.load(std::memory_order_acquire); }
  void declare_lost(const std::string& sentence) override { poison(DeviceError::lost, sentence); }
  const void* library() const override { return library_; }
  Hardware hardware() const override { return hardware_; }
  void enter_thread() override;
  std::string local_cpus() const override { return local_cpus_; }
  std::map<std::string, uint64_t> driver_calls() const override { return api_.counts(); }
  std::map<std::string, double> gauges() const override;

  bool poisoned() const { return poisoned_.load(std::memory_order_acquire); }
  // This device's stream that has the fence's word; null if the word belongs to another device.
  CudaStream* stream_of(const Fence& fence) const;
  void enable_peers();
  void free_tick(mr_device_tick* tick);

 private:
  friend struct CudaRecording;

  static constexpr auto kNotHeld = std::chrono::steady_clock::time_point::max();
  struct Foreign { // a stream waits for a word that no device of the group writes
    Fence fence;
    CudaStream* stream;
    uint64_t gate;
    // Set by pause(): the time at which the gate opens in any case. kNotHeld: pause() did not close the gate.
    std::chrono::steady_clock::time_point held_until = kNotHeld;
  };

  std::string lock_pages(const std::byte* base, uint64_t bytes) override;
  bool unlock_pages(const std::byte* base) override;

  CudaStream& own(Stream& stream) { return static_cast<CudaStream&>(stream); }
  void make_current();
  static uint32_t& current_of_thread();
  template <Call id, class... Arguments>
  bool ask(Arguments... arguments) { // asks the driver; false: the device is poisoned now
    return check(id, api_.call<id>(arguments...));
  }
  bool check(Call call, cudaError_t error);
  void poison(DeviceError error, const std::string& sentence);
  void complete_all();
  void record_signal(CudaStream& stream);
  void record_event(CudaStream& stream);
  void wait_for_event(CudaStream& stream, CudaDevice& of, CudaStream& other, uint64_t sequence);
  void wait_for_foreign(CudaStream& stream, const Fence& fence);
  void close_gate(CudaStream& stream, const Foreign& opened_by);
  template <Call id, class... Arguments>
  bool record(Recorder& recorder, Arguments... arguments) { // a call that belongs to a capture
    const cudaError_t error = recorder.failure.empty() ? api_.call<id>(arguments...) : cudaSuccess;
    if (error != cudaSuccess) fail_recording(recorder, id, error);
    return recorder.failure.empty();
  }
  void fail_recording(Recorder& recorder, Call call, cudaError_t error);
  cudaStream_t branch_for(CudaStream& stream, const std::vector<uint32_t>* after);
  void join_branches(CudaStream& stream);
  cudaEvent_t next_capture_event();
  bool set_value(CudaRecording& recording);
  std::unique_ptr<Recording> instantiate(cudaGraph_t graph, mr_device_tick* tick);
  mr_device_tick* take_tick();
  void find_neighbourhood();

  // waiter.cpp
  void wait_loop(const std::shared_ptr<Waiting>& waiting);
  bool await(Waiting& waiting, CudaStream& stream);
  bool open_gates();
  void let_all_go();
  CudaStream* most_wanted() const;
  uint64_t progress() const;
  void ring(const CudaStream& stream);

  const uint32_t ordinal_;
  mutable std::mutex status_mutex_;
  DeviceStatus status_;
  std::atomic<bool> poisoned_{false};
  std::atomic<bool> lost_{false}; // it finished nothing for too long; work on it may run for ever
  Api api_;
  std::shared_ptr<PinnedRanges> pinned_;
  std::shared_ptr<Group> group_;
  const void* library_;
  std::string local_cpus_, bus_id_;
  Hardware hardware_;
  bool locks_pages_ = false;
  // True under a checker. A checker does not accept an arena that comes from a pool, so arenas are allocations of their
  // own.
  const bool is_checked_ = std::getenv("MILLRACE_CUDA_CHECKED") != nullptr;

  cudaMemPool_t pool_ = nullptr;
  cudaStream_t setup_ = nullptr; // for allocations
  uint64_t bytes_limit_ = 0, bytes_allocated_ = 0;
  std::vector<std::unique_ptr<Arena>> arenas_;
  std::vector<std::unique_ptr<NvtxArena>> named_arenas_;

  std::byte* words_ = nullptr; // mapped; two per stream, each in cache lines of its own
  std::vector<std::unique_ptr<CudaStream>> streams_;
  std::atomic<size_t> stream_count_{0}; // streams that the waiter may look at
  std::vector<mr_device_tick*> free_ticks_;
  std::vector<cudaStream_t> side_streams_;
  std::vector<cudaEvent_t> capture_events_;
  size_t capture_events_used_ = 0;
  std::string record_failure_;
  std::vector<TimedSpan> spans_;

  std::mutex recording_mutex_; // held while a stream records: the waiter must not touch such a stream
  mr_device_tick* ticks_ = nullptr;
  cudaEvent_t waiters_event_ = nullptr;
  std::mutex foreign_mutex_;
  std::vector<Foreign> foreign_;
  std::shared_ptr<Waiting> waiting_ = std::make_shared<Waiting>();
  std::thread waiter_;
};

} // namespace millrace::device::cuda
