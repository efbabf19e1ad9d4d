// tensor.top_k: gives the classes that a classifier's network takes for the likeliest.
#include <millrace/handler.h>

#include <algorithm>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "handlers/file/class_names.h"
#include "handlers/image/picture.h"
#include "handlers/tensor/class_score.h"

namespace millrace::handlers {
namespace {

constexpr const char* kTopKManual = &R"(
Gives the `k` classes with the highest scores, best first, from a classifier's tensor of [classes]
or [1, classes]. A record has `score` and `label`, the index of the class from 0 on. Of equal scores
the lower label comes first. Classes with a score below `score_min` are left out, and so are numbers
that are not finite. `labels` is a text file with the name of a class on each line, that of class 0
on the first; then records have their `name` too. Many exports end with softmax. For one that gives
logits, `softmax: true` makes probabilities of them; without it the negative ones are below the
default of `score_min`.

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
    read_names();
    if (in.rank > 0) check_names(class_count({in.shape, in.rank}));
  }

  // An instance that is made while the run goes on is started even if configure() refused.
  void start() override { read_names(); }

  void process(Items& items, Cpu&) {
    for (Tick& item : items) {
      const TensorView tensor = tensor_(item);
      const int64_t most = std::min(tensor.element_count(), *k_);
      const std::span<Class> best = out_.allocate(item, static_cast<size_t>(most));
      const size_t count = best_classes(tensor, {static_cast<float>(*score_min_), *softmax_}, best);
      for (Class& one : best.first(count)) set_name(one, name_of(one.label));
      out_.shrink(item, count);
      take_over_times(tensor.header(), out_.header(item));
    }
  }

 private:
  void read_names() {
    if (!labels_->empty() && names_.empty()) names_ = read_class_names(*labels_);
  }

  // A file of another network has another number of lines. Shapes that are not known before the run are not compared.
  void check_names(int64_t classes) const {
    if (names_.empty() || classes <= static_cast<int64_t>(names_.size())) return;
    throw std::invalid_argument("'" + *labels_ + "' has the names of " + std::to_string(names_.size()) +
                                " classes, and the tensor has the scores of " + std::to_string(classes));
  }

  std::string_view name_of(int32_t label) const {
    const auto at = static_cast<size_t>(label);
    return at < names_.size() ? std::string_view(names_[at]) : std::string_view();
  }

  Input<Tensor> tensor_{*this, "tensor", dtypes<Float16, float>(), ranks(1, 2), help("a score for each class")};
  Output<Records<Class>> out_{*this, "records", help("the best classes, best first")};
  Param<int64_t> k_{*this, "k", 5, "classes that are given at most", range(1, 1024)};
  Param<double> score_min_{*this, "score_min", 0.0, "score of a class at least", live};
  Param<bool> softmax_{*this, "softmax", false, "make probabilities of the numbers"};
  Param<std::string> labels_{*this, "labels", "", "a file with the name of a class on each line", reads_path};
  std::vector<std::string> names_;
};

} // namespace

const mr_handler_type& tensor_top_k_type() {
  static const mr_handler_type type =
      detail::Type<TopK>::table("tensor.top_k", "Gives the best classes of a classifier's tensor", kTopKManual);
  return type;
}

} // namespace millrace::handlers
