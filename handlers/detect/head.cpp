// Decodes heads of detectors block by block, so that both layouts are read in runs.
#include "handlers/detect/head.h"

#include <millrace/payload/half_floats.h>
#include <millrace/sound_value.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <stdexcept>
#include <string>

#include "handlers/detect/nms.h"
#include "handlers/image/vectorize.h"

namespace millrace::handlers {

namespace {

constexpr int64_t kBoxNumbers = 4;          // a box without its scores
constexpr int64_t kEndToEndNumbers = 6;     // with one score and the class
constexpr int64_t kHeadBlock = 64;          // boxes whose classes are compared together: 256 bytes of each class
constexpr float kLabelMax = float{1 << 24}; // single precision counts in steps of 1 up to here

const char* head_name(HeadKind kind) {
  switch (kind) {
    case HeadKind::anchor_free: return "anchor_free";
    case HeadKind::anchors: return "anchors";
    case HeadKind::end_to_end: return "end_to_end";
  }
  return "";
}

const char* words_of_numbers(HeadKind kind) {
  switch (kind) {
    case HeadKind::anchor_free: return "4 + classes";
    case HeadKind::anchors: return "5 + classes";
    case HeadKind::end_to_end: return "6";
  }
  return "";
}

int64_t first_class_of(HeadKind kind) { return kind == HeadKind::anchors ? kBoxNumbers + 1 : kBoxNumbers; }

bool fits_head(HeadKind kind, int64_t numbers) {
  return kind == HeadKind::end_to_end ? numbers == kEndToEndNumbers : numbers > first_class_of(kind);
}

std::invalid_argument no_head(HeadKind kind, std::span<const int64_t> shape, const std::string& reason) {
  const std::string numbers = words_of_numbers(kind);
  return std::invalid_argument("the tensor is " +
                               detail::shape_words(shape.data(), static_cast<uint32_t>(shape.size())) +
                               ", and head=" + head_name(kind) + " expects [1, " + numbers + ", boxes] or [1, boxes, " +
                               numbers + "], with or without the 1: " + reason);
}

template <class Element>
class HeadReader {
 public:
  HeadReader(const HeadLayout& layout, const TensorView& tensor)
      : elements_(reinterpret_cast<const Element*>(tensor.data())) {
    const std::span<const int64_t> strides = tensor.strides().last(2);
    number_stride_ = strides[layout.numbers_first ? 0 : 1];
    box_stride_ = strides[layout.numbers_first ? 1 : 0];
  }
  float operator()(int64_t number, int64_t box) const { return elements_[number * number_stride_ + box * box_stride_]; }

