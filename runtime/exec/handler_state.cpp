// Takes and clears the state of handlers; see handler_state.h.
#include "exec/handler_state.h"

#include <cstring>

#include "device/device.h"
#include "exec/body.h"
#include "exec/run_state.h"
#include "observe/error_codes.h"
#include "plan/domain.h"
#include "plan/plan.h"
#include "plan/step.h"

namespace millrace::exec {

void make_state(RunState& run, HandlerRun& step) {
  const uint64_t bytes = step.plan->state_bytes();
  if (bytes == 0) return;
  device::Device& device = *run.devices[step.plan->domain];
  device::DeviceStatus status;
  const device::Arena* const arena = device.allocate(bytes, {}, status);
  if (!arena)
    throw Failure(Error{code::device_out_of_memory,
                        run.planned.plan.domains[step.plan->domain].name + " has no room for the state of " +
                            step.plan->name + ": " + status.sentence,
                        {},
                        {},
                        "",
                        ""});
  step.life->state = {arena->base, bytes};
  const bool on_host = run.planned.plan.on_host(step.plan->domain);
  if (on_host) std::memset(arena->base, 0, bytes);
  step.life->clears_state = !on_host;
  step.tick.state = device.body_address(arena->base);
}

mr_status reset_handler(HandlerRun& step) {
  HandlerLife& life = *step.life;
  if (life.state.empty()) return step.instance->reset();
  if (step.run->planned.plan.on_host(step.plan->domain))
    std::memset(life.state.data(), 0, life.state.size());
  else
    life.clears_state = true;
  return step.instance->reset();
}

void clear_state_if_due(BodyRun& step) {
  HandlerLife& life = *step.life;
  if (!life.clears_state.load(std::memory_order_relaxed)) return;
  life.clears_state.store(false, std::memory_order_relaxed);
  if (step.on.enqueuing)
    step.on.device->clear(*step.on.stream, life.state.data(), life.state.size());
  else
    std::memset(step.tick.state, 0, life.state.size());
}

} // namespace millrace::exec
