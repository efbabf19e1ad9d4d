// Moves ticks between the channels of crossings and the link that carries them; see crossing.h.
#include "exec/crossing.h"

#include <algorithm>
#include <mutex>
#include <utility>

#include "exec/channel.h"
#include "exec/live_changes.h"
#include "exec/presence.h"
#include "exec/run.h"
#include "exec/run_state.h"
#include "exec/settle.h"
#include "exec/stream_epochs.h"
#include "exec/window.h"
#include "plan/pace.h"
#include "plan/plan.h"

namespace millrace::exec {

static_assert(kNotMeasured == INT64_MIN, "a parcel says it so");

Departure::Departure(Run& run, const plan::CrossingPlan& crossing)
    : run_(*run.state_), channel_(*run_.planned.channels[crossing.channel]) {
  const std::lock_guard lock(channel_.mutex);
  if (!channel_.carried) channel_.carried = std::make_unique<Histogram>();
}

namespace {

void count_parcel(ChannelRun& channel, const Parcel& parcel) {
  ++channel.parcels;
  for (const ParcelValue& value : parcel.values)
    if (value.value) channel.parcel_bytes += value.value->header.extent_bytes;
}

} // namespace

bool Departure::next(Parcel& parcel) {
  const std::lock_guard lock(channel_.mutex);
  if (channel_.taken == channel_.count) {
    if (!channel_.closed || gave_end_) return false;
    gave_end_ = parcel.end = true;
    parcel.tick = {};
    parcel.tick.epoch = channel_.from->pace->clock->epoch.load();
    parcel.values.clear();
    parcel.changes.clear();
    return true;
  }
  QueuedTick& tick = channel_.at(channel_.taken++);
  tick.taken_ns = run_.now_ns();
  parcel.end = false;
  parcel.tick = tick.info;
  parcel.begun_ns = tick.from_ns;
  parcel.begun_error_ns = tick.from_error_ns;
  parcel.gap = static_cast<uint8_t>(tick.gap);
  parcel.values.resize(tick.slots.size());
  for (size_t v = 0; v < tick.slots.size(); ++v) {
    const Slot& slot = tick.slots[v];
    if (slot.block) memory::learn_count(*slot.block);
    parcel.values[v] = {slot.value, slot.data, static_cast<uint8_t>(slot.cause)};
  }
  take_untold(channel_, tick.info, parcel.changes);
  count_parcel(channel_, parcel);
  return true;
}

void Departure::send_changes_again() { exec::send_changes_again(run_, channel_); }

void Departure::let_go(bool lost) {
  {
    const std::lock_guard lock(channel_.mutex);
    if (channel_.released) return;
    MR_ASSERT(channel_.taken > 0, "only what was taken is let go");
    channel_.lost += lost;
    if (!lost) channel_.carried->add(run_.now_ns() - channel_.at(0).taken_ns);
    for (Slot& slot : channel_.at(0).slots) release(slot);
    channel_.first = (channel_.first + 1) % channel_.ring.size();
    --channel_.count;
    --channel_.taken;
  }
  run_.notify(*channel_.from->pace);
}

uint64_t Departure::made() const {
  const std::lock_guard lock(channel_.mutex);
  return channel_.pushed + (channel_.closed ? 1 : 0);
}

bool Departure::is_held_up() const {
  const std::lock_guard lock(channel_.mutex);
  return channel_.taken < channel_.count || channel_.full();
}

namespace {

void set_away(RunState& run, ChannelRun& channel, bool away) {
  {
    const std::lock_guard lock(channel.mutex);
    channel.away = away;
  }
  run.notify(*(channel.from ? channel.from : channel.to)->pace);
}

} // namespace

void Departure::peer_away(bool away) { set_away(run_, channel_, away); }

int64_t Departure::passed_ns() const {
  const int64_t passed = passed_by(*channel_.from).through_ns; // first: nothing older is let in later
  const std::lock_guard lock(channel_.mutex);
  return channel_.taken < channel_.count ? channel_.at(channel_.taken).info.media_time_ns - 1 : passed;
}

bool Departure::is_stranded() const {
  if (!exec::is_stranded(*channel_.from)) return false; // first: nothing is let in later
  const std::lock_guard lock(channel_.mutex);
  return !channel_.closed && channel_.taken == channel_.count;
}

Arrival::Arrival(Run& run, const plan::CrossingPlan& crossing)
    : run_(*run.state_), channel_(*run_.planned.channels[crossing.channel]) {
  const PaceRun& pace = *channel_.to->pace;
  const auto feed =
      std::find_if(pace.feeds.begin(), pace.feeds.end(), [&](const FeedRun& one) { return one.channel == &channel_; });
  for (size_t v = 0; v < channel_.current.slots.size(); ++v)
    rings_.push_back(pace.entry->outputs[feed->first + v]->ring);
  blocks_.resize(rings_.size());
}

Arrival::~Arrival() {
  for (memory::Block* block : blocks_)
    if (block) memory::release(block);
}

ParcelRoom Arrival::room(uint32_t value) {
  memory::Block*& block = blocks_[value];
  if (!block) block = &rings_[value]->take(0);
  return {block->record, block->data, rings_[value]->capacity()};
}

void Arrival::arrive(const Parcel& parcel) {
  if (ClockRun& clock = *channel_.to->pace->clock; parcel.end && parcel.tick.epoch > clock.epoch.load())
    record_epoch(run_, clock, parcel.tick.epoch);
  if (!parcel.changes.empty()) take_in_changes(run_, channel_.to->pace->plan->clock, parcel);
  {
    const std::lock_guard lock(channel_.mutex);
    if (channel_.released) return; // blocks that were asked for stay those of the next parcel
    if (parcel.end) {
      channel_.closed = true;
    } else {
      MR_ASSERT(!channel_.full(), "no more parcels come than the credit allows");
      QueuedTick& tick = channel_.at(channel_.count++);
      ++channel_.pushed;
      count_parcel(channel_, parcel);
      channel_.lost += parcel.lost;
      tick.info = parcel.tick;
      tick.from_ns = parcel.begun_ns;
      tick.from_error_ns = parcel.begun_error_ns;
      tick.gap = static_cast<Cause>(parcel.gap);
      for (size_t v = 0; v < tick.slots.size(); ++v) {
        const bool there = parcel.values[v].value != nullptr;
        tick.slots[v] =
            there ? value_in(*std::exchange(blocks_[v], nullptr)) : nothing(static_cast<Cause>(parcel.values[v].cause));
      }
    }
  }
  run_.notify(*channel_.to->pace);
}

void Arrival::away(bool away) { set_away(run_, channel_, away); }

void Arrival::stranded(bool is_stranded) {
  {
    const std::lock_guard lock(channel_.mutex);
    channel_.stranded = is_stranded;
  }
  run_.notify(*channel_.to->pace);
}

void Arrival::passed(int64_t media_ns) {
  {
    const std::lock_guard lock(channel_.mutex);
    channel_.passed_ns = std::max(channel_.passed_ns, media_ns);
  }
  run_.notify(*channel_.to->pace);
}

uint64_t Arrival::credit() const {
  const std::lock_guard lock(channel_.mutex);
  return channel_.passed_on + channel_.plan->depth;
}

} // namespace millrace::exec
