// Computes windows, slots and rings: the ticks in flight, and the lifetime of every value as an annotated sum for its
// ring (semantics.md 1.5 and 3.2).
#include "plan/lay_out.h"

#include <algorithm>
#include <bit>
#include <map>
#include <numeric>
#include <set>

#include "memory/ring.h"
#include "observe/error.h"
#include "plan/clock_circles.h"
#include "plan/draft.h"
#include "plan/far_feeds.h"
#include "plan/group_plan.h"
#include "plan/memory.h"
#include "plan/order.h"
#include "plan/windows.h"

namespace millrace::plan {

namespace {

class Layout {
 public:
  Layout(Draft& draft, bool roomy)
      : draft_(draft), plan_(draft.plan), roomy_(roomy), circles_(draft.plan), waits_(circles_.waits()) {}

  void run() {
    for (const Clock& clock : plan_.clocks) fixed_.push_back(clock.in_flight);
    for (uint32_t p = 0; p < plan_.paces.size(); ++p) set_window(p);
    for (Step& step : plan_.steps)
      for (const StepInput& input : step.inputs)
        if (input.output != kNone) {
          Output& output = plan_.outputs[input.output];
          output.retain = std::max(output.retain, input.delay);
        }
    hold_feeds(plan_);
    for (Channel& channel : plan_.channels) set_capacity(channel);
    retain_shared();
    find_roots();
    for (uint32_t o = 0; o < plan_.outputs.size(); ++o)
      if (plan_.outputs[o].step != kNone && plan_.outputs[o].owns) add_ring(o);
    for (uint32_t o = 0; o < plan_.outputs.size(); ++o) share_ring(o);
    level_regions();
    for (Pace& pace : plan_.paces) set_slots(pace);
    sum_memory();
  }

 private:
  // A buffer lives as long as the last of the outputs that share it.
  void retain_shared() {
    for (size_t s = plan_.steps.size(); s-- > 0;) {
      for (uint32_t o : plan_.steps[s].outputs) {
        const Output& output = plan_.outputs[o];
        for (int32_t input : {output.forwards, output.owns ? -1 : output.in_place}) {
          if (input < 0) continue;
          const StepInput& from = plan_.steps[s].inputs[static_cast<size_t>(input)];
          if (from.output != kNone)
            plan_.outputs[from.output].retain = std::max(plan_.outputs[from.output].retain, output.retain);
        }
      }
    }
  }

  void set_window(uint32_t p) {
    Pace& pace = plan_.paces[p];
    const uint32_t pending = pending_in_a_row(plan_, p);
    uint32_t in_flight = in_flight_of(plan_, p), room = in_flight;
    if (roomy_ && guesses(plan_, p)) {
      const uint32_t most = handlers_in_a_row(plan_, p);
      room = std::max(in_flight, has_lanes(plan_, p) ? most : std::min(most, kInFlightMax));
    }
    Clock& clock = plan_.clocks[pace.clock];
    if (pace.kind == PaceKind::batch) {
      const GroupPlan& group = group_of(plan_, pace.clock);
      pace.rows = group.items_max;
      pace.window = pace.room = pace.rows * group.in_flight;
      return;
    }
    if (pace.kind == PaceKind::clock) {
      in_flight = clock.in_flight > 0 ? clock.in_flight : std::max(in_flight, clock.held_ticks);
      room = clock.in_flight > 0 ? in_flight : std::max(room, in_flight);
      clock.in_flight = in_flight;
      clock.pending = pending;
    } else if (pace.kind == PaceKind::far) {
      const uint32_t fixed = fixed_[pace.clock];
      in_flight = fixed > 0 ? fixed : std::max(in_flight, clock.held_ticks);
      room = fixed > 0 ? fixed : std::max(room, in_flight);
    } else if (pace.gate != kNone) { // else another node has it
      const Channel& gate = plan_.channels[plan_.steps[pace.gate].channel()];
      if (gate.busy) in_flight = room = 1; // one tick is its bound
      if (const uint32_t fixed = fixed_[pace.clock]; gate.on_firing && fixed > 0)
        in_flight = room = std::min(in_flight, fixed);
      if (meets_a_circle(p)) in_flight = std::max(in_flight, clock.held_ticks); // another clock may hold its ticks
      room = std::max(room, in_flight);
    }
    pace.window = in_flight + pending;
    pace.room = room + pending;
    const auto owing = std::count_if(plan_.steps.begin(), plan_.steps.end(),
                                     [&](const Step& step) { return step.pace == p && step.owes() > 0; });
    // Handlers in a row share the room, so that one is drained before the window is full even if each is at its bound.
    // On a circle of clocks that room is for the ticks that other clocks hold.
    const bool has_room = clock.held_ns == 0 && !reads_owed_aside(plan_, pace.clock) && !is_spread(pace.clock);
    if (owing > 0 && has_room) pace.gap = 1 + (in_flight - 1) / static_cast<uint32_t>(owing);
  }

