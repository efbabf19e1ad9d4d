// Adds copies: an edge that leaves its domain goes through copy steps, one for each (buffer, domain), so that all
// readers there share it and longer routes share their first hops (semantics.md 3.4); or the value is read in place
// (3.6).
#include <algorithm>
#include <map>

#include "observe/error.h"
#include "observe/error_codes.h"
#include "plan/domain.h"
#include "plan/draft.h"
#include "plan/explained.h"
#include "plan/group_plan.h"
#include "plan/machine.h"
#include "plan/memory.h"
#include "plan/order.h"
#include "plan/reachability.h"
#include "plugin/handler_info.h"

namespace millrace::plan {

namespace {

// The most bytes of an item's result that are copied once more on the host, to save a copy of its own from the device.
constexpr uint64_t kCopiedOutMost = 65'536;
// The cost assumed for a hop between the host and a device that was not measured: a card on PCIe 3.0 x16.
constexpr double kGuessedLatencyUs = 10, kGuessedUsPerByte = 1.0 / 12'000;
// The cost assumed for a copy of some records within the memory of a device.
constexpr double kWithinUs = 3;

class Router {
 public:
  explicit Router(Draft& draft) : draft_(draft), plan_(draft.plan) {}

  void run() {
    const size_t step_count = plan_.steps.size(); // transfers are appended
    count_readers(step_count);
    for (uint32_t s = 0; s < step_count; ++s)
      for (uint32_t i = 0; i < plan_.steps[s].inputs.size(); ++i)
        if (crosses(s, i)) lead(s, i);
    leave_out_unread_items();
    describe();
  }

 private:
  // Only handlers and links read bytes; the other steps move references.
  bool crosses(uint32_t s, uint32_t i) const {
    const Step& step = plan_.steps[s];
    const uint32_t output = step.inputs[i].output;
    if (is_departure(step)) return output != kNone && !plan_.in_host_memory(plan_.outputs[output].domain);
    if (!step.is<HandlerStep>() || output == kNone) return false;
    return plan_.outputs[output].domain != step.domain || wants_a_slot(step, plan_.outputs[output]);
  }

  // Records that a region reads by `latest` lie in any block of their ring, and a recording knows one block a slot. So
  // they are copied into the slot of each tick, also where they are in the region's memory (semantics.md 4.5).
  bool wants_a_slot(const Step& reader, const Output& output) const {
    const Step& resolve = plan_.steps[output.step];
    return resolve.is<ResolveStep>() && plan_.channels[resolve.channel()].kind == ChannelKind::latest &&
           output.format.kind == MR_KIND_RECORDS && capturable(plan_, reader);
  }

  // True if a copy in that domain serves until the next value comes, and is not made for each tick (semantics.md 3.7):
  // the value is a lasting one, is read by `latest`, and nobody there holds it beyond its tick.
  bool keeps_copy(uint32_t output, uint32_t domain) const {
    const Step& resolve = plan_.steps[plan_.outputs[output].step];
    if (plan_.in_host_memory(domain) || !resolve.is<ResolveStep>() || plan_.paces[resolve.pace].kind == PaceKind::batch)
      return false;
    const Output& origin = plan_.outputs[plan_.outputs[output].origin];
    if (plan_.channels[resolve.channel()].kind != ChannelKind::latest || !origin.lasting) return false;
    return std::none_of(plan_.steps.begin(), plan_.steps.end(), [&](const Step& step) {
      return step.domain == domain && std::any_of(step.inputs.begin(), step.inputs.end(), [&](const StepInput& input) {
               return input.output == output && (input.keeps > 0 || input.delay > 0 || input.repeat_last);
             });
    });
  }

  // A gate whose ticks leave for another node: a link sends bytes of the host.
  bool is_departure(const Step& step) const {
    return step.is<GateStep>() && plan_.channels[step.channel()].to == kNone;
  }

  void count_readers(size_t step_count) {
    for (uint32_t s = 0; s < step_count; ++s)
      for (uint32_t i = 0; i < plan_.steps[s].inputs.size(); ++i)
        if (crosses(s, i)) ++reader_count_[{plan_.steps[s].inputs[i].output, plan_.steps[s].domain}];
  }

  const CheapestRoutes& ways(uint64_t bytes) {
    const auto [at, fresh] = ways_.try_emplace(bytes);
    if (fresh) at->second = ways_for(draft_, static_cast<double>(bytes));
    return at->second;
  }

