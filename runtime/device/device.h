// A device: memory of its own, streams that run work in order, and words in host memory that say how far they are.
// cpu, sim and cuda implement it; tests/device/conformance.h says what each must do.
//
// A fence is (word, sequence). Everything that can be waited for is a fence, and completion is always a word in host
// memory, so a worker waits for a thread, a copy engine, a GPU or a link in one and the same way (semantics.md 4.2).
// Whoever moves a word stores with release, then calls notify_all() on it (a host may sleep in word->wait()), then
// kicks the devices whose streams wait for it. A word outlives everything that waits for it.
//
// After a fatal error (semantics.md 4.9) a device is poisoned: no later body or copy runs, but every fence, issued
// before or after, still becomes done in its turn, so that no host waits for ever. status() tells the error before any
// word tells that the failed command is over: whoever sees a fence done and then finds status() good has good bytes.
// Such a fence says that nothing of this device runs behind it, not that what it waited for on another device is over.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "device/event_count.h"

struct mr_device_tick; // abi.h: the numbers of a tick as kernels read them

namespace millrace::device {

// A point in a stream. Done when the word has reached the sequence; a null word is always done.
inline constexpr uint64_t kFailed = UINT64_MAX; // what the words of a real device hold once it has failed

struct Fence {
  const std::atomic<uint64_t>* word = nullptr;
  uint64_t sequence = 0;
  bool done() const { return !word || word->load(std::memory_order_acquire) >= sequence; }
};

enum class StreamKind { compute, copy_in, copy_out, copy_peer };

// Work in order. `issued` counts what was submitted, `completed` what is done; both only grow. They count commands, of
// which a call makes one or none (a wait for what is already over): only fences tell how far a caller's work is.
struct Stream {
  StreamKind kind = StreamKind::compute;
  uint32_t index = 0;               // within its device
  std::atomic<uint64_t>& completed; // a device that writes it by itself has it where it can
  uint64_t issued = 0;              // the submitting thread's
  // For bodies that enqueue (Enqueuing): where to, and where kernels find their tick, in device memory. Between
  // begin_record and end_record they are the recording's.
  void* native = nullptr;
  const mr_device_tick* tick = nullptr;
  // Notified after `completed` has advanced; set it before the first command. It is shared, because the waiter may be
  // gone by the time of the notification.
  std::shared_ptr<EventCount> wakeup;

  Stream() : completed(own_word_) {}
  explicit Stream(std::atomic<uint64_t>& word) : completed(word) {}
  virtual ~Stream() = default;

 private:
  std::atomic<uint64_t> own_word_{0};
};

// Properties are set before an arena is made (semantics.md 3.2).
struct ArenaProperties {
  bool pinned = false;
};

// One reservation of memory in one domain. Freed with its device.
struct Arena {
  std::byte* base = nullptr; // as the host sees it: on sim and cuda not to be touched by the host
  uint64_t bytes = 0;
  ArenaProperties properties;
};

// A part of an arena that somebody uses, and whose it is.
struct NamedBytes {
  const std::byte* address = nullptr;
  uint64_t bytes = 0;
  std::string name; // "blur.out in cuda:0"
};

// Bytes that a body reads or writes, by their address as the host sees it.
struct Access {
  const std::byte* address = nullptr;
  uint64_t bytes = 0;
  bool writes = false;
};

// A body to run on the device's own time. The context must stay valid and unchanged until the fence behind it is done.
struct Work {
  void (*run)(void* context) = nullptr;
  void* context = nullptr;
  const char* name = ""; // the handler, for reports
  int64_t cost_ns = 0;   // declared, for virtual time
  // What the body may touch; null: not told. Looked at by run(), of a recorded body by each replay(), and only where
  // checks_accesses() says so.
  const std::vector<Access>* accesses = nullptr;
  // Recorded: which earlier run() calls of the recording it needs, counted from 0; others it may run beside. Null: all.
  const std::vector<uint32_t>* after = nullptr;
};

// What changes from tick to tick for kernels.
struct TickNumbers {
  uint64_t index = 0;
  int64_t media_time_ns = 0;
  friend bool operator==(const TickNumbers&, const TickNumbers&) = default;
};

// Who is told how long the commands between begin_span() and end_span() took, some time after they are over.
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

// One recorded run of work on one stream, replayed as a whole with frozen arguments and addresses. Outlives the fence
// of its last replay.
struct Recording {
  virtual ~Recording() = default;
};

// The second interface of a device whose bodies enqueue: cuda, and sim where it is told to. The host calls such a body
// when it is submitted, and the body leaves its work on Stream::native. What it says of its outputs is known at once;
// their bytes come later.
class Enqueuing {
 public:
  // Calls the body now. Two threads may be in bodies of two streams at once, and another one may submit to a third
  // meanwhile.
  virtual void call(Stream& stream, const Work& work) = 0;
  // The error that the stream's last body left and did not report, told once; "": none.
  virtual std::string take_body_error(Stream& stream) = 0;
  // Kernels that are enqueued from now on read these numbers at Stream::tick.
  virtual void set_tick(Stream& stream, const TickNumbers& numbers) = 0;
  // Why the last recording could not be had.
  virtual std::string record_failure() const = 0;
  // Brings what a replay needs into the processor's caches, and changes nothing: for who knows that one comes soon.
  virtual void warm_up(Stream& stream, Recording& recording) = 0;

