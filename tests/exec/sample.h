// Random graphs, the ways to run one, and the first difference between what two runs saw.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "harness.h"
#include "plan/plan.h"
#include "reference.h"
#include "spread.h"

namespace millrace::test {

using Features = std::map<std::string, int>;

// A graph, where its handlers may run beside the host, and a script of live changes.
struct Sample {
  Pipeline pipeline;
  std::vector<std::string> domains = {"cpu", "sim:0", "sim:1"};
  std::vector<std::string> devices; // by handler; "" stays on the host
  std::vector<exec::AppliedChange> script;
  Features features;
};

// small: a number or four. large: up to kElementsMax of them, also in foreign memory, a third device, and every handler
// writes down what it saw.
enum class Values { small, large };
inline constexpr int64_t kElementsMax = 200;

// A number that who runs the tests may set.
int64_t from_environment(const char* name, int64_t otherwise);

// The sample of this seed: the same with every standard library.
Sample draw_sample(uint64_t seed, Values values);

// The graph as a pipeline file, with the places of the runs on devices and the script.
std::string describe(const Sample& sample);

// From a microsecond to two milliseconds a call, by the handler's name alone: what calls take in virtual time.
int64_t drawn_cost_ns(const std::string& handler, uint64_t tick);

// How a sample is run.
struct Way {
  uint32_t workers = 1;
  bool on_devices = false;
  std::optional<uint64_t> adversary = {}; // the seed of adversarial devices
  bool measured = false;                  // in virtual time, with costs that the plan does not know
  device::SimFaults faults = {};
  std::vector<plan::Hop> hops = {}; // beside those between the host and the devices
  bool quick = false;               // the plan is told that every handler takes a microsecond: copies are packed
};

// The result of a run, as far as the rules promise it.
struct Outcome {
  int refused = 0; // the code of a refusal: by compile, or where there is no memory
  bool ok = true;
  int code = 0; // of the error
  std::string error;
  bool lost_a_device = false;
  std::string stuck;             // who waits for whom, where nothing moved any more
  uint64_t ends_at = UINT64_MAX; // the tick that failed
  std::map<std::string, std::vector<Seen>> logs;
  plan::Plan plan;
  Report report;
  uint64_t parcels = 0; // over links
};

Outcome try_run(const Sample& sample, const Way& way);
// Over these nodes, which its handlers name.
Outcome try_run(const Sample& sample, const Way& way, const Nodes& nodes);
// Over several nodes, by whatever joins them: `run` carries out the pipeline, and counts the parcels.
using RunOverNodes = std::function<Ran(const Pipeline&, const Setup&, uint64_t& parcels)>;
Outcome try_run(const Sample& sample, const Way& way, const RunOverNodes& run);

// The first difference between the two, in words; "" if there is none.
std::string difference(const Outcome& expected, const Outcome& outcome);
// The same, where the first is what the rules say.
std::string difference_to_the_rules(const Sample& sample, const Expected& expected, Outcome outcome);

} // namespace millrace::test