  void lead(uint32_t s, uint32_t i) {
    const uint32_t output = plan_.steps[s].inputs[i].output, domain = plan_.steps[s].domain;
    const uint32_t edge = plan_.steps[s].inputs[i].edge;
    if (plan_.steps[s].is<HandlerStep>() && reads_in_place(s, i)) return;
    const graph::Edge* declared = edge == kNone ? nullptr : draft_.edges[edge].declared;
    if (declared && declared->forbid_copy)
      throw Failure(
          Error{code::forbidden_copy,
                "the edge " + plan_.edges[edge].from + " → " + plan_.edges[edge].to + " needs a copy, which it forbids",
                declared->place,
                {plan_.edges[edge].from + " is in " + plan_.domains[plan_.outputs[output].domain].name,
                 plan_.edges[edge].to + " is in " + plan_.domains[domain].name},
                "",
                "device: " + plan_.domains[plan_.outputs[output].domain].name});
    const bool is_item =
        plan_.steps[plan_.outputs[output].step].is<GiveStep>() && plan_.outputs[output].origin != kNone;
    plan_.steps[s].inputs[i].output = is_item ? item_in(output, domain, edge) : replica(output, domain, s, edge);
  }

  // Results that are read in other domains alone are not held where they were made.
  void leave_out_unread_items() {
    if (items_.empty()) return;
    std::vector<bool> is_read(plan_.outputs.size());
    for (const Step& step : plan_.steps)
      for (const StepInput& input : step.inputs)
        if (input.output != kNone) is_read[input.output] = true;
    for (Step& step : plan_.steps)
      if (auto* give = std::get_if<GiveStep>(&step.kind))
        for (size_t o = 0; o < step.outputs.size(); ++o)
          if (!is_read[step.outputs[o]]) give->results[o] = kNone;
  }

  // The result of an item in another domain: the group's pace copies it, for the items of a firing at once, and deals
  // out what has arrived.
  uint32_t item_in(uint32_t item, uint32_t domain, uint32_t edge) {
    const auto known = items_.find({item, domain});
    if (known != items_.end()) return known->second;
    const uint32_t give = plan_.outputs[item].step;
    const uint32_t deal = plan_.groups[plan_.steps[give].as<GiveStep>().group].deal;
    const uint32_t made = replica(plan_.outputs[item].origin, domain, deal, edge);
    std::vector<StepInput>& dealt = plan_.steps[deal].inputs;
    auto at = std::find_if(dealt.begin(), dealt.end(), [&](const StepInput& input) { return input.output == made; });
    if (at == dealt.end()) {
      StepInput input;
      input.output = made;
      input.required = false;
      at = dealt.insert(at, input);
    }
    Output result = plan_.outputs[item];
    result.port = static_cast<uint32_t>(plan_.steps[give].outputs.size());
    result.domain = domain;
    // Blocks of a firing that arrive side by side come in one copy. Small values are copied out on the host for that;
    // large ones stay where they arrive.
    const bool is_small = capacity_of(result.format) <= kCopiedOutMost;
    result.origin = is_small && plan_.in_host_memory(domain) ? kNone : made;
    const auto output = static_cast<uint32_t>(plan_.outputs.size());
    plan_.steps[give].as<GiveStep>().results.push_back(static_cast<uint32_t>(at - dealt.begin()));
    plan_.steps[give].outputs.push_back(output);
    plan_.outputs.push_back(result);
    return items_[{item, domain}] = output;
  }

  bool is_declared_gpu(uint32_t s, uint32_t i) const {
    const DraftHandler& handler = draft_.handlers[plan_.steps[s].handler()];
    return handler.info->ports[handler.input_port[i]].raw.memory == MR_MEMORY_GPU;
  }

  // True if all readers of the domain together read it in place for no more than the copy would cost. Records the
  // access.
  bool reads_in_place(uint32_t s, uint32_t i) {
    const uint32_t o = plan_.steps[s].inputs[i].output, domain = plan_.steps[s].domain;
    const Output& output = plan_.outputs[o];
    if (plan_.in_host_memory(output.domain) && is_declared_gpu(s, i)) return false;
    const Hop* hop = find_hop(draft_, output.domain, domain);
    if (!hop || hop->price.access_us_per_byte == HopPrice::kInfeasible) return false;
    AccessPlan access{s, i, plan_.steps[s].inputs[i].edge, output.domain, copied_bytes(output.format), 0, 0};
    access.predicted_us = hop->price.access_us_per_byte * static_cast<double>(access.bytes);
    access.copy_us = ways(access.bytes).us(output.domain, domain);
    const double of_all = access.predicted_us * reader_count_.at({o, domain});
    if (of_all > access.copy_us) return false;
    plan_.accesses.push_back(access);
    return true;
  }

