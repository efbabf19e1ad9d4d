// Pictures to pages: credits, newcomers, H.264 streams that go on for all or for none.
#include "plugins/viewer/broadcast.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <chrono>
#include <string>
#include <vector>

#include "fake_page.h"

using namespace millrace;
using namespace millrace::viewer;
using test::FakePage;

namespace {

constexpr uint32_t kWidth = 64, kHeight = 48;

// A picture of one grey.
struct Grey {
  std::vector<uint8_t> bytes;
  explicit Grey(uint8_t level) : bytes(size_t{kWidth} * kHeight, level) {}
  Shown shown(int64_t media_ns = 0) const {
    codec::Picture picture;
    picture.pixel = Pixel::gray8;
    picture.width = kWidth;
    picture.height = kHeight;
    picture.planes[0] = bytes.data();
    picture.strides[0] = kWidth;
    return {picture, media_ns};
  }
};

// Grey pictures that differ, shown one after another. The one before stays as it is, as the runtime keeps it.
struct Film {
  Broadcast broadcast;
  std::vector<std::unique_ptr<Grey>> kept;
  int64_t media_ns = 0;
  std::vector<std::string> failures;

  explicit Film(std::chrono::milliseconds rests_after = std::chrono::milliseconds(0)) {
    broadcast.begin(
        {}, [this](const std::string& sentence) { failures.push_back(sentence); }, rests_after);
  }
  ~Film() { broadcast.end(); }
  void show() {
    kept.push_back(std::make_unique<Grey>(static_cast<uint8_t>(kept.size())));
    broadcast.show(kept.back()->shown(media_ns += 10));
    if (kept.size() > 2 && kept[kept.size() - 3]) kept[kept.size() - 3].reset();
  }
  void acknowledge(FakePage& page, uint32_t seq, Fate fate = Fate::drawn) {
    broadcast.acknowledge(page.number, {seq, fate, 0});
  }
};

bool has(const char* encoder) { return codec::find_encoder(encoder).why_missing().empty(); }

} // namespace

TEST_CASE("A page gets two pictures, and another one for each that it acknowledges; others are counted") {
  if (!has("jpeg")) return;
  Film film;
  film.show();
  film.show();
  CHECK(film.broadcast.counts().no_viewer == 1);
  FakePage page(1);
  film.broadcast.add(1, &page, {Codec::jpeg});
  page.pictures(1); // the newest, at once
  film.show();
  page.pictures(2);
  film.show();
  film.show();
  film.show();
  CHECK(page.picture_count() == 2);
  CHECK(film.broadcast.counts().no_credit == 2);
  film.acknowledge(page, 1);
  CHECK(FakePage::seq_of(page.pictures(3)[2]) == 3);
  CHECK_THROWS_AS(film.acknowledge(page, 1), Rubbish);
  CHECK_THROWS_AS(film.acknowledge(page, 9), Rubbish);
  film.acknowledge(page, 3); // and those before it
  CHECK_THROWS_AS(film.acknowledge(page, 2), Rubbish);
  film.show();
  page.pictures(4);
  CHECK(film.broadcast.counts().encoded_jpeg == 4);
  CHECK(film.failures.empty());
}

TEST_CASE("A picture like the one before is not sent again, and a newcomer gets the bytes that are there") {
  if (!has("jpeg")) return;
  Broadcast broadcast;
  broadcast.begin({}, {}, std::chrono::milliseconds(0));
  const Grey one(7), two(7);
  FakePage first(1), second(2);
  broadcast.add(1, &first, {Codec::jpeg});
  broadcast.show(one.shown());
  first.pictures(1);
  for (int n = 0; n < 10; ++n) broadcast.show((n % 2 ? one : two).shown());
  broadcast.add(2, &second, {Codec::jpeg});
  second.pictures(1);
  CHECK(first.picture_count() == 1);
  CHECK(broadcast.counts().encoded_jpeg == 1);
  CHECK(broadcast.counts().no_credit == 0);
  broadcast.end();
}

TEST_CASE("One encoding serves all pages of JPEG") {
  if (!has("jpeg")) return;
  Film film;
  std::vector<std::unique_ptr<FakePage>> pages;
  for (uint64_t n = 1; n <= 5; ++n) pages.push_back(std::make_unique<FakePage>(n));
  for (auto& page : pages) film.broadcast.add(page->number, page.get(), {Codec::jpeg});
  for (uint32_t seq = 1; seq <= 20; ++seq) {
    film.show();
    std::vector<std::string> newest;
    for (auto& page : pages) newest.push_back(FakePage::bytes_of(page->pictures(seq).back()));
    CHECK(std::count(newest.begin(), newest.end(), newest[0]) == 5);
    for (auto& page : pages) film.acknowledge(*page, seq);
  }
  CHECK(film.broadcast.counts().encoded_jpeg == 20);
  CHECK(film.broadcast.counts().sent == 100);
}

