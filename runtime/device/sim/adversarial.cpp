// The simulated device that does nothing until a wait forces it, and then runs commands in an unhelpful order. Code
// that works on it must wait for everything that it needs.
#include <mutex>
#include <random>
#include <vector>

#include "device/sim/sim_device.h"

namespace millrace::device {
namespace {

class AdversarialSim final : public SimDevice {
 public:
  explicit AdversarialSim(const SimOptions& options) : SimDevice(options), random_(options.seed) {}

  bool force(const Fence& fence) override {
    while (!fence.done()) {
      if (!force_any()) return fence.done(); // another thread may have run it
    }
    return true;
  }

  bool force_any() override {
    const std::lock_guard lock(mutex_);
    ready_.clear();
    for (QueuedStream* stream : streams_) {
      const Command* head = stream->head();
      if (head && ready(*head)) ready_.push_back(stream);
    }
    if (ready_.empty()) return false;
    QueuedStream& stream = *ready_[random_() % ready_.size()];
    execute(*stream.head());
    stream.pop(rings());
    return true;
  }

 private:
  void on_stream(QueuedStream& stream) override {
    const std::lock_guard lock(mutex_);
    streams_.push_back(&stream);
    ready_.reserve(streams_.size());
  }
  void on_command(QueuedStream&) override {}
  void on_poison() override {}

  std::mutex mutex_; // held by threads that force; submitting does not take it
  std::mt19937_64 random_;
  std::vector<QueuedStream*> streams_;
  std::vector<QueuedStream*> ready_;
};

} // namespace

std::unique_ptr<Device> make_adversarial_sim(const SimOptions& options) {
  return std::make_unique<AdversarialSim>(options);
}

} // namespace millrace::device