  // True if ticks of the clock go to far paces, whose levels are for what handlers owe without such room.
  bool is_spread(uint32_t clock) const {
    return std::any_of(plan_.paces.begin(), plan_.paces.end(),
                       [&](const Pace& pace) { return pace.clock == clock && pace.kind == PaceKind::far; });
  }

  // True if another clock of a circle reads a step of the pace, or a step of the pace waits for another clock of a
  // circle, also by way of other steps of its own clock.
  bool meets_a_circle(uint32_t pace) const {
    for (uint32_t s = 0; s < plan_.steps.size(); ++s)
      if (plan_.steps[s].pace == pace && waits_[s] != 0) return true;
    return std::any_of(plan_.channels.begin(), plan_.channels.end(), [&](const Channel& channel) {
      return circles_.joins(channel) && plan_.steps[channel.from].pace == pace; // a whole channel
    });
  }

  void set_capacity(Channel& channel) {
    if (channel.far) return;
    const Pace& from = plan_.paces[plan_.steps[channel.from].pace];
    const Pace& to = plan_.paces[plan_.steps[channel.to].pace];
    switch (channel.kind) {
      case ChannelKind::gate: channel.capacity = channel.busy ? to.room : entries_of(channel); break;
      case ChannelKind::latest:
        // Within a clock the writer may be ahead by a window and by the ticks owed before the reader's gate. Between
        // clocks two suffice, one that is read and one beyond it.
        channel.capacity =
            channel.same_clock ? std::max(from.room, to.room + base_level(plan_, to)) + channel.lag + 1 : 2;
        break;
      case ChannelKind::queue: channel.capacity = channel.depth; break;
      case ChannelKind::align: channel.capacity = std::max(2u, from.room) + 2; break;
    }
    const Clock& writer = plan_.clocks[from.clock];
    const bool holds = channel.kind == ChannelKind::latest || channel.kind == ChannelKind::align;
    if (holds && writer.held_ns > 0 && circles_.joins(channel))
      channel.capacity = std::max(channel.capacity, ticks_in(writer.held_ns, writer.rate) + 2);
  }

  // A queue holds values; ticks without a value have as many entries of their own (8.6).
  static uint32_t entries_of(const Channel& gate) { return gate.every_tick ? 2 * gate.depth : gate.depth; }

  // Finds the rings in which a value of each output may live, and the steps that read from each ring. An output's
  // source is mostly earlier in the order, so its roots are known already; a delayed edge takes another pass.
  void find_roots() {
    roots_.resize(plan_.outputs.size());
    readers_.resize(plan_.outputs.size());
    for (bool changed = true; changed;) {
      changed = false;
      for (const Step& step : plan_.steps)
        for (uint32_t o : step.outputs) changed = find_roots_of(step, o) || changed;
    }
    for (const Step& step : plan_.steps)
      for (const StepInput& input : step.inputs)
        if (input.output != kNone)
          for (uint32_t root : roots_[input.output]) readers_[root].push_back({&step, &input});
  }

