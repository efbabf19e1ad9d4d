// The two clocks that implement Timeline: the machine's own, and the one that jumps from event to event.
#include "device/timeline.h"

#include <algorithm>
#include <chrono>
#include <limits>
#include <utility>

namespace millrace::device {

int64_t MonotonicTime::now_ns() const {
  const auto since_boot = std::chrono::steady_clock::now().time_since_epoch();
  return std::chrono::duration_cast<std::chrono::nanoseconds>(since_boot).count();
}

void VirtualTime::schedule(int64_t at_ns, std::function<void()> event) {
  events_.push({std::max(at_ns, now_ns_), order_++, std::move(event)});
}

int64_t VirtualTime::next_ns() const {
  return events_.empty() ? std::numeric_limits<int64_t>::max() : events_.top().at_ns;
}

bool VirtualTime::step() {
  if (events_.empty()) return false;
  // Taken out before it runs, because an event schedules others and may step.
  std::function<void()> run = std::move(const_cast<Event&>(events_.top()).run);
  now_ns_ = events_.top().at_ns;
  events_.pop();
  run();
  for (const Watcher& watcher : watchers_) watcher.look();
  return true;
}

void VirtualTime::watch(const void* owner, std::function<void()> look) {
  watchers_.push_back({owner, std::move(look)});
}

void VirtualTime::unwatch(const void* owner) {
  std::erase_if(watchers_, [owner](const Watcher& watcher) { return watcher.owner == owner; });
}

} // namespace millrace::device
