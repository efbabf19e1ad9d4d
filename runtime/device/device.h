// A device: memory of its own, streams that run work in order, and words in host memory that tell how far the streams
// are. cpu, sim and cuda implement it; tests/device/conformance.h says what each must do.
//
// A fence is (word, sequence). Everything that can be waited for is a fence, and completion is always a word in host
// memory. So a worker waits for a thread, a copy engine, a GPU or a link in the same way (semantics.md 4.2). Code that
// moves a word stores with release, then calls notify_all() on it (a host may sleep in word->wait()), then kicks the
// devices whose streams wait for it. A word outlives everything that waits for it.
//
// After a fatal error (semantics.md 4.9) a device is poisoned. No later body or copy runs, but every fence, issued
// before or after the error, still becomes done, so that no host waits for ever. status() tells the error before any
// word tells that the failed command is over: if a host sees a fence done and then finds status() good, the bytes are
// good. A fence of a poisoned device only says that this device runs nothing enqueued after it. It does not say that
// work on another device, for which it waited, is over.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "device/fence.h"

struct mr_value;

namespace millrace::device {

// Properties are set before an arena is made (semantics.md 3.2).
struct ArenaProperties {
  bool pinned = false;
};

// One reservation of memory in one domain. Freed with its device.
struct Arena {
  std::byte* base = nullptr; // as the host sees it; the host must not touch it on sim and cuda
  uint64_t bytes = 0;
  ArenaProperties properties;
};

// A part of an arena that is in use, with the name of its owner.
struct NamedBytes {
  const std::byte* address = nullptr;
  uint64_t bytes = 0;
  std::string name; // "blur.out in cuda:0"
};

// A body to run on the device's own time. The context must stay valid and unchanged until the fence after it is done.
struct Work {
  void (*run)(void* context) = nullptr;
  void* context = nullptr;
  const char* name = ""; // the handler, for reports
  int64_t cost_ns = 0;   // declared, for virtual time
  // The bytes that the body may touch; null: not declared. Read only if checks_accesses() is true: at submission, or
  // for a recorded body by each replay().
  const std::vector<Access>* accesses = nullptr;
  // For a recorded body: the earlier bodies of the recording that it needs, counted from 0. It may run beside the
  // others. Null: it needs all of them.
  const std::vector<uint32_t>* after = nullptr;
};

// The numbers that change from tick to tick, for kernels.
struct TickNumbers {
  uint64_t index = 0;
  int64_t media_time_ns = 0;
  friend bool operator==(const TickNumbers&, const TickNumbers&) = default;
};

// A list (a value of kind records) that the bodies of a recording read, and if it is there on the tick that is
// replayed. To the bodies a list that is not there has no records.
struct RecordedList {
  mr_value* value = nullptr; // as a body finds it (body_address)
  bool present = false;
};
// The most of them that a replay takes.
inline constexpr size_t kRecordedListsMax = 32;

// Receives the time that the commands between begin_span() and end_span() took, some time after they are over.
struct Span {
  void (*tell)(void* context, int64_t took_ns) = nullptr;
  void* context = nullptr;
};

enum class DeviceError { none, out_of_memory, invalid, fault, lost };

struct DeviceStatus {
  DeviceError error = DeviceError::none;
  std::string sentence;
  bool ok() const { return error == DeviceError::none; }
};

// A device's hardware, for handlers that start on it. What it does not have, or nobody knows, is 0.
struct Hardware {
  std::string name; // "NVIDIA H200"; "": it has no other name than its domain's
  uint32_t multiprocessors = 0;
  uint32_t compute_major = 0, compute_minor = 0;
  uint64_t shared_bytes_max = 0; // that a kernel can be allowed for a block
};

// One recorded run of work on one stream, replayed as a whole with frozen arguments and addresses. It must outlive the
// fence of its last replay.
struct Recording {
  virtual ~Recording() = default;
};

// The second interface of a device whose bodies enqueue: cuda, and sim if its options say so. The host calls such a
// body when it is submitted, and the body leaves its work on Stream::native. The body's statements about its outputs
// are known at once; the bytes of the outputs come later.
class Enqueuing {
 public:
  // Calls the body now. Two threads may be in bodies of two streams at once, and another one may submit to a third
  // meanwhile.
  virtual void call(Stream& stream, const Work& work) = 0;
  // The error that the stream's last body left and did not report. Returned once; "" if there is none.
  virtual std::string take_body_error(Stream& stream) = 0;
  // Kernels that are enqueued from now on read these numbers at Stream::tick.
  virtual void set_tick(Stream& stream, const TickNumbers& numbers) = 0;
  // The reason why the last recording failed.
  virtual std::string record_failure() const = 0;
  // Loads the data that a replay needs into the processor's caches, and changes nothing. For callers that expect a
  // replay soon.
  virtual void warm_up(Stream& stream, Recording& recording) = 0;

