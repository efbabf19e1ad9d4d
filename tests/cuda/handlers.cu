// Handlers with real kernels; see rig.h.
#include <cuda_runtime.h>
#include <millrace/handler.h>
#include <millrace/launch.cuh>

#include <optional>
#include <stdexcept>

#include "rig.h"

namespace millrace::test {
namespace {

__global__ void write_index(int64_t* to, const mr_device_tick* tick) {
  await_inputs();
  *to = static_cast<int64_t>(tick->index);
}
__global__ void add_one(int64_t* to, const int64_t* from) {
  await_inputs();
  *to = *from + 1;
}
__host__ __device__ int64_t place_of(int64_t value) { return value * 7 % 100'000; }
__global__ void look_up(int64_t* to, const int64_t* from, const int64_t* table) {
  *to = *from + table[place_of(*from)];
}
__global__ void add_both(int64_t* to, const int64_t* a, const int64_t* b) {
  await_inputs();
  *to = *a * 1000 + (b ? *b : -1);
}
__global__ void add_in_place(int64_t* at) { *at += 7; }
// In cycles of a clock that most of these devices reach; where it is slower, all that spin take longer.
__global__ void spin_and_add(int64_t* to, const int64_t* from, uint64_t ns) {
  await_inputs();
  const long long until = clock64() + static_cast<long long>(ns * 1.98);
  while (clock64() < until) {
  }
  *to = *from + 1;
}
__global__ void write_wild(int64_t* to, const int64_t* from, const mr_device_tick* tick, uint64_t at) {
  if (tick->index == at) *reinterpret_cast<int64_t*>(8) = 1;
  *to = *from;
}
// The second write is past the end of its block, and before the next one.
__global__ void write_past_end(int64_t* to, const int64_t* from) {
  to[0] = *from;
  to[1] = -1;
}
__global__ void copy_wide(uint4* to, const uint4* from, uint64_t count) {
  const uint64_t at = blockIdx.x * uint64_t{blockDim.x} + threadIdx.x;
  if (at < count) to[at] = from[at];
}

// Makes v % 8 boxes of value v, numbered from 10 v.
__global__ void make_few(Box* to, uint64_t* count, const int64_t* from) {
  const int64_t made = *from % 8;
  for (int64_t b = 0; b < made; ++b) to[b].id = *from * 10 + b;
  *count = static_cast<uint64_t>(made);
}
__host__ __device__ int64_t total_of(const Box* boxes, uint64_t count) {
  int64_t total = static_cast<int64_t>(count);
  for (uint64_t b = 0; b < count; ++b) total = total * 31 + boxes[b].id;
  return total;
}
__global__ void add_up(int64_t* to, const Box* boxes, const uint64_t* count) { *to = total_of(boxes, *count); }

__global__ void mark_ends(int64_t* to, uint64_t words, const mr_device_tick* tick) {
  await_inputs();
  to[0] = to[words - 1] = static_cast<int64_t>(tick->index);
}
__global__ void read_ends(int64_t* to, const int64_t* from, uint64_t words) {
  await_inputs();
  *to = from[0] == from[words - 1] ? from[0] : -1;
}

// Each round adds one, until the number is a multiple of `of`.
struct Climbing {
  LoopWord loop;
  int64_t value;
};
__global__ void begin_climb(Climbing* climbing, const int64_t* from) {
  await_inputs();
  climbing->value = *from;
}
__global__ void climb(Climbing* climbing, int64_t of) {
  await_inputs();
  if (is_over(&climbing->loop)) return;
  if (++climbing->value % of == 0) end_loop(&climbing->loop);
}
__global__ void end_climb(int64_t* to, const Climbing* first, const Climbing* second) {
  await_inputs();
  *to = second->value * 1000 + first->loop.rounds * 100 + second->loop.rounds;
}
// Writes at the end of all the shared memory that a block can be allowed.
__global__ void fill_shared(int64_t* to, const int64_t* from, uint64_t bytes) {
  extern __shared__ int64_t shared[];
  await_inputs();
  shared[bytes / 8 - 1] = *from;
  *to = shared[bytes / 8 - 1] + 1;
}

cudaStream_t stream_of(const Cuda& cuda) { return static_cast<cudaStream_t>(cuda.stream()); }
LaunchShape one_thread(const Cuda& cuda) { return {1, 1, 0, stream_of(cuda)}; }
void check(cudaError_t error) {
  if (error != cudaSuccess) throw std::runtime_error(cudaGetErrorString(error));
}
int64_t* fresh(const Output<Tensor>& out, Tick& tick) {
  const int64_t shape[] = {1};
  return reinterpret_cast<int64_t*>(out.allocate(tick, dtype_of<int64_t>(), shape).data());
}
const int64_t* number(const TensorView& view) { return reinterpret_cast<const int64_t*>(view.data()); }

struct Index final : Handler {
  Output<Tensor> out{*this, "out"};
  Param<int64_t> count{*this, "count", 0, "values; 0: endless"};
  Index() { capturable(); }
  void probe(Facts& facts) override { facts.tick_count(*count > 0 ? *count : -1); }
  void configure(const Formats& formats) override { formats.tensor(out, dtype_of<int64_t>(), {1}); }
  void process(Tick& tick, Cpu&) {
    if (count > 0 && tick.index() >= static_cast<uint64_t>(*count)) return tick.end();
    *fresh(out, tick) = static_cast<int64_t>(tick.index());
  }
  void process(Tick& tick, Cuda& cuda) { check(launch(one_thread(cuda), write_index, fresh(out, tick), cuda.tick())); }
};

struct Add final : Handler {
  Input<Tensor> in{*this, "in"};
  Output<Tensor> out{*this, "out", like(in)};
  Add() { capturable(); }
  void process(Tick& tick, Cpu&) { *fresh(out, tick) = *number(in(tick)) + 1; }
  void process(Tick& tick, Cuda& cuda) { check(launch(one_thread(cuda), add_one, fresh(out, tick), number(in(tick)))); }
};

struct Pair final : Handler {
  Input<Tensor> a{*this, "a"};
  Input<Tensor> b{*this, "b", optional};
  Output<Tensor> out{*this, "out", like(a)};
  Pair() { capturable(); }
  void process(Tick& tick, Cpu&) {
    *fresh(out, tick) = *number(a(tick)) * 1000 + (b.present(tick) ? *number(b(tick)) : -1);
  }
  void process(Tick& tick, Cuda& cuda) {
    check(launch(one_thread(cuda), add_both, fresh(out, tick), number(a(tick)),
                 b.present(tick) ? number(b(tick)) : nullptr));
  }
};

struct InPlace final : Handler {
  Input<Tensor> in{*this, "in"};
  Output<Tensor> out{*this, "out", in_place(in)};
  InPlace() { capturable(); }
  void process(Tick& tick, Cpu&) { out.modify(tick, in).elements<int64_t>()[0] += 7; }
  void process(Tick& tick, Cuda& cuda) {
    add_in_place<<<1, 1, 0, stream_of(cuda)>>>(reinterpret_cast<int64_t*>(out.modify(tick, in).data()));
    check(cudaGetLastError());
  }
};

// Boxes, on the device or, with on_cpu, written to the host by the kernel.
struct MakesFew : Handler {
  Input<Tensor> in{*this, "in"};
  Output<Records<Box>> out;
  template <class... Where>
  explicit MakesFew(Where... where) : out(*this, "out", count_max(7), where...) {
    capturable();
  }
  void process(Tick& tick, Cpu&) {
    Box* to = out.allocate(tick, 7).data();
    const int64_t value = *number(in(tick)), made = value % 8;
    for (int64_t b = 0; b < made; ++b) to[b].id = value * 10 + b;
    out.shrink(tick, static_cast<size_t>(made));
  }
  void process(Tick& tick, Cuda& cuda) {
    Box* to = out.allocate(tick, 7).data();
    make_few<<<1, 1, 0, stream_of(cuda)>>>(to, Cuda::count_of(out.raw(tick)), number(in(tick)));
    check(cudaGetLastError());
  }
};
struct Few final : MakesFew {};
struct HostFew final : MakesFew {
  HostFew() : MakesFew(on_cpu) {}
};

// Boxes by its kernel; what they come to by finish(), on all but every third tick.
struct Judge final : Handler {
  Input<Tensor> in{*this, "in"};
  Output<Records<Box>> boxes{*this, "boxes", count_max(7), on_cpu};
  Output<Tensor> out{*this, "out", on_cpu};
  Output<Tensor> next{*this, "next", like(in)};
  Judge() { capturable(); }
  void configure(const Formats& formats) override { formats.tensor(out, dtype_of<int64_t>(), {1}); }
  void process(Tick& tick, Cpu&) {
    Box* to = boxes.allocate(tick, 7).data();
    const int64_t value = *number(in(tick)), made = value % 8;
    for (int64_t b = 0; b < made; ++b) to[b].id = value * 10 + b;
    boxes.shrink(tick, static_cast<size_t>(made));
    *fresh(next, tick) = value + 1;
  }
  void process(Tick& tick, Cuda& cuda) {
    Box* to = boxes.allocate(tick, 7).data();
    make_few<<<1, 1, 0, stream_of(cuda)>>>(to, Cuda::count_of(boxes.raw(tick)), number(in(tick)));
    check(cudaGetLastError());
    check(launch(one_thread(cuda), add_one, fresh(next, tick), number(in(tick))));
  }
  void finish(Tick& tick, Cpu&) {
    const std::span<const Box> made = boxes.view(tick);
    if (tick.index() % 3) *fresh(out, tick) = total_of(made.data(), made.size());
    if (made.size() > 2) boxes.shrink(tick, 2);
  }
};

// Lasts, and is another one on each `each`-th tick: kEntries numbers from its tick's on, in memory of its own.
constexpr int64_t kEntries = 100'000;
struct Table final : Handler {
  Input<Tensor> in{*this, "in", on_cpu};
  Output<Tensor> out{*this, "out", lasting, on_cpu};
  Param<int64_t> each{*this, "each", 1, "ticks from one to the next"};
  void configure(const Formats& formats) override { formats.tensor(out, dtype_of<int64_t>(), {kEntries}).adopted = 1; }
  void process(Tick& tick, Cpu&) {
    if (tick.index() % static_cast<uint64_t>(*each) != 0) return;
    auto* const table = new std::vector<int64_t>(kEntries);
    for (size_t i = 0; i < table->size(); ++i) (*table)[i] = *number(in(tick)) * 1000 + static_cast<int64_t>(i);
    const auto release = [](void* context) { delete static_cast<std::vector<int64_t>*>(context); };
    mr_value& value = out.adopt(tick, table->data(), table->size() * sizeof(int64_t), release, table);
    const int64_t shape[] = {kEntries};
    detail::lay_out_tensor(dtype_of<int64_t>(), shape, value.as.tensor);
  }
};

// Adds an entry of a table.
struct LookUp final : Handler {
  Input<Tensor> in{*this, "in"};
  Input<Tensor> table{*this, "table"};
  Output<Tensor> out{*this, "out", like(in)};
  LookUp() { capturable(); }
  void process(Tick& tick, Cpu&) {
    *fresh(out, tick) = *number(in(tick)) + number(table(tick))[place_of(*number(in(tick)))];
  }
  void process(Tick& tick, Cuda& cuda) {
    look_up<<<1, 1, 0, stream_of(cuda)>>>(fresh(out, tick), number(in(tick)), number(table(tick)));
    check(cudaGetLastError());
  }
};

struct Total final : Handler {
  Input<Records<Box>> in{*this, "in"};
  Output<Tensor> out{*this, "out"};
  Total() { capturable(); }
  void configure(const Formats& formats) override { formats.tensor(out, dtype_of<int64_t>(), {1}); }
  void process(Tick& tick, Cpu&) { *fresh(out, tick) = total_of(in(tick).data(), in(tick).size()); }
  void process(Tick& tick, Cuda& cuda) {
    const uint64_t* count = &Cuda::value_of(in.raw(tick))->as.records.count;
    add_up<<<1, 1, 0, stream_of(cuda)>>>(fresh(out, tick), in(tick).data(), count);
    check(cudaGetLastError());
  }
};

struct Spin final : Handler {
  Input<Tensor> in{*this, "in"};
  Output<Tensor> out{*this, "out", like(in)};
  Param<double> us{*this, "us", 10, "on the device"};
  Spin() { capturable(); }
  void process(Tick& tick, Cpu&) { *fresh(out, tick) = *number(in(tick)) + 1; }
  void process(Tick& tick, Cuda& cuda) {
    const auto ns = static_cast<uint64_t>(us * 1000);
    check(launch(one_thread(cuda), spin_and_add, fresh(out, tick), number(in(tick)), ns));
  }
};

struct PastEnd final : Handler {
  Input<Tensor> in{*this, "in"};
  Output<Tensor> out{*this, "out", like(in)};
  PastEnd() { capturable(); }
  void process(Tick& tick, Cpu&) { *fresh(out, tick) = *number(in(tick)); }
  void process(Tick& tick, Cuda& cuda) {
    write_past_end<<<1, 1, 0, stream_of(cuda)>>>(fresh(out, tick), number(in(tick)));
    check(cudaGetLastError());
  }
};

struct Wild final : Handler {
  Input<Tensor> in{*this, "in"};
  Output<Tensor> out{*this, "out", like(in)};
  Param<int64_t> at{*this, "at", 0, "the tick"};
  Wild() { capturable(); }
  void process(Tick& tick, Cuda& cuda) {
    write_wild<<<1, 1, 0, stream_of(cuda)>>>(fresh(out, tick), number(in(tick)), cuda.tick(),
                                             static_cast<uint64_t>(*at));
    check(cudaGetLastError());
  }
};

struct Waits final : Handler { // says that it may be captured, and waits for the stream
  Input<Tensor> in{*this, "in"};
  Output<Tensor> out{*this, "out", like(in)};
  Waits() { capturable(); }
  void process(Tick& tick, Cuda& cuda) {
    add_one<<<1, 1, 0, stream_of(cuda)>>>(fresh(out, tick), number(in(tick)));
    cudaStreamSynchronize(stream_of(cuda));
    (void)cudaGetLastError();
  }
};

// Two loops, each at most `at_most` rounds: to a multiple of `of`, and on to one of seven.
struct Climb final : Handler {
  Input<Tensor> in{*this, "in"};
  Output<Tensor> out{*this, "out", like(in)};
  Param<int64_t> of{*this, "of", 5, "ends the first loop at a multiple of it", range(1, 1000), live};
  Param<int64_t> at_most{*this, "at_most", 20, "rounds of a loop"};
  std::optional<Loop> first, second;
  Climb() {
    capturable();
    needs_scratch(2 * sizeof(Climbing));
  }
  void start() override {
    first.emplace();
    second.emplace();
  }
  void stop() override {
    first.reset();
    second.reset();
  }
  int64_t climbed(int64_t& value, int64_t multiple) const { // rounds
    for (int64_t round = 1; round <= *at_most; ++round)
      if (++value % multiple == 0) return round;
    return *at_most;
  }
  void process(Tick& tick, Cpu&) {
    int64_t value = *number(in(tick));
    const int64_t once = climbed(value, *of), twice = climbed(value, 7);
    *fresh(out, tick) = value * 1000 + once * 100 + twice;
  }
  void process(Tick& tick, Cuda& cuda) {
    auto* const climbing = static_cast<Climbing*>(cuda.scratch());
    loop(cuda, *first, climbing, number(in(tick)), *of);
    loop(cuda, *second, climbing + 1, &climbing->value, 7);
    check(launch(one_thread(cuda), end_climb, fresh(out, tick), climbing, climbing + 1));
  }
  void loop(Cuda& cuda, Loop& on_host, Climbing* climbing, const int64_t* from, int64_t multiple) {
    check(launch(one_thread(cuda), begin_climb, climbing, from));
    const auto most = static_cast<uint32_t>(*at_most);
    check(repeat(stream_of(cuda), on_host, &climbing->loop, most, [&](cudaStream_t round) {
      return launch({1, 1, 0, round}, climb, climbing, multiple);
    }));
  }
};

// Needs its device in start(): for the kernel's limit of shared memory, which each GPU has for itself.
struct Where final : Handler {
  Input<Tensor> in{*this, "in"};
  Output<Tensor> out{*this, "out", like(in)};
  uint64_t shared_bytes = 0;
  int ordinal = -1;
  Where() { capturable(); }
  void check_current() const {
    int current = -1;
    check(cudaGetDevice(&current));
    if (current != ordinal) throw std::runtime_error("another device is current");
  }
  void start(const DeviceInfo& device) override {
    ordinal = -1;
    if (device.kind != DeviceKind::cuda) return;
    ordinal = static_cast<int>(device.ordinal);
    check_current();
    if (device.multiprocessors == 0 || device.compute_major < 7 || device.memory_bytes == 0 || device.name.empty())
      throw std::runtime_error("the device is not described");
    shared_bytes = device.shared_bytes_max;
    check(
        cudaFuncSetAttribute(fill_shared, cudaFuncAttributeMaxDynamicSharedMemorySize, static_cast<int>(shared_bytes)));
  }
  void stop() override {
    if (ordinal >= 0) check_current();
  }
  void process(Tick& tick, Cpu&) { *fresh(out, tick) = *number(in(tick)) + 1; }
  void process(Tick& tick, Cuda& cuda) {
    check(launch({1, 1, static_cast<unsigned>(shared_bytes), stream_of(cuda)}, fill_shared, fresh(out, tick),
                 number(in(tick)), shared_bytes));
  }
};

struct End final : Handler {
  Input<Any> in{*this, "in"};
  End() { capturable(); }
  void process(Tick&, Cpu&) {}
  void process(Tick&, Cuda&) {}
};

// Bytes that a kernel passes on: what copies around it cost.
struct Move final : Handler {
  Input<Tensor> in{*this, "in"};
  Output<Tensor> out{*this, "out", like(in)};
  Move() { capturable(); }
  void process(Tick& tick, Cuda& cuda) {
    const TensorView from = in(tick);
    const uint64_t count = static_cast<uint64_t>(from.element_count()) / 16;
    auto* to = reinterpret_cast<uint4*>(out.allocate(tick, from.dtype(), from.shape()).data());
    copy_wide<<<static_cast<unsigned>((count + 255) / 256), 256, 0, stream_of(cuda)>>>(
        to, reinterpret_cast<const uint4*>(from.data()), count);
    check(cudaGetLastError());
  }
};

// A frame on the host: the same bytes on every tick, not written anew, so that only the way is measured.
struct Frames final : Handler {
  Output<Tensor> out{*this, "out"};
  Param<int64_t> bytes{*this, "bytes", 33177600, "of a frame"};
  Param<int64_t> count{*this, "count", 0, "frames"};
  int64_t next = 0;
  void configure(const Formats& formats) override { formats.tensor(out, dtype_of<uint8_t>(), {*bytes}); }
  void start() override { next = 0; }
  void process(Tick& tick, Cpu&) {
    if (next++ >= count) return tick.end();
    const int64_t shape[] = {*bytes};
    uint8_t* data = out.allocate(tick, dtype_of<uint8_t>(), shape).data();
    data[0] = static_cast<uint8_t>(next);
    data[*bytes - 1] = static_cast<uint8_t>(next * 7);
  }
};

// Bytes made on the device, of which only the ends are written: what follows measures their way, not their making.
struct Make final : Handler {
  Output<Tensor> out{*this, "out"};
  Param<int64_t> bytes{*this, "bytes", 33177600, "of a value; a multiple of eight"};
  Param<int64_t> count{*this, "count", 0, "values; 0: endless"};
  Make() { capturable(); }
  void probe(Facts& facts) override { facts.tick_count(*count > 0 ? *count : -1); }
  void configure(const Formats& formats) override { formats.tensor(out, dtype_of<int64_t>(), {*bytes / 8}); }
  int64_t* all(Tick& tick) {
    const int64_t shape[] = {*bytes / 8};
    return reinterpret_cast<int64_t*>(out.allocate(tick, dtype_of<int64_t>(), shape).data());
  }
  void process(Tick& tick, Cpu&) {
    if (count > 0 && tick.index() >= static_cast<uint64_t>(*count)) return tick.end();
    int64_t* to = all(tick);
    to[0] = to[*bytes / 8 - 1] = static_cast<int64_t>(tick.index());
  }
  void process(Tick& tick, Cuda& cuda) {
    check(launch(one_thread(cuda), mark_ends, all(tick), static_cast<uint64_t>(*bytes / 8), cuda.tick()));
  }
};

struct First final : Handler {
  Input<Tensor> in{*this, "in"};
  Output<Tensor> out{*this, "out"};
  First() { capturable(); }
  void configure(const Formats& formats) override { formats.tensor(out, dtype_of<int64_t>(), {1}); }
  void process(Tick& tick, Cpu&) {
    const auto words = in(tick).elements<int64_t>();
    *fresh(out, tick) = words.front() == words.back() ? words.front() : -1;
  }
  void process(Tick& tick, Cuda& cuda) {
    const TensorView from = in(tick);
    const auto words = static_cast<uint64_t>(from.element_count());
    check(launch(one_thread(cuda), read_ends, fresh(out, tick), number(from), words));
  }
};

template <class H>
const mr_handler_type* type(const char* name) {
  static const mr_handler_type table = detail::Type<H>::table(name, "a test's", "");
  return &table;
}

} // namespace

const mr_plugin& cuda_plugin() {
  static const mr_handler_type* const types[] = {
      type<Index>("c.index"),  type<Add>("c.add"),     type<Pair>("c.pair"),        type<InPlace>("c.paint"),
      type<Spin>("c.spin"),    type<Wild>("c.wild"),   type<PastEnd>("c.past_end"), type<Waits>("c.waits"),
      type<End>("c.end"),      type<Move>("c.move"),   type<Frames>("c.frames"),    type<Make>("c.make"),
      type<First>("c.first"),  type<Few>("c.few"),     type<HostFew>("c.hostfew"),  type<Total>("c.total"),
      type<Judge>("c.judge"),  type<Climb>("c.climb"), type<Where>("c.where"),      type<Table>("c.table"),
      type<LookUp>("c.lookup")};
  static const mr_plugin table = {sizeof(mr_plugin), MR_ABI_VERSION, "c", "1", types, std::size(types), 0};
  return table;
}

} // namespace millrace::test
