// A handler on the host that touches what lives on a device ends the process, by its name and the buffer's.
#include <doctest/doctest.h>
#include <millrace/handler.h>

#include <atomic>
#include <string>

#include "device/sim/access_guard.h"
#include "harness.h"
#include "memory/ring.h"
#include "tests/ending.h"

using namespace millrace;
using namespace millrace::test;

namespace {

// The bytes that `Leak` made, as the host sees them. No handler is told this address, so it is taken from the runtime.
std::atomic<const uint8_t*> leaked{nullptr};

struct Leak final : Handler {
  Input<Tensor> in{*this, "in"};
  Output<Tensor> out{*this, "out", like(in)};
  void process(Tick& tick, Cpu&) {
    leaked = reinterpret_cast<const memory::Block*>(tick.raw().outputs[0].token)->data;
    const int64_t shape[] = {1};
    out.allocate(tick, dtype_of<int64_t>(), shape).elements<int64_t>()[0] = 1;
  }
};

struct Trespasser final : Handler {
  Input<Tensor> in{*this, "in"};
  void process(Tick&, Cpu&) {
    const volatile uint8_t* const at = leaked.load();
    (void)*at;
  }
};

const mr_plugin& careless_plugin() {
  static const mr_handler_type types[] = {detail::Type<Leak>::table("access.leak", "", ""),
                                          detail::Type<Trespasser>::table("access.careless", "", "")};
  static const mr_handler_type* const pointers[] = {&types[0], &types[1]};
  static const mr_plugin plugin = {sizeof(mr_plugin), MR_ABI_VERSION, "access", "1", pointers, 2, 0};
  return plugin;
}

void run_careless() {
  Pipeline p(
      "t.count name=source count=5 ! access.leak name=blur device=sim:0 ! access.careless name=boxes device=cpu");
  Setup setup;
  setup.workers = 2;
  setup.domains = {"cpu", "sim:0"};
  setup.more = &careless_plugin();
  setup.options.explain_crashes = true;
  run(p, setup);
}

} // namespace

TEST_CASE("4.10: a handler that touches a device's buffer from the host ends the run by its name and the buffer's") {
  const Ending ending = end_of(run_careless);
  CHECK(ending.code == device::kAccessExitCode);
  CHECK(ending.said ==
        "error MR0702: boxes touched the buffer of blur.out in sim:0, which only a body on that device may\n");
}
