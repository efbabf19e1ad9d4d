// Tests acme.invert alone: no runtime, no pipeline.
#include "../src/invert.cpp" // the class is private to its file

#include <millrace/testing.h>

#include <cstdio>

namespace {

int failures = 0;

// Unlike assert(), this also checks in a release build.
void check(bool holds, const char* sentence) {
  if (!holds) std::fprintf(stderr, "not true: %s\n", sentence);
  if (!holds) ++failures;
}

// The first byte of the handler's result for a picture that is 10 everywhere.
int made_of_ten(const char* strength) {
  mr::testing::HandlerTest<Invert> test({{"strength", strength}});
  test.input("video", mr::testing::image(mr::Pixel::rgb8, 5, 3, 10));
  const mr::testing::Result result = test.tick();
  if (!result.ok()) std::fprintf(stderr, "the handler failed: %s\n", result.error.c_str());
  return result.ok() ? result.image("video").row(0)[0] : -1;
}

} // namespace

int main() {
  check(made_of_ten("1") == 245, "at strength 1 the picture is inverted");
  check(made_of_ten("0") == 10, "at strength 0 the picture stays as it is");
  return failures == 0 ? 0 : 1;
}
