// A device on the host whose bodies enqueue, as those of a GPU do.
#include "enqueuing_device.h"

#include <cstring>
#include <thread>
#include <utility>

#include "millrace/abi.h"

namespace millrace::test {
namespace {

using device::DeviceStatus;
using device::Fence;
using device::Stream;
using device::TickNumbers;

using Kernels = std::vector<std::function<void()>>;

struct Operation {
  Kernels kernels;
  Fence waits;
  bool signals = false;
};

struct QueueStream final : Stream {
  Queue queue;
  Kernels now; // of the body that is being called
  std::deque<Operation> operations;
  mr_device_tick own_tick{};
  bool dirty = false;
  std::unique_ptr<Kernels> recording;
  std::unique_ptr<mr_device_tick> recorded_tick;
  uint64_t holds = 0;
  std::atomic<uint64_t> let_go{0};
};

struct Replayed final : device::Recording {
  Kernels kernels;
  std::unique_ptr<mr_device_tick> tick;
};

class EnqueuingDevice final : public device::Device {
 public:
  EnqueuingDevice(const std::string& domain, uint64_t seed, EnqueuingFaults faults, std::shared_ptr<Hardware> hardware,
                  Watcher watcher)
      : Device(domain), random_(seed), faults_(faults), hardware_(std::move(hardware)), watcher_(std::move(watcher)) {
    if (hardware_) thread_ = std::thread([this] { work(); });
  }
  ~EnqueuingDevice() override {
    closing_ = true;
    submitted_.ring();
    if (thread_.joinable()) thread_.join();
  }

  device::Arena* allocate(uint64_t bytes, device::ArenaProperties properties, DeviceStatus& status) override {
    note_allocation();
    memory_.push_back(std::make_unique<std::byte[]>(bytes + 256));
    auto* base = reinterpret_cast<std::byte*>((reinterpret_cast<uintptr_t>(memory_.back().get()) + 255) / 256 * 256);
    std::memset(base, 0xDB, bytes);
    arenas_.push_back(std::make_unique<device::Arena>(device::Arena{base, bytes, properties}));
    status = {};
    return arenas_.back().get();
  }
  uint64_t bytes_allocated() const override { return 0; }
  uint64_t bytes_limit() const override { return 0; }

  Stream* create_stream(device::StreamKind kind) override {
    auto stream = std::make_unique<QueueStream>();
    stream->kind = kind;
    stream->queue.kernels = &stream->now;
    stream->native = &stream->queue;
    stream->tick = &stream->own_tick;
    const std::lock_guard lock(mutex_);
    streams_.push_back(std::move(stream));
    return streams_.back().get();
  }

  bool enqueues() const override { return true; }

  void run(Stream& stream, const device::Work& work) override {
    if (failed_) return;
    if (!of(stream).recording) tell(std::string("body ") + work.name);
    ++bodies_;
    work.run(work.context);
    flush(stream);
  }

  bool begin_span(Stream&) override {
    if (!watcher_.span_ns) return false;
    tell("begin");
    bodies_ = 0;
    return true;
  }
  void end_span(Stream&, const device::Span& span) override {
    tell("end");
    span.tell(span.context, watcher_.span_ns(bodies_));
  }
  void hold(Stream& stream) override {
    tell("hold");
    wait(stream, {&of(stream).let_go, ++of(stream).holds});
  }
  void let_go(Stream& stream) override {
    tell("let go");
    of(stream).let_go = of(stream).holds;
    submitted_.ring();
  }

  void copy(Stream& stream, std::byte* target, const std::byte* source, uint64_t bytes) override {
    if (failed_) return;
    of(stream).now.emplace_back([=] { std::memcpy(target, source, bytes); });
    flush(stream);
  }

  void set_tick(Stream& stream, const TickNumbers& numbers) override {
    mr_device_tick* tick = &of(stream).own_tick;
    of(stream).now.emplace_back([=] { *tick = {numbers.index, numbers.media_time_ns, 0}; });
    flush(stream);
  }

  void wait(Stream& stream, const Fence& fence) override {
    const std::lock_guard lock(mutex_);
    of(stream).operations.push_back({{}, fence});
    of(stream).dirty = true;
    submitted_.ring();
  }

  Fence signal(Stream& stream) override {
    QueueStream& at = of(stream);
    const std::lock_guard lock(mutex_);
    if (std::exchange(at.dirty, false)) {
      ++at.issued;
      at.operations.push_back({{}, {}, true});
      submitted_.ring();
      if (failed_) at.completed = device::kFailed;
    }
    return {&at.completed, at.issued};
  }

  void begin_record(Stream& stream) override {
    of(stream).recording = std::make_unique<Kernels>();
    of(stream).recorded_tick = std::make_unique<mr_device_tick>();
    stream.tick = of(stream).recorded_tick.get();
  }
  std::unique_ptr<device::Recording> end_record(Stream& stream) override {
    auto recording = std::make_unique<Replayed>();
    recording->kernels = std::move(*of(stream).recording);
    recording->tick = std::move(of(stream).recorded_tick);
    of(stream).recording.reset();
    stream.tick = &of(stream).own_tick;
    if (++recordings_ == faults_.capture) return nullptr;
    return recording;
  }
  std::string record_failure() const override { return "told to fail"; }

