// `millrace bench pool`: the cost of memory on a tick.
//
// `ring` takes a block from a ring and gives it back, counted (dynamic) or by index (static); `heap` is malloc and free
// of as many bytes. Blocks are 3.1 MB, a picture of 1920×1080 in 4:2:0. `touched` also writes one byte to every page of
// the block, because memory that is never touched costs nothing.
//
// `tick` is a tick of a source and a sink on one thread. The source allocates from its ring, or adopts foreign memory,
// which is released when the reader is done.
#include "bench/measure.h"

#include <millrace/handler.h>

#include <chrono>
#include <cstdlib>
#include <functional>
#include <memory>

#include "memory/ring.h"
#include "observe/report.h"

namespace millrace::bench {

namespace {

constexpr uint64_t kBytes = 1920 * 1080 * 3 / 2;
constexpr uint64_t kPage = 4096;
constexpr int kPoolRuns = 15;

void touch(uint8_t* data) {
  for (uint64_t i = 0; i < kBytes; i += kPage) const_cast<volatile uint8_t&>(data[i]) = 1;
}

// ns of one call; one sample for each run.
std::vector<double> time_calls(uint64_t calls, const std::function<void(uint64_t)>& call) {
  std::vector<double> samples;
  for (int r = 0; r < kPoolRuns; ++r) {
    const auto begin = std::chrono::steady_clock::now();
    call(calls);
    const std::chrono::duration<double, std::nano> elapsed = std::chrono::steady_clock::now() - begin;
    samples.push_back(elapsed.count() / static_cast<double>(calls));
  }
  return samples;
}

void bench_ring(bool dynamic, std::vector<Row>& rows) {
  constexpr uint32_t kLength = 4;
  const std::unique_ptr<std::byte, void (*)(void*)> arena(
      static_cast<std::byte*>(
          std::aligned_alloc(kPage, (kLength * memory::block_bytes(kBytes) + kPage) / kPage * kPage)),
      &std::free);
  memory::Ring ring({kLength, dynamic, kBytes}, arena.get(), true);
  const auto cycle = [&](uint64_t calls, bool touched) {
    for (uint64_t i = 0; i < calls; ++i) {
      memory::Block& block = ring.take(i);
      if (touched) touch(block.data);
      if (dynamic) memory::release(&block);
    }
  };
  const std::string variant = dynamic ? "ring, counted" : "ring, by index";
  rows.push_back(
      row_of("pool", variant, "untouched", "ns", time_calls(1'000'000, [&](uint64_t n) { cycle(n, false); })));
  rows.push_back(row_of("pool", variant, "touched", "ns", time_calls(20'000, [&](uint64_t n) { cycle(n, true); })));
}

void bench_heap(std::vector<Row>& rows) {
  const auto cycle = [](uint64_t calls, bool touched) {
    for (uint64_t i = 0; i < calls; ++i) {
      auto* data = static_cast<uint8_t*>(std::malloc(kBytes));
      asm volatile("" : : "r"(data) : "memory"); // else the pair is optimised away
      if (touched) touch(data);
      std::free(data);
    }
  };
  rows.push_back(row_of("pool", "heap", "untouched", "ns", time_calls(20'000, [&](uint64_t n) { cycle(n, false); })));
  rows.push_back(row_of("pool", "heap", "touched", "ns", time_calls(2'000, [&](uint64_t n) { cycle(n, true); })));
}

struct Allocates final : Handler {
  Allocates() { no_allocation(); }
  Output<Tensor> out{*this, "out"};
  void configure(const Formats& formats) override { formats.tensor(out, dtype_of<uint8_t>(), {kBytes}); }
  void process(Tick& tick, Cpu&) {
    const int64_t shape[] = {kBytes};
    out.allocate(tick, dtype_of<uint8_t>(), shape).elements<uint8_t>()[0] = 1;
  }
};

// Publishes the same bytes again and again, like the driver of a camera that owns its buffers.
struct Adopts final : Handler {
  Adopts() { no_allocation(); }
  Output<Tensor> out{*this, "out"};
  void configure(const Formats& formats) override { formats.tensor(out, dtype_of<uint8_t>(), {kBytes}); }
  void start() override { bytes_.reset(new uint8_t[kBytes]()); }
  void process(Tick& tick, Cpu&) {
    mr_value& value = out.adopt(
        tick, bytes_.get(), kBytes, [](void* count) { ++*static_cast<uint64_t*>(count); }, &released_);
    value.as.tensor = {MR_DTYPE_UINT, 8, 1, 1, {kBytes}, {1}};
  }

 private:
  std::unique_ptr<uint8_t[]> bytes_;
  uint64_t released_ = 0;
};

const mr_plugin& pool_plugin() {
  static const mr_handler_type allocates = detail::Type<Allocates>::table("bench.allocates", "Takes a block", "");
  static const mr_handler_type adopts = detail::Type<Adopts>::table("bench.adopts", "Brings memory along", "");
  static const mr_handler_type* const types[] = {&allocates, &adopts};
  static const mr_plugin plugin = {sizeof(mr_plugin), MR_ABI_VERSION, "bench", "1", types, 2, 0};
  return plugin;
}

} // namespace

std::vector<Row> bench_pool() {
  std::vector<Row> rows;
  bench_ring(false, rows);
  bench_ring(true, rows);
  bench_heap(rows);
  std::vector<double> allocated, adopted;
  constexpr uint64_t kTicks = 300'000;
  for (int r = 0; r < kPoolRuns; ++r) {
    for (const bool adopts : {false, true}) {
      graph::Graph graph;
      add(graph, "source", adopts ? "bench.adopts" : "bench.allocates", "");
      add(graph, "sink", "null.sink", "source");
      const Report report = run_graph(graph, 1, kTicks, &pool_plugin());
      (adopts ? adopted : allocated).push_back(report.duration_s * 1e9 / static_cast<double>(kTicks));
    }
  }
  rows.push_back(row_of("pool", "allocate", "tick", "ns", allocated));
  rows.push_back(row_of("pool", "adopt", "tick", "ns", adopted));
  return rows;
}

} // namespace millrace::bench
