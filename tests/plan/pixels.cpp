// The choice of pixel formats: the fewest conversions, against brute force over whole graphs; then the rules that break
// ties.
#include <millrace/handler.h>

#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <bit>
#include <random>
#include <set>
#include <utility>

#include "plan/compile.h"
#include "plan/explained.h"
#include "plan/memory.h"
#include "plan/plan.h"
#include "plan/prepare.h"
#include "planned.h"
#include "plugin/registry.h"
#include "tests/seed.h"

using namespace millrace;
using namespace millrace::test;

namespace {

// Sets of formats are named by a mask over these.
constexpr std::array kFormats = {Pixel::gray8, Pixel::rgb8, Pixel::nv12, Pixel::i420};
constexpr uint32_t kMasks = 1u << kFormats.size();

constexpr uint64_t pixel_bits(uint32_t mask) {
  uint64_t bits = 0;
  for (size_t i = 0; i < kFormats.size(); ++i)
    if (mask >> i & 1) bits |= bit_of(kFormats[i]);
  return bits;
}

// The formats that the second input of a `pair` takes, and that a `turn` makes.
constexpr uint32_t next_mask(uint32_t mask) { return mask % (kMasks - 1) + 1; }

template <uint32_t kMask>
struct Source final : Handler {
  Output<Image> out{*this, "out", Pixels{pixel_bits(kMask)}};
  void configure(const Formats& formats) override {
    formats.out(out).width = 64;
    formats.out(out).height = 48;
  }
  void process(Tick& tick, Cpu&) { tick.end(); }
};
template <uint32_t kMask>
struct Relay final : Handler {
  Input<Image> in{*this, "in", Pixels{pixel_bits(kMask)}};
  Output<Image> out{*this, "out", like(in)};
  void process(Tick&, Cpu&) {}
};
template <uint32_t kMask>
struct Pair final : Handler {
  Input<Image> a{*this, "a", Pixels{pixel_bits(kMask)}}, b{*this, "b", Pixels{pixel_bits(next_mask(kMask))}};
  Output<Image> out{*this, "out", like(a)};
  void process(Tick&, Cpu&) {}
};
template <uint32_t kMask>
struct Split final : Handler {
  Input<Image> in{*this, "in", Pixels{pixel_bits(kMask)}};
  Output<Image> left{*this, "left", like(in)}, right{*this, "right", like(in)};
  void process(Tick&, Cpu&) {}
};
template <uint32_t kMask>
struct Turn final : Handler {
  Input<Image> in{*this, "in", Pixels{pixel_bits(kMask)}};
  Output<Image> out{*this, "out", Pixels{pixel_bits(next_mask(kMask))}};
  void configure(const Formats& formats) override {
    formats.out(out).width = 64;
    formats.out(out).height = 48;
  }
  void process(Tick&, Cpu&) {}
};

const char* name_of_type(const char* kind, uint32_t mask) {
  static std::set<std::string> names; // tables keep pointers to them
  return names.insert("f." + std::string(kind) + std::to_string(mask)).first->c_str();
}

template <uint32_t... kIndex>
const mr_plugin& make_plugin(std::integer_sequence<uint32_t, kIndex...>) {
  static const mr_handler_type types[] = {
      detail::Type<Source<kIndex + 1>>::table(name_of_type("source", kIndex + 1), "", "")...,
      detail::Type<Relay<kIndex + 1>>::table(name_of_type("relay", kIndex + 1), "", "")...,
      detail::Type<Pair<kIndex + 1>>::table(name_of_type("pair", kIndex + 1), "", "")...,
      detail::Type<Split<kIndex + 1>>::table(name_of_type("split", kIndex + 1), "", "")...,
      detail::Type<Turn<kIndex + 1>>::table(name_of_type("turn", kIndex + 1), "", "")...,
  };
  static const std::vector<const mr_handler_type*> pointers = [] {
    std::vector<const mr_handler_type*> list;
    for (const mr_handler_type& type : types) list.push_back(&type);
    return list;
  }();
  static const mr_plugin plugin = {
      sizeof(mr_plugin), MR_ABI_VERSION, "formats", "1", pointers.data(), static_cast<uint32_t>(pointers.size()), 0};
  return plugin;
}

plan::Plan planned(const Pipeline& pipeline) {
  static const plugin::Registry& registry = [] {
    static plugin::Registry made;
    made.add(make_plugin(std::make_integer_sequence<uint32_t, kMasks - 1>()), "");
    return std::ref(made);
  }();
  static const mr_host host = plugin::basic_host();
  graph::Graph graph = pipeline.graph;
  plan::Prepared prepared = plan::prepare(graph, registry, host);
  return plan::compile(graph, prepared, registry, host, machine_of(1), {});
}

// The format of a handler's only output.
Pixel format_of(const plan::Plan& plan, const std::string& handler) {
  for (const plan::HandlerPlan& known : plan.handlers)
    if (known.name == handler)
      return static_cast<Pixel>(
          std::countr_zero(plan.outputs[plan.steps[known.step].outputs.at(0)].format.pixel_formats));
  return Pixel::none;
}

// A graph as brute force sees it: who takes what from whom, and which outputs repeat an input.
struct Problem {
  struct Input {
    size_t output = 0;
    uint32_t takes = 0; // mask
    bool forbidden = false;
    bool delayed = false; // from its own node or a later one
  };
  struct Output {
    int like = -1; // position among the inputs of its handler
    uint32_t choices = 0;
  };
  struct Node {
    std::vector<Input> inputs;
    std::vector<Output> outputs;
  };
  std::vector<Node> nodes; // every producer before its readers

