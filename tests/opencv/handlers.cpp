// image.writer, detect.people and track.boxes as a pipeline drives them.
#include <doctest/doctest.h>
#include <sys/resource.h>

#include <algorithm>
#include <cmath>
#include <csignal>
#include <cstring>
#include <filesystem>
#include <string>
#include <vector>

#include <opencv2/imgcodecs.hpp>
#include <opencv2/imgproc.hpp>

#include "plugins/opencv/people.h"
#include "tests/opencv/plugin.h"

namespace millrace::opencv {
namespace {

using testing::Result;
using testing::TableTest;
using testing::Value;

Value grey_picture(uint32_t grey) { return testing::image(Pixel::bgr8, 40, 20, static_cast<uint8_t>(grey)); }

Box box_at(float x) {
  Box box;
  box.x = x;
  box.y = 20;
  box.width = 40;
  box.height = 80;
  box.score = 0.5f;
  box.label = 0;
  return box;
}

// A figure of a head, a trunk and two legs in a window of 64 × 128 units at (x, y). The proportions are those of a
// random search for the highest score of the classifier, which has seen only people, so that a test needs no
// photograph.
void draw_figure(cv::Mat& picture, int x, int y, double unit) {
  const cv::Scalar dark(60, 60, 60);
  const auto at = [&](double u, double v) {
    return cv::Point(static_cast<int>(std::lround(x + u * unit)), static_cast<int>(std::lround(y + v * unit)));
  };
  const auto ellipse = [&](double v, double radius_u, double radius_v) {
    const cv::Size axes(static_cast<int>(std::lround(radius_u * unit)), static_cast<int>(std::lround(radius_v * unit)));
    cv::ellipse(picture, at(32, v), axes, 0, 0, 360, dark, cv::FILLED, cv::LINE_AA);
  };
  ellipse(22, 6.6, 5.7);
  ellipse(45.6, 14.7, 17.9);
  const std::vector<cv::Point> legs = {at(14, 56), at(50, 56),  at(34, 112), at(19, 112),
                                       at(32, 72), at(45, 112), at(30, 112)};
  cv::fillPoly(picture, std::vector<std::vector<cv::Point>>{legs}, dark, cv::LINE_AA);
}

// A street with two people, 200 pixels from the window's top to its bottom, their middles at 150 and 360.
cv::Mat street() {
  cv::Mat picture(400, 500, CV_8UC3, cv::Scalar::all(190));
  for (const int middle : {150, 360}) draw_figure(picture, middle - 50, 100, 200.0 / 128);
  return picture;
}

Value value_of(const cv::Mat& picture) {
  return testing::image(Pixel::bgr8, static_cast<uint32_t>(picture.cols), static_cast<uint32_t>(picture.rows),
                        [&](uint32_t x, uint32_t y, uint32_t c) {
                          return picture.at<cv::Vec3b>(static_cast<int>(y), static_cast<int>(x))[static_cast<int>(c)];
                        });
}

} // namespace

TEST_CASE("an image writer writes every step-th picture under its tick's index") {
  const std::string folder = scratch("stills");
  TableTest writer(handler_type("image.writer"), {{"path", folder + "/{index}.png"}, {"step", "3"}});
  for (uint32_t i = 0; i < 7; ++i) {
    writer.input("video", grey_picture(10 * i));
    REQUIRE(writer.tick().ok());
  }
  REQUIRE(writer.drain() == MR_OK);
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) names.push_back(entry.path().filename());
  CHECK(names.size() == 3);
  for (int i = 0; i < 7; i += 3) {
    const cv::Mat still = cv::imread(folder + "/00000" + std::to_string(i) + ".png");
    REQUIRE(still.size() == cv::Size(40, 20));
    CHECK(still.at<cv::Vec3b>(10, 10) == cv::Vec3b::all(static_cast<uint8_t>(10 * i)));
  }
}

TEST_CASE("an image writer with columns writes one contact sheet when the stream ends") {
  const std::string path = scratch("sheet.png");
  TableTest writer(handler_type("image.writer"), {{"path", path}, {"columns", "2"}, {"tile_width", "20"}});
  for (uint32_t i = 0; i < 4; ++i) {
    writer.input("video", grey_picture(10 * i));
    REQUIRE(writer.tick().ok());
    CHECK(!std::filesystem::exists(path));
  }
  REQUIRE(writer.drain() == MR_OK);
  const cv::Mat sheet = cv::imread(path);
  CHECK(sheet.size() == cv::Size(44, 24));
  CHECK(sheet.at<cv::Vec3b>(23, 43) == cv::Vec3b::all(30));
}

