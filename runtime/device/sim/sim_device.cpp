// Implements memory, checks at submission and the running of a command, for all simulated devices.
#include "device/sim/sim_device.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstring>

#include "device/host_pages.h"
#include "device/pinned_ranges.h"
#include "observe/error.h"

namespace millrace::device {
namespace {

Engine engine_of(StreamKind kind) {
  switch (kind) {
    case StreamKind::copy_in: return Engine::copy_in;
    case StreamKind::copy_out: return Engine::copy_out;
    case StreamKind::copy_peer: return Engine::copy_peer;
    default: return Engine::compute;
  }
}

std::string bytes_at(uint64_t bytes, const std::byte* address) {
  char text[64];
  std::snprintf(text, sizeof text, "%llu bytes at %p", static_cast<unsigned long long>(bytes),
                static_cast<const void*>(address));
  return text;
}

int64_t copy_cost_ns(uint64_t bytes, int64_t latency_ns, double bytes_per_ns) {
  if (bytes_per_ns <= 0) return latency_ns;
  return latency_ns + std::llround(static_cast<double>(bytes) / bytes_per_ns);
}

// True if the n-th (from 1) of something is among the `count` that follow the first `before`.
bool strikes(uint64_t nth, uint64_t before, uint64_t count) { return nth > before && nth - before <= count; }

} // namespace

SimDevice::SimArena::SimArena(uint64_t bytes, ArenaProperties properties, const std::string& domain)
    : mapping(bytes), guard(mapping.seen(), mapping.seen() ? bytes : 0, domain) {
  arena = {mapping.seen(), bytes, properties};
}

SimDevice::SimDevice(const SimOptions& options) : Device(options.domain), options_(options) {}

SimDevice::~SimDevice() {
  for (const auto& stream : streams_) {
    while (stream->head()) stream->pop(); // dropped
  }
  if (!options_.fabric) return;
  for (size_t i = 0; i < arena_count_; ++i) options_.fabric->remove(arenas_[i]->arena.base);
}

Arena* SimDevice::allocate(uint64_t bytes, ArenaProperties properties, DeviceStatus& status) {
  const std::string wanted = domain() + ": " + std::to_string(bytes) + " bytes";
  tell("allocate");
  if (record_allocation()) {
    poison(DeviceError::invalid, wanted + " were asked for in steady state");
    status = this->status();
    return nullptr;
  }
  const uint64_t rounded = round_up_to_pages(std::max<uint64_t>(bytes, 1));
  const bool within = rounded >= bytes && rounded <= options_.bytes_limit - bytes_allocated_;
  const size_t count = arena_count_.load(std::memory_order_relaxed);
  const bool injected = ++allocations_ == options_.faults.out_of_memory;
  std::unique_ptr<SimArena> made;
  if (within && count < kArenasMax && !injected) made = std::make_unique<SimArena>(rounded, properties, domain());
  if (!made || !made->arena.base) {
    status = {DeviceError::out_of_memory, wanted + " are wanted, " +
                                              std::to_string(options_.bytes_limit - bytes_allocated_) + " of " +
                                              std::to_string(options_.bytes_limit) + " are left"};
    return nullptr;
  }
  if (options_.adversarial) std::memset(made->mapping.working(), kPoison, rounded);
  bytes_allocated_ += rounded;
  if (options_.fabric) options_.fabric->add({made->mapping.seen(), made->mapping.working(), rounded, domain()});
  arenas_[count] = std::move(made);
  arena_count_.store(count + 1, std::memory_order_release);
  status = {};
  return &arenas_[count]->arena;
}

const SimDevice::SimArena* SimDevice::find_arena(const std::byte* address) const {
  const size_t count = arena_count_.load(std::memory_order_acquire);
  for (size_t i = 0; i < count; ++i) {
    const Arena& arena = arenas_[i]->arena;
    if (address >= arena.base && address < arena.base + arena.bytes) return arenas_[i].get();
  }
  return nullptr;
}

// Translates an address as bodies have it to the host's, because a body that enqueues copies between such addresses.
const std::byte* SimDevice::as_host_sees(const std::byte* address) const {
  const size_t count = options_.enqueues ? arena_count_.load(std::memory_order_acquire) : 0;
  for (size_t i = 0; i < count; ++i) {
    const std::byte* const working = arenas_[i]->mapping.working();
    if (address >= working && address < working + arenas_[i]->arena.bytes)
      return arenas_[i]->arena.base + (address - working);
  }
  return address;
}

std::byte* SimDevice::body_address(std::byte* address) const {
  if (const SimArena* found = find_arena(address)) return found->mapping.working() + (address - found->arena.base);
  const Elsewhere found = find_elsewhere(address, 0);
  return found.peer && found.peer->accesses ? found.address : address;
}

SimDevice::Elsewhere SimDevice::find_elsewhere(const std::byte* address, uint64_t bytes) const {
  if (!options_.fabric) return {};
  std::string owner;
  std::byte* const there = options_.fabric->find(address, bytes, owner);
  const auto peer = options_.peers.find(owner);
  return {there, there && peer != options_.peers.end() ? &peer->second : nullptr};
}

SimDevice::End SimDevice::find_end(const std::byte* given, uint64_t bytes) const {
  const std::byte* const address = as_host_sees(given);
  if (const SimArena* found = find_arena(address)) {
    const uint64_t offset = static_cast<uint64_t>(address - found->arena.base);
    if (bytes > found->arena.bytes - offset) return {};
    return {found->mapping.working() + offset, true};
  }
  if (const Elsewhere found = find_elsewhere(address, bytes); found.address) {
    if (!found.peer || !found.peer->copies) return {};
    return {found.address, false, found.peer};
  }
  if (options_.pinned && !options_.pinned->contains(address, bytes)) return {};
  return {const_cast<std::byte*>(address), false};
}

Stream* SimDevice::create_stream(StreamKind kind) {
  std::unique_ptr<QueuedStream> stream = make_stream();
  stream->kind = kind;
  stream->index = static_cast<uint32_t>(streams_.size());
  QueuedStream& made = *stream;
  {
    const std::lock_guard lock(streams_mutex_);
    streams_.push_back(std::move(stream));
  }
  races_.add_stream(made);
  on_stream(made);
  return &made;
}

void SimDevice::run(Stream& stream, const Work& work) {
  const auto cost_ns = static_cast<int64_t>(static_cast<double>(work.cost_ns) / options_.speed);
  // Work that rides on a copy stream (a presence word, a time) takes no time and disturbs no body.
  const Engine engine = stream.kind == StreamKind::compute ? Engine::compute : Engine::none;
  submit(stream, {work, engine, Injected::none, cost_ns});
}

void SimDevice::copy(Stream& stream, std::byte* target, const std::byte* source, uint64_t bytes) {
  const End to = find_end(target, bytes);
  const End from = find_end(source, bytes);
  if (!to.address || !from.address) {
    const bool wrong_source = !from.address;
    return poison(DeviceError::invalid, domain() + ": asynchronous copy " + (wrong_source ? "from" : "to") +
                                            " pageable memory: " + bytes_at(bytes, wrong_source ? source : target) +
                                            " are in no pinned arena and in none of this device");
  }
  if (!to.on_device && (!from.on_device || (to.peer && !options_.enqueues))) {
    return poison(DeviceError::invalid, domain() + ": a copy of " + bytes_at(bytes, source) +
                                            " that does not end in it and does not lead from it to the host");
  }
  Command command{Copy{to.address, from.address, std::min(bytes, options_.bytes_moved_max)}, engine_of(stream.kind),
                  Injected::none, 0};
  command.cost_ns = options_.latency_ns;
  if (const SimPeer* const peer = from.peer ? from.peer : to.peer) {
    command.engine = Engine::copy_peer;
    command.cost_ns = copy_cost_ns(bytes, peer->latency_ns, peer->bandwidth);
  } else if (!from.on_device) {
    command.engine = Engine::copy_in;
    command.cost_ns = copy_cost_ns(bytes, options_.latency_ns, options_.bandwidth_up);
  } else if (!to.on_device) {
    command.engine = Engine::copy_out;
    command.cost_ns = copy_cost_ns(bytes, options_.latency_ns, options_.bandwidth_down);
  }
  submit(stream, std::move(command));
}

void SimDevice::copy_pageable(Stream& stream, std::byte* target, const std::byte* source, uint64_t bytes) {
  const End to = find_end(target, bytes);
  if (!to.on_device || to.peer || find_end(source, bytes).on_device)
    return poison(DeviceError::invalid,
                  domain() + ": a copy from pageable memory leads from the host to this device, not to " +
                      bytes_at(bytes, target));
  Command command{Copy{to.address, source, std::min(bytes, options_.bytes_moved_max)}, Engine::copy_in, Injected::none,
                  0};
  command.cost_ns = copy_cost_ns(bytes, options_.latency_ns, options_.bandwidth_up);
  submit(stream, std::move(command));
}

int64_t SimDevice::slowed_ns(int64_t cost_ns, uint32_t others) const {
  return std::llround(static_cast<double>(cost_ns) * (1 + others * options_.contention));
}

void SimDevice::discard(Stream& stream, std::byte* address, uint64_t bytes) {
  const End end = find_end(address, bytes);
  if (!end.on_device) {
    return poison(DeviceError::invalid, domain() + ": " + bytes_at(bytes, address) + " are discarded and not its own");
  }
  if (options_.adversarial) submit(stream, {Fill{end.address, bytes, kPoison}});
}

void SimDevice::clear(Stream& stream, std::byte* target, uint64_t bytes) {
  if (refuse_while_recording(stream, "clear()")) return;
  const End end = find_end(target, bytes);
  if (!end.on_device) {
    return poison(DeviceError::invalid, domain() + ": " + bytes_at(bytes, target) + " are cleared and not its own");
  }
  submit(stream, {Fill{end.address, bytes, 0}});
}

void SimDevice::wait(Stream& stream, const Fence& fence) {
  if (refuse_while_recording(stream, "wait()")) return;
  {
    const std::lock_guard lock(submitting_);
    for (const auto& own : streams_)
      MR_ASSERT(fence.word != &own->completed || fence.sequence <= own->issued,
                "a wait for a fence that was not issued");
  }
  if (fence.done()) return;
  submit(stream, {Wait{fence}});
  const std::lock_guard lock(submitting_);
  if (options_.check_races) races_.on_wait(stream, fence);
}

Fence SimDevice::signal(Stream& stream) {
  refuse_while_recording(stream, "signal()");
  return {&stream.completed, stream.issued};
}

bool SimDevice::has_room(const Stream& stream) const {
  const auto& asked = static_cast<const QueuedStream&>(stream);
  return poisoned() || asked.issued - asked.done() < options_.commands_max / 2; // a body may enqueue many
}

void SimDevice::begin_record(Stream& stream) {
  MR_ASSERT(!queued(stream).recording, "the stream records already");
  queued(stream).recording = std::make_shared<RecordedCommands>(poisoned_);
  if (options_.enqueues) stream.tick = &queued(stream).recording->tick;
}

std::unique_ptr<Recording> SimDevice::end_record(Stream& stream) {
  MR_ASSERT(queued(stream).recording, "the stream does not record");
  std::unique_ptr<Recording> made = std::make_unique<CommandRecording>(std::move(queued(stream).recording));
  if (!options_.enqueues) return made;
  stream.tick = tick_of(stream);
  if (++recordings_ == options_.faults.fail_record) return nullptr;
  return made;
}

void SimDevice::replay(Stream& stream, Recording& recording, const TickNumbers& numbers,
                       std::span<const RecordedList> lists) {
  if (refuse_while_recording(stream, "replay()")) return;
  const std::shared_ptr<RecordedCommands>& recorded = static_cast<CommandRecording&>(recording).recorded;
  if (options_.enqueues && replays_ + 1 == options_.faults.fail_replay) return declare_lost("told to fail");
  Command command{Replay{recorded, {}}, engine_of(stream.kind), Injected::none, 0};
  if (options_.enqueues) std::get<Replay>(command.operation).first = beginning_of_replay(*recorded, numbers, lists);
  for (const Command& part : recorded->commands) command.cost_ns += part.cost_ns;
  submit(stream, std::move(command));
}

bool SimDevice::refuse_while_recording(Stream& stream, const char* call) {
  if (!queued(stream).recording) return false;
  poison(DeviceError::invalid, domain() + ": " + call + " while its stream records");
  return true;
}

void SimDevice::submit(Stream& stream, Command command) {
  const std::lock_guard lock(submitting_);
  QueuedStream& target = queued(stream);
  if (target.recording) {
    target.recording->commands.push_back(std::move(command));
    return;
  }
  command.injected = count_and_inject(command);
  const Command checked = command;
  if (!target.push(std::move(command))) {
    return poison(DeviceError::invalid, domain() + ": a stream has more than " + std::to_string(options_.commands_max) +
                                            " commands under way");
  }
  if (options_.check_races) check_races(target, checked);
  on_command(target);
}

void SimDevice::check_races(const QueuedStream& stream, const Command& command) {
  if (const Work* work = std::get_if<Work>(&command.operation)) {
    if (!work->accesses) return;
    for (Access access : *work->accesses) {
      access.address = body_address(const_cast<std::byte*>(access.address)); // the kind of address that copies have
      check_race(stream, {work->name, true}, access);
    }
  } else if (const Copy* copy = std::get_if<Copy>(&command.operation)) {
    check_race(stream, {"copy", false}, {copy->source, copy->bytes, false});
    check_race(stream, {"copy", false}, {copy->target, copy->bytes, true});
  } else if (const Fill* fill = std::get_if<Fill>(&command.operation)) {
    check_race(stream, {fill->value == 0 ? "clear" : "discard", false}, {fill->target, fill->bytes, true});
  } else if (const Replay* replay = std::get_if<Replay>(&command.operation)) {
    for (const Command& part : replay->recording->commands) check_races(stream, part);
  }
}

void SimDevice::check_race(const QueuedStream& stream, const AccessRaces::Party& party, const Access& access) {
  const std::string sentence = races_.race(stream, party, access);
  if (!sentence.empty()) poison(DeviceError::invalid, domain() + ": " + sentence);
}

Injected SimDevice::count_and_inject(const Command& command) {
  uint64_t runs = 0, copies = 0;
  const auto count = [&](const Command& part) {
    const Work* work = std::get_if<Work>(&part.operation);
    const bool kernel = std::holds_alternative<Kernel>(part.operation) && part.engine == Engine::compute;
    runs += (work && work->run) || kernel;
    copies += std::holds_alternative<Copy>(part.operation);
  };
  count(command);
  if (const Replay* replay = std::get_if<Replay>(&command.operation)) {
    for (const Command& part : replay->recording->commands) count(part);
  }
  const SimFaults& faults = options_.faults;
  Injected injected = Injected::none;
  if (strikes(faults.hang_command, runs_ + copies_, runs + copies)) injected = Injected::hang;
  if (strikes(faults.fail_run, runs_, runs) || strikes(faults.fail_copy, copies_, copies)) injected = Injected::fault;
  if (strikes(faults.lose_device, runs_ + copies_, runs + copies)) injected = Injected::lost;
  runs_ += runs;
  copies_ += copies;
  return injected;
}

bool SimDevice::ready(const Command& command) const {
  if (poisoned()) return true;
  if (command.injected == Injected::hang) return false;
  return !command.wait() || command.wait()->fence.done();
}

void SimDevice::execute(const Command& command) {
  // Counts before `poisoned_` is read, so that a thread that poisons and then reads the count misses no command.
  struct Executing {
    std::atomic<uint32_t>& count;
    explicit Executing(std::atomic<uint32_t>& of) : count(of) { ++count; }
    ~Executing() { --count; }
  } const here(executing_);
  if (poisoned_.load()) return;
  if (command.injected == Injected::fault) {
    const Work* work = std::get_if<Work>(&command.operation);
    const char* const what = std::holds_alternative<Kernel>(command.operation) ? "a kernel" : "a copy or replay";
    return poison(DeviceError::fault, domain() + ": injected fault in " + (work ? work->name : what));
  }
  if (command.injected == Injected::lost) return poison(DeviceError::lost, domain() + ": injected loss of the device");
  perform(command, poisoned_);
}

uint64_t SimDevice::reached(const Stream& stream) const {
  const auto& asked = static_cast<const QueuedStream&>(stream);
  return poisoned() ? asked.reached.load() : asked.done();
}

// Fails the words too, because a body that never ends would hold its stream's word for ever.
void SimDevice::declare_lost(const std::string& sentence) {
  poison(DeviceError::lost, sentence);
  fail_words();
}

void SimDevice::fail_words() {
  const std::lock_guard lock(streams_mutex_);
  for (const auto& stream : streams_) stream->fail();
}

DeviceStatus SimDevice::status() const {
  const std::lock_guard lock(status_mutex_);
  return status_;
}

void SimDevice::poison(DeviceError error, const std::string& sentence) {
  {
    // Held over both, so that a thread that saw the device poisoned also finds the reason.
    const std::lock_guard lock(status_mutex_);
    if (poisoned_) return;
    {
      const std::lock_guard streams_lock(streams_mutex_);
      for (const auto& stream : streams_) stream->reached = stream->done();
    }
    poisoned_ = true;
    status_ = {error, sentence};
    if (options_.enqueues) fail_words();
  }
  on_poison();
}

std::unique_ptr<Device> make_sim(const SimOptions& options) {
  MR_ASSERT(!(options.time && options.adversarial), "a device is virtual or adversarial, not both");
  if (options.time) return make_virtual_sim(options);
  if (options.adversarial) return make_adversarial_sim(options);
  return make_threaded_sim(options);
}

} // namespace millrace::device
