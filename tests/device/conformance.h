// The conformance suite of devices, for the implementations of a test program. Who includes it has a rig for each
// (rigs.h) and defines
//
//   EVERY_DEVICE    all of them
//   ENQUEUING_DEVICE  those whose bodies enqueue
//   LIMITED_DEVICE  those whose memory ends at kMemory, and which refuse what cannot be recorded when it is submitted
#pragma once

#include <doctest/doctest.h>

#include <array>
#include <random>
#include <vector>

#include "tests/device/rigs.h"

namespace millrace::device::test {
namespace {

// A word of somebody else: a host thread, a link, another device.
struct Outside {
  std::atomic<uint64_t> word{0};
  Fence fence() const { return {&word, 1}; }
  void move(Device& device) {
    word.store(1, std::memory_order_release);
    word.notify_all();
    device.kick();
  }
};

TEST_CASE_TEMPLATE("4.2: commands of one stream run in the order in which they were submitted", T, EVERY_DEVICE) {
  T rig;
  Stream& stream = *rig.device->create_stream(StreamKind::compute);
  std::vector<int> order;
  std::vector<Append> bodies;
  for (int i = 0; i < 100; ++i) bodies.push_back({&order, i});
  for (Append& body : bodies) rig.run(stream, body);
  finish(*rig.device, rig.device->signal(stream));
  REQUIRE(order.size() == 100);
  for (int i = 0; i < 100; ++i) CHECK(order[static_cast<size_t>(i)] == i);
}

TEST_CASE_TEMPLATE("4.2: a fence is done exactly when all that was submitted before it is", T, EVERY_DEVICE) {
  T rig;
  Stream& stream = *rig.device->create_stream(StreamKind::compute);
  CHECK(rig.device->signal(stream).done()); // nothing is before it
  Outside gate, later_gate;
  std::vector<int> order;
  Append first{&order, 1}, second{&order, 2};
  rig.device->wait(stream, gate.fence());
  rig.run(stream, first);
  const Fence after_first = rig.device->signal(stream);
  rig.device->wait(stream, later_gate.fence());
  rig.run(stream, second);
  const Fence after_second = rig.device->signal(stream);
  CHECK(after_first.sequence < after_second.sequence);
  CHECK(after_first.word == after_second.word);
  CHECK_FALSE(after_first.done());
  gate.move(*rig.device);
  finish(*rig.device, after_first);
  CHECK(order == std::vector<int>{1});
  CHECK_FALSE(after_second.done());
  later_gate.move(*rig.device);
  finish(*rig.device, after_second);
  CHECK(order == std::vector<int>{1, 2});
  CHECK(after_first.done());
}

TEST_CASE_TEMPLATE("4.2: two signals with nothing between them are one fence", T, EVERY_DEVICE) {
  T rig;
  Stream& stream = *rig.device->create_stream(StreamKind::compute);
  std::vector<int> order;
  Append body{&order, 1};
  rig.run(stream, body);
  const Fence fence = rig.device->signal(stream);
  CHECK(rig.device->signal(stream).sequence == fence.sequence);
  finish(*rig.device, fence);
}

TEST_CASE_TEMPLATE("4.2: a stream goes on only after the fence of another that it waits for", T, EVERY_DEVICE) {
  T rig;
  Stream& early = *rig.device->create_stream(StreamKind::compute);
  Stream& late = *rig.device->create_stream(StreamKind::compute);
  Outside gate;
  std::vector<int> order;
  Append first{&order, 1}, second{&order, 2};
  rig.device->wait(early, gate.fence());
  rig.run(early, first);
  rig.device->wait(late, rig.device->signal(early));
  rig.run(late, second);
  gate.move(*rig.device);
  finish(*rig.device, rig.device->signal(late));
  CHECK(order == std::vector<int>{1, 2});
}

TEST_CASE_TEMPLATE("4.2: a null fence and one that is done hold nobody back", T, EVERY_DEVICE) {
  T rig;
  Stream& stream = *rig.device->create_stream(StreamKind::compute);
  std::vector<int> order;
  Append body{&order, 1};
  Outside done;
  done.word = 1;
  rig.device->wait(stream, Fence{});
  rig.device->wait(stream, done.fence());
  rig.run(stream, body);
  finish(*rig.device, rig.device->signal(stream));
  CHECK(order.size() == 1);
}

TEST_CASE_TEMPLATE("4.2: submission does not block behind a fence that nobody moves", T, EVERY_DEVICE) {
  T rig;
  Stream& stream = *rig.device->create_stream(StreamKind::compute);
  Outside gate;
  std::vector<int> order;
  Append body{&order, 7};
  rig.device->wait(stream, gate.fence());
  for (int i = 0; i < 1000; ++i) rig.run(stream, body);
  const Fence fence = rig.device->signal(stream);
  CHECK_FALSE(fence.done()); // and this line was reached
  CHECK(rig.device->status().ok());
  gate.move(*rig.device);
  finish(*rig.device, fence);
  CHECK(order.size() == 1000);
}

TEST_CASE_TEMPLATE("5.5: where bodies enqueue a held stream begins nothing, and it goes on in order once let go", T,
                   ENQUEUING_DEVICE) {
  T rig;
  Enqueuing& enqueuing = *rig.device->enqueuing();
  Stream& stream = *rig.device->create_stream(StreamKind::compute);
  std::vector<int> order;
  Append first{&order, 1}, second{&order, 2}, third{&order, 3};
  rig.run(stream, first);
  finish(*rig.device, rig.device->signal(stream));
  for (int round = 0; round < 2; ++round) { // again
    order.clear();
    enqueuing.pause(stream);
    rig.run(stream, second);
    const Fence held = rig.device->signal(stream);
    for (int i = 0; i < 10; ++i) {
      rig.device->force_any();
      CHECK_FALSE(held.done());
    }
    enqueuing.resume(stream);
    rig.run(stream, third);
    finish(*rig.device, rig.device->signal(stream));
    CHECK(order == std::vector<int>{2, 3});
  }
}

TEST_CASE_TEMPLATE("4.9: a device that is given up while a stream is held leaves nobody waiting", T, ENQUEUING_DEVICE) {
  T rig;
  Enqueuing& enqueuing = *rig.device->enqueuing();
  Stream& stream = *rig.device->create_stream(StreamKind::compute);
  enqueuing.pause(stream);
  const Fence fence = rig.device->signal(stream);
  CHECK_FALSE(fence.done());
  rig.device->declare_lost("told to be lost");
  finish(*rig.device, fence);
  enqueuing.resume(stream);
  enqueuing.pause(stream);
  enqueuing.resume(stream);
  finish(*rig.device, rig.device->signal(stream));
  CHECK_FALSE(rig.device->status().ok());
}

TEST_CASE_TEMPLATE("4.2: a stream with too much under way poisons its device and blocks nobody", T, LIMITED_DEVICE) {
  T rig;
  Stream& stream = *rig.device->create_stream(StreamKind::compute);
  Outside gate;
  std::vector<int> order;
  Append body{&order, 7};
  rig.device->wait(stream, gate.fence());
  for (int i = 0; i < 5000; ++i) rig.run(stream, body);
  CHECK(rig.device->status().error == DeviceError::invalid);
  finish(*rig.device, rig.device->signal(stream)); // although the gate never opens
  CHECK(order.empty());
}

TEST_CASE_TEMPLATE("3.4: copies carry the bytes into the device, within it and out again", T, EVERY_DEVICE) {
  T rig;
  constexpr uint64_t kBytes = 10'000;
  std::byte* source = rig.pinned_host(kBytes);
  std::byte* target = rig.pinned_host(kBytes);
  std::byte* here = rig.on_device(2 * kBytes);
  Stream& in = *rig.device->create_stream(StreamKind::copy_in);
  Stream& compute = *rig.device->create_stream(StreamKind::compute);
  Stream& out = *rig.device->create_stream(StreamKind::copy_out);
  for (uint64_t i = 0; i < kBytes; ++i) source[i] = static_cast<std::byte>(i * 7);
  rig.device->copy(in, here, source, kBytes);
  rig.device->wait(compute, rig.device->signal(in));
  rig.device->copy(compute, here + kBytes, here, kBytes);
  Increment increment{rig.device->body_address(here + kBytes), kBytes};
  rig.run(compute, increment);
  rig.device->wait(out, rig.device->signal(compute));
  rig.device->copy(out, target, here + kBytes, kBytes);
  finish(*rig.device, rig.device->signal(out));
  CHECK(rig.device->status().ok());
  uint64_t wrong = 0;
  for (uint64_t i = 0; i < kBytes; ++i) wrong += target[i] != static_cast<std::byte>(i * 7 + 1);
  CHECK(wrong == 0);
}

TEST_CASE_TEMPLATE("4.7: a clear makes bytes zero in its place among the commands of its stream, and no others", T,
                   EVERY_DEVICE) {
  T rig;
  constexpr uint64_t kBytes = 4096;
  std::byte* const host = rig.pinned_host(3 * kBytes);
  std::byte* const here = rig.on_device(kBytes);
  Stream& stream = *rig.device->create_stream(StreamKind::compute);
  for (uint64_t i = 0; i < kBytes; ++i) host[i] = static_cast<std::byte>(i % 255 + 1);
  rig.device->copy(stream, here, host, kBytes);
  rig.device->clear(stream, here + 3, 1001);
  rig.device->copy(stream, host + kBytes, here, kBytes);
  rig.device->copy(stream, here, host, kBytes);
  rig.device->clear(stream, here, 0);
  rig.device->copy(stream, host + 2 * kBytes, here, kBytes);
  finish(*rig.device, rig.device->signal(stream));
  REQUIRE(rig.device->status().ok());
  uint64_t wrong = 0;
  for (uint64_t i = 0; i < kBytes; ++i) {
    const bool cleared = i >= 3 && i < 3 + 1001;
    wrong += host[kBytes + i] != (cleared ? std::byte{0} : host[i]);
    wrong += host[2 * kBytes + i] != host[i];
  }
  CHECK(wrong == 0);
}

TEST_CASE_TEMPLATE("4.5: a recording is not run until it is replayed, and then each time", T, EVERY_DEVICE) {
  T rig;
  Stream& stream = *rig.device->create_stream(StreamKind::compute);
  std::vector<int> order;
  Append one{&order, 1}, two{&order, 2};
  rig.device->begin_record(stream);
  rig.run(stream, one);
  rig.run(stream, two);
  const std::unique_ptr<Recording> recording = rig.device->end_record(stream);
  const Fence nothing = rig.device->signal(stream);
  CHECK(nothing.done());
  CHECK(order.empty());
  rig.device->replay(stream, *recording);
  rig.device->replay(stream, *recording);
  const Fence fence = rig.device->signal(stream);
  if (!rig.device->enqueuing()) CHECK(fence.sequence == nothing.sequence + 2); // a replay is one command
  finish(*rig.device, fence);
  CHECK(order == std::vector<int>{1, 2, 1, 2});
}

TEST_CASE_TEMPLATE("4.5: a replay uses the addresses and arguments of the recording", T, EVERY_DEVICE) {
  T rig;
  constexpr uint64_t kBytes = 64;
  std::byte* source = rig.pinned_host(kBytes);
  std::byte* target = rig.pinned_host(kBytes);
  std::byte* here = rig.on_device(kBytes);
  Stream& stream = *rig.device->create_stream(StreamKind::compute);
  Increment increment{rig.device->body_address(here), kBytes};
  rig.device->begin_record(stream);
  rig.device->copy(stream, here, source, kBytes);
  rig.run(stream, increment); // the work that says so is gone behind this line: it was given by value
  rig.device->copy(stream, target, here, kBytes);
  const std::unique_ptr<Recording> recording = rig.device->end_record(stream);
  for (const int value : {3, 40}) {
    std::memset(source, value, kBytes);
    rig.device->replay(stream, *recording);
    finish(*rig.device, rig.device->signal(stream));
    CHECK(target[0] == static_cast<std::byte>(value + 1));
    CHECK(target[kBytes - 1] == static_cast<std::byte>(value + 1));
  }
}

TEST_CASE_TEMPLATE("4.5: a replay keeps its place among the other commands of its stream", T, EVERY_DEVICE) {
  T rig;
  Stream& stream = *rig.device->create_stream(StreamKind::compute);
  std::vector<int> order;
  Append before{&order, 1}, recorded{&order, 2}, after{&order, 3};
  rig.device->begin_record(stream);
  rig.run(stream, recorded);
  const std::unique_ptr<Recording> recording = rig.device->end_record(stream);
  rig.run(stream, before);
  rig.device->replay(stream, *recording);
  rig.run(stream, after);
  finish(*rig.device, rig.device->signal(stream));
  CHECK(order == std::vector<int>{1, 2, 3});
}

// Only kernels read a list in the device's memory. Bodies that run by themselves are told which inputs are there.
TEST_CASE_TEMPLATE("4.12: a replay makes an absent list one of no records, and tells of the others that they are there",
                   T, EVERY_DEVICE) {
  T rig;
  if (!rig.device->enqueuing()) return;
  constexpr uint64_t kBytes = 2 * sizeof(mr_value);
  auto* host = reinterpret_cast<mr_value*>(rig.pinned_host(kBytes));
  std::byte* here = rig.on_device(kBytes);
  Stream& stream = *rig.device->create_stream(StreamKind::compute);
  rig.device->begin_record(stream);
  rig.device->copy(stream, reinterpret_cast<std::byte*>(host), here, kBytes);
  const std::unique_ptr<Recording> recording = rig.device->end_record(stream);
  auto* const first = reinterpret_cast<mr_value*>(rig.device->body_address(here));
  for (const bool one : {true, false, true})
    for (const bool other : {false, true}) {
      std::memset(host, 0, kBytes);
      for (mr_value* value : {host, host + 1}) value->as.records = {5, 40};
      rig.device->copy(stream, here, reinterpret_cast<const std::byte*>(host), kBytes);
      const RecordedList lists[] = {{first, one}, {first + 1, other}};
      rig.device->replay(stream, *recording, {}, lists);
      finish(*rig.device, rig.device->signal(stream));
      CHECK(host[0].header.present == one);
      CHECK(host[0].as.records.count == (one ? 5 : 0));
      CHECK(host[1].header.present == other);
      CHECK(host[1].as.records.count == (other ? 5 : 0));
      CHECK(host[1].as.records.record_size == 40);
    }
}

TEST_CASE_TEMPLATE("4.5: a wait, a signal, a replay or a clear within a recording poisons the device", T,
                   LIMITED_DEVICE) {
  for (const int call : {0, 1, 2, 3}) {
    CAPTURE(call);
    T rig;
    Stream& stream = *rig.device->create_stream(StreamKind::compute);
    rig.device->begin_record(stream);
    const std::unique_ptr<Recording> inner = rig.device->end_record(stream);
    rig.device->begin_record(stream);
    Outside gate;
    if (call == 0) rig.device->wait(stream, gate.fence());
    if (call == 1) rig.device->signal(stream);
    if (call == 2) rig.device->replay(stream, *inner);
    if (call == 3) rig.device->clear(stream, rig.on_device(64), 64);
    CHECK(rig.device->status().error == DeviceError::invalid);
    rig.device->end_record(stream);
  }
}

TEST_CASE_TEMPLATE("3.2: out of memory is a status and leaves the device good", T, LIMITED_DEVICE) {
  T rig;
  DeviceStatus status;
  CHECK(rig.device->bytes_limit() == kMemory);
  CHECK(rig.device->allocate(kMemory + 1, {}, status) == nullptr);
  CHECK(status.error == DeviceError::out_of_memory);
  CHECK(rig.device->allocate(UINT64_MAX, {}, status) == nullptr);
  CHECK(status.error == DeviceError::out_of_memory);
  CHECK(rig.device->bytes_allocated() == 0);
  CHECK(rig.device->allocate(kMemory, {}, status) != nullptr);
  CHECK(status.ok());
  CHECK(rig.device->bytes_allocated() == kMemory);
  CHECK(rig.device->allocate(1, {}, status) == nullptr);
  CHECK(rig.device->status().ok());
}

TEST_CASE_TEMPLATE("3.2: what is allocated in steady state is counted, from its beginning", T, EVERY_DEVICE) {
  T rig;
  DeviceStatus status;
  for (const uint64_t count : {2, 1}) {
    REQUIRE(rig.device->allocate(64, {}, status) != nullptr);
    rig.device->steady(true);
    CHECK(rig.device->steady_allocations() == 0);
    for (uint64_t n = 0; n < count; ++n) rig.device->allocate(64, {}, status); // some devices refuse it
    rig.device->steady(false);
    CHECK(rig.device->steady_allocations() == count);
    if (!rig.device->status().ok()) return;
  }
}

TEST_CASE_TEMPLATE("3.2: arenas begin at a page and have the properties that were asked for", T, LIMITED_DEVICE) {
  T rig;
  DeviceStatus status;
  const Arena* one = rig.device->allocate(100, {true}, status);
  const Arena* two = rig.device->allocate(5000, {}, status);
  REQUIRE(one);
  REQUIRE(two);
  CHECK(reinterpret_cast<uintptr_t>(one->base) % 4096 == 0);
  CHECK(reinterpret_cast<uintptr_t>(two->base) % 4096 == 0);
  CHECK(one->properties.pinned);
  CHECK_FALSE(two->properties.pinned);
  CHECK(one->bytes >= 100);
  CHECK(two->bytes >= 5000);
}

TEST_CASE_TEMPLATE("4.9: a device that is given up runs nothing more and leaves nobody waiting", T, EVERY_DEVICE) {
  // A real device may still run, when it is gone, what it was given before: that must find its memory.
  static std::vector<int> order;
  static Append body{&order, 1};
  order.clear();
  T rig;
  Stream& stream = *rig.device->create_stream(StreamKind::compute);
  Outside gate;
  rig.device->wait(stream, gate.fence());
  rig.run(stream, body);
  const Fence before = rig.device->signal(stream);
  rig.device->declare_lost("no completion for 8 ticks");
  rig.run(stream, body);
  finish(*rig.device, before);
  finish(*rig.device, rig.device->signal(stream));
  CHECK(order.empty());
  CHECK(rig.device->status().error == DeviceError::lost);
  CHECK(rig.device->status().sentence == "no completion for 8 ticks");
  rig.device->declare_lost("again");
  CHECK(rig.device->status().sentence == "no completion for 8 ticks"); // the first cause
}

// Not of a real device: what it was given runs out when it is destroyed, whatever it waits for.
TEST_CASE_TEMPLATE("4.2: a device can be destroyed with work behind a fence that never comes", T, LIMITED_DEVICE) {
  Outside gate;
  std::vector<int> order;
  Append body{&order, 1};
  {
    T rig;
    Stream& stream = *rig.device->create_stream(StreamKind::compute);
    rig.device->begin_record(stream);
    rig.run(stream, body);
    const std::unique_ptr<Recording> recording = rig.device->end_record(stream);
    rig.device->wait(stream, gate.fence());
    rig.device->replay(stream, *recording);
    rig.device.reset();
  }
  CHECK(order.empty());
}

TEST_CASE_TEMPLATE("4.9: a recording may go before a replay of it that a lost device never came to", T,
                   LIMITED_DEVICE) {
  T rig;
  Stream& stream = *rig.device->create_stream(StreamKind::compute);
  Outside gate;
  std::vector<int> order;
  Append body{&order, 1};
  rig.device->begin_record(stream);
  rig.run(stream, body);
  std::unique_ptr<Recording> recording = rig.device->end_record(stream);
  rig.device->wait(stream, gate.fence());
  rig.device->replay(stream, *recording);
  rig.device->declare_lost("told to be lost");
  finish(*rig.device, rig.device->signal(stream));
  recording.reset();
  gate.move(*rig.device);
  while (rig.device->force_any()) {
  }
  rig.device.reset();
  CHECK(order.empty());
}

// Random steps of random cells on random streams. Each cell's commands are chained by fences, so the order of each
// cell's writers is known.
struct Cell {
  std::vector<int> seen; // touched by this cell's chain alone
  Fence last;
};
struct Step {
  Cell* cell;
  int number;
  int64_t cost_ns;
  static constexpr const char* kName = "step";
  static void run(void* context) {
    const auto* self = static_cast<Step*>(context);
    self->cell->seen.push_back(self->number);
  }
};

template <class T>
void stress(uint64_t seed) {
  constexpr uint32_t kStreams = 6, kCells = 9, kCommands = 2000;
  std::mt19937_64 random(seed);
  std::array<Cell, kCells> cells;
  std::vector<Step> steps(kCommands);
  T rig;
  std::vector<Stream*> streams;
  for (uint32_t i = 0; i < kStreams; ++i) streams.push_back(rig.device->create_stream(StreamKind::compute));
  for (uint32_t i = 0; i < kCommands; ++i) {
    Stream& stream = *streams[random() % kStreams];
    Cell& cell = cells[random() % kCells];
    steps[i] = {&cell, static_cast<int>(i), static_cast<int64_t>(random() % 20)};
    rig.device->wait(stream, cell.last);
    rig.run(stream, steps[i]);
    cell.last = rig.device->signal(stream);
    if (random() % 200 == 0) finish(*rig.device, cells[random() % kCells].last);
  }
  size_t total = 0;
  for (Cell& cell : cells) {
    finish(*rig.device, cell.last);
    for (size_t i = 1; i < cell.seen.size(); ++i) REQUIRE(cell.seen[i - 1] < cell.seen[i]);
    total += cell.seen.size();
  }
  CHECK(total == kCommands);
  CHECK(rig.device->status().ok());
}

TEST_CASE_TEMPLATE("4.2: chains over many streams keep their order whatever the interleaving", T, EVERY_DEVICE) {
  for (const uint64_t seed : {1, 2, 3, 4, 5}) {
    CAPTURE(seed);
    stress<T>(seed);
  }
}

} // namespace
} // namespace millrace::device::test
