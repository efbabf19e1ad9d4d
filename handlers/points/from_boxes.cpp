// points.from_boxes: gives a point of each box.
#include <millrace/handler.h>
#include <millrace/payload/marks.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <string>
#include <unordered_map>
#include <vector>

#include "handlers/gpu/box_marks.h"
#include "handlers/image/picture.h"

namespace millrace::handlers {
namespace {

constexpr const char* kFromBoxesManual = &R"(
Gives a point of each box: its middle, the middle of its lower edge (`foot`), or a corner. A
point has the box's score, label and id. Its radius is that of a square of the box's area, and
its age counts the ticks since its id was first seen; without an id it is 0. A box with NaN or
without area gives no point, and the report counts it (`boxes_skipped`).

    record.from_json path=examples/data/boxes.jsonl ! points.from_boxes at=foot ! null.sink
)"[1];

// So many ids are remembered at least. With more, those are forgotten that were not there for the longest time.
constexpr size_t kIdsMin = 4096;

class FromBoxes final : public Handler {
 public:
  void configure(const Formats& formats) override {
    boxes_max_ = formats.in(boxes_).record_count_max;
    formats.out(out_).record_count_max = boxes_max_;
  }

  void start() override {
    const bool is_left = at_->ends_with("left"), is_right = at_->ends_with("right");
    right_ = is_left ? 0 : is_right ? 1 : 0.5f;
    down_ = at_->starts_with("top") ? 0 : *at_ == "middle" ? 0.5f : 1;
    seen_.clear();
    seen_.reserve(2 * ids_max());
  }
  void reset() override { seen_.clear(); }

  void process(Tick& tick, Cpu&) {
    const std::span<const Box> boxes = boxes_(tick);
    const std::span<Point> points = out_.allocate(tick, boxes.size());
    size_t given = 0;
    for (const Box& box : boxes) {
      if (!draw::drawable(box)) continue;
      points[given++] = {box.x + box.width * right_,
                         box.y + box.height * down_,
                         std::sqrt(box.width * box.height) / 2,
                         box.score,
                         box.label,
                         box.id >= 0 ? age_of(box.id, tick.index()) : 0,
                         std::max<int64_t>(box.id, -1)};
    }
    out_.shrink(tick, given);
    if (given < boxes.size()) count("boxes_skipped", static_cast<int64_t>(boxes.size() - given));
    take_over_times(boxes_.raw(tick).value->header, out_.header(tick));
  }

 private:
  struct Seen {
    uint64_t first, last; // ticks
  };

  size_t ids_max() const { return std::max(kIdsMin, static_cast<size_t>(2 * boxes_max_)); }

  uint32_t age_of(int64_t id, uint64_t tick) {
    const auto [at, is_new] = seen_.try_emplace(id, Seen{tick, tick});
    at->second.last = tick;
    const uint64_t age = tick - at->second.first;
    if (is_new && seen_.size() > 2 * ids_max()) forget_half();
    return static_cast<uint32_t>(std::min<uint64_t>(age, UINT32_MAX));
  }

  void forget_half() {
    std::vector<uint64_t> lasts;
    for (const auto& [id, seen] : seen_) lasts.push_back(seen.last);
    const auto middle = lasts.begin() + static_cast<ptrdiff_t>(lasts.size() / 2);
    std::nth_element(lasts.begin(), middle, lasts.end());
    std::erase_if(seen_, [&](const auto& one) { return one.second.last < *middle; });
  }

  Input<Records<Box>> boxes_{*this, "boxes"};
  Output<Records<Point>> out_{*this, "points"};
  Param<std::string> at_{*this, "at", "middle", "which place of a box",
                         choices({"middle", "foot", "top_left", "top_right", "bottom_left", "bottom_right"})};
  float right_ = 0.5f, down_ = 0.5f; // the place, as a part of the box's sides
  uint64_t boxes_max_ = 0;
  std::unordered_map<int64_t, Seen> seen_; // by id
};

} // namespace

const mr_handler_type& points_from_boxes_type() {
  static const mr_handler_type type =
      detail::Type<FromBoxes>::table("points.from_boxes", "Gives a point of each box", kFromBoxesManual);
  return type;
}

} // namespace millrace::handlers
