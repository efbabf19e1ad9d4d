// test.sum: adds its inputs, all of which it needs.
#include <millrace/handler.h>

#include <algorithm>

#include "handlers/test/mixing.h"

namespace millrace::handlers {
namespace {

constexpr const char* kSumManual = &R"(
Takes up to eight tensors of int64 of one size and gives their sum, element by element, wrapping
around. It needs all of them: if one is missing, the runtime settles the sum empty without a call. A
value without elements, such as an initial one, adds nothing. It is the counterpart of test.mix,
which needs none.

    test.number count=100 size=4 ! test.sum ! test.record path=sum.txt
)"[1];

class Sum final : public Handler {
 public:
  Sum() {
    stateless();
    no_allocation();
  }

  void configure(const Formats& formats) override {
    for (uint32_t i = 1; i < in_.count(); ++i)
      if (element_count(formats.in(in_, i)) != element_count(formats.in(in_)))
        throw std::invalid_argument("the inputs of test.sum differ in size");
    if (in_.count() == 0) throw std::invalid_argument("test.sum has nothing to add");
    Format& out = formats.tensor(out_, dtype_of<int64_t>(), {});
    out.rank = formats.in(in_).rank;
    std::copy_n(formats.in(in_).shape, MR_RANK_MAX, out.shape);
    std::copy_n(formats.in(in_).shape_kind, MR_RANK_MAX, out.shape_kind);
  }

  void process(Tick& tick, Cpu&) {
    uint32_t first = 0; // the first input that has elements
    while (first + 1 < in_.count() && in_(tick, first).element_count() == 0) ++first;
    const TensorView begin = in_(tick, first);
    const std::span<int64_t> sum = out_.allocate(tick, dtype_of<int64_t>(), begin.shape()).elements<int64_t>();
    std::copy_n(begin.elements<int64_t>().begin(), sum.size(), sum.begin());
    for (uint32_t i = first + 1; i < in_.count(); ++i) {
      const std::span<const int64_t> next = in_(tick, i).elements<int64_t>();
      if (next.empty()) continue;
      if (next.size() != sum.size()) throw std::invalid_argument("the inputs of test.sum differ in size");
      for (size_t k = 0; k < sum.size(); ++k)
        sum[k] = static_cast<int64_t>(static_cast<uint64_t>(sum[k]) + static_cast<uint64_t>(next[k]));
    }
  }

 private:
  static int64_t element_count(const Format& format) {
    int64_t count = 1;
    for (uint32_t d = 0; d < format.rank; ++d) count *= format.shape[d];
    return count;
  }

  Inputs<Tensor> in_{*this, "in", 8, dtypes<int64_t>(), help("of one shape")};
  Output<Tensor> out_{*this, "out", dtypes<int64_t>(), help("of the first input's shape")};
};

} // namespace

const mr_handler_type& test_sum_type() {
  static const mr_handler_type type =
      detail::Type<Sum>::table("test.sum", "Adds its inputs, all of which it needs", kSumManual);
  return type;
}

} // namespace millrace::handlers