  // Device time between two points of a stream: false where it cannot be told, or too many spans are open. Told by a
  // later call of the submitting thread, or by collect_spans().
  virtual bool begin_span(Stream& stream) = 0;
  virtual void end_span(Stream& stream, const Span& span) = 0;
  virtual void collect_spans() = 0;

  // Holds back commands submitted from now on until resume(). So a span measured in between contains none of the host's
  // time for submitting. One stream may be paused at a time, and nothing may wait for a fence of a held command. The
  // device resumes by itself after a failure or after a while, so that a body which does wait is not stuck for ever.
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

  // Null and a status where there is not enough. Not on the hot path.
  virtual Arena* allocate(uint64_t bytes, ArenaProperties properties, DeviceStatus& status) = 0;
  // What of an arena of this device is used: the rest nobody may touch from now on. For tools that watch what kernels
  // touch; called once for an arena, before anything runs there.
  virtual void name_parts(const Arena& arena, const std::vector<NamedBytes>& parts) { (void)arena, (void)parts; }
  virtual uint64_t bytes_allocated() const = 0;
  virtual uint64_t bytes_limit() const = 0; // 0: not known

  // Where a body on this device finds what the host calls `address`: memory of its own, of the host, or of a peer whose
  // memory it may access.
  virtual std::byte* body_address(std::byte* address) const { return address; }

  virtual Stream* create_stream(StreamKind kind) = 0;

  // Enqueues a body that runs on the device's own time. A failure poisons the device and is reported by status(). Where
  // no body can run by itself (cuda), it is Enqueuing::call() that takes one.
  virtual void run(Stream& stream, const Work& work) = 0;
  // The other way to give a device a body; null: run() is the only one.
  virtual Enqueuing* enqueuing() { return nullptr; }
  // Whether more may be submitted to the stream now: elsewhere a stream that has too much under way poisons the device.
  virtual bool has_room(const Stream& stream) const { return (void)stream, true; }
  // Copies between this device's memory and host memory, within this device, or from a peer's memory to this device's;
  // where bodies enqueue also from this device's to a peer's. Addresses as the host sees them.
  virtual void copy(Stream& stream, std::byte* target, const std::byte* source, uint64_t bytes) = 0;
  // The stream goes on after the fence, which must have been issued.
  virtual void wait(Stream& stream, const Fence& fence) = 0;
  // A fence behind all that was enqueued so far.
  virtual Fence signal(Stream& stream) = 0;

