// The simulated device beyond the conformance suite: time, faults, and errors where CUDA would be silent.
#include "device/sim/sim.h"

#include <doctest/doctest.h>
#include <signal.h>
#include <sys/mman.h>

#include <string>
#include <vector>

#include "device/sim/access_guard.h"
#include "device/timeline.h"
#include "tests/device/rigs.h"
#include "tests/ending.h"

namespace millrace::device::test {
namespace {

using millrace::test::end_of;
using millrace::test::Ending;

#define EVERY_SIM ThreadedRig, VirtualRig, AdversarialRig

void mark(void* context) { *static_cast<bool*>(context) = true; }
void nothing(void*) {}

const char* name_of_buffer(void* context, const void* address) {
  return address == context ? "blur read its input `video` on the host, and that lives on sim:0" : nullptr;
}

// ---- memory ------------------------------------------------------------------------------------------------

TEST_CASE_TEMPLATE("4.10: an address that the host sees is never accessible", T, EVERY_SIM) {
  for (const bool write : {false, true}) {
    CAPTURE(write);
    const Ending ending = end_of([write] {
      T rig;
      volatile std::byte* seen = rig.on_device(4096);
      const AccessGuard guard(name_of_buffer, nullptr);
      if (write) *seen = std::byte{1};
      const std::byte value = *seen;
      (void)value;
    });
    CHECK(ending.code == kAccessExitCode);
    CHECK(ending.said.find("error MR0702: memory of sim:0 was touched at the address that the host sees, 0x") == 0);
  }
}

TEST_CASE("4.10: a wrong access is reported by the name that the runtime has for the buffer") {
  const Ending ending = end_of([] {
    ThreadedRig rig;
    volatile std::byte* seen = rig.on_device(4096);
    const AccessGuard guard(name_of_buffer, const_cast<std::byte*>(seen));
    *seen = std::byte{1};
  });
  CHECK(ending.code == kAccessExitCode);
  CHECK(ending.said == "error MR0702: blur read its input `video` on the host, and that lives on sim:0\n");
}

TEST_CASE("4.10: a body that uses the address of the host is caught as well") {
  const Ending ending = end_of([] {
    ThreadedRig rig;
    const AccessGuard guard(name_of_buffer, nullptr);
    Stream& stream = *rig.device->create_stream(StreamKind::compute);
    const auto touch = [](void* address) { *static_cast<volatile char*>(address) = 1; };
    rig.device->run(stream, {touch, rig.on_device(64), "careless", 0});
    finish(*rig.device, rig.device->signal(stream));
  });
  CHECK(ending.code == kAccessExitCode);
  CHECK(ending.said.find("error MR0702: ") == 0);
}

TEST_CASE("4.10: a fault outside simulated memory ends the process as if there were no guard") {
  const Ending ending = end_of([] {
    signal(SIGSEGV, [](int) { _exit(77); });
    AdversarialRig rig;
    rig.on_device(64);
    const AccessGuard guard(name_of_buffer, nullptr);
    void* page = mmap(nullptr, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    *static_cast<volatile char*>(page) = 1;
  });
  CHECK(ending.code == 77);
  CHECK(ending.said.empty());
}

TEST_CASE("4.10: the guard leaves the signal as it found it, and forgets arenas with their device") {
  const Ending ending = end_of([] {
    signal(SIGSEGV, [](int) { _exit(77); });
    volatile std::byte* seen = nullptr;
    ThreadedRig other; // its arenas are still known
    other.on_device(64);
    const AccessGuard outer(name_of_buffer, nullptr);
    {
      ThreadedRig rig;
      const AccessGuard guard(name_of_buffer, nullptr);
      seen = rig.on_device(4096);
    }
    *seen = std::byte{1};
  });
  CHECK(ending.code == 77);
  struct sigaction before = {}, after = {};
  sigaction(SIGSEGV, nullptr, &before);
  { const AccessGuard guard(name_of_buffer, nullptr); }
  sigaction(SIGSEGV, nullptr, &after);
  CHECK((before.sa_sigaction == after.sa_sigaction));
}

TEST_CASE_TEMPLATE("4.10: asynchronous copies from or to pageable memory are errors", T, EVERY_SIM) {
  for (const bool inwards : {false, true}) {
    CAPTURE(inwards);
    T rig;
    Stream& stream = *rig.device->create_stream(StreamKind::copy_in);
    std::byte* here = rig.on_device(64);
    std::byte pageable[64] = {};
    if (inwards) rig.device->copy(stream, here, pageable, 64);
    if (!inwards) rig.device->copy(stream, pageable, here, 64);
    CHECK(rig.device->status().error == DeviceError::invalid);
    const std::string expected = inwards ? "copy from pageable memory: 64 bytes" : "copy to pageable memory: 64 bytes";
    CHECK(rig.device->status().sentence.find(expected) != std::string::npos);
  }
}

TEST_CASE("4.10: host arenas that are not pinned are pageable, and pinned ones only while they live") {
  const auto pinned = std::make_shared<PinnedRanges>();
  std::byte* base = nullptr;
  {
    CpuDevice host(pinned);
    DeviceStatus status;
    const Arena* plain = host.allocate(4096, {}, status);
    const Arena* locked = host.allocate(8192, {true}, status);
    base = locked->base;
    CHECK_FALSE(pinned->contains(plain->base, 1));
    CHECK(pinned->contains(base, 8192));
    CHECK(pinned->contains(base + 8000, 192));
    CHECK_FALSE(pinned->contains(base + 8000, 193));
    CHECK_FALSE(pinned->contains(base - 1, 1));
  }
  CHECK_FALSE(pinned->contains(base, 1));
}

TEST_CASE_TEMPLATE("4.10: a copy that leaves its arena, or that is none of the device's business, is an error", T,
                   EVERY_SIM) {
  for (const bool within : {false, true}) {
    CAPTURE(within);
    T rig;
    Stream& stream = *rig.device->create_stream(StreamKind::copy_in);
    std::byte* here = rig.on_device(4096);
    std::byte* host = rig.pinned_host(8192);
    if (within) rig.device->copy(stream, here + 4000, host, 97);
    if (!within) rig.device->copy(stream, host, host + 4096, 100);
    CHECK(rig.device->status().error == DeviceError::invalid);
  }
}

TEST_CASE_TEMPLATE("4.10: allocating in steady state is an error", T, EVERY_SIM) {
  T rig;
  rig.on_device(64);
  rig.device->steady(true);
  DeviceStatus status;
  CHECK(rig.device->allocate(64, {}, status) == nullptr);
  CHECK(status.error == DeviceError::invalid);
  CHECK(rig.device->status().error == DeviceError::invalid);
}

TEST_CASE("4.2: a wait for a fence that was never issued asserts") {
  const Ending ending = end_of([] {
    AdversarialRig rig;
    Stream& stream = *rig.device->create_stream(StreamKind::compute);
    Stream& other = *rig.device->create_stream(StreamKind::compute);
    Fence fence = rig.device->signal(other);
    ++fence.sequence;
    rig.device->wait(stream, fence);
  });
  CHECK(ending.code == 128 + SIGABRT);
  CHECK(ending.said.find("a wait for a fence that was not issued") != std::string::npos);
}

TEST_CASE("4.5: freeing a recording whose replay is under way asserts") {
  const Ending ending = end_of([] {
    AdversarialRig rig;
    Stream& stream = *rig.device->create_stream(StreamKind::compute);
    rig.device->begin_record(stream);
    std::unique_ptr<Recording> recording = rig.device->end_record(stream);
    rig.device->replay(stream, *recording);
    recording.reset();
  });
  CHECK(ending.code == 128 + SIGABRT);
}

// ---- adversarial -------------------------------------------------------------------------------------------

TEST_CASE("4.10: in adversarial mode unwritten and discarded bytes are poisoned") {
  AdversarialRig rig;
  std::byte* here = rig.on_device(4096);
  std::byte* host = rig.pinned_host(4096);
  Stream& stream = *rig.device->create_stream(StreamKind::compute);
  const auto reads = [&] {
    rig.device->copy(stream, host, here, 4096);
    finish(*rig.device, rig.device->signal(stream));
    return std::to_integer<int>(host[0]) * 256 + std::to_integer<int>(host[4095]);
  };
  CHECK(reads() == kPoison * 257);
  std::memset(host, 5, 4096);
  rig.device->copy(stream, here, host, 4096);
  CHECK(reads() == 5 * 257);
  rig.device->discard(stream, here, 4095);
  CHECK(reads() == kPoison * 256 + 5);
}

TEST_CASE("4.10: in adversarial mode nothing runs until some wait forces it") {
  AdversarialRig rig;
  Stream& stream = *rig.device->create_stream(StreamKind::compute);
  bool ran = false;
  rig.device->run(stream, {mark, &ran, "mark", 0});
  const Fence fence = rig.device->signal(stream);
  rig.device->kick();
  CHECK_FALSE(ran);
  CHECK_FALSE(fence.done());
  CHECK(rig.device->force(fence));
  CHECK(ran);
  CHECK_FALSE(rig.device->force_any());
}

// The order in which four streams of three commands each run.
std::string adversarial_order(uint64_t seed) {
  struct Letter {
    std::string* order;
    char letter;
    static void run(void* context) {
      const auto* self = static_cast<Letter*>(context);
      *self->order += self->letter;
    }
  };
  SimOptions options;
  options.adversarial = true;
  options.seed = seed;
  const std::unique_ptr<Device> device = make_sim(options);
  std::string order;
  std::vector<Letter> letters;
  for (const char letter : {'a', 'b', 'c', 'd'}) letters.push_back({&order, letter});
  for (Letter& letter : letters) {
    Stream& stream = *device->create_stream(StreamKind::compute);
    for (int i = 0; i < 3; ++i) device->run(stream, {Letter::run, &letter, "letter", 0});
  }
  while (device->force_any()) {
  }
  return order;
}

TEST_CASE("4.10: the adversarial order follows from the seed, and seeds differ") {
  CHECK(adversarial_order(1).size() == 12);
  CHECK(adversarial_order(1) == adversarial_order(1));
  CHECK(adversarial_order(1) != adversarial_order(2));
  CHECK(adversarial_order(1) != "aaabbbcccddd");
}

TEST_CASE("4.2: force says where a fence hangs on another device, and going round the devices gets on") {
  AdversarialRig one, two;
  Stream& first = *one.device->create_stream(StreamKind::compute);
  Stream& second = *two.device->create_stream(StreamKind::compute);
  bool ran_first = false, ran_second = false;
  one.device->run(first, {mark, &ran_first, "first", 0});
  two.device->wait(second, one.device->signal(first));
  two.device->run(second, {mark, &ran_second, "second", 0});
  const Fence fence = two.device->signal(second);
  CHECK_FALSE(two.device->force(fence));
  CHECK_FALSE(ran_second);
  CHECK(one.device->force_any());
  CHECK(two.device->force(fence));
  CHECK(ran_second);
}

// ---- races -------------------------------------------------------------------------------------------------

struct RaceRig : Rig {
  std::byte* here;
  std::byte* host_bytes;
  Stream *in, *out, *compute;
  std::vector<Access> accesses; // what the last body was said to touch
  RaceRig() {
    SimOptions options = sim_options(*this);
    options.adversarial = true;
    options.check_races = true;
    device = make_sim(options);
    here = on_device(4096);
    host_bytes = pinned_host(8192);
    in = device->create_stream(StreamKind::copy_in);
    out = device->create_stream(StreamKind::copy_out);
    compute = device->create_stream(StreamKind::compute);
  }
  // A body that reads or writes the bytes that copies touch.
  void run_body(const char* name, bool writes) {
    accesses = {{here, 4096, writes}};
    device->run(*compute, {nothing, nullptr, name, 0, &accesses});
  }
  void read_in() { device->copy(*in, here, host_bytes, 4096); }
  void read_out() { device->copy(*out, host_bytes + 4096, here, 4096); }
};

TEST_CASE("4.10: a copy that nothing orders after an earlier one of the same bytes poisons the device") {
  RaceRig rig;
  rig.read_in();
  rig.read_out();
  CHECK(rig.device->status().error == DeviceError::invalid);
  CHECK(rig.device->status().sentence ==
        "sim:0: the copy on stream 1 reads what the copy on stream 0 still writes: nothing orders the two");
}

TEST_CASE("4.10: copies are in order by a fence, by a chain of fences, by a wait of the host, by their stream") {
  RaceRig rig;
  SUBCASE("a fence") {
    rig.read_in();
    rig.device->wait(*rig.out, rig.device->signal(*rig.in));
    rig.read_out();
  }
  SUBCASE("a chain of fences") {
    rig.read_in();
    rig.device->wait(*rig.compute, rig.device->signal(*rig.in));
    rig.device->wait(*rig.out, rig.device->signal(*rig.compute));
    rig.read_out();
  }
  SUBCASE("a wait of the host") {
    rig.read_in();
    finish(*rig.device, rig.device->signal(*rig.in));
    rig.read_out();
  }
  SUBCASE("their stream") {
    rig.read_in();
    rig.device->copy(*rig.in, rig.host_bytes + 4096, rig.here, 4096);
  }
  SUBCASE("nothing, but both read") {
    rig.read_out();
    rig.device->copy(*rig.compute, rig.host_bytes, rig.here, 4096);
  }
  SUBCASE("nothing, but the bytes are others") {
    rig.device->copy(*rig.in, rig.here, rig.host_bytes, 2048);
    rig.device->copy(*rig.out, rig.host_bytes + 4096, rig.here + 2048, 2048);
  }
  CHECK(rig.device->status().ok());
}

TEST_CASE("4.10: a fence puts nothing in order that came after it") {
  RaceRig rig;
  const auto chained_too_early = [&] {
    rig.device->run(*rig.compute, {nothing, nullptr, "nothing", 0});
    const Fence early = rig.device->signal(*rig.compute);
    rig.read_in();
    rig.device->wait(*rig.compute, rig.device->signal(*rig.in));
    rig.device->wait(*rig.out, early); // from before compute waited for the copy
    rig.read_out();
  };
  chained_too_early();
  CHECK(rig.device->status().error == DeviceError::invalid);
}

TEST_CASE("4.10: a body that writes what a copy still reads poisons the device, unless it waits for the copy") {
  RaceRig rig;
  rig.read_out();
  SUBCASE("it does not wait") {
    rig.run_body("paint", true);
    CHECK(rig.device->status().error == DeviceError::invalid);
    CHECK(rig.device->status().sentence ==
          "sim:0: paint writes what the copy on stream 1 still reads: nothing orders the two");
  }
  SUBCASE("it waits") {
    rig.device->wait(*rig.compute, rig.device->signal(*rig.out));
    rig.run_body("paint", true);
    CHECK(rig.device->status().ok());
  }
  SUBCASE("it only reads") {
    rig.run_body("look", false);
    CHECK(rig.device->status().ok());
  }
}

TEST_CASE("4.10: a copy or a discard of what a body still touches poisons the device, and two bodies do") {
  RaceRig rig;
  rig.run_body("paint", true);
  std::string sentence;
  SUBCASE("a copy") {
    rig.read_out();
    sentence = "sim:0: the copy on stream 1 reads what paint still writes: nothing orders the two";
  }
  SUBCASE("a discard") {
    rig.device->discard(*rig.in, rig.here, 64);
    sentence = "sim:0: the discard on stream 0 writes what paint still writes: nothing orders the two";
  }
  SUBCASE("a body of another stream") {
    Stream& other = *rig.device->create_stream(StreamKind::compute);
    rig.device->run(other, {nothing, nullptr, "look", 0, &rig.accesses});
    sentence = "sim:0: look writes what paint still writes: nothing orders the two";
  }
  CHECK(rig.device->status().sentence == sentence);
}

TEST_CASE("4.10: a replay is looked at as a whole each time, by what its bodies touch then") {
  RaceRig rig;
  rig.device->begin_record(*rig.compute);
  rig.run_body("paint", true);
  const std::unique_ptr<Recording> recording = rig.device->end_record(*rig.compute);
  rig.read_out();
  SUBCASE("nothing orders it") {
    rig.device->replay(*rig.compute, *recording);
    CHECK(rig.device->status().sentence ==
          "sim:0: paint writes what the copy on stream 1 still reads: nothing orders the two");
  }
  SUBCASE("its stream waits") {
    rig.device->wait(*rig.compute, rig.device->signal(*rig.out));
    rig.device->replay(*rig.compute, *recording);
    CHECK(rig.device->status().ok());
    SUBCASE("and what comes later does not wait for it") {
      rig.read_in();
      CHECK(rig.device->status().sentence ==
            "sim:0: the copy on stream 0 writes what the copy on stream 1 still reads: nothing orders the two");
    }
  }
  SUBCASE("its body is silent this time") {
    rig.accesses.clear();
    rig.device->replay(*rig.compute, *recording);
    CHECK(rig.device->status().ok());
  }
  while (rig.device->force_any()) {
  }
}

// ---- virtual time ------------------------------------------------------------------------------------------

struct TimedRig : Rig {
  VirtualTime time;
  std::byte* here;
  std::byte* host_bytes;
  explicit TimedRig(SimFaults faults = {}) {
    SimOptions options = sim_options(*this);
    options.time = &time;
    options.latency_ns = 100;
    options.bandwidth_up = 10;
    options.bandwidth_down = 5;
    options.faults = faults;
    device = make_sim(options);
    here = on_device(8192);
    host_bytes = pinned_host(8192);
  }
  ~TimedRig() { device.reset(); }
  int64_t done_at(const Fence& fence) {
    CHECK(device->force(fence));
    return time.now_ns();
  }
  Stream& stream(StreamKind kind) { return *device->create_stream(kind); }
};

TEST_CASE("4.10: in virtual time a copy takes latency and bytes over bandwidth, each way its own") {
  TimedRig rig;
  Stream& in = rig.stream(StreamKind::copy_in);
  rig.device->copy(in, rig.here, rig.host_bytes, 4000);
  CHECK(rig.done_at(rig.device->signal(in)) == 100 + 400);
  rig.device->copy(in, rig.host_bytes, rig.here, 4000);
  CHECK(rig.done_at(rig.device->signal(in)) == 500 + 100 + 800);
}

TEST_CASE("4.10: copies of one direction share an engine, of two they overlap, also with bodies") {
  TimedRig rig;
  Stream& one = rig.stream(StreamKind::copy_in);
  Stream& two = rig.stream(StreamKind::copy_in);
  Stream& out = rig.stream(StreamKind::copy_out);
  Stream& compute = rig.stream(StreamKind::compute);
  rig.device->copy(one, rig.here, rig.host_bytes, 4000);              // up, 0…500
  rig.device->copy(two, rig.here + 4000, rig.host_bytes, 4000);       // up, 500…1000
  rig.device->copy(out, rig.host_bytes + 4096, rig.here + 4096, 500); // down, 0…200
  rig.device->run(compute, {nothing, nullptr, "body", 700});          // 0…700
  CHECK(rig.done_at(rig.device->signal(out)) == 200);
  CHECK(rig.done_at(rig.device->signal(one)) == 500);
  CHECK(rig.done_at(rig.device->signal(compute)) == 700);
  CHECK(rig.done_at(rig.device->signal(two)) == 1000);
}

TEST_CASE("4.10: bodies of several streams contend, first come first served") {
  TimedRig rig;
  Stream& one = rig.stream(StreamKind::compute);
  Stream& two = rig.stream(StreamKind::compute);
  Stream& three = rig.stream(StreamKind::compute);
  rig.device->run(three, {nothing, nullptr, "first", 30});
  rig.device->run(two, {nothing, nullptr, "second", 20});
  rig.device->run(one, {nothing, nullptr, "third", 10});
  CHECK(rig.done_at(rig.device->signal(two)) == 50);
  CHECK(rig.done_at(rig.device->signal(one)) == 60);
}

TEST_CASE("4.10: in virtual time a body takes effect when it ends, and a replay lasts as long as its parts") {
  TimedRig rig;
  Stream& stream = rig.stream(StreamKind::compute);
  bool ran = false;
  rig.device->begin_record(stream);
  rig.device->run(stream, {mark, &ran, "mark", 40});
  rig.device->run(stream, {nothing, nullptr, "rest", 2});
  const std::unique_ptr<Recording> recording = rig.device->end_record(stream);
  rig.device->replay(stream, *recording);
  bool ran_before_its_end = true;
  rig.time.schedule(41, [&] { ran_before_its_end = ran; });
  CHECK(rig.done_at(rig.device->signal(stream)) == 42);
  CHECK_FALSE(ran_before_its_end);
  CHECK(ran);
}

TEST_CASE("4.2: virtual devices on one timeline wait for each other and for words that events move") {
  TimedRig one;
  SimOptions options;
  options.time = &one.time;
  const std::unique_ptr<Device> other = make_sim(options);
  std::atomic<uint64_t> word{0};
  Stream& first = one.stream(StreamKind::compute);
  Stream& second = *other->create_stream(StreamKind::compute);
  one.device->wait(first, {&word, 1});
  one.device->run(first, {nothing, nullptr, "first", 10});
  other->wait(second, one.device->signal(first));
  other->run(second, {nothing, nullptr, "second", 5});
  one.time.schedule(1000, [&] { word = 1; });
  CHECK(other->force(other->signal(second)));
  CHECK(one.time.now_ns() == 1015);
}

TEST_CASE("4.10: a virtual device may go before its timeline") {
  VirtualTime time;
  bool ran = false;
  {
    SimOptions options;
    options.time = &time;
    const std::unique_ptr<Device> device = make_sim(options);
    device->run(*device->create_stream(StreamKind::compute), {mark, &ran, "mark", 10});
  }
  CHECK(time.step());
  CHECK_FALSE(ran);
}

TEST_CASE("4.10: in real time a copy lasts at least as long as latency and bandwidth say") {
  Rig rig;
  SimOptions options = sim_options(rig);
  options.latency_ns = 200'000;
  options.bandwidth_up = 0.01; // 4000 bytes: 400 µs
  rig.device = make_sim(options);
  Stream& stream = *rig.device->create_stream(StreamKind::copy_in);
  std::byte* here = rig.on_device(4096);
  std::byte* host = rig.pinned_host(4096);
  const MonotonicTime time;
  const int64_t before = time.now_ns();
  rig.device->copy(stream, here, host, 4000);
  finish(*rig.device, rig.device->signal(stream));
  CHECK(time.now_ns() - before >= 600'000);
}

// ---- faults ------------------------------------------------------------------------------------------------

enum class Mode { threads, virtual_time, adversarial };

struct FaultRig : Rig {
  VirtualTime time;
  FaultRig(Mode mode, SimFaults faults) {
    SimOptions options = sim_options(*this);
    options.faults = faults;
    options.adversarial = mode == Mode::adversarial;
    if (mode == Mode::virtual_time) options.time = &time;
    device = make_sim(options);
  }
  ~FaultRig() { device.reset(); }
};

constexpr Mode kModes[] = {Mode::threads, Mode::virtual_time, Mode::adversarial};

TEST_CASE("4.9: a body that faults poisons the domain: nothing later runs, every fence is done, status tells") {
  for (const Mode mode : kModes) {
    CAPTURE(static_cast<int>(mode));
    SimFaults faults;
    faults.fail_run = 2;
    FaultRig rig(mode, faults);
    Stream& stream = *rig.device->create_stream(StreamKind::compute);
    Stream& other = *rig.device->create_stream(StreamKind::compute);
    bool ran[3] = {};
    for (bool& one : ran) rig.device->run(stream, {mark, &one, "blur", 10});
    const Fence fence = rig.device->signal(stream);
    finish(*rig.device, fence);
    CHECK(ran[0]);
    CHECK_FALSE(ran[1]);
    CHECK_FALSE(ran[2]);
    CHECK(rig.device->status().error == DeviceError::fault);
    CHECK(rig.device->status().sentence.find("blur") != std::string::npos);
    rig.device->run(other, {mark, &ran[2], "late", 10});
    finish(*rig.device, rig.device->signal(other));
    CHECK_FALSE(ran[2]);
  }
}

TEST_CASE("4.9: the n-th copy fails wherever it is, and its bytes do not move") {
  for (const Mode mode : kModes) {
    CAPTURE(static_cast<int>(mode));
    SimFaults faults;
    faults.fail_copy = 2;
    FaultRig rig(mode, faults);
    Stream& stream = *rig.device->create_stream(StreamKind::copy_in);
    std::byte* here = rig.on_device(64);
    std::byte* host = rig.pinned_host(64);
    rig.device->copy(stream, here, host, 64);
    finish(*rig.device, rig.device->signal(stream));
    CHECK(rig.device->status().ok());
    host[0] = std::byte{9};
    rig.device->copy(stream, host, here, 64);
    finish(*rig.device, rig.device->signal(stream));
    CHECK(rig.device->status().error == DeviceError::fault);
    CHECK(host[0] == std::byte{9});
  }
}

TEST_CASE("4.9: a fault inside a recording strikes at the replay that reaches it") {
  for (const Mode mode : kModes) {
    CAPTURE(static_cast<int>(mode));
    SimFaults faults;
    faults.fail_run = 4;
    FaultRig rig(mode, faults);
    Stream& stream = *rig.device->create_stream(StreamKind::compute);
    rig.device->begin_record(stream);
    for (int i = 0; i < 3; ++i) rig.device->run(stream, {nothing, nullptr, "part", 1});
    const std::unique_ptr<Recording> recording = rig.device->end_record(stream);
    rig.device->replay(stream, *recording);
    finish(*rig.device, rig.device->signal(stream));
    CHECK(rig.device->status().ok());
    rig.device->replay(stream, *recording);
    finish(*rig.device, rig.device->signal(stream));
    CHECK(rig.device->status().error == DeviceError::fault);
  }
}

TEST_CASE("4.9: a lost device is sticky and leaves nobody waiting") {
  for (const Mode mode : kModes) {
    CAPTURE(static_cast<int>(mode));
    SimFaults faults;
    faults.lose_device = 1;
    FaultRig rig(mode, faults);
    Stream& stream = *rig.device->create_stream(StreamKind::compute);
    Stream& waiting = *rig.device->create_stream(StreamKind::compute);
    std::atomic<uint64_t> never{0};
    bool ran = false;
    rig.device->wait(waiting, {&never, 1});
    rig.device->run(stream, {mark, &ran, "body", 10});
    finish(*rig.device, rig.device->signal(stream));
    finish(*rig.device, rig.device->signal(waiting));
    CHECK(rig.device->status().error == DeviceError::lost);
    CHECK_FALSE(ran);
  }
}

TEST_CASE("4.9: a hung stream holds its fence back until the device is declared lost; others go on") {
  for (const Mode mode : kModes) {
    CAPTURE(static_cast<int>(mode));
    SimFaults faults;
    faults.hang_command = 1;
    FaultRig rig(mode, faults);
    Stream& hung = *rig.device->create_stream(StreamKind::compute);
    Stream& other = *rig.device->create_stream(StreamKind::compute);
    bool ran_hung = false, ran_other = false;
    rig.device->run(hung, {mark, &ran_hung, "hung", 10});
    const Fence stuck = rig.device->signal(hung);
    rig.device->run(other, {mark, &ran_other, "other", 10});
    finish(*rig.device, rig.device->signal(other));
    CHECK(ran_other);
    CHECK_FALSE(rig.device->force(stuck));
    CHECK_FALSE(stuck.done());
    rig.device->declare_lost("sim:0 completed nothing for 8 ticks");
    finish(*rig.device, stuck);
    CHECK_FALSE(ran_hung);
    CHECK(rig.device->status().error == DeviceError::lost);
  }
}

TEST_CASE("4.9: out of memory can be injected, and the next try succeeds") {
  for (const Mode mode : kModes) {
    CAPTURE(static_cast<int>(mode));
    SimFaults faults;
    faults.out_of_memory = 2;
    FaultRig rig(mode, faults);
    DeviceStatus status;
    CHECK(rig.device->allocate(64, {}, status) != nullptr);
    CHECK(rig.device->allocate(64, {}, status) == nullptr);
    CHECK(status.error == DeviceError::out_of_memory);
    CHECK(rig.device->allocate(64, {}, status) != nullptr);
    CHECK(rig.device->status().ok());
  }
}

TEST_CASE("several devices live in one process, each with its own memory and poison") {
  ThreadedRig one;
  AdversarialRig two;
  std::byte* here = one.on_device(4096);
  CHECK(one.device->body_address(here) != here);
  CHECK(two.device->body_address(here) == here); // not its own: as it came
  one.device->declare_lost("gone");
  CHECK(two.device->status().ok());
}

} // namespace
} // namespace millrace::device::test
