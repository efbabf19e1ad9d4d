// What is known of a machine and kept in a file: simulated devices as a person declares them, and the prices of hops
// and handler bodies as `millrace calibrate` measured them. docs/reference/machine_file.md describes the form.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "device/sim/sim.h"
#include "plan/plan.h"

namespace millrace::embed {

// A simulated device; without a word of it, it is a card on PCIe 3.0 x16 with pinned memory.
struct Simulated {
  uint64_t memory_bytes = 1ull << 30;
  double latency_us = 10;
  double up_bytes_per_us = 12'000, down_bytes_per_us = 12'000;
  double speed = 1;                   // of bodies, in virtual time
  double contention = 0;              // see SimOptions
  double host_access_ns_per_byte = 0; // of reading host memory in place; 0: it cannot
  struct Peer {
    double latency_us = 0, bytes_per_us = 0; // of copies from there; bytes_per_us 0: none
    double access_ns_per_byte = 0;           // of reading there in place; 0: it cannot
  };
  std::map<std::string, Peer> peers; // by domain
  device::SimFaults faults;
};

struct MachineFile {
  std::string machine, date; // whose and of when the measurements are; "": nothing was measured
  std::map<std::string, Simulated> simulated;
  std::map<std::string, uint64_t> bytes_allowed; // by domain, of hosts and GPUs: a plan lays out no more there
  std::vector<plan::Hop> hops;
  std::vector<plan::BodyCost> bodies;
  std::vector<plan::LaunchCost> launches;
};

// Throws Failure (MR0114).
MachineFile parse_machine(const std::string& text);
std::string print_machine(const MachineFile& file);

// The file of this machine: $MILLRACE_MACHINE where it is set ("": none), else <host>.json in the user's folder of
// settings for millrace. "": there is no such folder.
std::string machine_path();
std::string host_name();
// What is in it; nothing where the file is not there and need not be. Throws Failure (MR0104, MR0114).
MachineFile load_machine(const std::string& path, bool must_be_there);
void save_machine(const std::string& path, const MachineFile& file); // makes its folder; throws Failure (MR0111)

// The hops that simulated devices have by their declaration.
std::vector<plan::Hop> simulated_hops(const MachineFile& file, const std::vector<std::string>& domains);
// What make_sim takes, without what belongs to one run.
device::SimOptions sim_options(const MachineFile& file, const std::string& domain);

} // namespace millrace::embed
