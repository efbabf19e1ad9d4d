// State of a handler: kept from tick to tick, in memory that the runtime owns.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <stdexcept>
#include <type_traits>

#include "millrace/handler/base.h"

#pragma GCC visibility push(hidden)
namespace millrace {
inline namespace v1 {

// An array of T that is kept from tick to tick. It lies in host memory for a CPU body and in device memory for a GPU
// body, where the host must not touch it. All its bytes are zero before the first tick, and become zero again after
// each reset(), when the handler's stream begins anew, and in a restart (`on_error: restart`). So T must be sound with
// all its bytes zero. The address stays the same, also when the runtime clears the bytes: a captured body may hold it.
//
// The plan counts the bytes with the memory of the body. A handler with a State is not stateless, and is not shared by
// several streams.
//
//   mr::State<Track> tracks{*this};                        // one, unless configure() says how many
//   void configure(const mr::Formats&) override { tracks.resize(100); }
//   void process(mr::Tick& tick, mr::Cpu&) { for (Track& track : tracks(tick)) … }
//   void process(mr::Tick& tick, mr::Cuda& cuda) { move<<<1, 128, 0, …>>>(tracks(tick).data()); }
template <class T>
class State {
  static_assert(std::is_trivially_copyable_v<T>, "a state is copied and cleared as bytes");
  static_assert(alignof(T) <= 256, "a state is aligned to 256 bytes");

 public:
  explicit State(Handler& owner) : owner_(owner), data_(owner.add_state()) { resize(1); }
  State(const State&) = delete;
  State& operator=(const State&) = delete;

  // Sets how many there are. Call it in configure(), which may be called several times: the last call counts. Throws
  // std::length_error if they take more than 1 TiB.
  void resize(uint64_t count) {
    owner_.size_state(data_, count > UINT64_MAX / sizeof(T) ? UINT64_MAX : count * sizeof(T));
    count_ = static_cast<size_t>(count);
  }
  size_t size() const { return count_; }

  // For process() alone: finish() runs beside later ticks of the GPU body, so it gets std::logic_error.
  std::span<T> operator()(const Tick& tick) const {
    if (count_ == 0) return {};
    if (!tick.raw().state) throw std::logic_error("a state belongs to process(), and this is another call");
    return {reinterpret_cast<T*>(static_cast<std::byte*>(tick.raw().state) + data_.offset), count_};
  }

 private:
  Handler& owner_;
  detail::StateData& data_;
  size_t count_ = 0;
};

} // namespace v1
} // namespace millrace
#pragma GCC visibility pop
