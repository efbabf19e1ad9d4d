// Composes registry, plan, devices and run; see compose.h.
#include "embed/compose.h"

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <set>
#include <sstream>
#include <thread>

#include "device/cpu/cpu_device.h"
#include "device/sim/sim.h"
#include "embed/facts_file.h"
#include "graph/quantity.h"

namespace millrace::embed {
namespace fs = std::filesystem;

namespace {

// A simulated device copies as a card on PCIe 3.0 x16 does with pinned memory, so that plans show prices of a kind
// that real ones have.
constexpr int64_t kSimLatencyNs = 10'000;
constexpr double kSimBytesPerNs = 12;
constexpr uint64_t kSimBytesLimit = 1ull << 30;

// Debug builds and those with sanitizers look whether fences order all that a simulated device does to the same bytes.
#ifdef MILLRACE_CHECK_RACES
constexpr bool kCheckRaces = true;
#else
constexpr bool kCheckRaces = false;
#endif

// More would be a typing error: each domain has streams, and simulated ones threads, of its own.
constexpr size_t kDomainsMax = 16;

bool is_indexed(const std::string& name, const std::string& kind) {
  const std::string prefix = kind + ":";
  return name.rfind(prefix, 0) == 0 && name.size() > prefix.size() && name.size() <= prefix.size() + 3 &&
         std::all_of(name.begin() + static_cast<std::ptrdiff_t>(prefix.size()), name.end(),
                     [](char c) { return c >= '0' && c <= '9'; });
}

bool is_sim(const std::string& domain) { return is_indexed(domain, "sim"); }

plan::Machine machine_of(const Choices& choices) {
  plan::Machine machine;
  machine.workers = choices.threads ? choices.threads : std::max(1u, std::thread::hardware_concurrency());
  machine.domains = choices.domains;
  for (const std::string& domain : choices.domains) {
    if (!is_sim(domain)) continue;
    machine.bytes_limit[domain] = kSimBytesLimit;
    machine.bytes_per_us[domain] = kSimBytesPerNs * 1000;
    machine.latency_us[domain] = static_cast<double>(kSimLatencyNs) / 1000;
  }
  return machine;
}

plan::Facts prepare(graph::Graph& graph, const plugin::Registry& registry, const mr_host& host,
                    const Choices& choices) {
  if (choices.facts.empty()) return plan::prepare(graph, registry, host, choices.probe);
  plan::Facts facts = plan::prepare(graph, registry, host, false);
  apply_facts(choices.facts, choices.probe, facts);
  return facts;
}

plan::Options options_of(const Choices& choices) {
  plan::Options options;
  options.clock = choices.clock;
  options.rate = choices.rate;
  return options;
}

} // namespace

std::vector<std::string> parse_domains(const std::string& list) {
  std::vector<std::string> domains;
  std::istringstream text(list + ",");
  for (std::string name; std::getline(text, name, ',');) {
    if (is_indexed(name, "cuda"))
      throw Failure(Error{408,
                          name + " is not available: it comes with the CUDA module, which this millrace does not have",
                          {},
                          {"available: cpu, and sim:0 to sim:999, which simulate a device"},
                          "",
                          "--devices cpu"});
    if (name != "cpu" && !is_sim(name))
      throw Failure(Error{105,
                          "--devices names an unknown device \"" + name + "\"",
                          {},
                          {"devices: cpu, sim:N"},
                          nearest_name(name, {"cpu", "sim:0", "cuda:0"}),
                          "--devices cpu"});
    if (std::find(domains.begin(), domains.end(), name) != domains.end())
      throw Failure(105, "--devices names " + name + " twice");
    domains.push_back(name);
  }
  if (domains.size() > kDomainsMax)
    throw Failure(105, "--devices names more than " + std::to_string(kDomainsMax) + " devices");
  return domains;
}

graph::ClockMode parse_clock_mode(const std::string& word) {
  if (word == "realtime") return graph::ClockMode::realtime;
  if (word == "free") return graph::ClockMode::free;
  if (word == "source") return graph::ClockMode::source;
  const std::string nearest = nearest_name(word, {"realtime", "free", "source"});
  throw Failure(Error{105,
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
    throw Failure(Error{105,
                        "\"" + text + "\" is no rate",
                        {},
                        {"a rate is written 30, 29.97 or 30000/1001"},
                        "",
                        "--rate " + (meant && meant->numerator > 0 ? digits : "30")});
  }
  return *rate;
}

std::vector<std::string> standard_plugin_folders() {
  std::vector<std::string> folders;
  std::error_code failed;
  const fs::path program = fs::read_symlink("/proc/self/exe", failed);
  if (!failed) {
    folders.push_back((program.parent_path() / "plugins").string());
    folders.push_back((program.parent_path().parent_path() / "lib" / "millrace" / "plugins").string());
  }
  if (const char* paths = std::getenv("MILLRACE_PLUGIN_PATH")) {
    std::istringstream text(paths);
    for (std::string folder; std::getline(text, folder, ':');)
      if (!folder.empty()) folders.push_back(folder);
  }
  return folders;
}

Composition::Composition(graph::Graph graph, const plugin::Registry& registry, const mr_host& host,
                         const Choices& choices)
    : graph_(std::move(graph)),
      facts_(prepare(graph_, registry, host, choices)),
      plan_(plan::compile(graph_, facts_, registry, host, machine_of(choices), options_of(choices))) {}

plugin::Instance* Composition::find(const std::string& handler) const {
  for (const plan::Prepared& prepared : facts_.handlers)
    if (prepared.name == handler) return prepared.instance.get();
  return nullptr;
}

void Composition::make_devices() {
  pinned_ = std::make_shared<device::PinnedRanges>();
  for (const std::string& domain : plan_.domains) {
    if (domain == "cpu") {
      devices_.push_back(std::make_unique<device::CpuDevice>(pinned_));
      continue;
    }
    MR_ASSERT(is_sim(domain), "the plan uses only domains that parse_domains let through");
    device::SimOptions options;
    options.domain = domain;
    options.bytes_limit = kSimBytesLimit;
    options.latency_ns = kSimLatencyNs;
    options.bandwidth_up = options.bandwidth_down = kSimBytesPerNs;
    options.pinned = pinned_;
    options.check_races = kCheckRaces;
    devices_.push_back(device::make_sim(options));
  }
}

std::unique_ptr<exec::Run> Composition::make_run(const exec::RunOptions& options) {
  MR_ASSERT(devices_.empty(), "a composition runs once");
  make_devices();
  std::vector<device::Device*> devices;
  for (const auto& device : devices_) devices.push_back(device.get());
  return std::make_unique<exec::Run>(plan_, graph_, facts_, devices, options);
}

} // namespace millrace::embed
