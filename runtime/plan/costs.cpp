// Finds the time of a call: as measured on this machine, else as the handler says for its parameters, else its type's
// hint.
#include <algorithm>
#include <cmath>

#include "plan/domain.h"
#include "plan/draft.h"
#include "plan/machine.h"
#include "plan/memory.h"
#include "plan/prices.h"
#include "plan/step.h"
#include "plugin/handler_info.h"

namespace millrace::plan {

namespace {

// A measurement at another size counts only if that size is at most this many times smaller or larger.
constexpr double kFarthest = 4;

uint64_t known_bytes(const mr_format& format) {
  const uint64_t bytes = capacity_of(format);
  return bytes == UINT64_MAX ? 0 : bytes;
}

// The same as bytes_read() of plan.h, for the plan that is being made.
uint64_t bytes_read(const DraftHandler& handler) {
  uint64_t bytes = 0;
  for (size_t i = 0; i < handler.inputs.size(); ++i)
    if (handler.input_edge[i] != kNone) bytes += known_bytes(handler.inputs[i]);
  if (handler.is_source())
    for (const mr_format& format : handler.outputs) bytes += known_bytes(format);
  return bytes;
}

// Interpolates linearly between measurements of two sizes; beyond them the time is in proportion to the nearest.
std::optional<Cost> between(const std::vector<const BodyCost*>& known, double bytes) {
  const BodyCost* below = nullptr;
  const BodyCost* above = nullptr;
  for (const BodyCost* body : known) {
    const auto size = static_cast<double>(body->bytes);
    if (size <= bytes && (!below || below->bytes < body->bytes)) below = body;
    if (size >= bytes && (!above || above->bytes > body->bytes)) above = body;
  }
  if (below && above && below != above) {
    const auto low = static_cast<double>(below->bytes), high = static_cast<double>(above->bytes);
    const double part = (bytes - low) / (high - low);
    return Cost{std::lerp(below->mean_us, above->mean_us, part), std::lerp(below->p99_us, above->p99_us, part), true};
  }
  const BodyCost* nearest = below ? below : above;
  if (!nearest) return std::nullopt;
  const double factor = nearest->bytes == 0 || bytes <= 0 ? 1 : bytes / static_cast<double>(nearest->bytes);
  if (factor > kFarthest || factor < 1 / kFarthest) return std::nullopt;
  return Cost{nearest->mean_us * factor, nearest->p99_us * factor, true};
}

} // namespace

std::string settings_of(const graph::Handler& declared) {
  std::vector<std::string> words;
  for (const graph::Param& param : declared.params) words.push_back(param.name + "=" + param.text);
  std::sort(words.begin(), words.end());
  std::string settings;
  for (const std::string& word : words) settings += (settings.empty() ? "" : " ") + word;
  return settings;
}

uint64_t bytes_read(const Plan& plan, uint32_t handler) {
  uint64_t bytes = 0;
  if (plan.handlers[handler].step == kNone) return bytes; // another node runs it
  const Step& step = plan.steps[plan.handlers[handler].step];
  for (const StepInput& input : step.inputs)
    if (input.output != kNone) bytes += known_bytes(plan.outputs[input.output].format);
  if (step.inputs.empty())
    for (const uint32_t o : step.outputs) bytes += known_bytes(plan.outputs[o].format);
  return bytes;
}

std::optional<Cost> measured_cost(const Machine& machine, const Measured& body, uint64_t bytes, uint32_t items) {
  std::vector<const BodyCost*> known;
  for (const BodyCost& one : machine.bodies)
    if (one.type == body.type && one.settings == body.settings && one.items == items && one.domain == body.domain)
      known.push_back(&one);
  return between(known, static_cast<double>(bytes));
}

namespace {

// As measured with so many items a call, at the handler's size.
std::optional<Cost> measured_cost(const Draft& draft, const DraftHandler& handler, uint32_t domain, uint32_t items) {
  if (draft.machine.bodies.empty()) return std::nullopt;
  return measured_cost(draft.machine,
                       {handler.info->type, settings_of(*handler.declared), draft.plan.domains[domain].name},
                       bytes_read(handler), items);
}

} // namespace

Cost cost_in(const Draft& draft, const DraftHandler& handler, uint32_t domain) {
  const auto given = draft.options.costs_ns.find(handler.declared->name);
  if (domain == host_on(draft.plan.domains, "") && given != draft.options.costs_ns.end()) {
    const double us = static_cast<double>(given->second) / 1000;
    return {us, us, true};
  }
  if (const auto measured = measured_cost(draft, handler, domain, 1)) return *measured;
  const int64_t said = draft.plan.on_host(domain) ? handler.facts.cost_cpu_ns : handler.facts.cost_gpu_ns;
  const double us = static_cast<double>(said > 0 ? said : handler.info->cost_hint_ns) / 1000;
  return {us, us, draft.plan.on_host(domain) || said > 0}; // a hint is for the host's body
}

double items_us(const Draft& draft, const DraftHandler& handler, uint32_t domain, uint32_t items) {
  const double one_us = cost_in(draft, handler, domain).us;
  if (handler.info->items_max == 0 || !draft.plan.on_host(domain)) return one_us * items; // called item by item
  double below_us = one_us, before_us = one_us;
  uint32_t below = 1, before = 1;
  for (uint32_t known = 2; known <= MR_ITEMS_MAX; known *= 2) {
    const auto measured = measured_cost(draft, handler, domain, known);
    if (!measured) continue;
    if (known >= items) { // on the line between the two
      const double part = static_cast<double>(items - below) / (known - below);
      return std::lerp(below_us, measured->us, part);
    }
    before = below;
    before_us = below_us;
    below = known;
    below_us = measured->us;
  }
  if (below == 1) return one_us * items;
  return below_us + (below_us - before_us) * (items - below) / (below - before);
}

} // namespace millrace::plan
