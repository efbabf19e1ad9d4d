// video.writer and video.file against each other: what is written is what is read, and what cannot be is said.
#include <doctest/doctest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <utility>

#include "tests/opencv/numbered_video.h"
#include "tests/opencv/plugin.h"

namespace millrace::opencv {
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

bool contains(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

} // namespace

TEST_CASE("a lossless video comes back with the same bytes, count and times") {
  for (const auto& [name, codec] : {std::pair{"lossless.avi", "MPNG"}, std::pair{"ffv1.avi", "FFV1"},
                                    std::pair{"ffv1.mkv", "FFV1"}, std::pair{"huff.avi", "HFYU"}}) {
    const std::string path = scratch(name);
    write_video(path, 12, codec);
    TableTest file(handler_type("video.file"), {{"path", path}});
    INFO(name);
    for (uint32_t i = 0; i < 12; ++i) {
      const Result result = file.tick();
      REQUIRE(result.ok());
      const ImageView picture = result.image("video");
      const Value written = numbered_picture(i);
      REQUIRE(picture.width() == kWidth);
      REQUIRE(picture.height() == kHeight);
      bool same = true;
      for (uint32_t y = 0; y < kHeight; ++y)
        same = same && std::equal(picture.row(y), picture.row(y) + kWidth * 3, written.image().row(y));
      INFO("picture ", i);
      CHECK(same);
      CHECK(result.value("video").header().pts_ns == int64_t{i} * 100'000'000);
      CHECK(result.value("video").header().duration_ns == 100'000'000);
    }
    CHECK(file.tick().end());
    CHECK(file.tick().end()); // and stays at it
    CHECK(file.logs().empty());
  }
}

TEST_CASE("a video of variable rate keeps its times, and a copy of it keeps its pictures") {
  const std::string even = scratch("even.avi"), uneven = scratch("uneven.mkv"), copy = scratch("even-again.avi");
  write_video(even, 12, "FFV1");
  // Picture n at 13 n² + 40 n milliseconds.
  const std::string command = "ffmpeg -nostdin -loglevel quiet -y -i '" + even +
                              "' -vf 'settb=1/1000,setpts=N*N*13+N*40' -vsync passthrough -enc_time_base 1/1000 "
                              "-c:v ffv1 '" +
                              uneven + "'";
  REQUIRE(std::system(command.c_str()) == 0);
  TableTest file(handler_type("video.file"), {{"path", uneven}});
  TableTest writer(handler_type("video.writer"), {{"path", copy}, {"codec", "FFV1"}});
  for (uint32_t i = 0; i < 12; ++i) {
    const Result result = file.tick();
    REQUIRE(result.ok());
    CHECK(burnt_number(result.image("video")) == i);
    CHECK(result.value("video").header().pts_ns == int64_t{i} * (13 * i + 40) * 1'000'000);
    writer.input("video", result.value("video"));
    REQUIRE(writer.tick().ok());
  }
  CHECK(file.tick().end());
  CHECK(file.logs().empty()); // the container's count, a guess from the duration, is no reason for a warning
  REQUIRE(writer.drain() == MR_OK);
  TableTest again(handler_type("video.file"), {{"path", copy}});
  for (uint32_t i = 0; i < 12; ++i) CHECK(burnt_number(again.tick().image("video")) == i);
  CHECK(again.tick().end());
}

TEST_CASE("a looping video of variable rate goes on a period after its last picture") {
  const std::string even = scratch("loop-even.avi"), uneven = scratch("loop-uneven.mkv");
  write_video(even, 4, "FFV1");
  const std::string command =
      "ffmpeg -nostdin -loglevel quiet -y -i '" + even +
      "' -vf 'settb=1/1000,setpts=N*N*50' -vsync passthrough -enc_time_base 1/1000 -c:v ffv1 '" + uneven + "'";
  REQUIRE(std::system(command.c_str()) == 0);
  TableTest file(handler_type("video.file"), {{"path", uneven}, {"loop", "true"}});
  REQUIRE(file.start() == MR_OK);
  const int64_t period_ns = 1'000'000'000 * file.facts().rate_den / file.facts().rate_num;
  for (int64_t i = 0; i < 10; ++i) {
    const Result result = file.tick();
    REQUIRE(result.ok());
    CHECK(burnt_number(result.image("video")) == i % 4);
    const int64_t in_pass = (i % 4) * (i % 4) * 50'000'000;
    CHECK(result.value("video").header().pts_ns == i / 4 * (450'000'000 + period_ns) + in_pass);
  }
}

TEST_CASE("videos in the default codecs of .avi and .mp4 come back in order, with their colours, times and count") {
  for (const char* name : {"default.avi", "default.mp4"}) {
    const std::string path = scratch(name);
    write_video(path, 50);
    TableTest file(handler_type("video.file"), {{"path", path}});
    INFO(name);
    REQUIRE(file.start() == MR_OK);
    CHECK(file.facts().rate_num == 10);
    CHECK(file.facts().rate_den == 1);
    CHECK(file.facts().tick_count == 50);
    CHECK(file.facts().live == 0);
    CHECK(file.format("video").width == kWidth);
    CHECK(file.format("video").height == kHeight);
    CHECK(file.format("video").size_kind == MR_DIM_FIXED);
    CHECK(file.format("video").pixel_formats == bit_of(Pixel::bgr8));
    for (uint32_t i = 0; i < 50; ++i) {
      const Result result = file.tick();
      REQUIRE(result.ok());
      CHECK(burnt_number(result.image("video")) == i);
      CHECK(result.value("video").header().pts_ns == int64_t{i} * 100'000'000);
      CHECK(result.value("video").header().duration_ns == 100'000'000);
      const uint8_t* pixel = result.image("video").row(40) + 32 * 3;
      for (int c = 0; c < 3; ++c) CHECK(std::abs(pixel[c] - (40 + 60 * c)) < 12);
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
    CHECK(result.value("video").header().pts_ns == int64_t{i} * 100'000'000);
  }
  CHECK(file.facts().tick_count == -1);
}

TEST_CASE("a reset video begins at its first picture, and so does one that was stopped and started") {
  const std::string path = scratch("reset.avi");
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

TEST_CASE("a video file that is missing, empty, a folder or no video is refused in a sentence that names it") {
  CHECK(refusal("video.file", {{"path", "no/such.avi"}}) ==
        "cannot read the video 'no/such.avi': there is no such file");
  const std::string empty = scratch("empty.avi");
  put_bytes(empty, "");
  CHECK(refusal("video.file", {{"path", empty}}) == "cannot read the video '" + empty + "': the file is empty");
  const std::string folder = scratch("folder.avi");
  std::filesystem::create_directory(folder);
  CHECK(refusal("video.file", {{"path", folder}}) ==
        "cannot read the video '" + folder + "': it is not a regular file");
  const std::string text = scratch("text.avi");
  put_bytes(text, std::string(5000, 'x'));
  CHECK(refusal("video.file", {{"path", text}}) ==
        "cannot read the video '" + text + "': the file is damaged or of a kind that is not known");
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

TEST_CASE("a video file that breaks off ends the stream where it does, with a warning") {
  const std::string whole = scratch("long.avi"), part = scratch("part.avi");
  write_video(whole, 40);
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
  REQUIRE(file.logs().size() == 1);
  CHECK(file.logs()[0].level == MR_LOG_WARNING);
  CHECK(contains(file.logs()[0].sentence, "breaks off after " + std::to_string(count) + " of 40 pictures"));
}

TEST_CASE("a writer takes its rate from `fps`, else the first duration, else the first two times, else 25") {
  struct Case {
    const char* fps;
    int64_t duration_ns;
    int count;
    int64_t rate_num, rate_den;
  };
  for (const Case& c : {Case{"12.5", 40'000'000, 3, 25, 2}, Case{"0", 33'366'666, 3, 30000, 1001},
                        Case{"0", 0, 3, 5, 1}, Case{"0", 0, 1, 25, 1}}) {
    const std::string path = scratch("rate.avi");
    TableTest writer(handler_type("video.writer"), {{"path", path}, {"fps", c.fps}});
    for (int i = 0; i < c.count; ++i) {
      writer.input("video", numbered_picture(1).at(i * 200'000'000, c.duration_ns));
      REQUIRE(writer.tick().ok());
    }
    REQUIRE(writer.drain() == MR_OK);
    TableTest file(handler_type("video.file"), {{"path", path}});
    REQUIRE(file.start() == MR_OK);
    INFO(c.fps, " ", c.duration_ns, " ", c.count);
    CHECK(file.facts().rate_num == c.rate_num);
    CHECK(file.facts().rate_den == c.rate_den);
    CHECK(file.facts().tick_count == c.count);
  }
}

TEST_CASE("a writer makes the folders on its way") {
  const std::string folder = scratch("made");
  write_video(folder + "/on/the/way.avi", 2);
  CHECK(std::filesystem::file_size(folder + "/on/the/way.avi") > 0);
}

TEST_CASE("a writer that cannot write says so and names the file") {
  CHECK(contains(refusal("video.writer", {{"path", "/proc/none/a.avi"}}), "cannot make the folder '/proc/none'"));
  CHECK(refusal("video.writer", {{"path", scratch("a.avi")}, {"codec", "MJPEG"}}) ==
        "codec 'MJPEG' is no FourCC code: four letters such as mp4v");
  CHECK(contains(refusal("video.writer", {{"path", "a"}}), "cannot write the video 'a': the extension"));
  const std::string folder = scratch("taken.avi");
  std::filesystem::create_directory(folder);
  for (const auto& [path, codec] : {std::pair{folder, "MJPG"}, std::pair{scratch("odd.avi"), "ZZZZ"}}) {
    TableTest writer(handler_type("video.writer"), {{"path", path}, {"codec", codec}, {"fps", "10"}});
    writer.input("video", numbered_picture(0));
    const Result result = writer.tick();
    CHECK(result.status == MR_ERROR);
    CHECK(contains(result.error, "cannot write the video '" + path + "': either the file cannot be made, or"));
  }
}

TEST_CASE("a writer refuses a picture of another size than the first") {
  TableTest writer(handler_type("video.writer"), {{"path", scratch("sizes.avi")}, {"fps", "10"}});
  writer.input("video", numbered_picture(0));
  REQUIRE(writer.tick().ok());
  writer.input("video", testing::image(Pixel::bgr8, 32, 32));
  CHECK(contains(writer.tick().error, "a picture is 32 × 32, the file was begun at 64 × 48"));
}

TEST_CASE("a writer that is stopped without a drain leaves a file that plays") {
  const std::string path = scratch("stopped.mp4");
  {
    TableTest writer(handler_type("video.writer"), {{"path", path}, {"fps", "10"}});
    for (uint32_t i = 0; i < 3; ++i) {
      writer.input("video", numbered_picture(i));
      REQUIRE(writer.tick().ok());
    }
  }
  TableTest file(handler_type("video.file"), {{"path", path}});
  CHECK(burnt_number(file.tick().image("video")) == 0);
}

TEST_CASE("a writer on a full disk says at the end that nothing arrived") {
  const std::string path = scratch("full.avi");
  std::filesystem::create_symlink("/dev/full", path);
  TableTest writer(handler_type("video.writer"), {{"path", path}, {"fps", "10"}});
  bool refused = false; // it may notice at once
  for (uint32_t i = 0; i < 3 && !refused; ++i) {
    writer.input("video", numbered_picture(i));
    refused = !writer.tick().ok();
  }
  refused = writer.drain() != MR_OK || refused;
  CHECK(refused);
  CHECK(contains(writer.error(), "cannot write the video '" + path + "': "));
}

TEST_CASE("a writer that got no picture leaves no file and no complaint") {
  const std::string path = scratch("none.avi");
  TableTest writer(handler_type("video.writer"), {{"path", path}});
  writer.input("video", {});
  CHECK(!writer.tick().fired);
  CHECK(writer.drain() == MR_OK);
  CHECK(!std::filesystem::exists(path));
}

} // namespace millrace::opencv
