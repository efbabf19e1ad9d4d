// image.patches: cuts regions out of a picture and makes one tensor of them.
#include <millrace/handler.h>

#include <array>

#include "handlers/gpu/tensor_kernels.h"
#include "handlers/image/picture.h"
#include "handlers/image/tensor_params.h"

namespace millrace::handlers {
namespace {

constexpr const char* kPatchesManual = &R"(
Cuts the regions that `boxes` names out of a picture, resizes each to `width` x `height`, converts
it to RGB and normalises it: values of 0 to 1 become (value - mean) / std. All this is one pass. It
is the step before a network that looks at a detector's results. The tensor is [count_max, 3,
height, width], or with `layout: nhwc` [count_max, height, width, 3]. Boxes that it has no room for
are left out; patches without a box are zero. Without a connection at `boxes` the whole picture is
the one region. `mean` and `std` are those of red, green and blue, whatever `order` the channels
have.

A pixel of a patch is mixed from 2x2 pixels of the picture. In a direction in which the region
becomes smaller than half, it is the mean of all pixels that it covers. The parts of a region
outside the picture repeat the picture's edge. A region without any area, or with NaN in it, is a
patch of zeros. nv12, i420 and p010 become RGB by the matrix and range that the picture is tagged
with.

    test.pattern ! image.patches width=224 height=224 mean=0.5 std=0.25 dtype=f16 ! null.sink
)"[1];

class Patches final : public Handler {
 public:
  Patches() {
    stateless();
    no_allocation();
    capturable();
  }

  void configure(const Formats& formats) override {
    form_ = numbers_.form();
    form_.width = static_cast<uint32_t>(*width_);
    form_.height = static_cast<uint32_t>(*height_);
    form_.count = boxes_.connected() ? static_cast<uint32_t>(*count_max_) : 1;
    announce_tensor(formats, out_, form_);
  }

  void start() override { cutter_.reserve(form_); }

  void process(Tick& tick, Cpu&) {
    const ImageView in = video_(tick);
    const Box whole = {0, 0, static_cast<float>(in.width()), static_cast<float>(in.height())};
    std::span<const Box> boxes(&whole, 1);
    if (boxes_.connected()) boxes = boxes_.present(tick) ? boxes_(tick) : std::span<const Box>();
    const TensorSpan out = allocate_tensor(tick, out_, form_, in);
    cutter_.run(in, boxes, form_, out.data());
  }
  void process(Tick& tick, Cuda& cuda) {
    const ImageView in = video_(tick);
    gpu::Regions regions{!boxes_.connected(), nullptr, nullptr};
    if (boxes_.present(tick)) {
      const mr_input& input = boxes_.raw(tick);
      regions.boxes = reinterpret_cast<const Box*>(input.data);
      regions.count = &Cuda::value_of(input)->as.records.count;
    }
    const TensorSpan out = allocate_tensor(tick, out_, form_, in);
    gpu::check(gpu::library_of(cuda).tensor->patches(cuda.stream(), gpu::on_device(in), regions, form_, out.data()));
  }

 private:
  Input<Image> video_{*this, "video", tensor_sources()};
  Input<Records<Box>> boxes_{*this, "boxes", optional, help("in pixels of the picture")};
  Output<Tensor> out_{*this, "tensor", dtypes<Float16, float>(), rank(4), help("a patch for each box, three channels")};
  Param<int64_t> width_{*this, "width", 224, "of a patch", range(1, kPictureSideMax), unit("px")};
  Param<int64_t> height_{*this, "height", 224, "of a patch", range(1, kPictureSideMax), unit("px")};
  Param<int64_t> count_max_{*this, "count_max", 64, "patches of one tensor, if boxes are connected", range(1, 1024)};
  TensorParams numbers_{*this};
  TensorForm form_;
  PatchCutter cutter_;
};

} // namespace

const mr_handler_type& image_patches_type() {
  static const mr_handler_type type =
      detail::Type<Patches>::table("image.patches", "Cuts regions out of a picture, as a tensor", kPatchesManual);
  return type;
}

} // namespace millrace::handlers