  size_t first_output_of(const Node& node) const {
    size_t first = 0;
    for (const Node* before = nodes.data(); before != &node; ++before) first += before->outputs.size();
    return first;
  }
  // The output whose format this one repeats, through whatever hands it on.
  size_t root_of(size_t output) const {
    for (const Node& node : nodes) {
      const size_t first = first_output_of(node);
      if (output >= first + node.outputs.size()) continue;
      const int like = node.outputs[output - first].like;
      return like < 0 ? output : root_of(node.inputs[static_cast<size_t>(like)].output);
    }
    return output;
  }
  // True if somebody reads what a node hands on of an input.
  bool passes_on(const Node& node, size_t input) const {
    for (size_t o = 0; o < node.outputs.size(); ++o) {
      if (node.outputs[o].like != static_cast<int>(input)) continue;
      for (const Node& reader : nodes)
        for (const Input& read : reader.inputs)
          if (read.output == first_output_of(node) + o) return true;
    }
    return false;
  }
};

// Tries every format of every output and of every input.
class BruteForce {
 public:
  explicit BruteForce(const Problem& problem) : problem_(problem) {}

  // INT_MAX where nothing works.
  int fewest() {
    settle_inputs(0, 0);
    return least_ == INT32_MAX ? least_ : least_ % kLost;
  }

 private:
  // A reader of colours that gets gray for them is worse than any number of conversions.
  static constexpr int kLost = 1000;
  static constexpr size_t kGrayFormat = 0; // of kFormats
  int cost() const { return lost_ * kLost + static_cast<int>(conversions_.size()); }

  void settle_inputs(size_t node, size_t input) {
    if (cost() >= least_) return;
    if (node == problem_.nodes.size()) return settle_delayed(0);
    const Problem::Node& at = problem_.nodes[node];
    if (input == at.inputs.size()) return settle_outputs(node, 0);
    const Problem::Input& edge = at.inputs[input];
    const auto go_on = [&](size_t format) {
      gets_.push_back(format);
      settle_inputs(node, input + 1);
      gets_.pop_back();
    };
    if (!edge.delayed) return each_format(edge, go_on);
    delayed_.push_back(edge); // what feeds it is not settled yet, and no output is like it
    go_on(0);
    delayed_.pop_back();
  }

  void settle_delayed(size_t at) {
    if (cost() >= least_) return;
    if (at < delayed_.size()) return each_format(delayed_[at], [&](size_t) { settle_delayed(at + 1); });
    least_ = cost();
  }

