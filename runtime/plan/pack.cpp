// Joins small copies that cross the same boundary in one tick: on a device such a copy costs no more than its start
// (semantics.md 4.6). The blocks of packed values lie side by side, so nothing is gathered first.
#include <algorithm>
#include <cmath>
#include <optional>

#include "plan/draft.h"
#include "plan/explained.h"
#include "plan/memory.h"
#include "plan/order.h"
#include "plan/reachability.h"

namespace millrace::plan {

namespace {

// The time assumed for a handler of unknown cost: so long that no other handler is made to wait for it.
constexpr double kUnknownUs = 300;
constexpr size_t kMembersMax = 64; // a copy keeps one bit for each member, set if it is wanted

class PackCopies {
 public:
  explicit PackCopies(Draft& draft) : draft_(draft), plan_(draft.plan) {}

  void run() {
    for (uint32_t s = 0; s < plan_.steps.size(); ++s) into_.push_back(s);
    find_fixed_places();
    find_times();
    for (uint32_t s = 0; s < plan_.steps.size(); ++s) {
      if (!plan_.steps[s].is<CopyStep>() || is_packed(s) || !is_small(s)) continue;
      std::vector<uint32_t> pack{s};
      for (uint32_t other = s + 1; other < plan_.steps.size(); ++other)
        if (joins(pack, other)) pack.push_back(other);
      if (pack.size() > 1) join(pack);
    }
    remove_joined();
  }

 private:
  const Output& source_of(uint32_t s) const { return plan_.outputs[plan_.steps[s].inputs[0].output]; }
  const Output& target_of(uint32_t s) const { return plan_.outputs[plan_.steps[s].outputs[0]]; }
  const HopPrice& hop_of(uint32_t s) const { return find_hop(draft_, source_of(s).domain, target_of(s).domain)->price; }
  double bytes_of(uint32_t s) const { return static_cast<double>(copied_bytes(source_of(s).format)); }
  bool is_packed(uint32_t s) const { return source_of(s).pack != kNone || target_of(s).pack != kNone; }

  // True if the bytes cost no more than the start of the copy, and their place is a function of the tick.
  bool is_small(uint32_t s) const {
    if (source_of(s).domain == target_of(s).domain) return false; // a hop has a price
    if (target_of(s).kept) return false;                          // it is not copied on each tick
    const HopPrice& hop = hop_of(s);
    return hop.copy_us(bytes_of(s)) <= 2 * hop.latency_us && fixed_[plan_.steps[s].inputs[0].output] &&
           fixed_[plan_.steps[s].outputs[0]];
  }

  // Finds the outputs whose blocks no step holds for longer than their ticks, shares, or writes over.
  void find_fixed_places() {
    for (const Output& output : plan_.outputs) {
      const bool own =
          output.owns && output.forwards < 0 && output.in_place < 0 && output.origin == kNone && !output.kept;
      const bool read_ahead = output.step != kNone && plan_.steps[output.step].is<SourceStep>();
      const bool arrives = output.step != kNone && plan_.steps[output.step].is<EntryStep>();
      fixed_.push_back(own && !read_ahead && !arrives);
    }
    for (const Step& step : plan_.steps) {
      for (size_t i = 0; i < step.inputs.size(); ++i) {
        const StepInput& input = step.inputs[i];
        if (input.output == kNone) continue;
        const bool reads = step.is<HandlerStep>() || step.is<CopyStep>() || step.is<FinishStep>();
        const bool shared = std::any_of(step.outputs.begin(), step.outputs.end(), [&](uint32_t made) {
          const Output& output = plan_.outputs[made];
          return output.forwards == static_cast<int32_t>(i) || output.in_place == static_cast<int32_t>(i);
        });
        if (!reads || shared || input.keeps > 0 || input.repeat_last) fixed_[input.output] = false;
      }
    }
  }

  // Made at the first call, since most plans never need it.
  Reachability& waits() {
    if (!waits_) waits_ = waits_of(plan_);
    return *waits_;
  }

  bool joins(const std::vector<uint32_t>& pack, uint32_t s) {
    const Step& step = plan_.steps[s];
    const Step& first = plan_.steps[pack[0]];
    if (!step.is<CopyStep>() || is_packed(s) || pack.size() == kMembersMax) return false;
    if (step.pace != first.pace || step.level != first.level) return false;
    if (source_of(s).domain != source_of(pack[0]).domain || target_of(s).domain != target_of(pack[0]).domain)
      return false;
    if (!is_small(s)) return false;
    const HopPrice& hop = hop_of(s);
    double bytes = bytes_of(s);
    for (const uint32_t other : pack) bytes += bytes_of(other);
    if (hop.copy_us(bytes) > 2 * hop.latency_us) return false; // the first would wait for the bytes of the last
    return std::all_of(pack.begin(), pack.end(), [&](uint32_t other) {
      const bool same_maker = source_of(other).step == source_of(s).step;
      if (!same_maker && std::abs(made_us_[source_of(other).step] - made_us_[source_of(s).step]) > hop.latency_us)
        return false;
      return !waits().leads(other, s) && !waits().leads(s, other);
    });
  }

