// The way from a graph in code to a finished run; see harness.h.
#include "harness.h"

#include <algorithm>
#include <mutex>
#include <nlohmann/json.hpp>
#include <set>
#include <stdexcept>

#include "device/cpu/cpu_device.h"
#include "device/pinned_ranges.h"
#include "device/sim/sim.h"
#include "device/timeline.h"
#include "endless_run.h"
#include "exec/run.h"
#include "observe/report.h"
#include "plan/compile.h"
#include "plan/domain.h"
#include "plan/machine.h"
#include "plan/make_stream.h"
#include "plan/plan.h"
#include "plan/prepare.h"
#include "plugin/registry.h"
#include "tests/exec/test_handlers.h"
#include "tests/plan/plan_json.h"

namespace millrace::test {

namespace {

// Gives the device that copies over a hop the times that the plan has for it.
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

std::mutex living_mutex;
std::set<const Compiled*> living;

} // namespace

// The members are destroyed from the last to the first: the run before what it refers to.
struct Compiled::Parts {
  Setup setup;
  graph::Graph graph;
  std::shared_ptr<ValueLog> log = std::make_shared<ValueLog>();
  plugin::Registry registry;
  plan::Prepared prepared;
  plan::Plan plan;
  device::VirtualTime own_time;
  std::shared_ptr<device::PinnedRanges> pinned = std::make_shared<device::PinnedRanges>();
  std::vector<std::unique_ptr<device::Device>> devices;
  std::unique_ptr<exec::Run> run;

  Parts(Pipeline pipeline, const Setup& the_setup);
  device::VirtualTime& time() { return setup.time ? *setup.time : own_time; }
};

Compiled::Parts::Parts(Pipeline pipeline, const Setup& the_setup) : setup(the_setup), graph(std::move(pipeline.graph)) {
  for (const graph::Handler& handler : graph.handlers)
    for (const graph::Param& param : handler.params)
      if (param.name == "log") log->declare(param.text);
  const MakesHandlersFor makes_handlers_for(log);
  registry.add(test_plugin(), "");
  if (setup.more) registry.add(*setup.more, "");
  prepared = plan::prepare(graph, registry, exec::host_table(), true, setup.watch);
  plan::Machine machine;
  machine.workers = setup.workers;
  machine.use(plan::domains_named(setup.domains));
  machine.hops = setup.hops;
  setup.machine(machine);
  plan::Options options;
  options.costs_ns = setup.costs_ns;
  options.nodes = setup.nodes;
  options.node = setup.node;
  options.round_trip_ns = setup.round_trip_ns;
  plan = plan::compile(graph, prepared, registry, exec::host_table(), machine, options);
  // A run needs of its plan only what is written of it.
  if (setup.seed % 2 == 1) plan = read_plan(write_plan(plan));
  const std::shared_ptr<device::SimFabric> fabric = device::make_fabric();
  for (const plan::Domain& domain : plan.domains) {
    if (domain.is_host()) {
      devices.push_back(std::make_unique<device::CpuDevice>(pinned));
      continue;
    }
    if (setup.make_gpu && domain.bodies == plan::Bodies::enqueued) {
      devices.push_back(setup.make_gpu(domain.name, pinned));
      continue;
    }
    device::SimOptions sim;
    sim.domain = domain.name;
    sim.pinned = pinned;
    sim.latency_ns = setup.virtual_time ? 10'000 : 0;
    sim.fabric = fabric;
    sim.enqueues = domain.bodies == plan::Bodies::enqueued;
    for (const plan::Hop& hop : setup.hops) join(hop, sim);
    sim.time = setup.virtual_time ? &time() : nullptr;
    sim.adversarial = setup.adversarial || (sim.enqueues && !setup.virtual_time);
    sim.check_races = true;
    sim.seed = setup.seed;
    sim.faults = sim.enqueues ? setup.gpu_faults : setup.faults;
    if (sim.enqueues) setup.gpu(sim);
    devices.push_back(device::make_sim(sim));
  }
  if (setup.virtual_time) {
    setup.options.virtual_time = &time();
    if (!setup.options.cost_ns)
      setup.options.cost_ns = [costs = setup.costs_ns](const std::string& handler, uint64_t) {
        const auto at = costs.find(handler);
        return at == costs.end() ? int64_t{0} : at->second;
      };
  }
  std::vector<device::Device*> by_domain;
  for (const auto& device : devices) by_domain.push_back(device.get());
  run = std::make_unique<exec::Run>(plan, graph, prepared.handlers, by_domain, setup.options);
}

Compiled::Compiled(Pipeline pipeline, const Setup& setup)
    : Compiled(std::make_unique<Parts>(std::move(pipeline), setup)) {}

Compiled::Compiled(std::unique_ptr<Parts> parts) : PlanView(parts->plan), parts_(std::move(parts)) {
  const std::lock_guard lock(living_mutex);
  living.insert(this);
}

Ran Compiled::wait() { return {parts_->run->wait(), parts_->log}; }

exec::Run& Compiled::live() { return *parts_->run; }

std::vector<Seen> Compiled::seen(const std::string& name) const { return parts_->log->at(name); }

const plan::Plan& Compiled::plan() const { return parts_->plan; }

device::VirtualTime& Compiled::time() { return parts_->time(); }

exec::NewStream Compiled::stream_for(const graph::Graph& written, uint32_t clock, const std::string& name,
                                     const Params& fields, exec::StreamDone done) const {
  graph::Stream stream;
  stream.name = name;
  for (const auto& [field, text] : fields) stream.fields.push_back({field, text, {}, {}});
  const MakesHandlersFor makes_handlers_for(parts_->log);
  auto made =
      std::make_shared<plan::MadeStream>(plan::make_stream(written, parts_->graph, parts_->plan, {clock, stream},
                                                           parts_->registry, exec::host_table(), parts_->setup.watch));
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
  return std::any_of(parts_->devices.begin(), parts_->devices.end(),
                     [](const auto& device) { return !device->status().ok(); });
}

device::Device& Compiled::device(const std::string& domain) const {
  for (const auto& device : parts_->devices)
    if (device->domain() == domain) return *device;
  throw std::invalid_argument("no such device: " + domain);
}

const HandlerReport& Ran::handler(const std::string& name) const {
  for (const HandlerReport& candidate : report.handlers)
    if (candidate.name == name) return candidate;
  throw std::invalid_argument("no such handler: " + name);
}

Ran Compiled::run() {
  parts_->run->start();
  return wait();
}

Ran run(Pipeline pipeline, const Setup& setup) { return Compiled(std::move(pipeline), setup).run(); }

struct EndlessRun::Parts {
  explicit Parts(const std::string& one_line) : compiled(Pipeline(one_line), {}) {}
  Compiled compiled;
};

EndlessRun::EndlessRun(const std::string& one_line) : parts_(std::make_unique<Parts>(one_line)) {
  parts_->compiled.live().start();
}

EndlessRun::~EndlessRun() {
  parts_->compiled.live().stop();
  parts_->compiled.wait();
}

std::shared_ptr<exec::Tap> EndlessRun::tap(const std::string& output, const exec::TapOptions& options) {
  return parts_->compiled.live().tap(output, options);
}

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