TEST_CASE("an image writer refuses a path that every picture would overwrite, and an extension that is no picture's") {
  for (const char* path : {"a.png", "a{index}.xyz"}) {
    TableTest writer(handler_type("image.writer"), {{"path", path}});
    writer.input("video", grey_picture(0));
    CHECK(writer.start() == MR_ERROR);
    CHECK(writer.error().find(std::string("'") + path + "'") != std::string::npos);
  }
}

TEST_CASE("an image writer that cannot write its file says so") {
  const std::string folder = scratch("taken-000000.png");
  std::filesystem::create_directory(folder);
  const std::string pattern = folder.substr(0, folder.size() - 10) + "{index}.png";
  TableTest writer(handler_type("image.writer"), {{"path", pattern}});
  writer.input("video", grey_picture(0));
  CHECK(writer.tick().error == "cannot write the picture '" + folder + "': Is a directory");
}

TEST_CASE(
    "an image writer that finds the disk full or the file too large says so, with the byte, and no signal comes") {
  const std::string full = scratch("full-000000.png");
  std::filesystem::create_symlink("/dev/full", full);
  TableTest writer(handler_type("image.writer"), {{"path", scratch("full-%06d.png")}});
  writer.input("video", grey_picture(0));
  CHECK(writer.tick().error == "cannot write the picture '" + full + "': No space left on device (at byte 0)");
  const std::string large = scratch("large-0.bmp"); // 40 × 20 of bmp are 2,454 bytes
  TableTest limited(handler_type("image.writer"), {{"path", scratch("large-%d.bmp")}});
  limited.input("video", grey_picture(0));
  REQUIRE(limited.start() == MR_OK);
  const auto before = std::signal(SIGXFSZ, SIG_DFL);
  rlimit limit{};
  REQUIRE(getrlimit(RLIMIT_FSIZE, &limit) == 0);
  const rlimit small{1000, limit.rlim_max};
  REQUIRE(setrlimit(RLIMIT_FSIZE, &small) == 0);
  const std::string error = limited.tick().error;
  REQUIRE(setrlimit(RLIMIT_FSIZE, &limit) == 0);
  std::signal(SIGXFSZ, before);
  CHECK(error == "cannot write the picture '" + large + "': File too large (at byte 1000)");
}

TEST_CASE("every format is written as OpenCV itself writes it") {
  for (const std::string extension : {".png", ".jpg", ".bmp", ".tiff", ".webp"}) {
    const std::string own = scratch("own-0" + extension), theirs = scratch("theirs" + extension);
    TableTest writer(handler_type("image.writer"), {{"path", scratch("own-%d" + extension)}});
    writer.input("video", grey_picture(77));
    REQUIRE(writer.tick().ok());
    REQUIRE(cv::imwrite(theirs, cv::Mat(20, 40, CV_8UC3, cv::Scalar::all(77))));
    INFO(extension);
    const cv::Mat a = cv::imread(own), b = cv::imread(theirs);
    REQUIRE(a.size() == cv::Size(40, 20));
    CHECK(cv::norm(a, b, cv::NORM_INF) == 0);
  }
}

TEST_CASE("people are found where figures stand, in pixels of the picture however it is resized") {
  PeopleDetector detector;
  for (const int width : {0, 500, 600}) {
    PeopleSettings settings;
    settings.width = width;
    settings.group = 1;
    const std::vector<Box> people = detector.detect(street(), settings, 256);
    INFO("width ", width);
    for (const float centre : {150.0f, 360.0f}) {
      bool found = false;
      for (const Box& box : people)
        found = found || (std::abs(box.x + box.width / 2 - centre) < 15 && std::abs(box.y + box.height / 2 - 200) < 30);
      INFO("centre ", centre);
      CHECK(found);
    }
    for (const Box& box : people) {
      CHECK(box.score >= 0);
      CHECK(box.score <= 1);
      CHECK(box.x >= 0);
      CHECK(box.x + box.width <= 500);
      CHECK(box.label == kPersonLabel);
    }
  }
}

