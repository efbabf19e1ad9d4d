// The simulated device whose streams are threads: real concurrency, for tests under a thread sanitizer and for running
// pipelines by hand.
#include <chrono>
#include <deque>
#include <mutex>
#include <thread>

#include "device/event_count.h"
#include "device/sim/sim_device.h"
#include "observe/start_thread.h"

namespace millrace::device {
namespace {

// The interval at which a waiting stream checks a word that comes without a notification (another device's, a host
// thread's). It is far below a tick, and 5,000 checks a second cost a core next to nothing.
constexpr int64_t kUnrungWord_ns = 200'000;
// Checks before the first sleep. A command of another stream is often over within that time. The thread yields between
// checks, because a machine may have fewer cores than streams.
constexpr int kLooksBeforeSleep = 32;

class ThreadedSim final : public SimDevice {
 public:
  explicit ThreadedSim(const SimOptions& options) : SimDevice(options) {}

  ~ThreadedSim() override {
    closing_ = true;
    give_up();
    ring_all();
    for (Worker& worker : workers_)
      if (worker.thread.joinable()) worker.thread.join(); // otherwise it could not be started
  }

  void kick() override { moved().notify(); }

 private:
  struct Worker {
    EventCount submitted;
    std::thread thread;
  };

  void on_stream(QueuedStream& stream) override {
    const std::lock_guard lock(workers_mutex_);
    Worker& worker = workers_.emplace_back();
    worker.thread = start_thread("the thread of a stream of " + domain(),
                                 [this, &stream, &worker] { work(stream, worker.submitted); });
  }

  // Streams are numbered in the order of their workers; only the submitting thread adds any.
  void on_command(QueuedStream& stream) override { workers_[stream.index].submitted.notify(); }

  void on_poison() override { ring_all(); }

  void ring_all() {
    const std::lock_guard lock(workers_mutex_);
    for (Worker& worker : workers_) worker.submitted.notify();
    moved().notify();
  }

  void work(QueuedStream& stream, EventCount& submitted) {
    while (true) {
      const uint32_t heard = submitted.epoch();
      const Command* command = stream.head();
      if (!command) {
        if (closing_) return;
        submitted.wait(heard);
        continue;
      }
      until_ready(*command);
      execute_in_time(*command);
      stream.pop(rings());
      moved().notify();
    }
  }

  void until_ready(const Command& command) {
    for (int look = 0; look < kLooksBeforeSleep && !ready(command); ++look) std::this_thread::yield();
    while (true) {
      const uint32_t heard = moved().epoch();
      if (ready(command)) return;
      moved().wait(heard, kUnrungWord_ns);
    }
  }

  // Copies of one direction take turns at their engine; bodies take as long as they really run.
  void execute_in_time(const Command& command) {
    const bool paced = command.cost_ns > 0 && command.engine != Engine::compute && !poisoned();
    if (!paced) return execute(command);
    const std::lock_guard lock(engines_[static_cast<size_t>(command.engine)]);
    const int64_t cost_ns = slowed_ns(command.cost_ns, copying_++);
    const auto end = std::chrono::steady_clock::now() + std::chrono::nanoseconds(cost_ns);
    execute(command);
    std::this_thread::sleep_until(end);
    --copying_;
  }

  std::atomic<bool> closing_{false};
  std::atomic<uint32_t> copying_{0}; // engines that copy at this moment
  std::array<std::mutex, kEngineCount> engines_;
  std::mutex workers_mutex_; // poison may come from a worker while a stream is added
  std::deque<Worker> workers_;
};

} // namespace

std::unique_ptr<Device> make_threaded_sim(const SimOptions& options) { return std::make_unique<ThreadedSim>(options); }

} // namespace millrace::device
