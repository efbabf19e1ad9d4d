// Draws graphs of several clocks; see clock_graphs.h.
#include "clock_graphs.h"

#include <millrace/handler.h>

#include <random>
#include <set>
#include <sstream>

#include "sample.h"

namespace millrace::test {

int64_t timed_at(int64_t n, int64_t rate, int64_t start_ms, int64_t jitter_us) {
  const int64_t later = jitter_us > 0 ? n * 7919 % jitter_us * 1000 : 0;
  return start_ms * 1'000'000 + n * 1'000'000'000 / rate + later;
}

namespace {

// A source whose media times are what its parameters say; its values count.
struct Timed final : Handler {
  Output<Tensor> out{*this, "out"};
  Param<int64_t> count{*this, "count", 10, "values"};
  Param<int64_t> rate{*this, "rate", 10, "values a second, as it says"};
  Param<int64_t> start_ms{*this, "start_ms", 0, "the media time of the first"};
  Param<int64_t> jitter_us{*this, "jitter_us", 0, "how much later than its rate a value may be"};
  Param<int64_t> rush_at{*this, "rush_at", -1, "after this one values come a hundred times as often"};
  Param<int64_t> silent_every{*this, "silent_every", 0, "every k-th gives nothing"};
  int64_t next = 0;
  void probe(Facts& facts) override { facts.rate(*rate); }
  void configure(const Formats& formats) override { formats.tensor(out, dtype_of<int64_t>(), {1}); }
  void start() override { next = 0; }
  void process(Tick& tick, Cpu&) {
    if (next >= count) return tick.end();
    const int64_t n = next++;
    if (silent_every > 0 && n % silent_every == silent_every - 1) return;
    const int64_t shape[] = {1};
    out.allocate(tick, dtype_of<int64_t>(), shape).elements<int64_t>()[0] = n;
    const bool rushes = rush_at >= 0 && n > rush_at;
    out.header(tick).pts_ns = rushes ? timed_at(rush_at, rate, start_ms, 0) + (n - rush_at) * 10'000'000 / rate
                                     : timed_at(n, rate, start_ms, jitter_us);
  }
};

class Drawing {
 public:
  explicit Drawing(uint64_t seed) : random_(seed) {}

  Pipeline draw() {
    const int64_t count = 2 + up_to(1);
    for (int64_t c = 0; c < count; ++c) add_clock(c, c > 0 && one_in(5));
    for (int64_t n = 3 + up_to(6); n > 0; --n) add_handler();
    if (one_in(4)) add_loop();
    return std::move(p_);
  }

 private:
  int64_t up_to(int64_t most) { return static_cast<int64_t>(random_() % static_cast<uint64_t>(most + 1)); }
  bool one_in(int64_t n) { return up_to(n - 1) == 0; }
  int64_t one_of(std::initializer_list<int64_t> all) {
    return *(all.begin() + up_to(static_cast<int64_t>(all.size()) - 1));
  }

  void add_clock(int64_t c, bool led) {
    const int64_t rate = one_of({1, 10, 25, 30, 30, 100});
    p_.clock(led ? graph::ClockMode::free : graph::ClockMode::source, led ? rate : 0, 1,
             static_cast<uint32_t>(one_of({0, 0, 0, 0, 0, 1, 1, 40})));
    const std::string name = "c" + std::to_string(c);
    p_.graph.clocks.back().name = name;
    if (led) return;
    Params params = {{"rate", std::to_string(rate)},
                     {"count", std::to_string(1 + up_to(rate > 30 ? 100 : 40))},
                     {"start_ms", std::to_string(one_of({0, 0, 0, 300, 2000}))}};
    if (one_in(4)) params["silent_every"] = std::to_string(2 + up_to(3));
    if (one_in(4)) params["jitter_us"] = "900";
    if (!params.contains("silent_every")) steady_.insert("s" + std::to_string(c));
    p_.add("s" + std::to_string(c), "c.timed", params).clock = name;
    outputs_.emplace_back("s" + std::to_string(c), name);
  }

