// image.letterbox: fits a whole picture into a tensor of another shape, and says where it lies there.
#include <millrace/handler.h>
#include <millrace/payload/patch_transform.h>

#include <span>

#include "handlers/gpu/letterbox.h"
#include "handlers/gpu/tensor_kernels.h"
#include "handlers/image/picture.h"
#include "handlers/image/tensor_params.h"

namespace millrace::handlers {
namespace {

constexpr const char* kLetterboxManual = &R"(
Fits a whole picture into `width` x `height` without changing its shape, fills the border, converts
it to RGB and normalises it: values of 0 to 1 become (value - mean) / std. All this is one pass. It
is the step before a network that finds things in a picture of any size. The tensor is [1, 3,
height, width], or with `layout: nhwc` [1, height, width, 3].

`transform` says where the picture lies in the tensor: a place x of the picture is at
x * scale_x + offset_x of the tensor, and y likewise. Handlers that read what a network says, such
as detect.decode, take it and give boxes in pixels of the picture.

Networks are particular about what they were trained with. Most exports of YOLO want the picture in
the middle and a border of 114 of 255, which are the defaults. `align: top_left` puts the picture at
the upper left. With `enlarge: false` a picture that is smaller than the tensor keeps its size.
Pixels are mixed as by image.patches.

    test.pattern ! image.letterbox name=box width=320 height=320 ; box.tensor ! null.sink
)"[1];

class LetterboxHandler final : public Handler {
 public:
  LetterboxHandler() {
    stateless();
    no_allocation();
    capturable();
  }

  void configure(const Formats& formats) override {
    form_ = numbers_.form();
    form_.width = static_cast<uint32_t>(*width_);
    form_.height = static_cast<uint32_t>(*height_);
    announce_tensor(formats, out_, form_);
  }

  void start() override { cutter_.reserve(form_); }

  void process(Tick& tick, Cpu&) {
    const ImageView in = video_(tick);
    const Letterbox box = box_in(in);
    cutter_.letterbox(in, box, static_cast<float>(*fill_), form_, allocate_tensor(tick, out_, form_, in).data());
    allocate_transform(tick, in)[0] = transform_of(box, in.width(), in.height());
  }
  void process(Tick& tick, Cuda& cuda) {
    const ImageView in = video_(tick);
    const Letterbox box = box_in(in);
    uint8_t* const target = allocate_tensor(tick, out_, form_, in).data();
    const gpu::SaidTransform said{transform_of(box, in.width(), in.height()), allocate_transform(tick, in).data(),
                                  Cuda::count_of(transform_.raw(tick))};
    gpu::check(gpu::library_of(cuda).tensor->letterbox(cuda.stream(), gpu::on_device(in), box,
                                                       static_cast<float>(*fill_), form_, target, said));
  }

 private:
  Letterbox box_in(const ImageView& in) const {
    return letterbox_of(in.width(), in.height(), form_.width, form_.height, {*align_ == "center", *enlarge_});
  }
  std::span<PatchTransform> allocate_transform(Tick& tick, const ImageView& in) const {
    const std::span<PatchTransform> one = transform_.allocate(tick, 1);
    take_over_times(in.header(), transform_.header(tick));
    return one;
  }

  Input<Image> video_{*this, "video", tensor_sources()};
  Output<Tensor> out_{*this, "tensor", dtypes<Float16, float>(), rank(4), help("one patch of three channels")};
  Output<Records<PatchTransform>> transform_{*this, "transform", count_max(1),
                                             help("where the picture lies in the tensor")};
  Param<int64_t> width_{*this, "width", 640, "of the tensor", range(1, kPictureSideMax), unit("px")};
  Param<int64_t> height_{*this, "height", 640, "of the tensor", range(1, kPictureSideMax), unit("px")};
  Param<double> fill_{*this, "fill", 114.0 / 255, "value of the border, before mean and std", range(0, 1)};
  Param<std::string> align_{*this, "align", "center", "place of the picture", choices({"center", "top_left"})};
  Param<bool> enlarge_{*this, "enlarge", true, "also enlarge a picture that is smaller than the tensor"};
  TensorParams numbers_{*this};
  TensorForm form_;
  PatchCutter cutter_;
};

} // namespace

const mr_handler_type& image_letterbox_type() {
  static const mr_handler_type type = detail::Type<LetterboxHandler>::table(
      "image.letterbox", "Fits a picture into a tensor of another shape, with a border", kLetterboxManual);
  return type;
}

} // namespace millrace::handlers
