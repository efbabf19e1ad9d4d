// video.writer: what is written is what ffprobe and ffmpeg read back.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <functional>
#include <sstream>
#include <string>
#include <vector>

#include "tests/contains.h"
#include "tests/handlers/scratch.h"
#include "tests/media/films.h"
#include "tests/part.h"

namespace millrace::media {
namespace {

namespace fs = std::filesystem;
using handlers::ScratchFolder;
using test::is_tried;
using testing::TableTest;

// The first difference of a film's times from these, in milliseconds: "" where each is within the tolerance.
std::string wrong_time(const Probed& film, const std::vector<Timed>& times, double tolerance_ms) {
  if (film.times.size() != times.size())
    return std::to_string(film.times.size()) + " pictures instead of " + std::to_string(times.size());
  for (size_t i = 0; i < times.size(); ++i) {
    const double at = (film.times[i] - film.times[0]) * 1000;
    if (std::abs(at - (times[i].at_ms - times[0].at_ms)) > tolerance_ms)
      return "picture " + std::to_string(i) + " at " + std::to_string(at) + " ms";
  }
  return "";
}

// The bytes of a picture of p010 in the order of yuv420p10le.
std::string three_planes(const testing::Value& picture) {
  const std::string bytes = plain_bytes(picture);
  const size_t luma = size_t{picture.image().width()} * picture.image().height();
  std::string planes;
  const auto add = [&](size_t sample) {
    const int value = static_cast<uint8_t>(bytes[2 * sample]) | static_cast<uint8_t>(bytes[2 * sample + 1]) << 8;
    planes += static_cast<char>((value >> 6) & 255);
    planes += static_cast<char>(value >> 14);
  };
  for (size_t i = 0; i < luma; ++i) add(i);
  for (const size_t first : {luma, luma + 1})
    for (size_t i = first; i < bytes.size() / 2; i += 2) add(i);
  return planes;
}

// Gaps, bursts, and a last picture that lasts.
std::vector<Timed> uneven_times() {
  std::vector<Timed> times;
  double at = 0;
  for (int i = 0; i < 40; ++i) {
    times.push_back({at, 40});
    at += i % 7 == 3 ? 500 : i % 5 == 1 ? 13.3 : 40;
  }
  times.back().lasts_ms = 700;
  return times;
}

} // namespace

TEST_CASE("every codec in every container that holds it comes back with its count, times and name") {
  struct Case {
    const char* file;
    const char* codec;
    Pixel pixel;
    const char* name; // as ffprobe calls it
  };
  const ScratchFolder folder;
  const std::vector<Timed> times = even_times(15);
  std::vector<Shown> films;
  int64_t n = 0;
  for (const Case& c : std::vector<Case>{{"a.mp4", "", Pixel::i420, "h264"},
                                         {"b.mp4", "hevc", Pixel::i420, "hevc"},
                                         {"c.mp4", "mpeg4", Pixel::i420, "mpeg4"},
                                         {"d.mp4", "mpeg2", Pixel::i420, "mpeg2video"},
                                         {"e.mp4", "av1", Pixel::i420, "av1"},
                                         {"f.mp4", "vp9", Pixel::i420, "vp9"},
                                         {"a.mov", "", Pixel::nv12, "h264"},
                                         {"b.mov", "prores", Pixel::p010, "prores"},
                                         {"c.mov", "png", Pixel::rgb8, "png"},
                                         {"d.mov", "mjpeg", Pixel::i420, "mjpeg"},
                                         {"a.mkv", "", Pixel::i420, "h264"},
                                         {"b.mkv", "hevc", Pixel::p010, "hevc"},
                                         {"c.mkv", "ffv1", Pixel::i420, "ffv1"},
                                         {"f.mkv", "png", Pixel::rgb8, "png"},
                                         {"g.mkv", "huffyuv", Pixel::rgb8, "huffyuv"},
                                         {"e.mov", "ffv1", Pixel::i420, "ffv1"},
                                         {"d.mkv", "mjpeg", Pixel::i420, "mjpeg"},
                                         {"e.mkv", "libx264rgb", Pixel::rgb8, "h264"},
                                         {"a.webm", "", Pixel::i420, "vp9"},
                                         {"b.webm", "vp8", Pixel::i420, "vp8"},
                                         {"a.avi", "", Pixel::i420, "mpeg4"},
                                         {"b.avi", "h264", Pixel::i420, "h264"},
                                         {"c.avi", "huffyuv", Pixel::bgra8, "huffyuv"},
                                         {"d.avi", "MJPG", Pixel::i420, "mjpeg"},
                                         {"e.avi", "rawvideo", Pixel::bgr8, "rawvideo"},
                                         {"a.ts", "", Pixel::i420, "h264"},
                                         {"b.m2ts", "hevc", Pixel::i420, "hevc"},
                                         {"c.ts", "mpeg2", Pixel::i420, "mpeg2video"},
                                         {"a.nut", "", Pixel::i420, "h264"},
                                         {"b.nut", "rawvideo", Pixel::rgb8, "rawvideo"},
                                         {"a.flv", "", Pixel::i420, "h264"},
                                         {"a.gif", "", Pixel::rgb8, "gif"},
                                         {"a.y4m", "", Pixel::gray8, "rawvideo"}}) {
    if (!is_tried(n++)) continue;
    INFO(std::string(c.file), " ", std::string(c.codec));
    const std::string path = folder / c.file;
    TableTest writer(handler_type("video.writer"), {{"path", path}, {"codec", c.codec}});
    write_film(writer, c.pixel, times, 128, 96);
    const Probed film = probe(path);
    CHECK(film.stream.at("codec_name") == c.name);
    CHECK(film.stream.at("width") == "128");
    CHECK(film.stream.at("height") == "96");
    // FLV, Matroska and GIF hold milliseconds and hundredths.
    CHECK(wrong_time(film, times, 1) == "");
    CHECK(std::abs(film.duration - film.start - 0.6) < 0.1);
    CHECK(!fs::exists(folder / "a.part.mp4"));
    films.push_back({path, "gray"});
  }
  const std::vector<std::string> shown = decoded(films);
  for (size_t i = 0; i < films.size(); ++i) {
    INFO(films[i].path);
    CHECK(shown[i].size() == 15 * 128 * 96);
  }
}

TEST_CASE("times of a variable rate are kept, and the last picture lasts as long as it says") {
  const ScratchFolder folder;
  struct Case {
    const char* file;
    const char* codec;
    double tolerance_ms;
    bool is_long; // the container holds how long the last picture lasts
  };
  for (const Case& c : std::vector<Case>{{"a.mp4", "", 0.002, true},
                                         {"b.mp4", "mpeg4", 0.002, true},
                                         {"b.mkv", "mpeg2", 0.51, true},
                                         {"c.mp4", "mpeg2", 0.002, true},
                                         {"a.mov", "hevc", 0.002, true},
                                         {"a.mkv", "", 0.51, true},
                                         {"a.webm", "", 0.51, true},
                                         {"a.nut", "", 0.002, false},
                                         {"a.ts", "", 0.02, false},
                                         {"a.flv", "", 0.51, false}}) {
    INFO(std::string(c.file));
    const std::string path = folder / c.file;
    TableTest writer(handler_type("video.writer"), {{"path", path}, {"codec", c.codec}});
    const std::vector<Timed> times = uneven_times();
    write_film(writer, Pixel::i420, times);
    const Probed film = probe(path);
    CHECK(wrong_time(film, times, c.tolerance_ms) == "");
    const double end = (times.back().at_ms + times.back().lasts_ms) / 1000;
    if (c.is_long) CHECK(std::abs(film.duration - end) < 0.002);
    CHECK(film.start < 0.1);
  }
}

TEST_CASE("the first picture is at 0, with B-frames, in fragments and plain") {
  const ScratchFolder folder;
  for (const char* fragment : {"auto", "none"}) {
    const std::string path = folder / "b.mp4";
    TableTest writer(handler_type("video.writer"), {{"path", path}, {"preset", "medium"}, {"fragment", fragment}});
    write_film(writer, Pixel::i420, even_times(100, 1000.0 / 30));
    const Probed film = probe(path);
    CHECK(film.stream.at("has_b_frames") != "0");
    CHECK(film.start == 0);
    CHECK(film.times.at(0) == 0);
    CHECK(std::abs(film.duration - 100 / 30.0) < 0.001);
    const bool has_fragments = contains(output_of("ffprobe -v trace '" + path + "' 2>&1"), "type:'moof'");
    CHECK(has_fragments == (std::string(fragment) == "auto"));
  }
}

TEST_CASE("lossless codecs give back every bit, of every format that they take") {
  struct Case {
    const char* file;
    const char* codec;
    Pixel pixel;
    const char* same; // FFmpeg's name of the same bytes
  };
  const ScratchFolder folder;
  std::vector<Shown> films;
  std::vector<std::string> written;
  for (const Case& c :
       std::vector<Case>{{"a.mkv", "ffv1", Pixel::i420, "yuv420p"},     {"b.mkv", "ffv1", Pixel::gray8, "gray"},
                         {"c.mkv", "ffv1", Pixel::rgb8, "rgb24"},       {"d.avi", "ffv1", Pixel::bgr8, "bgr24"},
                         {"e.avi", "ffv1", Pixel::rgba8, "rgba"},       {"f.mkv", "ffv1", Pixel::bgra8, "bgra"},
                         {"g.mkv", "ffv1", Pixel::p010, "p010le"},      {"h.avi", "huffyuv", Pixel::rgb8, "rgb24"},
                         {"i.avi", "huffyuv", Pixel::bgr8, "bgr24"},    {"j.avi", "huffyuv", Pixel::rgba8, "rgba"},
                         {"k.avi", "HFYU", Pixel::bgra8, "bgra"},       {"l.avi", "ffvhuff", Pixel::i420, "yuv420p"},
                         {"m.avi", "ffvhuff", Pixel::p010, "p010le"},   {"n.mov", "png", Pixel::rgb8, "rgb24"},
                         {"o.mov", "png", Pixel::rgba8, "rgba"},        {"p.avi", "png", Pixel::gray8, "gray"},
                         {"q.nut", "rawvideo", Pixel::nv12, "nv12"},    {"r.nut", "rawvideo", Pixel::p010, "p010le"},
                         {"v.avi", "rawvideo", Pixel::bgr8, "bgr24"},   {"w.avi", "rawvideo", Pixel::i420, "yuv420p"},
                         {"z.mov", "rawvideo", Pixel::rgb8, "rgb24"},   {"y.mov", "rawvideo", Pixel::bgra8, "bgra"},
                         {"y.avi", "rawvideo", Pixel::rgba8, "rgba"},   {"z.avi", "rawvideo", Pixel::nv12, "nv12"},
                         {"y.mkv", "rawvideo", Pixel::gray8, "gray"},   {"z.mkv", "rawvideo", Pixel::nv12, "nv12"},
                         {"x.mkv", "rawvideo", Pixel::i420, "yuv420p"}, {"s.y4m", "", Pixel::i420, "yuv420p"},
                         {"t.y4m", "", Pixel::p010, "p010le"},          {"1.mkv", "png", Pixel::rgba8, "rgba"},
                         {"2.mkv", "huffyuv", Pixel::bgr8, "bgr24"},    {"3.mkv", "ffvhuff", Pixel::i420, "yuv420p"},
                         {"4.mov", "ffv1", Pixel::p010, "p010le"},      {"5.mov", "ffv1", Pixel::rgb8, "rgb24"},
                         {"6.avi", "rawvideo", Pixel::rgb8, "rgb24"},   {"u.mkv", "libx264rgb", Pixel::rgb8, ""}}) {
    INFO(std::string(c.file), " ", std::string(c.codec));
    const std::string path = folder / c.file;
    // 70 × 50 is no multiple of anything, and its rows have padding.
    TableTest writer(handler_type("video.writer"), {{"path", path}, {"codec", c.codec}});
    write_film(writer, c.pixel, even_times(9), 70, 50);
    if (!*c.same) continue;
    CHECK(writer.counts()["pictures_converted"] == 0);
    films.push_back({path, c.same});
    written.emplace_back();
    for (uint32_t i = 0; i < 9; ++i) written.back() += plain_bytes(numbered(c.pixel, 70, 50, i));
  }
  const std::vector<std::string> shown = decoded(films);
  for (size_t i = 0; i < films.size(); ++i) {
    INFO(films[i].path);
    CHECK((shown[i] == written[i]));
  }
}

TEST_CASE("raw pictures that a container cannot tell apart are refused, or come as the nearest that it can") {
  const ScratchFolder folder;
  TableTest refused(handler_type("video.writer"), {{"path", folder / "a.mov"}, {"codec", "rawvideo"}});
  refused.input("video", numbered(Pixel::i420, 64, 48, 0));
  CHECK(refused.start() == MR_ERROR);
  for (const auto& [file, pixel, format] : {std::tuple{"a.avi", Pixel::rgb8, "bgr24"},
                                            {"a.mkv", Pixel::rgb8, "yuv420p"},
                                            {"b.avi", Pixel::p010, "yuv420p"}}) {
    TableTest writer(handler_type("video.writer"), {{"path", folder / file}, {"codec", "rawvideo"}});
    write_film(writer, pixel, even_times(2));
    INFO(std::string(file));
    CHECK(probe(folder / file).stream.at("pix_fmt") == format);
  }
}

TEST_CASE("a picture of colour is never written in gray, whatever its format and the codec's") {
  struct Case {
    const char *extension, *codec;
    bool has_gray;
  };
  const std::vector<Case> cases = {{"mkv", "ffv1", true},     {"avi", "ffvhuff", true},  {"avi", "huffyuv", false},
                                   {"mov", "png", true},      {"apng", "apng", true},    {"gif", "gif", false},
                                   {"mkv", "rawvideo", true}, {"avi", "rawvideo", true}, {"nut", "rawvideo", true},
                                   {"y4m", "", true},         {"mov", "mjpeg", false},   {"mp4", "mpeg4", false}};
  const ScratchFolder folder;
  int64_t n = 0;
  for (const std::string pixel : {"rgb8", "rgba8", "nv12", "i420", "gray8"}) {
    const auto path_of = [&](const Case& c) { return folder / (pixel + c.codec + "." + c.extension); };
    std::vector<Case> tried;
    std::string line = "test.pattern name=in width=64 height=48 fps=10 count=2 format=" + pixel;
    for (const Case& c : cases) {
      if (!is_tried(n++)) continue;
      line += (tried.empty() ? "" : "  in.") + std::string(" ! video.writer path=") + path_of(c);
      if (*c.codec) line += std::string(" codec=") + c.codec;
      tried.push_back(c);
    }
    output_of(MILLRACE_BINARY_DIR "/millrace run '" + line + "' 2>&1");
    for (const Case& c : tried) {
      INFO(path_of(c));
      const std::string format = probe(path_of(c)).stream.at("pix_fmt");
      if (pixel != "gray8") CHECK(format != "gray");
      if (pixel == "gray8" && c.has_gray) CHECK(format == "gray");
    }
  }
}

TEST_CASE("what a lossless codec has in another order only is exact, and nothing is counted as converted") {
  const ScratchFolder folder;
  for (const char* file : {"a.mkv", "a.y4m"}) {
    const std::string path = folder / file;
    TableTest writer(handler_type("video.writer"),
                     {{"path", path}, {"codec", std::string(file) == "a.mkv" ? "ffv1" : ""}});
    write_film(writer, Pixel::nv12, even_times(5), 71, 53);
    std::string written;
    for (uint32_t i = 0; i < 5; ++i) written += plain_bytes(numbered(Pixel::nv12, 71, 53, i));
    CHECK((decoded(path, "nv12") == written));
    CHECK(writer.counts()["pictures_converted"] == 0);
  }
}

TEST_CASE("the smallest pictures come back from the lossless codecs, in each format") {
  const ScratchFolder folder;
  // Not p010le of ten bits: ffmpeg's own conversion to it loses the chroma of odd columns.
  const char* formats[] = {"", "gray", "rgb24", "bgr24", "rgba", "bgra", "nv12", "yuv420p", "yuv420p10le"};
  std::vector<Shown> films;
  std::vector<std::string> written;
  int64_t n = 0;
  for (const auto& [codec, extension] : {std::pair{"ffv1", ".mkv"}, {"png", ".mov"}}) {
    for (const auto& [width, height] :
         {std::pair{1u, 1u}, {1u, 2u}, {2u, 1u}, {2u, 2u}, {1u, 50u}, {50u, 1u}, {3u, 5u}}) {
      for (int pixel = MR_PIXEL_GRAY8; pixel <= MR_PIXEL_P010; ++pixel) {
        if ((std::string(codec) == "png" && pixel >= MR_PIXEL_NV12) || !is_tried(n++)) continue;
        const std::string size = std::to_string(width) + "x" + std::to_string(height);
        const std::string path = folder / (size + formats[pixel] + extension);
        TableTest writer(handler_type("video.writer"), {{"path", path}, {"codec", codec}});
        write_film(writer, static_cast<Pixel>(pixel), even_times(3), width, height);
        films.push_back({path, formats[pixel]});
        written.emplace_back();
        for (uint32_t i = 0; i < 3; ++i) {
          const testing::Value picture = numbered(static_cast<Pixel>(pixel), width, height, i);
          written.back() += pixel == MR_PIXEL_P010 ? three_planes(picture) : plain_bytes(picture);
        }
      }
    }
  }
  const std::vector<std::string> shown = decoded(films);
  for (size_t i = 0; i < films.size(); ++i) {
    INFO(films[i].path);
    CHECK((shown[i] == written[i]));
  }
}

TEST_CASE("JPEG has the matrix bt601, so that pictures of another are converted and show the same colours") {
  const ScratchFolder folder;
  const std::string path = folder / "a.avi";
  TableTest writer(handler_type("video.writer"), {{"path", path}, {"codec", "mjpeg"}, {"quality", "100"}});
  // Saturated green by bt709 in limited range.
  const testing::Value picture = testing::image(Pixel::i420, 64, 48);
  picture.raw().as.image.color = MR_COLOR_BT709;
  picture.raw().as.image.range = MR_RANGE_LIMITED;
  const uint8_t green[3] = {173, 42, 26};
  for (uint32_t plane = 0; plane < 3; ++plane)
    for (uint32_t y = 0; y < picture.image().rows(plane); ++y)
      std::fill_n(picture.image().row(y, plane), plane == 0 ? 64 : 32, green[plane]);
  for (int i = 0; i < 3; ++i) {
    writer.input("video", picture.at(i * 40'000'000, 40'000'000));
    REQUIRE(writer.tick().ok());
  }
  REQUIRE(writer.drain() == MR_OK);
  CHECK(writer.counts()["pictures_converted"] == 3);
  const std::string shown = decoded(path, "rgb24");
  CHECK(static_cast<uint8_t>(shown[3 * (64 * 20 + 30)]) <= 6);
  CHECK(static_cast<uint8_t>(shown[3 * (64 * 20 + 30) + 1]) >= 249);
  CHECK(static_cast<uint8_t>(shown[3 * (64 * 20 + 30) + 2]) <= 6);
}

TEST_CASE("ten bits stay ten bits, and eight stay eight") {
  const ScratchFolder folder;
  for (const auto& [file, codec, pixel, format] : {std::tuple{"a.mp4", "h264", Pixel::p010, "yuv420p10le"},
                                                   {"b.mp4", "hevc", Pixel::p010, "yuv420p10le"},
                                                   {"c.webm", "vp9", Pixel::p010, "yuv420p10le"},
                                                   {"d.mp4", "h264", Pixel::nv12, "yuv420p"}}) {
    const std::string path = folder / file;
    TableTest writer(handler_type("video.writer"), {{"path", path}, {"codec", codec}, {"quality", "95"}});
    write_film(writer, pixel, even_times(6), 128, 96);
    INFO(std::string(file));
    CHECK(probe(path).stream.at("pix_fmt") == format);
  }
}

TEST_CASE("colour tags, range and the shape of pixels are those of the pictures") {
  const ScratchFolder folder;
  struct Case {
    const char* file;
    uint32_t color, range, primaries, transfer;
    const char *matrix, *range_words, *primaries_words, *transfer_words;
  };
  for (const Case& c :
       {Case{"a.mp4", MR_COLOR_BT709, MR_RANGE_LIMITED, 1, 1, "bt709", "tv", "bt709", "bt709"},
        Case{"b.mkv", MR_COLOR_BT601, MR_RANGE_FULL, 5, 6, "smpte170m", "pc", "bt470bg", "smpte170m"},
        Case{"c.mov", MR_COLOR_BT2020, MR_RANGE_LIMITED, 9, 16, "bt2020nc", "tv", "bt2020", "smpte2084"},
        Case{"d.webm", MR_COLOR_BT709, MR_RANGE_FULL, 0, 0, "bt709", "pc", "unknown", "unknown"},
        Case{"e.ts", MR_COLOR_BT601, MR_RANGE_LIMITED, 0, 0, "smpte170m", "tv", "unknown", "unknown"}}) {
    const std::string path = folder / c.file;
    TableTest writer(handler_type("video.writer"), {{"path", path}});
    for (uint32_t i = 0; i < 5; ++i) {
      const testing::Value picture = numbered(Pixel::i420, 64, 48, i);
      mr_image& image = picture.raw().as.image;
      image.color = c.color;
      image.range = c.range;
      image.primaries = c.primaries;
      image.transfer = c.transfer;
      image.aspect_num = 5; // whole pixels of a Matroska file's display
      image.aspect_den = 4;
      writer.input("video", picture.at(i * 40'000'000, 40'000'000));
      REQUIRE(writer.tick().ok());
    }
    REQUIRE(writer.drain() == MR_OK);
    const Probed film = probe(path);
    INFO(std::string(c.file));
    CHECK(film.stream.at("color_space") == c.matrix);
    CHECK(film.stream.at("color_range") == c.range_words);
    CHECK(film.stream.at("color_primaries") == c.primaries_words);
    CHECK(film.stream.at("color_transfer") == c.transfer_words);
    CHECK(film.stream.at("sample_aspect_ratio") == "5:4");
  }
}

TEST_CASE("pictures of limited range become full for JPEG, with the same colours") {
  const ScratchFolder folder;
  const std::string path = folder / "a.avi";
  TableTest writer(handler_type("video.writer"), {{"path", path}, {"codec", "mjpeg"}, {"quality", "100"}});
  const testing::Value picture = testing::image(Pixel::i420, 64, 48, 128);
  picture.raw().as.image.range = MR_RANGE_LIMITED;
  const ImageSpan image = picture.image();
  for (uint32_t y = 0; y < 48; ++y) std::fill_n(image.row(y), 64, y < 24 ? uint8_t{16} : uint8_t{235});
  for (int i = 0; i < 3; ++i) {
    writer.input("video", picture.at(i * 40'000'000, 40'000'000));
    REQUIRE(writer.tick().ok());
  }
  REQUIRE(writer.drain() == MR_OK);
  CHECK(writer.counts()["pictures_converted"] == 3);
  const std::string luma = decoded(path, "yuvj420p");
  CHECK(static_cast<uint8_t>(luma[64 * 4]) <= 1);
  CHECK(static_cast<uint8_t>(luma[64 * 44]) >= 254);
}

TEST_CASE("a constant rate is made by repeating and dropping, which is counted") {
  const ScratchFolder folder;
  {
    const std::string path = folder / "a.mp4";
    TableTest writer(handler_type("video.writer"), {{"path", path}, {"rate", "30"}});
    write_film(writer, Pixel::i420, even_times(20, 100)); // 10 a second
    const Probed film = probe(path);
    CHECK(film.times.size() == 60);
    CHECK(std::abs(film.duration - 2) < 0.001);
    CHECK(writer.counts()["pictures_repeated"] == 40);
    CHECK(writer.counts()["pictures_dropped"] == 0);
  }
  {
    const std::string path = folder / "b.mkv";
    TableTest writer(handler_type("video.writer"), {{"path", path}, {"rate", "10"}, {"codec", "ffv1"}});
    write_film(writer, Pixel::i420, even_times(60, 50)); // 20 a second
    CHECK(probe(path).times.size() == 30);
    CHECK(writer.counts()["pictures_dropped"] == 30);
    std::string every_other;
    for (uint32_t i = 0; i < 60; i += 2) every_other += plain_bytes(numbered(Pixel::i420, 64, 48, i));
    CHECK((decoded(path, "yuv420p") == every_other));
  }
  {
    const std::string path = folder / "c.y4m"; // which holds no times
    TableTest writer(handler_type("video.writer"), {{"path", path}});
    write_film(writer, Pixel::i420, {{0, 100}, {100, 100}, {500, 100}});
    CHECK(probe(path).times.size() == 6);
    CHECK(writer.counts()["pictures_repeated"] == 3);
  }
}

TEST_CASE("of pictures that come too fast for a rate, the latest is the one that lasts") {
  const ScratchFolder folder;
  const std::string path = folder / "a.mkv";
  TableTest writer(handler_type("video.writer"), {{"path", path}, {"rate", "10"}, {"codec", "ffv1"}});
  write_film(writer, Pixel::i420, {{0, 10}, {10, 10}, {20, 10}, {300, 100}});
  std::string shown;
  for (const uint32_t i : {0u, 2u, 2u, 3u}) shown += plain_bytes(numbered(Pixel::i420, 64, 48, i));
  CHECK((decoded(path, "yuv420p") == shown));
  CHECK(writer.counts()["pictures_repeated"] == 1);
  CHECK(writer.counts()["pictures_dropped"] == 1);
}

TEST_CASE("pictures that are closer than a container can say take its next tick, which is counted") {
  const ScratchFolder folder;
  for (const char* file : {"a.ts", "a.mkv", "a.flv", "a.webm", "a.mp4", "a.nut"}) {
    const std::string path = folder / file;
    TableTest writer(handler_type("video.writer"), {{"path", path}});
    writer.period_ns(1);
    for (int i = 0; i < 30; ++i) {
      writer.input("video", numbered(Pixel::i420, 64, 48, static_cast<uint32_t>(i)).at(i, 40'000'000));
      const testing::Result result = writer.tick();
      REQUIRE_MESSAGE(result.ok(), result.error);
    }
    REQUIRE(writer.drain() == MR_OK);
    INFO(std::string(file));
    const Probed film = probe(path);
    CHECK(film.times.size() == 30);
    CHECK(std::adjacent_find(film.times.begin(), film.times.end(), std::greater_equal<>()) == film.times.end());
    CHECK(writer.counts()["pictures_nudged"] == 29);
  }
}

TEST_CASE("segments of pictures that each stand alone begin at any picture") {
  const ScratchFolder folder;
  for (const char* codec : {"ffv1", "mjpeg", "png", "huffyuv", "ffvhuff", "rawvideo"}) {
    const std::string path = folder / (std::string(codec) + "-%d.mkv");
    TableTest writer(handler_type("video.writer"), {{"path", path}, {"codec", codec}, {"segment", "200ms"}});
    const bool is_rgb = std::string(codec) == "png" || std::string(codec) == "huffyuv";
    write_film(writer, is_rgb ? Pixel::rgb8 : Pixel::i420, even_times(15));
    INFO(std::string(codec));
    std::vector<Shown> parts;
    for (int i = 0; i < 3; ++i) {
      parts.push_back({folder / (std::string(codec) + "-" + std::to_string(i) + ".mkv"), "gray"});
      REQUIRE(fs::exists(parts.back().path));
      CHECK(probe(parts.back().path).times.size() == 5);
    }
    for (const std::string& shown : decoded(parts)) CHECK(shown.size() == 5 * 64 * 48);
  }
}

TEST_CASE("segments by size are near it, of codecs that look ahead too") {
  const ScratchFolder folder;
  for (const char* codec : {"h264", "ffv1", "mpeg4", "hevc"}) {
    const std::string stem = folder / codec;
    TableTest writer(handler_type("video.writer"),
                     {{"path", stem + "-%d.mkv"}, {"codec", codec}, {"segment", "200kB"}, {"quality", "90"}});
    write_film(writer, Pixel::i420, even_times(250), 160, 120);
    int count = 0;
    while (fs::exists(stem + "-" + std::to_string(count) + ".mkv")) ++count;
    INFO(std::string(codec), " ", count);
    CHECK(count > 2);
    for (int i = 0; i + 1 < count; ++i) {
      const auto size = fs::file_size(stem + "-" + std::to_string(i) + ".mkv");
      INFO(i, ": ", size);
      CHECK(size > 150'000);
      CHECK(size < 260'000);
    }
  }
}

TEST_CASE("AVI has numbers for times: pictures take the nearest that is free, which is counted") {
  const ScratchFolder folder;
  const std::string path = folder / "a.avi";
  TableTest writer(handler_type("video.writer"), {{"path", path}});
  write_film(writer, Pixel::i420, {{0, 100}, {130, 100}, {180, 100}, {300, 100}, {900, 100}});
  const Probed film = probe(path);
  CHECK(wrong_time(film, {{0, 0}, {100, 0}, {200, 0}, {300, 0}, {900, 0}}, 0.01) == "");
  CHECK(writer.counts()["pictures_off_grid"] == 2);
}

TEST_CASE("where no picture says how long it lasts, the second tells; a single one lasts 40 ms") {
  const ScratchFolder folder;
  {
    const std::string path = folder / "a.mp4";
    TableTest writer(handler_type("video.writer"), {{"path", path}});
    write_film(writer, Pixel::i420, {{0, 0}, {100, 0}, {200, 0}, {300, 0}});
    const Probed film = probe(path);
    CHECK(wrong_time(film, {{0, 0}, {100, 0}, {200, 0}, {300, 0}}, 0.001) == "");
    CHECK(film.stream.at("r_frame_rate") == "10/1");
    CHECK(std::abs(film.duration - 0.4) < 0.001);
  }
  {
    const std::string path = folder / "b.mp4";
    TableTest writer(handler_type("video.writer"), {{"path", path}});
    write_film(writer, Pixel::i420, {{0, 0}});
    const Probed film = probe(path);
    CHECK(film.times.size() == 1);
    CHECK(std::abs(film.duration - 0.04) < 0.001);
  }
}

TEST_CASE("better quality is larger, in every codec that has one, and a bit rate is kept to") {
  const ScratchFolder folder;
  for (const char* codec : {"h264", "hevc", "vp8", "vp9", "mpeg4", "mpeg2", "mjpeg", "av1"}) {
    uintmax_t before = 0;
    for (const char* quality : {"20", "70", "95"}) {
      const std::string path = folder / "q.mkv";
      TableTest writer(handler_type("video.writer"), {{"path", path}, {"codec", codec}, {"quality", quality}});
      write_film(writer, Pixel::i420, even_times(10), 160, 120);
      INFO(std::string(codec), " ", std::string(quality));
      CHECK(fs::file_size(path) > before);
      before = fs::file_size(path);
    }
  }
  const std::string path = folder / "rate.mp4";
  TableTest writer(handler_type("video.writer"), {{"path", path}, {"bitrate", "800k"}});
  write_film(writer, Pixel::i420, even_times(150), 320, 240);
  const double bits = static_cast<double>(fs::file_size(path)) * 8 / 6;
  CHECK(bits > 500'000);
  CHECK(bits < 1'300'000);
}

TEST_CASE("key frames are as far apart as gop says") {
  const ScratchFolder folder;
  const std::string path = folder / "gop.mp4";
  TableTest writer(handler_type("video.writer"), {{"path", path}, {"gop", "500ms"}});
  write_film(writer, Pixel::i420, even_times(100, 20));
  const std::string keys =
      output_of("ffprobe -v error -skip_frame nokey -show_entries frame=pts_time -of csv=p=0 '" + path + "'");
  CHECK(std::count(keys.begin(), keys.end(), '\n') >= 4);
}

TEST_CASE("key frames of a film are 8 s apart unless somebody asks, and 2 s in a codec that drifts") {
  const ScratchFolder folder;
  for (const auto& [name, seconds] : {std::pair{"film.mp4", 8}, {"film.avi", 2}}) {
    const std::string path = folder / name;
    TableTest writer(handler_type("video.writer"), {{"path", path}});
    write_film(writer, Pixel::i420, even_times(25 * 9));
    const std::string told = output_of(
        "ffprobe -v error -skip_frame nokey -show_entries frame=pict_type -show_entries "
        "frame=best_effort_timestamp_time -of csv=p=0 '" +
        path + "' | cut -d, -f1");
    CAPTURE(told);
    std::istringstream lines(told);
    std::vector<double> times;
    for (double time; lines >> time;) times.push_back(time);
    INFO(std::string(name));
    REQUIRE(times.size() > 1);
    CHECK(times[1] == doctest::Approx(seconds));
  }
}

TEST_CASE("segments by time begin with a key frame at 0, play by themselves and make up the whole") {
  const ScratchFolder folder;
  for (const auto& [pattern, first] : {std::pair{"s-%02d.mp4", "s-00.mp4"},
                                       {"t-{index}.mkv", "t-000.mkv"},
                                       {"u.ts", "u-000.ts"},
                                       {"v.avi", "v-000.avi"}}) {
    const std::string list = folder / (std::string(pattern) + ".txt");
    TableTest writer(handler_type("video.writer"),
                     {{"path", folder / pattern}, {"segment", "1s"}, {"list", list}, {"quality", "50"}});
    write_film(writer, Pixel::i420, even_times(65)); // 2.6 s
    INFO(std::string(pattern));
    CHECK(fs::exists(folder / first));
    const std::string names = folder.text(std::string(pattern) + ".txt");
    CHECK(names.rfind("ffconcat version 1.0\nfile '" + std::string(first) + "'\nduration 1.000000\n", 0) == 0);
    CHECK(std::count(names.begin(), names.end(), '\n') == 7);
    CHECK(names.ends_with("\nduration 0.600000\n"));
    std::vector<Shown> segments;
    size_t at = 0;
    for (int i = 0; i < 3; ++i) {
      at = names.find("file '", at) + 6;
      segments.push_back({folder / names.substr(at, names.find('\'', at) - at), "gray"});
      const Probed film = probe(segments.back().path);
      INFO(segments.back().path);
      CHECK(film.times.size() == (i < 2 ? 25 : 15));
      CHECK(film.start < 0.1);
    }
    const std::vector<std::string> shown = decoded(segments);
    for (size_t i = 0; i < 3; ++i) CHECK(shown[i].size() == (i < 2 ? 25 : 15) * 64 * 48);
    const std::string whole = output_of("ffmpeg -nostdin -v error -f concat -safe 0 -i '" + list +
                                        "' -map 0:v -f rawvideo -vsync passthrough -pix_fmt gray -");
    CHECK((whole == shown[0] + shown[1] + shown[2]));
  }
}

TEST_CASE("segments by size end soon after it") {
  const ScratchFolder folder;
  TableTest writer(handler_type("video.writer"), {{"path", folder / "s.mkv"}, {"segment", "1MB"}, {"codec", "mjpeg"}});
  write_film(writer, Pixel::i420, even_times(100), 320, 240);
  int count = 0;
  size_t pictures = 0;
  for (; fs::exists(folder / ("s-00" + std::to_string(count) + ".mkv")); ++count) {
    const std::string path = folder / ("s-00" + std::to_string(count) + ".mkv");
    pictures += probe(path).times.size();
    CHECK(fs::file_size(path) < 1'100'000);
  }
  CHECK(count > 2);
  CHECK(count < 10);
  CHECK(pictures == 100);
}

TEST_CASE("sound is copied beside the pictures, packet by packet, cut to their times") {
  const ScratchFolder folder;
  const std::string source = folder / "source.mkv";
  output_of(
      "ffmpeg -nostdin -v error -y -f lavfi -i testsrc=size=64x48:rate=25:duration=6 -f lavfi -i "
      "sine=frequency=440:duration=6 -c:v ffv1 -c:a aac '" +
      source + "' && echo made");
  const auto sound_of = [](const std::string& path, const char* entry) {
    return output_of("ffprobe -v error -select_streams a:0 -show_entries " + std::string(entry) + " -of csv=p=0 '" +
                     path + "'");
  };
  for (const char* file : {"a.mp4", "a.mkv", "a.mov", "a.ts"}) {
    const std::string path = folder / file;
    TableTest writer(handler_type("video.writer"), {{"path", path}, {"sound", source}});
    write_film(writer, Pixel::i420, even_times(50));
    INFO(std::string(file));
    CHECK(contains(sound_of(path, "stream=codec_name"), "aac"));
    const std::string packets = sound_of(path, "packet=pts_time");
    const auto count = std::count(packets.begin(), packets.end(), '.');
    CHECK(count >= 84); // 2 s of 1024 samples at 44100
    CHECK(count <= 88);
    CHECK(probe(path).times.size() == 50);
    CHECK(std::abs(probe(path).duration - 2) < 0.06);
  }
  // The same bytes: nothing was encoded anew.
  const auto hash = [&](const std::string& path) {
    return output_of("ffmpeg -nostdin -v error -i '" + path +
                     "' -map 0:a -c copy -t 1 -f framemd5 - | grep -v '^#' | "
                     "sed 's/.*, *//' | head -40 | tail -30");
  };
  CHECK(hash(folder / "a.mkv") != "");
  // A track that the container takes is copied; one that its muxer refuses is refused before the first picture.
  const std::string flac = folder / "flac.mkv";
  output_of("ffmpeg -nostdin -v error -y -f lavfi -i sine=duration=3 -c:a flac '" + flac + "' && echo made");
  TableTest into_mp4(handler_type("video.writer"), {{"path", folder / "flac.mp4"}, {"sound", flac}});
  write_film(into_mp4, Pixel::i420, even_times(50));
  CHECK(contains(sound_of(folder / "flac.mp4", "stream=codec_name"), "flac"));
  CHECK(std::abs(probe(folder / "flac.mp4").duration - 2) < 0.11);
  // FLV has this sound at other rates only, which nobody but its muxer knows.
  const std::string pcm = folder / "pcm.wav";
  output_of("ffmpeg -nostdin -v error -y -f lavfi -i sine=sample_rate=48000:duration=1 -c:a pcm_s16le '" + pcm +
            "' && echo made");
  TableTest refused(handler_type("video.writer"), {{"path", folder / "pcm.flv"}, {"sound", pcm}});
  refused.input("video", numbered(Pixel::i420, 64, 48, 0));
  CHECK(refused.start() == MR_ERROR);
  CHECK(contains(refused.error(), "container 'flv' cannot hold this h264 with sound in pcm_s16le"));
  CHECK(!fs::exists(folder / "pcm.part.flv"));
  TableTest none(handler_type("video.writer"), {{"path", folder / "n.mp4"}, {"sound", folder / "missing.mkv"}});
  none.input("video", numbered(Pixel::i420, 64, 48, 0));
  CHECK(none.start() == MR_ERROR);
  CHECK(contains(none.error(), "cannot read the sound of '" + (folder / "missing.mkv") + "': there is no such file"));
}

TEST_CASE("sound of a film that begins later begins there too") {
  const ScratchFolder folder;
  const std::string source = folder / "source.mkv";
  // A tone from second 3 on; silence before.
  output_of("ffmpeg -nostdin -v error -y -f lavfi -i \"aevalsrc='if(gte(t,3),sin(2000*t),0)':d=6\" -c:a pcm_s16le '" +
            source + "' && echo made");
  const std::string path = folder / "a.mkv";
  TableTest writer(handler_type("video.writer"), {{"path", path}, {"sound", source}});
  std::vector<Timed> times;
  for (int i = 0; i < 50; ++i) times.push_back({2000 + i * 40.0, 40});
  write_film(writer, Pixel::i420, times);
  CHECK(probe(path).times.at(0) < 0.001);
  const std::string samples = output_of("ffmpeg -nostdin -v error -i '" + path + "' -map 0:a -f s16le -ac 1 -");
  size_t first = 0;
  while (first + 1 < samples.size() && samples[first] == 0 && samples[first + 1] == 0) first += 2;
  CHECK(std::abs(static_cast<double>(first) / 2 / 44100 - 1) < 0.05); // 3 s in the source, 1 s in the film
}

TEST_CASE("a handler that got no picture leaves no file and no complaint") {
  const ScratchFolder folder;
  TableTest writer(handler_type("video.writer"), {{"path", folder / "none.mp4"}});
  writer.input("video", numbered(Pixel::i420, 64, 48, 0));
  REQUIRE(writer.start() == MR_OK);
  CHECK(fs::exists(folder / "none.part.mp4"));
  CHECK(writer.drain() == MR_OK);
  CHECK(!fs::exists(folder / "none.mp4"));
  CHECK(!fs::exists(folder / "none.part.mp4"));
}

TEST_CASE("FFmpeg writes nothing to the terminal, whatever the encoder") {
  const ScratchFolder folder;
  for (const char* codec : {"h264", "hevc", "vp9", "av1"}) {
    const std::string said = output_of(std::string(MILLRACE_BINARY_DIR) +
                                       "/millrace run 'test.pattern width=64 height=48 count=10 format=i420 ! "
                                       "video.writer codec=" +
                                       codec + " path=" + (folder / "a.mkv") + "' 2>&1");
    INFO(std::string(codec), ": ", said);
    CHECK(!contains(said, codec));
    CHECK(!contains(said, "["));
  }
}

} // namespace millrace::media
