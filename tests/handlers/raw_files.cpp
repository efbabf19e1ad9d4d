// file.raw_reader and what it is made of: raw frames, named files, and paths with a number.
#include <doctest/doctest.h>

#include <cstring>
#include <filesystem>

#include "builtin.h"
#include "handlers/file/numbered_path.h"
#include "handlers/file/raw_frames.h"
#include "handlers/image/picture.h"
#include "handlers/source_rate.h"
#include "scratch.h"

using namespace millrace;
using namespace millrace::handlers;
using millrace::testing::Result;
using millrace::testing::Setting;
using millrace::testing::TableTest;
using millrace::testing::Value;

namespace {

// A gray picture of 2 × 1 with these bytes.
std::string gray(char first, char second) { return {first, second}; }

std::string index_bytes(uint64_t index) {
  std::string bytes;
  for (int i = 0; i < 8; ++i) bytes += static_cast<char>(index >> (8 * i));
  return bytes;
}

TableTest gray_reader(const std::string& path, const Setting& more = {"format", "gray8"}) {
  return TableTest(builtin("file.raw_reader"),
                   {{"path", path}, {"width", "2"}, {"height", "1"}, {"format", "gray8"}, more});
}

// The first bytes of `ticks` pictures; '.' where a tick is empty, '|' at the end.
std::string played(TableTest& reader, int ticks) {
  std::string text;
  for (int i = 0; i < ticks; ++i) {
    const Result result = reader.tick();
    REQUIRE_MESSAGE((result.ok() || result.end()), result.error);
    text += result.end() ? '|' : result.has("video") ? static_cast<char>(result.image("video").row(0)[0]) : '.';
  }
  return text;
}

} // namespace

TEST_CASE("what file.raw_writer wrote of a picture, file.raw_reader gives again, in every format and odd sizes") {
  const ScratchFolder folder;
  for (uint32_t p = 1; p < MR_PIXEL_COUNT; ++p) {
    for (const auto& [width, height] : {std::pair{1u, 1u}, std::pair{5u, 3u}, std::pair{64u, 2u}}) {
      const auto pixel = static_cast<Pixel>(p);
      const std::string name(name_of(pixel));
      const Value picture = testing::image(pixel, width, height);
      for (uint32_t plane = 0; plane < picture.image().plane_count(); ++plane)
        for (uint32_t y = 0; y < picture.image().rows(plane); ++y)
          for (size_t i = 0; i < plane_row_bytes(pixel, width, plane); ++i)
            picture.image().row(y, plane)[i] = static_cast<uint8_t>(plane * 100 + y * 31 + i * 7);
      TableTest writer(builtin("file.raw_writer"), {{"path", folder / name}});
      writer.input("in", picture);
      writer.tick();
      writer.tick();
      REQUIRE(writer.drain() == MR_OK);
      TableTest reader(builtin("file.raw_reader"), {{"path", folder / name},
                                                    {"width", std::to_string(width)},
                                                    {"height", std::to_string(height)},
                                                    {"format", name}});
      INFO(name, " ", width, " x ", height);
      for (int i = 0; i < 2; ++i) {
        const Result result = reader.tick();
        REQUIRE_MESSAGE(result.ok(), result.error);
        const ImageView got = result.image("video");
        for (uint32_t plane = 0; plane < got.plane_count(); ++plane)
          for (uint32_t y = 0; y < got.rows(plane); ++y)
            CHECK(std::memcmp(got.row(y, plane), picture.image().row(y, plane), plane_row_bytes(pixel, width, plane)) ==
                  0);
      }
      CHECK(reader.tick().end());
    }
  }
}

