// Levels counted against a count by hand, what a monitor paints of them, and draw.waveform as a handler.
#include <doctest/doctest.h>

#include <array>
#include <cmath>
#include <map>

#include "builtin.h"
#include "handlers/draw/column_levels.h"
#include "handlers/draw/waveform_trace.h"
#include "pictures.h"

using namespace millrace;
using namespace millrace::handlers;
using millrace::testing::Result;
using millrace::testing::TableTest;

namespace {

uint32_t level_of(const uint8_t* pixel, Pixel format, LevelOf channel) {
  if (format == Pixel::gray8) return pixel[0];
  const bool swapped = format == Pixel::bgr8 || format == Pixel::bgra8;
  const double red = pixel[swapped ? 2 : 0], green = pixel[1], blue = pixel[swapped ? 0 : 2];
  const double value = channel == LevelOf::red     ? red
                       : channel == LevelOf::green ? green
                       : channel == LevelOf::blue  ? blue
                                                   : (77 * red + 150 * green + 29 * blue) / 256;
  return static_cast<uint32_t>(std::floor(value + 0.5));
}

bool counts_by_hand_agree(const ImageView& picture, LevelOf channel, uint32_t columns, const ColumnLevels& levels) {
  std::map<std::pair<uint32_t, uint32_t>, uint32_t> wanted; // (level, column)
  for (uint32_t y = 0; y < picture.height(); ++y)
    for (uint32_t x = 0; x < picture.width(); ++x)
      ++wanted[{level_of(picture.row(y) + size_t{x} * bytes_per_pixel(picture.pixel()), picture.pixel(), channel),
                x * columns / picture.width()}];
  for (uint32_t level = 0; level < kLevelCount; ++level)
    for (uint32_t column = 0; column < columns; ++column)
      if (levels.counts(level)[column] != wanted[{level, column}]) return false;
  return true;
}

uint64_t sum_of(const ImageView& picture, const Rectangle& area) {
  uint64_t sum = 0;
  const uint32_t channels = bytes_per_pixel(picture.pixel());
  for (int64_t y = area.top; y < area.bottom; ++y)
    for (int64_t i = area.left * channels; i < area.right * channels; ++i)
      sum += picture.row(static_cast<uint32_t>(y))[i];
  return sum;
}

// A picture of one level everywhere.
testing::Value flat(Pixel pixel, uint32_t width, uint32_t height, std::array<uint8_t, 4> color) {
  return testing::image(pixel, width, height, [&](uint32_t, uint32_t, uint32_t c) { return color[c]; });
}

} // namespace

TEST_CASE("every pixel counts once, for its level and its stretch of columns, in every format and size") {
  const std::vector<std::array<uint32_t, 3>> cases = {{1, 1, 1}, {2, 3, 1}, {7, 5, 7}, {33, 4, 10}, {130, 9, 129}};
  for (Pixel pixel : {Pixel::gray8, Pixel::rgb8, Pixel::bgr8, Pixel::rgba8, Pixel::bgra8})
    for (const auto& [width, height, columns] : cases)
      for (LevelOf channel : {LevelOf::luma, LevelOf::red, LevelOf::green, LevelOf::blue}) {
        const Picture picture = random_picture(pixel, width, height, 5 + width);
        LevelRow row;
        ColumnLevels levels;
        for (int round = 0; round < 2; ++round) { // the second begins anew
          levels.begin(width, columns);
          for (uint32_t y = 0; y < height; ++y) {
            row.read(picture.view().row(y), pixel, width);
            levels.add(row.of(channel));
          }
        }
        INFO(size_of(picture.view()) << ", " << columns << " columns, channel " << static_cast<int>(channel));
        CHECK(counts_by_hand_agree(picture.view(), channel, columns, levels));
      }
}

TEST_CASE("luma is at most one level away from the real-valued formula, and gray keeps its own") {
  std::vector<uint8_t> pixels;
  for (int r = 0; r < 256; r += 5)
    for (int g = 0; g < 256; g += 5)
      for (int b = 0; b < 256; b += 5)
        for (int value : {r, g, b}) pixels.push_back(static_cast<uint8_t>(value));
  LevelRow row;
  row.read(pixels.data(), Pixel::rgb8, static_cast<uint32_t>(pixels.size() / 3));
  const uint8_t* luma = row.of(LevelOf::luma);
  double worst = 0;
  bool gray_is_kept = true;
  for (size_t i = 0; i < pixels.size() / 3; ++i) {
    const uint8_t* p = pixels.data() + 3 * i;
    worst = std::max(worst, std::abs(0.299 * p[0] + 0.587 * p[1] + 0.114 * p[2] - luma[i]));
    gray_is_kept = gray_is_kept && (p[0] != p[1] || p[1] != p[2] || luma[i] == p[0]);
  }
  CHECK(worst <= 1);
  CHECK(gray_is_kept);
}

