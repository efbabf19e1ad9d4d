// The file of a machine: simulated devices as a person declares them, and the prices of hops, launches and handler
// bodies as `millrace calibrate` measured them. docs/reference/machine_file.md describes the form.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "device/sim/faults.h"
#include "plan/prices.h"

namespace millrace::device {
struct SimOptions;
}

namespace millrace::embed {

// A simulated device. The defaults are a card on PCIe 3.0 x16 with pinned memory.
struct Simulated {
  uint64_t memory_bytes = 1ull << 30;
  double latency_us = 10;
  double up_bytes_per_us = 12'000, down_bytes_per_us = 12'000;
  double speed = 1;                   // speed of bodies in virtual time
  double contention = 0;              // see SimOptions
  double host_access_ns_per_byte = 0; // price of reading host memory in place; 0: it cannot read there
  struct Peer {
    double latency_us = 0, bytes_per_us = 0; // price of copies from the peer; bytes_per_us 0: no copies
    double access_ns_per_byte = 0;           // price of reading the peer in place; 0: it cannot read there
  };
  std::map<std::string, Peer> peers; // by domain
  device::SimFaults faults;
};

struct MachineFile {
  std::string onnxruntime;   // path of ONNX Runtime's library, from the file's folder on; "": not said
  std::string machine, date; // name of the machine and date of its measurements; "": nothing was measured
  std::map<std::string, Simulated> simulated;
  std::map<std::string, uint64_t> bytes_allowed; // by domain, for hosts and GPUs: the most memory of a plan there
  std::vector<plan::Hop> hops;
  std::vector<plan::BodyCost> bodies;
  std::vector<plan::LaunchCost> launches;
};

// Throws Failure (MR0114).
MachineFile parse_machine(const std::string& text);
std::string print_machine(const MachineFile& file);

// The user's folder of settings for millrace: $XDG_CONFIG_HOME/millrace, else ~/.config/millrace. "": neither variable
// is set.
std::string config_folder();
// The path of this machine's file: $MILLRACE_MACHINE if it is set ("": none), else HOST.json in config_folder(). "":
// there is none.
std::string machine_path();
std::string host_name();
// Reads the file. Returns an empty one if the file is not there and need not be. Throws Failure (MR0104, MR0114).
MachineFile load_machine(const std::string& path, bool must_be_there);
void save_machine(const std::string& path, const MachineFile& file); // also makes its folder; throws Failure (MR0111)

// The hops that the declarations of simulated devices give.
std::vector<plan::Hop> simulated_hops(const MachineFile& file, const std::vector<std::string>& domains);
// The options for make_sim(), without those that belong to one run.
device::SimOptions sim_options(const MachineFile& file, const std::string& domain);

} // namespace millrace::embed