  // A root that is gray and need not be costs all colours that are taken at the ends of what it reaches.
  int lost_at_root(size_t output) const {
    int lost = 0;
    for (const Problem::Node& node : problem_.nodes)
      for (size_t i = 0; i < node.inputs.size(); ++i)
        lost += problem_.root_of(node.inputs[i].output) == output && node.inputs[i].takes != 1u << kGrayFormat &&
                !problem_.passes_on(node, i);
    return lost;
  }

  // Every format that a reader may get, with the conversion that it takes.
  template <class Each>
  void each_format(const Problem::Input& edge, const Each& each) {
    for (size_t format = 0; format < kFormats.size(); ++format) {
      const bool converted = format != formats_[edge.output];
      if (!(edge.takes >> format & 1) || (converted && edge.forbidden)) continue;
      const bool added = converted && conversions_.insert({edge.output, format}).second;
      const bool loses = converted && format == kGrayFormat && edge.takes != 1u << kGrayFormat;
      lost_ += loses;
      each(format);
      lost_ -= loses;
      if (added) conversions_.erase({edge.output, format});
    }
  }

  void settle_outputs(size_t node, size_t output) {
    const Problem::Node& at = problem_.nodes[node];
    if (output == at.outputs.size()) {
      std::vector<size_t> kept;
      kept.swap(gets_);
      settle_inputs(node + 1, 0);
      kept.swap(gets_);
      return;
    }
    const Problem::Output& made = at.outputs[output];
    for (size_t format = 0; format < kFormats.size(); ++format) {
      if (made.like >= 0 ? gets_[static_cast<size_t>(made.like)] != format : !(made.choices >> format & 1)) continue;
      const bool is_gray_root = made.like < 0 && format == kGrayFormat && made.choices != 1u << kGrayFormat;
      const int lost = is_gray_root ? lost_at_root(formats_.size()) : 0;
      lost_ += lost;
      formats_.push_back(format);
      settle_outputs(node, output + 1);
      formats_.pop_back();
      lost_ -= lost;
    }
  }

  const Problem& problem_;
  std::vector<size_t> formats_; // of the outputs so far
  std::vector<size_t> gets_;    // of this node's inputs so far
  std::vector<Problem::Input> delayed_;
  std::set<std::pair<size_t, size_t>> conversions_; // output and format
  int least_ = INT32_MAX, lost_ = 0;
};

class RandomGraph {
 public:
  explicit RandomGraph(std::mt19937& random) : random_(random) {}

  void make() {
    mask_ = any_mask();
    add("source", {}, {{-1, mask_}});
    for (uint32_t more = up_to(5); more > 0; --more) {
      mask_ = any_mask();
      switch (up_to(5)) {
        case 0: add("source", {}, {{-1, mask_}}); break;
        case 1: add("pair", {mask_, next_mask(mask_)}, {{0, 0}}); break;
        case 2: add("split", {mask_}, {{0, 0}, {0, 0}}); break;
        case 3: add("turn", {mask_}, {{-1, next_mask(mask_)}}); break;
        default: add("relay", {mask_}, {{0, 0}}); break;
      }
    }
    for (size_t n = 0; n < problem.nodes.size(); ++n)
      if (problem.nodes[n].inputs.size() == 2 && up_to(1)) delay(n);
  }

  Pipeline pipeline;
  Problem problem;

 private:
  uint32_t up_to(uint32_t most) { return std::uniform_int_distribution<uint32_t>(0, most)(random_); }
  // Every second one takes a single format, as most that are picky do.
  uint32_t any_mask() { return up_to(1) ? 1u << up_to(kFormats.size() - 1) : 1 + up_to(kMasks - 2); }

  // The second input of a pair is fed by a delay, from its own output or one that comes later.
  void delay(size_t node) {
    Problem::Input& input = problem.nodes[node].inputs[1];
    const uint32_t own = first_output_[node];
    input.output = own + up_to(static_cast<uint32_t>(outputs_.size()) - own - 1);
    input.delayed = true;
    const std::string& from = outputs_[input.output];
    for (graph::Edge& edge : pipeline.graph.edges) {
      if (edge.target != "h" + std::to_string(node) || edge.target_port != "b") continue;
      edge.source = from.substr(0, from.find('.'));
      edge.source_port = from.substr(from.find('.') + 1);
      edge.delay = 1;
      edge.initial_empty = true;
    }
  }

