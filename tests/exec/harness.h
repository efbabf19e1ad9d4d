// A pipeline that is made in code (pipeline.h) of small handlers (test_handlers.h), compiled and run, in threads or in
// virtual time.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "device/sim/faults.h"
#include "exec/new_stream.h"
#include "exec/run_options.h"
#include "observe/report.h"
#include "pipeline.h"
#include "plan/hops.h"
#include "seen.h"
#include "tests/milliseconds.h"
#include "tests/plan/plan_view.h"

namespace millrace::device {
class Device;
class PinnedRanges;
class VirtualTime;
struct SimOptions;
} // namespace millrace::device
namespace millrace::exec {
class Run;
}
namespace millrace::plan {
struct Machine;
}
namespace millrace::plugin {
class CallWatch;
}

namespace millrace::test {

struct Setup {
  uint32_t workers = 1;
  std::vector<std::string> domains = {"cpu"};
  bool virtual_time = false;
  bool adversarial = false;
  uint64_t seed = 1;
  device::SimFaults faults;
  // The faults of cuda:N, which are simulated devices whose bodies enqueue. Nothing runs there before somebody who
  // waits makes it, in an order that the seed gives. `gpu` may say otherwise.
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
  plugin::CallWatch* watch = nullptr;                                  // outlives the run
  std::map<std::string, int64_t> costs_ns;                             // virtual time, and the partition
  std::function<void(plan::Machine&)> machine = [](plan::Machine&) {}; // the plan's, with more that was measured
  const mr_plugin* more = nullptr;                                     // handlers of the test's own
};

// How a run ended, and what its handlers saw.
struct Ran : Result {
  std::shared_ptr<const ValueLog> log;
  // Throws where nobody wrote to the name: a test that looks at nothing must not pass.
  std::vector<Seen> seen(const std::string& name) const { return log->at(name); }
  // For a run that may end before anybody writes to the name. Throws where no handler would have.
  std::vector<Seen> seen_if_any(const std::string& name) const { return log->all().at(name); }
  // Its part of the report; throws if there is no such handler.
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
  Ran wait(); // of a run that was started by live()
  exec::Run& live();
  std::vector<Seen> seen(const std::string& name) const;
  // The handlers of a stream that is to come into that place, made as a program makes them.
  exec::NewStream stream_for(const graph::Graph& written, uint32_t clock, const std::string& name, const Params& fields,
                             exec::StreamDone done) const;
  bool lost_a_device() const;
  device::Device& device(const std::string& domain) const;
  const plan::Plan& plan() const;
  device::VirtualTime& time();

 private:
  struct Parts; // harness.cpp: the plan and all that runs it
  explicit Compiled(std::unique_ptr<Parts> parts);
  std::unique_ptr<Parts> parts_;
};

Ran run(Pipeline pipeline, const Setup& setup = {});

// The code that a run is refused with before it starts; 0 where it is not.
int code_of(Pipeline pipeline, const Setup& setup = {});

// The true address of bytes that the host sees at this one and may not read: of a simulated device of any Compiled that
// lives. For tests that look into the memory of a device.
const void* where_device_works(const void* address);

// The number of values that were dropped on an edge for this cause.
uint64_t dropped(const EdgeReport& edge, const std::string& cause);

// Copies that a run made from one domain to another; "" is any.
uint64_t copied(const Result& result, const std::string& from = "", const std::string& to = "");

// From one domain to another: copies of this price; or reading in place at so much a byte.
plan::Hop copy_hop(const std::string& from, const std::string& to, double latency_us, double us_per_byte = 0);
plan::Hop access_hop(const std::string& from, const std::string& to, double us_per_byte = 0);

// The single values of a log, in order.
std::vector<int64_t> values(const std::vector<Seen>& log, size_t input = 0);

} // namespace millrace::test
