// The places of conversions by their price: on 1,000 random chains of handlers that make pictures smaller and larger,
// no other places of as few conversions are cheaper by the times that the plan has for its handlers.
#include <millrace/handler.h>

#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <bit>
#include <map>
#include <optional>
#include <random>
#include <set>

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

// Sets of formats are named by a mask over these. The first two have a colour for each pixel.
constexpr std::array kFormats = {Pixel::rgb8, Pixel::bgr8, Pixel::nv12, Pixel::i420};
constexpr uint32_t kMasks = 1u << kFormats.size();
constexpr bool is_whole(size_t format) { return format < 2; }

constexpr uint64_t pixel_bits(uint32_t mask) {
  uint64_t bits = 0;
  for (size_t i = 0; i < kFormats.size(); ++i)
    if (mask >> i & 1) bits |= bit_of(kFormats[i]);
  return bits;
}

constexpr uint32_t kWidth = 256, kHeight = 192;

template <uint32_t kMask>
struct Source final : Handler {
  Output<Image> out{*this, "out", Pixels{pixel_bits(kMask)}};
  void configure(const Formats& formats) override {
    formats.out(out).width = kWidth;
    formats.out(out).height = kHeight;
  }
  void process(Tick& tick, Cpu&) { tick.end(); }
};
// Hands pictures on with sides that are kTimes / 2 as long.
template <uint32_t kMask, uint32_t kTimes>
struct Scale final : Handler {
  Input<Image> in{*this, "in", Pixels{pixel_bits(kMask)}};
  Output<Image> out{*this, "out", like(in)};
  void configure(const Formats& formats) override {
    formats.out(out).width = formats.out(out).width * kTimes / 2;
    formats.out(out).height = formats.out(out).height * kTimes / 2;
  }
  void process(Tick&, Cpu&) {}
};

const char* type_name(const std::string& kind, uint32_t mask) {
  static std::set<std::string> names; // tables keep pointers to them
  return names.insert("c." + kind + std::to_string(mask)).first->c_str();
}

template <uint32_t... kIndex>
const mr_plugin& make_plugin(std::integer_sequence<uint32_t, kIndex...>) {
  static const mr_handler_type types[] = {
      detail::Type<Source<kIndex + 1>>::table(type_name("source", kIndex + 1), "", "")...,
      detail::Type<Scale<kIndex + 1, 1>>::table(type_name("half", kIndex + 1), "", "")...,
      detail::Type<Scale<kIndex + 1, 2>>::table(type_name("relay", kIndex + 1), "", "")...,
      detail::Type<Scale<kIndex + 1, 4>>::table(type_name("double", kIndex + 1), "", "")...,
  };
  static const std::vector<const mr_handler_type*> pointers = [] {
    std::vector<const mr_handler_type*> list;
    for (const mr_handler_type& type : types) list.push_back(&type);
    return list;
  }();
  static const mr_plugin plugin = {
      sizeof(mr_plugin), MR_ABI_VERSION, "chains", "1", pointers.data(), static_cast<uint32_t>(pointers.size()), 0};
  return plugin;
}

plan::Plan planned(const Pipeline& pipeline, const plan::Machine& machine) {
  static const plugin::Registry& registry = [] {
    static plugin::Registry made;
    made.add(make_plugin(std::make_integer_sequence<uint32_t, kMasks - 1>()), "");
    return std::ref(made);
  }();
  static const mr_host host = plugin::basic_host();
  graph::Graph graph = pipeline.graph;
  plan::Prepared prepared = plan::prepare(graph, registry, host);
  return plan::compile(graph, prepared, registry, host, machine, {});
}

uint64_t bytes_of(size_t format, uint32_t width, uint32_t height) {
  mr_format picture{};
  picture.size = sizeof picture;
  picture.kind = MR_KIND_IMAGE;
  picture.pixel_formats = bit_of(kFormats[format]);
  picture.width = width;
  picture.height = height;
  return plan::capacity_of(picture);
}

std::string name_of_format(size_t format) { return std::string(name_of(kFormats[format])); }

// A random chain and what its calls take, each in proportion to the bytes that it reads.
class Chain {
 public:
  struct Node {
    std::string kind;
    uint32_t mask = 0;                         // formats that it takes, or makes
    uint32_t width = kWidth, height = kHeight; // its input's
    double us_per_byte = 0;
  };

  explicit Chain(std::mt19937& random) : random_(random) {
    nodes.push_back({"source", any_mask()});
    uint32_t width = kWidth, height = kHeight;
    for (uint32_t more = 1 + up_to(4); more > 0; --more) {
      static const std::array<std::string, 3> kKinds = {"half", "relay", "double"};
      Node node{kKinds[up_to(2)], any_mask(), width, height, rate()};
      width = node.kind == "half" ? width / 2 : node.kind == "double" ? width * 2 : width;
      height = node.kind == "half" ? height / 2 : node.kind == "double" ? height * 2 : height;
      nodes.push_back(std::move(node));
    }
    for (double& us : conversion_us_per_byte) us = rate();
  }

