// A machine file is read as it was printed, says what it leaves out, and what is wrong in one is named.
#include "embed/machine_file.h"

#include <doctest/doctest.h>

#include <string>

#include "device/sim/sim.h"
#include "observe/error.h"
#include "tests/embed/hops.h"

using namespace millrace;
using namespace millrace::embed;

namespace {

// The sentence about a file that cannot be used, and then the nearest name if there is one.
std::string refusal(const std::string& rest) {
  try {
    parse_machine(rest.empty() || rest[0] != ',' ? rest : R"({"version": 1)" + rest + "}");
  } catch (const Failure& failure) {
    CHECK(failure.error().code == 114);
    return failure.error().what + (failure.error().nearest.empty() ? "" : " (" + failure.error().nearest + ")");
  }
  return "";
}

bool says(const std::string& rest, const std::string& part) {
  const std::string said = refusal(rest);
  const bool is_said = said.find(part) != std::string::npos;
  if (!is_said) MESSAGE(rest << " gave: " << said);
  return is_said;
}

std::string of_sim(const std::string& keys) { return R"(, "simulated": {"sim:0": {)" + keys + "}}"; }
std::string of_hop(const std::string& keys) { return R"(, "hops": [{"from": "cpu", "to": "sim:0", )" + keys + "}]"; }
std::string of_body(const std::string& keys) {
  return R"(, "bodies": [{"type": "image.blur", "domain": "cpu", )" + keys + "}]";
}

} // namespace

