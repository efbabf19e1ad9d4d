// Translates parcels between a run and a link; see link_ends.h.
#include "embed/link_ends.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "exec/cause.h"
#include "observe/error.h"
#include "observe/error_codes.h"
#include "plan/draft.h"
#include "plan/memory.h"
#include "plan/pace.h"
#include "plan/step.h"

namespace millrace::embed {

static_assert(net::kCauseError == static_cast<net::Cause>(exec::Cause::error));
static_assert(net::kCauseLink == static_cast<net::Cause>(exec::Cause::link));
static_assert(net::kCauseAway == static_cast<net::Cause>(exec::Cause::away));
static_assert(net::kCauseLost == static_cast<net::Cause>(exec::Cause::lost));
static_assert(static_cast<uint32_t>(exec::Cause::count) <= net::kCausesMax);
static_assert(exec::kLiveChangesMax <= net::kChangesMax && exec::kLiveTextBytesMax <= net::kChangeTextBytesMax &&
              exec::kLiveNameBytesMax <= net::kChangeNameBytesMax);

// ---- parcels -------------------------------------------------------------------------------------------------------

namespace {

// Never less than it is.
uint32_t us_of_error(int64_t ns) {
  return static_cast<uint32_t>(std::min<int64_t>((ns + 999) / 1000, std::numeric_limits<uint32_t>::max()));
}

} // namespace

bool LinkDeparture::next(net::Parcel& parcel) {
  if (!departure_.next(parcel_)) return false;
  parcel.end = parcel_.end;
  // An end stands after the last tick.
  if (!parcel_.end)
    parcel.tick = parcel_.tick;
  else if (has_last_)
    parcel.tick = {last_.clock, 0, last_.index + 1, last_.media_time_ns + 1, 0, 0};
  parcel.tick.epoch = parcel_.tick.epoch;
  parcel.begun_ns = parcel_.end ? INT64_MIN : parcel_.begun_ns;
  parcel.begun_error_us = parcel_.end ? 0 : us_of_error(parcel_.begun_error_ns);
  parcel.previous = has_last_ ? last_.index : net::kNoIndex;        // indices go on from one epoch to the next
  const uint64_t missing = parcel.tick.index - parcel.previous - 1; // also right for kNoIndex, which is -1
  parcel.gap_count = missing > 0 ? 1 : 0;
  parcel.gaps[0] = {parcel_.gap, missing};
  parcel.value_count = static_cast<uint8_t>(parcel_.values.size());
  for (size_t v = 0; v < parcel_.values.size(); ++v) {
    const exec::ParcelValue& value = parcel_.values[v];
    parcel.values[v] = {value.value, value.data, value.cause};
  }
  for (exec::LiveChange& change : parcel_.changes)
    parcel.changes.push_back({change.epoch, change.index, change.number, std::move(change.handler),
                              std::move(change.param), std::move(change.text)});
  last_ = parcel.tick;
  has_last_ = true;
  return true;
}

// A link acknowledges in order, and gives up what it holds in order.
void LinkDeparture::let_go(const net::Parcel&, bool acknowledged) { departure_.let_go(!acknowledged); }

net::Room LinkArrival::room(uint32_t value) {
  const exec::ParcelRoom room = arrival_.room(value);
  return {room.value, room.data, room.capacity};
}

void LinkArrival::arrive(const net::Parcel& parcel) {
  parcel_.tick = parcel.tick;
  parcel_.begun_ns = parcel.begun_ns;
  parcel_.begun_error_ns = int64_t{parcel.begun_error_us} * 1000;
  parcel_.end = parcel.end;
  parcel_.lost = parcel.lost;
  const net::Cause told = parcel.gap_count > 0 ? parcel.gaps[0].cause : net::Cause{};
  parcel_.gap = parcel.lost > 0 ? net::kCauseLost : told;
  parcel_.values.resize(parcel.value_count);
  for (size_t v = 0; v < parcel_.values.size(); ++v) {
    const net::Value& value = parcel.values[v];
    parcel_.values[v] = {value.value, value.data, value.cause};
  }
  parcel_.changes.clear();
  for (const net::Change& change : parcel.changes)
    parcel_.changes.push_back({change.epoch, change.index, change.number, change.handler, change.param, change.text});
  arrival_.arrive(parcel_);
}

// ---- plans ---------------------------------------------------------------------------------------------------------

namespace {

// The outputs of the values of a crossing, as indices into Plan::outputs.
std::vector<uint32_t> outputs_of(const plan::Plan& plan, const plan::CrossingPlan& crossing) {
  const plan::Channel& channel = plan.channels[crossing.channel];
  std::vector<uint32_t> outputs;
  if (crossing.departs) {
    for (const plan::StepInput& input : plan.steps[channel.from].inputs) outputs.push_back(input.output);
    return outputs;
  }
  const plan::Step& entry = plan.steps[channel.to];
  const std::vector<plan::Feed>& feeds = plan.paces[entry.pace].feeds;
  const auto feed =
      std::find_if(feeds.begin(), feeds.end(), [&](const plan::Feed& one) { return one.channel == crossing.channel; });
  const auto first = entry.outputs.begin() + feed->first;
  outputs.assign(first, first + feed->count);
  return outputs;
}

// `things`: "values".
void require_at_most(uint64_t most, uint64_t count, const std::string& crossing, const std::string& peer,
                     const char* things) {
  if (count <= most) return;
  throw Failure(code::crossing_too_large, "crossing " + crossing + " with node " + peer + " has " +
                                              std::to_string(count) + " " + things + ", and a link carries " +
                                              std::to_string(most));
}

void require_fits(const net::CrossingPlan& plan, const std::string& peer) {
  const auto check = [&](uint64_t most, uint64_t count, const char* things) {
    require_at_most(most, count, plan.name, peer, things);
  };
  check(net::kCrossingNameBytesMax, plan.name.size(), "characters in its name");
  check(net::kDepthMax, plan.depth, "ticks under way");
  check(net::kValuesMax, plan.formats.size(), "values");
  for (const uint64_t bytes : plan.capacities) check(net::kValueBytesMax, bytes, "bytes in a value");
}

net::CrossingPlan on_link(const plan::Plan& plan, const plan::CrossingPlan& crossing, uint16_t number,
                          uint32_t data_lanes) {
  net::CrossingPlan made;
  made.name = crossing.name;
  made.number = number;
  made.lane = 1 + number % data_lanes;
  made.depth = plan.channels[crossing.channel].depth;
  made.delivery = crossing.delivery == graph::Delivery::live ? net::Delivery::live : net::Delivery::reliable;
  const plan::Clock& clock = plan.clocks[plan.paces[crossing.from].clock];
  made.leaves_out = clock.realtime();
  made.begins_anew = clock.comes_again();
  for (const uint32_t output : outputs_of(plan, crossing)) {
    const mr_format& format = plan.outputs[output].format;
    made.formats.push_back(format);
    made.capacities.push_back(plan::capacity_of(format)); // the reader's ring has the same
  }
  return made;
}

} // namespace

std::vector<net::CrossingPlan> link_crossings(const plan::Plan& plan, const std::string& peer, uint32_t data_lanes) {
  std::vector<net::CrossingPlan> crossings;
  for (const plan::CrossingPlan& crossing : plan.crossings) {
    if (crossing.node != peer) continue;
    require_at_most(net::kCrossingsMax, crossings.size() + 1, crossing.name, peer, "crossings up to it");
    crossings.push_back(on_link(plan, crossing, static_cast<uint16_t>(crossings.size()), data_lanes));
    require_fits(crossings.back(), peer);
  }
  return crossings;
}

std::vector<LinkEnd> make_link_ends(exec::Run& run, const plan::Plan& plan, const std::string& peer,
                                    uint32_t data_lanes) {
  std::vector<net::CrossingPlan> crossings = link_crossings(plan, peer, data_lanes);
  std::vector<LinkEnd> ends;
  for (const plan::CrossingPlan& crossing : plan.crossings) {
    if (crossing.node != peer) continue;
    LinkEnd end;
    end.plan = std::move(crossings[ends.size()]);
    end.waits = !plan.clocks[plan.paces[crossing.from].clock].realtime();
    if (crossing.departs)
      end.departure = std::make_unique<LinkDeparture>(run, crossing);
    else
      end.arrival = std::make_unique<LinkArrival>(run, crossing);
    ends.push_back(std::move(end));
  }
  return ends;
}

} // namespace millrace::embed
