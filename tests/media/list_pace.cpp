// Due times of a live list's pictures, in virtual time: the list gives ten at once each second.
#include "plugins/media/list_pace.h"

#include <doctest/doctest.h>

namespace millrace::media {
namespace {

constexpr int64_t kASecond = 1'000'000'000, kAPeriod = kASecond / 10;

int64_t wait_of(ListPace& pace, int64_t now, int64_t picture, int64_t read = 0, bool is_far_ahead = false) {
  const ListPace::Choice choice = pace.next(now, picture * kAPeriod, read, is_far_ahead);
  CHECK_FALSE(choice.is_dropped);
  return choice.wait_ns;
}

} // namespace

TEST_CASE("pictures of a burst are due at their own times") {
  ListPace pace(10 * kASecond);
  const int64_t begin = 5 * kASecond;
  for (int64_t picture = 0; picture < 30; ++picture) CHECK(wait_of(pace, begin, picture) == picture * kAPeriod);
}

TEST_CASE("what the list had not makes the later pictures due later") {
  ListPace pace(10 * kASecond);
  CHECK(wait_of(pace, 0, 0) == 0);
  // The next segment came 3 s after its time, all of which was spent waiting for it.
  CHECK(wait_of(pace, 3 * kASecond + kAPeriod, 1, 3 * kASecond) == 0);
  CHECK(wait_of(pace, 3 * kASecond + kAPeriod, 2) == kAPeriod);
}

TEST_CASE("a pipeline that was slow catches up, and nothing is dropped within the buffer") {
  ListPace pace(2 * kASecond);
  CHECK(wait_of(pace, 0, 0) == 0);
  for (int64_t picture = 1; picture < 20; ++picture) CHECK(wait_of(pace, 2 * kASecond, picture) == 0);
  CHECK(wait_of(pace, 2 * kASecond, 21) == kAPeriod);
}

TEST_CASE("what comes later than the buffer is dropped, and says by how much it is late") {
  ListPace pace(2 * kASecond);
  CHECK(wait_of(pace, 0, 0) == 0);
  const ListPace::Choice late = pace.next(3 * kASecond, kAPeriod, 0, false);
  CHECK(late.is_dropped);
  CHECK(late.late_ns == 3 * kASecond - kAPeriod);
  CHECK(wait_of(pace, 3 * kASecond, 10) == 0); // 2 s late
}

TEST_CASE("a pipeline that takes twice as long as a picture lasts loses every second one") {
  ListPace pace(2 * kASecond);
  int64_t now = 0, given = 0, dropped = 0;
  for (int64_t picture = 0; picture < 1000; ++picture) {
    const ListPace::Choice choice = pace.next(now, picture * kAPeriod, 0, false);
    (choice.is_dropped ? dropped : given) += 1;
    if (!choice.is_dropped) now += choice.wait_ns + 2 * kAPeriod;
  }
  CHECK(given + dropped == 1000);
  CHECK(given > 500);
  CHECK(given < 520); // the buffer holds twenty
}

TEST_CASE("without a buffer no picture is dropped here: the run drops what it does not take") {
  ListPace pace(0);
  CHECK(wait_of(pace, 0, 0) == 0);
  CHECK(wait_of(pace, 100 * kASecond, 1) == 0);
}

TEST_CASE("a list that moves away is followed without a wait") {
  ListPace pace(10 * kASecond);
  CHECK(wait_of(pace, 0, 0) == 0);
  for (int64_t picture = 1; picture < 50; ++picture) CHECK(wait_of(pace, 0, picture, 0, true) == 0);
  CHECK(wait_of(pace, 0, 50) == kAPeriod);
}

TEST_CASE("a time that lies far ahead is not waited for") {
  ListPace pace(10 * kASecond);
  CHECK(wait_of(pace, 0, 0) == 0);
  CHECK(wait_of(pace, 0, 100'000) == 0);
  CHECK(wait_of(pace, 0, 100'001) == kAPeriod);
}

} // namespace millrace::media
