// Rings and simulated devices against a model that a person can hold in the head: of each buffer the bytes that it must
// hold, who holds it, and the fences behind its last write and the reads since. Operations and faults are drawn;
// whoever waits for those fences, as an executor does, sees the right bytes whatever the order of device work, and no
// block is given to anybody while somebody holds it.
//
// MILLRACE_SEED=n draws other operations, MILLRACE_STEPS=n more of them.
#include <doctest/doctest.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "device/cpu/cpu_device.h"
#include "device/sim/sim.h"
#include "memory/ring.h"
#include "tests/part.h"
#include "tests/seed.h"

using namespace millrace;
using device::Device;
using device::DeviceError;
using device::Fence;
using device::Stream;

namespace {

#ifdef __SANITIZE_THREAD__ // one thread drives it: there is little to find
constexpr uint64_t kSteps = 100'000;
#else
constexpr uint64_t kSteps = 1'000'000;
#endif
constexpr uint64_t kStepsAWorld = 4'000;
constexpr size_t kDevices = 2;        // the first one may fail
constexpr uint32_t kRingLength = 6;   // of a dynamic ring
constexpr uint32_t kSlots = 3;        // of a recorded body
constexpr uint64_t kUnderWayMax = 64; // commands of a stream: what is compared with each other stays a handful

using Bytes = std::vector<unsigned char>;

// The bytes of a buffer, and the devices that had a hand in them: bit d for device d. One that failed makes them void.
struct Content {
  Bytes bytes;
  unsigned made_by = 0;
};

// One taken block. `home` 0: on the host; else device home - 1.
struct Buffer {
  memory::Block* block = nullptr;
  size_t home = 0;
  uint32_t holders = 1;
  bool foreign = false;
  std::shared_ptr<Content> content; // null: on the host, not written yet
  Fence written;
  std::vector<Fence> reads; // since then
  // The fences of another device for which the last write waited. A device that fails lets go of its fences without
  // having waited, so that they order nothing.
  std::vector<Fence> elsewhere;
};

struct World;

// The work of a body. It looks at what is there before it writes.
struct Body {
  World* world = nullptr;
  std::byte* address = nullptr;
  std::shared_ptr<Content> before, after; // null: not looked at, not written
};
void run_body(void* context);

// A body that is recorded for a slot of a static ring, and a copy of that slot to one of another ring.
struct Recorded {
  Body body;
  std::vector<device::Access> accesses;
  std::unique_ptr<device::Recording> recording;
  Buffer worked_on, copied_to;
  Fence replayed;
};

struct World {
  explicit World(uint64_t seed) : random(seed) {
    capacity = 16 + up_to(300);
    draw_faults();
    for (size_t home = 0; home <= kDevices; ++home) add_domain(home);
    for (size_t d = 0; d < kDevices; ++d) record(d);
  }

  // ---- what is drawn

  uint64_t up_to(uint64_t most) { return random() % (most + 1); }
  Bytes random_bytes() {
    Bytes bytes(capacity);
    for (unsigned char& byte : bytes) byte = static_cast<unsigned char>(random());
    return bytes;
  }
  void draw_faults() {
    switch (up_to(9)) {
      case 0: faults.out_of_memory = 1 + up_to(1); break;
      case 1: faults.hang_command = 1 + up_to(1500); break;
      case 2: faults.lose_device = 1 + up_to(1500); break;
      case 3: faults.fail_copy = 1 + up_to(700); break;
      case 4: faults.fail_run = 1 + up_to(700); break;
      default: break;
    }
  }

  // ---- how it is made

