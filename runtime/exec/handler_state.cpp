// Takes and clears the state of handlers, and starts and stops them; see handler_state.h.
#include "exec/handler_state.h"

#include <cstring>

#include "device/device.h"
#include "exec/body.h"
#include "exec/holds.h"
#include "exec/run_state.h"
#include "observe/error_codes.h"
#include "plan/domain.h"
#include "plan/plan.h"
#include "plan/step.h"

namespace millrace::exec {

namespace {

uint32_t abi_kind(plan::DomainKind kind) {
  switch (kind) {
    case plan::DomainKind::cuda: return MR_DEVICE_CUDA;
    case plan::DomainKind::sim: return MR_DEVICE_SIM;
    case plan::DomainKind::cpu: break;
  }
  return MR_DEVICE_CPU;
}

} // namespace

std::byte* take_memory(RunState& run, const plan::Step& step, uint64_t bytes, const std::string& purpose) {
  device::DeviceStatus status;
  if (const device::Arena* const arena = run.devices[step.domain]->allocate(bytes, {}, status)) return arena->base;
  const std::string& domain = run.planned.plan.domains[step.domain].name;
  throw Failure(code::device_out_of_memory, domain + " has no room for " + purpose + ": " + status.sentence);
}

void make_state(RunState& run, HandlerRun& step) {
  const uint64_t bytes = step.plan->state_bytes();
  if (bytes == 0) return;
  std::byte* const base = take_memory(run, *step.plan, bytes, "the state of " + step.plan->name);
  const bool on_host = run.planned.plan.on_host(step.plan->domain);
  if (on_host) std::memset(base, 0, bytes);
  step.life->state = {base, bytes};
  step.life->clears_state = !on_host;
  step.tick.state = run.devices[step.plan->domain]->body_address(base);
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

mr_status start_handler(HandlerRun& step) {
  const plan::Domain& domain = step.run->planned.plan.domains[step.plan->domain];
  const std::string own_name = plan::own_name(domain);
  device::Hardware hardware;
  mr_device_info info{};
  info.size = sizeof info;
  info.kind = abi_kind(domain.kind);
  info.ordinal = domain.index;
  if (step.on.device) {
    step.on.device->enter_thread();
    hardware = step.on.device->hardware();
    info.memory_bytes = step.on.device->bytes_limit();
  }
  info.multiprocessors = hardware.multiprocessors;
  info.compute_major = hardware.compute_major;
  info.compute_minor = hardware.compute_minor;
  info.shared_bytes_max = hardware.shared_bytes_max;
  info.name = hardware.name.empty() ? own_name.c_str() : hardware.name.c_str();
  const mr_status status = step.instance->start(info);
  if (status != MR_OK) step.run->holds->let_go(*step.instance);
  return status;
}

mr_status stop_handler(HandlerRun& step) {
  if (step.on.device) step.on.device->enter_thread();
  step.run->holds->end_pages(*step.instance);
  const mr_status status = step.instance->stop();
  step.run->holds->let_go(*step.instance);
  return status;
}

} // namespace millrace::exec
