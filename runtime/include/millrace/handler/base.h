// The base class of handlers. The members of a derived class declare its ports and parameters here.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <exception>
#include <new>
#include <optional>
#include <stdexcept>
#include <string>
#include <typeinfo>
#include <utility>
#include <vector>

#include "millrace/abi.h"
#include "millrace/handler/facts.h"
#include "millrace/handler/formats.h"
#include "millrace/handler/items.h"
#include "millrace/handler/options.h"
#include "millrace/handler/tick.h"

#pragma GCC visibility push(hidden)
namespace millrace {
inline namespace v1 {

namespace detail {
// A port as it was declared. bind() writes the port's place in the flat arrays of a tick into the port object.
struct PortData {
  mr_port port{};
  std::string type_name;
  uint32_t* first = nullptr; // index of its first edge
  uint32_t* count = nullptr; // number of its edges
};
// A parameter as it was declared, and the member that holds its value.
struct ParamData {
  mr_param param{};
  std::vector<const char*> choices;
  void* target = nullptr;
  void (*assign)(void* target, const mr_param_value& value) = nullptr;
  std::string default_text;
};
// A State as it was declared; `offset` is its place in mr_tick::state.
struct StateData {
  uint64_t bytes = 0, offset = 0;
};
template <class H>
concept HasTickBody = requires(H& h, Tick& tick, Cpu& cpu) {
  h.process(tick, cpu);
};
template <class H>
concept HasItemsBody = requires(H& h, Items& items, Cpu& cpu) {
  h.process(items, cpu);
};
template <class H>
concept HasCpuBody = HasTickBody<H> || HasItemsBody<H>;
template <class H>
concept HasCudaBody = requires(H& h, Tick& tick, Cuda& cuda) {
  h.process(tick, cuda);
};
template <class H>
concept HasTickFinish = requires(H& h, Tick& tick, Cpu& cpu) {
  h.finish(tick, cpu);
};
template <class H>
concept HasItemsFinish = requires(H& h, Items& items, Cpu& cpu) {
  h.finish(items, cpu);
};
template <class H>
concept HasFinish = HasTickFinish<H> || HasItemsFinish<H>;
template <class H>
struct Type;
} // namespace detail

// Thrown by a handler for a fault of a kind that has an error code of its own.
class CodedError : public std::runtime_error {
 public:
  // `fault`: one of MR_FAULT_*.
  CodedError(uint32_t fault, const std::string& sentence) : std::runtime_error(sentence), fault_(fault) {}
  uint32_t fault() const { return fault_; }

 private:
  uint32_t fault_;
};

// The base of all handlers. The members of a derived class are constructed in order, and each declares itself here.
// handler.h draws when each of the functions below is called.
class Handler {
 public:
  Handler() = default;
  Handler(const Handler&) = delete;
  Handler& operator=(const Handler&) = delete;
  virtual ~Handler() = default;

  // Opens the file or the camera as far as rates and sizes need it. It may block, and it may throw.
  virtual void probe(Facts&) {}
  // Removes the formats that the parameters rule out from `accepts`, the formats that a port takes or makes. `port` is
  // the index that port() of the Input or Output gives. An encoder removes pixel formats here, for example. Throw
  // std::invalid_argument to refuse the parameters.
  virtual void narrow(uint32_t /*port*/, Format& /*accepts*/) {}
  // Sets the formats of outputs that are not declared `like` an input. It may be called several times while a plan is
  // made: the last call counts, so open nothing and allocate nothing here.
  virtual void configure(const Formats&) {}
  // Allocates, loads models, starts threads. A handler overrides one of the two. On cuda the device is the current one
  // of the calling thread, so a kernel's limit of shared memory or a library's handle is set up on the right GPU; it is
  // again in stop(). Scratch memory is planned before this call (needs_scratch).
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Woverloaded-virtual" // a handler hides the one that it does not override
#ifdef __NVCC__
#pragma nv_diag_suppress 611 // nvcc's words for the same, which it says at each handler
#endif
  virtual void start() {}
  virtual void start(const DeviceInfo&) { start(); }
#pragma GCC diagnostic pop
  // Publishes every deferred firing, and closes what is written. Called at the end of the stream. Of a handler with
  // max_pending() it is also called when its stream begins anew, and if it drains_freely() in a gap too long for the
  // clock's window; reset() and process() come after those.
  virtual void drain() {}
  // Closes what is open and ends the handler's threads.
  virtual void stop() {}
  // Forgets the past. Called when the stream begins anew, before process() goes on after drain(), and before start() in
  // a restart or of a stream that comes. The runtime clears every State by itself.
  virtual void reset() {}
  // Ends a blocked call of any other function. Called from any thread.
  virtual void interrupt() {}

 protected:
  // Traits, set in the constructor.

  // Results depend on the tick's inputs alone. Several instances may run at a time.
  void stateless() { traits_ |= MR_TRAIT_STATELESS; }
  // Its calls may wait for something outside: a device, a file, a peer.
  void blocking() { traits_ |= MR_TRAIT_BLOCKING; }
  // The GPU body may be captured into a graph; see Cuda.
  void capturable() { traits_ |= MR_TRAIT_CAPTURABLE; }
  // The GPU body keeps the host busy for long, so it gets a submitting thread and a stream of its own.
  void host_heavy() { traits_ |= MR_TRAIT_HOST_HEAVY; }
  // `process` allocates nothing from the heap in a steady run. `check-handler` verifies it.
  void no_allocation() { traits_ |= MR_TRAIT_NO_ALLOCATION; }
  // process(), finish() and drain() come from one thread, which handlers that give the same name share: for a library
  // that needs it. Construction, probe(), configure(), start() and stop() come from other threads.
  void thread(const char* name) { thread_ = name; }
  // At most `count` firings are deferred when a call returns; during a call one more may be (Tick::defer()).
  void max_pending(uint32_t count) { max_pending_ = count; }
  // From a firing until its publication, at most `ticks` ticks in all may pass on which the handler does not fire. Each
  // costs memory: one more tick of every value that waits for its results. A longer gap ends the run, unless the
  // handler drains_freely(). Gaps have no limit, and this is not needed, if all inputs of the downstream handlers come
  // from this handler alone.
  void gap(uint32_t ticks) { gap_ = ticks; }
  // drain() followed by reset() costs only time: no key frame, lost reference or forgotten track. So the runtime may
  // drain the handler in a gap of any length.
  void drains_freely() { traits_ |= MR_TRAIT_DRAINS_FREELY; }
  // The handler publishes deferred firings from its own threads, also while it is in no call. (Handlers that lag their
  // clock are another matter: the edges of the pipeline make them so.)
  void asynchronous() { traits_ |= MR_TRAIT_ASYNCHRONOUS; }
  // The handler converts pictures: its parameters with a role (says_pixels, says_turn, …) describe the output picture.
  // The plan inserts it on an edge whose two ends have no format in common. Among several such handlers, built-in ones
  // come first, then the order of their names decides.
  void converts() { traits_ |= MR_TRAIT_CONVERTS; }
  // process(Items&, …) takes up to `most` items a call, at most MR_ITEMS_MAX. How many they are depends on the load, so
  // what an item gives must not depend on the other items of its call. `check-handler` verifies it.
  void items(uint32_t most) { items_max_ = most; }
  // The expected time of one call, in microseconds.
  void cost_hint_us(double us) { cost_hint_ns_ = static_cast<int64_t>(us * 1000); }
  // Bytes of device memory for the GPU body alone, at Cuda::scratch(). The memory is not initialised, is kept from
  // start() to stop(), and nobody clears it. What a stream must forget goes into a State. Call it in the constructor or
  // in configure().
  void needs_scratch(uint64_t bytes) { declaration_.scratch_bytes = bytes; }

  // Bytes of host memory that the CPU body takes from the system by itself, for example through a library. The plan
  // counts them, in whole MiB, and gives nothing. Call it in the constructor or in configure().
  void takes_host_memory(uint64_t bytes) { declaration_.host_mib = whole_mib(bytes); }
  // The same for bytes of the device's memory that the GPU body takes, such as a texture or what a library works in.
  void takes_device_memory(uint64_t bytes) { declaration_.device_mib = whole_mib(bytes); }

  // Services of the runtime.

  // The stream of the GPU body and its memory, for start(): a library that wants them before the first tick can be
  // given them there. Empty if a CPU body runs. Valid until stop() returns.
  std::optional<GpuPlace> gpu() const {
    mr_gpu found{sizeof(mr_gpu), 0, nullptr, nullptr, nullptr};
    const bool knows_gpus = host_->size > offsetof(mr_host, find_gpu) && host_->find_gpu;
    if (!knows_gpus || host_->find_gpu(context_, &found) != MR_OK) return std::nullopt;
    return GpuPlace{found.native_stream, found.scratch, declaration_.scratch_bytes, found.library};
  }
  // The object of this name and type that the handlers of this plugin share in this run. The first call makes it. It
  // is there until stop() has returned in each handler that called, or its start() has thrown, so start() asks for it
  // anew. Throws what T's constructor throws, which must not share by itself.
  template <class T>
  T& share(const std::string& name) const {
    std::exception_ptr failure;
    const auto make = [](void* context) -> void* {
      try {
        return new T();
      } catch (...) {
        *static_cast<std::exception_ptr*>(context) = std::current_exception();
        return nullptr;
      }
    };
    const std::string key = std::string(typeid(T).name()) + " " + name;
    void* const shared = host_->share(
        context_, key.c_str(), make, [](void* object) { delete static_cast<T*>(object); }, &failure);
    if (failure) std::rethrow_exception(failure);
    if (!shared) throw std::bad_alloc(); // the runtime has said why
    return *static_cast<T*>(shared);
  }
  // Serves a page from now on, until stop() is called (mr_site says what that is). Throws if it cannot be served.
  void serve(const mr_site& site) const {
    if (host_->serve(context_, &site) != MR_OK) throw std::bad_alloc(); // the runtime has said why
  }
  int64_t now_ns() const { return host_->now_ns(context_); }
  void log(uint32_t level, const std::string& sentence) const { host_->log(context_, level, sentence.c_str()); }
  // Adds to a number of the report. Any thread may call it. It is not free: do not call it on every tick.
  void count(const char* name, int64_t add = 1) const { host_->count(context_, name, add); }
  // Reports a failure from the handler's own thread, outside any call. `on_error` decides: it ends the run, or it is
  // logged and counted. Inside a call, throw instead.
  void fail(const std::string& sentence) const { host_->fail(context_, sentence.c_str()); }

 private:
  static uint32_t whole_mib(uint64_t bytes) {
    constexpr uint64_t kMiB = 1 << 20;
    return static_cast<uint32_t>(std::min<uint64_t>(bytes / kMiB + (bytes % kMiB > 0), UINT32_MAX));
  }
  template <class>
  friend class Input;
  template <class>
  friend class Inputs;
  template <class>
  friend class Output;
  template <class>
  friend class Param;
  template <class T>
  friend class State;
  template <class>
  friend struct detail::Type;

  uint32_t add_port(detail::PortData port, uint32_t& first, uint32_t& count) {
    port.first = &first;
    port.count = &count;
    ports_.push_back(std::move(port));
    return static_cast<uint32_t>(ports_.size() - 1);
  }
  detail::StateData& add_state() { return states_.emplace_back(); }
  // Sets the size of one state, and with it the places of all.
  void size_state(detail::StateData& state, uint64_t bytes) {
    constexpr uint64_t kMost = uint64_t{1} << 40, kAligned = 256;
    if (bytes > kMost) throw std::length_error("a state of " + std::to_string(bytes) + " bytes; 1 TiB is the most");
    state.bytes = bytes;
    declaration_.state_bytes = 0;
    for (detail::StateData& each : states_) {
      each.offset = declaration_.state_bytes;
      declaration_.state_bytes += (each.bytes + kAligned - 1) / kAligned * kAligned;
    }
  }
  const mr_declaration* declare(uint32_t bodies);
  void bind(const uint32_t* edge_counts);

  std::deque<detail::PortData> ports_;
  std::deque<detail::ParamData> params_;
  std::deque<detail::StateData> states_;
  std::vector<mr_port> raw_ports_;
  std::vector<mr_param> raw_params_;
  mr_declaration declaration_{};
  uint32_t traits_ = 0;
  uint32_t max_pending_ = 0, gap_ = 0, items_max_ = 0;
  int64_t cost_hint_ns_ = 0;
  const char* thread_ = nullptr;
  const mr_host* host_ = nullptr;
  void* context_ = nullptr;
};

} // namespace v1
} // namespace millrace
#pragma GCC visibility pop
