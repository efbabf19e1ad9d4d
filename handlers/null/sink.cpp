// null.sink: ends a pipeline by taking every value and doing nothing with it.
#include <millrace/handler.h>

namespace millrace::handlers {
namespace {

constexpr const char* kSinkManual = &R"(
Takes every value of any type and drops it: the end of a pipeline whose result is not needed, such
as a measurement. It runs on the device where its input is made, so that nothing is copied for it;
`device: cpu` runs it on the host.

    test.pattern width=640 height=480 ! image.blur sigma=2 ! null.sink
)"[1];

class NullSink final : public Handler {
 public:
  NullSink() {
    no_allocation();
    capturable();
    cost_hint_us(0.02);
  }

  void process(Tick&, Cpu&) {}
  void process(Tick&, Cuda&) {}

 private:
  Input<Any> in_{*this, "in", help("anything")};
};

} // namespace

const mr_handler_type& null_sink_type() {
  static const mr_handler_type type =
      detail::Type<NullSink>::table("null.sink", "Takes anything and drops it", kSinkManual);
  return type;
}

} // namespace millrace::handlers
