// Rectangles, letters, captions, and the two handlers that draw.
#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <ctime>
#include <filesystem>
#include <limits>
#include <string>

#include "builtin.h"
#include "handlers/draw/caption.h"
#include "handlers/draw/glyphs.h"
#include "handlers/draw/raster.h"
#include "ink.h"
#include "pictures.h"

using namespace millrace;
using namespace millrace::handlers;
using millrace::testing::Result;
using millrace::testing::TableTest;
using millrace::testing::Value;

namespace {

// Rows of a gray picture as text: '#' where it is bright.
std::string drawn(const ImageView& picture) {
  std::string text;
  for (uint32_t y = 0; y < picture.height(); ++y) {
    for (uint32_t x = 0; x < picture.width(); ++x) text += picture.row(y)[x] > 127 ? '#' : '.';
    text += '\n';
  }
  return text;
}

uint64_t brightness_sum(const ImageView& picture) {
  uint64_t sum = 0;
  for (uint32_t y = 0; y < picture.height(); ++y)
    for (size_t i = 0; i < plane_row_bytes(picture.pixel(), picture.width(), 0); ++i) sum += picture.row(y)[i];
  return sum;
}

// A record type that no handler knows.
struct Speed {
  static constexpr std::string_view kSchema = "test.Speed";
  double per_second = 12.5;
  static std::vector<mr_field> fields() { return {field("per_second", &Speed::per_second)}; }
};

} // namespace

TEST_CASE("colours are read as #rrggbb and #rrggbbaa, and nothing else") {
  CHECK(parse_color("#0aF010") == Color{10, 240, 16, 255});
  CHECK(parse_color("#00000080") == Color{0, 0, 0, 128});
  for (const char* wrong : {"", "#", "red", "#12345", "#1234567", "#12345g", "123456#", "#123456789"})
    CHECK_FALSE(parse_color(wrong));
}

TEST_CASE("a frame lies inside its rectangle and leaves the middle alone") {
  Picture picture(Pixel::gray8, 9, 7);
  draw_frame(picture.span(), {1, 1, 8, 6}, 1, ink_of(kWhite, Pixel::gray8));
  CHECK(drawn(picture.view()) == ".........\n.#######.\n.#.....#.\n.#.....#.\n.#.....#.\n.#######.\n.........\n");
}

TEST_CASE("a frame that leaves the picture is cut off at its edge, however far away it begins") {
  Picture picture(Pixel::gray8, 6, 4);
  const int64_t far = int64_t{1} << 40;
  draw_frame(picture.span(), {-far, -far, 4, 3}, 1, ink_of(kWhite, Pixel::gray8));
  CHECK(drawn(picture.view()) == "...#..\n...#..\n####..\n......\n");
  draw_frame(picture.span(), {10, 10, 20, 20}, 2, ink_of(kWhite, Pixel::gray8));
  draw_frame(picture.span(), {3, 3, 2, 2}, 2, ink_of(kWhite, Pixel::gray8));
  CHECK(drawn(picture.view()) == "...#..\n...#..\n####..\n......\n");
}

TEST_CASE("a frame thicker than its rectangle fills it") {
  Picture picture(Pixel::gray8, 5, 3);
  draw_frame(picture.span(), {1, 0, 4, 3}, 2, ink_of(kWhite, Pixel::gray8));
  CHECK(drawn(picture.view()) == ".###.\n.###.\n.###.\n");
}

TEST_CASE("half-transparent ink is blended once, in the order of each format's channels") {
  const Color orange = {200, 100, 50, 128};
  for (Pixel pixel : {Pixel::rgb8, Pixel::bgr8, Pixel::rgba8, Pixel::bgra8}) {
    Picture picture(pixel, 4, 4);
    draw_frame(picture.span(), {0, 0, 4, 4}, 1, ink_of(orange, pixel));
    const bool swapped = pixel == Pixel::bgr8 || pixel == Pixel::bgra8;
    for (uint32_t corner : {0u, 3u}) {
      const uint8_t* p = picture.view().row(corner) + size_t{corner} * bytes_per_pixel(pixel);
      INFO(name_of(pixel) << ", corner " << corner);
      CHECK(p[swapped ? 2 : 0] == 100);
      CHECK(p[1] == 50);
      CHECK(p[swapped ? 0 : 2] == 25);
      if (bytes_per_pixel(pixel) == 4) CHECK(p[3] == 128);
    }
  }
}

