// test.mix: makes one number out of everything that it sees.
#include <millrace/handler.h>

#include <array>

#include "handlers/test/mixing.h"

namespace millrace::handlers {
namespace {

constexpr const char* kMixManual = &R"(
Takes up to eight tensors of int64, any of which may be missing, and gives a tensor of `size`
numbers that depends on all that it saw: which inputs were there, in which place, every number in
them, the tick's index and `seed`. A value that is late, doubled, swapped or overwritten anywhere
upstream changes every number downstream. About one tick in `silent_every` has no result, and about
one in `fail_every` fails; index and seed decide which.

    test.number count=100 ! test.mix seed=3 size=1000 ! test.record path=mixed.txt
)"[1];

class Mix final : public Handler {
 public:
  Mix() {
    stateless();
    no_allocation();
  }

  void configure(const Formats& formats) override { formats.tensor(out_, dtype_of<int64_t>(), {size_}); }

  void process(Tick& tick, Cpu&) {
    const uint64_t index = tick.index(), seed = static_cast<uint64_t>(*seed_);
    if (strikes(index, seed ^ kFailure, static_cast<uint64_t>(*fail_every_)))
      throw std::runtime_error("test.mix fails here, as fail_every asks");
    uint64_t hash = joined(seed, index);
    for (uint32_t i = 0; i < in_.count(); ++i)
      hash = joined(hash, in_.present(tick, i) ? hash_of(in_(tick, i).elements<int64_t>()) : kAbsent);
    if (strikes(index, seed, static_cast<uint64_t>(*silent_every_))) return;
    const std::array<int64_t, 1> shape = {size_};
    spread(hash, out_.allocate(tick, dtype_of<int64_t>(), shape).elements<int64_t>());
  }

 private:
  // Makes failures and silences fall on different ticks although they share a seed.
  static constexpr uint64_t kFailure = 0x6661696c;

  Inputs<Tensor> in_{*this, "in", 8, optional, dtypes<int64_t>(), help("of any shape")};
  Output<Tensor> out_{*this, "out", dtypes<int64_t>(), rank(1), help("`size` numbers")};
  Param<int64_t> seed_{*this, "seed", 0, "other results for another seed"};
  Param<int64_t> size_{*this, "size", 1, "numbers in a value", range(1, 1 << 24)};
  Param<int64_t> silent_every_{*this, "silent_every", 0, "about one tick in so many has no result; 0: none",
                               at_least(0)};
  Param<int64_t> fail_every_{*this, "fail_every", 0, "about one tick in so many fails; 0: none", at_least(0)};
};

} // namespace

const mr_handler_type& test_mix_type() {
  static const mr_handler_type type =
      detail::Type<Mix>::table("test.mix", "Makes one number out of everything that it sees", kMixManual);
  return type;
}

} // namespace millrace::handlers
