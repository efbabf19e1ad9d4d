// Finds the best classes in one pass over the scores, with a heap of the best ones so far.
#include "handlers/tensor/class_score.h"

#include <millrace/payload/half_floats.h>
#include <millrace/sound_value.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <stdexcept>

namespace millrace::handlers {

namespace {

bool is_better(const Class& a, const Class& b) { return a.score != b.score ? a.score > b.score : a.label < b.label; }

// The best classes by their numbers in the tensor. The worst of them is at the top of the heap.
template <class ScoreAt>
size_t select_best(const ScoreAt& score_at, int64_t classes, std::span<Class> best) {
  size_t count = 0;
  for (int64_t label = 0; label < classes; ++label) {
    const Class next = {score_at(label), static_cast<int32_t>(label)};
    if (!std::isfinite(next.score)) continue;
    const bool is_full = count == best.size();
    if (is_full && !is_better(next, best.front())) continue;
    if (is_full)
      std::pop_heap(best.begin(), best.end(), is_better);
    else
      ++count;
    best[count - 1] = next;
    std::push_heap(best.begin(), best.begin() + static_cast<ptrdiff_t>(count), is_better);
  }
  std::sort_heap(best.begin(), best.begin() + static_cast<ptrdiff_t>(count), is_better);
  return count;
}

// The greatest number is subtracted from all, so that no power is infinite.
template <class ScoreAt>
void apply_softmax(const ScoreAt& score_at, int64_t classes, std::span<Class> best) {
  const double greatest = best.front().score;
  double sum = 0;
  for (int64_t label = 0; label < classes; ++label)
    if (const float score = score_at(label); std::isfinite(score)) sum += std::exp(score - greatest);
  for (Class& one : best) one.score = static_cast<float>(std::exp(one.score - greatest) / sum);
}

// Softmax keeps the order, so it is applied to the best classes alone.
template <class ScoreAt>
size_t best_of(const ScoreAt& score_at, int64_t classes, const ClassRule& rule, std::span<Class> best) {
  size_t count = select_best(score_at, classes, best);
  if (rule.softmax && count > 0) apply_softmax(score_at, classes, best.first(count));
  while (count > 0 && best[count - 1].score < rule.score_min) --count;
  return count;
}

} // namespace

void set_name(Class& one, std::string_view name) {
  size_t length = std::min(name.size(), kClassNameBytes);
  const auto continues_letter = [&] { return (static_cast<unsigned char>(name[length]) & 0xC0) == 0x80; };
  while (length > 0 && length < name.size() && continues_letter()) --length;
  std::fill(std::copy_n(name.begin(), length, one.name), std::end(one.name), uint8_t{0});
}

int64_t class_count(std::span<const int64_t> shape) {
  const bool is_row = shape.size() == 1 || (shape.size() == 2 && shape[0] == 1);
  if (!is_row)
    throw std::invalid_argument("the tensor is " +
                                detail::shape_words(shape.data(), static_cast<uint32_t>(shape.size())) +
                                ", and the scores of one item are [classes] or [1, classes]");
  return shape.back();
}

size_t best_classes(const TensorView& tensor, const ClassRule& rule, std::span<Class> best) {
  if (tensor.element_count() == 0 || best.empty()) return 0;
  const int64_t classes = class_count(tensor.shape()), stride = tensor.strides().back();
  if (tensor.dtype().bits == 16) {
    const auto* halves = reinterpret_cast<const Float16*>(tensor.data());
    return best_of([=](int64_t label) { return float{halves[label * stride]}; }, classes, rule, best);
  }
  const auto* numbers = reinterpret_cast<const float*>(tensor.data());
  return best_of([=](int64_t label) { return numbers[label * stride]; }, classes, rule, best);
}

} // namespace millrace::handlers