  std::byte* allocate(Device& from, uint64_t bytes) {
    device::DeviceStatus status;
    device::Arena* arena = from.allocate(bytes, {true}, status);
    if (!arena) { // tried again: only one is injected
      REQUIRE(status.error == DeviceError::out_of_memory);
      REQUIRE(faults.out_of_memory > 0);
      arena = from.allocate(bytes, {true}, status);
    }
    REQUIRE(arena);
    return arena->base;
  }
  std::unique_ptr<memory::Ring> make_ring(size_t home, uint32_t length, bool dynamic) {
    Device& from = home == 0 ? static_cast<Device&>(host) : *devices[home - 1];
    std::byte* base = allocate(from, length * memory::block_bytes(capacity));
    return std::make_unique<memory::Ring>(memory::RingOptions{length, dynamic, capacity}, base, home == 0);
  }
  void add_domain(size_t home) {
    if (home > 0) {
      device::SimOptions options;
      options.domain = "sim:" + std::to_string(home - 1);
      options.pinned = pinned;
      options.adversarial = true;
      options.check_races = true;
      options.seed = random();
      if (home == 1) options.faults = faults;
      devices.push_back(device::make_sim(options));
      for (const device::StreamKind kind :
           {device::StreamKind::compute, device::StreamKind::copy_in, device::StreamKind::copy_out})
        streams[home - 1].push_back(devices.back()->create_stream(kind));
    }
    rings.push_back(make_ring(home, kRingLength, true));
  }
  void record(size_t d) {
    for (auto& ring : {&worked_on[d], &copied_to[d]}) *ring = make_ring(d + 1, kSlots, false);
    Stream& stream = *streams[d][0];
    for (uint32_t slot = 0; slot < kSlots; ++slot) {
      Recorded& made = *recorded[d].emplace_back(std::make_unique<Recorded>());
      made.worked_on = taken(worked_on[d]->take(slot), d + 1);
      made.copied_to = taken(copied_to[d]->take(slot), d + 1);
      made.body = {this, body_address(made.worked_on), nullptr, nullptr};
      made.accesses = {access_to(made.worked_on, false), access_to(made.worked_on, true)};
      devices[d]->begin_record(stream);
      devices[d]->run(stream, {run_body, &made.body, "recorded", 0, &made.accesses});
      devices[d]->copy(stream, data(made.copied_to), data(made.worked_on), capacity);
      made.recording = devices[d]->end_record(stream);
    }
  }

  // ---- buffers

  static std::byte* data(const Buffer& buffer) { return reinterpret_cast<std::byte*>(buffer.block->data); }
  std::byte* body_address(const Buffer& buffer) { return devices[buffer.home - 1]->body_address(data(buffer)); }
  device::Access access_to(const Buffer& buffer, bool writes) const { return {data(buffer), capacity, writes}; }

  // Bytes that nobody has written are poison on a device.
  Buffer taken(memory::Block& block, size_t home) {
    Buffer buffer;
    buffer.block = &block;
    buffer.home = home;
    if (home > 0)
      buffer.content = std::make_shared<Content>(Content{Bytes(capacity, device::kPoison), 1u << (home - 1)});
    buffer.written = discarded[&block];
    return buffer;
  }
  Buffer* any(size_t home) {
    std::vector<Buffer*> found;
    for (Buffer& buffer : live)
      if (buffer.home == home) found.push_back(&buffer);
    return found.empty() ? nullptr : found[up_to(found.size() - 1)];
  }
  bool void_by_now(const Content& content) const {
    for (size_t d = 0; d < kDevices; ++d)
      if ((content.made_by >> d & 1) && !devices[d]->status().ok()) return true;
    return false;
  }

  // ---- waiting

