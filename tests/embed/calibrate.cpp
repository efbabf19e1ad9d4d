// calibrate measures for simulated devices the times that they were declared with, and never less.
#include "embed/calibrate.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>

#include "device/device.h"
#include "device/sim/sim.h"
#include "exec/run.h"
#include "plugin/registry.h"
#include "tests/embed/hops.h"

using namespace millrace;
using namespace millrace::embed;

namespace {

plan::Hop hop(const std::string& from, const std::string& to, double latency_us) {
  return {from, to, plan::HopPrice(latency_us, 0.001)};
}

} // namespace

TEST_CASE("3.6: every hop between two devices and their peer is measured, and takes at least what was declared") {
  MachineFile machine;
  machine.simulated["sim:0"].latency_us = 2000;
  machine.simulated["sim:0"].up_bytes_per_us = 400; // 42 ms for 16 MiB: moving the bytes is little beside it
  machine.simulated["sim:0"].host_access_ns_per_byte = 2;
  machine.simulated["sim:1"].peers["sim:0"] = {1000, 2000, 0.5};
  std::vector<plan::Hop> hops;
  double took_us = 0;           // the measurement itself
  for (int i = 0; i < 5; ++i) { // a busy machine may hold up one of two that are compared
    const auto begin = std::chrono::steady_clock::now();
    hops = measure_hops(machine, {"cpu", "sim:0", "sim:1"});
    took_us = std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - begin).count();
    const bool overlap =
        std::all_of(hops.begin(), hops.end(), [](const plan::Hop& one) { return one.price.overlaps_compute; });
    if (overlap && hop_of(hops, "cpu", "sim:0").engine.empty()) break;
  }
  CHECK(hops.size() == 5);
  for (const plan::Hop& declared : simulated_hops(machine, {"cpu", "sim:0", "sim:1"})) {
    CAPTURE(declared.from);
    CAPTURE(declared.to);
    const plan::Hop& measured = hop_of(hops, declared.from, declared.to);
    CHECK(measured.price.latency_us >= declared.price.latency_us);
    for (size_t i = 0; i < plan::kHopSizes.size(); ++i) {
      const auto bytes = static_cast<double>(plan::kHopSizes[i]);
      CHECK(measured.price.copy_us(bytes) >= declared.price.copy_us(bytes) * 0.999);
      CHECK(measured.price.p99_us[i] >= declared.price.copy_us(bytes) * 0.999);
      // At least ten copies of each size were made, and half of them took as long as their median or longer.
      CHECK(5 * measured.price.copy_us(bytes) <= took_us);
      CHECK(measured.price.p99_us[i] <= took_us);
      CHECK((measured.pageable_us[i] > 0) == (declared.from == "cpu"));
    }
    CHECK(measured.price.overlaps_compute); // a copy has an engine of its own
  }
  const plan::Hop& peer = hop_of(hops, "sim:0", "sim:1");
  CHECK(peer.engine == "sim:1 peers");
  CHECK(peer.price.access_us_per_byte == doctest::Approx(0.0005)); // as declared
  CHECK(hop_of(hops, "cpu", "sim:0").price.access_us_per_byte == doctest::Approx(0.002));
  CHECK(hop_of(hops, "cpu", "sim:1").price.access_us_per_byte == plan::HopPrice::kInfeasible);
  // The other direction goes on meanwhile. Where moving the bytes themselves takes longer than was declared (thread
  // sanitizer, a busy machine), both directions share the processor, and that is what is measured.
  const plan::Hop& up = hop_of(hops, "cpu", "sim:0");
  if (up.price.copy_us(16 << 20) < 1.2 * (2000 + (16 << 20) / 400.)) CHECK(up.engine.empty());
}

