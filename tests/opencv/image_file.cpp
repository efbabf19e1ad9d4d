// image.file: single pictures and lists, sizes that differ, and files that are no pictures.
#include <doctest/doctest.h>

#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include <opencv2/imgcodecs.hpp>

#include "plugins/opencv/fit_picture.h"
#include "plugins/opencv/picture_file.h"
#include "plugins/opencv/picture_list.h"
#include "tests/file_bytes.h"
#include "tests/opencv/plugin.h"

namespace millrace::opencv {
namespace {

using testing::Result;
using testing::Setting;
using testing::TableTest;

// A folder of this test's own with pictures that are filled with their number.
std::string folder_of(const std::string& name, const std::vector<std::pair<std::string, cv::Scalar>>& pictures,
                      const cv::Size& size = {8, 6}) {
  const std::string folder = scratch(name);
  std::filesystem::create_directories(folder);
  for (const auto& [file, colour] : pictures) REQUIRE(cv::imwrite(folder + "/" + file, cv::Mat(size, CV_8UC3, colour)));
  return folder;
}

// The first byte of each picture until the end, at most `count_max` of them.
std::vector<int> given(TableTest& file, size_t count_max = 100) {
  std::vector<int> values;
  for (Result result = file.tick(); !result.end() && values.size() < count_max; result = file.tick()) {
    INFO(result.error);
    REQUIRE(result.ok());
    values.push_back(result.image("video").row(0)[0]);
  }
  return values;
}

std::string refusal(const std::string& path) {
  TableTest file(handler_type("image.file"), {{"path", path}});
  CHECK(file.start() == MR_ERROR);
  return file.error();
}

} // namespace

TEST_CASE("a pattern gives its files in natural order, and then ends") {
  const std::string folder = folder_of("list", {{"f10.png", cv::Scalar::all(10)},
                                                {"f9.png", cv::Scalar::all(9)},
                                                {"f1.png", cv::Scalar::all(1)},
                                                {"other.png", cv::Scalar::all(77)}});
  std::filesystem::create_directory(folder + "/f2.png"); // a folder is no picture
  TableTest file(handler_type("image.file"), {{"path", folder + "/f*.png"}});
  REQUIRE(file.start() == MR_OK);
  CHECK(file.facts().tick_count == 3);
  CHECK(file.facts().rate_num == 0);
  CHECK(file.format("video").width == 8);
  CHECK(file.format("video").height == 6);
  CHECK(file.format("video").pixel_formats == bit_of(Pixel::bgr8));
  CHECK(given(file) == std::vector<int>{1, 9, 10});
  CHECK(file.tick().end());
}

TEST_CASE("a list is repeated as often as is asked, or without end") {
  const std::string folder = folder_of("repeated", {{"1.png", cv::Scalar::all(1)}, {"2.png", cv::Scalar::all(2)}});
  TableTest thrice(handler_type("image.file"), {{"path", folder + "/*.png"}, {"repeat", "3"}});
  CHECK(given(thrice) == std::vector<int>{1, 2, 1, 2, 1, 2});
  CHECK(thrice.facts().tick_count == 6);
  TableTest endless(handler_type("image.file"), {{"path", folder + "/*.png"}, {"loop", "true"}});
  CHECK(given(endless, 50).size() == 50);
  CHECK(endless.facts().tick_count == -1);
}

TEST_CASE("a list with a rate has exact times, and a reset begins it again") {
  const std::string folder = folder_of("timed", {{"1.png", cv::Scalar::all(1)}, {"2.png", cv::Scalar::all(2)}});
  TableTest file(handler_type("image.file"), {{"path", folder + "/*.png"}, {"repeat", "2"}, {"fps", "29.97"}});
  for (int64_t i = 0; i < 4; ++i) {
    const Result result = file.tick();
    REQUIRE(result.ok());
    CHECK(result.value("video").header().pts_ns == i * 1001 * 1'000'000'000 / 30000);
  }
  CHECK(file.facts().rate_num == 30000);
  CHECK(file.facts().rate_den == 1001);
  CHECK(file.tick().end());
  REQUIRE(file.reset() == MR_OK);
  CHECK(given(file) == std::vector<int>{1, 2, 1, 2});
  REQUIRE(file.stop() == MR_OK);
  CHECK(given(file) == std::vector<int>{1, 2, 1, 2});
}

TEST_CASE("a file whose name looks like a pattern is that file") {
  const std::string folder = folder_of("brackets", {{"[1].png", cv::Scalar::all(5)}, {"1.png", cv::Scalar::all(6)}});
  CHECK(pictures_of(folder + "/[1].png") == std::vector<std::string>{folder + "/[1].png"});
  CHECK(pictures_of(folder + "/[0-9].png") == std::vector<std::string>{folder + "/1.png"});
}

TEST_CASE("a folder that is there may be called like a pattern, and the pattern begins after it") {
  const std::string odd =
      folder_of("shots [1] %d {x}*?", {{"f1.png", cv::Scalar::all(1)}, {"f2.png", cv::Scalar::all(2)}});
  folder_of("shots 1 5 {x}yz", {{"f1.png", cv::Scalar::all(9)}}); // what the folder's name would match
  for (const char* name : {"/*.png", "/f[12].png", "/f%d.png"}) {
    TableTest file(handler_type("image.file"), {{"path", odd + name}});
    CHECK(given(file) == std::vector{1, 2});
  }
  TableTest one(handler_type("image.file"), {{"path", odd + "/f2.png"}});
  CHECK(given(one) == std::vector{2});
  CHECK(refusal(odd + "/none.png") == "cannot read the picture '" + odd + "/none.png': there is no such file");
  TableTest writer(handler_type("image.writer"), {{"path", odd + "/out-%02d.png"}});
  writer.input("video", testing::image(Pixel::bgr8, 8, 6, uint8_t{3}));
  CHECK(writer.tick().ok());
  CHECK(std::filesystem::exists(odd + "/out-00.png"));
}

TEST_CASE("a picture of another size than the first is refused, fitted in or stretched, as is asked") {
  const std::string folder = folder_of("sizes", {{"1.png", cv::Scalar::all(50)}}, {8, 8});
  REQUIRE(cv::imwrite(folder + "/2.png", cv::Mat(4, 8, CV_8UC3, cv::Scalar::all(90))));
  TableTest refused(handler_type("image.file"), {{"path", folder + "/*.png"}});
  CHECK(refused.tick().ok());
  CHECK(refused.tick().error == "the picture '" + folder +
                                    "/2.png' is 8 × 4, the first was 8 × 8; `sizes: fit` or "
                                    "`sizes: stretch` would scale it");
  TableTest fit(handler_type("image.file"), {{"path", folder + "/*.png"}, {"sizes", "fit"}});
  TableTest stretched(handler_type("image.file"), {{"path", folder + "/*.png"}, {"sizes", "stretch"}});
  fit.tick();
  stretched.tick();
  const Result bordered = fit.tick(), filled = stretched.tick();
  for (uint32_t y = 0; y < 8; ++y) {
    CHECK(int{bordered.image("video").row(y)[12]} == (y >= 2 && y < 6 ? 90 : 0));
    CHECK(int{filled.image("video").row(y)[12]} == 90);
  }
}

TEST_CASE("what is fitted keeps its proportions, lies in the middle, and never vanishes") {
  CHECK(fitted({100, 50}, {40, 40}) == cv::Rect(0, 10, 40, 20));
  CHECK(fitted({50, 100}, {40, 40}) == cv::Rect(10, 0, 20, 40));
  CHECK(fitted({3, 3}, {3, 3}) == cv::Rect(0, 0, 3, 3));
  CHECK(fitted({10000, 1}, {20, 20}) == cv::Rect(0, 9, 20, 1));
  CHECK(fitted({1, 10000}, {1, 1}) == cv::Rect(0, 0, 1, 1));
}

TEST_CASE("transparency is kept where it is asked for, and what has none is opaque") {
  const std::string folder = folder_of("alpha", {{"2-plain.png", cv::Scalar(1, 2, 3)}});
  REQUIRE(cv::imwrite(folder + "/1-clear.png", cv::Mat(6, 8, CV_8UC4, cv::Scalar(4, 5, 6, 7))));
  REQUIRE(cv::imwrite(folder + "/3-grey.png", cv::Mat(6, 8, CV_8UC1, cv::Scalar(9))));
  REQUIRE(cv::imwrite(folder + "/4-deep.png", cv::Mat(6, 8, CV_16UC4, cv::Scalar(257, 514, 771, 65535))));
  TableTest file(handler_type("image.file"), {{"path", folder + "/*.png"}, {"alpha", "true"}});
  const std::vector<std::vector<int>> expected = {{4, 5, 6, 7}, {1, 2, 3, 255}, {9, 9, 9, 255}, {1, 2, 3, 255}};
  for (const std::vector<int>& pixel : expected) {
    const Result result = file.tick();
    REQUIRE(result.ok());
    REQUIRE(result.image("video").pixel() == Pixel::bgra8);
    const uint8_t* bytes = result.image("video").row(3) + 4;
    CHECK(std::vector<int>(bytes, bytes + 4) == pixel);
  }
}

TEST_CASE("a picture that is missing, empty, a folder, a device or no picture is refused in a sentence that names it") {
  CHECK(refusal("no/such.png") == "cannot read the picture 'no/such.png': there is no such file");
  CHECK(refusal("no/such*.png") == "cannot read the picture 'no/such*.png': no file matches the pattern");
  const std::string empty = scratch("empty.png"), text = scratch("text.png"), folder = scratch("folder.png");
  put_bytes(empty, "");
  put_bytes(text, std::string(5000, 'x'));
  std::filesystem::create_directory(folder);
  CHECK(refusal(empty) == "cannot read the picture '" + empty + "': the file is empty");
  CHECK(refusal(text) == "cannot read the picture '" + text + "': the file is damaged or of a kind that is not known");
  CHECK(refusal(folder) == "cannot read the picture '" + folder + "': it is a folder; '" + folder +
                               "/*.png' would give the pictures in it\ntry: path=" + folder + "/*.png");
  put_bytes(folder + "/a.jpg", "x");
  CHECK(refusal(folder).ends_with("\ntry: path=" + folder + "/*.jpg"));
  const std::string film = scratch("film.png");
  put_bytes(film, std::string("\0\0\0\x18", 4) + "ftypisom" + std::string(100, 'x'));
  CHECK(refusal(film) ==
        "cannot read the picture '" + film + "': it is a video, which video.file reads\ntry: type=video.file");
  CHECK(refusal("/dev/zero") == "cannot read the picture '/dev/zero': it is not a regular file");
  const std::string dangling = scratch("dangling.png");
  std::filesystem::create_symlink("nowhere.png", dangling);
  CHECK(refusal(dangling) == "cannot read the picture '" + dangling + "': it is not a regular file");
}

TEST_CASE("a number in the file's name gives the numbers that are there, from the lowest on, whatever gaps there are") {
  const std::string folder = folder_of("numbers", {{"f000012.png", cv::Scalar::all(12)},
                                                   {"f000003.png", cv::Scalar::all(3)},
                                                   {"f1000000.png", cv::Scalar::all(100)},
                                                   {"f5.png", cv::Scalar::all(5)},
                                                   {"f07.png", cv::Scalar::all(7)},
                                                   {"f-00001.png", cv::Scalar::all(91)},
                                                   {"f000004x.png", cv::Scalar::all(92)},
                                                   {"f.png", cv::Scalar::all(93)}});
  std::filesystem::create_directory(folder + "/f000005.png"); // a folder is no picture
  const auto of = [&](const std::string& name) {
    TableTest file(handler_type("image.file"), {{"path", folder + "/" + name}});
    return given(file);
  };
  CHECK(of("f%06d.png") == std::vector<int>{3, 12, 100});
  CHECK(of("f%d.png") == std::vector<int>{5, 100});
  CHECK(of("f%02d.png") == std::vector<int>{7, 100});
  // A file of exactly this name comes first.
  REQUIRE(cv::imwrite(folder + "/f%06d.png", cv::Mat(6, 8, CV_8UC3, cv::Scalar::all(50))));
  CHECK(of("f%06d.png") == std::vector<int>{50});
  CHECK(refusal(folder + "/g%06d.png") ==
        "cannot read the picture '" + folder + "/g%06d.png': no file matches the pattern");
  CHECK(refusal(folder + "/%d/x.png").ends_with("its number is in the name of a folder"));
  CHECK(refusal(folder + "/none/%d.png").ends_with("none/': No such file or directory"));
}

TEST_CASE("what image.writer numbers with %06d, image.file reads back in order") {
  const std::string pattern = scratch("round-%06d.png");
  TableTest writer(handler_type("image.writer"), {{"path", pattern}});
  for (uint8_t i = 0; i < 12; ++i) {
    writer.input("video", testing::image(Pixel::bgr8, 8, 6, i));
    REQUIRE(writer.tick().ok());
  }
  TableTest file(handler_type("image.file"), {{"path", pattern}});
  CHECK(given(file) == std::vector<int>{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11});
}

TEST_CASE("a file of a list that vanishes or is cut off before its turn is an error that names it") {
  const std::string folder = folder_of("vanishing", {{"1.png", cv::Scalar::all(1)}, {"2.png", cv::Scalar::all(2)}});
  TableTest file(handler_type("image.file"), {{"path", folder + "/*.png"}, {"loop", "true"}});
  CHECK(file.tick().ok());
  const std::string bytes = bytes_of(folder + "/2.png");
  put_bytes(folder + "/2.png", bytes.substr(0, bytes.size() - 5));
  CHECK(file.tick().error == "cannot read the picture '" + folder + "/2.png': the file is cut off");
  std::filesystem::remove(folder + "/2.png");
  CHECK(file.tick().error == "cannot read the picture '" + folder + "/2.png': there is no such file");
}

TEST_CASE("a cut off picture is refused in every format, wherever it is cut") {
  cv::Mat noise(40, 60, CV_8UC3);
  cv::randu(noise, 0, 255);
  for (const char* extension : {".png", ".jpg", ".bmp", ".tiff", ".webp", ".ppm"}) {
    const std::string whole = scratch(std::string("noise") + extension),
                      part = scratch(std::string("part") + extension);
    REQUIRE(cv::imwrite(whole, noise));
    const std::string bytes = bytes_of(whole);
    CHECK(read_picture(whole, false).size() == noise.size());
    for (const double share : {0.01, 0.3, 0.6, 0.9, 0.99}) {
      put_bytes(part, bytes.substr(0, static_cast<size_t>(share * static_cast<double>(bytes.size()))));
      INFO(extension, " cut at ", share);
      CHECK_THROWS_AS(read_picture(part, false), std::runtime_error);
    }
  }
}

TEST_CASE("an end of image inside the header of a JPEG file, as of a thumbnail, is not its end") {
  const std::vector<unsigned char> header = {0xFF, 0xD8, 0xFF, 0xE1, 0, 6, 1, 0xFF, 0xD9, 2, 0xFF, 0xDA, 0, 2, 5, 6};
  std::vector<unsigned char> whole = header;
  whole.insert(whole.end(), {0xFF, 0xD9, 0, 0});
  CHECK(!reaches_its_end(header));
  CHECK(reaches_its_end(whole));
}

} // namespace millrace::opencv
