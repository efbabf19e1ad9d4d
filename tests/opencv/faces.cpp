// Faces: found in a film, the same on any number of threads, and cascades that are missing or damaged.
#include "plugins/opencv/faces.h"

#include <doctest/doctest.h>

#include <cmath>
#include <cstring>
#include <filesystem>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include <opencv2/videoio.hpp>

#include "plugins/opencv/cascade.h"
#include "plugins/opencv/picture.h"
#include "tests/contains.h"
#include "tests/file_bytes.h"
#include "tests/opencv/plugin.h"

namespace millrace::opencv {
namespace {

using testing::Result;
using testing::TableTest;
using testing::Value;

constexpr uint32_t kFacePicture = 20; // of the film: a woman who looks at us, the middle of her face at 353, 283
constexpr float kFaceX = 353, kFaceY = 283;

// That picture, decoded once.
const Value& portrait() {
  static const Value picture = [] {
    cv::VideoCapture film(MILLRACE_SOURCE_DIR "/media/Megamind.avi");
    cv::Mat shown;
    for (uint32_t i = 0; i <= kFacePicture; ++i) film >> shown;
    if (shown.empty()) throw std::runtime_error("media/Megamind.avi has no such picture: ./dev setup lays it out");
    return testing::image(Pixel::bgr8, static_cast<uint32_t>(shown.cols), static_cast<uint32_t>(shown.rows),
                          [&](uint32_t x, uint32_t y, uint32_t c) {
                            return shown.at<cv::Vec3b>(static_cast<int>(y), static_cast<int>(x))[static_cast<int>(c)];
                          });
  }();
  return picture;
}

bool has_face(const std::vector<Box>& boxes) {
  for (const Box& box : boxes)
    if (std::abs(box.x + box.width / 2 - kFaceX) < 30 && std::abs(box.y + box.height / 2 - kFaceY) < 30) return true;
  return false;
}

std::string start_error(const std::string& cascade) {
  TableTest detect(handler_type("detect.faces"), {{"cascade", cascade}});
  detect.input("video", testing::image(Pixel::gray8, 32, 32));
  CHECK(detect.start() == MR_ERROR);
  return detect.error();
}

} // namespace

TEST_CASE("a face is found by Haar and by LBP features, in pixels of the picture however it is resized") {
  const std::pair<std::string, std::vector<int>> searches[] = {{"haarcascade_frontalface_alt", {0, 360, 900}},
                                                               {"lbpcascade_frontalface_improved", {0, 900}}};
  for (const auto& [name, widths] : searches) {
    FaceDetector detector(find_cascade(name, cascade_folders()));
    for (const int width : widths) {
      FaceSettings settings;
      settings.width = width;
      settings.size_min = 80;
      const std::vector<Box> faces = detector.detect(mat_of(portrait().image()), settings, 256);
      INFO(name, " at width ", width);
      CHECK(has_face(faces));
      for (const Box& face : faces) {
        CHECK(face.width >= 75); // the window that is searched is a whole number of pixels
        CHECK(face.x >= 0);
        CHECK(face.x + face.width <= 720);
        CHECK(face.y + face.height <= 528);
        CHECK(face.score >= 0.5f);
        CHECK(face.score < 1);
        CHECK(face.label == kFaceLabel);
      }
    }
  }
}

TEST_CASE("faces come best first, at most as many as are asked for, and none beyond the sizes asked for") {
  FaceDetector detector(find_cascade("haarcascade_frontalface_alt", cascade_folders()));
  FaceSettings settings;
  settings.group = 0;
  settings.width = 360;
  const std::vector<Box> all = detector.detect(mat_of(portrait().image()), settings, 256);
  CHECK(all.size() > 5);
  for (size_t i = 1; i < all.size(); ++i) CHECK(all[i - 1].score >= all[i].score);
  CHECK(detector.detect(mat_of(portrait().image()), settings, 2).size() == 2);
  settings.size_max = 100;
  for (const Box& face : detector.detect(mat_of(portrait().image()), settings, 256)) CHECK(face.width <= 105);
}

TEST_CASE("faces are the same on one thread and on several") {
  const auto run = [](const char* threads) {
    TableTest detect(handler_type("detect.faces"), {{"threads", threads}, {"width", "360"}, {"group", "0"}});
    detect.input("video", portrait());
    const Result result = detect.tick();
    REQUIRE(result.ok());
    const auto faces = result.records<Box>("boxes");
    return std::vector<Box>(faces.begin(), faces.end());
  };
  const std::vector<Box> once = run("1");
  CHECK(once.size() > 5);
  for (int trial = 0; trial < 3; ++trial) {
    const std::vector<Box> again = run("4");
    REQUIRE(again.size() == once.size());
    CHECK(std::memcmp(again.data(), once.data(), once.size() * sizeof(Box)) == 0);
  }
}

TEST_CASE("no face is found in an even picture, nor in one that is smaller than a face") {
  for (const auto& picture : {testing::image(Pixel::bgr8, 1, 1), testing::image(Pixel::gray8, 19, 200),
                              testing::image(Pixel::gray8, 64, 48, uint8_t{90})}) {
    TableTest detect(handler_type("detect.faces"));
    detect.input("video", picture);
    const Result result = detect.tick();
    REQUIRE(result.ok());
    CHECK(result.records<Box>("boxes").empty());
  }
}

TEST_CASE("a cascade that is missing is refused with where it was looked for and what brings it") {
  CHECK(start_error("no/such.xml") == "there is no cascade file 'no/such.xml'");
  const std::string error = start_error("haarcascade_frontalfase");
  CHECK(contains(error, "there is no cascade 'haarcascade_frontalfase' in /usr/share/opencv4/haarcascades, "));
  CHECK(contains(error, "apt-get install opencv-data"));
  const std::string folder = scratch("cascades");
  std::filesystem::create_directories(folder);
  put_bytes(folder + "/mine.xml", "x");
  CHECK(find_cascade("mine", {"/nowhere", folder}) == folder + "/mine.xml");
  CHECK(find_cascade("/of/the/pipeline/mine", {"/nowhere", folder}) == folder + "/mine.xml");
}

TEST_CASE("a cascade that is damaged, empty or something else is refused in a sentence that names it") {
  const std::string whole = bytes_of(find_cascade("lbpcascade_frontalface_improved", cascade_folders()));
  const std::string path = scratch("damaged.xml");
  for (const std::string& bytes : {std::string(), std::string("no XML"), whole.substr(0, whole.size() / 2),
                                   std::string("<?xml version=\"1.0\"?><opencv_storage></opencv_storage>")}) {
    put_bytes(path, bytes);
    INFO(bytes.size(), " bytes");
    CHECK(contains(start_error(path), "'" + path + "' holds no cascade that can be read"));
  }
}

TEST_CASE("sizes of faces that exclude each other are refused") {
  TableTest detect(handler_type("detect.faces"), {{"size_min", "50"}, {"size_max", "40"}});
  detect.input("video", testing::image(Pixel::gray8, 32, 32));
  CHECK(detect.start() == MR_ERROR);
  CHECK(contains(detect.error(), "size_max is smaller than size_min"));
}

} // namespace millrace::opencv