  // Finds when each step is done in a tick that nothing holds up.
  void find_times() {
    made_us_.resize(plan_.steps.size());
    for (uint32_t s = 0; s < plan_.steps.size(); ++s) {
      const Step& step = plan_.steps[s];
      for (const StepInput& input : step.inputs)
        if (input.output != kNone && input.delay == 0)
          made_us_[s] = std::max(made_us_[s], made_us_[plan_.outputs[input.output].step]);
      if (step.handler() == kNone) continue;
      const int64_t cost_ns = plan_.handlers[step.handler()].cost_ns;
      made_us_[s] += cost_ns > 0 ? static_cast<double>(cost_ns) / 1000 : kUnknownUs;
    }
  }

  void join(const std::vector<uint32_t>& pack) {
    const uint32_t number = packs_;
    packs_ += 2; // one for the sources, one for the targets
    Step& first = plan_.steps[pack[0]];
    CopyStep& joined = first.as<CopyStep>();
    joined.members.assign(joined.readers.size(), 0);
    for (uint32_t member = 0; member < pack.size(); ++member) {
      Step& step = plan_.steps[pack[member]];
      Output& target = plan_.outputs[step.outputs[0]];
      plan_.outputs[step.inputs[0].output].pack = number;
      target.pack = number + 1;
      if (member == 0) continue;
      target.step = pack[0];
      target.port = member;
      first.inputs.push_back(step.inputs[0]);
      first.outputs.push_back(step.outputs[0]);
      const std::vector<uint32_t>& readers = step.as<CopyStep>().readers;
      joined.readers.insert(joined.readers.end(), readers.begin(), readers.end());
      joined.members.insert(joined.members.end(), readers.size(), member);
      first.after.insert(first.after.end(), step.after.begin(), step.after.end());
      into_[pack[member]] = pack[0];
      waits().join(pack[0], pack[member]);
    }
    describe(pack);
  }

  void describe(const std::vector<uint32_t>& pack) {
    TransferPlan* shown = transfer_of(pack[0]);
    const HopPrice& hop = hop_of(pack[0]);
    double one_by_one_us = shown->predicted_us;
    for (size_t member = 1; member < pack.size(); ++member) {
      const TransferPlan& other = *transfer_of(pack[member]);
      shown->edges.insert(shown->edges.end(), other.edges.begin(), other.edges.end());
      shown->bytes += other.bytes;
      if (other.reason != shown->reason) shown->reason += "; " + other.reason;
      one_by_one_us += other.predicted_us;
    }
    shown->predicted_us = hop.copy_us(static_cast<double>(shown->bytes));
    shown->one_by_one_us = one_by_one_us;
  }

  TransferPlan* transfer_of(uint32_t s) {
    return &*std::find_if(plan_.transfers.begin(), plan_.transfers.end(),
                          [s](const TransferPlan& transfer) { return transfer.step == s; });
  }

  void remove_joined() {
    if (packs_ == 0) return;
    std::erase_if(plan_.transfers, [&](const TransferPlan& transfer) { return into_[transfer.step] != transfer.step; });
    std::vector<uint32_t> position(plan_.steps.size());
    std::vector<Step> kept;
    for (uint32_t s = 0; s < plan_.steps.size(); ++s) {
      if (into_[s] != s) continue;
      position[s] = static_cast<uint32_t>(kept.size());
      kept.push_back(std::move(plan_.steps[s]));
    }
    for (uint32_t s = 0; s < position.size(); ++s)
      if (into_[s] != s) position[s] = position[into_[s]];
    plan_.steps = std::move(kept);
    renumber(plan_, position);
    order_steps(draft_); // a joined copy waits for all that each of its parts waited for
  }

  Draft& draft_;
  Plan& plan_;
  uint32_t packs_ = 0;
  std::vector<bool> fixed_;           // by output
  std::vector<double> made_us_;       // by step
  std::optional<Reachability> waits_; // each joined copy counts as one
  std::vector<uint32_t> into_;        // by step: the step that does its work now, mostly itself
};

} // namespace

void pack(Draft& draft) {
  if (!draft.plan.transfers.empty()) PackCopies(draft).run();
}

} // namespace millrace::plan
