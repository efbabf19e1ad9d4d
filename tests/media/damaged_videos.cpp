// Damaged films: whatever bytes are lost or changed, video.file ends with an error or with fewer pictures, never a
// crash.
#include <doctest/doctest.h>

#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "tests/damage.h"
#include "tests/file_bytes.h"
#include "tests/media/numbered_video.h"
#include "tests/media/plugin.h"
#include "tests/seed.h"

namespace millrace::media {
namespace {

using testing::Result;
using testing::TableTest;

constexpr int kTrials = 100;
constexpr int kFilmPictures = 16;
constexpr int64_t kHourNs = 3'600'000'000'000;

struct Outcome {
  bool refused = false; // an error, at the start or later
  int pictures = 0;
  bool times_rise = true;
};

// Plays a file to its end or to the first error, which names it.
Outcome play(const std::string& path, const char* on_damage) {
  TableTest file(handler_type("video.file"), {{"path", path}, {"on_damage", on_damage}});
  Outcome outcome;
  if (file.start() != MR_OK) {
    CHECK(file.error().find(path) != std::string::npos);
    outcome.refused = true;
    return outcome;
  }
  int64_t last_ns = -1;
  for (Result result = file.tick(); !result.end(); result = file.tick()) {
    if (!result.ok()) {
      CHECK(result.error.find(path) != std::string::npos);
      outcome.refused = true;
      break;
    }
    const mr_header& header = result.value("video").header();
    const bool rises = header.pts_ns > last_ns && (last_ns < 0 || header.pts_ns - last_ns <= 2 * kHourNs);
    outcome.times_rise = outcome.times_rise && rises && header.duration_ns >= 0;
    last_ns = header.pts_ns;
    if (++outcome.pictures > kFilmPictures) break;
  }
  CHECK(file.stop() == MR_OK);
  return outcome;
}

} // namespace

TEST_CASE("a hundred damaged copies of a film end with an error or with no more pictures than it had") {
  const uint32_t seed = random_seed();
  INFO("seed ", seed);
  std::mt19937 random(seed);
  struct Kind {
    const char *extension, *codec;
  };
  const Kind kinds[] = {{".mp4", "h264"}, {".ts", "h264"}, {".mkv", "ffv1"}, {".avi", "mjpeg"}};
  std::vector<std::string> whole;
  for (const Kind& kind : kinds) {
    const std::string path = scratch(std::string("whole") + kind.extension);
    write_video(path, kFilmPictures, kind.codec);
    const Outcome outcome = play(path, "fail");
    INFO(std::string(kind.codec), " in ", std::string(kind.extension));
    CHECK(outcome.pictures == kFilmPictures);
    CHECK(!outcome.refused);
    whole.push_back(bytes_of(path));
  }
  int refused = 0, fewer = 0;
  for (int trial = 0; trial < kTrials; ++trial) {
    const size_t kind = random() % whole.size();
    const std::string path = scratch(std::string("damaged") + kinds[kind].extension);
    put_bytes(path, damaged(whole[kind], random));
    INFO("trial ", trial, ", ", std::string(kinds[kind].codec), " in ", std::string(kinds[kind].extension));
    const Outcome outcome = play(path, trial % 4 == 0 ? "fail" : "skip");
    CHECK(outcome.pictures <= kFilmPictures);
    CHECK(outcome.times_rise);
    refused += outcome.refused;
    fewer += !outcome.refused && outcome.pictures < kFilmPictures;
  }
  CHECK(refused > 0);
  CHECK(fewer > 0);
}

} // namespace millrace::media
