// test.work: takes a chosen time, per kind of device, and makes a chosen number of bytes.
#include <millrace/handler.h>

#include <algorithm>
#include <array>

#include "handlers/test/busy.h"

namespace millrace::handlers {
namespace {

constexpr const char* kWorkManual = &R"(
Works for `cpu_us` on the host, or for `device_us` on a device, then gives `bytes` bytes that follow
from the tick's index. It tells the plan these prices, so that placements can be tried on the
command line: `millrace plan` shows where it would run and why. `runs_on` takes one of the two away.
It waits for all its inputs, up to eight of any type. On the host it keeps its thread busy; on a
simulated device it lets time pass, as a host does that waits for a device.

    test.pattern ! test.work cpu_us=800 device_us=90 bytes=3000000 ! test.work ! null.sink
)"[1];

class Work final : public Handler {
 public:
  Work() {
    stateless();
    no_allocation();
  }

  void probe(Facts& facts) override { facts.cost_us(price(cpu_us_, "device"), price(device_us_, "cpu")); }

  void configure(const Formats& formats) override {
    if (in_.count() == 0) throw std::invalid_argument("test.work has nothing to wait for");
    formats.tensor(out_, dtype_of<uint8_t>(), {bytes_});
  }

  void process(Tick& tick, Cpu&) {
    if (tick.stands_in_for_gpu())
      pass_time(*device_us_);
    else
      keep_busy(*cpu_us_);
    const std::array<int64_t, 1> shape = {bytes_};
    const std::span<uint8_t> out = out_.allocate(tick, dtype_of<uint8_t>(), shape).elements<uint8_t>();
    out.front() = static_cast<uint8_t>(tick.index());
    out.back() = static_cast<uint8_t>(tick.index());
  }

 private:
  // The price on one kind of device: its time, or -1 if it does not run there.
  double price(const Param<double>& us, const char* only_elsewhere) const {
    return *runs_on_ == only_elsewhere ? -1 : std::max(0.001, *us);
  }

  Inputs<Any> in_{*this, "in", 8, help("the values that it waits for")};
  Output<Tensor> out_{*this, "out", dtypes<uint8_t>(), rank(1), help("`bytes` numbers")};
  Param<double> cpu_us_{*this, "cpu_us", 100, "a call's time on the host", range(0, 1e6), unit("us")};
  Param<double> device_us_{*this, "device_us", 10, "a call's time on a device", range(0, 1e6), unit("us")};
  Param<int64_t> bytes_{*this, "bytes", 1024, "size of its output", range(1, int64_t{1} << 30), unit("B")};
  Param<std::string> runs_on_{*this, "runs_on", "both", "where it can run", choices({"both", "cpu", "device"})};
};

} // namespace

const mr_handler_type& test_work_type() {
  static const mr_handler_type type =
      detail::Type<Work>::table("test.work", "Works for a chosen time on each kind of device", kWorkManual);
  return type;
}

} // namespace millrace::handlers
