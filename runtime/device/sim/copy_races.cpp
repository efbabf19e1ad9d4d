// Happens-before between the copies of one device, by vector clocks (Fidge, Mattern 1988) over its streams.
#include "device/sim/copy_races.h"

#include <algorithm>

namespace millrace::device {

void CopyRaces::add_stream(const Stream& stream) {
  lanes_.push_back({&stream, {{0, {}}}});
  for (Lane& lane : lanes_) {
    for (Snapshot& snapshot : lane.snapshots) snapshot.before.resize(lanes_.size(), 0);
  }
}

void CopyRaces::on_wait(const Stream& stream, const Fence& fence) {
  Lane& waiter = lanes_[stream.index];
  Clock clock = waiter.snapshots.back().before;
  const auto source = std::find_if(lanes_.begin(), lanes_.end(),
                                   [&](const Lane& lane) { return &lane.stream->completed == fence.word; });
  if (source == lanes_.end()) {
    for (size_t i = 0; i < lanes_.size(); ++i) clock[i] = lanes_[i].stream->issued;
  } else {
    const auto later = std::find_if(source->snapshots.begin() + 1, source->snapshots.end(),
                                    [&](const Snapshot& snapshot) { return snapshot.sequence > fence.sequence; });
    const Clock& before = (later - 1)->before;
    for (size_t i = 0; i < clock.size(); ++i) clock[i] = std::max(clock[i], before[i]);
    uint64_t& reached = clock[source->stream->index];
    reached = std::max(reached, fence.sequence);
  }
  // Only the newest snapshot that is over still counts for fences of the past.
  const uint64_t completed = stream.completed.load(std::memory_order_acquire);
  while (waiter.snapshots.size() > 1 && waiter.snapshots[1].sequence <= completed) {
    waiter.snapshots.erase(waiter.snapshots.begin());
  }
  waiter.snapshots.push_back({stream.issued, std::move(clock)});
}

bool CopyRaces::over(const Access& access) const {
  return lanes_[access.stream].stream->completed.load(std::memory_order_acquire) >= access.sequence;
}

bool CopyRaces::races(const Stream& stream, const std::byte* address, uint64_t bytes, bool writes) {
  std::erase_if(accesses_, [this](const Access& access) { return over(access); });
  const uintptr_t begin = reinterpret_cast<uintptr_t>(address);
  const Access now{stream.index, stream.issued, begin, begin + bytes, writes};
  const Clock& before = lanes_[stream.index].snapshots.back().before;
  const bool found = std::any_of(accesses_.begin(), accesses_.end(), [&](const Access& earlier) {
    const bool ordered = earlier.stream == now.stream || before[earlier.stream] >= earlier.sequence;
    const bool overlap = earlier.begin < now.end && now.begin < earlier.end;
    return !ordered && overlap && (earlier.writes || now.writes);
  });
  accesses_.push_back(now);
  return found;
}

} // namespace millrace::device
