// acme.decode: makes boxes of the tensor that a network gives.
#include <millrace/handler.h>
#include <millrace/payload/patch_transform.h>

#include <stdexcept>

namespace mr = millrace;

namespace {

// Here a row of the tensor is a box: left, top, right and bottom in pixels of the patch, a score from 0 to 1, and the
// number of the class.
struct Decode final : mr::Handler {
  static constexpr int64_t kNumbers = 6;

  mr::Input<mr::Tensor> tensor{*this, "tensor", mr::dtypes<float>(), mr::ranks(2, 3), mr::help("the network's output")};
  mr::Input<mr::Records<mr::PatchTransform>> transform{*this, "transform", mr::optional,
                                                       mr::help("of the patch, as image.letterbox made it")};
  mr::Output<mr::Records<mr::Box>> boxes{*this, "boxes", mr::help("in pixels of the picture")};
  mr::Param<float> score_min{*this, "score_min", 0.5f, "boxes below it are left out", mr::range(0, 1), mr::live};

  Decode() { items(16); } // at most so many tensors a call

  // Before the run: refuses a network of another shape, and says how many boxes there may be.
  void configure(const mr::Formats& formats) override {
    const mr_format& in = formats.in(tensor);
    if (in.shape[in.rank - 1] != kNumbers)
      throw std::invalid_argument("six numbers make a box, and a row has " + std::to_string(in.shape[in.rank - 1]));
    formats.out(boxes).record_count_max = static_cast<uint64_t>(in.shape[in.rank - 2]);
  }

  void process(mr::Items& items, mr::Cpu&) {
    for (mr::Tick& item : items) decode(item);
  }

  void decode(mr::Tick& tick) {
    const std::span<const float> numbers = tensor(tick).elements<float>();
    const std::span<mr::Box> made = boxes.allocate(tick, numbers.size() / kNumbers);
    size_t count = 0;
    for (size_t at = 0; at < numbers.size(); at += kNumbers) {
      const std::span<const float> row = numbers.subspan(at, kNumbers);
      if (!(row[4] >= score_min)) continue; // not a number is left out too
      const mr::Box in_patch{row[0], row[1], row[2] - row[0], row[3] - row[1], row[4], static_cast<int32_t>(row[5])};
      made[count++] = in_picture(tick, in_patch);
    }
    boxes.shrink(tick, count);
  }

  // Without a transform, boxes stay in pixels of the patch.
  mr::Box in_picture(const mr::Tick& tick, const mr::Box& box) const {
    if (!transform.connected() || !transform.present(tick) || transform(tick).empty()) return box;
    return transform(tick).front().to_picture(box);
  }
};

} // namespace

MILLRACE_HANDLER(Decode, "acme.decode", "Makes boxes of the tensor that a network gives")
MILLRACE_PLUGIN("acme", "0.1.0")