  // Nobody reads these bytes of this device any more before they are written anew. Where unwritten bytes are poisoned
  // (sim in adversarial mode) these are poisoned again, in stream order; elsewhere nothing happens.
  virtual void discard(Stream& stream, std::byte* address, uint64_t bytes) { (void)stream, (void)address, (void)bytes; }
  // True if discard() does something: elsewhere nobody need call it.
  virtual bool poisons_discarded() const { return false; }

  // Between begin and end, run(), copy() and discard() on the stream are recorded and not run; wait(), signal() and
  // replay() on it poison the device as invalid, because a recording is one command without a middle. A replay is one
  // command.
  // end_record() returns null where a body did what cannot be recorded; Enqueuing::record_failure() says what.
  virtual void begin_record(Stream& stream) = 0;
  virtual std::unique_ptr<Recording> end_record(Stream& stream) = 0;
  virtual void replay(Stream& stream, Recording& recording, const TickNumbers& numbers = {}) = 0;
  // Whether Work::accesses is looked at: elsewhere nobody need fill it in.
  virtual bool checks_accesses() const { return false; }

  // A word that is not this device's own has moved: streams that wait for it may go on. cpu and virtual devices need
  // it, from their submitting thread; others take it as a hint, from any thread.
  virtual void kick() {}

  // Lets a device that runs nothing by itself (cpu behind a fence, virtual, adversarial) get on until the fence is
  // done. Returns false where the device works by itself or cannot make this fence done: it may hang on another
  // device's fence, so a host that waits in such a graph goes round all devices with force_any() until the fence is
  // done. Called by the submitting thread; on an adversarial device by any thread. On a virtual device it steps the
  // timeline, everybody's events included.
  virtual bool force(const Fence& fence) {
    (void)fence;
    return false;
  }
  // The same without a fence in mind: run something, if anything can. For a host that waits for several.
  virtual bool force_any() { return false; }

  // Announces that a host is about to wait on the event count of this device's streams. The device notifies it once,
  // when a completed word advances next. For devices whose words advance without a notification. Any thread.
  virtual void watch() {}

  // Steady state begins or ends: in it allocate() is counted, and is an error on sim and cuda.
  void steady(bool on) {
    if (on) steady_allocations_.store(0, std::memory_order_relaxed);
    steady_ = on;
  }
  // Calls of allocate() since steady state began. Any thread.
  uint64_t steady_allocations() const { return steady_allocations_.load(std::memory_order_relaxed); }
  // Fatal errors are sticky: the domain is poisoned and nothing more runs there. Any thread.
  virtual DeviceStatus status() const = 0;
  // Whether that is an error: true before anybody is let go by it, and for ever. Any thread.
  virtual bool failed() const { return !status().ok(); }
  // How far the stream was when its device failed: `completed` says since that all is over. Any thread.
  virtual uint64_t reached(const Stream& stream) const { return stream.completed.load(std::memory_order_acquire); }
  // Whether something of it may go on for ever although it was given up: a body or a kernel that never ends. Then
  // nothing that it may still touch may be freed, and it is not destroyed. Any thread.
  virtual bool is_stuck() const { return false; }
  // Gives the device up from outside: no completion for too long (semantics.md 4.9). Poisons it as lost. Any thread.
  virtual void declare_lost(const std::string& sentence) { (void)sentence; }

  // Processors of the host that are near it, as "0-15,32"; "": any.
  virtual std::string local_cpus() const { return ""; }
  // Calls into its driver so far, by name; empty where it has none.
  virtual std::map<std::string, uint64_t> driver_calls() const { return {}; }
  // What its hardware says of itself now, by name and unit: "temperature_c". Empty where nothing does. Any thread.
  virtual std::map<std::string, double> gauges() const { return {}; }

 protected:
  explicit Device(std::string domain) : domain_(std::move(domain)) {}
  // First in allocate(). True in steady state.
  bool note_allocation() {
    if (steady_) steady_allocations_.fetch_add(1, std::memory_order_relaxed);
    return steady_;
  }

 private:
  std::string domain_;
  bool steady_ = false;
  std::atomic<uint64_t> steady_allocations_{0};
};

} // namespace millrace::device
