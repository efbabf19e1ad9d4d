// test.read: reads values, and has to run on the host or on a device.
#include <millrace/handler.h>

namespace millrace::handlers {
namespace {

constexpr const char* kReadManual = &R"(
Reads its input and keeps nothing. With `runs_on: device` it can only run on a device, and with
`cpu` only on the host, so that its input has to be brought there. It stands in for a display, an
encoder or a network card at the end of a pipeline whose placement is tested.

    test.pattern ! test.work cpu_us=800 device_us=90 ! test.read runs_on=cpu
)"[1];

class Read final : public Handler {
 public:
  Read() {
    stateless();
    no_allocation();
  }

  void probe(Facts& facts) override {
    constexpr double kLeast = 0.1;
    facts.cost_us(*runs_on_ == "device" ? -1 : kLeast, *runs_on_ == "cpu" ? -1 : kLeast);
  }

  void process(Tick& tick, Cpu&) {
    const mr_input& input = tick.raw().inputs[0];
    uint32_t sum = 0;
    for (uint64_t i = 0; i < input.value->header.extent_bytes; ++i) sum += input.data[i];
    sum_ = sum;
  }

 private:
  Input<Any> in_{*this, "in", help("images, tensors, records or packets")};
  Param<std::string> runs_on_{*this, "runs_on", "cpu", "where it can run", choices({"cpu", "device"})};
  volatile uint32_t sum_ = 0; // so that the bytes are read
};

} // namespace

const mr_handler_type& test_read_type() {
  static const mr_handler_type type =
      detail::Type<Read>::table("test.read", "Reads on the host or on a device, as it is told", kReadManual);
  return type;
}

} // namespace millrace::handlers