TEST_CASE("without groups, people are the windows that OpenCV finds on one thread, each with its own weight") {
  const int threads = cv::getNumThreads();
  cv::setNumThreads(1);
  cv::HOGDescriptor histograms;
  histograms.setSVMDetector(cv::HOGDescriptor::getDefaultPeopleDetector());
  std::vector<cv::Rect> windows;
  std::vector<double> weights;
  histograms.detectMultiScale(street(), windows, weights, 0, {8, 8}, {}, 1.05, 0);
  cv::setNumThreads(threads);
  REQUIRE(windows.size() > 10);

  PeopleSettings settings;
  settings.scale = 1.05;
  settings.group = 0;
  PeopleDetector detector;
  const std::vector<Box> people = detector.detect(street(), settings, 1'000);
  REQUIRE(people.size() == windows.size());
  for (size_t i = 0; i < windows.size(); ++i) {
    const auto score = static_cast<float>(std::clamp(weights[i], 0.0, 1.0));
    const auto left = static_cast<float>(windows[i].x + windows[i].width * 0.25); // the margin of the window
    const auto top = static_cast<float>(windows[i].y + windows[i].height * 0.125);
    CHECK(std::any_of(people.begin(), people.end(), [&](const Box& box) {
      return box.score == score && std::abs(box.x - left) < 1e-3f && std::abs(box.y - top) < 1e-3f;
    }));
  }
}

TEST_CASE("people are the same on one thread and on several") {
  const auto run = [](const char* threads) {
    TableTest detect(handler_type("detect.people"), {{"threads", threads}, {"group", "0"}, {"scale", "1.02"}});
    detect.input("video", value_of(street()));
    const Result result = detect.tick();
    REQUIRE(result.ok());
    const auto people = result.records<Box>("boxes");
    return std::vector<Box>(people.begin(), people.end());
  };
  const std::vector<Box> once = run("1");
  CHECK(once.size() > 10);
  for (int trial = 0; trial < 5; ++trial) {
    const std::vector<Box> again = run("4");
    REQUIRE(again.size() == once.size());
    CHECK(std::memcmp(again.data(), once.data(), once.size() * sizeof(Box)) == 0);
  }
}

TEST_CASE("nobody is found in a picture that is smaller than a person, nor in an empty street") {
  for (const auto& picture : {testing::image(Pixel::bgr8, 10, 10), testing::image(Pixel::gray8, 63, 200),
                              testing::image(Pixel::gray8, 320, 240)}) {
    TableTest detect(handler_type("detect.people"));
    detect.input("video", picture);
    const Result result = detect.tick();
    REQUIRE(result.ok());
    CHECK(result.records<Box>("boxes").empty());
  }
}

TEST_CASE("a tracker gives boxes at every tick, also at those at which the detector did not look") {
  TableTest track(handler_type("track.boxes"), {{"min_hits", "1"}});
  track.input("boxes", testing::records<Box>({}));
  for (int t = 0; t < 30; ++t) {
    track.input("video", grey_picture(0));
    track.input("boxes", t % 3 == 0 ? testing::records<Box>({box_at(10 + 2 * static_cast<float>(t))}) : Value());
    const Result result = track.tick();
    REQUIRE(result.ok());
    const auto boxes = result.records<Box>("boxes");
    REQUIRE(boxes.size() == 1);
    CHECK(boxes[0].id == 1);
    if (t > 15) CHECK(boxes[0].x == doctest::Approx(10 + 2 * t).epsilon(0.03));
  }
}

TEST_CASE("a tracker without detections, or without pictures, follows nobody") {
  TableTest alone(handler_type("track.boxes"));
  alone.input("video", grey_picture(0));
  CHECK(alone.tick().records<Box>("boxes").empty());
  TableTest unpaced(handler_type("track.boxes"), {{"min_hits", "1"}});
  unpaced.input("video", {});
  unpaced.input("boxes", testing::records<Box>({box_at(0)}));
  CHECK(!unpaced.tick().fired);
}

TEST_CASE("a tracker that is reset has forgotten its boxes") {
  TableTest track(handler_type("track.boxes"), {{"min_hits", "1"}});
  track.input("video", grey_picture(0));
  track.input("boxes", testing::records<Box>({box_at(0)}));
  CHECK(track.tick().records<Box>("boxes").size() == 1);
  REQUIRE(track.reset() == MR_OK);
  track.input("boxes", {});
  CHECK(track.tick().records<Box>("boxes").empty());
}

} // namespace millrace::opencv