TEST_CASE("A page of H.264 begins with a key frame, and a newcomer's begins the stream anew for all") {
  if (!has("h264")) return;
  Film film;
  FakePage first(1), second(2);
  film.broadcast.add(1, &first, {Codec::h264, Codec::jpeg});
  for (uint32_t seq = 1; seq <= 4; ++seq) {
    film.show();
    CHECK(FakePage::is_key(first.pictures(seq).back()) == (seq == 1));
    film.acknowledge(first, seq);
  }
  film.broadcast.add(2, &second, {Codec::h264});
  CHECK(FakePage::is_key(second.pictures(1)[0]));
  const std::string again = first.pictures(5)[4]; // the same picture: what comes next needs the key frame
  CHECK(FakePage::is_key(again));
  CHECK(FakePage::bytes_of(again) == FakePage::bytes_of(second.pictures(1)[0]));
  film.acknowledge(first, 5);
  film.acknowledge(second, 1);
  film.show();
  CHECK(FakePage::bytes_of(first.pictures(6)[5]) == FakePage::bytes_of(second.pictures(2)[1]));
  CHECK(!FakePage::is_key(second.pictures(2)[1]));
  film.acknowledge(first, 6);
  film.acknowledge(second, 2, Fate::failed);
  CHECK(FakePage::is_key(second.pictures(3)[2])); // the same picture again
}

TEST_CASE("A page that cannot decode gets the picture again, and after some failures in another codec") {
  if (!has("h264") || !has("jpeg")) return;
  Film film;
  FakePage page(1);
  film.broadcast.add(1, &page, {Codec::h264, Codec::jpeg});
  film.show();
  for (uint32_t seq = 1; seq <= kFailuresMax; ++seq) {
    CHECK(FakePage::codec(page.pictures(seq).back()) == Codec::h264);
    film.acknowledge(page, seq, Fate::failed);
  }
  CHECK(FakePage::codec(page.pictures(kFailuresMax + 1).back()) == Codec::jpeg);
  film.acknowledge(page, kFailuresMax + 1);
  CHECK(film.broadcast.counts().encoded_jpeg == 1);
}

TEST_CASE("A page that lags goes on with a stream of its own, holds up nobody, and comes back when it keeps up") {
  if (!has("h264")) return;
  Film film;
  FakePage fast(1), slow(2);
  film.broadcast.add(1, &fast, {Codec::h264});
  film.show();
  fast.pictures(1);
  film.acknowledge(fast, 1);
  film.broadcast.add(2, &slow, {Codec::h264});
  slow.pictures(1);
  uint32_t fast_seq = static_cast<uint32_t>(fast.pictures(2).size());
  film.acknowledge(fast, fast_seq);
  for (int n = 0; n < 10; ++n) { // the slow one acknowledges nothing: it lags after 50 ms, and the fast one goes on
    film.show();
    fast.pictures(++fast_seq);
    film.acknowledge(fast, fast_seq);
  }
  CHECK(slow.picture_count() == 2);
  film.acknowledge(slow, 2);
  CHECK(FakePage::is_key(slow.pictures(3)[2])); // the first of its own stream
  uint32_t slow_seq = 3;
  film.acknowledge(slow, slow_seq);
  bool is_back = false;
  for (int n = 0; n < 5000 && !is_back; ++n) { // a busy machine makes it lag at times
    film.show();
    fast.pictures(++fast_seq);
    slow.pictures(++slow_seq);
    const std::string of_fast = fast.pictures(fast_seq)[fast_seq - 1], of_slow = slow.pictures(slow_seq)[slow_seq - 1];
    is_back = FakePage::is_key(of_fast) && FakePage::bytes_of(of_fast) == FakePage::bytes_of(of_slow);
    film.acknowledge(fast, fast_seq);
    film.acknowledge(slow, slow_seq);
  }
  CHECK(is_back);
}

TEST_CASE("A picture says the newest event that it knows") {
  if (!has("jpeg")) return;
  Film film;
  FakePage page(1);
  film.broadcast.add(1, &page, {Codec::jpeg});
  film.show(); // at 10
  CHECK(FakePage::answers(page.pictures(1)[0]) == 0);
  film.broadcast.answer(1, 5, 20);
  film.broadcast.answer(1, 6, 25);
  film.show(); // at 20
  CHECK(FakePage::answers(page.pictures(2)[1]) == 5);
  film.acknowledge(page, 2);
  film.show(); // at 30
  CHECK(FakePage::answers(page.pictures(3)[2]) == 6);
}

