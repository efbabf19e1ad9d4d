// Damaged files: whatever bytes are lost or changed, a reader ends with an error or with fewer pictures, never a crash.
#include <doctest/doctest.h>

#include <algorithm>
#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include <opencv2/imgcodecs.hpp>

#include "tests/opencv/numbered_video.h"
#include "tests/opencv/plugin.h"
#include "tests/seed.h"

namespace millrace::opencv {
namespace {

using testing::Result;
using testing::TableTest;

constexpr int kTrials = 100;
constexpr int kPictures = 16;

// Cuts the bytes off somewhere, or changes up to eight of them, half of the time near the beginning, where the headers
// are.
std::string damage(std::string bytes, std::mt19937& random) {
  if (random() % 2 == 0) return bytes.substr(0, random() % bytes.size());
  const size_t reach = random() % 2 == 0 ? std::min<size_t>(bytes.size(), 512) : bytes.size();
  for (uint32_t flips = random() % 8 + 1; flips > 0; --flips)
    bytes[random() % reach] ^= static_cast<char>(random() % 255 + 1);
  return bytes;
}

struct Outcome {
  bool refused = false; // an error, at the start or later
  int pictures = 0;
};

// Plays a file to its end or to the first error, which names it.
Outcome play(const std::string& type, const std::string& path) {
  TableTest file(handler_type(type), {{"path", path}});
  Outcome outcome;
  if (file.start() != MR_OK) {
    CHECK(file.error().find(path) != std::string::npos);
    outcome.refused = true;
    return outcome;
  }
  for (Result result = file.tick(); !result.end(); result = file.tick()) {
    if (!result.ok()) {
      CHECK(result.error.find(path) != std::string::npos);
      outcome.refused = true;
      break;
    }
    if (++outcome.pictures > kPictures) break;
  }
  CHECK(file.stop() == MR_OK);
  return outcome;
}

} // namespace

TEST_CASE("a hundred damaged copies of a video end with an error or with no more pictures than it had") {
  const uint32_t seed = random_seed();
  INFO("seed ", seed);
  std::mt19937 random(seed);
  struct Kind {
    const char *extension, *codec;
  };
  std::vector<std::string> whole;
  const Kind kinds[] = {{".avi", "MJPG"}, {".mp4", "mp4v"}, {".mkv", "FFV1"}, {".avi", "FFV1"}};
  for (const Kind& kind : kinds) {
    const std::string path = scratch(std::string("whole") + kind.extension);
    write_video(path, kPictures, kind.codec);
    CHECK(play("video.file", path).pictures == kPictures);
    whole.push_back(bytes_of(path));
  }
  int refused = 0, fewer = 0;
  for (int trial = 0; trial < kTrials; ++trial) {
    const size_t kind = random() % whole.size();
    const std::string path = scratch(std::string("damaged") + kinds[kind].extension);
    put_bytes(path, damage(whole[kind], random));
    INFO("trial ", trial, ", ", kinds[kind].codec, " in ", kinds[kind].extension);
    const Outcome outcome = play("video.file", path);
    CHECK(outcome.pictures <= kPictures);
    refused += outcome.refused;
    fewer += !outcome.refused && outcome.pictures < kPictures;
  }
  CHECK(refused > 0);
  CHECK(fewer > 0);
}

TEST_CASE("a hundred damaged copies of a picture give the picture or an error that names them") {
  const uint32_t seed = random_seed();
  INFO("seed ", seed);
  std::mt19937 random(seed);
  cv::Mat picture(30, 50, CV_8UC3);
  for (int y = 0; y < picture.rows; ++y)
    for (int x = 0; x < picture.cols; ++x) picture.at<cv::Vec3b>(y, x) = cv::Vec3b::all(static_cast<uint8_t>(x * y));
  const char* extensions[] = {".png", ".jpg", ".bmp", ".tiff", ".webp"};
  std::vector<std::string> whole;
  for (const char* extension : extensions) {
    const std::string path = scratch(std::string("picture") + extension);
    REQUIRE(cv::imwrite(path, picture));
    CHECK(play("image.file", path).pictures == 1);
    whole.push_back(bytes_of(path));
  }
  int refused = 0;
  for (int trial = 0; trial < kTrials; ++trial) {
    const size_t kind = random() % whole.size();
    const std::string path = scratch(std::string("damaged") + extensions[kind]);
    put_bytes(path, damage(whole[kind], random));
    INFO("trial ", trial, ", ", extensions[kind]);
    const Outcome outcome = play("image.file", path);
    CHECK(outcome.pictures == (outcome.refused ? 0 : 1));
    refused += outcome.refused;
  }
  CHECK(refused > 0);
}

} // namespace millrace::opencv
