// Copies: every edge that leaves its domain is led over transfer steps, one for each (buffer, domain), so that all
// readers there share it and longer routes share their first hops (semantics.md 3.4).
#include <map>

#include "plan/draft.h"

namespace millrace::plan {

namespace {

constexpr uint32_t kHost = 0; // "cpu" is always the first domain

class Router {
 public:
  explicit Router(Draft& draft) : draft_(draft), plan_(draft.plan) {}

  void run() {
    const size_t step_count = plan_.steps.size(); // transfers are appended
    for (uint32_t s = 0; s < step_count; ++s) {
      if (plan_.steps[s].kind != StepKind::handler) continue; // the others move references, not bytes
      for (uint32_t i = 0; i < plan_.steps[s].inputs.size(); ++i) lead(s, i);
    }
    describe();
  }

 private:
  void lead(uint32_t s, uint32_t i) {
    const uint32_t output = plan_.steps[s].inputs[i].output;
    const uint32_t edge = plan_.steps[s].inputs[i].edge;
    if (output == kNone || plan_.outputs[output].domain == plan_.steps[s].domain) return;
    const graph::Edge* declared = edge == kNone ? nullptr : draft_.edges[edge].declared;
    if (declared && declared->forbid_copy)
      throw Failure(
          Error{411,
                "the edge " + plan_.edges[edge].from + " → " + plan_.edges[edge].to + " needs a copy, which it forbids",
                declared->place,
                {plan_.edges[edge].from + " is in " + plan_.domains[plan_.outputs[output].domain],
                 plan_.edges[edge].to + " is in " + plan_.domains[plan_.steps[s].domain]},
                "",
                "device: " + plan_.domains[plan_.outputs[output].domain]});
    plan_.steps[s].inputs[i].output = replica(output, plan_.steps[s].domain, s, edge);
  }

  // The output's replica in `domain`; made by way of the host where neither end is the host.
  uint32_t replica(uint32_t output, uint32_t domain, uint32_t reader, uint32_t edge) {
    const uint32_t home = plan_.outputs[output].domain;
    uint32_t from = output;
    if (home != kHost && domain != kHost) from = replica(output, kHost, reader, edge);
    const auto known = replicas_.find({output, domain});
    if (known != replicas_.end()) {
      note_reader(plan_.outputs[known->second].step, reader, edge);
      return known->second;
    }
    const Output source = plan_.outputs[from];
    const Step producer = plan_.steps[source.step];
    Step step;
    step.kind = StepKind::transfer;
    step.name = "copy " + producer.name + "." + source.name + " → " + plan_.domains[domain];
    step.pace = producer.pace;
    step.domain = domain == kHost ? source.domain : domain; // the device's side submits
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
    plan_.outputs.push_back(made);
    replicas_[{output, domain}] = replica_output;
    note_reader(s, reader, edge);
    return replica_output;
  }

  void note_reader(uint32_t transfer, uint32_t reader, uint32_t edge) {
    auto& readers = plan_.steps[transfer].readers;
    if (readers.empty() || readers.back() != reader) readers.push_back(reader);
    if (edge != kNone) edges_[transfer].push_back(edge);
  }

  void describe() {
    for (uint32_t s = 0; s < plan_.steps.size(); ++s) {
      const Step& step = plan_.steps[s];
      if (step.kind != StepKind::transfer) continue;
      const Output& from = plan_.outputs[step.inputs[0].output];
      const Output& to = plan_.outputs[step.outputs[0]];
      TransferPlan shown;
      shown.step = s;
      shown.edges = edges_[s];
      shown.route = {plan_.domains[from.domain], plan_.domains[to.domain]};
      shown.bytes = capacity_of(from.format) + sizeof(mr_value);
      const std::string& device = plan_.domains[from.domain == kHost ? to.domain : from.domain];
      const auto rate = draft_.machine.bytes_per_us.find(device);
      const auto latency = draft_.machine.latency_us.find(device);
      shown.predicted_us =
          (latency == draft_.machine.latency_us.end() ? 0 : latency->second) +
          (rate == draft_.machine.bytes_per_us.end() ? 0 : static_cast<double>(shown.bytes) / rate->second);
      std::string readers;
      for (uint32_t reader : step.readers) readers += (readers.empty() ? "" : ", ") + plan_.steps[reader].name;
      shown.reason = "read by " + readers + " in " + plan_.domains[plan_.steps[step.readers.back()].domain];
      plan_.transfers.push_back(shown);
    }
  }

  Draft& draft_;
  Plan& plan_;
  std::map<std::pair<uint32_t, uint32_t>, uint32_t> replicas_;
  std::map<uint32_t, std::vector<uint32_t>> edges_;
};

// A copy asks whether its readers fire, so it waits for what else they need. All these waits together must be free of
// cycles, with the order of steps within a segment counted in.
class Asking {
 public:
  explicit Asking(Plan& plan) : plan_(plan), next_(plan.steps.size()) {
    for (uint32_t s = 0; s < plan_.steps.size(); ++s) {
      for (const StepInput& input : plan_.steps[s].inputs)
        if (input.output != kNone && input.delay == 0) next_[plan_.outputs[input.output].step].push_back(s);
      for (uint32_t before : plan_.steps[s].after) next_[before].push_back(s);
    }
    for (const Channel& channel : plan_.channels) next_[channel.from].push_back(channel.to);
    for (const Segment& segment : plan_.segments)
      for (size_t i = 1; i < segment.steps.size(); ++i) next_[segment.steps[i - 1]].push_back(segment.steps[i]);
  }

  void run() {
    for (uint32_t t = 0; t < plan_.steps.size(); ++t) {
      if (plan_.steps[t].kind != StepKind::transfer) continue;
      for (uint32_t reader : plan_.steps[t].readers) {
        for (const StepInput& input : plan_.steps[reader].inputs)
          if (input.output != kNone && input.required && input.delay == 0) ask(t, original(input.output));
      }
    }
  }

 private:
  // The output that a replica is a copy of.
  uint32_t original(uint32_t output) const {
    for (;;) {
      const Step& step = plan_.steps[plan_.outputs[output].step];
      if (step.kind != StepKind::transfer) return output;
      output = step.inputs[0].output;
    }
  }

  void ask(uint32_t transfer, uint32_t output) {
    const uint32_t producer = plan_.outputs[output].step;
    if (leads(transfer, producer))
      plan_.steps[transfer].presumed.push_back(output);
    else
      next_[producer].push_back(transfer);
  }

  bool leads(uint32_t from, uint32_t to) const {
    std::vector<bool> seen(plan_.steps.size());
    std::vector<uint32_t> todo{from};
    while (!todo.empty()) {
      const uint32_t at = todo.back();
      todo.pop_back();
      if (at == to) return true;
      if (seen[at]) continue;
      seen[at] = true;
      todo.insert(todo.end(), next_[at].begin(), next_[at].end());
    }
    return false;
  }

  Plan& plan_;
  std::vector<std::vector<uint32_t>> next_; // by step: who waits for it
};

} // namespace

void route(Draft& draft) { Router(draft).run(); }

void presume(Draft& draft) { Asking(draft.plan).run(); }

} // namespace millrace::plan
