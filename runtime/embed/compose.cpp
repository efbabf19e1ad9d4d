// Composes registry, plan, devices and run; see compose.h.
#include "embed/compose.h"

#include <algorithm>
#include <cstdlib>
#include <set>
#include <sstream>
#include <thread>

#include "device/cpu/cpu_device.h"
#include "device/sim/sim.h"
#include "embed/device_module.h"
#include "embed/facts_file.h"
#include "embed/host_memory.h"
#include "embed/log_composition.h"
#include "exec/run.h"
#include "exec/run_options.h"
#include "graph/quantity.h"
#include "graph/unfold.h"
#include "observe/error_codes.h"
#include "observe/log.h"
#include "observe/printable.h"
#include "plan/choose_nodes.h"
#include "plan/compile.h"
#include "plan/make_stream.h"
#include "plan/plan.h"
#include "plan/share_threads.h"
#include "plugin/registry.h"

namespace millrace::embed {

namespace {

// Debug builds and builds with sanitizers check that fences order all accesses of a simulated device to the same bytes.
#ifdef MILLRACE_CHECK_RACES
constexpr bool kCheckRaces = true;
#else
constexpr bool kCheckRaces = false;
#endif

// More are a typing error: each device has its own streams, and a simulated one its own threads.
constexpr size_t kDevicesMax = 16;

void require_cuda(const plan::Domain& domain) {
  const LoadedModule& loaded = cuda_module();
  if (domain.index < loaded.count) return;
  Error error{code::device_unavailable, domain.name + " is not available", {}, {}, "", "--devices cpu"};
  error.notes.push_back(loaded.count == 0
                            ? loaded.why
                            : "the driver has " + std::to_string(loaded.count) + ": cuda:0" +
                                  (loaded.count > 1 ? " to cuda:" + std::to_string(loaded.count - 1) : ""));
  error.notes.push_back("available: cpu, and sim:0 to sim:999, which simulate a device");
  throw Failure(std::move(error));
}

[[noreturn]] void refuse_gpu_word(const std::string& name) {
  const LoadedModule& loaded = cuda_module();
  const std::string meant = gpu_meant(name);
  Error error{code::bad_command_line,
              "--devices names an unknown device \"" + name + "\"",
              {},
              {"devices: cpu, cuda:N, sim:N"},
              meant,
              "--devices " + meant};
  if (loaded.count == 0) {
    error.notes.push_back(meant + " is not available: " + loaded.why);
    error.edit = "--devices cpu";
  }
  throw Failure(std::move(error));
}

// The bytes of memory that a domain has for a plan; 0: unknown.
uint64_t bytes_there(const MachineFile& machine, const plan::Domain& domain) {
  switch (domain.kind) {
    case plan::DomainKind::cpu: return host_memory_limit();
    case plan::DomainKind::sim: return sim_options(machine, domain.name).bytes_limit;
    case plan::DomainKind::cuda:
      require_cuda(domain); // a saved plan may name one that is not here
      return cuda_module().module->bytes_free(domain.index);
  }
  return 0;
}

// The smaller of the bytes that are there and those that the machine file allows; 0: unknown.
uint64_t bytes_limit(const MachineFile& machine, const plan::Domain& domain) {
  const uint64_t there = bytes_there(machine, domain);
  const auto allowed = machine.bytes_allowed.find(domain.name);
  if (allowed == machine.bytes_allowed.end()) return there;
  return there == 0 ? allowed->second : std::min(there, allowed->second);
}

plan::Machine machine_of(const Choices& choices, const plan::SharedThreads& threads) {
  plan::Machine machine;
  machine.workers = threads.workers;
  machine.library_threads = threads.of_libraries;
  machine.use(plan::domains_named(choices.domains));
  for (plan::Domain& domain : machine.domains) domain.bytes_limit = bytes_limit(choices.machine, domain);
  machine.hops = simulated_hops(choices.machine, choices.domains);
  // If a hop is listed twice, the last one counts.
  machine.hops.insert(machine.hops.end(), choices.machine.hops.begin(), choices.machine.hops.end());
  machine.bodies = choices.machine.bodies;
  machine.launches = choices.machine.launches;
  if (!choices.saved.text.empty()) machine.bodies.clear(); // the saved plan says what handlers cost
  return machine;
}

// Says which machine runs a handler; empty: all run here.
std::function<plan::Runs(const graph::Handler&)> who_runs(const graph::Graph& graph, const plugin::Registry& registry,
                                                          const Choices& choices) {
  using enum plan::Runs;
  if (choices.elsewhere) return [](const graph::Handler&) { return elsewhere; };
  if (choices.node.empty()) return {};
  return [&graph, &registry, &choices](const graph::Handler& handler) {
    if (!handler.node.empty()) return handler.node == choices.node ? here : elsewhere;
    const plugin::RegisteredType* const type = registry.find(handler.type);
    if (!type || plan::may_move(*type)) return perhaps_here;
    return graph::node_of(graph, handler) == choices.node ? here : elsewhere;
  };
}

// A saved plan's threads are shared out as they were.
plan::SharedThreads share_threads(graph::Graph& graph, const plugin::Registry& registry, const Choices& choices) {
  uint32_t threads = choices.threads ? choices.threads : std::max(1u, std::thread::hardware_concurrency());
  if (!choices.saved.text.empty()) threads = choices.saved.workers + choices.saved.library_threads;
  const auto runs = who_runs(graph, registry, choices);
  return plan::share_threads(graph, registry, threads, [&](const graph::Handler& handler) {
    return !runs || runs(handler) != plan::Runs::elsewhere;
  });
}

plan::Prepared prepare(graph::Graph& graph, const plugin::Registry& registry, const mr_host& host,
                       const Choices& choices) {
  const std::function<plan::Runs(const graph::Handler&)> where = who_runs(graph, registry, choices);
  const bool probe = choices.probe && choices.facts.empty();
  plan::Prepared prepared =
      plan::prepare(graph, registry, host, probe, choices.watch.get(), choices.kept, where, choices.confine.get());
  if (choices.facts.empty()) return prepared;
  apply_facts(choices.facts, choices.probe, prepared);
  return prepared;
}

// Throws MistakesKept if mistakes were kept: without all its instances a graph has others, which follow from them.
graph::Graph unfolded(graph::Graph graph, std::vector<Error>* kept) {
  const bool has_templates = std::any_of(graph.handlers.begin(), graph.handlers.end(),
                                         [](const graph::Handler& handler) { return !handler.for_each.empty(); });
  if (!has_templates && graph.streams.empty()) return graph;
  if (!kept) return graph::unfold(graph);
  if (kept->empty()) graph = graph::unfold(graph, kept);
  if (!kept->empty()) throw MistakesKept();
  return graph;
}

plan::Options options_of(const Choices& choices) {
  plan::Options options;
  options.clock = choices.clock;
  options.rate = choices.rate;
  options.by_price = choices.by_price;
  options.places = choices.saved.places;
  options.costs_ns = choices.saved.costs_ns;
  return options;
}

} // namespace

std::vector<std::string> parse_domains(const std::string& list) {
  std::vector<std::string> domains;
  std::istringstream text(list + ",");
  for (std::string name; std::getline(text, name, ',');) {
    const std::optional<plan::Domain> domain = plan::parse_domain(name);
    if (domain && domain->kind == plan::DomainKind::cuda) require_cuda(*domain);
    if (!gpu_meant(name).empty()) refuse_gpu_word(name);
    if (!domain || !domain->node.empty())
      throw Failure(Error{code::bad_command_line,
                          "--devices names an unknown device \"" + name + "\"",
                          {},
                          {"devices: cpu, cuda:N, sim:N"},
                          nearest_name(name, {"cpu", "sim:0", "cuda:0"}),
                          "--devices cpu"});
    if (std::find(domains.begin(), domains.end(), name) != domains.end())
      throw Failure(code::bad_command_line, "--devices names " + name + " twice");
    domains.push_back(name);
  }
  if (domains.size() > kDevicesMax)
    throw Failure(code::bad_command_line, "--devices names more than " + std::to_string(kDevicesMax) + " devices");
  return domains;
}

graph::ClockMode parse_clock_mode(const std::string& word) {
  if (word == "realtime") return graph::ClockMode::realtime;
  if (word == "free") return graph::ClockMode::free;
  if (word == "source") return graph::ClockMode::source;
  const std::string nearest = nearest_name(word, {"realtime", "free", "source"});
  throw Failure(Error{code::bad_command_line,
                      "there is no clock mode \"" + word + "\"",
                      {},
                      {"modes: realtime, free, source"},
                      nearest,
                      "--clock " + (nearest.empty() ? "realtime" : nearest)});
}

graph::Rational parse_rate(const std::string& text) {
  const auto rate = graph::read_rate(text);
  if (!rate || rate->numerator <= 0) {
    const std::string digits = text.substr(0, text.find_first_not_of("0123456789.")); // "30fps", "30 Hz"
    const auto meant = graph::read_rate(digits);
    throw Failure(Error{code::bad_command_line,
                        "\"" + text + "\" is no rate",
                        {},
                        {"a rate is written 30, 29.97 or 30000/1001"},
                        "",
                        "--rate " + (meant && meant->numerator > 0 ? digits : "30")});
  }
  return *rate;
}

std::vector<std::unique_ptr<device::Device>> make_devices(const MachineFile& machine,
                                                          const std::vector<plan::Domain>& domains,
                                                          const std::shared_ptr<device::PinnedRanges>& pinned) {
  std::vector<std::unique_ptr<device::Device>> devices;
  const std::shared_ptr<device::SimFabric> fabric = device::make_fabric();
  device::ModuleOptions cuda{{}, pinned, ""};
  if (const char* faults = std::getenv("MILLRACE_CUDA_FAULTS")) cuda.faults = faults;
  for (const plan::Domain& domain : domains)
    if (domain.kind == plan::DomainKind::cuda) cuda.devices.push_back(domain.index);
  std::string why;
  std::vector<std::unique_ptr<device::Device>> gpus;
  if (!cuda.devices.empty()) gpus = cuda_module().module->make(cuda, why);
  if (!why.empty()) throw Failure(code::device_out_of_memory, "the CUDA devices could not be opened: " + why);
  size_t next_gpu = 0;
  for (const plan::Domain& domain : domains) {
    switch (domain.kind) {
      case plan::DomainKind::cpu: devices.push_back(std::make_unique<device::CpuDevice>(pinned)); break;
      case plan::DomainKind::cuda: devices.push_back(std::move(gpus[next_gpu++])); break;
      case plan::DomainKind::sim: {
        device::SimOptions options = sim_options(machine, domain.name);
        options.fabric = fabric;
        options.pinned = pinned;
        options.check_races = kCheckRaces;
        devices.push_back(device::make_sim(options));
        break;
      }
    }
  }
  return devices;
}

Preparation::Preparation(Preparation&&) noexcept = default;
Preparation::~Preparation() = default;

Preparation::Preparation(graph::Graph graph, const plugin::Registry& registry, const mr_host& host,
                         const Choices& choices)
    : registry_(&registry),
      host_(&host),
      machine_file_(choices.machine),
      saved_(choices.saved),
      watch_(choices.watch),
      confine_(choices.confine),
      written_(std::move(graph)),
      graph_(unfolded(written_, choices.kept)),
      threads_(share_threads(graph_, registry, choices)),
      prepared_(prepare(graph_, registry, host, choices)),
      machine_(machine_of(choices, threads_)),
      options_(options_of(choices)) {}

plan::Options Preparation::options_of_node(uint32_t node) const {
  plan::Options options = options_;
  options.nodes = graph::node_names(graph_);
  options.node = node;
  return options;
}

void Preparation::run_on(const std::string& handler, const std::string& node) {
  for (graph::Handler& declared : graph_.handlers)
    if (declared.name == handler) declared.node = node;
}

plan::ChosenNodes Preparation::choose_nodes(const plan::Machine& joined, const plan::Options& options,
                                            const plan::OfferedNodes& offered) const {
  return plan::choose_nodes(graph_, prepared_.facts, plan::LiveTypes(*registry_, *host_, watch_.get()), joined, options,
                            offered);
}

plan::Plan Preparation::compile(const plan::Options& options) {
  plan::Plan plan = plan::compile(graph_, prepared_, *registry_, *host_, machine_, options);
  for (const auto& instance : prepared_.handlers.instances) {
    if (!instance) continue; // another node has it
    for (const plugin::Message& message : instance->messages())
      if (!message.noted && (message.level == MR_LOG_INFO || message.level == MR_LOG_WARNING))
        plan.said.push_back(instance->name() + ": " + printable(message.sentence));
  }
  return plan;
}

struct Composition::Parts {
  Preparation preparation;
  plan::Plan plan;
  std::shared_ptr<device::PinnedRanges> pinned;
  std::vector<std::unique_ptr<device::Device>> devices; // by domain of the plan
  Parts(Preparation the_preparation, plan::Plan the_plan);
  ~Parts(); // destroys the host's device last: other devices copy into its memory
};

Composition::Parts::Parts(Preparation the_preparation, plan::Plan the_plan)
    : preparation(std::move(the_preparation)), plan(std::move(the_plan)) {}

Composition::Parts::~Parts() {
  while (!devices.empty()) devices.pop_back();
}

Composition::Composition(graph::Graph graph, const plugin::Registry& registry, const mr_host& host,
                         const Choices& choices)
    : Composition(Preparation(std::move(graph), registry, host, choices), options_of(choices)) {}

Composition::Composition(Preparation&& preparation, const plan::Options& options) {
  plan::Plan plan = preparation.compile(options);
  if (!preparation.saved_.text.empty()) require_same(preparation.saved_, plan);
  parts_ = std::make_unique<Parts>(std::move(preparation), std::move(plan));
}

const plan::Plan& Composition::plan() const { return parts_->plan; }

const graph::Graph& Composition::graph() const { return parts_->preparation.graph(); }

const graph::Handler& Composition::declared_of(uint32_t handler) const {
  return plan::declared_of(parts_->plan, parts_->preparation.graph(), handler);
}

plugin::Instance* Composition::find(const std::string& handler) const {
  for (const auto& instance : parts_->preparation.prepared_.handlers.instances)
    if (instance && instance->name() == handler) return instance.get(); // none of another node
  return nullptr;
}

plan::MadeStream Composition::make_stream(const plan::StreamToMake& asked) const {
  const Preparation& preparation = parts_->preparation;
  plan::StreamToMake wanted = asked;
  wanted.confine = preparation.confine_.get();
  return plan::make_stream(preparation.written_, preparation.graph_, parts_->plan, wanted, *preparation.registry_,
                           *preparation.host_, preparation.watch_.get());
}

const graph::Stream& Composition::stream_of(uint32_t clock) const {
  return plan::stream_of(parts_->preparation.graph_, parts_->plan, clock);
}

Composition::~Composition() {
  if (is_stuck()) (void)parts_.release();
}

bool Composition::is_stuck() const {
  return std::any_of(parts_->devices.begin(), parts_->devices.end(),
                     [](const auto& device) { return device->is_stuck(); });
}

std::unique_ptr<exec::Run> Composition::make_run(const exec::RunOptions& options) {
  Parts& parts = *parts_;
  MR_ASSERT(parts.devices.empty(), "a composition runs once");
  parts.pinned = std::make_shared<device::PinnedRanges>();
  parts.devices = make_devices(parts.preparation.machine_file_, parts.plan.domains, parts.pinned);
  std::vector<device::Device*> devices;
  for (const auto& device : parts.devices) devices.push_back(device.get());
  exec::RunOptions chosen = options;
  chosen.confine = parts.preparation.confine_.get();
  if (Log* const log = options.log) {
    log_composition(*log, parts.plan);
    if (!options.on_message) chosen.on_message = [log](const std::string& line) { log->log_line(line); };
  }
  Preparation& preparation = parts.preparation;
  return std::make_unique<exec::Run>(parts.plan, preparation.graph_, preparation.prepared_.handlers, devices, chosen);
}

} // namespace millrace::embed