  // As a person writes it. `gets`, by node: its format, with a conversion by hand where it changes; empty: as the plan
  // decides.
  Pipeline pipeline(const std::vector<size_t>& gets = {}) const {
    Pipeline p;
    for (size_t n = 0; n < nodes.size(); ++n) {
      std::string from = n == 0 ? "" : name(n - 1);
      if (n > 0 && !gets.empty() && gets[n] != gets[n - 1]) {
        const std::string convert = "convert" + std::to_string(n);
        p.add(convert, "image.convert", {{"to", name_of_format(gets[n])}});
        p.connect(from, convert);
        from = convert;
      }
      const uint32_t mask = gets.empty() ? nodes[n].mask : 1u << gets[n];
      p.add(name(n), type_name(nodes[n].kind, mask));
      if (n > 0) p.connect(from, name(n)).forbid_convert = !gets.empty();
    }
    return p;
  }

  // Knows the time of each call at sizes that are a factor of two apart.
  plan::Machine machine() const {
    plan::Machine machine = machine_of(1);
    const auto measure = [&](const std::string& type, const std::string& settings, double us_per_byte) {
      for (uint64_t bytes = 256; bytes < 1u << 28; bytes *= 2) {
        const double us = static_cast<double>(bytes) * us_per_byte;
        machine.bodies.push_back({type, settings, "cpu", bytes, us, us, us, 1});
      }
    };
    for (size_t n = 1; n < nodes.size(); ++n)
      for (uint32_t mask = 1; mask < kMasks; ++mask)
        if (mask == nodes[n].mask || std::popcount(mask) == 1)
          measure(type_name(nodes[n].kind, mask), "", rate_of(nodes[n].kind));
    for (size_t f = 0; f < kFormats.size(); ++f)
      for (const char* meaning : {"", "range=full ", "matrix=bt709 ", "matrix=bt709 range=full "})
        measure("image.convert", meaning + ("to=" + name_of_format(f)), conversion_us_per_byte[f]);
    return machine;
  }

  // Handlers of one kind take as long, whatever else they take.
  double rate_of(const std::string& kind) const {
    return std::find_if(nodes.begin() + 1, nodes.end(), [&](const Node& node) { return node.kind == kind; })
        ->us_per_byte;
  }

  std::vector<Node> nodes;
  std::array<double, kFormats.size()> conversion_us_per_byte{};

 private:
  static std::string name(size_t node) { return "h" + std::to_string(node); }
  uint32_t up_to(uint32_t most) { return std::uniform_int_distribution<uint32_t>(0, most)(random_); }
  uint32_t any_mask() { return up_to(1) ? 1u << up_to(kFormats.size() - 1) : 1 + up_to(kMasks - 2); }
  double rate() { return std::uniform_real_distribution<>(1e-4, 2e-3)(random_); }

  std::mt19937& random_;
};

// Tries every format of every handler.
class EveryPlace {
 public:
  struct Way {
    uint32_t conversions = 0;
    uint32_t halved = 0; // those to a colour for each pixel after one to a colour for 2 × 2
    double us = 0;
    uint64_t first_bytes = 0;
    std::vector<size_t> gets; // by node
    friend bool operator<(const Way& a, const Way& b) {
      if (a.conversions != b.conversions) return a.conversions < b.conversions;
      if (a.halved != b.halved) return a.halved < b.halved;
      if (std::abs(a.us - b.us) > 1e-6 * (a.us + b.us)) return a.us < b.us;
      return a.first_bytes < b.first_bytes;
    }
  };

  explicit EveryPlace(const Chain& chain) : chain_(chain) {
    for (size_t format = 0; format < kFormats.size(); ++format)
      if (chain.nodes[0].mask >> format & 1) go_on({0, 0, 0, bytes_of(format, kWidth, kHeight), {format}});
  }

  const Way& best() const { return *best_; }
  size_t ways() const { return ways_; }

 private:
  void go_on(const Way& way) {
    const size_t node = way.gets.size(), has = way.gets.back();
    if (node == chain_.nodes.size()) {
      ++ways_;
      if (!best_ || way < *best_) best_ = way;
      return;
    }
    const Chain::Node& one = chain_.nodes[node];
    for (size_t format = 0; format < kFormats.size(); ++format) {
      if (!(one.mask >> format & 1)) continue;
      Way next = way;
      if (format != has) {
        next.us += chain_.conversion_us_per_byte[format] * static_cast<double>(bytes_of(has, one.width, one.height));
        ++next.conversions;
        next.halved += is_whole(way.gets[0]) && !is_whole(has) && is_whole(format);
      }
      next.us += chain_.rate_of(one.kind) * static_cast<double>(bytes_of(format, one.width, one.height));
      next.gets.push_back(format);
      go_on(next);
    }
  }

