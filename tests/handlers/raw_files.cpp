// file.raw_reader and what it is made of: raw frames, named files, and paths with a number.
#include <doctest/doctest.h>

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <initializer_list>
#include <memory>
#include <stdexcept>
#include <thread>

#include "builtin.h"
#include "fifo.h"
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

TEST_CASE("a handler that is stopped before its first value leaves the file as it was, or leaves none") {
  const ScratchFolder folder;
  const std::string path = folder / "kept";
  const auto check = [&](const char* type, const char* input, const Value& value) {
    CAPTURE(type);
    const auto begin = [&] {
      auto writer = std::make_unique<TableTest>(builtin(type), std::initializer_list<Setting>{{"path", path}});
      writer->input(input, value);
      CHECK(writer->start() == MR_OK);
      return writer;
    };
    std::filesystem::remove(path);
    begin().reset();
    CHECK(!std::filesystem::exists(path));
    folder.write("kept", "the run before");
    begin().reset();
    CHECK(folder.text("kept") == "the run before");
    const auto broken_off = begin();
    REQUIRE(broken_off->tick().ok());
    broken_off->stop();
    const std::string one_value = folder.text("kept");
    CHECK(!one_value.empty());
    CHECK(one_value.find("the run before") == std::string::npos);
    CHECK(begin()->drain() == MR_OK); // it has ended well, without a value
    return folder.text("kept");
  };
  CHECK(check("file.raw_writer", "in", testing::image(Pixel::gray8, 2, 1, uint8_t{7})).empty());
  CHECK(check("record.to_json", "in", testing::records<Box>({})).empty());
  CHECK(check("test.record", "in", testing::tensor<int64_t>({1}, {7})).empty());
  CHECK(check("tensor.to_npy", "in", testing::tensor<float>({1}, {7})).find("'shape': (0, 1)") != std::string::npos);
}

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
        "cannot read '" + path + "': after 2 whole pictures are 1 bytes of another; truncated=drop leaves them out");
  TableTest lenient = gray_reader(path, {"truncated", "drop"});
  CHECK(played(lenient, 3) == "ac|");
  REQUIRE(lenient.logs().size() == 1);
  CHECK(lenient.logs()[0].sentence ==
        "'" + path + "': after 2 whole pictures are 1 bytes of another, which are left out");
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
  CHECK(refusal(folder / ".") == "cannot read '" + (folder / ".") + "': it is a folder");
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

// ---- pipes

TEST_CASE(
    "a FIFO gives its pictures as a file does, waits for its writer, and its length is not known before its end") {
  const ScratchFolder folder;
  const std::string path = fifo(folder);
  TableTest reader = gray_reader(path);
  REQUIRE(reader.start() == MR_OK); // nobody writes yet
  CHECK(reader.facts().waits == 1);
  CHECK(reader.facts().tick_count == -1);
  std::thread writer = feeder(path, "abcdef");
  CHECK(played(reader, 5) == "ace||");
  writer.join();
  TableTest indexed = gray_reader(path, {"index", "true"});
  REQUIRE(indexed.start() == MR_OK);
  writer = feeder(path, index_bytes(1) + "ab" + index_bytes(3) + "cd");
  CHECK(played(indexed, 6) == ".a.c||");
  writer.join();
  TableTest file = gray_reader(folder.write("x", "abcd"));
  REQUIRE(file.start() == MR_OK);
  CHECK(file.facts().waits == 0);
}

TEST_CASE("a picture larger than a pipe comes through it whole, in planes and odd sizes") {
  const ScratchFolder folder;
  const std::string path = fifo(folder);
  for (const char* format : {"gray8", "i420", "p010"}) {
    const Value picture = testing::image(pixel_named(format), 601, 401, [](uint32_t x, uint32_t y, uint32_t c) {
      return static_cast<uint8_t>(x * 7 + y * 13 + c);
    });
    TableTest reader(builtin("file.raw_reader"),
                     {{"path", path}, {"width", "601"}, {"height", "401"}, {"format", format}});
    REQUIRE(reader.start() == MR_OK);
    std::thread writes([&] {
      TableTest writer(builtin("file.raw_writer"), {{"path", path}});
      writer.input("in", picture);
      writer.tick();
      writer.drain();
    });
    const Result result = reader.tick();
    writes.join();
    REQUIRE_MESSAGE(result.ok(), result.error);
    const ImageView got = result.image("video");
    for (uint32_t plane = 0; plane < got.plane_count(); ++plane)
      for (uint32_t y = 0; y < got.rows(plane); ++y)
        CHECK(std::memcmp(got.row(y, plane), picture.image().row(y, plane),
                          plane_row_bytes(pixel_named(format), 601, plane)) == 0);
    CHECK(reader.tick().end());
  }
}