  // The output's replica in `domain`, made from the domain before it on the cheapest way there.
  uint32_t replica(uint32_t output, uint32_t domain, uint32_t reader, uint32_t edge) {
    const uint32_t home = plan_.outputs[output].domain;
    const uint32_t before =
        home == domain ? home : ways(copied_bytes(plan_.outputs[output].format)).before(home, domain);
    const uint32_t from = before == home ? output : replica(output, before, reader, edge);
    const auto known = replicas_.find({output, domain});
    if (known != replicas_.end()) {
      record_reader(plan_.outputs[known->second].step, reader, edge);
      return known->second;
    }
    const Output source = plan_.outputs[from];
    const Step producer = plan_.steps[source.step];
    Step step;
    step.kind = CopyStep{};
    const std::string& maker =
        producer.is<FinishStep>() ? plan_.steps[producer.as<FinishStep>().body].name : producer.name;
    step.name = "copy " + maker + "." + source.name + " → " + plan_.domains[domain].name;
    step.pace = producer.pace;
    step.domain = submitter_of(plan_.domains, source.domain, domain);
    StepInput input;
    input.output = from;
    input.required = true;
    step.inputs.push_back(input);
    const uint32_t s = static_cast<uint32_t>(plan_.steps.size());
    const uint32_t replica_output = static_cast<uint32_t>(plan_.outputs.size());
    step.outputs.push_back(replica_output);
    plan_.steps.push_back(step);
    Output made;
    made.step = s;
    made.name = source.name;
    made.format = source.format;
    made.domain = domain;
    made.connected = true;
    made.kept = (from == output || source.kept) && keeps_copy(output, domain);
    plan_.outputs.push_back(made);
    replicas_[{output, domain}] = replica_output;
    record_reader(s, reader, edge);
    return replica_output;
  }

  void record_reader(uint32_t transfer, uint32_t reader, uint32_t edge) {
    auto& readers = plan_.steps[transfer].as<CopyStep>().readers;
    if (readers.empty() || readers.back() != reader) readers.push_back(reader);
    if (edge != kNone) edges_[transfer].push_back(edge);
  }

  void describe() {
    for (uint32_t s = 0; s < plan_.steps.size(); ++s) {
      const Step& step = plan_.steps[s];
      if (!step.is<CopyStep>()) continue;
      const Output& from = plan_.outputs[step.inputs[0].output];
      const Output& to = plan_.outputs[step.outputs[0]];
      TransferPlan shown;
      shown.step = s;
      shown.edges = edges_[s];
      shown.route = {plan_.domains[from.domain].name, plan_.domains[to.domain].name};
      shown.bytes = copied_bytes(from.format);
      const Hop* const hop = find_hop(draft_, from.domain, to.domain);
      shown.predicted_us = to.kept ? 0 : hop ? hop->price.copy_us(static_cast<double>(shown.bytes)) : kWithinUs;
      shown.guessed = !to.kept && (!hop || !hop->measured);
      const std::vector<uint32_t>& fire = step.as<CopyStep>().readers;
      std::string readers;
      for (uint32_t reader : fire) readers += (readers.empty() ? "" : ", ") + plan_.steps[reader].name;
      shown.reason = "read by " + readers + " in " + plan_.domains[plan_.steps[fire.back()].domain].name;
      if (to.kept) shown.reason += "; once for each value";
      plan_.transfers.push_back(shown);
    }
  }

  Draft& draft_;
  Plan& plan_;
  std::map<std::pair<uint32_t, uint32_t>, uint32_t> replicas_, reader_count_; // by (output, domain)
  std::map<std::pair<uint32_t, uint32_t>, uint32_t> items_;                   // result and domain → its output there
  std::map<uint64_t, CheapestRoutes> ways_;                                   // by bytes
  std::map<uint32_t, std::vector<uint32_t>> edges_;
};

// A copy asks if its readers fire, so it waits for their other inputs. All these waits, and the order of steps within a
// segment, must together be free of cycles. A copy that asks for a result which may be owed waits for later ticks, and
// these may read the copy by `delay`. Such waits are added last, together with delayed edges.
class AskReaders {
 public:
  explicit AskReaders(Plan& plan) : plan_(plan), waits_(waits_of(plan)) {
    for (const Segment& segment : plan_.segments)
      for (size_t i = 1; i < segment.steps.size(); ++i) waits_.add(segment.steps[i - 1], segment.steps[i]);
    for (uint32_t r = 0; r < plan_.regions.size(); ++r) join_region(r);
  }

  void run() {
    ask_all(Asked::in_time);
    add_delayed();
    ask_all(Asked::owed);
  }

 private:
  enum class Asked { in_time, owed };

