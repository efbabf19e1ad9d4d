// detect.mask_boxes: puts boxes around what a network marked in a map of scores.
#include <millrace/handler.h>
#include <millrace/payload/half_floats.h>
#include <millrace/payload/patch_transform.h>
#include <millrace/sound_value.h>

#include <algorithm>
#include <span>
#include <stdexcept>
#include <vector>

#include "handlers/detect/connected.h"
#include "handlers/image/picture.h"

namespace millrace::handlers {
namespace {

constexpr const char* kMaskBoxesManual = &R"(
Reads a map of scores, as networks give it that find text or masks, and gives a box for each area of
pixels that have at least `score_min` and touch each other, also at a corner. The map is [height,
width], with ones before it: most networks give [1, 1, height, width]. Its scores are taken as they
are; NaN is no score.

A box has the mean score of its area. Areas with less than `mean_min` are left out, and those that
are narrower or lower than `size_min` pixels of the map. Networks that find text mark the core of a
line alone, so each side of a box moves out by width * height * `grow` / perimeter: 1.5 suits
networks of the DB kind, 0 leaves boxes as they are. Boxes come best first, at most `count_max`; of
equals the one whose area begins higher up.

A map that is smaller than what the network saw has `stride` pixels of that for each of its own.
With `transform`, as image.letterbox gives it, boxes are in pixels of the picture, else in pixels of
what the network saw. A tick at which it is connected and empty has no boxes.

    test.pattern count=9 ! image.convert to=gray8 ! image.normalize ! detect.mask_boxes ! null.sink
)"[1];

struct MapSize {
  uint32_t width, height;
};

// Throws std::invalid_argument if no map has this shape.
MapSize map_size_of(std::span<const int64_t> shape) {
  const size_t rank = shape.size();
  const auto is_side = [](int64_t extent) { return extent >= 1 && extent <= kPictureSideMax; };
  const auto before = shape.first(rank < 2 ? 0 : rank - 2);
  const bool sound = rank >= 2 && is_side(shape[rank - 1]) && is_side(shape[rank - 2]) &&
                     std::all_of(before.begin(), before.end(), [](int64_t extent) { return extent == 1; });
  if (!sound)
    throw std::invalid_argument("a map of scores is [height, width], or that with ones before it, and the tensor is " +
                                detail::shape_words(shape.data(), static_cast<uint32_t>(rank)));
  return {static_cast<uint32_t>(shape[rank - 1]), static_cast<uint32_t>(shape[rank - 2])};
}

class MaskBoxes final : public Handler {
 public:
  MaskBoxes() {
    stateless();
    no_allocation();
    items(MR_ITEMS_MAX);
    cost_hint_us(500); // a map of 640×640
  }

  void configure(const Formats& formats) override {
    const Format& map = formats.in(map_);
    const bool is_known = map.rank > 0 && std::all_of(map.shape_kind, map.shape_kind + map.rank,
                                                      [](uint32_t kind) { return kind == MR_DIM_FIXED; });
    size_ = is_known ? map_size_of({map.shape, map.rank}) : MapSize{0, 0};
    formats.out(boxes_).record_count_max = static_cast<uint64_t>(*count_max_);
  }

  void start() override { reserve(); }

  void process(Items& items, Cpu&) {
    for (Tick& item : items) {
      try {
        size_ = map_size_of(map_(item).shape());
      } catch (const std::invalid_argument& error) {
        item.fail(error.what());
        continue;
      }
      write_boxes(item);
    }
  }

 private:
  struct Found {
    const ScoredArea* area;
    float score;
    uint32_t at; // its place in the order of the map
  };

  void write_boxes(Tick& item) {
    const TensorView map = map_(item);
    reserve();
    found_.clear();
    const bool has_transform = transform_.present(item) && !transform_(item).empty();
    if (has_transform || !transform_.connected()) find(map); // else the picture's place is not known
    const size_t count = std::min(found_.size(), static_cast<size_t>(*count_max_));
    std::partial_sort(
        found_.begin(), found_.begin() + static_cast<ptrdiff_t>(count), found_.end(),
        [](const Found& a, const Found& b) { return a.score != b.score ? a.score > b.score : a.at < b.at; });
    const PatchTransform transform = has_transform ? transform_(item)[0] : PatchTransform{};
    const std::span<Box> out = boxes_.allocate(item, count);
    for (size_t i = 0; i < count; ++i) out[i] = transform.to_picture(box_of(found_[i]));
    take_over_times(map.header(), boxes_.header(item));
  }