  void replay(Stream& stream, device::Recording& recording, const TickNumbers& numbers) override {
    auto& replayed = static_cast<Replayed&>(recording);
    const uint64_t index = replays_++;
    if (replays_ == faults_.launch) return declare_lost("told to fail");
    if (hardware_) {
      const std::chrono::nanoseconds takes(hardware_->takes_ns(index));
      of(stream).now.emplace_back([=, hardware = hardware_.get()] {
        std::this_thread::sleep_for(takes);
        hardware->ends(index);
      });
    }
    mr_device_tick* tick = replayed.tick.get();
    of(stream).now.emplace_back([=] { *tick = {numbers.index, numbers.media_time_ns, 0}; });
    for (const auto& kernel : replayed.kernels) of(stream).now.push_back(kernel);
    flush(stream);
  }

  void warm_up(Stream&, device::Recording&) override {
    if (hardware_) hardware_->warmed_up();
  }

  bool force(const Fence&) override { return force_any(); }
  bool force_any() override { return !hardware_ && step_any(); }

  void watch() override {
    if (!hardware_) return;
    watched_ = true;
    hardware_->asked_to_watch(replays_);
  }
  // A wait may be for a word of another device.
  void kick() override { submitted_.ring(); }

  DeviceStatus status() const override {
    const std::lock_guard lock(mutex_);
    return status_;
  }
  bool failed() const override { return failed_; }
  void declare_lost(const std::string& sentence) override {
    const std::lock_guard lock(mutex_);
    if (failed_.exchange(true)) return;
    status_ = {device::DeviceError::lost, sentence};
    for (auto& stream : streams_) stream->completed = device::kFailed;
  }

 private:
  static QueueStream& of(Stream& stream) { return static_cast<QueueStream&>(stream); }

  void flush(Stream& stream) {
    QueueStream& at = of(stream);
    const std::lock_guard lock(mutex_);
    if (at.recording) {
      at.recording->insert(at.recording->end(), at.now.begin(), at.now.end());
    } else {
      at.operations.push_back({at.now, {}});
      at.dirty = true;
      submitted_.ring();
    }
    at.now.clear();
  }

  void tell(const std::string& call) const {
    if (watcher_.called) watcher_.called(call);
  }

  void work() {
    while (!closing_) {
      const uint32_t heard = submitted_.rings();
      if (!step_any()) submitted_.sleep(heard, 1'000'000); // words of others move without a ring
    }
  }

  bool step_any() {
    const std::lock_guard lock(stepping_);
    const size_t count = stream_count();
    const size_t first = count == 0 ? 0 : random_() % count;
    for (size_t s = 0; s < count; ++s)
      if (step((first + s) % count)) return true;
    return false;
  }

  size_t stream_count() const {
    const std::lock_guard lock(mutex_);
    return streams_.size();
  }

  // The operation at the head of the stream, if it can run; whoever submits meanwhile is not held up.
  bool step(size_t index) {
    std::unique_lock lock(mutex_);
    QueueStream& stream = *streams_[index];
    if (stream.operations.empty() || failed_ || !stream.operations.front().waits.done()) return false;
    const Operation& operation = stream.operations.front();
    lock.unlock();
    for (const auto& kernel : operation.kernels) kernel();
    lock.lock();
    if (operation.signals && !failed_) {
      stream.completed.fetch_add(1);
      stream.completed.notify_all();
      ring(stream);
    }
    stream.operations.pop_front();
    return true;
  }

  void ring(QueueStream& stream) {
    if (!stream.bell || (hardware_ && !watched_.exchange(false))) return;
    stream.bell->ring();
  }

  std::mutex stepping_; // one operation at a time; before mutex_
  mutable std::mutex mutex_;
  std::mt19937_64 random_;
  EnqueuingFaults faults_;
  uint64_t recordings_ = 0;
  std::atomic<uint64_t> replays_{0};
  std::atomic<bool> failed_{false};
  DeviceStatus status_;
  std::vector<std::unique_ptr<std::byte[]>> memory_;
  std::vector<std::unique_ptr<device::Arena>> arenas_;
  std::vector<std::unique_ptr<QueueStream>> streams_;

  const std::shared_ptr<Hardware> hardware_; // null: who waits makes it run
  const Watcher watcher_;
  std::atomic<size_t> bodies_{0}; // since a span began
  std::atomic<bool> watched_{false}, closing_{false};
  device::Bell submitted_;
  std::thread thread_;
};

} // namespace

std::unique_ptr<device::Device> make_enqueuing(const std::string& domain, uint64_t seed, EnqueuingFaults faults,
                                               std::shared_ptr<Hardware> hardware, Watcher watcher) {
  return std::make_unique<EnqueuingDevice>(domain, seed, faults, std::move(hardware), std::move(watcher));
}

} // namespace millrace::test
