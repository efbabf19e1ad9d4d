// Makes the handlers of a stream that comes while the plan is carried out; see prepare.h.
#include <algorithm>

#include "graph/unfold.h"
#include "plan/format_text.h"
#include "plan/make_handler.h"
#include "plan/refusal.h"

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

// Memory is planned: a value may be smaller than that of the first stream, and of no other kind.
void check_fits(const graph::Handler& declared, const plugin::HandlerInfo& info, const mr_format& own,
                const mr_format& planned) {
  const bool is_like = own.kind == planned.kind && (own.pixel_formats & planned.pixel_formats) == own.pixel_formats &&
                       own.dtype_code == planned.dtype_code && own.dtype_bits == planned.dtype_bits &&
                       own.rank == planned.rank && own.schema == planned.schema;
  bool is_small = own.width <= planned.width && own.height <= planned.height;
  for (uint32_t d = 0; d < own.rank && d < planned.rank; ++d) is_small = is_small && own.shape[d] <= planned.shape[d];
  if (is_like && is_small) return;
  throw Failure(refusal(code::incompatible_formats,
                        declared.name + " (" + info.type + ") does not fit into the plan: ", declared, info,
                        "it gives " + format_words(own) + ", and there is room for " + format_words(planned)));
}

} // namespace

MadeStream make_stream(const graph::Graph& written, const graph::Graph& unfolded, const Plan& plan, uint32_t clock,
                       const graph::Stream& stream, const plugin::Registry& registry, const mr_host& host,
                       plugin::CallWatch* watch) {
  MadeStream made;
  for (uint32_t h = 0; h < plan.handlers.size(); ++h) {
    const HandlerPlan& place = plan.handlers[h];
    if (place.clock != clock || place.stream.empty()) continue;
    graph::StreamSet set = *unfolded.find_set(plan.clocks[clock].set);
    const auto own = std::find_if(set.items.begin(), set.items.end(),
                                  [&](const graph::Stream& item) { return item.name == place.stream; });
    *own = stream; // {index} is the place's
    const graph::Handler declared = graph::make_instance(*written.find(place.written_as), set, *own);
    if (is_captured(plan, place.step)) {
      if (same_params(declared, declared_of(plan, unfolded, h))) continue;
      throw Failure(Error{code::no_place,
                          "\"" + stream.name + "\" cannot have values of its own for " + place.written_as,
                          {},
                          {"it is captured on " + plan.domains[place.domain].name + " with others"},
                          "",
                          ""});
    }
    auto instance = make(written, declared, find_type(written, registry, declared), host, watch);
    const std::vector<mr_format> accepts = narrowed(*instance, declared);
    const plugin::HandlerInfo& info = instance->info();
    if (instance->bind(place.edge_counts) != MR_OK)
      throw Failure(refusal(code::probe_failed, declared.name + " (" + info.type + ") refuses: ", declared, info,
                            instance->error()));
    const Step& step = plan.steps[place.step];
    if (!info.is_source()) {
      configure(*instance, plan, step);
    } else {
      mr_facts facts = no_facts();
      if (instance->probe(facts) != MR_OK)
        throw Failure(refusal(code::probe_failed, declared.name + " (" + info.type + ") could not be opened: ",
                              declared, info, instance->error()));
      HandlerFacts asked{declared.name, instance.get(), facts, {}, accepts};
      const std::vector<mr_format> formats = formats_of_source(declared, asked);
      for (size_t o = 0; o < formats.size(); ++o)
        check_fits(declared, info, formats[o], plan.outputs[step.outputs[o]].format);
      made.facts.emplace_back(h, facts);
    }
    made.instances.emplace_back(h, std::move(instance));
  }
  return made;
}

} // namespace millrace::plan
