// A simulated device whose bodies enqueue. It calls them when they are submitted, and they leave kernels, copies and
// waits on their stream, as on a GPU.
#include <thread>

#include "device/sim/sim_device.h"

namespace millrace::device {
namespace {

// A stream that is a queue for kernels too.
class EnqueuingStream final : public QueuedStream, public SimQueue {
 public:
  using Submit = std::function<void(EnqueuingStream&, Command)>;
  EnqueuingStream(uint32_t commands_max, Submit submit) : QueuedStream(commands_max), submit_(std::move(submit)) {
    native = static_cast<SimQueue*>(this);
    tick = &own_tick;
  }

  void launch(std::function<void()> kernel) override {
    Command command{Kernel{std::move(kernel)}, Engine::compute, Injected::none, body_cost_ns};
    body_cost_ns = 0; // the first kernel of a body takes the time of the whole body
    submit_(*this, std::move(command));
  }

  mr_device_tick own_tick{};
  int64_t body_cost_ns = 0; // cost of the body that is being called
  uint64_t holds = 0;
  std::atomic<uint64_t> let_go{0};

 private:
  const Submit submit_;
};

EnqueuingStream& own(Stream& stream) { return static_cast<EnqueuingStream&>(stream); }

mr_device_tick as_kernels_read(const TickNumbers& numbers) { return {numbers.index, numbers.media_time_ns, 0}; }

} // namespace

std::unique_ptr<QueuedStream> SimDevice::make_stream() {
  if (!options_.enqueues) return std::make_unique<QueuedStream>(options_.commands_max);
  return std::make_unique<EnqueuingStream>(
      options_.commands_max, [this](Stream& stream, Command command) { submit(stream, std::move(command)); });
}

const mr_device_tick* SimDevice::tick_of(const Stream& stream) {
  return &static_cast<const EnqueuingStream&>(stream).own_tick;
}

void SimDevice::call(Stream& stream, const Work& work) {
  if (poisoned()) return;
  EnqueuingStream& on = own(stream);
  if (!on.recording) tell(std::string("body ") + work.name);
  ++span_bodies_;
  on.body_cost_ns = static_cast<int64_t>(static_cast<double>(work.cost_ns) / options_.speed);
  work.run(work.context);
  on.body_cost_ns = 0;
  // Submitted after its kernels: any other access to the same bytes must come after all of them.
  if (work.accesses && options_.check_races)
    submit(stream, {Work{nullptr, nullptr, work.name, 0, work.accesses}, Engine::none});
}

void SimDevice::set_tick(Stream& stream, const TickNumbers& numbers) {
  mr_device_tick* const tick = &own(stream).own_tick;
  submit(stream, {Kernel{[=] { *tick = as_kernels_read(numbers); }}, Engine::none});
}

std::function<void()> SimDevice::beginning_of_replay(RecordedCommands& recording, const TickNumbers& numbers,
                                                     std::span<const RecordedList> lists) {
  const uint64_t replay = replays_++;
  return [this, replay, tick = &recording.tick, now = as_kernels_read(numbers),
          at_replay = std::vector<RecordedList>(lists.begin(), lists.end())] {
    if (options_.watcher.takes_ns)
      std::this_thread::sleep_for(std::chrono::nanoseconds(options_.watcher.takes_ns(replay)));
    if (options_.watcher.ends) options_.watcher.ends(replay);
    *tick = now;
    for (const RecordedList& list : at_replay) {
      list.value->header.present = list.present;
      if (!list.present) list.value->as.records.count = 0;
    }
  };
}

void SimDevice::warm_up(Stream&, Recording&) {
  if (options_.watcher.warmed_up) options_.watcher.warmed_up();
}

bool SimDevice::begin_span(Stream&) {
  if (!options_.watcher.span_ns) return false;
  tell("begin");
  span_bodies_ = 0;
  return true;
}

void SimDevice::end_span(Stream&, const Span& span) {
  tell("end");
  span.tell(span.context, options_.watcher.span_ns(span_bodies_));
}

void SimDevice::pause(Stream& stream) {
  tell("hold");
  wait(stream, {&own(stream).let_go, ++own(stream).holds});
}

void SimDevice::resume(Stream& stream) {
  tell("let go");
  own(stream).let_go.store(own(stream).holds, std::memory_order_release);
  moved().notify();
  kick();
}

void SimDevice::watch() {
  if (!options_.watcher.watched) return;
  watched_ = true;
  options_.watcher.watched(replays_);
}

void SimDevice::tell(const std::string& call) const {
  if (options_.watcher.called) options_.watcher.called(call);
}

} // namespace millrace::device
