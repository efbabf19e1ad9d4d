// detect.nms: keeps the best of boxes that overlap.
#include "handlers/detect/nms.h"

#include <millrace/handler.h>

#include <algorithm>
#include <cmath>

#include "handlers/detect/nms_params.h"
#include "handlers/image/picture.h"

namespace millrace::handlers {

bool is_candidate(const Box& box, float score_min) {
  const bool is_finite = std::isfinite(box.x) && std::isfinite(box.y) && std::isfinite(box.width) &&
                         std::isfinite(box.height) && std::isfinite(box.score);
  return is_finite && box.width > 0 && box.height > 0 && box.score >= score_min;
}

// In double precision the product of two floats is exact, so small boxes have an area too.
double overlap(const Box& a, const Box& b) {
  const auto end = [](float begin, float extent) { return double{begin} + double{extent}; };
  const auto area = [](const Box& box) { return double{box.width} * double{box.height}; };
  const double across = std::min(end(a.x, a.width), end(b.x, b.width)) - std::max(a.x, b.x);
  const double down = std::min(end(a.y, a.height), end(b.y, b.height)) - std::max(a.y, b.y);
  if (across <= 0 || down <= 0) return 0;
  const double shared = across * down;
  return shared / (area(a) + area(b) - shared);
}

size_t Nms::run(std::span<const Box> boxes, const NmsRule& rule, std::span<Box> kept) {
  order_.clear();
  for (uint32_t i = 0; i < boxes.size(); ++i)
    if (is_candidate(boxes[i], rule.score_min)) order_.push_back({boxes[i].score, i});
  std::sort(order_.begin(), order_.end(), [](const Ranked& a, const Ranked& b) {
    return a.score != b.score ? a.score > b.score : a.index < b.index;
  });
  size_t count = 0;
  for (const Ranked& next : order_) {
    if (count == kept.size()) break;
    const Box& box = boxes[next.index];
    const auto drops_it = [&](const Box& better) {
      return (!rule.by_class || better.label == box.label) && overlap(better, box) > rule.iou_max;
    };
    const std::span<const Box> better = kept.first(count);
    if (rule.iou_max < 1 && std::any_of(better.begin(), better.end(), drops_it)) continue;
    kept[count++] = box;
  }
  return count;
}

namespace {

constexpr const char* kNmsManual = &R"(
Keeps the best of boxes that show one thing (non-maximum suppression). The box with the highest
score stays, and boxes that overlap it by more than `iou_max` (intersection over union) are dropped.
Then the best box of the rest stays, and so on. With `by_class` only boxes of one label drop each
other. Boxes with a score below `score_min` are left out first, and so are those without area or
with a number that is not finite. At most `count_max` boxes are given, best first. Of two equal
scores the earlier box goes first. With `iou_max: 1` no box is dropped for its overlap.

    record.from_json path=examples/data/boxes.jsonl ! detect.nms ! record.to_json path=out/nms.jsonl
)"[1];

class DetectNms final : public Handler {
 public:
  DetectNms() {
    stateless();
    no_allocation();
    items(MR_ITEMS_MAX);
  }

  void configure(const Formats& formats) override {
    boxes_max_ = formats.in(in_).record_count_max;
    formats.out(out_).record_count_max = nms_.most_of(boxes_max_ > 0 ? boxes_max_ : UINT64_MAX);
  }

  void start() override { suppression_.reserve(static_cast<size_t>(boxes_max_)); }

  void process(Items& items, Cpu&) {
    for (Tick& item : items) {
      const std::span<const Box> boxes = in_(item);
      const std::span<Box> kept = out_.allocate(item, nms_.most_of(boxes.size()));
      out_.shrink(item, suppression_.run(boxes, nms_.rule(), kept));
      take_over_times(in_.raw(item).value->header, out_.header(item));
    }
  }

 private:
  Input<Records<Box>> in_{*this, "boxes", help("in any order")};
  Output<Records<Box>> out_{*this, "boxes", help("those that stay, best first")};
  NmsParams nms_{*this};
  uint64_t boxes_max_ = 0; // the most of one value; 0: unknown
  Nms suppression_;
};

} // namespace

const mr_handler_type& detect_nms_type() {
  static const mr_handler_type type =
      detail::Type<DetectNms>::table("detect.nms", "Keeps the best of boxes that overlap", kNmsManual);
  return type;
}

} // namespace millrace::handlers
