// Input ports, and the relations that an output may have to one.
#pragma once

#include <concepts>
#include <cstdint>
#include <utility>

#include "millrace/handler/base.h"
#include "millrace/payload.h"

#pragma GCC visibility push(hidden)
namespace millrace {
inline namespace v1 {

namespace detail {
inline void apply(PortData& p, MayRepeat) { p.port.flags |= MR_PORT_REPEATS; }
inline void apply(PortData& p, Dense) { p.port.flags |= MR_PORT_DENSE; }
inline void apply(PortData& p, Optional) { p.port.flags |= MR_PORT_OPTIONAL; }
inline void apply(PortData& p, IdleWithout) { p.port.flags |= MR_PORT_IDLE_WITHOUT; }
inline void apply(PortData& p, Newest) { p.port.flags |= MR_PORT_NEWEST; }
inline void apply(PortData& p, Lasting) { p.port.flags |= MR_PORT_LASTING; }
inline void apply(PortData& p, OnCpu) { p.port.memory = MR_MEMORY_CPU; }
inline void apply(PortData& p, OnGpu) { p.port.memory = MR_MEMORY_GPU; }
inline void apply(PortData& p, Keeps k) { p.port.keeps = k.count; }
inline void apply(PortData& p, Pixels x) { p.port.accepts.pixel_formats = x.bits; }
inline void apply(PortData& p, DTypes d) { p.port.accepts.dtypes = d.bits; }
inline void apply(PortData& p, Ranks r) { p.port.accepts.ranks = r.bits; }
inline void apply(PortData& p, CountMax c) { p.port.accepts.record_count_max = c.count; }
inline void apply(PortData& p, Help h) { p.port.help = h.text; }
inline void apply(PortData& p, SquarePixels) { p.port.flags |= MR_PORT_SQUARE; }
inline void apply(PortData& p, Relation r) {
  p.port.like = static_cast<int32_t>(r.input);
  p.port.flags |= r.flags;
}

template <class T, class... Options>
PortData make_port(uint32_t direction, const char* name, const Options&... options) {
  PortData data;
  data.type_name = T::type_name();
  data.port.size = sizeof(mr_port);
  data.port.direction = direction;
  data.port.name = name;
  data.port.help = "";
  data.port.like = -1;
  data.port.many_max = 1;
  data.port.accepts.size = sizeof(mr_format);
  data.port.accepts.kind = T::kKind;
  data.port.accepts.schema = T::kSchema.empty() ? 0 : schema_of(T::kSchema);
  if constexpr (T::kKind == MR_KIND_RECORDS) {
    data.port.accepts.record_size = sizeof(typename T::Element);
    data.port.accepts.layout = layout_of<typename T::Element>();
    data.port.accepts.records = record_type_of<typename T::Element>();
  }
  (apply(data, options), ...);
  return data;
}

} // namespace detail

// ---- ports -------------------------------------------------------------------------------------------------

// An input that carries at most one value a tick. Options: optional, newest, keeps(k), pixels({…}), dtypes<…>(),
// rank(n), on_cpu, on_gpu, help("…").
template <class T>
class Input {
  static_assert(Payload<T>, "a port carries Image, Tensor, Packet, Records<T>, Object<T> or Any");

 public:
  template <class... Options>
  Input(Handler& owner, const char* name, const Options&... options)
      : port_(owner.add_port(detail::make_port<T>(MR_INPUT, name, options...), first_, count_)) {}
  Input(const Input&) = delete;
  Input& operator=(const Input&) = delete;

  uint32_t port() const { return port_; }
  uint32_t first() const { return first_; }
  bool connected() const { return count_ > 0; }
  bool present(const Tick& tick) const { return connected() && raw(tick).value; }
  // True if no more values come because the upstream handlers have ended. Always false for an edge with `latest` or a
  // queue, and for all but the first 64 edges of a handler.
  bool ended(const Tick& tick) const { return first_ < 64 && (tick.raw().ended >> first_ & 1); }
  // The value of this tick. Call present() first if the input is optional.
  typename T::View operator()(const Tick& tick) const { return T::view(raw(tick)); }
  // The tensors of all items as one, with the rows of the first item first: [rows of all, …]. The input must be
  // declared mr::dense.
  DenseView all(const Items& items) const requires std::same_as<T, Tensor> {
    DenseView all(view(raw(items[0])).value(), raw(items[0]).data);
    for (uint32_t i = 1; i < items.size(); ++i) all.add_rows(view(raw(items[i])).shape()[0]);
    return all;
  }
  const mr_input& raw(const Tick& tick) const { return tick.raw().inputs[first_]; }

 private:
  static auto view(const mr_input& input) { return T::view(input); }

  uint32_t port_;
  uint32_t first_ = 0; // its entry in the flat arrays
  uint32_t count_ = 1; // its edges
};

// An input that takes a list of edges. `(tick, i)` is the value of edge i.
template <class T>
class Inputs {
  static_assert(Payload<T>, "a port carries Image, Tensor, Packet, Records<T>, Object<T> or Any");

 public:
  template <class... Options>
  Inputs(Handler& owner, const char* name, uint32_t count_max, const Options&... options) {
    detail::PortData data = detail::make_port<T>(MR_INPUT, name, options...);
    data.port.flags |= MR_PORT_MANY;
    data.port.many_max = count_max;
    port_ = owner.add_port(std::move(data), first_, count_);
  }
  Inputs(const Inputs&) = delete;
  Inputs& operator=(const Inputs&) = delete;
  uint32_t port() const { return port_; }
  uint32_t first() const { return first_; }
  uint32_t count() const { return count_; }
  bool present(const Tick& tick, uint32_t index) const { return raw(tick, index).value; }
  bool ended(const Tick& tick, uint32_t index) const { // see Input::ended
    return first() + index < 64 && (tick.raw().ended >> (first() + index) & 1);
  }
  typename T::View operator()(const Tick& tick, uint32_t index) const { return T::view(raw(tick, index)); }
  const mr_input& raw(const Tick& tick, uint32_t index) const { return tick.raw().inputs[first() + index]; }

 private:
  uint32_t port_ = 0;
  uint32_t first_ = 0;
  uint32_t count_ = 0;
};

// like(input): the output has the input's format.
// forward(input): the handler may also publish the input's own buffer.
// in_place(input): the handler may write the output over the input's buffer, if the plan allows it.
template <class Port>
Relation like(const Port& input) {
  return {input.port(), 0};
}
template <class Port>
Relation forward(const Port& input) {
  return {input.port(), MR_PORT_FORWARDS};
}
template <class Port>
Relation in_place(const Port& input) {
  return {input.port(), MR_PORT_IN_PLACE};
}

} // namespace v1
} // namespace millrace
#pragma GCC visibility pop