TEST_CASE("A machine file that is printed and read again is the same") {
  MachineFile file;
  file.machine = "bench";
  file.date = "2026-11-22";
  Simulated& sim = file.simulated["sim:1"];
  sim.memory_bytes = 1 << 20;
  sim.latency_us = 12.5;
  sim.up_bytes_per_us = 1000;
  sim.down_bytes_per_us = 2000;
  sim.speed = 4;
  sim.contention = 0.25;
  sim.host_access_ns_per_byte = 0.5;
  sim.peers["sim:0"] = {3, 50'000, 0.125};
  sim.peers["sim:2"] = {0, 0, 0.5}; // no copies, only reading in place
  sim.faults = {1, 2, 3, 4, 5};
  plan::Hop hop{"cpu", "sim:1"};
  hop.price.latency_us = 10;
  hop.price.us_per_byte = {0, 1. / 4096, 2. / 4096, 1. / 4096};
  hop.price.access_us_per_byte = 0.25;
  hop.price.overlaps_compute = false;
  hop.price.p99_us = {11, 12, 13, 14};
  hop.pageable_us = {21, 22, 23, 24};
  hop.engine = "sim:1 copies";
  file.hops = {hop};
  file.bodies = {{"image.blur", "sigma=2", "sim:1", 921'600, 12.5, 12, 14, 200}};
  CHECK(print_machine(file).find("launches") == std::string::npos); // without a GPU no version has to know of them
  file.launches = {{"cuda:0", 6.5, 3.25}};
  CHECK(print_machine(file).find("limits") == std::string::npos); // nor of these
  CHECK(print_machine(file).find("onnxruntime") == std::string::npos);
  file.onnxruntime = "lib/libonnxruntime.so";
  file.bytes_allowed = {{"cpu", 1 << 30}, {"cuda:0", 1 << 20}};

  const std::string text = print_machine(file);
  const MachineFile read = parse_machine(text);
  CHECK(print_machine(read) == text);
  CHECK(read.machine == "bench");
  CHECK(read.onnxruntime == "lib/libonnxruntime.so");
  CHECK(read.simulated.at("sim:1").peers.at("sim:0").bytes_per_us == 50'000);
  CHECK(read.simulated.at("sim:1").peers.at("sim:2").bytes_per_us == 0);
  CHECK(read.simulated.at("sim:1").faults.hang_command == 5);
  REQUIRE(read.hops.size() == 1);
  for (const uint64_t bytes : plan::kHopSizes)
    CHECK(read.hops[0].price.copy_us(static_cast<double>(bytes)) ==
          doctest::Approx(hop.price.copy_us(static_cast<double>(bytes))));
  CHECK(read.hops[0].price.access_us_per_byte == doctest::Approx(0.25));
  CHECK_FALSE(read.hops[0].price.overlaps_compute);
  CHECK(read.hops[0].pageable_us[3] == 24);
  REQUIRE(read.bodies.size() == 1);
  CHECK(read.bodies[0].settings == "sigma=2");
  CHECK(read.bodies[0].mean_us == 12.5);
  CHECK(read.bodies[0].calls == 200);
  REQUIRE(read.launches.size() == 1);
  CHECK(read.launches[0].domain == "cuda:0");
  CHECK(read.launches[0].region_us == 6.5);
  CHECK(read.launches[0].copy_us == 3.25);
  CHECK(read.bytes_allowed == file.bytes_allowed);
}

TEST_CASE("What a machine file leaves out is a card on PCIe 3.0, and a body's median where no mean was measured") {
  const MachineFile file = parse_machine(R"({"version": 1, "simulated": {"sim:0": {}},
      "bodies": [{"type": "image.blur", "domain": "cpu", "bytes": 10, "p50_us": 3}]})");
  const Simulated& sim = file.simulated.at("sim:0");
  CHECK(sim.memory_bytes == 1ull << 30);
  CHECK(sim.latency_us == 10);
  CHECK(sim.up_bytes_per_us == 12'000);
  CHECK(sim.down_bytes_per_us == 12'000);
  CHECK(sim.speed == 1);
  CHECK(sim.contention == 0);
  CHECK(sim.host_access_ns_per_byte == 0);
  CHECK(sim.peers.empty());
  CHECK(sim.faults.lose_device == 0);
  CHECK(file.bodies[0].mean_us == 3);
  CHECK(file.bodies[0].p99_us == 3);
  CHECK(file.bodies[0].settings.empty());
  CHECK(sim_options({}, "sim:7").bytes_limit == sim_options(file, "sim:0").bytes_limit);
}

TEST_CASE("3.6: a declared device has a hop each way, reads in place where it says so, and pulls from its peers") {
  const MachineFile file = parse_machine(R"({"version": 1, "simulated": {
      "sim:0": {"latency_us": 7, "up_bytes_per_us": 1000, "down_bytes_per_us": 500, "host_access_ns_per_byte": 2},
      "sim:1": {"peers": {"sim:0": {"latency_us": 3, "bytes_per_us": 100}, "sim:2": {"access_ns_per_byte": 4}}}}})");
  const std::vector<plan::Hop> hops = simulated_hops(file, {"cpu", "sim:0", "sim:1"});
  CHECK(hop_of(hops, "cpu", "sim:0").price.copy_us(1 << 20) == doctest::Approx(7 + (1 << 20) / 1000.));
  CHECK(hop_of(hops, "sim:0", "cpu").price.copy_us(1 << 20) == doctest::Approx(7 + (1 << 20) / 500.));
  CHECK(hop_of(hops, "cpu", "sim:0").price.access_us_per_byte == doctest::Approx(0.002));
  CHECK(hop_of(hops, "cpu", "sim:1").price.access_us_per_byte == plan::HopPrice::kInfeasible);
  CHECK(hop_of(hops, "sim:0", "sim:1").price.copy_us(1 << 20) == doctest::Approx(3 + (1 << 20) / 100.));
  CHECK_FALSE(hop_of(hops, "sim:2", "sim:1").price.copies());
  CHECK_THROWS(hop_of(hops, "sim:1", "sim:0")); // it was not said
  const device::SimOptions options = sim_options(file, "sim:1");
  CHECK(options.peers.at("sim:0").copies);
  CHECK_FALSE(options.peers.at("sim:0").accesses);
  CHECK(options.peers.at("sim:2").accesses);
}

TEST_CASE("Whatever is wrong in a machine file is said with its place, and a name with the nearest") {
  CHECK(says("no json", "cannot be used"));
  CHECK(says("[]", ""));
  CHECK(says("{}", "version"));
  CHECK(says(R"({"version": 2})", "version"));
  CHECK(says(R"(, "hop": [])", "(hops)"));
  CHECK(says(R"(, "hops": {})", "is no list"));
  CHECK(says(R"(, "simulated": [])", "simulated is no object"));
  CHECK(says(R"(, "simulated": {"cuda:0": {}})", "no simulated device"));
  CHECK(says(of_sim(R"("latncy_us": 1)"), "(latency_us)"));
  CHECK(says(of_sim(R"("latency_us": -1)"), "sim:0.latency_us"));
  CHECK(says(of_sim(R"("latency_us": "1")"), "sim:0.latency_us"));
  CHECK(says(of_sim(R"("up_bytes_per_us": 0)"), "sim:0.up_bytes_per_us"));
  CHECK(says(of_sim(R"("memory_bytes": 1)"), "sim:0.memory_bytes"));
  CHECK(says(of_sim(R"("speed": 0)"), "sim:0.speed"));
  CHECK(says(of_sim(R"("peers": [])"), "sim:0.peers"));
  CHECK(says(of_sim(R"("peers": {"sim:0": {}})"), "no other simulated device"));
  CHECK(says(of_sim(R"("peers": {"cpu": {}})"), "no other simulated device"));
  CHECK(says(of_sim(R"("peers": {"sim:1": {"latency_u": 1}})"), "(latency_us)"));
  CHECK(says(of_sim(R"("faults": {"fail_cpy": 1})"), "(fail_copy)"));
  CHECK(says(of_sim(R"("faults": {"fail_copy": 0})"), "fail_copy"));
  CHECK(says(R"(, "hops": [{"to": "cpu"}])", "lacks from"));
  CHECK(says(R"(, "hops": [{"from": "cpu"}])", "lacks to"));
  CHECK(says(of_hop(R"("latency_us": 1)"), "lacks us"));
  CHECK(says(of_hop(R"("latency_us": 1, "us": [1, 2, 3])"), "four times"));
  CHECK(says(of_hop(R"("latency_us": 1, "us": [1, 2, 3, -4])"), "no such time"));
  CHECK(says(of_hop(R"("latency_u": 1)"), "(latency_us)"));
  CHECK(says(of_hop(R"("overlaps_compute": 1)"), "overlaps_compute"));
  CHECK(says(R"(, "bodies": [{"domain": "cpu"}])", "lacks type"));
  CHECK(says(of_body(R"("p50_us": 1)"), "bytes"));
  CHECK(says(of_body(R"("bytes": 1)"), "lacks p50_us"));
  CHECK(says(of_body(R"("bytes": 1, "p5_us": 1)"), "(p50_us)"));
}

TEST_CASE("A limit of memory is of the host or of a GPU, and says how many bytes") {
  const auto of_limit = [](const std::string& name, const std::string& keys) {
    return R"(, "limits": {")" + name + R"(": {)" + keys + "}}";
  };
  CHECK(parse_machine(R"({"version": 1, "limits": {"cuda:1": {"memory_bytes": 8192}}})").bytes_allowed ==
        std::map<std::string, uint64_t>{{"cuda:1", 8192}});
  CHECK(says(of_limit("sim:0", R"("memory_bytes": 8192)"), "whose memory_bytes stands in simulated.sim:0"));
  CHECK(says(of_limit("gpu", R"("memory_bytes": 8192)"), "limits.gpu is no device of this machine"));
  CHECK(says(of_limit("edge/cuda:0", R"("memory_bytes": 8192)"), "is no device of this machine"));
  CHECK(says(of_limit("cuda:0", ""), "limits.cuda:0 lacks memory_bytes"));
  CHECK(says(of_limit("cuda:0", R"("memory_bytes": 1)"), "is no whole number from 4096"));
  CHECK(says(of_limit("cuda:0", R"("memory_byte": 8192)"), "(memory_bytes)"));
  CHECK(says(R"(, "limits": [])", "limits is no object"));
}
