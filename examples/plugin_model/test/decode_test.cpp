// Tests acme.decode alone: no runtime, no network.
#include "../src/decode.cpp" // the class is private to its file

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
  mr::testing::HandlerTest<Decode> test;
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
  mr::testing::HandlerTest<Decode> test;
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
