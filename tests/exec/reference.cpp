// The rules, one tick after another; see reference.h.
#include "reference.h"
#include "tests/exec/test_handlers.h"

#include <algorithm>
#include <optional>
#include <stdexcept>

namespace millrace::test {

namespace {

// A value, and whether it is the empty one that `initial:` stands for.
struct Value {
  int64_t number = 0;
  bool initial = false;
};
using Slot = std::optional<Value>;

struct ToldToFail : std::runtime_error {
  using std::runtime_error::runtime_error;
};

struct Node {
  const graph::Handler* declared = nullptr;
  std::vector<size_t> edges; // of its inputs, in order
  std::vector<Slot> outputs; // by tick
  std::vector<bool> called;  // by tick
  std::vector<Slot> last;    // by input: what a delayed required one repeats
  std::vector<int64_t> past; // t.keep
  int64_t given = 0;         // t.count
  bool ended = false;
};

class Reference {
 public:
  Reference(const graph::Graph& graph, const std::vector<exec::AppliedChange>& script)
      : graph_(graph), script_(script) {
    for (const graph::Handler& declared : graph.handlers) {
      Node& node = nodes_[declared.name];
      node.declared = &declared;
      for (const char* port : {"", "in", "a", "b", "extra"}) // the order in which the handlers declare them
        for (size_t e = 0; e < graph.edges.size(); ++e)
          if (graph.edges[e].target == declared.name && graph.edges[e].target_port == port) node.edges.push_back(e);
      node.last.resize(node.edges.size());
    }
  }

  Expected run() {
    Expected expected;
    for (tick_ = 0;; ++tick_) {
      for (auto& [name, node] : nodes_)
        if (is_source(node)) node.outputs.push_back(count(node));
      if (all_ended()) return with_firings(expected);
      try {
        // Every handler whose inputs of this tick are there, until all are.
        for (size_t done = 0; done < nodes_.size();) {
          const size_t before = done;
          done = 0;
          for (auto& [name, node] : nodes_) {
            if (node.outputs.size() <= tick_ && inputs_are_there(node)) node.outputs.push_back(fire(node, expected));
            done += node.outputs.size() > tick_;
          }
          if (done == before && done < nodes_.size()) throw std::logic_error("the graph has a cycle");
        }
      } catch (const ToldToFail&) {
        expected.ends_at = tick_;
        for (auto& [sink, log] : expected.logs)
          std::erase_if(log, [&](const Seen& seen) { return seen.index >= tick_; });
        return with_firings(expected);
      }
    }
  }

 private:
  int64_t param(const Node& node, const std::string& name, int64_t otherwise) const {
    int64_t value = otherwise;
    for (const graph::Param& param : node.declared->params)
      if (param.name == name) value = std::stoll(param.text);
    for (const exec::AppliedChange& change : script_)
      if (change.change.handler == node.declared->name && change.change.param == name && change.tick <= tick_)
        value = std::stoll(change.change.text);
    return value;
  }
  bool turn(const Node& node, const char* period) const {
    const auto k = static_cast<uint64_t>(param(node, period, 0));
    return k > 0 && tick_ % k == k - 1;
  }
  bool required(const Node& node, size_t input) const {
    const std::string& type = node.declared->type;
    if (type == "t.join" || type == "t.sink") return false;
    return type != "t.paced" || graph_.edges[node.edges[input]].target_port != "extra";
  }
  const Node& source(size_t edge) const { return nodes_.at(graph_.edges[edge].source); }

  Slot count(Node& node) {
    node.ended = node.ended || node.given >= param(node, "count", 0);
    if (node.ended) return {};
    const int64_t n = node.given++;
    const int64_t silent = param(node, "silent_every", 0);
    if (silent > 0 && n % silent == silent - 1) return {};
    if (node.declared->type == "t.foreign") return Value{7};
    return Value{param(node, "first", 0) + n};
  }
  static bool is_source(const Node& node) {
    return node.declared->type == "t.count" || node.declared->type == "t.foreign";
  }
  bool all_ended() const {
    return std::all_of(nodes_.begin(), nodes_.end(),
                       [](const auto& entry) { return !is_source(entry.second) || entry.second.ended; });
  }

  Expected& with_firings(Expected& expected) const {
    for (const auto& [name, node] : nodes_)
      for (uint64_t tick = 0; tick < tick_; ++tick)
        expected.firings[name].push_back({!is_source(node) && node.called[tick], node.outputs[tick].has_value(),
                                          node.outputs[tick] && node.outputs[tick]->initial});
    return expected;
  }

  bool inputs_are_there(const Node& node) const {
    return std::all_of(node.edges.begin(), node.edges.end(), [&](size_t e) {
      const graph::Edge& edge = graph_.edges[e];
      const uint64_t back = edge.delay + edge.lag;
      return tick_ < back || source(e).outputs.size() > tick_ - back;
    });
  }

