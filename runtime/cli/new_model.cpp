// The files of a project with a decoder: examples/plugin_model is the project of "acme.decode".
#include "cli/new_model.h"

namespace millrace::cli {

const std::string_view kDecoder = R"_(// @type@: makes boxes of the tensor that a network gives.
#include <millrace/handler.h>
#include <millrace/payload/patch_transform.h>

#include <stdexcept>

namespace mr = millrace;

namespace {

// Here a row of the tensor is a box: left, top, right and bottom in pixels of the patch, a score from 0 to 1, and the
// number of the class.
struct @Class@ final : mr::Handler {
  static constexpr int64_t kNumbers = 6;

  mr::Input<mr::Tensor> tensor{*this, "tensor", mr::dtypes<float>(), mr::ranks(2, 3), mr::help("the network's output")};
  mr::Input<mr::Records<mr::PatchTransform>> transform{*this, "transform", mr::optional,
                                                       mr::help("of the patch, as image.letterbox made it")};
  mr::Output<mr::Records<mr::Box>> boxes{*this, "boxes", mr::help("in pixels of the picture")};
  mr::Param<float> score_min{*this, "score_min", 0.5f, "boxes below it are left out", mr::range(0, 1), mr::live};

  @Class@() { items(16); } // at most so many tensors a call

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

MILLRACE_HANDLER(@Class@, "@type@", "Makes boxes of the tensor that a network gives")
MILLRACE_PLUGIN("@family@", "0.1.0")
)_";

const std::string_view kDecoderTest = R"_(// Tests @type@ alone: no runtime, no network.
#include "../src/@name@.cpp" // the class is private to its file

#include <millrace/testing.h>

#include <cstdio>
#include <vector>

namespace {

int failures = 0;

// Unlike assert(), this also checks in a release build.
void check(bool holds, const char* sentence) {
  if (!holds) std::fprintf(stderr, "not true: %s\n", sentence);
  if (!holds) ++failures;
}

// The boxes of a network that found two things, one of them with a low score.
std::vector<mr::Box> boxes_of(const mr::PatchTransform* transform) {
  mr::testing::HandlerTest<@Class@> test;
  test.input("tensor", mr::testing::tensor<float>({2, 6}, {10, 20, 50, 40, 0.9f, 3, 0, 0, 8, 8, 0.2f, 1}));
  if (transform) test.input("transform", mr::testing::records<mr::PatchTransform>({*transform}));
  const mr::testing::Result result = test.tick();
  if (!result.ok()) std::fprintf(stderr, "the handler failed: %s\n", result.error.c_str());
  if (!result.ok()) return {};
  const std::span<const mr::Box> boxes = result.records<mr::Box>("boxes");
  return {boxes.begin(), boxes.end()};
}

bool is_at(const std::vector<mr::Box>& boxes, float x, float y, float width, float height) {
  if (boxes.size() != 1) return false;
  return boxes[0].x == x && boxes[0].y == y && boxes[0].width == width && boxes[0].height == height;
}

// A network whose rows have another length is refused before the run.
bool refuses_rows_of(int64_t numbers) {
  mr::testing::HandlerTest<@Class@> test;
  test.input("tensor", mr::testing::tensor<float>({1, numbers}, std::vector<float>(static_cast<size_t>(numbers))));
  try {
    return !test.tick().ok();
  } catch (const std::exception&) {
    return true;
  }
}

} // namespace

int main() {
  check(is_at(boxes_of(nullptr), 10, 20, 40, 20), "the box with the high score is given, in pixels of the patch");
  mr::PatchTransform half; // a picture twice as large as the patch
  half.scale_x = half.scale_y = 0.5f;
  check(is_at(boxes_of(&half), 20, 40, 80, 40), "with a transform it is in pixels of the picture");
  check(boxes_of(nullptr)[0].label == 3, "the class is the box's label");
  check(refuses_rows_of(5), "rows of five numbers are refused");
  return failures == 0 ? 0 : 1;
}
)_";

const std::string_view kDecoderPipeline =
    R"_(# Draws what a network finds in a test picture. The network is a file of yours:
#   millrace run pipeline.yaml --plugin-path build/plugins --set network.path=FILE
version: 1
name: @name@
handlers:
  picture: { type: test.pattern, width: 320, height: 240, count: 100 }
  patch:   { type: image.letterbox, input: picture, width: 640, height: 640 }
  network: { type: model.run, input: patch.tensor, path: network.onnx }
  boxes:   { type: @type@, inputs: { tensor: network.tensor, transform: patch.transform } }
  drawn:   { type: draw.boxes, inputs: { video: picture, boxes: boxes } }
  end:     { type: null.sink, input: drawn }
)_";

} // namespace millrace::cli
