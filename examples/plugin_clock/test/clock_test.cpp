// Tests clock.faces alone: no runtime, no pipeline.
#include "../src/clock.cpp" // the class is private to its file

#include <millrace/testing.h>

#include <cmath>
#include <cstdio>

namespace {

int failures = 0;

// Unlike assert(), this also checks in a release build.
void check(bool holds, const char* sentence) {
  if (!holds) std::fprintf(stderr, "not true: %s\n", sentence);
  if (!holds) ++failures;
}

} // namespace

int main() {
  mr::Point point;
  point.x = 100;
  point.y = 50;
  mr::testing::HandlerTest<Faces> test({{"radius", "20"}});
  test.input("points", mr::testing::records<mr::Point>({point}));
  const mr::testing::Result result = test.tick();
  if (!result.ok()) {
    std::fprintf(stderr, "the handler failed: %s\n", result.error.c_str());
    return 1;
  }
  const std::span<const mr::Mark> marks = result.records<mr::Mark>("marks");
  check(marks.size() == Faces::kMarks, "one point has one clock");
  check(marks[0].at[2] == 40 && marks[0].roundness == 1, "the face is round, and as wide as its radius says");
  check(marks[14].at[2] == 100 && std::fabs(marks[14].at[3] - 34) < 1e-4f, "it is twelve when the film begins");
  return failures == 0 ? 0 : 1;
}
