// Handlers whose bodies enqueue on a simulated device, and what such handlers are written with.
#pragma once

#include <millrace/handler.h>

#include <map>
#include <mutex>
#include <set>
#include <stdexcept>

#include "alike.h"
#include "device/sim/sim.h"
#include "test_handlers.h"

#pragma GCC visibility push(hidden) // as what they are made of is
namespace millrace::test::enqueued {

inline device::SimQueue& queue(const Cuda& cuda) { return *static_cast<device::SimQueue*>(cuda.stream()); }
inline int64_t* numbers(uint8_t* data) { return reinterpret_cast<int64_t*>(data); }
inline const int64_t* numbers(const uint8_t* data) { return reinterpret_cast<const int64_t*>(data); }
inline int64_t number(const TensorView& view) { return view.elements<int64_t>()[0]; }
inline int64_t* fresh(const Output<Tensor>& out, Tick& tick) {
  const int64_t shape[] = {1};
  return numbers(out.allocate(tick, dtype_of<int64_t>(), shape).data());
}

struct Index final : Handler { // its tick's index, on the host or on the device
  Output<Tensor> out{*this, "out"};
  Param<int64_t> count{*this, "count", 0, "values"};
  Index() { capturable(); }
  void probe(Facts& facts) override { facts.tick_count(*count); }
  void configure(const Formats& formats) override { formats.tensor(out, dtype_of<int64_t>(), {1}); }
  void process(Tick& tick, Cpu&) {
    if (tick.index() >= static_cast<uint64_t>(*count)) return tick.end();
    *fresh(out, tick) = static_cast<int64_t>(tick.index());
  }
  void process(Tick& tick, Cuda& cuda) {
    queue(cuda).launch([to = fresh(out, tick), at = cuda.tick()] { *to = static_cast<int64_t>(at->index); });
  }
};

inline constexpr int64_t kFewMax = 7;
inline uint64_t fill(Box* to, int64_t value) {
  const auto count = static_cast<uint64_t>(value % (kFewMax + 1));
  for (uint64_t b = 0; b < count; ++b) to[b] = {.id = value * 10 + static_cast<int64_t>(b)};
  return count;
}

// As many boxes as the value says, from none to all: on a device its kernel alone knows. With on_cpu they are written
// to the host.
struct MakesFew : Handler {
  Input<Tensor> in{*this, "in"};
  Output<Records<Box>> out;
  template <class... Where>
  explicit MakesFew(Where... where) : out(*this, "out", count_max(kFewMax), where...) {
    capturable();
  }
  void process(Tick& tick, Cpu&) {
    Box* to = out.allocate(tick, kFewMax).data();
    out.shrink(tick, fill(to, number(in(tick))));
  }
  void process(Tick& tick, Cuda& cuda) {
    queue(cuda).launch([to = out.allocate(tick, kFewMax).data(), count = Cuda::count_of(out.raw(tick)),
                        from = numbers(in(tick).data())] { *count = fill(to, *from); });
  }
};
struct Few final : MakesFew {};
struct HostFew final : MakesFew {
  HostFew() : MakesFew(on_cpu) {}
};

struct Total final : Handler { // of all that came, in order
  Input<Records<Box>> in{*this, "in"};
  Output<Tensor> out{*this, "out"};
  Total() { capturable(); }
  void configure(const Formats& formats) override { formats.tensor(out, dtype_of<int64_t>(), {1}); }
  static int64_t of(const Box* boxes, uint64_t count) {
    int64_t total = static_cast<int64_t>(count);
    for (uint64_t b = 0; b < count; ++b) total = mix(total, boxes[b].id);
    return total;
  }
  void process(Tick& tick, Cpu&) {
    const std::span<const Box> boxes = in(tick);
    const bool all = in.raw(tick).value->header.extent_bytes == boxes.size_bytes();
    *fresh(out, tick) = all ? of(boxes.data(), boxes.size()) : -1;
  }
  void process(Tick& tick, Cuda& cuda) {
    queue(cuda).launch([to = fresh(out, tick), boxes = in(tick).data(),
                        count = &Cuda::value_of(in.raw(tick))->as.records.count] { *to = of(boxes, *count); });
  }
};

// The sum and the number of what came, in two states of its own. `where` has the addresses that its bodies were given.
struct Sums final : Handler {
  Input<Tensor> in{*this, "in"};
  Output<Tensor> out{*this, "out", like(in)};
  State<int64_t> sum{*this};
  State<int64_t> counts{*this};
  Param<int64_t> fail_at{*this, "fail_at", -1, "the tick that fails, in finish() after a GPU body"};
  inline static std::mutex mutex;
  inline static std::map<uint32_t, std::set<const void*>> where; // by stream
  Sums() { capturable(); }
  void configure(const Formats&) override { counts.resize(3); }
  static int64_t of(int64_t value, int64_t* sum, int64_t* counts) {
    *sum += value;
    ++counts[2];
    return *sum * 1000 + counts[2] + counts[0];
  }
  void note(const Tick& tick) const {
    const std::lock_guard lock(mutex);
    where[tick.stream()].insert({sum(tick).data(), counts(tick).data()});
  }
  void fail(const Tick& tick) const {
    if (static_cast<int64_t>(tick.index()) == fail_at) throw std::runtime_error("told to fail");
  }
  void process(Tick& tick, Cpu&) {
    note(tick);
    *fresh(out, tick) = of(number(in(tick)), sum(tick).data(), counts(tick).data());
    fail(tick);
  }
  void process(Tick& tick, Cuda& cuda) {
    note(tick);
    queue(cuda).launch([to = fresh(out, tick), from = numbers(in(tick).data()), total = sum(tick).data(),
                        count = counts(tick).data()] { *to = of(*from, total, count); });
  }
  void finish(Tick& tick, Cpu&) { fail(tick); }
};

} // namespace millrace::test::enqueued
#pragma GCC visibility pop