  void wait_on_host(const Fence& fence) {
    while (!fence.done()) {
      const size_t first = up_to(kDevices - 1);
      bool moved = false;
      for (size_t i = 0; i < kDevices && !moved; ++i) moved = devices[(first + i) % kDevices]->force_any();
      if (moved || fence.done()) continue;
      REQUIRE(faults.hang_command > 0);
      REQUIRE(devices[0]->status().ok());
      devices[0]->declare_lost("sim:0 hangs");
    }
  }
  void wait_on_host(const Buffer& buffer) {
    wait_on_host(buffer.written);
    for (const auto* fences : {&buffer.reads, &buffer.elsewhere})
      for (const Fence& fence : *fences) wait_on_host(fence);
  }
  void wait_on(Stream& stream, size_t d, const Fence& fence) {
    if (fence.word && fence.word != &stream.completed) devices[d]->wait(stream, fence);
  }
  // Behind the last write; before a write also behind the reads since.
  void wait_on(Stream& stream, size_t d, const Buffer& buffer, bool to_write) {
    if (stream.issued - stream.completed > kUnderWayMax) wait_on_host(devices[d]->signal(stream));
    wait_on(stream, d, buffer.written);
    for (const Fence& fence : buffer.elsewhere) wait_on(stream, d, fence);
    if (!to_write) return;
    for (const Fence& fence : buffer.reads) wait_on(stream, d, fence);
  }
  static void read_behind(Buffer& buffer, const Fence& fence) {
    std::erase_if(buffer.reads, [](const Fence& read) { return read.done(); });
    buffer.reads.push_back(fence);
  }
  void write_behind(Buffer& buffer, const Fence& fence, std::shared_ptr<Content> content) {
    buffer.reads.push_back(buffer.written);
    for (const Fence& before : buffer.reads)
      if (device_of(before) != device_of(fence)) buffer.elsewhere.push_back(before);
    std::erase_if(buffer.elsewhere, [](const Fence& before) { return before.done(); });
    buffer.content = std::move(content);
    buffer.written = fence;
    buffer.reads.clear();
  }
  size_t device_of(const Fence& fence) const {
    const auto has = [&](const std::vector<Stream*>& own) {
      return std::any_of(own.begin(), own.end(),
                         [&](const Stream* stream) { return &stream->completed == fence.word; });
    };
    return static_cast<size_t>(std::find_if(std::begin(streams), std::end(streams), has) - std::begin(streams));
  }

  // ---- operations: each is true where it could be done and is one step

  bool take() {
    const size_t home = up_to(kDevices);
    const auto held =
        std::count_if(live.begin(), live.end(), [&](const Buffer& buffer) { return buffer.home == home; });
    if (held == kRingLength) return false;
    memory::Block& block = rings[home]->take(0);
    REQUIRE(std::none_of(live.begin(), live.end(), [&](const Buffer& buffer) { return buffer.block == &block; }));
    REQUIRE(block.generation == ++generations[&block]);
    REQUIRE(block.holds == 1);
    Buffer buffer = taken(block, home);
    buffer.foreign = home == 0 && up_to(3) == 0;
    if (buffer.foreign) {
      block.foreign_release = [](void* world) { ++static_cast<World*>(world)->given_back; };
      block.foreign_context = this;
    }
    live.push_back(std::move(buffer));
    return true;
  }

  bool hold() {
    Buffer* buffer = any(up_to(kDevices));
    if (!buffer) return false;
    memory::hold(buffer->block);
    REQUIRE(buffer->block->holds == ++buffer->holders);
    return true;
  }

  bool release() {
    Buffer* buffer = any(up_to(kDevices));
    if (!buffer) return false;
    release(*buffer);
    return true;
  }
  void release(Buffer& buffer) {
    memory::Block& block = *buffer.block;
    if (--buffer.holders == 0) wait_on_host(buffer); // a block is free when nothing under way touches it (4.2)
    const uint64_t before = given_back;
    memory::release(&block);
    REQUIRE(block.holds == buffer.holders);
    REQUIRE(given_back == before + (buffer.holders == 0 && buffer.foreign));
    if (buffer.holders > 0) return;
    if (buffer.home > 0) discard(buffer);
    discarded[&block] = buffer.written;
    live.erase(std::find_if(live.begin(), live.end(), [&](const Buffer& other) { return &other == &buffer; }));
  }

  bool discard() {
    Buffer* buffer = any(1 + up_to(kDevices - 1));
    if (!buffer) return false;
    discard(*buffer);
    return true;
  }
  void discard(Buffer& buffer) {
    const size_t d = buffer.home - 1;
    Stream& stream = *streams[d][up_to(2)];
    wait_on(stream, d, buffer, true);
    devices[d]->discard(stream, data(buffer), capacity);
    write_behind(buffer, devices[d]->signal(stream),
                 std::make_shared<Content>(Content{Bytes(capacity, device::kPoison), 1u << d}));
  }

