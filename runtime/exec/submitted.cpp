// Keeps what was submitted to a device and is not over, so that it can be named if the device fails (semantics.md 4.9).
#include <thread>

#include "exec/group_waits.h"
#include "exec/region.h"
#include "exec/run_state.h"

namespace millrace::exec {

namespace {

// Work that ends by itself does so within this time; work that does not is taken for stuck.
constexpr std::chrono::milliseconds kEndsWithin{500};

// "blur (image.blur)", "the region of blur and edges", "copy video → cuda:0".
std::string words_of_work(const RunState& run, const StepRun& step) {
  const uint32_t handler = step.plan->handler();
  if (handler == plan::kNone) return name_with_stream(step);
  if (!step.on.region || step.on.region->steps.size() < 2)
    return name_with_stream(step) + " (" + run.epoch.plan.handlers[handler].type + ")";
  std::string names;
  const auto& steps = step.on.region->steps;
  for (size_t s = 0; s < steps.size(); ++s)
    names += (s == 0 ? "" : s + 1 < steps.size() ? ", " : " and ") + name_with_stream(*steps[s]);
  return "the region of " + names;
}

} // namespace

void RunState::note_submitted(const StepRun& step, uint64_t ordinal, const device::Fence& fence) {
  Submissions& submissions = *submissions_[step.plan->domain];
  Submission& latest = submissions.latest[submissions.count++ % kSubmissions];
  latest.tick.store(step.pace->info(ordinal).index, std::memory_order_relaxed);
  latest.sequence.store(fence.sequence, std::memory_order_relaxed);
  latest.step.store(&step, std::memory_order_release);
}

void RunState::await_submitted(const StepRun& step, uint64_t ordinal, const device::Fence& fence) {
  if (!options.sync_devices || is_virtual) return;
  device::Device& device = *step.on.device;
  const int64_t begin = monotonic.now_ns();
  while (!fence.done()) {
    device.watch(); // a device whose words move by themselves looks for errors only when asked to
    if (!device.force(fence)) std::this_thread::yield();
    if (monotonic.now_ns() - begin > options.device_patience_ns)
      device.declare_lost(words_of_work(*this, step) + " did not finish tick " +
                          std::to_string(step.pace->info(ordinal).index));
  }
  if (device.failed()) watch_device(step.plan->domain);
}

// Streams run in order, so the first submission that a stream has not reached was under way. Bodies are preferred to
// copies, which may only have waited for them.
std::string RunState::words_under_way(uint32_t d) const {
  const StepRun* found = nullptr;
  uint64_t found_sequence = 0, found_tick = 0;
  for (const Submission& submission : submissions_[d]->latest) {
    const StepRun* const step = submission.step.load(std::memory_order_acquire);
    const uint64_t sequence = submission.sequence.load(std::memory_order_relaxed);
    if (!step || sequence <= devices[d]->reached(*step->on.stream)) continue;
    const bool copies = step->plan->is<plan::CopyStep>(), found_copies = found && found->plan->is<plan::CopyStep>();
    const bool better = !found || (!copies && found_copies) || (copies == found_copies && sequence < found_sequence);
    if (!better) continue;
    found = step;
    found_sequence = sequence;
    found_tick = submission.tick.load(std::memory_order_relaxed);
  }
  return found ? "; under way was " + words_of_work(*this, *found) + " (tick " + std::to_string(found_tick) + ")" : "";
}

bool RunState::has_stuck_devices() const {
  const auto stuck = [&] {
    return std::any_of(devices.begin(), devices.end(), [](const device::Device* device) { return device->is_stuck(); });
  };
  const auto until = std::chrono::steady_clock::now() + kEndsWithin;
  while (stuck() && std::chrono::steady_clock::now() < until) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  return stuck();
}

void RunState::watch_devices() {
  for (uint32_t d = 1; d < devices.size(); ++d) watch_device(d);
}

void RunState::watch_device(uint32_t d) {
  const device::DeviceStatus status = devices[d]->status();
  if (status.ok()) return;
  fail(Error{code::device_lost,
             epoch.plan.domains[d].name + " is lost: " + status.sentence + words_under_way(d),
             {},
             {},
             "",
             ""},
       0, UINT64_MAX);
}

} // namespace millrace::exec
