// detect.decode: makes boxes of the tensor that a detector's network gives.
#include <millrace/handler.h>
#include <millrace/payload/patch_transform.h>

#include <stdexcept>
#include <vector>

#include "handlers/detect/head.h"
#include "handlers/detect/nms_params.h"
#include "handlers/image/picture.h"

namespace millrace::handlers {
namespace {

constexpr const char* kDecodeManual = &R"(
Makes boxes of the tensor that a detector's network gives. `head` says which numbers a box has
there. `anchor_free`: the centre, width, height and a score for each class, as YOLOv8 and later
export them. `anchors`: the same with the score of the box before those of the classes (YOLOv5,
YOLOv7); both are multiplied. `end_to_end`: left, top, right, bottom, score and class (YOLOv10). The
label of a box is its best class, the lower one of equal ones. Sigmoid and softmax are part of such
exports and are not applied here.

The tensor is of one picture: [1, 84, 8400] or [1, 8400, 84] for 80 classes, with or without the 1.
`rows` says which of the two dimensions holds the numbers of a box; `auto` takes the smaller one.
Numbers are pixels of the patch that the network saw, or with `unit: fraction` parts of its `width`
and `height`. `transform` brings boxes from the patch to the picture and ends them at its edges. A
tick at which it is connected and empty has no boxes. Without it boxes stay in pixels of the patch.

Boxes are given best first, as detect.nms with the same `iou_max`, `score_min`, `by_class` and
`count_max` gives them. A network that is `end_to_end` has done that: `iou_max: 1` keeps its boxes.
A box with a number that is NaN is left out.

    tensor.from_npy path=examples/data/head.npy ! detect.decode ! record.to_json path=-
)"[1];

class DetectDecode final : public Handler {
 public:
  DetectDecode() {
    stateless();
    no_allocation();
    items(MR_ITEMS_MAX);
  }

  void configure(const Formats& formats) override {
    kind_ = *head_ == "anchors"      ? HeadKind::anchors
            : *head_ == "end_to_end" ? HeadKind::end_to_end
                                     : HeadKind::anchor_free;
    place_ = *rows_ == "first" ? HeadNumbers::first : *rows_ == "last" ? HeadNumbers::last : HeadNumbers::smaller;
    if (*unit_ == "fraction" && (*width_ == 0 || *height_ == 0))
      throw std::invalid_argument(
          "unit=fraction needs the width and height of the patch, such as width=640 height=640");
    const Format& in = formats.in(tensor_);
    boxes_max_ = 0;
    if (in.rank > 0) {
      const HeadLayout layout = head_layout(kind_, place_, {in.shape, in.rank});
      place_ = layout.numbers_first ? HeadNumbers::first : HeadNumbers::last; // also of a tick with fewer boxes
      boxes_max_ = static_cast<uint64_t>(layout.boxes);
    }
    formats.out(out_).record_count_max = nms_.most_of(boxes_max_ > 0 ? boxes_max_ : UINT64_MAX);
  }

  void start() override {
    candidates_.reserve(static_cast<size_t>(boxes_max_));
    suppression_.reserve(static_cast<size_t>(boxes_max_));
  }

  void process(Items& items, Cpu&) {
    for (Tick& item : items) {
      try {
        find_candidates(item);
      } catch (const std::invalid_argument& error) {
        item.fail(error.what());
        continue;
      }
      const std::span<Box> kept = out_.allocate(item, nms_.most_of(candidates_.size()));
      out_.shrink(item, suppression_.run(candidates_, nms_.rule(), kept));
      take_over_times(tensor_(item).header(), out_.header(item));
    }
  }

 private:
  // Finds the boxes of an item, in pixels of its picture.
  void find_candidates(const Tick& item) {
    candidates_.clear();
    const TensorView tensor = tensor_(item);
    if (tensor.element_count() == 0) return;
    const PatchTransform* transform = nullptr;
    if (transform_.connected()) {
      if (!transform_.present(item) || transform_(item).empty()) return;
      transform = &transform_(item).front();
    }
    decode_head(kind_, head_layout(kind_, place_, tensor.shape()), tensor, nms_.rule().score_min, candidates_);
    if (*unit_ == "fraction")
      for (Box& box : candidates_) box = scaled(box);
    if (transform)
      for (Box& box : candidates_) box = transform->to_picture(box);
  }

  Box scaled(Box box) const {
    const auto width = static_cast<float>(*width_), height = static_cast<float>(*height_);
    box.x *= width;
    box.width *= width;
    box.y *= height;
    box.height *= height;
    return box;
  }

  Input<Tensor> tensor_{*this, "tensor", dtypes<Float16, float>(), ranks(2, 3), help("the network's output")};
  Input<Records<PatchTransform>> transform_{*this, "transform", optional,
                                            help("of the patch, as image.letterbox made it")};
  Output<Records<Box>> out_{*this, "boxes", help("in pixels of the picture, best first")};
  Param<std::string> head_{*this, "head", "anchor_free", "numbers of a box",
                           choices({"anchor_free", "anchors", "end_to_end"})};
  Param<std::string> rows_{*this, "rows", "auto", "dimension with the numbers of a box; auto: the smaller",
                           choices({"auto", "first", "last"})};
  Param<std::string> unit_{*this, "unit", "pixels", "pixels of the patch, or parts of it",
                           choices({"pixels", "fraction"})};
  Param<int64_t> width_{*this, "width", 0, "of the patch; for unit=fraction", range(0, kPictureSideMax), unit("px")};
  Param<int64_t> height_{*this, "height", 0, "of the patch; for unit=fraction", range(0, kPictureSideMax), unit("px")};
  NmsParams nms_{*this};

  HeadKind kind_ = HeadKind::anchor_free;
  HeadNumbers place_ = HeadNumbers::smaller;
  uint64_t boxes_max_ = 0;      // the most of one tensor; 0: unknown
  std::vector<Box> candidates_; // before suppression
  Nms suppression_;
};

} // namespace

const mr_handler_type& detect_decode_type() {
  static const mr_handler_type type =
      detail::Type<DetectDecode>::table("detect.decode", "Makes boxes of a detector network's tensor", kDecodeManual);
  return type;
}

} // namespace millrace::handlers
