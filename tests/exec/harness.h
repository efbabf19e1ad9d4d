// Graphs made in code, small handlers whose values tests can follow, and a run in threads or in virtual time.
#pragma once

#include <millrace/handler.h>

#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "device/cpu/cpu_device.h"
#include "device/pinned_ranges.h"
#include "device/sim/sim.h"
#include "exec/run.h"
#include "graph/graph.h"
#include "plan/plan.h"
#include "plugin/registry.h"
#include "tests/milliseconds.h"
#include "tests/plan/plan_view.h"

namespace millrace::test {

// What a sink saw at one tick: one value a connected input; kEmpty where it was empty.
inline constexpr int64_t kEmpty = INT64_MIN;
struct Seen {
  uint64_t index;
  int64_t media_time_ns;
  std::vector<int64_t> values;
  friend bool operator==(const Seen&, const Seen&) = default;
};

// Gives a tensor of one element.
inline void write_one(const Output<Tensor>& out, Tick& tick, int64_t value) {
  const int64_t shape[] = {1};
  out.allocate(tick, dtype_of<int64_t>(), shape).elements<int64_t>()[0] = value;
}
inline int64_t read_one(const TensorView& view) { return view.elements<int64_t>()[0]; }

// What the handlers of one run saw, by the name in their `log` parameter. Each Compiled has one of its own, so no run
// sees what another one wrote. Any thread may write and read.
class ValueLog {
 public:
  // A handler of the run writes to this name, so that it may be asked for.
  void declare(const std::string& name);
  void write(const std::string& name, Seen seen);
  // Throws std::out_of_range if no handler writes to the name, or if none has written yet.
  std::vector<Seen> at(const std::string& name) const;
  // Every name that was declared, also those that nothing was written to.
  std::map<std::string, std::vector<Seen>> all() const;

 private:
  mutable std::mutex mutex_;
  std::map<std::string, std::vector<Seen>> seen_;
};

// A handler's way to the log of its run. A Compiled makes all its handlers on the thread that constructs it, and this
// finds the log there: so it has to be a member of the handler.
class LogWriter {
 public:
  LogWriter();
  void write(const std::string& name, Seen seen) const;

