// A graph made in code and compiled, but not run, for the tests of the plan's passes.
#pragma once

#include <millrace/abi.h>

#include <memory>
#include <string>
#include <vector>

#include "observe/error.h"
#include "plan/machine.h"
#include "plan_view.h"
#include "tests/exec/pipeline.h"
#include "tests/exec/test_handlers.h"

namespace millrace::test {

using Names = std::vector<std::string>;

// Beside the t.* handlers: p.nv12 and p.bgr (pictures), p.rgb (takes rgb8 alone), p.gray (takes gray8 or nv12),
// p.grayonly, p.unsized (a tensor of unknown size), p.two (two outputs), p.records, p.gpu (a CUDA body alone),
// p.hostport (its input is declared cpu), p.blocking, p.named (thread "screen"), p.heavy (host_heavy), p.heavyrecorded
// (capturable too), p.weights (takes 5 MiB of the host by itself), p.state (has kib of state), p.library (threads says
// how many compute a call), p.ongpu (its input is declared gpu; both bodies), p.gpuoutput (its output is; a CPU body
// alone), p.gpusink (a sink with both bodies; p.gpusinks takes a list), p.camera (live, 25/s), p.hint (cost_hint 5 ms),
// p.object (a host object), p.priced (relays; cpu_us and gpu_us are what it says of its cost), p.lying (on its side,
// pixels 4:3), p.wide (pixels 4:3), p.hd (1280 × 720), p.full709 (i420 of bt709, full range), p.square (takes square
// pixels), p.nv12only, p.narrow (takes what its parameter says), p.dense (dense on both sides, four items a call).
const mr_plugin& plan_plugin();

// Questions about the plan are PlanView's.
class Planned : public PlanView {
 public:
  // Throws Failure as compile does.
  explicit Planned(const Pipeline& pipeline, const plan::Machine& machine = {}, const plan::Options& options = {});
  ~Planned();
  Planned(const Planned&) = delete;
  Planned& operator=(const Planned&) = delete;

  // The plan that these questions are about: what was compiled, written as JSON and read again.
  const plan::Plan& plan() const { return *plan_; }
  const plan::Plan& compiled() const { return *compiled_; }
  // The conversions that were added, by the handlers' names, in the plan's order.
  std::vector<std::string> inserted() const;
  // A conversion's pixel format or size: "rgb8", "48×64".
  std::string made_by(const std::string& conversion) const;

 private:
  using Held = std::unique_ptr<const plan::Plan>;
  explicit Planned(const plan::Plan& compiled);
  Planned(Held compiled, Held read);
  Held compiled_, plan_;
};

// The code that compile refuses the graph with; 0 where it does not.
int refusal(const Pipeline& pipeline, const plan::Machine& machine = {}, const plan::Options& options = {});
// All that compile says then.
Error error_of(const Pipeline& pipeline, const plan::Machine& machine = {}, const plan::Options& options = {});

plan::Machine machine_of(uint32_t workers, std::vector<std::string> domains = {"cpu"});
inline const plan::Machine two_devices = machine_of(1, {"cpu", "sim:0", "sim:1"});
// Hops of this price from the host to the device and back; they replace earlier ones.
void connect_host(plan::Machine& machine, const std::string& device, const plan::HopPrice& price);

} // namespace millrace::test