  // Measures device time between two points of a stream. False if it cannot be measured, or if too many spans are open.
  // A later call of the submitting thread (collect_spans() at the latest) reports the time.
  virtual bool begin_span(Stream& stream) = 0;
  virtual void end_span(Stream& stream, const Span& span) = 0;
  virtual void collect_spans() = 0;

  // Holds back commands submitted from now on until resume(). So a span measured in between contains none of the host's
  // time for submitting. One stream may be paused at a time, and nothing may wait for a fence of a held command. The
  // device resumes by itself after a failure, and cuda also after 20 ms, so that a body which does wait is not stuck
  // for ever.
  virtual void pause(Stream& stream) = 0;
  virtual void resume(Stream& stream) = 0;

  // A table that the device's module offers to built-in handlers (mr_tick::library); null: none.
  virtual const void* library() const = 0;

 protected:
  ~Enqueuing() = default;
};

// All functions that submit are called by one thread at a time and never block.
class Device {
 public:
  virtual ~Device() = default;

  const std::string& domain() const { return domain_; }

  // Returns null and sets `status` if there is not enough memory. Not on the hot path.
  virtual Arena* allocate(uint64_t bytes, ArenaProperties properties, DeviceStatus& status) = 0;
  // Names the parts of an arena of this device that are in use; nothing may touch the rest from now on. For tools that
  // watch the accesses of kernels. Called once for an arena, before anything runs there.
  virtual void name_parts(const Arena& arena, const std::vector<NamedBytes>& parts) { (void)arena, (void)parts; }
  virtual uint64_t bytes_allocated() const = 0;
  virtual uint64_t bytes_limit() const = 0; // 0: not known

  // The address at which a body on this device finds the bytes that the host sees at `address`. The memory may be the
  // device's own, the host's, or that of a peer that the device may access.
  virtual std::byte* body_address(std::byte* address) const { return address; }

  virtual Stream* create_stream(StreamKind kind) = 0;

  // Enqueues a body that runs on the device's own time. A failure poisons the device and is reported by status(). On
  // cuda no body can run by itself; Enqueuing::call() takes bodies there.
  virtual void run(Stream& stream, const Work& work) = 0;
  // The other way to give a device a body; null: run() is the only one.
  virtual Enqueuing* enqueuing() { return nullptr; }
  // True if the stream can take more submissions now. A stream that gets too many poisons the device.
  virtual bool has_room(const Stream& stream) const { return (void)stream, true; }
  // Copies between this device's memory and host memory, within this device, or from a peer's memory to this device's.
  // A device whose bodies enqueue also copies to a peer's memory. Addresses are those that the host sees.
  virtual void copy(Stream& stream, std::byte* target, const std::byte* source, uint64_t bytes) = 0;
  // Copies from pageable memory of the host to this device's memory, for a value that is copied once and is too large
  // to be worth locking. The calling thread may wait until the bytes are read. Not while the stream records.
  virtual void copy_pageable(Stream& stream, std::byte* target, const std::byte* source, uint64_t bytes) {
    copy(stream, target, source, bytes);
  }
  // Sets bytes of this device's memory to zero. Not while the stream records.
  virtual void clear(Stream& stream, std::byte* target, uint64_t bytes) = 0;
  // Makes the stream go on only after the fence, which must have been issued.
  virtual void wait(Stream& stream, const Fence& fence) = 0;
  // Returns a fence after everything that was enqueued so far.
  virtual Fence signal(Stream& stream) = 0;

  // Declares that these bytes of this device are not read again before they are rewritten. Sim in adversarial mode
  // poisons unwritten bytes, and poisons these again in stream order; other devices leave the bytes as they are.
  virtual void discard(Stream& stream, std::byte* address, uint64_t bytes) { (void)stream, (void)address, (void)bytes; }
  // True if discard() does something; otherwise callers need not call it.
  virtual bool poisons_discarded() const { return false; }

