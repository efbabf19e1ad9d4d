// test.vectors: a source of vectors that every machine makes with the same bytes.
#include "millrace/handler.h"
#include "millrace/payload/half_floats.h"
#include "plugins/codebook/test_data.h"

namespace millrace::codebook {
namespace {

constexpr const char* kVectorsManual = &R"(
Gives `n` vectors of `d` half-precision numbers, the same bytes on every machine. `waves` are the
vectors of the published tests of annealed codebooks: three centers at 0, 5 and 10 and a sine along
all numbers. `mixture` draws `centers` Gaussians with the deviation `spread`, with SplitMix64 from
`seed`.

    test.vectors n=1000 d=64 ! null.sink
)"[1];

class TestVectors final : public Handler {
 public:
  void probe(Facts& facts) override { facts.tick_count(*count_); }

  void configure(const Formats& formats) override { formats.tensor(out_, dtype_of<Float16>(), {*n_, *d_}); }

  void process(Tick& tick, Cpu&) {
    if (tick.index() >= static_cast<uint64_t>(*count_)) return tick.end();
    const int64_t shape[] = {*n_, *d_};
    const std::span<Float16> vectors = out_.allocate(tick, dtype_of<Float16>(), shape).elements<Float16>();
    const auto dimensions = static_cast<uint32_t>(*d_);
    if (*data_ == "waves")
      make_waves(dimensions, vectors);
    else
      make_mixture(dimensions, static_cast<uint32_t>(*centers_), *spread_, static_cast<uint64_t>(*seed_), vectors);
  }

 private:
  Output<Tensor> out_{*this, "vectors", dtypes<Float16>(), rank(2), help("[n, d]")};
  Param<std::string> data_{*this, "data", "waves", "which vectors", choices({"waves", "mixture"})};
  Param<int64_t> n_{*this, "n", 1000, "vectors", range(1, 1 << 23)};
  Param<int64_t> d_{*this, "d", 64, "numbers of each", range(1, 65536)};
  Param<int64_t> centers_{*this, "centers", 64, "Gaussians of a mixture", range(1, 65536)};
  Param<float> spread_{*this, "spread", 1.0f, "their deviation", range(0, 1000)};
  Param<int64_t> seed_{*this, "seed", 1, "another mixture for another seed"};
  Param<int64_t> count_{*this, "count", 1, "ticks until the end, all with the same vectors", at_least(1)};
};

MILLRACE_HANDLER(TestVectors, "test.vectors", "Gives vectors that every machine makes alike", kVectorsManual)

} // namespace
} // namespace millrace::codebook
