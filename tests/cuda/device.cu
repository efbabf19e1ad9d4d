// The device by itself: memory, streams, fences, recordings (semantics.md 4.2 to 4.5).
#include <cuda_runtime.h>
#include <doctest/doctest.h>

#include <algorithm>
#include <cstring>
#include <thread>

#include "device/cpu/cpu_device.h"
#include "embed/device_module.h"
#include "millrace/abi.h"

namespace millrace::device::test {
namespace {

__global__ void fill(unsigned* to, unsigned value, uint64_t count) {
  for (uint64_t at = blockIdx.x * uint64_t{blockDim.x} + threadIdx.x; at < count;
       at += uint64_t{gridDim.x} * blockDim.x)
    to[at] = value;
}
__global__ void fill_with_index(unsigned* to, const mr_device_tick* tick, uint64_t count) {
  for (uint64_t at = blockIdx.x * uint64_t{blockDim.x} + threadIdx.x; at < count;
       at += uint64_t{gridDim.x} * blockDim.x)
    to[at] = static_cast<unsigned>(tick->index * 2654435761u);
}

struct Rig {
  std::shared_ptr<PinnedRanges> pinned = std::make_shared<PinnedRanges>();
  CpuDevice host{pinned};
  std::vector<std::unique_ptr<Device>> devices;
  Device* device = nullptr;