  void add(const std::string& kind, const std::vector<uint32_t>& takes, const std::vector<Problem::Output>& makes) {
    const std::string name = "h" + std::to_string(problem.nodes.size());
    pipeline.add(name, "f." + kind + std::to_string(mask_));
    Problem::Node node;
    node.outputs = makes;
    for (size_t i = 0; i < takes.size(); ++i) {
      const Problem::Input input{up_to(static_cast<uint32_t>(outputs_.size() - 1)), takes[i], up_to(7) == 0, false};
      const std::string port = takes.size() == 1 ? "in" : i == 0 ? "a" : "b";
      pipeline.connect(outputs_[input.output], name + "." + port).forbid_convert = input.forbidden;
      node.inputs.push_back(input);
    }
    problem.nodes.push_back(node);
    first_output_.push_back(static_cast<uint32_t>(outputs_.size()));
    if (kind == "split")
      outputs_.insert(outputs_.end(), {name + ".left", name + ".right"});
    else
      outputs_.push_back(name + ".out");
  }

  std::mt19937& random_;
  uint32_t mask_ = 1;
  std::vector<std::string> outputs_;
  std::vector<uint32_t> first_output_; // by node
};

// source (of `mask`) → relay (takes all) → each of the masks of `readers`.
Pipeline behind_relay(uint32_t mask, const std::vector<uint32_t>& readers) {
  Pipeline p;
  p.add("source", "f.source" + std::to_string(mask));
  p.add("relay", "f.relay15");
  p.connect("source", "relay");
  for (const uint32_t reader : readers) {
    const std::string name = "reader" + std::to_string(p.graph.handlers.size() - 1);
    p.add(name, "f.relay" + std::to_string(reader));
    p.connect("relay", name);
  }
  return p;
}

constexpr uint32_t kGray = 1, kRgb = 2, kNv12 = 4, kI420 = 8;

} // namespace

TEST_CASE("5.1: no choice of formats needs fewer conversions, tried in every way on 1,000 random graphs") {
  const uint32_t seed = random_seed();
  CAPTURE(seed);
  std::mt19937 random(seed);
  int refused = 0, converted = 0;
  for (int i = 0; i < 1000; ++i) {
    CAPTURE(i);
    RandomGraph graph(random);
    graph.make();
    const int fewest = BruteForce(graph.problem).fewest();
    if (fewest == INT32_MAX) {
      int code = 0;
      try {
        planned(graph.pipeline);
      } catch (const Failure& failure) {
        code = failure.error().code;
      }
      REQUIRE(code == 402);
      ++refused;
      continue;
    }
    INFO(graph::to_yaml(graph.pipeline.graph));
    REQUIRE(static_cast<int>(planned(graph.pipeline).inserted.size()) == fewest);
    converted += fewest;
  }
  MESSAGE(converted, " conversions, and ", refused, " graphs that forbid what they need");
  CHECK(converted > 300);
  CHECK(refused > 10);
}

TEST_CASE("5.1: no reader that takes colours gets gray for them, also where that costs a conversion more") {
  Pipeline p;
  p.add("source", "f.source" + std::to_string(kI420));
  p.add("gray", "f.relay" + std::to_string(kGray));
  p.add("colours", "f.relay" + std::to_string(kGray | kRgb));
  p.connect("source", "gray");
  p.connect("source", "colours");
  const plan::Plan plan = planned(p);
  CHECK(plan.inserted.size() == 2);
  CHECK(format_of(plan, "gray") == Pixel::gray8);
  CHECK(format_of(plan, "colours") == Pixel::rgb8);
}

