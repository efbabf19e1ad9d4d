// Damaged pictures: whatever bytes are lost or changed, a reader gives the picture or an error, never a crash.
#include <doctest/doctest.h>

#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include <opencv2/imgcodecs.hpp>

#include "tests/damage.h"
#include "tests/file_bytes.h"
#include "tests/opencv/plugin.h"
#include "tests/seed.h"

namespace millrace::opencv {
namespace {

using testing::Result;
using testing::TableTest;

constexpr int kTrials = 100;

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
    if (++outcome.pictures > 1) break;
  }
  CHECK(file.stop() == MR_OK);
  return outcome;
}

} // namespace

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
    put_bytes(path, damaged(whole[kind], random));
    INFO("trial ", trial, ", ", extensions[kind]);
    const Outcome outcome = play("image.file", path);
    CHECK(outcome.pictures == (outcome.refused ? 0 : 1));
    refused += outcome.refused;
  }
  CHECK(refused > 0);
}

} // namespace millrace::opencv
