// Makes a step for each handler, with its inputs and outputs laid flat, and one for the finish() of each GPU body;
// fills Plan::handlers.
#include <algorithm>
#include <cmath>

#include "observe/error.h"
#include "observe/error_codes.h"
#include "plan/expand.h"
#include "plan/group_plan.h"
#include "plan/machine.h"
#include "plan/memory.h"
#include "plan/pace.h"
#include "plan/stages.h"
#include "plugin/answers.h"
#include "plugin/handler_info.h"

namespace millrace::plan {

namespace {

class HandlerSteps {
 public:
  explicit HandlerSteps(Expansion& all) : all_(all), draft_(all.draft), plan_(all.plan) {}

  void run() {
    draft_.handler_output.resize(draft_.handlers.size());
    plan_.handlers.resize(draft_.handlers.size());
    for (uint32_t h : draft_.order) {
      DraftHandler& handler = draft_.handlers[h];
      const graph::Handler& declared = *handler.declared;
      if (!is_here(draft_, handler)) {
        draft_.handler_output[h] = kNone;
        describe(h);
        continue;
      }
      // A source on a device is called like any other body, and its clock counts its ticks for it.
      const bool asked = handler.is_source() && plan_.on_host(handler.domain);
      const bool enqueues = plan_.domains[handler.domain].bodies == Bodies::enqueued,
                 runs_on_host = plan_.on_host(handler.domain);
      HandlerStep called;
      called.handler = h;
      called.owes = all_.ticks_owed(h);
      const plugin::BodyMemory memory = handler.answers->memory();
      called.scratch_bytes = enqueues ? memory.scratch : runs_on_host ? memory.host : 0;
      called.taken_bytes = enqueues ? memory.device : 0;
      called.state_bytes = memory.state;
      if (handler.takes_items && runs_on_host) called.gathers = gathers_of(handler);
      if (handler.takes_items && !runs_on_host && handler.info->items_max > 1)
        plan_.notes.push_back(declared.name + " is called item by item on " + plan_.domains[handler.domain].name +
                              ": only on a cpu does a call of it take several");
      handler.step =
          all_.add_step(asked ? StepKind(SourceStep{called}) : StepKind(called), declared.name, handler.pace);
      Step& step = plan_.steps[handler.step];
      step.domain = handler.domain;
      step.every = declared.every;
      draft_.handler_output[h] = static_cast<uint32_t>(plan_.outputs.size());
      if (asked) plan_.paces[handler.pace].sources.push_back(handler.step);
      if (!asked && handler.is_source()) plan_.paces[handler.pace].generated = true;
      if (!asked && handler.is_source() && handler.facts.tick_count >= 0) {
        uint64_t& ticks_max = plan_.paces[handler.pace].ticks_max;
        ticks_max = std::min(ticks_max, static_cast<uint64_t>(handler.facts.tick_count));
      }
      for (uint32_t i = 0; i < handler.input_count; ++i) {
        const auto& port = handler.info->ports[handler.input_port[i]];
        StepInput input;
        input.required = !port.optional();
        input.idle_without = port.raw.flags & MR_PORT_IDLE_WITHOUT;
        input.keeps = port.raw.keeps;
        step.inputs.push_back(input);
      }
      for (uint32_t o = 0; o < handler.output_count; ++o) {
        const auto& port = handler.info->ports[handler.output_port[o]];
        const bool on_host = port.raw.memory == MR_MEMORY_CPU; // a GPU body's kernels write it there
        const uint32_t domain = on_host ? host_of(plan_.domains, handler.domain) : handler.domain;
        const uint32_t output = all_.add_output(handler.step, port.name, handler.outputs[o], domain);
        const int32_t like =
            port.raw.like >= 0 ? static_cast<int32_t>(handler.first[static_cast<uint32_t>(port.raw.like)]) : -1;
        if (port.raw.flags & MR_PORT_FORWARDS) plan_.outputs[output].forwards = like;
        if (port.raw.flags & MR_PORT_IN_PLACE) plan_.outputs[output].in_place = like;
        plan_.outputs[output].connected = handler.edge_counts[handler.output_port[o]] > 0;
        plan_.outputs[output].lasting = port.raw.flags & MR_PORT_LASTING;
      }
      if (enqueues && (handler.info->traits & MR_TRAIT_FINISH)) add_finish(handler);
      describe(h);
    }
  }