  bool write_on_host() {
    Buffer* buffer = any(0);
    if (!buffer) return false;
    wait_on_host(*buffer);
    write_behind(*buffer, {}, std::make_shared<Content>(Content{random_bytes(), 0}));
    std::memcpy(buffer->block->data, buffer->content->bytes.data(), capacity);
    return true;
  }

  bool read_on_host() {
    Buffer* buffer = any(0);
    if (!buffer || !buffer->content) return false;
    wait_on_host(buffer->written);
    // A reader that sees the fence done, and then the devices in order, has the right bytes.
    if (void_by_now(*buffer->content)) return true;
    REQUIRE(std::memcmp(buffer->block->data, buffer->content->bytes.data(), capacity) == 0);
    buffer->content->made_by = 0; // whatever becomes of the devices
    return true;
  }

  bool body(bool writes) {
    Buffer* buffer = any(1 + up_to(kDevices - 1));
    if (!buffer) return false;
    const size_t d = buffer->home - 1;
    Stream& stream = *streams[d][up_to(2)]; // most run on the first; a stream of copies takes bodies too
    wait_on(stream, d, *buffer, writes);
    Body& body = bodies.emplace_back(Body{this, body_address(*buffer), buffer->content, nullptr});
    if (writes) body.after = std::make_shared<Content>(Content{random_bytes(), 1u << d});
    const std::vector<device::Access> accesses = {access_to(*buffer, writes)};
    devices[d]->run(stream, {run_body, &body, writes ? "writes" : "reads", 0, &accesses});
    const Fence fence = devices[d]->signal(stream);
    if (writes)
      write_behind(*buffer, fence, body.after);
    else
      read_behind(*buffer, fence);
    return true;
  }

  bool copy() {
    const size_t d = up_to(kDevices - 1);
    const uint64_t way = up_to(2); // in, out, within
    Buffer* source = any(way == 0 ? 0 : d + 1);
    Buffer* target = any(way == 1 ? 0 : d + 1);
    if (!source || !target || source == target || !source->content) return false;
    Stream& stream = *streams[d][up_to(3) == 0 ? up_to(2) : (way + 1) % 3];
    wait_on(stream, d, *source, false);
    wait_on(stream, d, *target, true);
    devices[d]->copy(stream, data(*target), data(*source), capacity);
    const Fence fence = devices[d]->signal(stream);
    read_behind(*source, fence);
    write_behind(*target, fence,
                 std::make_shared<Content>(Content{source->content->bytes, source->content->made_by | 1u << d}));
    return true;
  }

  bool replay() {
    const size_t d = up_to(kDevices - 1);
    Recorded& what = *recorded[d][up_to(kSlots - 1)];
    wait_on_host(what.replayed); // its body is told anew what to do
    Stream& stream = *streams[d][0];
    wait_on(stream, d, what.worked_on, true);
    wait_on(stream, d, what.copied_to, true);
    what.body.before = what.worked_on.content;
    what.body.after = std::make_shared<Content>(Content{random_bytes(), 1u << d});
    devices[d]->replay(stream, *what.recording);
    what.replayed = devices[d]->signal(stream);
    write_behind(what.worked_on, what.replayed, what.body.after);
    write_behind(what.copied_to, what.replayed, what.body.after);
    // Somebody reads the copy on another stream, so that the next replay has to wait for more than its own.
    Body& reader = bodies.emplace_back(Body{this, body_address(what.copied_to), what.body.after, nullptr});
    const std::vector<device::Access> accesses = {access_to(what.copied_to, false)};
    Stream& other = *streams[d][1 + up_to(1)];
    wait_on(other, d, what.copied_to, false);
    devices[d]->run(other, {run_body, &reader, "reads", 0, &accesses});
    read_behind(what.copied_to, devices[d]->signal(other));
    return true;
  }

