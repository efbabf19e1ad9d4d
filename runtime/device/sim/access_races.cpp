// Tracks happens-before between accesses of one device's commands, by vector clocks (Fidge, Mattern 1988) over its
// streams.
#include "device/sim/access_races.h"

#include <algorithm>

namespace millrace::device {

namespace {

std::string words(const AccessRaces::Party& party, uint32_t stream) {
  if (party.is_handler) return party.name;
  return std::string("the ") + party.name + " on stream " + std::to_string(stream);
}

const char* verb(bool writes) { return writes ? " writes" : " reads"; }

} // namespace

void AccessRaces::add_stream(const Stream& stream) {
  lanes_.push_back({&stream, {{0, {}}}});
  for (Lane& lane : lanes_) {
    for (Snapshot& snapshot : lane.snapshots) snapshot.before.resize(lanes_.size(), 0);
  }
}

void AccessRaces::on_wait(const Stream& stream, const Fence& fence) {
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
  // Among the snapshots that are over, only the newest is still needed, for fences of the past.
  const uint64_t completed = stream.completed.load(std::memory_order_acquire);
  while (waiter.snapshots.size() > 1 && waiter.snapshots[1].sequence <= completed) {
    waiter.snapshots.erase(waiter.snapshots.begin());
  }
  waiter.snapshots.push_back({stream.issued, std::move(clock)});
}

bool AccessRaces::over(const Entry& entry) const {
  return lanes_[entry.stream].stream->completed.load(std::memory_order_acquire) >= entry.sequence;
}

std::string AccessRaces::race(const Stream& stream, const Party& party, const Access& access) {
  std::erase_if(entries_, [this](const Entry& entry) { return over(entry); });
  const Entry now{party, stream.index, stream.issued, access.address, access.address + access.bytes, access.writes};
  const Clock& before = lanes_[stream.index].snapshots.back().before;
  const auto found = std::find_if(entries_.begin(), entries_.end(), [&](const Entry& earlier) {
    const bool ordered = earlier.stream == now.stream || before[earlier.stream] >= earlier.sequence;
    const bool overlap = earlier.begin < now.end && now.begin < earlier.end;
    return !ordered && overlap && (earlier.writes || now.writes);
  });
  std::string sentence;
  if (found != entries_.end())
    sentence = words(party, now.stream) + verb(now.writes) + " what " + words(found->party, found->stream) + " still" +
               verb(found->writes) + ": nothing orders the two";
  entries_.push_back(now);
  return sentence;
}

} // namespace millrace::device
