// The one place where tests read the plan's representation; see plan_view.h.
#include "plan_view.h"

#include <algorithm>
#include <iterator>
#include <stdexcept>
#include <variant>

#include "plan/domain.h"
#include "plan/explained.h"
#include "plan/format_text.h"
#include "plan/memory.h"
#include "plan/partition.h"
#include "plan/plan.h"
#include "plan/print.h"
#include "plan/step.h"
#include "tests/contains.h"

namespace millrace::test {

namespace {

std::string kind_word(const plan::StepKind& kind) {
  static constexpr const char* kWords[] = {"handler", "source", "finish",  "copy", "gate",
                                           "entry",   "post",   "resolve", "give", "deal"};
  static_assert(std::size(kWords) == std::variant_size_v<plan::StepKind>);
  return kWords[kind.index()];
}

} // namespace

std::string PlanView::text() const { return plan::print_text(*plan_); }
const std::vector<std::string>& PlanView::notes() const { return plan_->notes; }
uint32_t PlanView::workers() const { return plan_->workers; }
uint32_t PlanView::threads() const { return plan_->threads; }
double PlanView::latency_us() const { return plan_->latency_us; }
bool PlanView::guessed() const { return plan_->guessed; }
uint64_t PlanView::memory(const std::string& domain) const { return plan_->memory.at(domain); }
const std::map<std::string, uint64_t>& PlanView::memory() const { return plan_->memory; }
size_t PlanView::pace_count() const { return plan_->paces.size(); }
std::string PlanView::type(const std::string& handler) const { return declared(handler).type; }
std::string PlanView::reason(const std::string& handler) const { return declared(handler).reason; }
uint32_t PlanView::clock(const std::string& handler) const { return declared(handler).clock; }
uint32_t PlanView::instances(const std::string& handler) const { return declared(handler).lanes; }
int64_t PlanView::cost_ns(const std::string& handler) const { return declared(handler).cost_ns; }
bool PlanView::captured(const std::string& handler) const { return step(handler).region != plan::kNone; }
uint32_t PlanView::level(const std::string& handler) const { return step(handler).level; }
uint32_t PlanView::window(const std::string& handler) const { return pace(handler).window; }
uint32_t PlanView::room(const std::string& handler) const { return pace(handler).room; }
uint32_t PlanView::slots(const std::string& handler) const { return pace(handler).slots; }
bool PlanView::decoupled(const std::string& handler) const { return pace(handler).kind == plan::PaceKind::decoupled; }
bool PlanView::in_step(const std::string& one, const std::string& other) const { return &pace(one) == &pace(other); }
bool PlanView::owns_memory(const std::string& handler) const { return output(handler, "").owns; }
mr_format PlanView::format(const std::string& handler) const { return output(handler, "").format; }
const plan::Step& PlanView::step(const std::string& handler) const { return plan_->steps[declared(handler).step]; }
const plan::Pace& PlanView::pace(const std::string& handler) const { return plan_->paces[step(handler).pace]; }

size_t PlanView::count_of(const std::string& words) const {
  const std::string all = text();
  size_t count = 0;
  for (size_t at = all.find(words); at != std::string::npos; at = all.find(words, at + words.size())) ++count;
  return count;
}

std::string PlanView::line_with(const std::string& words) const {
  const std::string all = text();
  const size_t at = all.find(words);
  if (at == std::string::npos) throw std::invalid_argument("the plan does not say: " + words + "\n" + all);
  const size_t begin = all.rfind('\n', at) + 1;
  return all.substr(begin, all.find('\n', at) - begin);
}

bool PlanView::has_note(const std::string& words) const {
  return std::any_of(plan_->notes.begin(), plan_->notes.end(),
                     [&](const std::string& note) { return contains(note, words); });
}

std::vector<std::string> PlanView::domains() const {
  std::vector<std::string> names;
  for (const plan::Domain& domain : plan_->domains) names.push_back(domain.name);
  return names;
}

std::vector<ClockView> PlanView::clocks() const {
  std::vector<ClockView> list;
  for (uint32_t c = 0; c < plan_->clocks.size(); ++c) {
    const plan::Clock& clock = plan_->clocks[c];
    ClockView view{plan::mode_word(clock), "", clock.rate, clock.realtime(), clock.in_flight_least, {}};
    if (clock.driver != plan::kNone) view.driver = plan_->steps[clock.driver].name;
    for (const plan::Pace& pace : plan_->paces)
      if (pace.kind == plan::PaceKind::clock && pace.clock == c)
        for (const uint32_t s : pace.sources) view.sources.push_back(plan_->steps[s].name);
    list.push_back(std::move(view));
  }
  return list;
}

const plan::HandlerPlan& PlanView::declared(const std::string& name) const {
  for (const plan::HandlerPlan& handler : plan_->handlers)
    if (handler.name == name) return handler;
  throw std::invalid_argument("no such handler: " + name);
}

const plan::Output& PlanView::output(const std::string& handler, const std::string& name) const {
  for (const uint32_t o : step(handler).outputs)
    if (name.empty() || plan_->outputs[o].name == name) return plan_->outputs[o];
  throw std::invalid_argument("no such output: " + handler + "." + name);
}

std::string PlanView::place(const std::string& handler) const { return plan_->domains[declared(handler).domain].name; }

bool PlanView::waits_for(const std::string& writer, const std::string& reader) const {
  if (std::none_of(plan_->steps.begin(), plan_->steps.end(), [&](const plan::Step& s) { return s.name == reader; }))
    throw std::invalid_argument("no such step: " + reader);
  const std::vector<uint32_t>& after = step(writer).after;
  return std::any_of(after.begin(), after.end(), [&](uint32_t s) { return plan_->steps[s].name == reader; });
}

bool PlanView::comes_later(const std::string& handler, const std::string& than) const {
  return declared(handler).step > declared(than).step;
}

bool PlanView::moves(const std::string& handler) const {
  return plan::moves(*plan_, plan_->segments[step(handler).segment]);
}

bool PlanView::read_the_same(const std::string& one, const std::string& other) const {
  return step(one).inputs.at(0).output == step(other).inputs.at(0).output;
}

bool PlanView::gated_by(const std::string& handler, const std::string& other) const {
  const uint32_t parent = pace(handler).parent;
  return parent != plan::kNone && parent == step(other).pace;
}

GateView PlanView::gate(const std::string& handler) const {
  if (!decoupled(handler)) throw std::invalid_argument(handler + " has no gate: it is not decoupled from its clock");
  const plan::Step& gate = plan_->steps[pace(handler).gate];
  const plan::Channel& channel = plan_->channels[gate.channel()];
  return {gate.every, channel.depth, !gate.inputs.empty(), channel.queued, channel.busy, channel.every_tick};
}

RingView PlanView::view(const plan::Ring& ring) const {
  return {plan_->domains[ring.domain].name, ring.length, ring.capacity, ring.dynamic, ring.pinned, ring.reasons};
}

RingView PlanView::ring(const std::string& handler, const std::string& name) const {
  return view(plan_->rings[output(handler, name).ring]);
}

std::vector<RingView> PlanView::rings() const {
  std::vector<RingView> list;
  for (const plan::Ring& ring : plan_->rings) list.push_back(view(ring));
  return list;
}

bool PlanView::share_memory(const std::string& one, const std::string& other) const {
  return output(one, "").ring == output(other, "").ring;
}

bool PlanView::packed(const std::string& handler) const {
  return plan_->rings[output(handler, "").ring].pack != plan::kNone;
}

bool PlanView::packed_together(const std::string& one, const std::string& other) const {
  const uint32_t pack = plan_->rings[output(one, "").ring].pack;
  return pack != plan::kNone && pack == plan_->rings[output(other, "").ring].pack;
}

SegmentView PlanView::view(const plan::Segment& segment) const {
  SegmentView view;
  view.domain = plan_->domains[segment.domain].name;
  view.lane = segment.lane;
  view.lanes = segment.lanes;
  view.thread = segment.home;
  view.by_a_worker = segment.home < plan_->workers;
  view.pinned = segment.pinned;
  view.blocking = segment.blocking;
  view.heavy = segment.heavy;
  for (const uint32_t s : segment.steps) view.steps.push_back({kind_word(plan_->steps[s].kind), plan_->steps[s].name});
  return view;
}

std::vector<SegmentView> PlanView::all_segments() const {
  std::vector<SegmentView> list;
  for (const plan::Segment& segment : plan_->segments) list.push_back(view(segment));
  return list;
}

SegmentView PlanView::segment(const std::string& handler) const { return view(plan_->segments[step(handler).segment]); }

std::vector<std::string> PlanView::segments() const {
  std::vector<std::string> list;
  for (const plan::Segment& segment : plan_->segments) {
    std::string names;
    for (const uint32_t s : segment.steps)
      if (plan_->steps[s].called()) names += (names.empty() ? "" : " ") + plan_->steps[s].name;
    if (!names.empty()) list.push_back(names);
  }
  return list;
}

std::vector<RegionView> PlanView::regions() const {
  std::vector<RegionView> list;
  for (const plan::Region& region : plan_->regions) {
    RegionView view{region.slots, {}, {}};
    for (const uint32_t s : region.steps) {
      view.steps.push_back(plan_->steps[s].name);
      if (plan_->steps[s].called()) view.handlers.push_back(plan_->steps[s].name);
    }
    list.push_back(std::move(view));
  }
  return list;
}

std::vector<CopyView> PlanView::copies() const {
  std::vector<CopyView> list;
  for (const plan::TransferPlan& transfer : plan_->transfers) {
    const plan::Step& step = plan_->steps[transfer.step];
    CopyView copy{transfer.route.front(),
                  transfer.route.back(),
                  plan_->domains[step.domain].name,
                  transfer.bytes,
                  transfer.predicted_us,
                  transfer.one_by_one_us,
                  transfer.reason,
                  transfer.edges.size(),
                  step.inputs.size(),
                  step.outputs.size(),
                  {}};
    for (const uint32_t output : step.as<plan::CopyStep>().presumed)
      copy.presumed.push_back(plan_->steps[plan_->outputs[output].step].name);
    list.push_back(std::move(copy));
  }
  return list;
}

std::vector<std::string> PlanView::hops() const {
  std::vector<std::string> list;
  for (const CopyView& copy : copies()) list.push_back(copy.from + " → " + copy.to);
  std::sort(list.begin(), list.end());
  return list;
}

std::vector<uint32_t> PlanView::queue_capacities() const {
  std::vector<uint32_t> list;
  for (const plan::Channel& channel : plan_->channels) list.push_back(channel.capacity);
  return list;
}

} // namespace millrace::test