TEST_CASE("UTF-8 is read letter by letter, and what is not UTF-8 does no harm") {
  std::string_view text = "a\xc3\xa4\xe2\x82\xac\xf0\x9f\x98\x80";
  CHECK(next_code_point(text) == 'a');
  CHECK(next_code_point(text) == 0xe4);
  CHECK(next_code_point(text) == 0x20ac);
  CHECK(next_code_point(text) == 0x1f600);
  CHECK(text.empty());
  for (std::string_view broken : {"\xc3", "\x80", "\xe2\x82", "\xff", "\xc0\x80", "\xf5\x80\x80\x80",
                                  "\xe2"
                                  "aa"}) {
    const size_t length = broken.size();
    CHECK(next_code_point(broken) == 0xfffd);
    CHECK(broken.size() < length);
  }
}

TEST_CASE("a caption fills in index and time, and keeps doubled braces as one") {
  Caption caption("#{index} {{at} {time}!");
  CHECK(caption.line(12, 3'723'004'000'000) == "#12 {at} 1:02:03.004!");
  CHECK(caption.line(18446744073709551615ull, -1'500'000'000) == "#18446744073709551615 {at} -0:00:01.500!");
  CHECK(Caption("").line(0, 0).empty());
}

TEST_CASE("a caption with an unknown place, or an endless one, is refused with its words and the nearest") {
  CHECK_THROWS_WITH(Caption("at {tiem}!"), "the text has '{tiem}'; did you mean {time}?\ntry: text=\"at {time}!\"");
  CHECK_THROWS_WITH(Caption("{speed}"),
                    "the text has '{speed}', but knows {index}, {time}, {clock}, {utc}, and {{ for a brace");
  CHECK_THROWS_WITH(Caption("open {ind"), "the text has '{ind', which no '}' ends; {{ stands for a brace");
  CHECK_THROWS_WITH(Caption("{clock:}"), doctest::Contains("which shows nothing"));
  CHECK_THROWS_AS(Caption(std::string(Caption::kTextMax + 1, 'x')), std::invalid_argument);
}

TEST_CASE("a caption shows the time of day in any form, in UTC and in the zone of the machine") {
  const std::time_t moment = 1'924'991'999; // 2030-12-31 23:59:59 UTC
  Caption utc("{utc} is {utc:%d.%m.%y}, {utc:%H}h");
  CHECK(utc.line(0, 0, {}, moment) == "2030-12-31 23:59:59 is 31.12.30, 23h");
  std::tm here{};
  localtime_r(&moment, &here);
  char expected[64];
  std::strftime(expected, sizeof expected, "%H:%M:%S %z", &here);
  CHECK(Caption("{clock:%H:%M:%S %z}").line(0, 0, {}, moment) == expected);
  CHECK(Caption::shows_clock("at {utc:%H}"));
  CHECK(Caption::shows_clock("{clock}"));
  CHECK_FALSE(Caption::shows_clock("{{clock} {time}"));
}

TEST_CASE("a caption shows how many records there are and fields of the first, and dashes for what is not there") {
  const std::array<CaptionSource, 2> sources = {CaptionSource{"boxes", true, record_type_of<Box>()},
                                                CaptionSource{"records", false, nullptr}};
  Caption caption("{boxes.count}: {boxes.x} {boxes.score} {boxes.label} {boxes.id}", sources);
  const auto line = [&](const Value& value) {
    const draw::LineRecords records = value ? draw::LineRecords{&value.raw(), value.data()} : draw::LineRecords{};
    return std::string(caption.line(0, 0, {&records, 1}));
  };
  CHECK(line(testing::records<Box>({{-3.126f, 0, 1, 1, 0.995f, -2, INT64_MIN}, {9, 9, 9, 9, 1, 1, 1}})) ==
        "2: -3.13 1.00 -2 -9223372036854775808");
  CHECK(line(testing::records<Box>({{1e20f, 0, 1, 1, -0.001f, 7, 8}})) == "1: - 0.00 7 8");
  CHECK(line(testing::records<Box>({})) == "0: - - - -");
  CHECK(line(Value{}) == "-: - - - -");
  CHECK_THROWS_WITH(Caption("{boxes.scor}", sources), doctest::Contains("did you mean {boxes.score}?"));
  CHECK_THROWS_WITH(Caption("{records.count}", sources),
                    "the text has '{records.count}', and nothing is joined to the input records");
  std::string many;
  for (uint32_t i = 0; i <= draw::kValuePlacesMax; ++i) many += "{boxes.x}";
  CHECK_THROWS_WITH(Caption(many, sources), "the text shows more than 16 numbers of records");
}

TEST_CASE("a caption's line is bounded, whatever is filled in") {
  std::string text;
  for (size_t i = 0; i + 7 <= Caption::kTextMax; i += 7) text += "{index}";
  CHECK(Caption(text).line(UINT64_MAX, 0).size() <= Caption::kLineMax);
}

TEST_CASE("letters have the width that the pen moves, and stand on the baseline" * doctest::skip(!has_font())) {
  const GlyphSet glyphs("", 20);
  CHECK(glyphs.width("mm") == 2 * glyphs.width("m"));
  CHECK(glyphs.width("m") > glyphs.width("i"));
  Picture picture(Pixel::gray8, 60, 40);
  glyphs.draw(picture.span(), "HLM", 5, 30, ink_of(kWhite, Pixel::gray8));
  const std::string rows = drawn(picture.view());
  CHECK(rows.substr(29 * 61, 61).find('#') != std::string::npos);
  CHECK(rows.substr(30 * 61).find('#') == std::string::npos);
  CHECK(rows.substr(0, (30 - static_cast<size_t>(glyphs.ascent())) * 61).find('#') == std::string::npos);
}

TEST_CASE("a letter that the font lacks comes from another font, and one that no font has is told once" *
          doctest::skip(!has_font())) {
  const std::string folder = std::filesystem::path(find_default_font()).parent_path().string();
  const std::string serif = folder + "/DejaVuSerif.ttf";
  if (std::filesystem::exists(serif)) { // it has no Hebrew letters, and DejaVu Sans has
    const std::string alef = "\xd7\x90";
    const GlyphSet sans("", 30, alef), other(serif, 30, alef);
    CHECK(other.missing().empty());
    const GlyphSet::Glyph &from = *sans.find(0x5d0), &to = *other.find(0x5d0);
    REQUIRE(from.width > 0);
    CHECK(to.width == from.width);
    CHECK(to.height == from.height);
    CHECK(to.advance == from.advance);
    CHECK(std::equal(sans.masks().begin() + static_cast<ptrdiff_t>(from.mask),
                     sans.masks().begin() + static_cast<ptrdiff_t>(from.mask + from.width * from.height),
                     other.masks().begin() + static_cast<ptrdiff_t>(to.mask)));
  }
  const std::string nobody = "\xf4\x8f\xbf\xbd"; // for private use: no font has it
  CHECK(GlyphSet("", 30, "a" + nobody + "b" + nobody).missing() == nobody);
  CHECK(quoted_letters(nobody + "x") == "'" + nobody + "', 'x'");
  CHECK(quoted_letters("123456789") == "'1', '2', '3', '4', '5', '6', '7', '8', …");
  TableTest text(builtin("draw.text"), {{"text", "a" + nobody}});
  text.input("video", testing::image(Pixel::gray8, 64, 32, uint8_t{0}));
  REQUIRE(text.tick().ok());
  REQUIRE(text.tick().ok());
  REQUIRE(text.logs().size() == 1);
  CHECK(text.logs()[0].level == MR_LOG_WARNING);
  CHECK(text.logs()[0].sentence.starts_with("no font of this machine has '" + nobody + "': an empty box is drawn"));
}

TEST_CASE("letters are cut off at the picture's edges, and far away they are nothing" * doctest::skip(!has_font())) {
  const GlyphSet glyphs("", 30, "\xc3\xa4");
  Picture whole(Pixel::gray8, 120, 80), part(Pixel::gray8, 40, 30);
  glyphs.draw(whole.span(), "W\xc3\xa4g", 40, 60, ink_of(kWhite, Pixel::gray8));
  for (const auto& [left, top] : {std::pair{30, 30}, {50, 45}, {60, 50}, {15, 35}}) {
    for (uint32_t y = 0; y < 30; ++y) std::memset(part.span().row(y), 0, 40);
    glyphs.draw(part.span(), "W\xc3\xa4g", 40 - left, 60 - top, ink_of(kWhite, Pixel::gray8));
    bool equal = true;
    for (uint32_t y = 0; y < 30; ++y)
      equal =
          equal && std::memcmp(part.view().row(y), whole.view().row(y + static_cast<uint32_t>(top)) + left, 40) == 0;
    INFO("window at " << left << ", " << top);
    CHECK(equal);
    CHECK(brightness_sum(part.view()) > 0);
  }
  Picture untouched(Pixel::gray8, 40, 30);
  for (int64_t far : {int64_t{-100000}, int64_t{100000}, int64_t{1} << 40})
    glyphs.draw(untouched.span(), "W", far, -far, ink_of(kWhite, Pixel::gray8));
  CHECK(brightness_sum(untouched.view()) == 0);
}

TEST_CASE("draw.text draws where it is told, in its input's memory or a copy of it" * doctest::skip(!has_font())) {
  for (bool in_place : {false, true}) {
    TableTest text(builtin("draw.text"), {{"text", "n {index}"}, {"x", "10"}, {"y", "-5"}, {"size", "16"}});
    text.allow_in_place(in_place);
    text.input("video", testing::image(Pixel::bgr8, 100, 60, 10));
    const Result result = text.tick();
    REQUIRE(result.ok());
    const ImageView picture = result.image("video");
    CHECK(picture.row(0)[0] == 10);
    uint8_t brightest = 0;
    for (uint32_t y = 30; y < 55; ++y)
      for (uint32_t i = 30; i < 300; ++i) brightest = std::max(brightest, picture.row(y)[i]);
    CHECK(brightest > 200);
    for (uint32_t y = 56; y < 60; ++y) CHECK(picture.row(y)[40] == 10);
  }
}

TEST_CASE("draw.text moves while it runs, and writes another index every tick" * doctest::skip(!has_font())) {
  TableTest text(builtin("draw.text"), {{"text", "{index}"}, {"x", "0"}, {"y", "0"}});
  text.input("video", testing::image(Pixel::gray8, 64, 64));
  const std::string first = drawn(text.tick().image("video")), second = drawn(text.tick().image("video"));
  CHECK(first != second);
  text.set("x", "-1");
  const std::string moved = drawn(text.tick().image("video"));
  CHECK(moved.substr(0, 32).find('#') == std::string::npos);
  CHECK(moved.find('#') != std::string::npos);
}

TEST_CASE("a box and an outline lie under the letters, and move nothing" * doctest::skip(!has_font())) {
  const auto drawn_with = [](std::initializer_list<testing::Setting> more) {
    TableTest text(builtin("draw.text"), {{"text", "Wg"}, {"x", "30"}, {"y", "20"}, {"size", "20"}});
    for (const testing::Setting& setting : more) text.set(setting.name, setting.text);
    text.input("video", testing::image(Pixel::gray8, 120, 70, 100));
    const Result result = text.tick();
    REQUIRE(result.ok());
    const ImageView view = result.image("video");
    std::vector<uint8_t> pixels;
    for (uint32_t y = 0; y < view.height(); ++y) pixels.insert(pixels.end(), view.row(y), view.row(y) + view.width());
    return pixels;
  };
  const GlyphSet glyphs("", 20);
  const auto right = static_cast<uint32_t>(30 + glyphs.width("Wg"));
  const auto bottom = static_cast<uint32_t>(20 + glyphs.ascent() + glyphs.descent());
  const auto boxed = drawn_with({{"box", "#000000"}, {"padding", "4"}});
  const auto outlined = drawn_with({{"outline", "#000000"}, {"outline_width", "3"}});
  const auto bare = drawn_with({});
  for (uint32_t y = 0; y < 70; ++y)
    for (uint32_t x = 0; x < 120; ++x) {
      const size_t at = size_t{y} * 120 + x;
      const bool in_box = x >= 26 && x < right + 4 && y >= 16 && y < bottom + 4;
      INFO(x, ",", y);
      if (!in_box) CHECK(boxed[at] == 100);
      if (in_box && bare[at] == 100) CHECK(boxed[at] == 0);
      if (bare[at] == 255) CHECK((boxed[at] == 255 && outlined[at] == 255)); // a letter's own pixels are on top
    }
  const auto darker = std::count_if(outlined.begin(), outlined.end(), [](uint8_t level) { return level == 0; });
  CHECK(darker > 100);
  CHECK(std::count(bare.begin(), bare.end(), 0) == 0);
}

TEST_CASE("an outline reaches as far as it is wide, in every direction" * doctest::skip(!has_font())) {
  const GlyphSet glyphs("", 30), wide = glyphs.outlined(4);
  const GlyphSet::Glyph &from = *glyphs.find('.'), &to = *wide.find('.');
  CHECK(to.width == from.width + 8);
  CHECK(to.height == from.height + 8);
  CHECK(to.left == from.left - 4);
  CHECK(to.top == from.top + 4);
  CHECK(wide.width("a. W") == glyphs.width("a. W"));
  const uint8_t* const mask = wide.masks().data() + to.mask;
  CHECK(mask[size_t{to.height / 2} * to.width] > 0); // the leftmost column
  CHECK(mask[to.width / 2] > 0);                     // the top row
  CHECK(mask[0] == 0);                               // a disc has no corners
  CHECK(mask[size_t{to.height} * to.width - 1] == 0);
}

TEST_CASE("draw.text with the time of day runs on the CPU alone") {
  TableTest plain(builtin("draw.text"), {{"text", "{time}"}}), clock(builtin("draw.text"), {{"text", "{utc:%H}"}});
  for (TableTest* test : {&plain, &clock}) {
    test->input("video", testing::image(Pixel::gray8, 8, 8));
    test->start();
  }
  CHECK(plain.facts().cost_gpu_ns >= 0);
  CHECK(clock.facts().cost_gpu_ns < 0);
}

TEST_CASE("draw.text shows fields of records of a type that it does not know" * doctest::skip(!has_font())) {
  const auto drawn_text = [](const char* words, bool records) {
    TableTest text(builtin("draw.text"), {{"text", words}, {"x", "2"}, {"y", "2"}});
    text.input("video", testing::image(Pixel::gray8, 120, 40));
    if (records) text.input("records", testing::records<Speed>({{}}));
    const Result result = text.tick();
    INFO(result.error);
    REQUIRE(result.ok());
    return drawn(result.image("video"));
  };
  CHECK(drawn_text("{records.per_second} in {records.count}", true) == drawn_text("12.50 in 1", false));
}

TEST_CASE("a font that is not there, or is none, is refused when the plan is made") {
  for (const char* type : {"draw.text", "draw.boxes"}) {
    TableTest missing(builtin(type), {{"font", "/no/such/font.ttf"}});
    missing.input("video", testing::image(Pixel::rgb8, 8, 8));
    CHECK(missing.start() == MR_ERROR);
    CHECK(missing.error() == "font '/no/such/font.ttf' cannot be opened");
    const std::string no_font = std::string(MILLRACE_SOURCE_DIR) + "/CMakeLists.txt";
    TableTest wrong(builtin(type), {{"font", no_font}});
    wrong.input("video", testing::image(Pixel::rgb8, 8, 8));
    CHECK(wrong.start() == MR_ERROR);
    CHECK(wrong.error() == "'" + no_font + "' is not a font that can be read");
  }
}

TEST_CASE("a colour or a text that draw.text cannot read is refused when the plan is made") {
  TableTest color(builtin("draw.text"), {{"color", "red"}});
  color.input("video", testing::image(Pixel::rgb8, 8, 8));
  CHECK(color.start() == MR_ERROR);
  CHECK(color.error() == "color 'red' is neither \"#rrggbb\" nor \"#rrggbbaa\"");
  TableTest text(builtin("draw.text"), {{"text", "{frame}"}});
  text.input("video", testing::image(Pixel::rgb8, 8, 8));
  CHECK(text.start() == MR_ERROR);
}

TEST_CASE("draw.boxes frames each box in its track's colour, in every format") {
  for (Pixel pixel : {Pixel::rgb8, Pixel::bgr8, Pixel::rgba8, Pixel::bgra8}) {
    TableTest boxes(builtin("draw.boxes"), {{"labels", "false"}, {"thickness", "1"}});
    boxes.input("video", testing::image(pixel, 20, 20, 5));
    boxes.input("boxes", testing::records<Box>({{2.4f, 3, 6, 6, 1, 0, 1}, {12, 3, 5.6f, 6, 1, 0, 13}}));
    const Result result = boxes.tick();
    REQUIRE(result.ok());
    const ImageView picture = result.image("video");
    const uint32_t size = bytes_per_pixel(pixel), red = pixel == Pixel::rgb8 || pixel == Pixel::rgba8 ? 0 : 2;
    const uint8_t *first = picture.row(3) + 2 * size, *second = picture.row(3) + 12 * size;
    CHECK(first[red] == 60); // the second colour of the palette; 13 is the second again, of twelve
    CHECK(first[1] == 180);
    CHECK(std::memcmp(first, second, size) == 0);
    CHECK(picture.row(4)[3 * size] == 5);
    CHECK(picture.row(8)[7 * size + red] == 60);
    CHECK(picture.row(9)[7 * size + red] == 5);
  }
}

TEST_CASE("draw.boxes writes the id of a track above it, and inside where there is no room" *
          doctest::skip(!has_font())) {
  const auto drawn_at = [](float top, const char* labels) {
    TableTest boxes(builtin("draw.boxes"), {{"labels", labels}});
    boxes.input("video", testing::image(Pixel::gray8, 60, 60));
    boxes.input("boxes", testing::records<Box>({{10, top, 40, 20, 1, 0, 7}}));
    return drawn(boxes.tick().image("video"));
  };
  const auto rows = [](const std::string& text, size_t from, size_t to) {
    return text.substr(from * 61, (to - from) * 61);
  };
  CHECK(rows(drawn_at(30, "true"), 0, 30).find('#') != std::string::npos);
  CHECK(rows(drawn_at(30, "false"), 0, 30).find('#') == std::string::npos);
  CHECK(rows(drawn_at(2, "true"), 4, 20) != rows(drawn_at(2, "false"), 4, 20));
  CHECK(rows(drawn_at(2, "true"), 0, 2).find('#') == std::string::npos);
}

TEST_CASE("draw.boxes without boxes hands the picture on, and boxes that are no boxes are not drawn") {
  const float nan = std::numeric_limits<float>::quiet_NaN(), inf = std::numeric_limits<float>::infinity();
  TableTest none(builtin("draw.boxes"), {{"labels", "false"}});
  none.input("video", testing::image(Pixel::gray8, 16, 16, 33));
  CHECK(brightness_sum(none.tick().image("video")) == 16 * 16 * 33);
  TableTest odd(builtin("draw.boxes"), {{"labels", "false"}});
  odd.input("video", testing::image(Pixel::gray8, 16, 16, 33));
  odd.input("boxes",
            testing::records<Box>({{nan, 1, 5, 5}, {1, 1, inf, 5}, {1, 1, -4, 5}, {1, 1, 0, 0}, {1e30f, 1, 5, 5}}));
  const Result result = odd.tick();
  REQUIRE(result.ok());
  CHECK(brightness_sum(result.image("video")) == 16 * 16 * 33);
  odd.input("boxes", {});
  CHECK(odd.tick().ok());
}