TEST_CASE("A picture that no encoder takes is said once, and others go on") {
  if (!has("jpeg")) return;
  Film film;
  FakePage page(1);
  film.broadcast.add(1, &page, {Codec::jpeg});
  codec::Picture wide;
  wide.pixel = Pixel::gray8;
  wide.width = 100'000;
  wide.height = 1;
  const std::vector<uint8_t> row(100'000);
  wide.planes[0] = row.data();
  wide.strides[0] = row.size();
  film.broadcast.show({wide, 0});
  film.show();
  page.pictures(1);
  film.broadcast.show({wide, 0});
  film.show();
  CHECK(FakePage::seq_of(page.pictures(2)[1]) == 2);
  CHECK(page.ended_code() == 0);
  CHECK(film.failures.size() <= 1); // a picture may be replaced before it is encoded
  if (!film.failures.empty()) CHECK(film.failures[0].starts_with("a picture is not shown: "));
}

TEST_CASE("A picture that stays comes once more as a still, when all before it is acknowledged") {
  if (!has("jpeg")) return;
  FakePage page(1);
  Film film(std::chrono::milliseconds(1)); // goes before its pages do
  film.broadcast.add(1, &page, {Codec::jpeg});
  for (uint32_t seq = 1; seq <= 5; seq += 2) {
    film.show();
    CHECK(!FakePage::is_still(page.pictures(seq).back()));
    film.acknowledge(page, seq);
    CHECK(FakePage::is_still(page.pictures(seq + 1).back()));
    film.acknowledge(page, seq + 1);
  }
  CHECK(film.broadcast.counts().encoded_jpeg == 3);
  CHECK(film.broadcast.counts().encoded_stills == 3);
}

TEST_CASE("Stills are JPEG for all pages that decode it, and a newcomer gets the bytes that are there") {
  if (!has("h264") || !has("jpeg")) return;
  FakePage both(1), without(2), late(3);
  Film film(std::chrono::milliseconds(1)); // goes before its pages do
  film.broadcast.add(2, &without, {Codec::h264});
  film.show();
  CHECK(FakePage::codec(without.pictures(1)[0]) == Codec::h264);
  film.acknowledge(without, 1);
  film.broadcast.add(1, &both, {Codec::h264, Codec::jpeg});
  CHECK(FakePage::codec(both.pictures(1)[0]) == Codec::h264);
  film.acknowledge(both, 1);
  CHECK(FakePage::codec(both.pictures(2)[1]) == Codec::jpeg);
  CHECK(FakePage::is_still(both.pictures(2)[1]));
  without.pictures(2); // the same picture: the newcomer began the stream anew
  film.acknowledge(without, 2);
  film.broadcast.add(3, &late, {Codec::jpeg});
  late.pictures(1);
  film.acknowledge(late, 1);
  CHECK(FakePage::bytes_of(late.pictures(2)[1]) == FakePage::bytes_of(both.pictures(2)[1]));
  CHECK(film.broadcast.counts().encoded_stills == 1);
  film.show();
  for (const std::string& picture : without.pictures(3)) CHECK(!FakePage::is_still(picture));
}

TEST_CASE("A page that gets a picture again gets its still again, and a still that fails is let be") {
  if (!has("h264") || !has("jpeg")) return;
  FakePage page(1), newcomer(2);
  Film film(std::chrono::milliseconds(1)); // goes before its pages do
  film.broadcast.add(1, &page, {Codec::h264, Codec::jpeg});
  film.show();
  page.pictures(1);
  film.acknowledge(page, 1);
  CHECK(FakePage::is_still(page.pictures(2)[1]));
  film.acknowledge(page, 2, Fate::failed); // once more than the page may fail would be another codec
  film.broadcast.add(2, &newcomer, {Codec::h264});
  const std::string again = page.pictures(3)[2];
  CHECK(FakePage::codec(again) == Codec::h264);
  CHECK(FakePage::is_key(again));
  film.acknowledge(page, 3);
  CHECK(FakePage::is_still(page.pictures(4)[3]));
  film.acknowledge(page, 4, Fate::failed);
  film.show();
  CHECK(FakePage::codec(page.pictures(5)[4]) == Codec::h264);
  CHECK(!FakePage::is_key(page.pictures(5)[4])); // nobody has asked for one
}

TEST_CASE("A still has a colour for each pixel, and finer steps") {
  if (!has("jpeg")) return;
  FakePage page(1);
  Film film(std::chrono::milliseconds(1)); // goes before its pages do
  film.broadcast.add(1, &page, {Codec::jpeg});
  const std::vector<uint8_t> red = [] {
    std::vector<uint8_t> pixels(size_t{3} * kWidth * kHeight);
    for (size_t i = 0; i < pixels.size(); i += 3) pixels[i] = 255;
    return pixels;
  }();
  codec::Picture picture;
  picture.pixel = Pixel::rgb8;
  picture.width = kWidth;
  picture.height = kHeight;
  picture.planes[0] = red.data();
  picture.strides[0] = size_t{3} * kWidth;
  film.broadcast.show({picture, 0});
  // The frame's head of JPEG gives the first component's samples beside those of the others; the first table has steps.
  const auto samples = [](const std::string& jpeg) { return jpeg.at(jpeg.find("\xff\xc0") + 11); };
  const auto first_step = [](const std::string& jpeg) { return jpeg.at(jpeg.find("\xff\xdb") + 5); };
  const std::string moving = FakePage::bytes_of(page.pictures(1)[0]);
  film.acknowledge(page, 1);
  const std::string still = FakePage::bytes_of(page.pictures(2)[1]);
  CHECK(samples(moving) == 0x22);
  CHECK(samples(still) == 0x11);
  CHECK(first_step(still) < first_step(moving));
  film.broadcast.forget(); // the pixels go
}