  Slot read(Node& node, size_t input) {
    const graph::Edge& edge = graph_.edges[node.edges[input]];
    const std::vector<Slot>& outputs = source(node.edges[input]).outputs;
    const Slot initial = edge.initial_empty ? Slot(Value{0, true}) : Slot();
    if (edge.policy == graph::Policy::latest) {
      for (uint64_t at = tick_ + 1; at-- > 0;)
        if (at + edge.lag <= tick_ && outputs[at]) return outputs[at];
      return initial;
    }
    if (tick_ < edge.delay) return initial;
    Slot slot = outputs[tick_ - edge.delay];
    if (edge.delay == 0 || !required(node, input)) return slot;
    if (slot) node.last[input] = slot;
    return node.last[input] ? node.last[input] : initial;
  }

  Slot fire(Node& node, Expected& expected) {
    std::vector<Slot> inputs;
    bool fires = tick_ % node.declared->every == 0, requires_one = false, reads_queue = false, called = false;
    for (size_t i = 0; i < node.edges.size(); ++i) {
      inputs.push_back(read(node, i));
      if (!inputs.back() && required(node, i)) fires = false;
      const graph::Policy policy = graph_.edges[node.edges[i]].policy;
      if (policy == graph::Policy::latest) continue;
      requires_one = requires_one || required(node, i);
      reads_queue = reads_queue || policy == graph::Policy::queue;
      called = called || inputs.back();
    }
    if (reads_queue && !requires_one && !called) fires = false; // it runs at the queue's values
    node.called.push_back(fires);
    if (!fires) return {};
    const Slot slot = node.declared->type == "t.sink" ? Slot() : result(node, inputs);
    Seen seen{tick_, 0, {}};
    for (const Slot& input : inputs) seen.values.push_back(input ? input->number : kEmpty);
    if (node.declared->type == "t.keep") seen.values = {slot->number};
    const std::string log = log_of(node);
    if (!log.empty()) expected.logs[log].push_back(seen);
    return slot;
  }
  static std::string log_of(const Node& node) {
    for (const graph::Param& param : node.declared->params)
      if (param.name == "log") return param.text;
    return "";
  }

  Slot result(Node& node, const std::vector<Slot>& inputs) {
    const std::string& type = node.declared->type;
    if (type == "t.join") {
      auto value = static_cast<int64_t>(tick_);
      for (size_t i = 0; i < inputs.size(); ++i)
        value = mix(value, inputs[i] ? inputs[i]->number : -1 - static_cast<int64_t>(i));
      return Value{value};
    }
    if (type == "t.need") return Value{thousands(inputs[0]->number, inputs[1]->number)};
    if (type == "t.paced") return paced(node, inputs);
    if (type == "t.late") return Value{inputs[0]->number};
    if (type == "t.paint") return Value{inputs[0]->number + param(node, "add", 1)};
    if (type == "t.forward") return turn(node, "silent_every") ? Slot() : inputs[0];
    if (type == "t.keep") return keep(node, *inputs[0]);
    return relay(node, *inputs[0]);
  }

  Slot paced(const Node& node, const std::vector<Slot>& inputs) const {
    int64_t in = 0, extra = 999;
    for (size_t i = 0; i < inputs.size(); ++i) {
      if (required(node, i))
        in = inputs[i]->number;
      else if (inputs[i])
        extra = inputs[i]->number;
    }
    return Value{thousands(in, extra)};
  }

  Slot keep(Node& node, const Value& value) const {
    node.past.push_back(value.number);
    int64_t total = 0;
    for (size_t i = node.past.size(), n = 0; i-- > 0 && n < 3; ++n) total = sum(total, node.past[i]);
    return Value{total};
  }

  Slot relay(const Node& node, const Value& value) const {
    const int64_t fail_at = param(node, "fail_at", -1);
    if (fail_at == static_cast<int64_t>(tick_) || turn(node, "fail_every")) {
      if (node.declared->on_error == graph::OnError::fail) throw ToldToFail(node.declared->name);
      return node.declared->on_error == graph::OnError::bypass ? Slot(value) : Slot();
    }
    if (turn(node, "silent_every")) return {};
    return Value{value.number + param(node, "add", 0)};
  }

  const graph::Graph& graph_;
  const std::vector<exec::AppliedChange>& script_;
  std::map<std::string, Node> nodes_;
  uint64_t tick_ = 0;
};

} // namespace

Expected run_by_the_rules(const graph::Graph& graph, const std::vector<exec::AppliedChange>& script) {
  return Reference(graph, script).run();
}

} // namespace millrace::test