  const Chain& chain_;
  std::optional<Way> best_;
  size_t ways_ = 0;
};

// All but the source have a measured time.
double us_of(const plan::Plan& plan) {
  double us = 0;
  for (const plan::HandlerPlan& handler : plan.handlers) {
    REQUIRE((handler.cost_ns > 0 || handler.name == "h0"));
    us += static_cast<double>(handler.cost_ns) / 1000;
  }
  return us;
}

// source (i420, 256 × 192) → a handler of this kind that takes all formats → one that takes rgb8 alone.
Pipeline scaled(const std::string& kind) {
  Pipeline p;
  p.add("source", type_name("source", 8));
  p.add("scale", type_name(kind, 15));
  p.add("reader", type_name("relay", 1));
  p.connect("source", "scale");
  p.connect("scale", "reader");
  return p;
}

} // namespace

TEST_CASE("5.1: no place of a conversion is cheaper than the chosen one, tried in every way on 1,000 random chains") {
  const uint32_t seed = random_seed();
  CAPTURE(seed);
  std::mt19937 random(seed);
  size_t converted = 0, ways = 0, dearer = 0;
  for (int i = 0; i < 1000; ++i) {
    CAPTURE(i);
    const Chain chain(random);
    const EveryPlace every(chain);
    const plan::Machine machine = chain.machine();
    const plan::Plan chosen = planned(chain.pipeline(), machine);
    INFO(graph::to_yaml(chain.pipeline().graph));
    const plan::Plan by_hand = planned(chain.pipeline(every.best().gets), machine);
    REQUIRE(us_of(by_hand) == doctest::Approx(every.best().us).epsilon(1e-4)); // the plan knows the same times
    REQUIRE(us_of(chosen) == doctest::Approx(us_of(by_hand)).epsilon(1e-4));
    converted += chosen.inserted.size();
    ways += every.ways();
    // Somewhere else it would have been dearer: what the reader of a plan is told.
    for (const plan::InsertedPlan& inserted : chosen.inserted) dearer += !inserted.elsewhere.empty();
  }
  MESSAGE(converted, " conversions, ", dearer, " of which have another place; ", ways, " ways were tried");
  CHECK(converted > 500);
  CHECK(dearer > 100);
}

TEST_CASE("5.1: a picture is converted after it gets smaller and before it gets larger, and the plan says the rest") {
  const plan::Plan smaller = planned(scaled("half"), machine_of(1));
  REQUIRE(smaller.inserted.size() == 1);
  CHECK(smaller.inserted[0].source == "scale.out");
  CHECK(smaller.inserted[0].elsewhere == "about 19 µs a tick here, 60 µs after source.out");
  const plan::Plan larger = planned(scaled("double"), machine_of(1));
  REQUIRE(larger.inserted.size() == 1);
  CHECK(larger.inserted[0].source == "source.out");
  CHECK(larger.inserted[0].elsewhere == "about 60 µs a tick here, 226 µs after scale.out");
  const plan::Plan same = planned(scaled("relay"), machine_of(1));
  REQUIRE(same.inserted.size() == 1);
  CHECK(same.inserted[0].source == "scale.out"); // as late as possible
}

TEST_CASE("5.1: for several readers a picture that gets larger is converted once, before it does") {
  Pipeline p = scaled("double");
  p.add("other", type_name("relay", 1));
  p.connect("scale", "other");
  const plan::Plan plan = planned(p, machine_of(1));
  REQUIRE(plan.inserted.size() == 1);
  CHECK(plan.inserted[0].source == "source.out");
  CHECK(plan.inserted[0].readers == std::vector<std::string>{"scale.in"});
}

TEST_CASE("5.1: a reader that takes a colour for each pixel gets what was made, not what chroma was halved for") {
  // rgb8 → double → one reader takes nv12 alone, the other bgr8 alone. To make nv12 before the picture gets larger, and
  // bgr8 of that, would be less work.
  Pipeline p;
  p.add("source", type_name("source", 1));
  p.add("scale", type_name("double", 15));
  p.add("film", type_name("relay", 4));
  p.add("window", type_name("relay", 2));
  p.connect("source", "scale");
  p.connect("scale", "film");
  p.connect("scale", "window");
  const plan::Plan plan = planned(p, machine_of(1));
  for (const plan::InsertedPlan& inserted : plan.inserted) CHECK(inserted.from != "nv12");
}