  // True if it found more than there were before.
  bool find_roots_of(const Step& step, uint32_t o) {
    const Output& output = plan_.outputs[o];
    std::set<uint32_t>& roots = roots_[o];
    const size_t before = roots.size();
    const auto add_those_of = [&](uint32_t from) {
      if (from != kNone && from != o) roots.insert(roots_[from].begin(), roots_[from].end());
    };
    if (output.owns) roots.insert(o);
    add_those_of(output.origin);
    if (step.is<EntryStep>() && plan_.paces[step.pace].kind == PaceKind::batch) // from one stream and from all others
      for (const uint32_t give : group_of(plan_, plan_.paces[step.pace].clock).gives)
        if (give != kNone) add_those_of(plan_.steps[give].inputs[output.port].output);
    if (output.forwards >= 0) add_those_of(step.inputs[static_cast<size_t>(output.forwards)].output);
    if (!output.owns && output.in_place >= 0) add_those_of(step.inputs[static_cast<size_t>(output.in_place)].output);
    return roots.size() > before;
  }

  void hold(Ring& ring, uint32_t count, const std::string& why) {
    ring.length += count;
    ring.dynamic = true;
    ring.reasons.push_back(std::to_string(count) + " " + why);
  }

  void add_ring(uint32_t o) {
    const Output& output = plan_.outputs[o];
    const Step& producer = plan_.steps[output.step];
    Ring ring;
    ring.output = o;
    ring.domain = output.domain;
    ring.pack = output.pack;
    ring.capacity = needs_no_bytes(o) ? 0 : capacity_of(output.format);
    ring.lasting = output.lasting && plan_.on_host(producer.domain);
    if (output.kept) return keep_ring(o, ring);
    const Pace& pace = plan_.paces[producer.pace];
    ring.dense = pace.kind == PaceKind::batch && producer.handler() != kNone && plan_.on_host(producer.domain) &&
                 (draft_.handlers[producer.handler()]
                      .info->ports[draft_.handlers[producer.handler()].output_port[output.port]]
                      .raw.flags &
                  MR_PORT_DENSE);
    ring.length = pace.room;
    ring.reasons.push_back(std::to_string(pace.window) + " in flight");
    if (pace.room > pace.window) ring.reasons.push_back(std::to_string(pace.room - pace.window) + " for another cut");
    uint32_t retain = 0;
    for (const auto& [step, input] : readers_[o]) {
      const Step& reader = *step;
      retain = std::max(retain, input->delay);
      const uint32_t issued = plan_.on_host(reader.domain) ? 0 : plan_.paces[reader.pace].room; // and perhaps not done
      if (input->keeps > 0) hold(ring, input->keeps + 1 + issued, "kept by " + reader.name);
      if (input->repeat_last) hold(ring, 2 + issued, "repeated by " + reader.name);
      if (reader.is<GateStep>() || reader.is<PostStep>()) hold_for_channel(ring, reader);
      if (reader.is<DealStep>()) hold_for_streams(ring, reader, static_cast<uint32_t>(input - reader.inputs.data()));
      const bool is_kept = reader.is<CopyStep>() && plan_.outputs[reader.outputs[0]].kept; // not worth locked pages
      if (!plan_.on_host(reader.domain) && !is_kept)
        ring.pinned = plan_.in_host_memory(ring.domain); // a device copies it or reads it there
    }
    if (retain > 0) {
      ring.length += retain;
      ring.reasons.push_back(std::to_string(retain) + " by delay");
    }
    if (producer.is<SourceStep>()) {
      const bool blocking = plan_.handlers[producer.handler()].waits;
      const mr_facts& facts = draft_.handlers[producer.handler()].facts;
      const Clock& clock = plan_.clocks[plan_.paces[producer.pace].clock];
      if (blocking || (facts.rate_num > 0 && clock.realtime()) || clock.takes_what_is_due(facts))
        hold(ring, kReadAhead + 1, "read ahead by the source");
    }
    if (const CrossingPlan* crossing = arrival_of(plan_, o))
      hold(ring, plan_.channels[crossing->channel].depth + 1, "on their way from " + crossing->node);
    if (output.format.held > 0) hold(ring, output.format.held, "worked in by " + producer.name);
    if (!plan_.on_host(producer.domain)) ring.pinned = plan_.in_host_memory(ring.domain); // a device writes it
    // Locked pages stay, blocks that ticks take in turn are all in use, and small ones are not worth a call.
    ring.lasting = ring.lasting && ring.dynamic && !ring.pinned && ring.capacity >= kPagesGivenBackMin;
    add(o, ring);
  }

  void add(uint32_t o, const Ring& ring) {
    plan_.outputs[o].ring = static_cast<uint32_t>(plan_.rings.size());
    plan_.rings.push_back(ring);
  }