  void ask_all(Asked asked) {
    for (uint32_t t = 0; t < plan_.steps.size(); ++t) {
      if (!plan_.steps[t].is<CopyStep>()) continue;
      for (uint32_t reader : plan_.steps[t].as<CopyStep>().readers) {
        for (const StepInput& input : plan_.steps[reader].inputs) {
          if (input.output == kNone || !input.required || input.delay > 0) continue;
          const uint32_t output = original(input.output);
          const Step& producer = plan_.steps[plan_.outputs[output].step];
          const bool owed = producer.settled_level() > plan_.steps[t].level;
          if (owed == (asked == Asked::owed)) ask(t, output);
        }
      }
    }
  }

  void add_delayed() {
    for (uint32_t s = 0; s < plan_.steps.size(); ++s) {
      const uint32_t region = plan_.steps[s].region;
      for (const StepInput& input : plan_.steps[s].inputs)
        if (input.output != kNone && input.delay > 0)
          waits_.add(plan_.outputs[input.output].step, region == kNone ? s : plan_.regions[region].steps[0]);
    }
  }

  // A region begins as a whole: each of its steps waits for all that enters it.
  void join_region(uint32_t r) {
    const std::vector<uint32_t>& steps = plan_.regions[r].steps;
    const auto enters = [&](uint32_t producer) {
      if (plan_.steps[producer].region != r) waits_.add(producer, steps[0]);
    };
    for (const uint32_t s : steps) {
      for (const StepInput& input : plan_.steps[s].inputs)
        if (waits_in_time(plan_, plan_.steps[s], input)) enters(plan_.outputs[input.output].step);
      for (const uint32_t before : plan_.steps[s].after) enters(before);
      if (s != steps[0]) waits_.add(steps[0], s);
    }
  }

  // The output that a replica is a copy of.
  uint32_t original(uint32_t output) const {
    for (;;) {
      const Step& step = plan_.steps[plan_.outputs[output].step];
      if (!step.is<CopyStep>()) return output;
      output = step.inputs[plan_.outputs[output].port].output;
    }
  }

  void ask(uint32_t transfer, uint32_t output) {
    const uint32_t producer = plan_.outputs[output].step;
    if (transfer == producer || waits_.leads(transfer, producer))
      plan_.steps[transfer].as<CopyStep>().presumed.push_back(output);
    else
      waits_.add(producer, transfer);
  }

  Plan& plan_;
  Reachability waits_;
};

} // namespace

void find_hops(Draft& draft) {
  const std::vector<Domain>& domains = draft.plan.domains;
  draft.hops.assign(domains.size() * domains.size(), {});
  std::string guessed;
  for (uint32_t from = 0; from < domains.size(); ++from) {
    for (uint32_t to = 0; to < domains.size(); ++to) {
      Hop& hop = draft.hops[from * domains.size() + to];
      for (const Hop& known : draft.machine.hops)
        if (known.from == domains[from].name && known.to == domains[to].name) hop = known;
      const bool with_its_host = host_of(domains, from) == to || host_of(domains, to) == from;
      if (from == to || hop.price.copies() || !with_its_host) continue;
      hop.from = domains[from].name;
      hop.to = domains[to].name;
      hop.price.latency_us = kGuessedLatencyUs;
      hop.price.us_per_byte.fill(kGuessedUsPerByte);
      hop.measured = false;
    }
  }
  for (const Hop& hop : draft.hops)
    if (!hop.measured) guessed += (guessed.empty() ? "" : ", ") + hop.from + " → " + hop.to;
  if (!guessed.empty())
    draft.plan.notes.push_back("hops not measured: " + guessed + "; `millrace calibrate` does that");
}

const Hop* find_hop(const Draft& draft, uint32_t from, uint32_t to) {
  const Hop& hop = draft.hops[from * draft.plan.domains.size() + to];
  return hop.from.empty() ? nullptr : &hop;
}

CheapestRoutes ways_for(const Draft& draft, double bytes) {
  return CheapestRoutes(static_cast<uint32_t>(draft.plan.domains.size()), [&](uint32_t from, uint32_t to) {
    const Hop* hop = find_hop(draft, from, to);
    return hop ? hop->price.copy_us(bytes) : HopPrice::kInfeasible;
  });
}

void route(Draft& draft) { Router(draft).run(); }

void break_copy_cycles(Draft& draft) {
  const std::vector<Step>& steps = draft.plan.steps;
  if (std::any_of(steps.begin(), steps.end(), [](const Step& step) { return step.is<CopyStep>(); }))
    AskReaders(draft.plan).run();
}

} // namespace millrace::plan