TEST_CASE("file.raw_reader says size, format, count and what YCbCr means") {
  const ScratchFolder folder;
  const std::string path = folder.write("x", std::string(3 * 6, 'a'));
  TableTest reader(builtin("file.raw_reader"),
                   {{"path", path}, {"width", "2"}, {"height", "2"}, {"format", "nv12"}, {"color", "bt709"}});
  const Result result = reader.tick();
  CHECK(reader.facts().tick_count == 3);
  CHECK(reader.facts().rate_num == 0);
  CHECK(reader.format("video").color == MR_COLOR_BT709);
  CHECK(reader.format("video").range == MR_RANGE_LIMITED);
  CHECK(result.image("video").color() == MR_COLOR_BT709);
  CHECK(result.image("video").range() == MR_RANGE_LIMITED);
  TableTest rgb(builtin("file.raw_reader"), {{"path", path}, {"width", "3"}, {"height", "2"}, {"format", "rgb8"}});
  CHECK(rgb.tick().image("video").range() == MR_RANGE_FULL);
}

TEST_CASE("with a rate picture n has the time n / fps, round after round") {
  const ScratchFolder folder;
  TableTest reader(builtin("file.raw_reader"), {{"path", folder.write("x", gray('a', 'b') + gray('c', 'd'))},
                                                {"width", "2"},
                                                {"height", "1"},
                                                {"format", "gray8"},
                                                {"fps", "29.97"},
                                                {"loop", "true"}});
  for (int64_t i = 0; i < 7; ++i) {
    const Result result = reader.tick();
    CHECK(result.image("video").row(0)[0] == (i % 2 == 0 ? 'a' : 'c'));
    CHECK(result.value("video").header().pts_ns == i * 1'001'000'000 / 30);
    CHECK(result.value("video").header().duration_ns == 33'366'666);
  }
  CHECK(reader.facts().rate_num == 30000);
  CHECK(reader.facts().rate_den == 1001);
  CHECK(reader.facts().tick_count == -1);
}

TEST_CASE("pictures behind an index come at their tick, and the ticks between are empty") {
  const ScratchFolder folder;
  const std::string frames =
      index_bytes(1) + gray('a', 0) + index_bytes(2) + gray('b', 0) + index_bytes(5) + gray('c', 0);
  TableTest once = gray_reader(folder.write("x", frames), {"index", "true"});
  CHECK(played(once, 8) == ".ab..c||");
  CHECK(once.facts().tick_count == 6);
  TableTest looped(builtin("file.raw_reader"), {{"path", folder / "x"},
                                                {"width", "2"},
                                                {"height", "1"},
                                                {"format", "gray8"},
                                                {"index", "true"},
                                                {"loop", "true"}});
  CHECK(played(looped, 13) == ".ab..c.ab..c.");
}

TEST_CASE("indices that go back or are beyond reason are refused") {
  const ScratchFolder folder;
  TableTest back = gray_reader(folder.write("x", index_bytes(4) + "ab" + index_bytes(4) + "cd"), {"index", "true"});
  CHECK(played(back, 5) == "....a");
  CHECK(back.tick().error ==
        "cannot read '" + (folder / "x") + "': the index 4 follows 4, so it is damaged or has no indices");
  TableTest none = gray_reader(folder.write("y", std::string(20, 'a')), {"index", "true"});
  CHECK(none.start() == MR_ERROR);
  CHECK(none.error().ends_with("the index 7016996765293437281 is damaged, or none"));
}

TEST_CASE("a part of a picture at the end is refused, or left out with a note") {
  const ScratchFolder folder;
  const std::string path = folder.write("x", "abcde");
  TableTest strict = gray_reader(path);
  CHECK(strict.start() == MR_ERROR);
  CHECK(strict.error() ==
        "cannot read '" + path + "': behind 2 whole pictures are 1 bytes of another; truncated=drop leaves them out");
  TableTest lenient = gray_reader(path, {"truncated", "drop"});
  CHECK(played(lenient, 3) == "ac|");
  REQUIRE(lenient.logs().size() == 1);
  CHECK(lenient.logs()[0].sentence ==
        "'" + path + "': behind 2 whole pictures are 1 bytes of another, which are left out");
  TableTest too_short = gray_reader(folder.write("y", "a"), {"truncated", "drop"});
  CHECK(too_short.start() == MR_ERROR);
  CHECK(too_short.error().ends_with("it has 1 bytes, and one picture 2"));
}

TEST_CASE("raw files that are missing, empty or no files are refused with their path") {
  const ScratchFolder folder;
  const auto refusal = [&](const std::string& path) {
    TableTest reader = gray_reader(path);
    CHECK(reader.start() == MR_ERROR);
    return reader.error();
  };
  CHECK(refusal(folder / "none") == "cannot read '" + (folder / "none") + "': there is no such file");
  CHECK(refusal(folder.write("x", "")) == "cannot read '" + (folder / "x") + "': the file is empty");
  CHECK(refusal(folder / ".") == "cannot read '" + (folder / ".") + "': it is not a regular file");
}

TEST_CASE("a raw file that shrinks under the reader is a failure, and a stop and a seek begin anew") {
  const ScratchFolder folder;
  const std::string path = folder.write("x", std::string(1 << 17, 'a'));
  TableTest shrinking(builtin("file.raw_reader"),
                      {{"path", path}, {"width", "256"}, {"height", "256"}, {"format", "gray8"}});
  REQUIRE(shrinking.tick().ok());
  std::filesystem::resize_file(path, 100);
  CHECK(shrinking.tick().error == "cannot read '" + path + "': it became shorter while it was read");
  TableTest reader = gray_reader(folder.write("y", "abcd"));
  CHECK(played(reader, 3) == "ac|");
  reader.stop();
  CHECK(played(reader, 1) == "a");
  REQUIRE(reader.reset() == MR_OK);
  CHECK(played(reader, 3) == "ac|");
}

// ---- paths with a number
// -----------------------------------------------------------------------------------------------

TEST_CASE("a path's number stands where the pattern says, as wide as it says") {
  CHECK(NumberedPath("a/{index}.npy").of(42) == "a/000042.npy");
  CHECK(NumberedPath("a/%06d.npy").of(42) == "a/000042.npy");
  CHECK(NumberedPath("%d").of(42) == "42");
  CHECK(NumberedPath("x%02d").of(12345) == "x12345");
  CHECK(NumberedPath("50%.npy").of(1) == "50%.npy");
  CHECK(!NumberedPath("a/%6d %s %00d.npy").numbered());
  CHECK(NumberedPath("100%%d").of(7) == "100%7");
  CHECK_THROWS_WITH(NumberedPath("%d-{index}"), "'%d-{index}' has two places for a number");
  CHECK_THROWS_WITH(NumberedPath("{index}/x.npy"), "'{index}/x.npy' has its number in the name of a folder");
}

TEST_CASE("the files of a numbered path are those whose name it would give, in the order of numbers") {
  const ScratchFolder folder;
  for (const char* name : {"f003.x", "f010.x", "f1000.x", "f02.x", "f004.y", "g005.x", "f-06.x", "f.x", "f0x7.x",
                           "f99999999999999999999.x"})
    folder.write(name, "");
  CHECK(NumberedPath(folder / "f%03d.x").existing() == std::vector<uint64_t>{3, 10, 1000});
  CHECK(NumberedPath(folder / "f%02d.x").existing() == std::vector<uint64_t>{2, 1000});
  CHECK(NumberedPath(folder / "h%02d.x").existing().empty());
  CHECK_THROWS(NumberedPath(folder / "none/%d").existing());
}

// ---- rates
// -------------------------------------------------------------------------------------------------------------

TEST_CASE("rates are fractions in their lowest terms, and broadcast rates what they mean") {
  const auto is = [](double fps, int64_t numerator, int64_t denominator) {
    const SourceRate rate = rate_of(fps);
    CHECK_MESSAGE(rate.numerator == numerator, fps);
    CHECK_MESSAGE(rate.denominator == denominator, fps);
  };
  is(0, 0, 1);
  is(25, 25, 1);
  is(29.97, 30000, 1001);
  is(23.976, 24000, 1001);
  is(12.5, 25, 2);
  is(0.1, 1, 10);
  is(1e-9, 1, 1'000'000);
  CHECK(time_of_beat({30000, 1001}, 30'000'000) == 1'001'000'000'000'000);
}
