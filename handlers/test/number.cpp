// test.number: a source of numbers that are functions of the index and a seed.
#include <millrace/handler.h>

#include <array>

#include "handlers/test/mixing.h"

namespace millrace::handlers {
namespace {

constexpr const char* kNumberManual = &R"(
Gives a tensor of `size` numbers (int64) that follow from the tick's index and `seed` alone. In the
same way about one tick in `silent_every` has no value, and the tick `fail_at` fails. It is made for
tests that run one graph in many ways and expect one result.

    test.number count=100 seed=7 ! test.mix ! test.record path=mixed.txt
)"[1];

class Number final : public Handler {
 public:
  Number() { no_allocation(); }

  void probe(Facts& facts) override { facts.tick_count(count_ == 0 ? -1 : *count_); }

  void configure(const Formats& formats) override { formats.tensor(out_, dtype_of<int64_t>(), {size_}); }

  void process(Tick& tick, Cpu&) {
    const uint64_t index = tick.index(), seed = static_cast<uint64_t>(*seed_);
    if (count_ > 0 && index >= static_cast<uint64_t>(*count_)) return tick.end();
    if (fail_at_ >= 0 && index == static_cast<uint64_t>(*fail_at_))
      throw std::runtime_error("test.number fails here, as fail_at asks");
    if (strikes(index, seed, static_cast<uint64_t>(*silent_every_))) return;
    const std::array<int64_t, 1> shape = {size_};
    spread(joined(seed, index), out_.allocate(tick, dtype_of<int64_t>(), shape).elements<int64_t>());
  }

 private:
  Output<Tensor> out_{*this, "out", dtypes<int64_t>(), rank(1), help("`size` numbers")};
  Param<int64_t> seed_{*this, "seed", 0, "other numbers for another seed"};
  Param<int64_t> count_{*this, "count", 0, "ticks until the end; 0: endless", at_least(0)};
  Param<int64_t> size_{*this, "size", 1, "numbers in a value", range(1, 1 << 24)};
  Param<int64_t> silent_every_{*this, "silent_every", 0, "about one tick in so many has no value; 0: none",
                               at_least(0)};
  Param<int64_t> fail_at_{*this, "fail_at", -1, "index of the tick that fails; -1: none", at_least(-1)};
};

} // namespace

const mr_handler_type& test_number_type() {
  static const mr_handler_type type =
      detail::Type<Number>::table("test.number", "Gives numbers that follow from index and seed", kNumberManual);
  return type;
}

} // namespace millrace::handlers