TEST_CASE("a stream that ends in a picture, or before its first one, is a failure or a note as of a file") {
  const ScratchFolder folder;
  const std::string path = fifo(folder);
  const std::string cut = "after 2 whole pictures are 1 bytes of another";
  TableTest strict = gray_reader(path);
  REQUIRE(strict.start() == MR_OK);
  std::thread writer = feeder(path, "abcde");
  CHECK(played(strict, 2) == "ac");
  CHECK(strict.tick().error == "cannot read '" + path + "': " + cut + "; truncated=drop leaves them out");
  writer.join();
  TableTest lenient = gray_reader(path, {"truncated", "drop"});
  REQUIRE(lenient.start() == MR_OK);
  writer = feeder(path, "abcde");
  CHECK(played(lenient, 3) == "ac|");
  writer.join();
  REQUIRE(lenient.logs().size() == 1);
  CHECK(lenient.logs()[0].sentence == "'" + path + "': " + cut + ", which are left out");
  TableTest nothing = gray_reader(path, {"truncated", "drop"});
  REQUIRE(nothing.start() == MR_OK);
  writer = feeder(path, "a");
  CHECK(nothing.tick().error == "cannot read '" + path + "': it has 1 bytes, and one picture 2");
  writer.join();
  TableTest looped = gray_reader(path, {"loop", "true"});
  CHECK(looped.start() == MR_ERROR);
  CHECK(looped.error().ends_with("it cannot be begun again: loop needs one"));
}

TEST_CASE("an interrupt ends a read that waits, before the first byte and in the middle of a picture") {
  const ScratchFolder folder;
  const std::string path = fifo(folder);
  TableTest reader = gray_reader(path);
  REQUIRE(reader.start() == MR_OK);
  interrupted(reader, [&] { CHECK(reader.tick().end()); });
  const int writer = open(path.c_str(), O_WRONLY);
  REQUIRE(write(writer, "a", 1) == 1);
  interrupted(reader, [&] { CHECK(reader.tick().end()); });
  REQUIRE(reader.restart() == MR_OK); // an interrupt of before does not reach into the next life
  REQUIRE(write(writer, "cd", 2) == 2);
  CHECK(played(reader, 1) == "c");
  close(writer);
}

TEST_CASE("a FIFO is written once it has a reader, and an interrupt ends the wait for one and for a slow one") {
  const ScratchFolder folder;
  const std::string path = fifo(folder);
  const Value picture = testing::image(Pixel::gray8, 1000, 1000, uint8_t{7});
  TableTest writer(builtin("file.raw_writer"), {{"path", path}});
  writer.input("in", picture);
  mr_status started = MR_OK;
  interrupted(writer, [&] { started = writer.start(); });
  CHECK(started == MR_ERROR);
  CHECK(writer.error() == "cannot write '" + path + "': interrupted while it waited for a reader");
  const int reader = open(path.c_str(), O_RDONLY | O_NONBLOCK);
  REQUIRE(writer.restart() == MR_OK);
  interrupted(writer, [&] {
    writer.input("in", picture);
    const std::string error = writer.tick().error;
    CHECK(error.starts_with("cannot write '" + path + "': interrupted while it waited for its reader (at byte "));
  });
  close(reader);
}

TEST_CASE("a write that fails says path, reason and byte, raises no signal, and is not tried again at the end") {
  const ScratchFolder folder;
  const std::string path = fifo(folder);
  const Value picture = testing::image(Pixel::gray8, 300, 300, uint8_t{7});
  const auto failure = [&](const std::string& target, int reader) {
    TableTest writer(builtin("file.raw_writer"), {{"path", target}});
    writer.input("in", picture);
    REQUIRE(writer.start() == MR_OK);
    if (reader >= 0) close(reader);
    std::string error;
    for (int i = 0; i < 9 && error.empty(); ++i) {
      writer.input("in", picture);
      error = writer.tick().error;
    }
    CHECK(writer.drain() == MR_OK);
    return error;
  };
  // The default of both signals is to end the process, which this test would see.
  const auto pipe_before = std::signal(SIGPIPE, SIG_DFL), size_before = std::signal(SIGXFSZ, SIG_DFL);
  CHECK(failure(path, open(path.c_str(), O_RDONLY | O_NONBLOCK)) ==
        "cannot write '" + path + "': Broken pipe (at byte 0)");
  CHECK(failure("/dev/full", -1) == "cannot write '/dev/full': No space left on device (at byte 0)");
  rlimit before{};
  REQUIRE(getrlimit(RLIMIT_FSIZE, &before) == 0);
  const rlimit small{200'000, before.rlim_max};
  REQUIRE(setrlimit(RLIMIT_FSIZE, &small) == 0);
  const std::string error = failure(folder / "limited", -1);
  REQUIRE(setrlimit(RLIMIT_FSIZE, &before) == 0);
  CHECK(error == "cannot write '" + (folder / "limited") + "': File too large (at byte 200000)");
  std::signal(SIGPIPE, pipe_before);
  std::signal(SIGXFSZ, size_before);
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

TEST_CASE("a folder that is there may be called like a number's place or like a pattern") {
  const ScratchFolder scratch;
  const std::string folder = scratch / "take %d {index} [1]*?";
  std::filesystem::create_directory(folder);
  CHECK(NumberedPath(folder + "/a.npy").of(3) == folder + "/a.npy");
  CHECK(NumberedPath(folder + "/a-%03d.npy").of(3) == folder + "/a-003.npy");
  std::ofstream(folder + "/a-007.npy") << "x";
  CHECK(NumberedPath(folder + "/a-%03d.npy").existing() == std::vector<uint64_t>{7});
  CHECK_THROWS_AS(NumberedPath((scratch / "none %d") + "/a.npy"), std::invalid_argument);
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