  void reserve() {
    areas_.reserve(size_.width, size_.height);
    found_.reserve(areas_.count_max(size_.width, size_.height));
    row_.resize(std::max<size_t>(row_.size(), size_.width));
  }

  void find(const TensorView& map) {
    areas_.clear();
    const bool is_half = map.dtype() == dtype_of<Float16>();
    for (size_t y = 0; y < size_.height; ++y) {
      const float* scores = row_.data();
      if (is_half) {
        const auto* halves = reinterpret_cast<const Float16*>(map.data()) + y * size_.width;
        std::copy_n(halves, size_.width, row_.data());
      } else {
        scores = reinterpret_cast<const float*>(map.data()) + y * size_.width;
      }
      areas_.add_row(scores, size_.width, static_cast<float>(*score_min_));
    }
    const auto size_min = static_cast<uint32_t>(*size_min_);
    for (const ScoredArea& area : areas_.finish()) {
      const auto mean = static_cast<float>(area.sum / static_cast<double>(area.count));
      if (mean < static_cast<float>(*mean_min_)) continue;
      if (area.right - area.left < size_min || area.bottom - area.top < size_min) continue;
      found_.push_back({&area, mean, static_cast<uint32_t>(found_.size())});
    }
  }

  // In pixels of what the network saw.
  Box box_of(const Found& found) const {
    const ScoredArea& area = *found.area;
    const auto width = static_cast<float>(area.right - area.left), height = static_cast<float>(area.bottom - area.top);
    const float out = width * height * static_cast<float>(*grow_) / (2 * (width + height));
    const float left = std::max(0.0f, static_cast<float>(area.left) - out);
    const float top = std::max(0.0f, static_cast<float>(area.top) - out);
    const float right = std::min(static_cast<float>(size_.width), static_cast<float>(area.right) + out);
    const float bottom = std::min(static_cast<float>(size_.height), static_cast<float>(area.bottom) + out);
    const auto stride = static_cast<float>(*stride_);
    Box box;
    box.x = left * stride;
    box.y = top * stride;
    box.width = (right - left) * stride;
    box.height = (bottom - top) * stride;
    box.score = found.score;
    box.label = static_cast<int32_t>(*label_);
    return box;
  }

  Input<Tensor> map_{*this, "tensor", dtypes<Float16, float>(), ranks(2, 4), help("a score for each pixel")};
  Input<Records<PatchTransform>> transform_{*this, "transform", optional, help("where the picture lies in the map")};
  Output<Records<Box>> boxes_{*this, "boxes", help("a box for each area, best first")};
  Param<double> score_min_{*this, "score_min", 0.3, "of a pixel that belongs to an area"};
  Param<double> mean_min_{*this, "mean_min", 0.6, "of an area: the mean of its scores"};
  Param<int64_t> size_min_{*this, "size_min", 3, "of an area, each way", range(1, kPictureSideMax), unit("px")};
  Param<double> grow_{*this, "grow", 1.5, "how far the sides of a box move out", range(0, 10)};
  Param<double> stride_{*this, "stride", 1, "pixels that the network saw for one of the map", range(0.01, 256)};
  Param<int64_t> count_max_{*this, "count_max", 300, "boxes of one map", range(1, 100000)};
  Param<int64_t> label_{*this, "label", 0, "the class of the boxes", range(-1, 1e6)};

  MapSize size_{0, 0};
  ConnectedAreas areas_;
  std::vector<Found> found_;
  std::vector<float> row_;
};

} // namespace

const mr_handler_type& detect_mask_boxes_type() {
  static const mr_handler_type type = detail::Type<MaskBoxes>::table(
      "detect.mask_boxes", "Puts boxes around what a network marked in a map of scores", kMaskBoxesManual);
  return type;
}

} // namespace millrace::handlers