  // A device's copies of a lasting value: ticks read one block, and its successor is copied into the other. A source of
  // one tick gives no successor but after a restart, and then the ticks before are waited for.
  void keep_ring(uint32_t o, Ring& ring) {
    const uint32_t origin = plan_.outputs[plan_.steps[plan_.outputs[o].step].inputs[0].output].origin;
    const Step* const maker = origin == kNone ? nullptr : &plan_.steps[plan_.outputs[origin].step];
    const bool is_one = maker && maker->is<SourceStep>() && draft_.handlers[maker->handler()].facts.tick_count == 1;
    ring.length = is_one ? 1 : 2;
    ring.reasons = {is_one ? "1 that lasts" : "1 that lasts + 1 for its successor"};
    add(o, ring);
  }

  // True if the values are memory that the handler brings along, and every reader takes them from there.
  bool needs_no_bytes(uint32_t o) const {
    const Step& maker = plan_.steps[plan_.outputs[o].step];
    if (!plan_.outputs[o].format.adopted || maker.handler() == kNone || !plan_.on_host(maker.domain)) return false;
    return std::all_of(readers_[o].begin(), readers_[o].end(), [&](const Reading& reading) {
      const Step& reader = *reading.reader;
      if (reader.is<CopyStep>()) return plan_.outputs[reader.outputs[0]].kept;
      const auto place = static_cast<int32_t>(reading.input - reader.inputs.data());
      const bool is_written = std::any_of(reader.outputs.begin(), reader.outputs.end(), [&](uint32_t made) {
        return plan_.outputs[made].in_place == place && !plan_.outputs[made].owns;
      });
      return plan_.on_host(reader.domain) && !is_written;
    });
  }

  // Each stream has a result until the tick that it is of has left its window.
  void hold_for_streams(Ring& ring, const Step& deal, uint32_t result) {
    const GroupPlan& group = plan_.groups[deal.as<DealStep>().group];
    uint32_t count = 0, streams = 0;
    for (const uint32_t give : group.gives) {
      if (give == kNone) continue;
      const Step& step = plan_.steps[give];
      const std::vector<uint32_t>& results = step.as<GiveStep>().results;
      for (size_t o = 0; o < results.size(); ++o) {
        if (results[o] != result || plan_.outputs[step.outputs[o]].origin == kNone) continue; // copied out
        count += plan_.paces[step.pace].room + plan_.outputs[step.outputs[o]].retain + 1;
        ++streams;
      }
    }
    if (count > 0) hold(ring, count, "held by ticks of " + std::to_string(streams) + " streams");
  }

  void hold_for_channel(Ring& ring, const Step& reader) {
    const Channel& channel = plan_.channels[reader.channel()];
    if (channel.to == kNone)
      return hold(ring, channel.depth + 1, "for the link to " + crossing_of(plan_, reader.channel())->node);
    const Step& far = plan_.steps[channel.to];
    uint32_t retain = 0;
    for (uint32_t o : far.outputs) retain = std::max(retain, plan_.outputs[o].retain);
    const uint32_t values = channel.kind == ChannelKind::gate && !channel.busy ? channel.depth : channel.capacity;
    hold(ring, values + plan_.paces[far.pace].room + retain + 1, "held by " + far.name);
  }

  void share_ring(uint32_t o) {
    Output& output = plan_.outputs[o];
    if (output.step == kNone || output.ring != kNone) return;
    if (!roots_[o].empty()) output.ring = plan_.outputs[*roots_[o].begin()].ring;
  }

  uint32_t first_dynamic(const std::set<uint32_t>& rings) const {
    for (uint32_t ring : rings)
      if (plan_.rings[ring].dynamic) return ring;
    return kNone;
  }

  void dissolve(Region& region, const std::string& why) {
    for (uint32_t s : region.steps) {
      plan_.steps[s].region = kNone;
      plan_.notes.push_back(plan_.steps[s].name + " runs on a stream: " + why);
    }
    region.steps.clear();
  }

