// Makes the handlers of a stream that comes while the plan is carried out; see prepare.h.
#include <algorithm>

#include "graph/unfold.h"
#include "observe/error_codes.h"
#include "plan/domain.h"
#include "plan/format_text.h"
#include "plan/make_handler.h"
#include "plan/make_stream.h"
#include "plan/memory.h"
#include "plan/paths.h"
#include "plan/refusal.h"
#include "plan/share_threads.h"
#include "plan/step.h"
#include "plugin/registry.h"

namespace millrace::plan {

namespace {

bool is_captured(const Plan& plan, uint32_t step) {
  return std::any_of(plan.regions.begin(), plan.regions.end(), [&](const Region& region) {
    return std::find(region.steps.begin(), region.steps.end(), step) != region.steps.end();
  });
}

bool same_params(const graph::Handler& a, const graph::Handler& b) {
  return std::equal(a.params.begin(), a.params.end(), b.params.begin(), b.params.end(),
                    [](const graph::Param& x, const graph::Param& y) { return x.name == y.name && x.text == y.text; });
}

bool is_same_size(const mr_format& own, const mr_format& planned) {
  if (own.width != planned.width || own.height != planned.height) return false;
  return std::equal(own.shape, own.shape + own.rank, planned.shape);
}

// Handlers are told the planned sizes once, so a value of another size would be a failure on the first tick.
void check_fits(const graph::Handler& declared, const plugin::HandlerInfo& info, const mr_format& own,
                const mr_format& planned) {
  const bool is_like = own.kind == planned.kind && (own.pixel_formats & planned.pixel_formats) == own.pixel_formats &&
                       own.dtype_code == planned.dtype_code && own.dtype_bits == planned.dtype_bits &&
                       own.rank == planned.rank && own.schema == planned.schema;
  if (is_like && is_same_size(own, planned)) return;
  throw Failure(refusal(code::incompatible_formats,
                        declared.name + " (" + info.type + ") does not fit into the plan: ", declared, info,
                        "it gives " + format_words(own) + ", and the place is planned for " + format_words(planned)));
}

// Refuses a handler that wants more memory than its place has: it was planned with the values of another stream.
void check_memory(const graph::Handler& declared, const plugin::Instance& instance, const Plan& plan,
                  const Step& step) {
  const plugin::BodyMemory memory = instance.memory();
  const bool enqueues = plan.domains[step.domain].bodies == Bodies::enqueued;
  const auto check = [&](const char* purpose, uint64_t own, uint64_t planned) {
    if (own <= planned) return;
    throw Failure(refusal(
        code::incompatible_formats, declared.name + " (" + declared.type + ") does not fit into the plan: ", declared,
        instance.info(),
        "it needs " + std::to_string(own) + " bytes of " + purpose + ", and the place has " + std::to_string(planned)));
  };
  check("state", memory.state, step.state_bytes());
  if (enqueues) check("scratch memory", memory.scratch, step.scratch_bytes());
  if (enqueues) check("device memory of its own", memory.device, step.taken_bytes());
}

// A handler of the stream on its way from being made to being known.
struct Made {
  uint32_t handler = 0; // index into Plan::handlers
  graph::Handler declared;
  std::unique_ptr<plugin::Instance> instance;
  std::vector<mr_format> accepts;
};

[[noreturn]] void refuse_captured(const Plan& plan, const HandlerPlan& planned, const graph::Stream& stream) {
  throw Failure(Error{code::no_place,
                      "\"" + stream.name + "\" cannot have values of its own for " + planned.written_as,
                      {},
                      {"it is captured on " + plan.domains[planned.domain].name + " with others"},
                      "",
                      ""});
}

// Throws Failure (MR0604) if one cannot be opened.
std::vector<mr_facts> probe_made(std::vector<Made>& made, const ProbeLimits& limits) {
  std::vector<std::unique_ptr<plugin::Instance>*> asked;
  std::vector<const plugin::HandlerInfo*> infos; // an instance that is given up is taken away
  for (Made& one : made) {
    asked.push_back(&one.instance);
    infos.push_back(&one.instance->info());
  }
  std::vector<mr_facts> facts;
  const std::vector<ProbeAnswer> answers = probe_all(asked, no_facts(), limits);
  for (size_t i = 0; i < made.size(); ++i) {
    const graph::Handler& declared = made[i].declared;
    if (!answers[i].error.empty()) throw Failure(not_opened(declared, *infos[i], answers[i]));
    facts.push_back(answers[i].facts);
  }
  return facts;
}

} // namespace

const graph::Stream& stream_of(const graph::Graph& unfolded, const Plan& plan, uint32_t clock) {
  const std::vector<graph::Stream>& items = unfolded.find_set(plan.clocks[clock].set)->items;
  return *std::find_if(items.begin(), items.end(),
                       [&](const graph::Stream& item) { return item.name == plan.clocks[clock].name; });
}

MadeStream make_stream(const graph::Graph& written, const graph::Graph& unfolded, const Plan& plan,
                       const StreamToMake& wanted, const plugin::Registry& registry, const mr_host& host,
                       plugin::CallWatch* watch) {
  std::vector<Made> all;
  for (uint32_t h = 0; h < plan.handlers.size(); ++h) {
    const HandlerPlan& planned = plan.handlers[h];
    if (planned.clock != wanted.clock || planned.stream.empty()) continue;
    if (wanted.is_sources_only && !plan.type_of(planned).is_source()) continue;
    graph::StreamSet set = *unfolded.find_set(plan.clocks[wanted.clock].set);
    const auto own = std::find_if(set.items.begin(), set.items.end(),
                                  [&](const graph::Stream& item) { return item.name == planned.stream; });
    *own = wanted.stream;
    Made made{h, graph::make_instance(*written.find(planned.written_as), set, *own), nullptr, {}};
    const graph::Handler& declared = made.declared;
    take_share(plan.type_of(planned), declared_of(plan, unfolded, h), made.declared);
    if (is_captured(plan, planned.step)) {
      if (!same_params(declared, declared_of(plan, unfolded, h))) refuse_captured(plan, planned, wanted.stream);
      continue;
    }
    const plugin::RegisteredType& type = find_type(written, registry, declared);
    if (wanted.confine) refuse_outside(declared, type, *wanted.confine);
    made.instance = make(written, declared, type, host, watch);
    made.accepts = narrowed(*made.instance, declared);
    if (made.instance->bind(planned.edge_counts) != MR_OK)
      throw Failure(
          refusal(code::probe_failed, declared.name + " (" + declared.type + ") refuses: ", declared, *made.instance));
    all.push_back(std::move(made));
  }
  const std::vector<mr_facts> facts = probe_made(all, wanted.limits);
  MadeStream stream;
  for (size_t i = 0; i < all.size(); ++i) {
    auto& [h, declared, instance, accepts] = all[i];
    const Step& step = plan.steps[plan.handlers[h].step];
    if (instance->info().is_source()) {
      const HandlerFacts asked{declared.name, instance.get(), facts[i], {}, accepts};
      const std::vector<mr_format> formats = formats_of_source(declared, asked);
      for (size_t o = 0; o < formats.size(); ++o)
        check_fits(declared, instance->info(), formats[o], plan.outputs[step.outputs[o]].format);
      stream.facts.emplace_back(h, facts[i]);
    } else {
      configure(*instance, plan, step);
    }
    check_memory(declared, *instance, plan, step);
    stream.instances.emplace_back(h, std::move(instance));
  }
  return stream;
}

} // namespace millrace::plan