TEST_CASE("the rows of a monitor show every level, the lowest at the bottom, whatever its height") {
  for (uint32_t rows : {1u, 2u, 3u, 100u, 255u, 256u, 257u, 1080u, 16384u}) {
    INFO(rows << " rows");
    CHECK(levels_of_row(rows - 1, rows).first == 0);
    CHECK(levels_of_row(0, rows).last == kLevelCount);
    bool gapless = true, filled = true;
    for (uint32_t row = 1; row < rows; ++row) {
      const LevelRange above = levels_of_row(row - 1, rows), below = levels_of_row(row, rows);
      gapless = gapless && below.last >= above.first && below.first <= above.first;
      filled = filled && above.first < above.last;
    }
    CHECK(gapless);
    CHECK(filled);
  }
}

TEST_CASE("levels are spread evenly over the rows: nothing is lost, and no row has more than the others") {
  for (uint32_t rows : {1u, 2u, 100u, 178u, 255u, 256u, 257u, 1080u}) {
    std::vector<double> of_level(kLevelCount), of_row(rows);
    bool in_range = true;
    for (uint32_t row = 0; row < rows; ++row) {
      const LevelRange range = levels_of_row(row, rows);
      for (uint32_t level = 0; level < kLevelCount; ++level) {
        const float share = share_of_level(level, row, rows);
        in_range = in_range && (share > 0) == (level >= range.first && level < range.last);
        of_level[level] += static_cast<double>(share);
        of_row[row] += static_cast<double>(share);
      }
    }
    INFO(rows << " rows");
    CHECK(in_range);
    const double per_level = std::max(1.0, rows / 256.0), per_row = std::max(1.0, 256.0 / rows);
    for (double sum : of_level) CHECK(sum == doctest::Approx(per_level));
    for (double sum : of_row) CHECK(sum == doctest::Approx(per_row));
  }
}

TEST_CASE("a flat picture is one bright line at its level, as wide as the monitor") {
  for (uint8_t level : {uint8_t{0}, uint8_t{10}, uint8_t{128}, uint8_t{255}}) {
    TableTest waveform(builtin("draw.waveform"), {{"position", "alone"}});
    waveform.input("video", flat(Pixel::gray8, 40, 256, {level}));
    const Result result = waveform.tick();
    REQUIRE(result.ok());
    const ImageView picture = result.image("video");
    INFO("level " << static_cast<int>(level));
    for (uint32_t y = 0; y < 256; ++y) {
      const bool is_level = y == 255u - level;
      const bool is_line = y == 0 || y == 63 || y == 127 || y == 191 || y == 255;
      const uint8_t wanted = is_level ? 255 : is_line ? 40 : 0;
      CHECK(picture.row(y)[0] == wanted);
      CHECK(picture.row(y)[39] == wanted);
    }
  }
}

TEST_CASE("brightness grows with the share of pixels and with the gain, and ends at white") {
  // One pixel of each of 256 rows is 200, the others 0: a share of 1/256, a quarter of what is full.
  const auto brightness = [](const char* gain) {
    TableTest waveform(builtin("draw.waveform"), {{"position", "alone"}, {"gain", gain}});
    waveform.input(
        "video", testing::image(Pixel::gray8, 1, 256, [](uint32_t, uint32_t y, uint32_t) { return y == 9 ? 200 : 0; }));
    return waveform.tick().image("video").row(255 - 200)[0];
  };
  CHECK(brightness("1") == 64);
  CHECK(brightness("2") == 128);
  CHECK(brightness("0.5") == 32);
  CHECK(brightness("50") == 255);
}

TEST_CASE("rgb lays the channels over each other in their colours, where they agree it is white") {
  for (Pixel pixel : {Pixel::rgb8, Pixel::bgr8, Pixel::rgba8, Pixel::bgra8}) {
    const bool swapped = pixel == Pixel::bgr8 || pixel == Pixel::bgra8;
    const uint8_t red = 90, blue = 200;
    TableTest waveform(builtin("draw.waveform"), {{"position", "alone"}, {"mode", "rgb"}});
    waveform.input("video", flat(pixel, 8, 256, {swapped ? blue : red, 90, swapped ? red : blue, 7}));
    const Result result = waveform.tick();
    REQUIRE(result.ok());
    const uint32_t size = bytes_per_pixel(pixel), first = swapped ? 2 : 0, last = 2 - first;
    const uint8_t* yellow = result.image("video").row(255 - 90) + 3 * size;
    INFO(name_of(pixel));
    CHECK(yellow[first] == 255);
    CHECK(yellow[1] == 255);
    CHECK(yellow[last] == 0);
    const uint8_t* only_blue = result.image("video").row(255 - 200) + 3 * size;
    CHECK(only_blue[first] == 0);
    CHECK(only_blue[1] == 0);
    CHECK(only_blue[last] == 255);
    if (size == 4) CHECK(yellow[3] == 255);
  }
}