 private:
  std::shared_ptr<ValueLog> log_;
};

// The arithmetic of t.join: an order of inputs, a value in another place, a missing one all change the result.
int64_t mix(int64_t a, int64_t b);
// That of t.need and t.paced, and that of t.keep. Both wrap around: graphs may be deep.
int64_t thousands(int64_t a, int64_t b);
int64_t sum(int64_t a, int64_t b);

// How often t.foreign's memory was given to the last run, and given back.
int64_t foreign_adopted();
int64_t foreign_released();

// Handlers: t.count (source: index; count, rate, step_ns, silent_every, end), t.relay (value + add; silent_every,
// fail_at, fail_every), t.join (list, all optional: mixes), t.need (two required inputs), t.sink (list, optional),
// t.ended (as t.sink, but logs which inputs have ended), t.late (pending: answers `after` firings later), t.paint (in
// place: adds to its input's bytes), t.forward (its input's own buffer), t.keep (sums three values), t.restarting (its
// starts), t.stateless and t.capturable (relays). A value is one number, `size` times over; who reads one looks at all
// of it. With `log` also others than sinks write down what they saw; t.keep its sum.
const mr_plugin& test_plugin();

using Params = std::map<std::string, std::string>;

class Pipeline {
 public:
  Pipeline() = default;
  // As on the command line: `t.count name=source count=9 ! t.sink log=seen`.
  explicit Pipeline(const std::string& one_line) : graph(graph::parse_line(one_line)) {}
  graph::Handler& add(const std::string& name, const std::string& type, const Params& params = {});
  graph::Edge& connect(const std::string& from, const std::string& to, graph::Policy policy = graph::Policy::sync);
  void clock(graph::ClockMode mode, int64_t rate_num = 0, int64_t rate_den = 1, uint32_t in_flight = 0);
  graph::Graph graph;
};

// source (t.count) → handlers of the types, "h1", "h2", …, one after another → sink (t.sink).
Pipeline line(const std::vector<std::string>& types, const std::string& log, int64_t count);

struct Setup {
  uint32_t workers = 1;
  std::vector<std::string> domains = {"cpu"};
  bool virtual_time = false;
  bool adversarial = false;
  uint64_t seed = 1;
  device::SimFaults faults;
  // Of cuda:N, which are simulated devices whose bodies enqueue: nothing runs there before somebody who waits makes it,
  // in an order that the seed gives. `gpu` may say otherwise.
  device::SimFaults gpu_faults;
  std::function<void(device::SimOptions&)> gpu = [](device::SimOptions&) {};
  // Set: makes cuda:N instead, in the order of the plan's domains.
  std::function<std::unique_ptr<device::Device>(const std::string&, std::shared_ptr<device::PinnedRanges>)> make_gpu;
  std::vector<std::string> nodes; // that run the graph together; empty: this one alone
  uint32_t node = 0;
  int64_t round_trip_ns = 0;           // as the nodes measured it before they planned
  device::VirtualTime* time = nullptr; // set: virtual time, together with other runs
  std::vector<plan::Hop> hops;         // the plan is told of them, and the devices have them
  exec::RunOptions options;
  plugin::CallWatch* watch = nullptr;      // outlives the run
  std::map<std::string, int64_t> costs_ns; // virtual time, and the partition
  std::vector<plan::BodyCost> bodies;      // measured, for handlers that the plan places
  std::vector<plan::LaunchCost> launches;  // the same of devices
  const mr_plugin* more = nullptr;         // handlers of the test's own
};

// How a run ended, and what its handlers saw.
struct Ran : Result {
  std::shared_ptr<const ValueLog> log;
  // Throws where nobody wrote to the name: a test that looks at nothing must not pass.
  std::vector<Seen> seen(const std::string& name) const { return log->at(name); }
  // For a run that may end before anybody writes to the name. Throws where no handler would have.
  std::vector<Seen> seen_if_any(const std::string& name) const { return log->all().at(name); }
  // What the report says of it; throws where there is no such handler.
  const HandlerReport& handler(const std::string& name) const;
  // By name; empty where a handler was never called.
  std::map<std::string, std::vector<Seen>> all_seen() const { return log->all(); }
};

// Compiles and holds everything that a run needs, in the right order of destruction. Questions about its plan are
// PlanView's.
class Compiled : public PlanView {
 public:
  Compiled(Pipeline pipeline, const Setup& setup);
  ~Compiled();
  Ran run();
  Ran wait() { return {run_->wait(), log_}; } // of a run that was started by live()
  exec::Run& live() { return *run_; }
  std::vector<Seen> seen(const std::string& name) const { return log_->at(name); }
  // The handlers of a stream that is to come into that place, made as a program makes them.
  exec::NewStream stream_for(const graph::Graph& written, uint32_t clock, const std::string& name, const Params& fields,
                             exec::StreamDone done) const;
  bool lost_a_device() const;
  device::Device& device(const std::string& domain) const;
  const plan::Plan& plan() const { return plan_; }
  device::VirtualTime& time() { return setup_.time ? *setup_.time : time_; }

 private:
  Setup setup_;
  graph::Graph graph_;
  std::shared_ptr<ValueLog> log_ = std::make_shared<ValueLog>();
  plugin::Registry registry_;
  plan::Prepared prepared_;
  plan::Plan plan_;
  device::VirtualTime time_;
  std::shared_ptr<device::PinnedRanges> pinned_;
  std::vector<std::unique_ptr<device::Device>> devices_;
  std::unique_ptr<exec::Run> run_;
};

Ran run(Pipeline pipeline, const Setup& setup = {});

// The code that a run is refused with before it starts; 0 where it is not.
int code_of(Pipeline pipeline, const Setup& setup = {});

// Where the bytes are that the host sees at this address: of simulated devices of any Compiled that lives, where the
// host may not read them. For tests that look at what a device holds.
const void* where_device_works(const void* address);

// What was dropped on an edge for this cause.
uint64_t dropped(const EdgeReport& edge, const std::string& cause);

// Copies that a run made from one domain to another; "" is any.
uint64_t copied(const Result& result, const std::string& from = "", const std::string& to = "");

// From one domain to another: copies of this price; or reading in place at so much a byte.
plan::Hop copy_hop(const std::string& from, const std::string& to, double latency_us, double us_per_byte = 0);
plan::Hop access_hop(const std::string& from, const std::string& to, double us_per_byte = 0);

// The single values of a log, in order.
std::vector<int64_t> values(const std::vector<Seen>& log, size_t input = 0);

} // namespace millrace::test
