// Finds the outputs that share their input's buffer: those that forward it, and those that are written over it in
// place. The writer then comes after every reader of the bytes that it overwrites (semantics.md 3.5).
#include <algorithm>
#include <optional>

#include "plan/draft.h"
#include "plan/far_feeds.h"
#include "plan/group_plan.h"
#include "plan/memory.h"
#include "plan/pace.h"
#include "plan/reachability.h"
#include "plugin/handler_info.h"

namespace millrace::plan {

namespace {

class ShareBuffers {
 public:
  explicit ShareBuffers(Draft& draft) : plan_(draft.plan) {}

  void run() {
    for (Output& output : plan_.outputs) {
      const Step* step = output.step == kNone ? nullptr : &plan_.steps[output.step];
      if (!step) continue;
      output.owns = output.origin == kNone && output.forwards < 0;
      allow_bypass(output, *step);
      allow_repeat(output, *step);
      if (output.forwards < 0) continue;
      const StepInput& input = step->inputs[static_cast<size_t>(output.forwards)];
      // On a device a silent forward needs a presence word of its own: there it is a copy within the device.
      const bool shares = input.output != kNone && plan_.on_host(step->domain) && input.delay == 0;
      if (shares && !is_item(input.output)) continue;
      output.forwards = -1;
      output.owns = true;
    }
    for (uint32_t o = 0; o < plan_.outputs.size(); ++o) {
      if (plan_.outputs[o].step != kNone && plan_.outputs[o].in_place >= 0) decide(o);
    }
  }

 private:
  // True if the values come from several streams, and so from several rings.
  bool is_item(uint32_t o) const {
    const Step& step = plan_.steps[plan_.outputs[o].step];
    return step.is<EntryStep>() && plan_.paces[step.pace].kind == PaceKind::batch;
  }

  // A bypassed handler repeats its input if it fails, so its output may be its own buffer or its input's.
  void allow_bypass(Output& output, const Step& step) const {
    if (step.handler() == kNone || output.forwards >= 0) return;
    const HandlerPlan& handler = plan_.handlers[step.handler()];
    if (handler.on_error != graph::OnError::bypass) return;
    for (size_t p = 0, flat = 0; p < plan_.type_of(handler).ports.size(); ++p) {
      const auto& port = plan_.type_of(handler).ports[p];
      if (port.is_input()) continue;
      if (flat++ == output.port)
        output.forwards = static_cast<int32_t>(handler.first_entry[static_cast<size_t>(port.raw.like)]);
    }
  }

  // A conversion that has nothing to do passes its input on; it still has a buffer of its own.
  void allow_repeat(Output& output, const Step& step) const {
    if (step.handler() == kNone || output.forwards >= 0 || step.inputs.size() != 1) return;
    const plugin::HandlerInfo& info = plan_.type_of(step);
    uint32_t flat = 0;
    for (const auto& port : info.ports) {
      if (port.is_input() || flat++ != output.port || !(port.raw.flags & MR_PORT_REPEATS)) continue;
      const uint32_t from = step.inputs[0].output;
      if (from == kNone) return;
      const mr_format &a = plan_.outputs[from].format, &b = output.format;
      if (a.pixel_formats == b.pixel_formats && a.width == b.width && a.height == b.height) output.forwards = 0;
    }
  }

  // The output that has the buffer of this output's value, traced through forwards and other paces. A write in place
  // makes another generation of the buffer and is not traced.
  uint32_t buffer_of(uint32_t o) const {
    for (;;) {
      const Output& output = plan_.outputs[o];
      if (output.forwards >= 0)
        o = plan_.steps[output.step].inputs[static_cast<size_t>(output.forwards)].output;
      else if (output.origin != kNone)
        o = output.origin;
      else
        return o;
    }
  }

  // Made at the first call, since most plans never need it.
  Reachability& waits() {
    if (!waits_) waits_ = waits_of(plan_);
    return *waits_;
  }

  void refuse(uint32_t o, const std::string& why) {
    const Output& output = plan_.outputs[o];
    plan_.notes.push_back(plan_.steps[output.step].name + " copies its input before it writes: " + why);
    plan_.outputs[o].in_place = -1;
  }