  explicit Rig(const std::string& faults = "") {
    std::string why;
    REQUIRE_MESSAGE(embed::cuda_module().module, embed::cuda_module().why);
    devices = embed::cuda_module().module->make({{0}, pinned, faults}, why);
    REQUIRE_MESSAGE(!devices.empty(), why);
    device = devices[0].get();
  }
  std::byte* allocate(Device& from, uint64_t bytes, bool is_pinned = false) {
    DeviceStatus status;
    Arena* arena = from.allocate(bytes, {is_pinned}, status);
    REQUIRE_MESSAGE(arena, status.sentence);
    return arena->base;
  }
};

void finish(const Fence& fence) {
  while (!fence.done()) std::this_thread::yield();
}

struct Filling { // a body
  Stream* stream;
  unsigned* to;
  unsigned value;
  uint64_t count;
  bool with_index = false;
  static void run(void* context) {
    const auto& self = *static_cast<Filling*>(context);
    const auto native = static_cast<cudaStream_t>(self.stream->native);
    if (self.with_index)
      fill_with_index<<<64, 256, 0, native>>>(self.to, self.stream->tick, self.count);
    else
      fill<<<64, 256, 0, native>>>(self.to, self.value, self.count);
  }
  Work work() { return {run, this, "fill"}; }
};

TEST_CASE("4.2: bodies and copies of several streams are ordered by fences") {
  Rig rig;
  constexpr uint64_t kCount = 1 << 20;
  auto* on_device = reinterpret_cast<unsigned*>(rig.allocate(*rig.device, kCount * 4));
  auto* on_host = reinterpret_cast<unsigned*>(rig.allocate(rig.host, kCount * 4, true));
  Stream& compute = *rig.device->create_stream(StreamKind::compute);
  Stream& down = *rig.device->create_stream(StreamKind::copy_out);
  CHECK(rig.device->signal(compute).done()); // nothing is before it
  Filling body{&compute, on_device, 0, kCount};
  for (unsigned n = 1; n <= 200; ++n) {
    body.value = n;
    rig.device->enqueuing()->call(compute, body.work());
    rig.device->wait(down, rig.device->signal(compute));
    rig.device->copy(down, reinterpret_cast<std::byte*>(on_host), reinterpret_cast<std::byte*>(on_device), kCount * 4);
    const Fence copied = rig.device->signal(down);
    CHECK(rig.device->signal(down).sequence == copied.sequence); // two signals with nothing between are one fence
    rig.device->wait(compute, copied);
    finish(copied);
    REQUIRE(on_host[0] == n);
    REQUIRE(on_host[kCount - 1] == n);
  }
  CHECK(rig.device->status().ok());
}

TEST_CASE("4.2: a stream that waits late for several fences of another waits for each of them") {
  Rig rig;
  constexpr uint64_t kCount = 16 << 20, kSlots = 4; // a body writes 64 MiB: longer than the calls take
  auto* on_device = reinterpret_cast<unsigned*>(rig.allocate(*rig.device, kSlots * kCount * 4));
  auto* on_host = reinterpret_cast<unsigned*>(rig.allocate(rig.host, kSlots * 4, true));
  Stream& compute = *rig.device->create_stream(StreamKind::compute);
  Stream& down = *rig.device->create_stream(StreamKind::copy_out);
  std::vector<Filling> bodies;
  std::vector<Fence> fences;
  for (unsigned slot = 0; slot < kSlots; ++slot)
    bodies.push_back({&compute, on_device + slot * kCount, slot + 1, kCount});
  for (Filling& body : bodies) { // all are submitted before anybody waits for the first
    rig.device->enqueuing()->call(compute, body.work());
    fences.push_back(rig.device->signal(compute));
  }
  for (uint64_t slot = 0; slot < kSlots; ++slot) {
    rig.device->wait(down, fences[slot]);
    rig.device->copy(down, reinterpret_cast<std::byte*>(on_host + slot),
                     reinterpret_cast<std::byte*>(on_device + slot * kCount + kCount - 1), 4);
  }
  finish(rig.device->signal(down));
  for (unsigned slot = 0; slot < kSlots; ++slot) CHECK(on_host[slot] == slot + 1);
}

TEST_CASE("4.2: a stream waits for a word of somebody else, and submission does not") {
  Rig rig;
  auto* on_device = reinterpret_cast<unsigned*>(rig.allocate(*rig.device, 4096));
  Stream& stream = *rig.device->create_stream(StreamKind::compute);
  std::atomic<uint64_t> word{0};
  rig.device->wait(stream, {&word, 1});
  Filling body{&stream, on_device, 1, 1024};
  rig.device->enqueuing()->call(stream, body.work());
  const Fence fence = rig.device->signal(stream);
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  CHECK_FALSE(fence.done());
  word.store(1);
  rig.device->kick();
  finish(fence);
}

TEST_CASE("4.5: a recording's kernels see the tick of each replay, and its fence comes after them") {
  Rig rig;
  constexpr uint64_t kCount = 4096;
  auto* on_device = reinterpret_cast<unsigned*>(rig.allocate(*rig.device, 2 * kCount * 4));
  auto* on_host = reinterpret_cast<unsigned*>(rig.allocate(rig.host, 2 * kCount * 4, true));
  Stream& stream = *rig.device->create_stream(StreamKind::compute);
  Stream& down = *rig.device->create_stream(StreamKind::copy_out);
  Filling first{&stream, on_device, 0, kCount, true}, second{&stream, on_device + kCount, 0, kCount, true};
  const std::vector<uint32_t> alone;
  rig.device->begin_record(stream);
  for (Filling* body : {&first, &second}) {
    Work work = body->work();
    work.after = &alone; // two branches
    rig.device->enqueuing()->call(stream, work);
  }
  const std::unique_ptr<Recording> recording = rig.device->end_record(stream);
  REQUIRE_MESSAGE(recording, rig.device->enqueuing()->record_failure());
  for (uint64_t n = 1; n <= 1000; ++n) {
    rig.device->replay(stream, *recording, {n, 0});
    rig.device->wait(down, rig.device->signal(stream));
    rig.device->copy(down, reinterpret_cast<std::byte*>(on_host), reinterpret_cast<std::byte*>(on_device),
                     2 * kCount * 4);
    finish(rig.device->signal(down));
    REQUIRE(on_host[0] == static_cast<unsigned>(n * 2654435761u));
    REQUIRE(on_host[2 * kCount - 1] == static_cast<unsigned>(n * 2654435761u));
  }
}

TEST_CASE("4.11: spans tell device time") {
  Rig rig;
  constexpr uint64_t kCount = 64 << 20;
  auto* on_device = reinterpret_cast<unsigned*>(rig.allocate(*rig.device, kCount * 4));
  Stream& stream = *rig.device->create_stream(StreamKind::compute);
  Filling body{&stream, on_device, 1, kCount};
  int64_t took = 0;
  REQUIRE(rig.device->enqueuing()->begin_span(stream));
  rig.device->enqueuing()->call(stream, body.work());
  rig.device->enqueuing()->end_span(stream,
                                    {[](void* context, int64_t ns) { *static_cast<int64_t*>(context) = ns; }, &took});
  finish(rig.device->signal(stream));
  std::this_thread::sleep_for(std::chrono::milliseconds(5));
  rig.device->enqueuing()->collect_spans();
  MESSAGE("256 MiB were written in ", took, " ns");
  CHECK(took > 50'000);
  CHECK(took < 50'000'000);
}

// The device time of a body that fills 4 KiB, while the host sleeps before it launches; held or not.
int64_t span_ns_of_a_slow_host(Rig& rig, Stream& stream, Filling& body, bool held) {
  int64_t took = 0;
  if (held) rig.device->enqueuing()->pause(stream);
  REQUIRE(rig.device->enqueuing()->begin_span(stream));
  std::this_thread::sleep_for(std::chrono::microseconds(200));
  rig.device->enqueuing()->call(stream, body.work());
  rig.device->enqueuing()->end_span(stream,
                                    {[](void* context, int64_t ns) { *static_cast<int64_t*>(context) = ns; }, &took});
  if (held) rig.device->enqueuing()->resume(stream);
  finish(rig.device->signal(stream));
  for (int i = 0; i < 100 && took == 0; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
    rig.device->enqueuing()->collect_spans();
  }
  return took;
}

TEST_CASE("4.11: a span on a held stream has none of the time that the host takes to submit") {
  Rig rig;
  auto* on_device = reinterpret_cast<unsigned*>(rig.allocate(*rig.device, 4096));
  Stream& stream = *rig.device->create_stream(StreamKind::compute);
  Filling body{&stream, on_device, 1, 1024};
  span_ns_of_a_slow_host(rig, stream, body, false); // the first loads the kernel
  const int64_t bare = span_ns_of_a_slow_host(rig, stream, body, false);
  std::vector<int64_t> held;
  for (int i = 0; i < 21; ++i) held.push_back(span_ns_of_a_slow_host(rig, stream, body, true));
  std::nth_element(held.begin(), held.begin() + 10, held.end());
  MESSAGE("bare ", bare, " ns, held ", held[10], " ns");
  CHECK(bare > 200'000);
  CHECK(held[10] > 0);
  CHECK(held[10] < 6'000);
  CHECK(rig.device->status().ok());
}

TEST_CASE("4.11: a body that waits for its stream while that is held goes on after a while") {
  Rig rig;
  Stream& stream = *rig.device->create_stream(StreamKind::compute);
  const auto begin = std::chrono::steady_clock::now();
  rig.device->enqueuing()->pause(stream);
  CHECK(cudaStreamSynchronize(static_cast<cudaStream_t>(stream.native)) == cudaSuccess);
  CHECK(std::chrono::steady_clock::now() - begin > std::chrono::milliseconds(10)); // it was held until then
  rig.device->enqueuing()->resume(stream);
  finish(rig.device->signal(stream));
  CHECK(rig.device->status().ok());
}

TEST_CASE("4.9: a device that is lost while a stream of it is held lets go, and its fences are done") {
  Rig rig;
  Stream& stream = *rig.device->create_stream(StreamKind::compute);
  rig.device->enqueuing()->pause(stream);
  rig.device->declare_lost("told to be lost");
  CHECK(cudaStreamSynchronize(static_cast<cudaStream_t>(stream.native)) == cudaSuccess);
  rig.device->enqueuing()->resume(stream);
  finish(rig.device->signal(stream));
}

// Ten million ticks would be the same: each one writes a block, copies it down, and the host looks at the first and the
// last word as soon as the flag is there, then overwrites them.
TEST_CASE("4.2: a copy down is there when its flag is: 1,000,000 ticks over poisoned bytes" * doctest::skip()) {
  Rig rig;
  constexpr uint64_t kCount = 1024;
  auto* on_device = reinterpret_cast<unsigned*>(rig.allocate(*rig.device, 4 * kCount * 4));
  auto* on_host = reinterpret_cast<unsigned*>(rig.allocate(rig.host, 4 * kCount * 4, true));
  std::memset(on_host, 0xDB, 4 * kCount * 4);
  Stream& stream = *rig.device->create_stream(StreamKind::compute);
  Stream& down = *rig.device->create_stream(StreamKind::copy_out);
  std::vector<std::unique_ptr<Recording>> recordings;
  std::vector<std::unique_ptr<Filling>> bodies;
  for (uint64_t slot = 0; slot < 4; ++slot) {
    bodies.push_back(std::make_unique<Filling>(Filling{&stream, on_device + slot * kCount, 0, kCount, true}));
    rig.device->begin_record(stream);
    rig.device->enqueuing()->call(stream, bodies.back()->work());
    recordings.push_back(rig.device->end_record(stream));
    REQUIRE(recordings.back());
  }
  Fence fences[4];
  for (uint64_t n = 0; n < 1'000'000; ++n) {
    const uint64_t slot = n % 4;
    unsigned* seen = on_host + slot * kCount;
    if (n >= 4) {
      finish(fences[slot]);
      const auto expected = static_cast<unsigned>((n - 4) * 2654435761u);
      REQUIRE(seen[0] == expected);
      REQUIRE(seen[kCount / 2] == expected);
      REQUIRE(seen[kCount - 1] == expected);
      seen[0] = seen[kCount / 2] = seen[kCount - 1] = 0xDBDBDBDB;
      rig.device->wait(stream, fences[slot]);
    }
    rig.device->replay(stream, *recordings[slot], {n, 0});
    rig.device->wait(down, rig.device->signal(stream));
    rig.device->copy(down, reinterpret_cast<std::byte*>(seen), reinterpret_cast<std::byte*>(on_device + slot * kCount),
                     kCount * 4);
    fences[slot] = rig.device->signal(down);
  }
  for (const Fence& fence : fences) finish(fence);
  CHECK(rig.device->status().ok());
}

} // namespace
} // namespace millrace::device::test
