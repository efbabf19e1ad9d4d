// flow.pass: hands on what it gets, without touching it.
#include <millrace/handler.h>

namespace millrace::handlers {
namespace {

constexpr const char* kPassManual = &R"(
Hands on every value of any type. The value's own buffer is forwarded: no byte is read, copied or
allocated. Its cost is that of a handler that does nothing. It also serves to pin an edge to a
domain.

    null.source ! flow.pass ! null.sink
)"[1];

class Pass final : public Handler {
 public:
  Pass() {
    no_allocation();
    capturable();
    cost_hint_us(0.02);
  }

  void process(Tick& tick, Cpu&) { out_.forward(tick, in_); }
  void process(Tick& tick, Cuda&) { out_.forward(tick, in_); }

 private:
  Input<Any> in_{*this, "in", help("anything")};
  Output<Any> out_{*this, "out", forward(in_), help("the same value")};
};

} // namespace

const mr_handler_type& flow_pass_type() {
  static const mr_handler_type type = detail::Type<Pass>::table("flow.pass", "Hands on what it gets", kPassManual);
  return type;
}

} // namespace millrace::handlers
