// The test handlers and the way from a graph in code to a finished run; see harness.h.
#include "harness.h"

#include <millrace/handler.h>

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <deque>
#include <nlohmann/json.hpp>
#include <set>
#include <span>
#include <thread>

#include "tests/plan/plan_json.h"

namespace millrace::test {

namespace {

// The log of the run whose handlers this thread makes at present.
thread_local std::shared_ptr<ValueLog> log_of_this_run;

class MakesHandlersFor {
 public:
  explicit MakesHandlersFor(std::shared_ptr<ValueLog> log) { log_of_this_run = std::move(log); }
  ~MakesHandlersFor() { log_of_this_run = nullptr; }
  MakesHandlersFor(const MakesHandlersFor&) = delete;
  MakesHandlersFor& operator=(const MakesHandlersFor&) = delete;
};

// A value is one number, `size` times over: so that bodies touch memory, and whoever reads it looks at every byte.
// Made from an empty value, whose size is 0, it has as many as were planned.
void write(const Output<Tensor>& out, Tick& tick, int64_t value, int64_t size = 1) {
  if (size == 0) {
    const int64_t none[] = {0};
    out.allocate(tick, dtype_of<int64_t>(), none);
    size = static_cast<int64_t>(out.raw(tick).capacity / sizeof(int64_t));
  }
  const int64_t shape[] = {size};
  for (int64_t& element : out.allocate(tick, dtype_of<int64_t>(), shape).elements<int64_t>()) element = value;
}
int64_t number(const TensorView& view) {
  const auto elements = view.elements<int64_t>();
  if (elements.empty()) return 0; // an empty initial value
  for (const int64_t element : elements)
    if (element != elements[0]) throw std::runtime_error("a value of unlike elements");
  return elements[0];
}
int64_t size_of(const TensorView& view) { return view.element_count(); }

bool every(uint64_t period, uint64_t index) { return period > 0 && index % period == period - 1; }

// Writes down what it saw where it is told to.
struct Witness : Handler {
  LogWriter writer;
  Param<std::string> log{*this, "log", "", "where it writes what it saw"};
  void saw(const Tick& tick, std::vector<int64_t> values) {
    if (log->empty()) return;
    writer.write(*log, {tick.index(), tick.media_time_ns(), std::move(values)});
  }
};

struct Count final : Handler {
  Output<Tensor> out{*this, "out"};
  Param<int64_t> size{*this, "size", 1, "elements of a value"};
  Param<int64_t> count{*this, "count", 0, "values; 0: endless"};
  Param<int64_t> rate{*this, "rate", 0, "values a second; 0: none"};
  Param<int64_t> silent_every{*this, "silent_every", 0, "every k-th gives nothing"};
  Param<int64_t> first{*this, "first", 0, "the first value"};
  Param<bool> is_live{*this, "live", false, "cannot wait"};
  int64_t next = 0;
  void probe(Facts& facts) override {
    if (rate > 0) facts.rate(rate);
    if (is_live) facts.live();
  }
  void configure(const Formats& formats) override { formats.tensor(out, dtype_of<int64_t>(), {*size}); }
  void start() override { next = 0; }
  void process(Tick& tick, Cpu&) {
    if (count > 0 && next >= count) return tick.end();
    const int64_t n = next++;
    if (every(static_cast<uint64_t>(*silent_every), static_cast<uint64_t>(n))) return;
    write(out, tick, first + n, size);
    if (rate > 0) out.header(tick).pts_ns = n * 1'000'000'000 / rate;
  }
};

struct Index final : Handler {
  Output<Tensor> out{*this, "out"};
  Index() { stateless(); }
  void configure(const Formats& formats) override { formats.tensor(out, dtype_of<int64_t>(), {1}); }
  void process(Tick& tick, Cpu&) { write(out, tick, static_cast<int64_t>(tick.index())); }
};

struct Relay : Witness {
  Input<Tensor> in{*this, "in"};
  Output<Tensor> out{*this, "out", like(in)};
  Param<int64_t> add{*this, "add", 0, "added to each value", live};
  Param<int64_t> silent_every{*this, "silent_every", 0, "every k-th tick gives nothing"};
  Param<int64_t> fail_at{*this, "fail_at", -1, "the tick that fails"};
  Param<int64_t> fail_every{*this, "fail_every", 0, "every k-th tick fails"};
  void process(Tick& tick, Cpu&) {
    const int64_t value = number(in(tick));
    saw(tick, {value});
    if (static_cast<int64_t>(tick.index()) == fail_at || every(static_cast<uint64_t>(*fail_every), tick.index()))
      throw std::runtime_error("told to fail");
    if (every(static_cast<uint64_t>(*silent_every), tick.index())) return;
    write(out, tick, value + add, size_of(in(tick)));
  }
};
struct Stateless final : Relay {
  Stateless() { stateless(); }
};
struct Window final : Handler {
  Input<Tensor> in{*this, "in"};
  Output<Tensor> out{*this, "out", like(in)};
  Param<int64_t> from{*this, "from", 0, "the first silent tick"};
  Param<int64_t> until{*this, "until", 0, "the first tick that has a value again"};
  void process(Tick& tick, Cpu&) {
    const auto index = static_cast<int64_t>(tick.index());
    if (index < from || index >= until) write(out, tick, number(in(tick)));
  }
};
struct Capturable final : Relay {
  Capturable() { capturable(); }
};

std::vector<int64_t> numbers(const Inputs<Tensor>& in, Tick& tick) {
  std::vector<int64_t> values;
  for (uint32_t i = 0; i < in.count(); ++i) values.push_back(in.present(tick, i) ? number(in(tick, i)) : kEmpty);
  return values;
}

struct Join final : Witness {
  Inputs<Tensor> in{*this, "in", 8, optional};
  Output<Tensor> out{*this, "out"};
  Param<int64_t> size{*this, "size", 4, "elements of a value"};
  void configure(const Formats& formats) override { formats.tensor(out, dtype_of<int64_t>(), {*size}); }
  void process(Tick& tick, Cpu&) {
    const std::vector<int64_t> values = numbers(in, tick);
    saw(tick, values);
    int64_t value = static_cast<int64_t>(tick.index());
    for (size_t i = 0; i < values.size(); ++i)
      value = mix(value, values[i] != kEmpty ? values[i] : -1 - static_cast<int64_t>(i));
    write(out, tick, value, size);
  }
};

struct Need : Witness {
  Input<Tensor> a{*this, "a"};
  Input<Tensor> b{*this, "b"};
  Output<Tensor> out{*this, "out", like(a)};
  void process(Tick& tick, Cpu&) {
    saw(tick, {number(a(tick)), number(b(tick))});
    write(out, tick, thousands(number(a(tick)), number(b(tick))), size_of(a(tick)));
  }
};

struct CaptureNeed final : Need {
  CaptureNeed() { capturable(); }
};

struct Paced final : Witness { // fires for `in`, looks at `extra` where it is there
  Input<Tensor> in{*this, "in"};
  Input<Tensor> extra{*this, "extra", optional};
  Output<Tensor> out{*this, "out", like(in)};
  void process(Tick& tick, Cpu&) {
    const int64_t other = extra.present(tick) ? number(extra(tick)) : kEmpty;
    saw(tick, {number(in(tick)), other});
    write(out, tick, thousands(number(in(tick)), other == kEmpty ? 999 : other), size_of(in(tick)));
  }
};

struct Sink final : Handler {
  LogWriter writer;
  Inputs<Tensor> in{*this, "in", 8, optional};
  Param<std::string> name{*this, "log", "", "where it writes", required};
  void process(Tick& tick, Cpu&) { writer.write(*name, {tick.index(), tick.media_time_ns(), numbers(in, tick)}); }
};

struct Ended final : Handler {
  LogWriter writer;
  Inputs<Tensor> in{*this, "in", 8, optional};
  Param<std::string> name{*this, "log", "", "where it writes", required};
  void process(Tick& tick, Cpu&) {
    Seen seen{tick.index(), tick.media_time_ns(), {}};
    for (uint32_t i = 0; i < in.count(); ++i) seen.values.push_back(in.ended(tick, i));
    writer.write(*name, seen);
  }
};

struct Late final : Witness {
  Input<Tensor> in{*this, "in"};
  Output<Tensor> out{*this, "out", like(in)};
  Param<int64_t> after{*this, "after", 8, "firings until an answer", at_least(0)};
  Param<int64_t> fail_at{*this, "fail_at", -1, "the tick that fails after it was deferred"};
  Param<bool> never{*this, "never", false, "has its answers ready and publishes none"};
  Param<bool> fail_in_drain{*this, "fail_in_drain", false, "publishes nothing when it is drained"};
  struct Owed {
    Tick tick;
    int64_t value, size;
  };
  std::deque<Owed> owed;
  Late() {
    max_pending(8);
    drains_freely();
  }
  void answer() {
    Owed answer = owed.front();
    owed.pop_front();
    write(out, answer.tick, answer.value, answer.size);
    answer.tick.publish();
  }
  void process(Tick& tick, Cpu&) {
    saw(tick, {number(in(tick))});
    if (never) {
      if (tick.index() % 2) write(out, tick, number(in(tick))); // before, or after
      Tick later = tick.defer();
      return write(out, later, number(in(tick)));
    }
    if (static_cast<int64_t>(owed.size()) >= after && !owed.empty()) answer();
    owed.push_back({tick.defer(), number(in(tick)), size_of(in(tick))});
    if (static_cast<int64_t>(tick.index()) != fail_at) return;
    owed.pop_back();
    throw std::runtime_error("told to fail");
  }
  void drain() override {
    if (fail_in_drain) throw std::runtime_error("told to fail in drain");
    while (!owed.empty()) answer();
  }
};

// Answers from a thread of its own, one at a time; the tests' way to be asynchronous.
struct Async final : Handler {
  Input<Tensor> in{*this, "in"};
  Output<Tensor> out{*this, "out", like(in)};
  std::mutex mutex;
  std::condition_variable wake;
  std::deque<std::pair<Tick, int64_t>> owed;
  bool closing = false;
  std::thread thread;
  Async() {
    max_pending(1);
    drains_freely();
    asynchronous();
  }
  void start() override {
    closing = false;
    thread = std::thread([this] {
      for (;;) {
        std::unique_lock lock(mutex);
        wake.wait(lock, [&] { return closing || !owed.empty(); });
        if (owed.empty()) return;
        auto [tick, value] = owed.front();
        owed.pop_front();
        lock.unlock();
        write(out, tick, value);
        tick.publish();
      }
    });
  }
  void process(Tick& tick, Cpu&) {
    const int64_t value = number(in(tick));
    const std::lock_guard lock(mutex);
    owed.emplace_back(tick.defer(), value);
    wake.notify_all();
  }
  void end() {
    {
      const std::lock_guard lock(mutex);
      closing = true;
    }
    wake.notify_all();
    if (thread.joinable()) thread.join();
  }
  void drain() override { end(); }
  void reset() override { start(); }
  void stop() override { end(); }
};

// A source of memory that is not the plan's and must not be written.
struct Foreign final : Handler {
  Output<Tensor> out{*this, "out"};
  Param<int64_t> count{*this, "count", 0, "values"};
  Param<int64_t> size{*this, "size", 1, "elements of a value"};
  static std::atomic<int64_t> adopted, released;
  std::vector<int64_t> constant;
  int64_t next = 0;
  void configure(const Formats& formats) override { formats.tensor(out, dtype_of<int64_t>(), {*size}); }
  void start() override {
    constant.assign(static_cast<size_t>(*size), 7);
    next = adopted = released = 0;
  }
  void process(Tick& tick, Cpu&) {
    if (next++ >= count) return tick.end();
    mr_value& value = out.adopt(
        tick, constant.data(), constant.size() * sizeof(int64_t), [](void*) { ++released; }, nullptr);
    value.as.tensor = {MR_DTYPE_INT, 64, 1, 1, {*size}, {1}};
    ++adopted;
  }
};
std::atomic<int64_t> Foreign::adopted{0};
std::atomic<int64_t> Foreign::released{0};

struct Paint final : Witness {
  Input<Tensor> in{*this, "in"};
  Output<Tensor> out{*this, "out", in_place(in)};
  Param<int64_t> add{*this, "add", 1, "added in place"};
  void process(Tick& tick, Cpu&) {
    saw(tick, {number(in(tick))});
    if (in(tick).element_count() == 0) return write(out, tick, add, 0); // an empty initial value
    for (int64_t& element : out.modify(tick, in).elements<int64_t>()) element += add;
  }
};

struct MaybePaint final : Handler { // silent where there is nothing to write over
  Input<Tensor> in{*this, "in", optional};
  Output<Tensor> out{*this, "out", in_place(in)};
  void process(Tick& tick, Cpu&) {
    if (!in.present(tick)) return;
    for (int64_t& element : out.modify(tick, in).elements<int64_t>()) ++element;
  }
};

struct Forward final : Witness {
  Input<Tensor> in{*this, "in"};
  Output<Tensor> out{*this, "out", forward(in)};
  Param<int64_t> silent_every{*this, "silent_every", 0, "every k-th tick gives nothing"};
  void process(Tick& tick, Cpu&) {
    saw(tick, {number(in(tick))});
    if (!every(static_cast<uint64_t>(*silent_every), tick.index())) out.forward(tick, in);
  }
};

struct Repeat final : Handler { // its input's own buffer on every second tick, else one of its own
  Input<Tensor> in{*this, "in"};
  Output<Tensor> out{*this, "out", may_repeat};
  void configure(const Formats& formats) override { formats.tensor(out, dtype_of<int64_t>(), {1}); }
  void process(Tick& tick, Cpu&) {
    if (tick.index() % 2 == 0) return out.forward(tick, in);
    write(out, tick, number(in(tick)));
  }
};

struct Enough final : Handler { // has seen enough at some tick
  Input<Tensor> in{*this, "in"};
  Output<Tensor> out{*this, "out", like(in)};
  Param<int64_t> at{*this, "at", 0, "the tick at which it ends the run"};
  void process(Tick& tick, Cpu&) {
    if (static_cast<int64_t>(tick.index()) == at) return tick.end();
    write(out, tick, number(in(tick)));
  }
};

struct Pick final : Handler { // passes on the input that the plan does not share its output's buffer with
  Input<Tensor> first{*this, "first"};
  Input<Tensor> second{*this, "second"};
  Output<Tensor> out{*this, "out", like(first)};
  void process(Tick& tick, Cpu&) { out.forward(tick, second); }
};

struct Keep final : Witness { // the sum of this value and the two before it, read from the kept blocks
  Input<Tensor> in{*this, "in", keeps(2)};
  Output<Tensor> out{*this, "out", like(in)};
  std::deque<std::span<const int64_t>> past;
  void start() override { past.clear(); }
  void process(Tick& tick, Cpu&) {
    past.push_back(in(tick).elements<int64_t>());
    if (past.size() > 3) past.pop_front();
    int64_t total = 0;
    for (const auto& value : past) {
      if (value.empty()) continue; // an empty initial value
      total = sum(total, value[0]);
      if (std::count(value.begin(), value.end(), value[0]) != std::ssize(value))
        throw std::runtime_error("a kept value of unlike elements");
    }
    saw(tick, {total});
    write(out, tick, total, size_of(in(tick)));
  }
};

struct Restarting final : Handler {
  Input<Tensor> in{*this, "in"};
  Output<Tensor> out{*this, "out", like(in)};
  Param<int64_t> fail_at{*this, "fail_at", -1, "the tick that fails"};
  Param<int64_t> no_start{*this, "no_start", -1, "the start that fails"};
  int64_t starts = 0;
  void start() override {
    if (++starts == no_start) throw std::runtime_error("told not to start");
  }
  void process(Tick& tick, Cpu&) {
    if (static_cast<int64_t>(tick.index()) == fail_at) throw std::runtime_error("told to fail");
    write(out, tick, number(in(tick)) * 100 + starts);
  }
};

const std::vector<const mr_handler_type*>& types() {
  static const mr_handler_type all[] = {
      detail::Type<Count>::table("t.count", "Counts", ""),
      detail::Type<Index>::table("t.index", "Its tick's index, in any order", ""),
      detail::Type<Relay>::table("t.relay", "Passes numbers on", ""),
      detail::Type<Stateless>::table("t.stateless", "Passes numbers on, in any order", ""),
      detail::Type<Window>::table("t.window", "Passes numbers on, but for a while", ""),
      detail::Type<Capturable>::table("t.capturable", "Passes numbers on, recordable", ""),
      detail::Type<Join>::table("t.join", "Mixes what is there", ""),
      detail::Type<Enough>::table("t.enough", "Ends the run", ""),
      detail::Type<Repeat>::table("t.repeat", "Passes numbers on, half of them as they are", ""),
      detail::Type<Pick>::table("t.pick", "Passes its second input on", ""),
      detail::Type<Need>::table("t.need", "Needs both", ""),
      detail::Type<Paced>::table("t.paced", "Needs one, takes the other", ""),
      detail::Type<Sink>::table("t.sink", "Logs", ""),
      detail::Type<Ended>::table("t.ended", "Logs which inputs have ended", ""),
      detail::Type<Late>::table("t.late", "Answers later", ""),
      detail::Type<Async>::table("t.async", "Answers from a thread of its own", ""),
      detail::Type<Foreign>::table("t.foreign", "Adopts a constant", ""),
      detail::Type<Paint>::table("t.paint", "Adds in place", ""),
      detail::Type<MaybePaint>::table("t.maybepaint", "Adds in place where it can", ""),
      detail::Type<CaptureNeed>::table("t.captureneed", "Needs both, recordable", ""),
      detail::Type<Forward>::table("t.forward", "Passes its input's own buffer on", ""),
      detail::Type<Keep>::table("t.keep", "Keeps two values", ""),
      detail::Type<Restarting>::table("t.restarting", "Counts its starts", ""),
  };
  static const std::vector<const mr_handler_type*> pointers = [] {
    std::vector<const mr_handler_type*> list;
    for (const mr_handler_type& type : all) list.push_back(&type);
    return list;
  }();
  return pointers;
}

void split(const std::string& text, std::string& handler, std::string& port) {
  const size_t dot = text.find('.');
  handler = text.substr(0, dot);
  port = dot == std::string::npos ? "" : text.substr(dot + 1);
}

// What a hop of the plan is on the device that copies over it.
void join(const plan::Hop& hop, device::SimOptions& sim) {
  const auto latency_ns = static_cast<int64_t>(hop.price.copies() ? hop.price.latency_us * 1000 : 0);
  const double per_byte = hop.price.us_per_byte.back();
  const double bytes_per_ns = per_byte > 0 ? 0.001 / per_byte : 0;
  if (hop.to == sim.domain && hop.from != "cpu") {
    const bool accesses = hop.price.access_us_per_byte != plan::HopPrice::kInfeasible;
    sim.peers[hop.from] = {hop.price.copies(), latency_ns, bytes_per_ns, accesses};
  } else if (hop.from == sim.domain && hop.to != "cpu" && sim.enqueues) { // which may push
    sim.peers[hop.to].copies = hop.price.copies();
    sim.peers[hop.to].latency_ns = latency_ns;
    sim.peers[hop.to].bandwidth = bytes_per_ns;
  } else if (hop.price.copies() && (hop.to == sim.domain || hop.from == sim.domain)) {
    sim.latency_ns = latency_ns;
    (hop.to == sim.domain ? sim.bandwidth_up : sim.bandwidth_down) = bytes_per_ns;
  }
}

} // namespace

int64_t foreign_adopted() { return Foreign::adopted; }
int64_t foreign_released() { return Foreign::released; }

int64_t mix(int64_t a, int64_t b) {
  uint64_t x = static_cast<uint64_t>(a) * 0x9E3779B97F4A7C15ull ^ static_cast<uint64_t>(b);
  x ^= x >> 29;
  x *= 0xBF58476D1CE4E5B9ull;
  return static_cast<int64_t>((x ^ (x >> 32)) & 0xffffffffffull);
}

int64_t thousands(int64_t a, int64_t b) {
  return static_cast<int64_t>(static_cast<uint64_t>(a) * 1000 + static_cast<uint64_t>(b));
}
int64_t sum(int64_t a, int64_t b) { return static_cast<int64_t>(static_cast<uint64_t>(a) + static_cast<uint64_t>(b)); }

void ValueLog::declare(const std::string& name) {
  const std::lock_guard lock(mutex_);
  seen_[name];
}

void ValueLog::write(const std::string& name, Seen seen) {
  const std::lock_guard lock(mutex_);
  seen_.at(name).push_back(std::move(seen));
}

std::vector<Seen> ValueLog::at(const std::string& name) const {
  const std::lock_guard lock(mutex_);
  const auto found = seen_.find(name);
  if (found == seen_.end()) throw std::out_of_range("no handler writes to the log \"" + name + "\"");
  if (found->second.empty()) throw std::out_of_range("nothing was written to the log \"" + name + "\"");
  return found->second;
}

std::map<std::string, std::vector<Seen>> ValueLog::all() const {
  const std::lock_guard lock(mutex_);
  return seen_;
}

LogWriter::LogWriter() : log_(log_of_this_run) {}

void LogWriter::write(const std::string& name, Seen seen) const {
  if (!log_) throw std::logic_error("a handler that was made outside of a run writes to the log \"" + name + "\"");
  log_->write(name, std::move(seen));
}

const mr_plugin& test_plugin() {
  static const mr_plugin plugin = {
      sizeof(mr_plugin), MR_ABI_VERSION, "test", "1", types().data(), static_cast<uint32_t>(types().size()), 0};
  return plugin;
}

graph::Handler& Pipeline::add(const std::string& name, const std::string& type,
                              const std::map<std::string, std::string>& params) {
  graph::Handler handler;
  handler.name = name;
  handler.type = type;
  for (const auto& [key, value] : params) handler.params.push_back({key, value, {}, {}});
  graph.handlers.push_back(handler);
  return graph.handlers.back();
}

graph::Edge& Pipeline::connect(const std::string& from, const std::string& to, graph::Policy policy) {
  graph::Edge edge;
  split(from, edge.source, edge.source_port);
  split(to, edge.target, edge.target_port);
  edge.policy = policy;
  graph.edges.push_back(edge);
  return graph.edges.back();
}

void Pipeline::clock(graph::ClockMode mode, int64_t rate_num, int64_t rate_den, uint32_t in_flight) {
  graph::Clock clock;
  clock.mode = mode;
  clock.rate = {rate_num, rate_den};
  clock.in_flight = in_flight;
  graph.clocks.push_back(clock);
}

Pipeline line(const std::vector<std::string>& types, const std::string& log, int64_t count) {
  Pipeline p;
  p.add("source", "t.count", {{"count", std::to_string(count)}});
  for (const std::string& type : types) {
    const std::string name = "h" + std::to_string(p.graph.handlers.size());
    p.connect(p.graph.handlers.back().name, name);
    p.add(name, type);
  }
  p.connect(p.graph.handlers.back().name, "sink");
  p.add("sink", "t.sink", {{"log", log}});
  return p;
}

namespace {

std::mutex living_mutex;
std::set<const Compiled*> living;

} // namespace

Compiled::Compiled(Pipeline pipeline, const Setup& setup)
    : PlanView(plan_),
      setup_(setup),
      graph_(std::move(pipeline.graph)),
      pinned_(std::make_shared<device::PinnedRanges>()) {
  for (const graph::Handler& handler : graph_.handlers)
    for (const graph::Param& param : handler.params)
      if (param.name == "log") log_->declare(param.text);
  const MakesHandlersFor makes_handlers_for(log_);
  registry_.add(test_plugin(), "");
  if (setup_.more) registry_.add(*setup_.more, "");
  prepared_ = plan::prepare(graph_, registry_, exec::host_table(), true, setup_.watch);
  plan::Machine machine;
  machine.workers = setup_.workers;
  machine.use(plan::domains_named(setup_.domains));
  machine.hops = setup_.hops;
  machine.bodies = setup_.bodies;
  machine.launches = setup_.launches;
  plan::Options options;
  options.costs_ns = setup_.costs_ns;
  options.nodes = setup_.nodes;
  options.node = setup_.node;
  options.round_trip_ns = setup_.round_trip_ns;
  plan_ = plan::compile(graph_, prepared_, registry_, exec::host_table(), machine, options);
  // A run needs of its plan only what is written of it.
  if (setup_.seed % 2 == 1) plan_ = read_plan(write_plan(plan_));
  const std::shared_ptr<device::SimFabric> fabric = device::make_fabric();
  for (const plan::Domain& domain : plan_.domains) {
    if (domain.is_host()) {
      devices_.push_back(std::make_unique<device::CpuDevice>(pinned_));
      continue;
    }
    if (setup_.make_gpu && domain.bodies == plan::Bodies::enqueued) {
      devices_.push_back(setup_.make_gpu(domain.name, pinned_));
      continue;
    }
    device::SimOptions sim;
    sim.domain = domain.name;
    sim.pinned = pinned_;
    sim.latency_ns = setup_.virtual_time ? 10'000 : 0;
    sim.fabric = fabric;
    sim.enqueues = domain.bodies == plan::Bodies::enqueued;
    for (const plan::Hop& hop : setup_.hops) join(hop, sim);
    sim.time = setup_.virtual_time ? &time() : nullptr;
    sim.adversarial = setup_.adversarial || (sim.enqueues && !setup_.virtual_time);
    sim.check_races = true;
    sim.seed = setup_.seed;
    sim.faults = sim.enqueues ? setup_.gpu_faults : setup_.faults;
    if (sim.enqueues) setup_.gpu(sim);
    devices_.push_back(device::make_sim(sim));
  }
  if (setup_.virtual_time) {
    setup_.options.virtual_time = &time();
    if (!setup_.options.cost_ns)
      setup_.options.cost_ns = [costs = setup_.costs_ns](const std::string& handler, uint64_t) {
        const auto at = costs.find(handler);
        return at == costs.end() ? int64_t{0} : at->second;
      };
  }
  std::vector<device::Device*> devices;
  for (const auto& device : devices_) devices.push_back(device.get());
  run_ = std::make_unique<exec::Run>(plan_, graph_, prepared_.handlers, devices, setup_.options);
  const std::lock_guard lock(living_mutex);
  living.insert(this);
}

exec::NewStream Compiled::stream_for(const graph::Graph& written, uint32_t clock, const std::string& name,
                                     const Params& fields, exec::StreamDone done) const {
  graph::Stream stream;
  stream.name = name;
  for (const auto& [field, text] : fields) stream.fields.push_back({field, text, {}, {}});
  const MakesHandlersFor makes_handlers_for(log_);
  auto made = std::make_shared<plan::MadeStream>(
      plan::make_stream(written, graph_, plan_, {clock, stream}, registry_, exec::host_table(), setup_.watch));
  return {name, std::move(made), std::move(done)};
}

Compiled::~Compiled() {
  const std::lock_guard lock(living_mutex);
  living.erase(this);
}

const void* where_device_works(const void* address) {
  const std::lock_guard lock(living_mutex);
  std::byte* const seen = static_cast<std::byte*>(const_cast<void*>(address));
  for (const Compiled* compiled : living)
    for (const plan::Domain& domain : compiled->plan().domains)
      if (std::byte* const there = compiled->device(domain.name).body_address(seen); there != seen) return there;
  return address;
}

bool Compiled::lost_a_device() const {
  return std::any_of(devices_.begin(), devices_.end(), [](const auto& device) { return !device->status().ok(); });
}

device::Device& Compiled::device(const std::string& domain) const {
  for (const auto& device : devices_)
    if (device->domain() == domain) return *device;
  throw std::invalid_argument("no such device: " + domain);
}

const HandlerReport& Ran::handler(const std::string& name) const {
  for (const HandlerReport& candidate : report.handlers)
    if (candidate.name == name) return candidate;
  throw std::invalid_argument("no such handler: " + name);
}

Ran Compiled::run() {
  run_->start();
  return wait();
}

Ran run(Pipeline pipeline, const Setup& setup) { return Compiled(std::move(pipeline), setup).run(); }

int code_of(Pipeline pipeline, const Setup& setup) {
  try {
    const Compiled compiled(std::move(pipeline), setup);
  } catch (const Failure& failure) {
    return failure.error().code;
  }
  return 0;
}

uint64_t dropped(const EdgeReport& edge, const std::string& cause) {
  const auto at = edge.dropped.find(cause);
  return at == edge.dropped.end() ? 0 : at->second;
}

uint64_t copied(const Result& result, const std::string& from, const std::string& to) {
  uint64_t count = 0;
  for (const TransferReport& transfer : result.report.transfers)
    if ((from.empty() || transfer.from == from) && (to.empty() || transfer.to == to)) count += transfer.count;
  return count;
}

plan::Hop copy_hop(const std::string& from, const std::string& to, double latency_us, double us_per_byte) {
  return {from, to, plan::HopPrice(latency_us, us_per_byte)};
}

plan::Hop access_hop(const std::string& from, const std::string& to, double us_per_byte) {
  plan::Hop hop{from, to};
  hop.price.access_us_per_byte = us_per_byte;
  return hop;
}

std::vector<int64_t> values(const std::vector<Seen>& log, size_t input) {
  std::vector<int64_t> list;
  for (const Seen& seen : log) list.push_back(seen.values.at(input));
  return list;
}

} // namespace millrace::test
