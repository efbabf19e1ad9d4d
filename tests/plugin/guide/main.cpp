// Runs the handlers of the author's guide; run.sh puts the guide's code in front of this as guide.h.
#include "guide.h"

#include <cstdio>

namespace {

int failures = 0;
void check(bool holds, const char* sentence) {
  if (!holds) std::printf("not true: %s\n", sentence);
  if (!holds) ++failures;
}

void check_spots() {
  mr::testing::HandlerTest<FindSpots> test({{"threshold", "100"}});
  test.input("video", mr::testing::image(mr::Pixel::gray8, 20, 10,
                                         [](uint32_t x, uint32_t y, uint32_t) { return x == 7 && y == 3 ? 150 : 99; }));
  const mr::testing::Result result = test.tick();
  check(result.ok(), "spots are found without an error");
  check(result.records<Spot>("spots").size() == 1 && result.records<Spot>("spots")[0].x == 7, "the one spot is found");
  check(result.image("map").row(3)[7] == 255 && result.image("map").row(3)[8] == 0, "the map marks the spot alone");
}

void check_ramp() {
  mr::testing::HandlerTest<Ramp> test({{"length", "2"}});
  test.tick();
  check(test.tick().tensor("out").elements<float>()[0] == 1.0f, "the ramp rises");
  check(test.tick().end(), "the ramp ends");
}

void check_behind() {
  mr::testing::HandlerTest<Behind> test;
  test.input("video", mr::testing::image(mr::Pixel::gray8, 1, 1));
  for (int i = 0; i < 4; ++i) check(test.tick().pending(), "every firing is pending");
  check(test.published().size() == 2, "two of four are published");
  test.drain();
  check(test.published().size() == 2, "the drain publishes the others");
}

void check_trail() {
  mr::testing::HandlerTest<Trail> test;
  test.tick();
  test.tick();
  const mr::testing::Result result = test.tick();
  check(result.ok(), "a borrowed block is given without an error");
  const uint8_t* row = result.image("video").row(0);
  check(row[0] == 255 && row[2] == 255 && row[3] == 0, "a picture that was given away is read again");
}

void check_highest() {
  mr::testing::HandlerTest<Highest> test;
  const auto second = [&](std::initializer_list<float> values) {
    test.input("in", mr::testing::tensor<float>({3}, values));
    const mr::testing::Result result = test.tick();
    return result.ok() ? result.tensor("out").elements<float>()[1] : NAN;
  };
  check(second({1, -5, 3}) == -5, "what nothing came before is the highest");
  check(second({1, -7, 3}) == -5, "the state is kept from tick to tick");
  check(test.reset() == MR_OK && second({1, -9, 3}) == -9, "after a reset nothing came before");
}

void check_record() {
  mr::testing::HandlerTest<Record> test({{"path", "a.raw"}, {"every_so_often", "500ms"}});
  test.input("video", mr::testing::image(mr::Pixel::rgb8, 4, 2));
  check(test.tick().ok(), "the writer takes the pictures that it is narrowed to");
}

void check_weigh() {
  mr::testing::HandlerTest<Weigh> test;
  test.input("in", mr::testing::tensor<float>({2, 2}, {1, 2, NAN, 4}).at(70, 20));
  const mr::testing::Result result = test.tick();
  check(result.ok() && result.tensor("sum").elements<double>()[0] == 7, "what is no number is left out of the sum");
  check(result.tensor("sum").header().pts_ns == 70, "the sum has the value's time");
  check(test.counts()["left_out"] == 1 && test.logs().size() == 1, "what was left out is counted and told");
  mr::testing::HandlerTest<Weigh> refused;
  refused.input("in", mr::testing::tensor<int32_t>({2, 2}));
  check(refused.start() == MR_ERROR, "a tensor of another type is refused");
  check(mr::record_type_of<Spot>()->field_count == 3, "a spot says its fields");
}

} // namespace

int main() {
  check(inverts(), "a picture is inverted");
  check(keeps_its_word(), "the inverter passes every check of a handler");
  check_spots();
  check_ramp();
  check_behind();
  check(scales_two_at_once(), "two tensors are scaled in one call");
  check_trail();
  check_highest();
  check_record();
  check_weigh();
  return failures == 0 ? 0 : 1;
}