  bool step() {
    for (uint64_t n = up_to(5); n > 0; --n) devices[up_to(kDevices - 1)]->force_any();
    switch (up_to(15)) {
      case 0:
      case 1: return take();
      case 2: return hold();
      case 3:
      case 4: return release();
      case 5: return discard();
      case 6: return write_on_host();
      case 7:
      case 8: return read_on_host();
      case 9:
      case 10: return body(true);
      case 11: return body(false);
      case 12: return replay();
      default: return copy();
    }
  }

  // ---- its end

  void check_devices() const {
    REQUIRE_MESSAGE(devices[1]->status().ok(), devices[1]->status().sentence);
    const device::DeviceStatus status = devices[0]->status();
    const bool lost = faults.lose_device > 0 || faults.hang_command > 0;
    const bool failed = faults.fail_run > 0 || faults.fail_copy > 0;
    CAPTURE(status.sentence);
    if (status.error == DeviceError::lost) REQUIRE(lost);
    if (status.error == DeviceError::fault) REQUIRE(failed);
    REQUIRE((status.ok() || status.error == DeviceError::lost || status.error == DeviceError::fault));
  }

  void end() {
    while (!live.empty()) release(live.back());
    for (size_t d = 0; d < kDevices; ++d)
      for (Stream* stream : streams[d]) wait_on_host(devices[d]->signal(*stream));
    check_devices();
    for (const auto& ring : rings)
      for (uint32_t i = 0; i < kRingLength; ++i) REQUIRE(ring->block(i).holds == 0);
  }

  std::mt19937_64 random;
  uint64_t capacity = 0;
  device::SimFaults faults;
  std::shared_ptr<device::PinnedRanges> pinned = std::make_shared<device::PinnedRanges>();
  device::CpuDevice host{pinned};
  std::vector<std::unique_ptr<memory::Ring>> rings; // dynamic, by home
  std::unique_ptr<memory::Ring> worked_on[kDevices], copied_to[kDevices];
  std::map<const memory::Block*, uint64_t> generations;
  std::map<const memory::Block*, Fence> discarded; // behind what poisons a free block
  std::deque<Buffer> live;
  std::deque<Body> bodies; // until the end, since nobody knows when the last one runs
  std::vector<std::unique_ptr<Recorded>> recorded[kDevices];
  uint64_t given_back = 0, wrong = 0;
  std::vector<std::unique_ptr<Device>> devices; // gone before what their bodies touch
  std::vector<Stream*> streams[kDevices];
};

void run_body(void* context) {
  const Body& body = *static_cast<const Body*>(context);
  World& world = *body.world;
  if (body.before && std::memcmp(body.address, body.before->bytes.data(), world.capacity) != 0)
    world.wrong += !world.void_by_now(*body.before);
  if (body.after) std::memcpy(body.address, body.after->bytes.data(), world.capacity);
}

} // namespace

TEST_CASE(
    "3.2: whatever is taken, held, copied, discarded and lost, a buffer holds what was put into it, and none is "
    "leaked") {
  const char* asked = std::getenv("MILLRACE_STEPS");
  const uint64_t wanted = asked ? std::strtoull(asked, nullptr, 10) : static_cast<uint64_t>(test::part_of(kSteps));
  uint64_t steps = 0, failed = 0;
  for (uint64_t n = 0; steps < wanted; ++n) {
    INFO("MILLRACE_SEED=", random_seed(), ", world ", n);
    World world((uint64_t{random_seed()} << 32) + n);
    for (uint64_t i = 0; i < kStepsAWorld;) {
      if (!world.step()) continue;
      ++i;
      ++steps;
      REQUIRE(world.wrong == 0);
    }
    world.check_devices();
    world.end();
    REQUIRE(world.wrong == 0);
    failed += !world.devices[0]->status().ok();
  }
  MESSAGE("MILLRACE_SEED=", random_seed(), ": ", steps, " steps, ", failed, " devices failed");
  CHECK(failed > 0);
}