TEST_CASE("parade shows the channels side by side") {
  TableTest waveform(builtin("draw.waveform"), {{"position", "alone"}, {"mode", "parade"}});
  waveform.input("video", flat(Pixel::rgb8, 9, 256, {10, 100, 220}));
  const Result result = waveform.tick();
  REQUIRE(result.ok());
  const ImageView picture = result.image("video");
  const std::array<uint32_t, 3> levels = {10, 100, 220};
  for (uint32_t channel = 0; channel < 3; ++channel)
    for (uint32_t x = 0; x < 9; ++x)
      for (uint32_t c = 0; c < 3; ++c)
        CHECK(picture.row(255 - levels[channel])[x * 3 + c] == (c == channel && x / 3 == channel ? 255 : 0));
}

TEST_CASE("the monitor lies in its corner, darkens what is under it, and leaves the rest alone") {
  const std::map<std::string, Rectangle> corners = {{"bottom_right", {95, 59, 126, 78}},
                                                    {"bottom_left", {2, 59, 33, 78}},
                                                    {"top_right", {95, 2, 126, 21}},
                                                    {"top_left", {2, 2, 33, 21}}};
  for (const auto& [corner, area] : corners)
    for (bool in_place : {false, true}) {
      const testing::Value input = flat(Pixel::rgb8, 128, 80, {100, 100, 100});
      TableTest waveform(builtin("draw.waveform"), {{"position", corner}, {"size", "0.24"}, {"gain", "0.01"}});
      waveform.allow_in_place(in_place);
      waveform.input("video", input);
      const Result result = waveform.tick();
      REQUIRE(result.ok());
      const ImageView picture = result.image("video");
      uint32_t changed = 0;
      for (uint32_t y = 0; y < 80; ++y)
        for (uint32_t x = 0; x < 128; ++x) changed += picture.row(y)[x * 3] != 100;
      INFO(corner);
      CHECK(changed == (area.right - area.left) * (area.bottom - area.top));
      CHECK(picture.row(static_cast<uint32_t>(area.top) + 1)[area.left * 3] == 50);
      CHECK(picture.row(static_cast<uint32_t>(area.bottom) - 1)[area.right * 3 - 1] == 90); // half, and the 0 % line
      CHECK(sum_of(picture, area) < sum_of(flat(Pixel::rgb8, 128, 80, {100, 100, 100}).image(), area));
    }
}

TEST_CASE("pictures of one pixel, one row or one column have a monitor too, in every mode") {
  for (const char* mode : {"luma", "rgb", "parade"})
    for (const char* position : {"alone", "top_left"})
      for (Pixel pixel : {Pixel::gray8, Pixel::bgr8, Pixel::rgba8})
        for (const auto& [width, height] :
             std::vector<std::pair<uint32_t, uint32_t>>{{1, 1}, {1, 50}, {50, 1}, {2, 2}}) {
          TableTest waveform(builtin("draw.waveform"), {{"mode", mode}, {"position", position}});
          waveform.input("video", flat(pixel, width, height, {200, 200, 200, 255}));
          const Result result = waveform.tick();
          INFO(mode << ", " << position << ", " << width << "x" << height << ": " << result.error);
          REQUIRE(result.ok());
          CHECK(result.image("video").width() == width);
        }
}

TEST_CASE("size and gain change while it runs, and a smaller picture than planned is drawn on as well") {
  TableTest waveform(builtin("draw.waveform"), {{"position", "top_left"}, {"size", "0.1"}});
  waveform.bounded();
  waveform.input("video", flat(Pixel::gray8, 100, 100, {100}));
  const auto touched = [&] {
    const Result result = waveform.tick();
    REQUIRE(result.ok());
    const ImageView picture = result.image("video");
    uint32_t count = 0;
    for (uint32_t y = 0; y < picture.height(); ++y)
      for (uint32_t x = 0; x < picture.width(); ++x) count += picture.row(y)[x] != 100;
    return count;
  };
  CHECK(touched() == 100);
  waveform.set("size", "0.5");
  waveform.set("gain", "0.01");
  CHECK(touched() == 2500);
  waveform.input("video", flat(Pixel::gray8, 40, 20, {100}));
  CHECK(touched() == 200);
}