TEST_CASE("3.6: without a device there is no hop to measure, and a device with too little memory says so") {
  CHECK(measure_hops({}, {"cpu"}).empty());
  MachineFile small;
  small.simulated["sim:0"].memory_bytes = 1 << 20;
  try {
    measure_hops(small, {"cpu", "sim:0"});
    FAIL("16 MiB were had from a device of 1 MiB");
  } catch (const Failure& failure) {
    CHECK(failure.error().code == 701);
  }
}

TEST_CASE("5.5: what a region without a body takes is measured on a device whose bodies enqueue, and on no other") {
  device::SimOptions gpu;
  gpu.domain = "cuda:0";
  gpu.enqueues = true;
  gpu.watcher.takes_ns = [](uint64_t) { return 20'000; };
  gpu.watcher.watched = [](uint64_t) {};
  const auto bytes = [](device::Device& device) {
    device::DeviceStatus status;
    return device.allocate(128, {}, status)->base;
  };
  const auto device = device::make_sim(gpu);
  const plan::LaunchCost cost = measure_launch(*device, bytes(*device), bytes(*device));
  CHECK(cost.domain == "cuda:0");
  CHECK(cost.region_us >= 20);
  CHECK(cost.copy_us >= 0);
  gpu.faults.fail_record = 1;
  const auto cannot = device::make_sim(gpu);
  CHECK(measure_launch(*cannot, bytes(*cannot), bytes(*cannot)).domain.empty());
  CHECK(measure_launches({}, {"cpu", "sim:0"}).empty());
}

TEST_CASE("5.2: bodies are measured in every domain that has one, by their settings and their bytes") {
  plugin::Registry registry;
  Choices choices;
  choices.domains = {"cpu", "sim:0"};
  const auto load = [] {
    return graph::load("test.pattern width=64 height=48 ! image.blur sigma=3 ! test.read runs_on=cpu");
  };
  const std::vector<plan::BodyCost> bodies = measure_bodies(load, registry, exec::host_table(), choices, 20);
  std::map<std::string, int> found;
  for (const plan::BodyCost& body : bodies) {
    ++found[body.type + " " + body.domain + " " + body.settings];
    CHECK(body.bytes == 64 * 48 * 3);
    CHECK(body.calls > 0);
    CHECK(body.mean_us > 0);
    CHECK(body.p50_us <= body.p99_us);
  }
  CHECK(found["image.blur cpu sigma=3"] == 1);
  CHECK(found["image.blur sim:0 sigma=3"] == 1);
  CHECK(found["test.read cpu runs_on=cpu"] == 1);
  CHECK(found["test.read sim:0 runs_on=cpu"] == 0);
}

TEST_CASE("What was measured anew replaces what was known of the same hop, body or device, and nothing else") {
  MachineFile file;
  merge(file, {hop("cpu", "sim:0", 1), hop("sim:0", "cpu", 2)},
        {{"image.blur", "sigma=2", "cpu", 100, 5, 5, 5, 1}, {"image.blur", "sigma=3", "cpu", 100, 6, 6, 6, 1}},
        {{"cuda:0", 7, 4}, {"cuda:1", 8, 5}});
  merge(file, {hop("cpu", "sim:0", 9)},
        {{"image.blur", "sigma=2", "cpu", 100, 7, 7, 7, 1}, {"image.blur", "sigma=2", "cpu", 200, 8, 8, 8, 1}},
        {{"cuda:1", 6, 3}});
  REQUIRE(file.hops.size() == 2);
  CHECK(hop_of(file.hops, "cpu", "sim:0").price.latency_us == 9);
  CHECK(hop_of(file.hops, "sim:0", "cpu").price.latency_us == 2);
  REQUIRE(file.bodies.size() == 3);
  double sum = 0;
  for (const plan::BodyCost& body : file.bodies) sum += body.mean_us;
  CHECK(sum == 6 + 7 + 8);
  REQUIRE(file.launches.size() == 2);
  CHECK(file.launches[0].region_us == 7);
  CHECK(file.launches[1].region_us == 6);
}