  void add_handler() {
    const std::string name = "h" + std::to_string(++count_);
    const auto clock_index = static_cast<size_t>(up_to(static_cast<int64_t>(p_.graph.clocks.size()) - 1));
    const std::string clock = p_.graph.clocks[clock_index].name;
    // Results that are owed in gaps of an input have tests of their own (2.4).
    const std::string steady = "s" + std::to_string(clock_index);
    const bool late = steady_.contains(steady) && one_in(6);
    graph::Handler& handler = late ? p_.add(name, "t.late", {{"after", std::to_string(up_to(8))}, {"log", name}})
                                   : p_.add(name, "t.join", {{"log", name}});
    handler.clock = clock;
    if (late) p_.connect(steady, name);
    if (!late && one_in(6)) handler.every = static_cast<uint32_t>(2 + up_to(1));
    for (int64_t inputs = late ? 0 : 1 + up_to(2); inputs > 0; --inputs) {
      const auto& [from, of] = outputs_[static_cast<size_t>(up_to(static_cast<int64_t>(outputs_.size()) - 1))];
      graph::Edge& edge = p_.connect(from, name + ".in");
      if (of != clock || one_in(6)) choose_policy(edge, of == clock);
    }
    outputs_.emplace_back(name, clock);
    if (one_in(4)) { // falls silent
      p_.add(name + "r", "t.relay", {{"silent_every", std::to_string(2 + up_to(20))}}).clock = clock;
      p_.connect(name, name + "r");
      outputs_.emplace_back(name + "r", clock);
    }
  }

  void choose_policy(graph::Edge& edge, bool same_clock) {
    switch (up_to(same_clock ? 1 : 3)) {
      case 0: edge.policy = graph::Policy::latest; break;
      case 1:
        edge.policy = graph::Policy::queue;
        edge.depth = static_cast<uint32_t>(one_of({1, 2, 8}));
        edge.full = one_in(8) ? graph::Full::block : one_in(2) ? graph::Full::drop_oldest : graph::Full::drop_newest;
        break;
      case 2:
        edge.policy = graph::Policy::align;
        edge.within_ns = one_of({1, 20, 40, 300}) * 1'000'000;
        break;
      default: edge.policy = graph::Policy::latest; edge.initial_empty = one_in(2);
    }
  }

  // An earlier handler that reads a later one of its clock one tick late.
  void add_loop() {
    for (const graph::Handler& early : p_.graph.handlers)
      for (const graph::Handler& late : p_.graph.handlers) {
        if (early.type != "t.join" || late.type != "t.join" || early.clock != late.clock || &late <= &early) continue;
        graph::Edge& edge = p_.connect(late.name, early.name + ".in");
        edge.delay = 1;
        edge.initial_empty = true;
        return;
      }
  }

  Pipeline p_;
  std::mt19937_64 random_;
  std::vector<std::pair<std::string, std::string>> outputs_; // handler, clock
  std::set<std::string> steady_;                             // sources that are never silent
  int count_ = 0;
};

} // namespace

const mr_plugin& clocks_plugin() {
  static const mr_handler_type type = detail::Type<Timed>::table("c.timed", "Counts at media times", "");
  static const mr_handler_type* const pointers[] = {&type};
  static const mr_plugin plugin = {sizeof(mr_plugin), MR_ABI_VERSION, "clocks", "1", pointers, 1, 0};
  return plugin;
}

Setup clocks_setup(uint32_t workers, bool virtual_time) {
  Setup setup;
  setup.workers = workers;
  setup.virtual_time = virtual_time;
  setup.more = &clocks_plugin();
  return setup;
}

Setup measured_setup() {
  Setup setup = clocks_setup(3, true);
  setup.options.cost_ns = drawn_cost_ns;
  return setup;
}

Pipeline draw_clocks(uint64_t seed) { return Drawing(seed).draw(); }

std::string text_of(const Pipeline& p) {
  std::ostringstream text;
  for (const graph::Clock& clock : p.graph.clocks) text << clock.name << " in_flight " << clock.in_flight << "; ";
  for (const graph::Handler& handler : p.graph.handlers) {
    text << "\n" << handler.name << " " << handler.type << " of " << handler.clock << " every " << handler.every;
    for (const graph::Param& param : handler.params) text << " " << param.name << "=" << param.text;
    for (const graph::Edge& edge : p.graph.edges)
      if (edge.target == handler.name)
        text << " <- " << edge.source << " policy " << static_cast<int>(edge.policy) << " depth " << edge.depth
             << " full " << static_cast<int>(edge.full) << " within " << edge.within_ns << " delay " << edge.delay;
  }
  return text.str();
}

graph::Edge& read_across(Pipeline& p, const std::string& name, const std::string& of, const std::string& from,
                         graph::Policy policy) {
  const std::string clock = p.graph.find(of)->clock; // add() moves handlers
  p.add(name, "t.join", {{"log", name}}).clock = clock;
  p.connect(of, name + ".in");
  return p.connect(from, name + ".in", policy);
}

} // namespace millrace::test
