// The simulated device in virtual time: no threads, and every start and end is at an exact nanosecond.
#include <algorithm>
#include <array>
#include <deque>

#include "device/sim/sim_device.h"
#include "device/timeline.h"

namespace millrace::device {
namespace {

class VirtualSim final : public SimDevice {
 public:
  explicit VirtualSim(const SimOptions& options) : SimDevice(options), time_(*options.time) {
    time_.watch(this, [this] { start_what_can(); });
  }

  ~VirtualSim() override { time_.unwatch(this); }

  void kick() override { start_what_can(); }

  bool force(const Fence& fence) override {
    start_what_can();
    while (!fence.done() && time_.step()) {
    }
    return fence.done();
  }

  bool force_any() override {
    start_what_can();
    return time_.step();
  }

 private:
  struct Lane {
    QueuedStream* stream;
    bool running = false; // its head has begun
    uint64_t turn = 0;    // the order in which heads became ready; 0: not ready
  };

  void on_stream(QueuedStream& stream) override { lanes_.push_back({&stream}); }
  void on_command(QueuedStream&) override { start_what_can(); }
  void on_poison() override { start_what_can(); }

  // Starts commands on free engines; an engine takes the stream that has been ready for longest.
  void start_what_can() {
    for (Lane& lane : lanes_) {
      const Command* head = lane.running || lane.turn != 0 ? nullptr : lane.stream->head();
      if (head && ready(*head)) lane.turn = ++turns_;
    }
    while (Lane* lane = next_to_start()) start(*lane);
  }

  Lane* next_to_start() {
    Lane* next = nullptr;
    for (Lane& lane : lanes_) {
      if (lane.turn == 0 || occupied_[engine_of(lane)]) continue;
      if (!next || lane.turn < next->turn) next = &lane;
    }
    return next;
  }

  static size_t engine_of(const Lane& lane) { return static_cast<size_t>(lane.stream->head()->engine); }

  void start(Lane& lane) {
    const size_t engine = engine_of(lane);
    const auto others = static_cast<uint32_t>(std::count(occupied_.begin(), occupied_.end(), true));
    occupied_[engine] = engine != static_cast<size_t>(Engine::none);
    lane.turn = 0;
    lane.running = true;
    const int64_t cost_ns = poisoned() ? 0 : slowed_ns(lane.stream->head()->cost_ns, others);
    // The timeline may outlive the device.
    time_.schedule(time_.now_ns() + cost_ns, [this, &lane, engine, alive = std::weak_ptr<int>(alive_)] {
      if (alive.expired()) return;
      occupied_[engine] = false;
      execute(*lane.stream->head());
      lane.running = false;
      lane.stream->pop(rings());
    });
  }

  VirtualTime& time_;
  std::deque<Lane> lanes_;
  std::array<bool, kEngineCount> occupied_{};
  uint64_t turns_ = 0;
  std::shared_ptr<int> alive_ = std::make_shared<int>(0);
};

} // namespace

std::unique_ptr<Device> make_virtual_sim(const SimOptions& options) { return std::make_unique<VirtualSim>(options); }

} // namespace millrace::device