  // Between begin and end, bodies, copy() and discard() on the stream are recorded and not run. clear(), wait(),
  // signal() and replay() on it poison the device as invalid: a recording is one command without a middle, and clears
  // nothing that the next replay may need. A replay is one command.
  // end_record() returns null if a body did something that cannot be recorded; Enqueuing::record_failure() says what.
  virtual void begin_record(Stream& stream) = 0;
  virtual std::unique_ptr<Recording> end_record(Stream& stream) = 0;
  // Before the recorded commands the device writes which lists are present. The count of an absent one becomes 0.
  // `lists` is for a device whose bodies enqueue; elsewhere each body is told which of its inputs are there.
  virtual void replay(Stream& stream, Recording& recording, const TickNumbers& numbers = {},
                      std::span<const RecordedList> lists = {}) = 0;
  // True if the device checks Work::accesses; otherwise callers need not fill it in.
  virtual bool checks_accesses() const { return false; }

  // Tells the device that a word that is not its own has moved, so streams that wait for it may go on. cpu and virtual
  // devices need the call, from their submitting thread; others take it as a hint, from any thread.
  virtual void kick() {}

  // Makes a device that runs nothing by itself (cpu while it waits for a fence, virtual, adversarial) work until the
  // fence is done. Returns false if the device works by itself or cannot make this fence done. The fence may depend on
  // another device's fence, so a host that waits in such a graph goes round all devices with force_any() until the
  // fence is done. Called by the submitting thread; on an adversarial device by any thread. On a virtual device it
  // steps the timeline, which runs events of all devices.
  virtual bool force(const Fence& fence) {
    (void)fence;
    return false;
  }
  // The same without a particular fence: runs something, if anything can run. For a host that waits for several fences.
  virtual bool force_any() { return false; }

  // Announces that a host is about to wait on the event count of this device's streams. The device notifies it once,
  // when a completed word advances next. For devices whose words advance without a notification. Any thread.
  virtual void watch() {}

  // Begins or ends steady state. During it, calls of allocate() are counted, and are an error on sim and cuda.
  void steady(bool on) {
    if (on) steady_allocations_.store(0, std::memory_order_relaxed);
    steady_ = on;
  }
  // Calls of allocate() since steady state began. Any thread.
  uint64_t steady_allocations() const { return steady_allocations_.load(std::memory_order_relaxed); }
  // Fatal errors are sticky: the domain is poisoned and nothing more runs there. Any thread.
  virtual DeviceStatus status() const = 0;
  // True if status() is an error. It becomes true before the failure releases any waiter, and stays true. Any thread.
  virtual bool failed() const { return !status().ok(); }
  // How far the stream was when its device failed. `completed` cannot tell, because from then on it says that
  // everything is over. Any thread.
  virtual uint64_t reached(const Stream& stream) const { return stream.completed.load(std::memory_order_acquire); }
  // True if work on a device that was given up may go on for ever: a body or a kernel that never ends. Then nothing
  // that it may still touch may be freed, and the device is not destroyed. Any thread.
  virtual bool is_stuck() const { return false; }
  // Gives the device up from outside, because nothing completed for too long (semantics.md 4.9). Poisons it as lost.
  // Any thread.
  virtual void declare_lost(const std::string& sentence) { (void)sentence; }

  virtual Hardware hardware() const { return {}; }
  // Makes it the device that libraries use in the calling thread, whichever that was. Any thread.
  virtual void enter_thread() {}

  // The host's processors that are near the device, as "0-15,32"; "": any.
  virtual std::string local_cpus() const { return ""; }
  // Calls into its driver so far, by name; empty if it has none.
  virtual std::map<std::string, uint64_t> driver_calls() const { return {}; }
  // Current readings of its hardware, by name and unit: "temperature_c". Empty if it has none. Any thread.
  virtual std::map<std::string, double> gauges() const { return {}; }

 protected:
  explicit Device(std::string domain) : domain_(std::move(domain)) {}
  // Call it first in allocate(). True in steady state.
  bool record_allocation() {
    if (steady_) steady_allocations_.fetch_add(1, std::memory_order_relaxed);
    return steady_;
  }

 private:
  std::string domain_;
  bool steady_ = false;
  std::atomic<uint64_t> steady_allocations_{0};
};

} // namespace millrace::device
