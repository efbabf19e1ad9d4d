// video.writer and video.file against each other: what is written is what is read, and what cannot be is said.
#include <doctest/doctest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <utility>

#include "tests/contains.h"
#include "tests/file_bytes.h"
#include "tests/media/numbered_video.h"
#include "tests/media/plugin.h"
#include "tests/milliseconds.h"

namespace millrace::media {
namespace {

using testing::Result;
using testing::TableTest;
using testing::Value;

// The sentence with which a handler's start is refused.
std::string refusal(const std::string& type, std::initializer_list<testing::Setting> settings) {
  TableTest test(handler_type(type), settings);
  if (type != "video.file") test.input("video", numbered_picture(0));
  CHECK(test.start() == MR_ERROR);
  return test.error();
}

uint32_t row_bytes(const ImageView& picture, uint32_t plane) {
  return plane == 0 ? picture.width() * bytes_per_pixel(picture.pixel()) : (picture.width() + 1) / 2;
}

// Takes planar formats and those of one plane.
bool is_same(const ImageView& a, const ImageView& b) {
  if (a.pixel() != b.pixel() || a.width() != b.width() || a.height() != b.height()) return false;
  for (uint32_t p = 0; p < a.plane_count(); ++p) {
    const uint32_t rows = p == 0 ? a.height() : (a.height() + 1) / 2;
    for (uint32_t y = 0; y < rows; ++y) {
      const uint8_t* row = a.plane(p) + size_t{y} * a.stride(p);
      if (!std::equal(row, row + row_bytes(a, p), b.plane(p) + size_t{y} * b.stride(p))) return false;
    }
  }
  return true;
}

// Writes a numbered picture at each of these times, in milliseconds, to begin with 0.
void write_at(const std::string& path, std::initializer_list<int64_t> times_ms, const char* codec) {
  TableTest writer(handler_type("video.writer"), {{"path", path}, {"codec", codec}});
  uint32_t number = 0;
  for (const int64_t ms : times_ms) {
    if (number > 0) writer.period_ns(ms * kMs / number); // the tick's media time is its number of these
    writer.input("video", numbered_picture(number++));
    const Result result = writer.tick();
    INFO(result.error);
    REQUIRE(result.ok());
  }
  REQUIRE(writer.drain() == MR_OK);
}

} // namespace

TEST_CASE("a lossless video comes back with the same bytes, count and times") {
  struct Case {
    const char *name, *codec;
    Pixel pixel;
  };
  for (const Case& c : {Case{"ffv1.avi", "FFV1", Pixel::i420}, Case{"ffv1.mkv", "ffv1", Pixel::i420},
                        Case{"ffv1-gray.mkv", "ffv1", Pixel::gray8}, Case{"ffv1-bgra.mkv", "ffv1", Pixel::bgra8},
                        Case{"huff.avi", "HFYU", Pixel::rgb8}, Case{"png.mov", "png", Pixel::rgb8}}) {
    const std::string path = scratch(c.name);
    INFO(std::string(c.name));
    write_video(path, 12, c.codec, c.pixel);
    TableTest file(handler_type("video.file"), {{"path", path}});
    for (uint32_t i = 0; i < 12; ++i) {
      const Result result = file.tick();
      INFO("picture ", i, " ", result.error);
      REQUIRE(result.ok());
      const Value written = numbered_picture(i, result.image("video").pixel());
      const bool has_the_bytes = is_same(result.image("video"), written.image());
      CHECK(has_the_bytes);
      CHECK(result.value("video").header().pts_ns == int64_t{i} * 100 * kMs);
      CHECK(result.value("video").header().duration_ns == 100 * kMs);
    }
    CHECK(file.tick().end());
    CHECK(file.tick().end()); // and stays at it
    for (const testing::LogLine& line : file.logs()) CHECK(line.level == MR_LOG_DEBUG);
    CHECK(file.counts()["pictures_lost"] == 0);
  }
}

TEST_CASE("a video of variable rate keeps its times, and a copy of it keeps them and its pictures") {
  for (const char* name : {"uneven.mkv", "uneven.mp4", "uneven.nut"}) {
    const std::string uneven = scratch(name), copy = scratch(std::string("copy-of-") + name);
    const bool is_mp4 = contains(name, "mp4");
    write_at(uneven, {0, 53, 132, 237, 368, 525, 708, 917}, is_mp4 ? "h264" : "ffv1"); // 13 n² + 40 n
    TableTest file(handler_type("video.file"), {{"path", uneven}});
    TableTest writer(handler_type("video.writer"), {{"path", copy}, {"codec", is_mp4 ? "h264" : "ffv1"}});
    INFO(std::string(name));
    for (uint32_t i = 0; i < 8; ++i) {
      const Result result = file.tick();
      REQUIRE(result.ok());
      CHECK(burnt_number(result.image("video")) == i);
      CHECK(result.value("video").header().pts_ns == int64_t{i} * (13 * i + 40) * kMs);
      if (i > 0) writer.period_ns(result.value("video").header().pts_ns / i);
      writer.input("video", result.value("video"));
      REQUIRE(writer.tick().ok());
    }
    CHECK(file.tick().end());
    for (const testing::LogLine& line : file.logs()) CHECK(line.level == MR_LOG_DEBUG);
    REQUIRE(writer.drain() == MR_OK);
    TableTest again(handler_type("video.file"), {{"path", copy}});
    for (uint32_t i = 0; i < 8; ++i) {
      const Result result = again.tick();
      REQUIRE(result.ok());
      CHECK(burnt_number(result.image("video")) == i);
      CHECK(result.value("video").header().pts_ns == int64_t{i} * (13 * i + 40) * kMs);
    }
    CHECK(again.tick().end());
  }
}

TEST_CASE("a looping video of variable rate goes on where its last picture ends") {
  const std::string path = scratch("loop-uneven.mkv");
  write_at(path, {0, 50, 200, 450}, "ffv1");
  TableTest file(handler_type("video.file"), {{"path", path}, {"loop", "true"}});
  int64_t pass_ns = 0, last_ends_ns = 0;
  for (uint32_t i = 0; i < 12; ++i) {
    const Result result = file.tick();
    REQUIRE(result.ok());
    CHECK(burnt_number(result.image("video")) == i % 4);
    if (i % 4 == 0) pass_ns = last_ends_ns;
    const mr_header& header = result.value("video").header();
    CHECK(header.pts_ns == pass_ns + int64_t{i % 4} * (i % 4) * 50 * kMs);
    last_ends_ns = header.pts_ns + header.duration_ns;
  }
  CHECK(last_ends_ns > 3 * 450 * kMs);
}

TEST_CASE("videos in the default codecs come back in order, with their colours, times and count") {
  for (const char* name : {"default.avi", "default.mp4", "default.mkv", "default.mov", "default.webm", "default.ts"}) {
    const std::string path = scratch(name);
    write_video(path, 50);
    TableTest file(handler_type("video.file"), {{"path", path}});
    INFO(std::string(name));
    REQUIRE(file.start() == MR_OK);
    CHECK(file.facts().rate_num == 10 * file.facts().rate_den);
    CHECK(file.facts().tick_count == 50);
    CHECK(file.facts().live == 0);
    CHECK(file.format("video").width == kWidth);
    CHECK(file.format("video").height == kHeight);
    CHECK(file.format("video").size_kind == MR_DIM_FIXED);
    CHECK(file.format("video").pixel_formats == bit_of(Pixel::i420));
    CHECK(file.format("video").color == MR_COLOR_BT601);
    CHECK(file.format("video").range == MR_RANGE_LIMITED);
    for (uint32_t i = 0; i < 50; ++i) {
      const Result result = file.tick();
      REQUIRE(result.ok());
      const ImageView picture = result.image("video");
      CHECK(burnt_number(picture) == i);
      CHECK(result.value("video").header().pts_ns == int64_t{i} * 100 * kMs);
      CHECK(result.value("video").header().duration_ns == 100 * kMs);
      CHECK(std::abs(picture.row(40)[32] - kY) < 6);
      CHECK(std::abs(picture.plane(1)[20 * picture.stride(1) + 16] - kU) < 6);
      CHECK(std::abs(picture.plane(2)[20 * picture.stride(2) + 16] - kV) < 6);
    }
    CHECK(file.tick().end());
  }
}

TEST_CASE("a looping video begins again at its end, its times go on, and it has no count") {
  const std::string path = scratch("loop.avi");
  write_video(path, 5);
  TableTest file(handler_type("video.file"), {{"path", path}, {"loop", "true"}});
  for (uint32_t i = 0; i < 13; ++i) {
    const Result result = file.tick();
    REQUIRE(result.ok());
    CHECK(burnt_number(result.image("video")) == i % 5);
    CHECK(result.value("video").header().pts_ns == int64_t{i} * 100 * kMs);
  }
  CHECK(file.facts().tick_count == -1);
}

TEST_CASE("a reset video begins at its first picture, and so does one that was stopped and started") {
  const std::string path = scratch("reset.mp4");
  write_video(path, 8);
  TableTest file(handler_type("video.file"), {{"path", path}});
  for (int i = 0; i < 3; ++i) file.tick();
  REQUIRE(file.reset() == MR_OK);
  const Result again = file.tick();
  CHECK(burnt_number(again.image("video")) == 0);
  CHECK(again.value("video").header().pts_ns == 0);
  file.tick();
  REQUIRE(file.stop() == MR_OK);
  CHECK(burnt_number(file.tick().image("video")) == 0);
}

TEST_CASE("a part of a video begins and ends to the picture, at media time 0, and twice as fast where that is asked") {
  for (const char* name : {"part.mp4", "part.mkv", "part.avi", "part.ts"}) {
    const std::string path = scratch(name);
    write_video(path, 40);
    INFO(std::string(name));
    TableTest file(handler_type("video.file"), {{"path", path}, {"start", "1.1"}, {"end", "2500ms"}, {"speed", "2"}});
    Result result = file.tick();
    const int64_t first_ns = result.ok() ? result.value("video").header().pts_ns : -1;
    CHECK(first_ns == 0);
    uint32_t number = 11;
    for (; result.ok(); result = file.tick(), ++number) {
      CHECK(burnt_number(result.image("video")) == number);
      CHECK(result.value("video").header().pts_ns == int64_t{number - 11} * 50 * kMs);
      CHECK(result.value("video").header().duration_ns == 50 * kMs);
    }
    CHECK(result.end());
    CHECK(number == 25);
    CHECK(file.facts().rate_num == 20 * file.facts().rate_den);
  }
}

TEST_CASE("a folder of segments is one video, in natural order") {
  const std::string folder = scratch("segments");
  for (const char* name : {"/s-2.mkv", "/s-10.mkv", "/s-1.mkv"}) write_video(folder + name, 4, "ffv1");
  write_video(folder + "/s-3.mp4", 4); // of another kind: none of them
  TableTest file(handler_type("video.file"), {{"path", folder}});
  for (uint32_t i = 0; i < 12; ++i) {
    const Result result = file.tick();
    REQUIRE(result.ok());
    CHECK(burnt_number(result.image("video")) == i % 4);
    CHECK(result.value("video").header().pts_ns == int64_t{i} * 100 * kMs);
  }
  CHECK(file.tick().end());
}

TEST_CASE(
    "a video file that is missing, empty, a folder without any or no video is refused in a sentence that names it") {
  CHECK(refusal("video.file", {{"path", "no/such.avi"}}) ==
        "cannot read the video 'no/such.avi': there is no such file");
  const std::string empty = scratch("empty.avi");
  put_bytes(empty, "");
  CHECK(refusal("video.file", {{"path", empty}}) == "cannot read the video '" + empty + "': it is empty");
  const std::string folder = scratch("folder.avi");
  std::filesystem::create_directory(folder);
  CHECK(refusal("video.file", {{"path", folder}}) ==
        "cannot read the video '" + folder + "': the folder holds no files");
  const std::string text = scratch("text.avi");
  put_bytes(text, std::string(5000, 'x'));
  CHECK(refusal("video.file", {{"path", text}}) ==
        "cannot read the video '" + text + "': the file is damaged or of a kind that is not known");
}

TEST_CASE("a part of a video that ends before it begins is refused") {
  const std::string path = scratch("order.avi");
  write_video(path, 3);
  CHECK(contains(refusal("video.file", {{"path", path}, {"start", "2"}, {"end", "1"}}), "end has to be after start"));
}

TEST_CASE("a video file with a header but no pictures is refused") {
  const std::string whole = scratch("whole.avi"), head = scratch("head.avi");
  write_video(whole, 20);
  const std::string bytes = bytes_of(whole);
  const size_t pictures = bytes.find("movi");
  REQUIRE(pictures != std::string::npos);
  put_bytes(head, bytes.substr(0, pictures + 4));
  CHECK(contains(refusal("video.file", {{"path", head}}), "cannot read the video '" + head + "': "));
}

TEST_CASE("a video file that breaks off ends the stream where it does, with a warning, or fails where that is asked") {
  const std::string whole = scratch("long.avi"), part = scratch("part.avi");
  write_video(whole, 40, "mjpeg");
  const std::string bytes = bytes_of(whole);
  put_bytes(part, bytes.substr(0, bytes.size() / 2));
  TableTest file(handler_type("video.file"), {{"path", part}});
  uint32_t count = 0;
  Result result = file.tick();
  for (; result.ok() && count < 100; result = file.tick()) {
    CHECK(burnt_number(result.image("video")) == count);
    ++count;
  }
  CHECK(result.end());
  CHECK(count > 5);
  CHECK(count < 40);
  std::string warning;
  for (const testing::LogLine& line : file.logs())
    if (line.level == MR_LOG_WARNING && contains(line.sentence, "breaks off")) warning = line.sentence;
  CHECK(warning == "'" + part + "' breaks off after " + std::to_string(count) + " of 40 pictures");
  CHECK(file.counts()["pictures_lost"] >= 40 - int64_t{count});

  TableTest strict(handler_type("video.file"), {{"path", part}, {"on_damage", "fail"}});
  for (result = strict.tick(); result.ok();) result = strict.tick();
  CHECK(result.status == MR_ERROR);
  CHECK(contains(result.error, "'" + part + "' "));
}

TEST_CASE("a film's rate is `rate`, else the first duration's, else that of the first two times, else 25") {
  struct Case {
    const char* rate;
    int64_t duration_ns;
    int count;
    int64_t rate_num, rate_den;
    int64_t pictures;
  };
  // The ticks are 200 ms apart: `rate` repeats pictures.
  for (const Case& c : {Case{"12.5", 200 * kMs, 4, 25, 2, 10}, Case{"", 33'366'666, 1, 30000, 1001, 1},
                        Case{"", 0, 3, 5, 1, 3}, Case{"", 0, 1, 25, 1, 1}}) {
    const std::string path = scratch("rate.avi");
    TableTest writer(handler_type("video.writer"), {{"path", path}, {"rate", c.rate}});
    writer.period_ns(200 * kMs);
    for (int i = 0; i < c.count; ++i) {
      writer.input("video", numbered_picture(1).at(i * 200 * kMs, c.duration_ns));
      REQUIRE(writer.tick().ok());
    }
    REQUIRE(writer.drain() == MR_OK);
    TableTest file(handler_type("video.file"), {{"path", path}});
    REQUIRE(file.start() == MR_OK);
    INFO(std::string(c.rate), " ", c.duration_ns, " ", c.count);
    CHECK(file.facts().rate_num == c.rate_num);
    CHECK(file.facts().rate_den == c.rate_den);
    CHECK(file.facts().tick_count == c.pictures);
  }
}

TEST_CASE("a writer makes the folders on its way") {
  const std::string folder = scratch("made");
  write_video(folder + "/on/the/way.avi", 2);
  CHECK(std::filesystem::file_size(folder + "/on/the/way.avi") > 0);
}

TEST_CASE("a writer that cannot write says so and names the file or the parameter") {
  CHECK(contains(refusal("video.writer", {{"path", "/proc/none/a.avi"}}),
                 "cannot write '/proc/none/a.avi': its folder cannot be made: "));
  CHECK(contains(refusal("video.writer", {{"path", scratch("a.avi")}, {"codec", "MJPEX"}}), "'MJPEX'"));
  CHECK(contains(refusal("video.writer", {{"path", "a"}}), "'a' has no extension that chooses a container"));
  const std::string folder = scratch("taken.avi");
  std::filesystem::create_directory(folder);
  TableTest writer(handler_type("video.writer"), {{"path", folder}});
  writer.input("video", numbered_picture(0));
  const Result result = writer.tick();
  CHECK(result.status == MR_ERROR);
  CHECK(contains(result.error, "'" + folder + "'"));
}

} // namespace millrace::media
