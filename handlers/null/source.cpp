// null.source: begins a pipeline with values that cost next to nothing to make.
#include <millrace/handler.h>

#include <algorithm>
#include <array>
#include <cstring>

namespace millrace::handlers {
namespace {

constexpr const char* kSourceManual = &R"(
Gives a tensor of `bytes` bytes (uint8) every tick. The first 8 of them, or all if there are fewer,
are the tick's index, lowest byte first. The others keep whatever the memory held, so that a large
value costs no more to make than a small one. It has no rate of its own: alone, it runs as fast as
the graph allows.

    null.source count=1000000 ! flow.pass ! null.sink
)"[1];

class NullSource final : public Handler {
 public:
  NullSource() {
    no_allocation();
    cost_hint_us(0.05);
  }

  void probe(Facts& facts) override { facts.tick_count(count_ == 0 ? -1 : *count_); }

  void configure(const Formats& formats) override { formats.tensor(out_, dtype_of<uint8_t>(), {bytes_}); }

  void process(Tick& tick, Cpu&) {
    const uint64_t index = tick.index();
    if (count_ > 0 && index >= static_cast<uint64_t>(*count_)) return tick.end();
    const std::array<int64_t, 1> shape = {bytes_};
    const TensorSpan value = out_.allocate(tick, dtype_of<uint8_t>(), shape);
    std::array<uint8_t, 8> digits;
    for (size_t i = 0; i < digits.size(); ++i) digits[i] = static_cast<uint8_t>(index >> (8 * i));
    std::memcpy(value.data(), digits.data(), std::min(digits.size(), static_cast<size_t>(*bytes_)));
  }

 private:
  Output<Tensor> out_{*this, "out", dtypes<uint8_t>(), rank(1), help("`bytes` numbers")};
  Param<int64_t> count_{*this, "count", 0, "ticks until the end; 0: endless", at_least(0)};
  Param<int64_t> bytes_{*this, "bytes", 8, "size of a value", range(1, 1 << 30), unit("B")};
};

} // namespace

const mr_handler_type& null_source_type() {
  static const mr_handler_type type =
      detail::Type<NullSource>::table("null.source", "Gives values that cost nothing to make", kSourceManual);
  return type;
}

} // namespace millrace::handlers