 private:
  const Element* elements_;
  int64_t number_stride_ = 0, box_stride_ = 0;
};

// The best class of each box of a block. Of equal scores the lower label is taken.
struct BlockClasses {
  float scores[kHeadBlock];
  int32_t labels[kHeadBlock];
  uint32_t has_nan[kHeadBlock]; // 1: a score of the box is NaN; as wide as a score, for the loop below
};

// Compares the scores of one class with the best so far. The loop has no branch, so that it vectorises.
MILLRACE_VECTORIZE void take_better(const float (&scores)[kHeadBlock], int32_t label, BlockClasses& best) {
  for (int64_t i = 0; i < kHeadBlock; ++i) {
    const bool is_better = scores[i] > best.scores[i];
    best.scores[i] = is_better ? scores[i] : best.scores[i];
    best.labels[i] = is_better ? label : best.labels[i];
    best.has_nan[i] |= uint32_t{scores[i] != scores[i]};
  }
}

template <class Element>
BlockClasses best_in_block(const HeadReader<Element>& at, const HeadLayout& layout, int64_t first_class, int64_t begin,
                           int64_t count) {
  BlockClasses best{};
  std::fill_n(best.scores, kHeadBlock, -std::numeric_limits<float>::infinity());
  float scores[kHeadBlock] = {};
  for (int64_t number = first_class; number < layout.numbers; ++number) {
    for (int64_t i = 0; i < count; ++i) scores[i] = at(number, begin + i);
    take_better(scores, static_cast<int32_t>(number - first_class), best);
  }
  return best;
}

void add_candidate(const Box& box, float score_min, std::vector<Box>& boxes) {
  if (is_candidate(box, score_min)) boxes.push_back(box);
}

template <class Element>
void decode_classes(HeadKind kind, const HeadLayout& layout, const HeadReader<Element>& at, float score_min,
                    std::vector<Box>& boxes) {
  for (int64_t begin = 0; begin < layout.boxes; begin += kHeadBlock) {
    const int64_t count = std::min(kHeadBlock, layout.boxes - begin);
    const BlockClasses best = best_in_block(at, layout, first_class_of(kind), begin, count);
    for (int64_t i = 0; i < count; ++i) {
      const int64_t row = begin + i;
      const float score = kind == HeadKind::anchors ? at(kBoxNumbers, row) * best.scores[i] : best.scores[i];
      if (best.has_nan[i] != 0 || !(score >= score_min)) continue;
      const float width = at(2, row), height = at(3, row);
      add_candidate({at(0, row) - width / 2, at(1, row) - height / 2, width, height, score, best.labels[i], -1},
                    score_min, boxes);
    }
  }
}

template <class Element>
void decode_ends(const HeadLayout& layout, const HeadReader<Element>& at, float score_min, std::vector<Box>& boxes) {
  for (int64_t row = 0; row < layout.boxes; ++row) {
    const float score = at(4, row), label = at(5, row);
    const bool is_label = label >= 0 && label <= kLabelMax;
    if (!(score >= score_min) || !is_label) continue;
    const float left = at(0, row), top = at(1, row);
    add_candidate({left, top, at(2, row) - left, at(3, row) - top, score, static_cast<int32_t>(std::lround(label)), -1},
                  score_min, boxes);
  }
}

template <class Element>
void decode_as(HeadKind kind, const HeadLayout& layout, const TensorView& tensor, float score_min,
               std::vector<Box>& boxes) {
  const HeadReader<Element> at(layout, tensor);
  if (kind == HeadKind::end_to_end)
    decode_ends(layout, at, score_min, boxes);
  else
    decode_classes(kind, layout, at, score_min, boxes);
}

} // namespace

HeadLayout head_layout(HeadKind kind, HeadNumbers place, std::span<const int64_t> shape) {
  if (shape.size() < 2 || shape.size() > 3)
    throw no_head(kind, shape, "it has " + std::to_string(shape.size()) + " dimensions");
  if (shape.size() == 3 && shape[0] != 1)
    throw no_head(kind, shape, "its first dimension is not 1, so it is of several pictures");
  const int64_t outer = shape[shape.size() - 2], inner = shape[shape.size() - 1];
  if (place == HeadNumbers::smaller && outer == inner)
    throw no_head(kind, shape,
                  "both dimensions are equal, so rows=auto cannot tell which holds the numbers of a box; "
                  "give rows=first or rows=last");
  const bool numbers_first = place == HeadNumbers::first || (place == HeadNumbers::smaller && outer < inner);
  const int64_t numbers = numbers_first ? outer : inner, boxes = numbers_first ? inner : outer;
  if (!fits_head(kind, numbers))
    throw no_head(kind, shape,
                  "it would have " + std::to_string(numbers) + " numbers a box" +
                      (fits_head(kind, boxes) ? std::string("; rows=") + (numbers_first ? "last" : "first") +
                                                    " takes the other dimension for them"
                                              : ""));
  return {boxes, numbers, numbers_first};
}

void decode_head(HeadKind kind, const HeadLayout& layout, const TensorView& tensor, float score_min,
                 std::vector<Box>& boxes) {
  if (tensor.dtype().bits == 16)
    decode_as<Float16>(kind, layout, tensor, score_min, boxes);
  else
    decode_as<float>(kind, layout, tensor, score_min, boxes);
}

} // namespace millrace::handlers