  std::set<uint32_t> rings_of(const Region& region) const {
    std::set<uint32_t> touched;
    for (uint32_t s : region.steps) {
      for (const StepInput& input : plan_.steps[s].inputs)
        if (input.output != kNone && !plan_.outputs[input.output].kept) // else it is recorded anew for a successor
          touched.insert(plan_.outputs[input.output].ring);
      for (uint32_t o : plan_.steps[s].outputs) touched.insert(plan_.outputs[o].ring);
    }
    return touched;
  }

  // Makes these rings as long as the longest of them, and at least `length`. Returns their length.
  uint32_t level(const std::set<uint32_t>& rings, uint32_t length, bool& changed) {
    for (const uint32_t r : rings) length = std::max(length, plan_.rings[r].length);
    for (const uint32_t r : rings) {
      changed = changed || plan_.rings[r].length < length;
      plan_.rings[r].length = length;
    }
    return length;
  }

  // Rings that one region touches have one length, because a recording is made for each slot; so have rings that are
  // copied together. Regions that share a ring lengthen each other's rings.
  void level_regions() {
    for (Region& region : plan_.regions) {
      std::erase_if(region.steps, [&](uint32_t s) { // copies whose blocks are held leave the region
        Step& step = plan_.steps[s];
        const bool alone = step.is<CopyStep>() && plan_.rings[plan_.outputs[step.outputs[0]].ring].dynamic;
        if (alone) step.region = kNone;
        return alone;
      });
      const std::set<uint32_t> touched = rings_of(region);
      if (const uint32_t held = first_dynamic(touched); held != kNone)
        dissolve(region, "the slots of " + plan_.steps[plan_.outputs[plan_.rings[held].output].step].name +
                             " are held for longer, so they are no function of the index");
    }
    std::vector<uint32_t> planned;
    std::map<uint32_t, std::set<uint32_t>> packs;
    for (uint32_t r = 0; r < plan_.rings.size(); ++r) {
      planned.push_back(plan_.rings[r].length);
      if (plan_.rings[r].pack == kNone) continue;
      MR_ASSERT(!plan_.rings[r].dynamic, "pack() passes over what is held");
      packs[plan_.rings[r].pack].insert(r);
    }
    for (bool changed = true; changed;) {
      changed = false;
      for (const auto& [pack, rings] : packs) level(rings, 0, changed);
      for (Region& region : plan_.regions) region.slots = level(rings_of(region), region.slots, changed);
    }
    for (size_t r = 0; r < planned.size(); ++r) {
      Ring& ring = plan_.rings[r];
      if (ring.length > planned[r])
        ring.reasons.push_back(std::to_string(ring.length - planned[r]) + " to match its " +
                               (ring.pack == kNone ? "region" : "pack"));
    }
  }

  void set_slots(Pace& pace) {
    uint32_t retain = 0;
    for (const Output& output : plan_.outputs)
      if (output.step != kNone && &plan_.paces[plan_.steps[output.step].pace] == &pace)
        retain = std::max(retain, output.retain);
    pace.slots = std::bit_ceil(pace.room + retain);
  }

  void sum_memory() {
    for (const Ring& ring : plan_.rings)
      plan_.memory[plan_.domains[ring.domain].name] += ring.blocks_counted() * memory::block_bytes(ring.capacity);
    for (const Step& step : plan_.steps) {
      uint64_t bytes = step.scratch_bytes() + step.taken_bytes() + step.state_bytes();
      if (const HandlerStep* called = step.called())
        bytes = std::accumulate(called->gathers.begin(), called->gathers.end(), bytes);
      if (bytes > 0) plan_.memory[plan_.domains[step.domain].name] += bytes;
    }
  }

  struct Reading {
    const Step* reader;
    const StepInput* input;
  };

  Draft& draft_;
  Plan& plan_;
  std::vector<uint32_t> fixed_; // by clock: in_flight as it was asked for; 0: the plan chooses
  bool roomy_;                  // windows may grow when the cut is made again
  const ClockCircles circles_;
  const std::vector<uint32_t> waits_;         // by step: which other clocks of a circle hold it; 0: none
  std::vector<std::set<uint32_t>> roots_;     // by output: outputs that own a ring
  std::vector<std::vector<Reading>> readers_; // by output that owns a ring, in the order of the steps
};

} // namespace

void lay_out_once(Draft& draft, bool roomy) { Layout(draft, roomy).run(); }

} // namespace millrace::plan
