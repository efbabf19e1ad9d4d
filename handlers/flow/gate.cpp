// flow.gate: lets values through while a condition holds.
#include <millrace/handler.h>

#include "handlers/flow/truth.h"

namespace millrace::handlers {
namespace {

constexpr const char* kGateManual = &R"(
Hands on a value, or makes the tick empty; nothing is copied. `open` may change while it runs. If
`control` is connected, it has to agree: the gate is open at ticks at which `open` is true and the
control has a value that says yes. Records say yes if there is at least one, tensors if their first
number is not 0, and any other value by being there. A control that does not come at every tick
needs `policy: latest`, which repeats its newest value.

    test.pattern width=320 height=240 count=30 ! flow.gate open=false ! null.sink
)"[1];

class Gate final : public Handler {
 public:
  Gate() {
    stateless();
    no_allocation();
    cost_hint_us(0.02);
  }

  void process(Tick& tick, Cpu&) {
    if (!open_) return;
    if (control_.connected() && !says_yes(control_.raw(tick))) return;
    out_.forward(tick, in_);
  }

 private:
  Input<Any> in_{*this, "in", help("anything")};
  Input<Any> control_{*this, "control", optional, help("says at each tick whether the gate is open")};
  Output<Any> out_{*this, "out", forward(in_), help("the same value, or none")};
  Param<bool> open_{*this, "open", true, "whether values pass", live};
};

} // namespace

const mr_handler_type& flow_gate_type() {
  static const mr_handler_type type = detail::Type<Gate>::table("flow.gate", "Lets values through or not", kGateManual);
  return type;
}

} // namespace millrace::handlers