  void decide(uint32_t o) {
    const Output& output = plan_.outputs[o];
    const uint32_t writer = output.step;
    const StepInput& input = plan_.steps[writer].inputs[static_cast<size_t>(output.in_place)];
    if (input.output == kNone) {
      plan_.outputs[o].in_place = -1;
      return;
    }
    const uint32_t buffer = buffer_of(input.output);
    if (input.delay > 0) return refuse(o, "it reads an earlier tick");
    if (plan_.outputs[buffer].lasting || plan_.outputs[buffer].kept)
      return refuse(o, "the value counts on later ticks, too");
    if (plan_.outputs[buffer].format.held > 0)
      return refuse(o, plan_.steps[plan_.outputs[buffer].step].name + " still reads the picture that it gave");
    if (plan_.outputs[input.output].domain != output.domain) return refuse(o, "the buffer is elsewhere");
    if (!plan_.on_host(plan_.steps[writer].domain) && !input.required)
      return refuse(o, "its input is optional, and a device chooses the buffer beforehand");
    if (may_be_initial(plan_, input.output)) return refuse(o, "its first value is an initial one, which has no buffer");
    if (copies_initial(input.output, plan_.steps.size()))
      return refuse(o, "its first value may be a copy of an initial one, which has no bytes");
    if (plan_.outputs[input.output].origin != kNone || buffer_passes_paces(input.output))
      return refuse(o, "the buffer is held by another pace");
    std::vector<uint32_t> before;
    for (uint32_t s = 0; s < plan_.steps.size(); ++s) {
      const Step& reader = plan_.steps[s];
      for (uint32_t i = 0; i < reader.inputs.size(); ++i) {
        const StepInput& read = reader.inputs[i];
        if (read.output == kNone || buffer_of(read.output) != buffer || s == writer) continue;
        const auto* finish = std::get_if<FinishStep>(&reader.kind);
        if (finish && finish->body == writer) continue; // sees it as the body left it
        if (read.delay > 0 || read.keeps > 0) return refuse(o, reader.name + " reads the picture on later ticks");
        if (reader.is<GateStep>() || reader.is<PostStep>() || reader.is<GiveStep>() || reader.is<DealStep>())
          return refuse(o, reader.name + " hands the picture to readers of other ticks");
        if (reader.pace != plan_.steps[writer].pace) return refuse(o, reader.name + " is of another pace");
        const bool pends = reader.handler() != kNone && plan_.type_of(reader).max_pending > 0;
        if (pends || reader.level > plan_.steps[writer].level) return refuse(o, reader.name + " answers later");
        if (waits().leads(writer, s)) return refuse(o, reader.name + " reads both the picture and what is drawn on it");
        for (uint32_t other : reader.outputs)
          if (plan_.outputs[other].in_place == static_cast<int32_t>(i) && decided(other))
            return refuse(o, reader.name + " writes in place already");
        if (!waits().leads(s, writer)) before.push_back(s);
      }
    }
    for (const uint32_t reader : before) {
      plan_.steps[writer].after.push_back(reader);
      waits().add(reader, writer);
    }
    plan_.outputs[o].owns = false;
    decided_.push_back(o);
  }

  // True if the output may be a copy of an empty initial value, because its handler passes its input on or is bypassed.
  // `ways` bounds a loop.
  bool copies_initial(uint32_t o, size_t ways) const {
    const Output& output = plan_.outputs[o];
    const Step& step = plan_.steps[output.step];
    if (ways == 0) return false;
    if (step.is<CopyStep>()) return copies_initial(step.inputs[output.port].output, ways - 1);
    if (step.is<FinishStep>())
      return copies_initial(step.inputs[static_cast<size_t>(output.forwards)].output, ways - 1);
    if (step.handler() == kNone) return false;
    const HandlerPlan& handler = plan_.handlers[step.handler()];
    uint32_t flat = 0;
    for (const auto& port : plan_.type_of(handler).ports) {
      if (port.is_input() || flat++ != output.port) continue;
      const bool passes_on = (port.raw.flags & MR_PORT_FORWARDS) || handler.on_error == graph::OnError::bypass;
      if (!passes_on) continue;
      const StepInput& input = step.inputs[handler.first_entry[static_cast<size_t>(port.raw.like)]];
      if (input.output == kNone) return false;
      return input.initial_empty || may_be_initial(plan_, input.output) || copies_initial(input.output, ways - 1);
    }
    return false;
  }

  bool buffer_passes_paces(uint32_t o) const {
    for (;;) {
      const Output& output = plan_.outputs[o];
      if (output.origin != kNone) return true;
      if (output.forwards < 0) return false;
      o = plan_.steps[output.step].inputs[static_cast<size_t>(output.forwards)].output;
    }
  }
  bool decided(uint32_t o) const { return std::find(decided_.begin(), decided_.end(), o) != decided_.end(); }

  Plan& plan_;
  std::optional<Reachability> waits_;
  std::vector<uint32_t> decided_;
};

} // namespace

namespace {

// True if a stream may give an empty initial value to this input of its group.
bool gives_empty(const Plan& plan, const Step& entry, uint32_t port) {
  const auto is_initial = [&](uint32_t give) {
    if (give == kNone) return false;
    const StepInput& input = plan.steps[give].inputs[port];
    return input.initial_empty || (input.output != kNone && may_be_initial(plan, input.output));
  };
  const GroupPlan& group = group_of(plan, plan.paces[entry.pace].clock);
  return std::any_of(group.gives.begin(), group.gives.end(), is_initial);
}

// True if the gate before an entry may give it an empty initial value. A gate on another node may.
bool enters_empty(const Plan& plan, const Step& entry, uint32_t port) {
  const auto is_initial = [&](const Channel& channel, uint32_t input) {
    return channel.from == kNone || plan.steps[channel.from].inputs[input].initial_empty;
  };
  if (entry.channel() != kNone) return is_initial(plan.channels[entry.channel()], port);
  if (plan.paces[entry.pace].kind == PaceKind::batch) return gives_empty(plan, entry, port);
  const Feed& feed = feed_of(plan.paces[entry.pace], port);
  return is_initial(plan.channels[feed.channel], port - feed.first);
}

} // namespace

bool may_be_initial(const Plan& plan, uint32_t o) {
  for (;;) {
    const Output& output = plan.outputs[o];
    const Step& step = plan.steps[output.step];
    if (step.is<ResolveStep>() && plan.channels[step.channel()].initial_empty) return true;
    if (step.is<EntryStep>() && enters_empty(plan, step, output.port)) return true;
    if (step.is<CopyStep>())
      o = step.inputs[output.port].output;
    else if (output.origin != kNone)
      o = output.origin;
    else if (output.forwards >= 0)
      o = step.inputs[static_cast<size_t>(output.forwards)].output;
    else
      return false;
  }
}

void share_buffers(Draft& draft) { ShareBuffers(draft).run(); }

} // namespace millrace::plan
