// The arguments of a body: the tick, and the device it runs on (Cpu or Cuda).
#pragma once

#include <cstdint>
#include <stdexcept>
#include <string>
#include <string_view>

#include "millrace/abi.h"

#pragma GCC visibility push(hidden)
namespace millrace {
inline namespace v1 {

// One firing of a handler. It is valid until `process` returns; the tick that defer() returns, until its publish().
class Tick {
 public:
  explicit Tick(mr_tick& raw) : raw_(&raw) {}

  uint64_t index() const { return raw_->info->index; }
  int64_t media_time_ns() const { return raw_->info->media_time_ns; }
  int64_t deadline_ns() const { return raw_->info->deadline_ns; }
  uint32_t clock() const { return raw_->info->clock; }
  uint32_t epoch() const { return raw_->info->epoch; }
  // The index of the handler's stream in its set, as {index} in a pipeline file; 0 outside streams.
  uint32_t stream() const { return raw_->stream; }
  uint64_t trace_id() const { return raw_->info->trace_id; }
  // True for a source that said Facts::follows(), if others choose the mode and the rate of its clock.
  bool follows() const { return raw_->follows != 0; }
  // True if this CPU body runs on a simulated device, in place of a GPU body.
  bool stands_in_for_gpu() const { return raw_->stands_in != 0; }

  // Called by a source that has no value for now. It is asked again later. A handler with inputs fails by it.
  void not_yet() { status_ = MR_NOT_YET; }
  // A source calls it at its end; a value that it publishes in the same call is its last. Any other handler calls it to
  // end the run as a signal would: no more ticks are admitted, those in flight finish, and every handler drains.
  void end() { status_ = MR_END; }

  // This item fails, with this sentence, and what was published for it is dropped. Other items of the call are not
  // concerned. `on_error` decides what becomes of it. Do not call it after defer().
  void fail(const std::string& sentence) {
    raw_->host->fail_item(raw_, sentence.c_str());
    status_ = MR_ERROR;
  }

  // Defers this firing: it is published later. Keep the returned tick, which is valid until its publish() and has no
  // inputs. Throws std::logic_error if more firings would be deferred than max_pending allows, if it is called twice in
  // a call, and in a GPU body or finish().
  Tick defer() {
    mr_tick* deferred = raw_->host->defer(raw_);
    if (!deferred) throw std::logic_error("more firings are pending than max_pending declares");
    status_ = MR_PENDING;
    return Tick(*deferred);
  }
  // Publishes a deferred firing. Firings are published in the order of their ticks, else std::logic_error is thrown.
  void publish() {
    if (raw_->host->publish(raw_) != MR_OK) throw std::logic_error("this firing is not pending, or an earlier one is");
  }

  mr_tick& raw() { return *raw_; }
  const mr_tick& raw() const { return *raw_; }
  mr_status status() const { return status_; }

 private:
  mr_tick* raw_;
  mr_status status_ = MR_OK;
};

// The CPU body's argument.
struct Cpu {};

// The GPU body's argument. The body enqueues work on stream() and returns; it never synchronises. A view's sizes,
// strides and times are in host memory; its data pointer points into device memory.
//
// A `capturable` body is called after start(), once for each slot of the window; then the recorded kernels are launched
// again on every tick. So it must enqueue the same work for every tick. Kernels read the values that change: the tick's
// index and media time at tick(), the count of records at value_of(). The body is called again after a live parameter
// has changed or after a restart, and it is called directly on a tick that differs from the recording, for instance
// because a picture is missing. A list that is declared `optional, idle_without` may be missing from a launch: then its
// count is 0.
struct Cuda {
  const mr_tick* raw = nullptr;
  void* stream() const { return raw->native_stream; }             // a cudaStream_t
  const mr_device_tick* tick() const { return raw->device_tick; } // in device memory
  void* scratch() const { return raw->scratch; }                  // in device memory; needs_scratch() said its size
  // The payload's header in device memory, with the fields that only the device knows, such as the count of records.
  static const mr_value* value_of(const mr_input& input) {
    return reinterpret_cast<const mr_value*>(input.data - sizeof(mr_value));
  }
  // The number of records in device memory. A GPU body that makes records must have a kernel write it, at most the
  // number that was allocated.
  static uint64_t* count_of(const mr_output& output) {
    return &reinterpret_cast<mr_value*>(output.data - sizeof(mr_value))->as.records.count;
  }
};

// The stream and the memory of a handler's GPU body; see Handler::gpu().
struct GpuPlace {
  void* stream = nullptr;  // a cudaStream_t
  void* scratch = nullptr; // in device memory; needs_scratch() said its size
  uint64_t scratch_bytes = 0;
  const void* library = nullptr; // for built-in handlers: their kernels
};

// The kind of device that a handler's body runs on. On a simulated device the CPU body runs.
enum class DeviceKind : uint32_t { cpu = MR_DEVICE_CPU, cuda = MR_DEVICE_CUDA, sim = MR_DEVICE_SIM };

// The device of a handler's body; see Handler::start(const DeviceInfo&). What is not known, or is not there, is 0.
struct DeviceInfo {
  DeviceKind kind = DeviceKind::cpu;
  uint32_t ordinal = 0;                          // among those of its kind: 1 is cuda:1
  std::string_view name;                         // "NVIDIA H200"; on cpu and sim that of the domain, such as "sim:0"
  uint32_t multiprocessors = 0;                  // how many
  uint32_t compute_major = 0, compute_minor = 0; // compute capability
  uint64_t shared_bytes_max = 0;                 // that a block can have, once the kernel's limit is raised to it
  uint64_t memory_bytes = 0;                     // in all; on sim the limit of the simulated device
};

} // namespace v1
} // namespace millrace
#pragma GCC visibility pop