TEST_CASE("5.1: an output that leaves the choice is not gray where somebody would take its colours") {
  // Gray would be the fewest bytes, and in the second and the third the fewest conversions.
  const plan::Plan plain = planned(behind_relay(kGray | kRgb, {kGray | kRgb}));
  CHECK(format_of(plain, "source") == Pixel::rgb8);
  CHECK(plain.inserted.empty());
  const plan::Plan mixed = planned(behind_relay(kGray | kRgb, {kGray, kGray | kRgb}));
  CHECK(format_of(mixed, "source") == Pixel::rgb8);
  CHECK(format_of(mixed, "reader1") == Pixel::gray8);
  CHECK(format_of(mixed, "reader2") == Pixel::rgb8);
  const plan::Plan other = planned(behind_relay(kGray | kNv12, {kGray, kRgb}));
  CHECK(format_of(other, "source") == Pixel::nv12);
  CHECK(other.inserted.size() == 2);
  CHECK(format_of(planned(behind_relay(kGray | kRgb, {kGray})), "source") == Pixel::gray8); // nobody would
}

TEST_CASE("5.1: an output that leaves the choice gets the format that readers downstream of a pass-through want") {
  const plan::Plan plan = planned(behind_relay(kGray | kI420, {kI420, kI420 | kRgb}));
  CHECK(plan.inserted.empty());
  CHECK(format_of(plan, "source") == Pixel::i420);
  CHECK(format_of(plan, "reader2") == Pixel::i420);
}

TEST_CASE("5.1: of formats that need as few conversions, the one of fewest bytes is chosen, then the first") {
  CHECK(format_of(planned(behind_relay(kRgb | kNv12, {})), "source") == Pixel::nv12);
  CHECK(format_of(planned(behind_relay(kNv12 | kI420, {})), "source") == Pixel::nv12);
  CHECK(format_of(planned(behind_relay(kGray | kRgb | kNv12, {kRgb | kNv12})), "source") == Pixel::nv12);
}

TEST_CASE("5.1: one conversion before a handler that passes it on serves all downstream, and the plan says why") {
  Pipeline p = behind_relay(kNv12, {kRgb, kRgb});
  CHECK(planned(p).inserted.size() == 1); // behind the relay, which takes nv12
  CHECK(format_of(planned(p), "relay") == Pixel::nv12);
  p.add("other", "f.relay" + std::to_string(kRgb));
  p.connect("source", "other"); // another reader of the source wants the same: then before it
  const plan::Plan plan = planned(p);
  REQUIRE(plan.inserted.size() == 1);
  CHECK(format_of(plan, "relay") == Pixel::rgb8);
  CHECK(plan.inserted[0].readers == std::vector<std::string>{"relay.in", "other.in"});
  CHECK(plan.inserted[0].reason == "what relay passes on is wanted in rgb8 and other takes rgb8");
}

TEST_CASE("5.1: a reader of several formats gets its first, unless another saves a conversion") {
  Pipeline p;
  p.add("source", "f.source" + std::to_string(kNv12));
  p.add("any", "f.relay" + std::to_string(kGray | kRgb));
  p.connect("source", "any");
  CHECK(planned(p).inserted[0].to == "rgb8"); // its colours are kept
  p.add("rgb", "f.relay" + std::to_string(kRgb));
  p.connect("source", "rgb");
  const plan::Plan plan = planned(p);
  REQUIRE(plan.inserted.size() == 1);
  CHECK(plan.inserted[0].to == "rgb8");
}

TEST_CASE("5.1: an edge that forbids conversions is served by one before what passes its format on") {
  Pipeline p = behind_relay(kNv12, {kRgb});
  p.graph.edges[1].forbid_convert = true;
  const plan::Plan plan = planned(p);
  REQUIRE(plan.inserted.size() == 1);
  CHECK(plan.inserted[0].source == "source.out");
  CHECK(format_of(plan, "relay") == Pixel::rgb8);
}

TEST_CASE("5.1: more readers that each need a conversion than there are rounds are served all the same") {
  Pipeline p;
  p.add("source", "f.source" + std::to_string(kNv12));
  std::string before = "source";
  for (int i = 0; i < 100; ++i) {
    const std::string name = "h" + std::to_string(i);
    p.add(name, "f.relay" + std::to_string(i % 2 ? kI420 : kRgb));
    p.connect(before, name);
    before = name;
  }
  CHECK(planned(p).inserted.size() == 100);
}
