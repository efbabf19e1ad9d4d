// Reads and writes the file of a machine; see machine_file.h.
#include "embed/machine_file.h"

#include <unistd.h>

#include <cerrno>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "device/sim/sim.h"
#include "embed/json_fields.h"
#include "millrace/abi.h"
#include "observe/error_codes.h"
#include "plan/domain.h"

namespace millrace::embed {
namespace fs = std::filesystem;

namespace {

using nlohmann::json;
using nlohmann::ordered_json;

constexpr int kVersion = 1;
constexpr double kLargest = 1e15;
const JsonFields kMachineFile(code::bad_machine_file, "the machine file cannot be used");

bool is_simulated(const std::string& name) {
  const std::optional<plan::Domain> domain = plan::parse_domain(name);
  return domain && domain->kind == plan::DomainKind::sim && domain->node.empty();
}

const json& list(const json& object, const char* key) {
  static const json none = json::array();
  const auto at = object.find(key);
  if (at == object.end()) return none;
  if (!at->is_array()) kMachineFile.refuse(key, "is no list");
  return *at;
}

std::array<double, 4> four(const json& object, const char* key, const std::string& where) {
  std::array<double, 4> values{};
  const auto at = object.find(key);
  if (at == object.end()) return values;
  if (!at->is_array() || at->size() != values.size())
    kMachineFile.refuse(where + "." + key, "is no list of four times, for 4 KiB, 64 KiB, 1 MiB and 16 MiB");
  for (size_t i = 0; i < values.size(); ++i) {
    if (!(*at)[i].is_number() || (*at)[i].get<double>() < 0) kMachineFile.refuse(where + "." + key, "has no such time");
    values[i] = (*at)[i].get<double>();
  }
  return values;
}

std::string needed(const json& object, const char* key, const std::string& where) {
  const auto text = kMachineFile.text(object, key, where);
  if (!text || text->empty()) kMachineFile.refuse(where, std::string("lacks ") + key);
  return *text;
}

constexpr std::pair<const char*, uint64_t device::SimFaults::*> kFaults[] = {
    {"out_of_memory", &device::SimFaults::out_of_memory},
    {"fail_run", &device::SimFaults::fail_run},
    {"fail_copy", &device::SimFaults::fail_copy},
    {"lose_device", &device::SimFaults::lose_device},
    {"hang_command", &device::SimFaults::hang_command}};

device::SimFaults parse_faults(const json& given, const std::string& where) {
  device::SimFaults faults;
  std::vector<std::string> names;
  for (const auto& [name, nth] : kFaults) names.push_back(name);
  kMachineFile.only_keys(given, where, names);
  for (const auto& [name, nth] : kFaults)
    if (given.contains(name)) faults.*nth = static_cast<uint64_t>(kMachineFile.whole(given, name, 1, INT64_MAX, where));
  return faults;
}

Simulated parse_simulated(const json& given, const std::string& name) {
  kMachineFile.only_keys(given, name,
                         {"memory_bytes", "latency_us", "up_bytes_per_us", "down_bytes_per_us", "speed", "contention",
                          "host_access_ns_per_byte", "peers", "faults"});
  Simulated sim;
  if (given.contains("memory_bytes"))
    sim.memory_bytes = static_cast<uint64_t>(kMachineFile.whole(given, "memory_bytes", 4096, INT64_MAX, name));
  sim.latency_us = kMachineFile.number(given, "latency_us", 0, 1e9, name).value_or(sim.latency_us);
  sim.up_bytes_per_us =
      kMachineFile.number(given, "up_bytes_per_us", 1e-3, kLargest, name).value_or(sim.up_bytes_per_us);
  sim.down_bytes_per_us =
      kMachineFile.number(given, "down_bytes_per_us", 1e-3, kLargest, name).value_or(sim.down_bytes_per_us);
  sim.speed = kMachineFile.number(given, "speed", 1e-3, 1e6, name).value_or(sim.speed);
  sim.contention = kMachineFile.number(given, "contention", 0, 100, name).value_or(0);
  sim.host_access_ns_per_byte = kMachineFile.number(given, "host_access_ns_per_byte", 0, kLargest, name).value_or(0);
  const auto peers = given.find("peers");
  if (peers != given.end()) {
    if (!peers->is_object()) kMachineFile.refuse(name + ".peers", "is no object");
    for (const auto& [peer, hop] : peers->items()) {
      const std::string where = name + ".peers." + peer;
      if (!is_simulated(peer) || peer == name)
        kMachineFile.refuse(where, "is no other simulated device, such as sim:1");
      kMachineFile.only_keys(hop, where, {"latency_us", "bytes_per_us", "access_ns_per_byte"});
      Simulated::Peer& out = sim.peers[peer];
      out.latency_us = kMachineFile.number(hop, "latency_us", 0, 1e9, where).value_or(0);
      out.bytes_per_us = kMachineFile.number(hop, "bytes_per_us", 1e-3, kLargest, where).value_or(0);
      out.access_ns_per_byte = kMachineFile.number(hop, "access_ns_per_byte", 0, kLargest, where).value_or(0);
    }
  }
  if (given.contains("faults")) sim.faults = parse_faults(given.at("faults"), name + ".faults");
  return sim;
}

uint64_t parse_limit(const json& given, const std::string& name) {
  const std::string where = "limits." + name;
  if (is_simulated(name))
    kMachineFile.refuse(where, "is a simulated device, whose memory_bytes stands in simulated." + name);
  const std::optional<plan::Domain> domain = plan::parse_domain(name);
  if (!domain || !domain->node.empty())
    kMachineFile.refuse(where, "is no device of this machine, such as cpu or cuda:0");
  kMachineFile.only_keys(given, where, {"memory_bytes"});
  return static_cast<uint64_t>(kMachineFile.whole(given, "memory_bytes", 4096, INT64_MAX, where));
}

// Converts the times of the four sizes to µs per byte beyond the latency.
std::array<double, 4> rates(const std::array<double, 4>& us, double latency_us) {
  std::array<double, 4> rates{};
  for (size_t i = 0; i < us.size(); ++i)
    rates[i] = std::max(0.0, us[i] - latency_us) / static_cast<double>(plan::kHopSizes[i]);
  return rates;
}
std::array<double, 4> times(const std::array<double, 4>& us_per_byte, double latency_us) {
  std::array<double, 4> us{};
  for (size_t i = 0; i < us.size(); ++i) us[i] = latency_us + us_per_byte[i] * static_cast<double>(plan::kHopSizes[i]);
  return us;
}

plan::Hop parse_hop(const json& given, const std::string& where) {
  kMachineFile.only_keys(
      given, where,
      {"from", "to", "latency_us", "us", "p99_us", "pageable_us", "access_ns_per_byte", "engine", "overlaps_compute"});
  plan::Hop hop;
  hop.from = needed(given, "from", where);
  hop.to = needed(given, "to", where);
  if (const auto latency = kMachineFile.number(given, "latency_us", 0, 1e9, where)) hop.price.latency_us = *latency;
  if (hop.price.copies()) {
    if (!given.contains("us")) kMachineFile.refuse(where, "lacks us, the times of a copy");
    hop.price.us_per_byte = rates(four(given, "us", where), hop.price.latency_us);
    hop.price.p99_us = four(given, "p99_us", where);
    hop.pageable_us = four(given, "pageable_us", where);
  }
  if (const auto access = kMachineFile.number(given, "access_ns_per_byte", 0, kLargest, where))
    hop.price.access_us_per_byte = *access / 1000;
  hop.engine = kMachineFile.text(given, "engine", where).value_or("");
  hop.price.overlaps_compute = kMachineFile.flag(given, "overlaps_compute", where).value_or(true);
  return hop;
}

plan::BodyCost parse_body(const json& given, const std::string& where) {
  kMachineFile.only_keys(given, where,
                         {"type", "settings", "domain", "bytes", "mean_us", "p50_us", "p99_us", "calls", "items"});
  plan::BodyCost body;
  body.type = needed(given, "type", where);
  body.settings = kMachineFile.text(given, "settings", where).value_or("");
  body.domain = needed(given, "domain", where);
  body.bytes = static_cast<uint64_t>(kMachineFile.whole(given, "bytes", 0, INT64_MAX, where));
  const auto p50 = kMachineFile.number(given, "p50_us", 0, 1e12, where);
  if (!p50) kMachineFile.refuse(where, "lacks p50_us");
  body.p50_us = *p50;
  body.mean_us = kMachineFile.number(given, "mean_us", 0, 1e12, where).value_or(*p50);
  body.p99_us = kMachineFile.number(given, "p99_us", 0, 1e12, where).value_or(*p50);
  if (given.contains("calls"))
    body.calls = static_cast<uint64_t>(kMachineFile.whole(given, "calls", 0, INT64_MAX, where));
  if (given.contains("items"))
    body.items = static_cast<uint32_t>(kMachineFile.whole(given, "items", 1, MR_ITEMS_MAX, where));
  return body;
}

plan::LaunchCost parse_launch(const json& given, const std::string& where) {
  kMachineFile.only_keys(given, where, {"domain", "region_us", "copy_us"});
  plan::LaunchCost cost;
  cost.domain = needed(given, "domain", where);
  cost.region_us = kMachineFile.number(given, "region_us", 0, 1e9, where).value_or(0);
  cost.copy_us = kMachineFile.number(given, "copy_us", 0, 1e9, where).value_or(0);
  return cost;
}

double rounded(double us) { return std::round(us * 1000) / 1000; }

ordered_json rounded(const std::array<double, 4>& us) {
  ordered_json out = ordered_json::array();
  for (const double one : us) out.push_back(rounded(one));
  return out;
}

ordered_json print_simulated(const Simulated& sim) {
  ordered_json out = {{"memory_bytes", sim.memory_bytes},
                      {"latency_us", sim.latency_us},
                      {"up_bytes_per_us", sim.up_bytes_per_us},
                      {"down_bytes_per_us", sim.down_bytes_per_us},
                      {"speed", sim.speed},
                      {"contention", sim.contention},
                      {"host_access_ns_per_byte", sim.host_access_ns_per_byte}};
  for (const auto& [name, peer] : sim.peers) {
    ordered_json& one = out["peers"][name];
    one = {{"latency_us", peer.latency_us}, {"access_ns_per_byte", peer.access_ns_per_byte}};
    if (peer.bytes_per_us > 0) one["bytes_per_us"] = peer.bytes_per_us;
  }
  for (const auto& [name, nth] : kFaults)
    if (sim.faults.*nth > 0) out["faults"][name] = sim.faults.*nth;
  return out;
}

ordered_json print_hop(const plan::Hop& hop) {
  ordered_json out = {{"from", hop.from}, {"to", hop.to}};
  if (hop.price.copies()) {
    out["latency_us"] = rounded(hop.price.latency_us);
    out["us"] = rounded(times(hop.price.us_per_byte, hop.price.latency_us));
    out["p99_us"] = rounded(hop.price.p99_us);
    out["pageable_us"] = rounded(hop.pageable_us);
    out["engine"] = hop.engine;
    out["overlaps_compute"] = hop.price.overlaps_compute;
  }
  if (hop.price.access_us_per_byte != plan::HopPrice::kInfeasible)
    out["access_ns_per_byte"] = hop.price.access_us_per_byte * 1000;
  return out;
}

ordered_json print_body(const plan::BodyCost& body) {
  ordered_json out = {{"type", body.type},
                      {"settings", body.settings},
                      {"domain", body.domain},
                      {"bytes", body.bytes},
                      {"mean_us", rounded(body.mean_us)},
                      {"p50_us", rounded(body.p50_us)},
                      {"p99_us", rounded(body.p99_us)},
                      {"calls", body.calls}};
  if (body.items > 1) out["items"] = body.items;
  return out;
}

const Simulated& declared(const MachineFile& file, const std::string& domain) {
  static const Simulated by_default;
  const auto at = file.simulated.find(domain);
  return at == file.simulated.end() ? by_default : at->second;
}

} // namespace

MachineFile parse_machine(const std::string& text) {
  const json document = kMachineFile.parse(text);
  kMachineFile.only_keys(
      document, "the file",
      {"version", "machine", "date", "onnxruntime", "simulated", "limits", "hops", "bodies", "launches"});
  kMachineFile.whole(document, "version", kVersion, kVersion, "the file");
  MachineFile file;
  file.machine = kMachineFile.text(document, "machine", "the file").value_or("");
  file.date = kMachineFile.text(document, "date", "the file").value_or("");
  file.onnxruntime = kMachineFile.text(document, "onnxruntime", "the file").value_or("");
  if (const auto at = document.find("simulated"); at != document.end()) {
    if (!at->is_object()) kMachineFile.refuse("simulated", "is no object");
    for (const auto& [name, given] : at->items()) {
      if (!is_simulated(name)) kMachineFile.refuse("simulated." + name, "is no simulated device, such as sim:0");
      file.simulated[name] = parse_simulated(given, name);
    }
  }
  if (const auto at = document.find("limits"); at != document.end()) {
    if (!at->is_object()) kMachineFile.refuse("limits", "is no object");
    for (const auto& [name, given] : at->items()) file.bytes_allowed[name] = parse_limit(given, name);
  }
  for (const json& given : list(document, "hops"))
    file.hops.push_back(parse_hop(given, "hops[" + std::to_string(file.hops.size()) + "]"));
  for (const json& given : list(document, "bodies"))
    file.bodies.push_back(parse_body(given, "bodies[" + std::to_string(file.bodies.size()) + "]"));
  for (const json& given : list(document, "launches"))
    file.launches.push_back(parse_launch(given, "launches[" + std::to_string(file.launches.size()) + "]"));
  return file;
}

std::string print_machine(const MachineFile& file) {
  ordered_json out;
  out["version"] = kVersion;
  out["machine"] = file.machine;
  out["date"] = file.date;
  if (!file.onnxruntime.empty()) out["onnxruntime"] = file.onnxruntime;
  out["simulated"] = ordered_json::object();
  for (const auto& [name, sim] : file.simulated) out["simulated"][name] = print_simulated(sim);
  for (const auto& [name, bytes] : file.bytes_allowed) out["limits"][name] = {{"memory_bytes", bytes}};
  out["hops"] = ordered_json::array();
  for (const plan::Hop& hop : file.hops) out["hops"].push_back(print_hop(hop));
  out["bodies"] = ordered_json::array();
  for (const plan::BodyCost& body : file.bodies) out["bodies"].push_back(print_body(body));
  // Without launch costs the file has no such list, as before they existed.
  for (const plan::LaunchCost& cost : file.launches)
    out["launches"].push_back(
        {{"domain", cost.domain}, {"region_us", rounded(cost.region_us)}, {"copy_us", rounded(cost.copy_us)}});
  return out.dump(2) + "\n";
}

std::string host_name() {
  char name[256] = {};
  return gethostname(name, sizeof name - 1) == 0 && name[0] ? name : "machine";
}

std::string config_folder() {
  if (const char* folder = std::getenv("XDG_CONFIG_HOME"); folder && *folder)
    return (fs::path(folder) / "millrace").string();
  if (const char* home = std::getenv("HOME"); home && *home) return (fs::path(home) / ".config" / "millrace").string();
  return "";
}

std::string machine_path() {
  if (const char* path = std::getenv("MILLRACE_MACHINE")) return path;
  const std::string folder = config_folder();
  return folder.empty() ? "" : (fs::path(folder) / (host_name() + ".json")).string();
}

MachineFile load_machine(const std::string& path, bool must_be_there) {
  std::error_code failed;
  if (path.empty() || (!must_be_there && !fs::exists(path, failed))) return {};
  std::ifstream stream(path, std::ios::binary);
  if (!stream) throw Failure(code::file_not_found, "cannot read " + path + ": " + std::strerror(errno));
  const std::string text{std::istreambuf_iterator<char>(stream), std::istreambuf_iterator<char>()};
  try {
    return parse_machine(text);
  } catch (const Failure& failure) {
    Error error = failure.error();
    error.notes.push_back("the file is " + path);
    throw Failure(std::move(error));
  }
}

void save_machine(const std::string& path, const MachineFile& file) {
  std::error_code failed;
  if (const fs::path folder = fs::path(path).parent_path(); !folder.empty()) fs::create_directories(folder, failed);
  std::ofstream stream(path, std::ios::binary);
  stream << print_machine(file);
  if (!stream.flush()) throw Failure(code::unwritable_file, "cannot write " + path);
}

std::vector<plan::Hop> simulated_hops(const MachineFile& file, const std::vector<std::string>& domains) {
  std::vector<plan::Hop> hops;
  for (const std::string& domain : domains) {
    if (!is_simulated(domain)) continue;
    const Simulated& sim = declared(file, domain);
    plan::Hop up{"cpu", domain, plan::HopPrice(sim.latency_us, 1 / sim.up_bytes_per_us)};
    if (sim.host_access_ns_per_byte > 0) up.price.access_us_per_byte = sim.host_access_ns_per_byte / 1000;
    hops.push_back(up);
    hops.push_back({domain, "cpu", plan::HopPrice(sim.latency_us, 1 / sim.down_bytes_per_us)});
    for (const auto& [name, peer] : sim.peers) {
      plan::Hop hop{name, domain};
      if (peer.bytes_per_us > 0) hop.price = plan::HopPrice(peer.latency_us, 1 / peer.bytes_per_us);
      if (peer.access_ns_per_byte > 0) hop.price.access_us_per_byte = peer.access_ns_per_byte / 1000;
      hop.engine = domain + " peers";
      hops.push_back(hop);
    }
  }
  return hops;
}

device::SimOptions sim_options(const MachineFile& file, const std::string& domain) {
  const Simulated& sim = declared(file, domain);
  device::SimOptions options;
  options.domain = domain;
  options.bytes_limit = sim.memory_bytes;
  options.latency_ns = std::llround(sim.latency_us * 1000);
  options.bandwidth_up = sim.up_bytes_per_us / 1000;
  options.bandwidth_down = sim.down_bytes_per_us / 1000;
  options.speed = sim.speed;
  options.contention = sim.contention;
  options.faults = sim.faults;
  for (const auto& [name, peer] : sim.peers)
    options.peers[name] = {peer.bytes_per_us > 0, std::llround(peer.latency_us * 1000), peer.bytes_per_us / 1000,
                           peer.access_ns_per_byte > 0};
  return options;
}

} // namespace millrace::embed