 private:
  // Room for the rows of all items of a firing, by input; 0 if it is not dense.
  std::vector<uint64_t> gathers_of(const DraftHandler& handler) const {
    std::vector<uint64_t> gathers(handler.input_count, 0);
    for (uint32_t i = 0; i < handler.input_count; ++i)
      if (handler.info->ports[handler.input_port[i]].raw.flags & MR_PORT_DENSE)
        gathers[i] = uint64_t{group_of(plan_, handler.clock).items_max} * capacity_of(handler.inputs[i]);
    return gathers;
  }

  // Adds the finish step of a GPU body. Readers of outputs on the host read them from this step, since finish() may
  // still write them.
  void add_finish(const DraftHandler& handler) {
    const uint32_t s = all_.add_step(FinishStep{handler.step}, "finish " + handler.declared->name, handler.pace);
    plan_.steps[s].after.push_back(handler.step);
    const std::vector<uint32_t> made = plan_.steps[handler.step].outputs;
    for (uint32_t o = 0; o < made.size(); ++o) {
      const Output body_output = plan_.outputs[made[o]];
      if (!plan_.in_host_memory(body_output.domain)) continue;
      const uint32_t output = all_.add_output(s, body_output.name, body_output.format, body_output.domain);
      plan_.outputs[output].connected = body_output.connected;
      plan_.outputs[output].forwards = static_cast<int32_t>(handler.input_count + o);
      all_.finished[made[o]] = output;
    }
  }

  uint32_t type_index(const plugin::HandlerInfo& info) {
    const auto [at, is_new] = types_.try_emplace(&info, static_cast<uint32_t>(plan_.types.size()));
    if (is_new) {
      plan_.types.push_back(info);
      plan_.types.back().manual.clear(); // a plan needs no manual
    }
    return at->second;
  }

  void describe(uint32_t h) {
    const DraftHandler& handler = draft_.handlers[h];
    const graph::Handler& declared = *handler.declared;
    HandlerPlan& out = plan_.handlers[h];
    out.name = declared.name;
    out.type = declared.type;
    out.written_as = declared.written_as;
    out.stream = declared.stream;
    out.for_each = declared.written_as.empty() ? "" : declared.for_each;
    out.info = type_index(*handler.info);
    out.facts = handler.facts;
    out.step = handler.step;
    out.domain = handler.domain;
    out.clock = handler.clock;
    out.node = handler.node;
    out.every = declared.every;
    out.gap = all_.gap_of(h);
    out.lanes = std::max(1u, declared.concurrency);
    out.on_error = declared.on_error;
    out.budget_ns = declared.budget_ns;
    out.waits = (handler.info->traits & MR_TRAIT_BLOCKING) || (handler.is_source() && handler.facts.waits);
    const auto given = draft_.options.costs_ns.find(declared.name);
    out.cost_ns = given != draft_.options.costs_ns.end()
                      ? given->second
                      : std::llround(cost_in(draft_, handler, handler.domain).us * 1000);
    out.reason = handler.reason;
    out.edge_counts = handler.edge_counts;
    out.first_entry = handler.first;
    if (declared.on_error == graph::OnError::bypass) check_bypass(handler);
  }

  static void check_bypass(const DraftHandler& handler) {
    for (uint32_t o = 0; o < handler.output_count; ++o) {
      const auto& port = handler.info->ports[handler.output_port[o]];
      const bool in_place = port.raw.flags & MR_PORT_IN_PLACE;
      if (!in_place && has_its_inputs_format(handler, o)) continue;
      throw Failure(Error{
          code::impossible_bypass,
          handler.declared->name + " (" + handler.info->type + ") cannot be bypassed",
          handler.declared->place,
          {"its output " + port.name + (in_place ? " is written in place" : " has another format than its input")},
          "",
          "on_error: skip"});
    }
  }

  // An output that is like an input may still have another size (image.crop).
  static bool has_its_inputs_format(const DraftHandler& handler, uint32_t output) {
    const int32_t like = handler.info->ports[handler.output_port[output]].raw.like;
    if (like < 0) return false;
    const mr_format& in = handler.inputs[handler.first[static_cast<uint32_t>(like)]];
    const mr_format& out = handler.outputs[output];
    return in.width == out.width && in.height == out.height;
  }

  Expansion& all_;
  Draft& draft_;
  Plan& plan_;
  std::map<const plugin::HandlerInfo*, uint32_t> types_; // those that are in plan_.types already
};

} // namespace

void make_handler_steps(Expansion& expansion) { HandlerSteps(expansion).run(); }

} // namespace millrace::plan
