// tensor.top_k: gives the classes that a classifier's network takes for the likeliest.
#include <millrace/handler.h>

#include <algorithm>
#include <stdexcept>

#include "handlers/image/picture.h"
#include "handlers/tensor/class_score.h"

namespace millrace::handlers {
namespace {

constexpr const char* kTopKManual = &R"(
Gives the `k` classes with the highest scores, best first, from a classifier's tensor of [classes]
or [1, classes]. A record has `score` and `label`, the index of the class from 0 on. Of equal scores
the lower label comes first. Classes with a score below `score_min` are left out, and so are numbers
that are not finite. Many exports end with softmax. For one that gives logits, `softmax: true` makes
probabilities of them; without it the negative ones are below the default of `score_min`.

    tensor.from_npy path=examples/data/scores.npy ! tensor.top_k k=3 ! record.to_json path=-
)"[1];

class TopK final : public Handler {
 public:
  TopK() {
    stateless();
    no_allocation();
    items(MR_ITEMS_MAX);
  }

  void configure(const Formats& formats) override {
    const Format& in = formats.in(tensor_);
    const int64_t most = in.rank > 0 ? std::min(class_count({in.shape, in.rank}), *k_) : *k_;
    formats.out(out_).record_count_max = static_cast<uint64_t>(std::max<int64_t>(most, 1));
  }

  void process(Items& items, Cpu&) {
    for (Tick& item : items) {
      const TensorView tensor = tensor_(item);
      const int64_t most = std::min(tensor.element_count(), *k_);
      const std::span<Class> best = out_.allocate(item, static_cast<size_t>(most));
      out_.shrink(item, best_classes(tensor, {static_cast<float>(*score_min_), *softmax_}, best));
      take_over_times(tensor.header(), out_.header(item));
    }
  }

 private:
  Input<Tensor> tensor_{*this, "tensor", dtypes<Float16, float>(), ranks(1, 2), help("a score for each class")};
  Output<Records<Class>> out_{*this, "records", help("the best classes, best first")};
  Param<int64_t> k_{*this, "k", 5, "classes that are given at most", range(1, 1024)};
  Param<double> score_min_{*this, "score_min", 0.0, "score of a class at least", live};
  Param<bool> softmax_{*this, "softmax", false, "make probabilities of the numbers"};
};

} // namespace

const mr_handler_type& tensor_top_k_type() {
  static const mr_handler_type type =
      detail::Type<TopK>::table("tensor.top_k", "Gives the best classes of a classifier's tensor", kTopKManual);
  return type;
}

} // namespace millrace::handlers
