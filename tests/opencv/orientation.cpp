// How pictures lie and what their alpha means: files of all orientations and kinds come as they are to be seen.
#include <doctest/doctest.h>

#include <cstdlib>
#include <string>
#include <vector>

#include <opencv2/imgcodecs.hpp>

#include "plugins/opencv/picture_file.h"
#include "plugins/opencv/picture_tags.h"
#include "tests/contains.h"
#include "tests/file_bytes.h"
#include "tests/opencv/lying_pictures.h"
#include "tests/opencv/plugin.h"

namespace millrace::opencv {
namespace {

using namespace test;

cv::Mat read(const std::string& bytes, bool alpha, std::string* note = nullptr) {
  const std::string path = scratch("lying-picture");
  put_bytes(path, bytes);
  return read_picture(path, alpha, note);
}

std::string refusal_of(const std::string& bytes) {
  try {
    read(bytes, false);
  } catch (const std::runtime_error& error) {
    return error.what();
  }
  return "";
}

// By how much the picture differs from what is to be seen; 999 if it is of another size. `alpha` 0: it has none.
int difference(const cv::Mat& picture, bool is_grey, int alpha) {
  if (picture.cols != static_cast<int>(kSeenWidth) || picture.rows != static_cast<int>(kSeenHeight)) return 999;
  if (picture.channels() != (alpha > 0 ? 4 : 3)) return 998;
  int most = 0;
  for (int y = 0; y < picture.rows; ++y)
    for (int x = 0; x < picture.cols; ++x) {
      const Colour& seen = kSeen[static_cast<size_t>(y) * kSeenWidth + static_cast<size_t>(x)];
      const uint8_t* const pixel = picture.ptr(y) + x * picture.channels();
      for (int c = 0; c < 3; ++c)
        most = std::max(most, std::abs(pixel[c] - (is_grey ? seen[1] : seen[static_cast<size_t>(2 - c)])));
      if (alpha > 0) most = std::max(most, std::abs(pixel[3] - alpha));
    }
  return most;
}

// A WebP file with EXIF data around the picture of one without.
std::string webp(int orientation, bool alpha) {
  const auto rows = stored(orientation);
  cv::Mat picture(static_cast<int>(rows.size()), static_cast<int>(rows[0].size()), alpha ? CV_8UC4 : CV_8UC3);
  for (int y = 0; y < picture.rows; ++y)
    for (int x = 0; x < picture.cols; ++x) {
      const Colour& colour = rows[static_cast<size_t>(y)][static_cast<size_t>(x)];
      uint8_t* const pixel = picture.ptr(y) + x * picture.channels();
      for (size_t c = 0; c < 3; ++c) pixel[c] = colour[2 - c];
      if (alpha) pixel[3] = 100;
    }
  std::vector<unsigned char> bytes;
  REQUIRE(cv::imencode(".webp", picture, bytes, {cv::IMWRITE_WEBP_QUALITY, 101})); // above 100: lossless
  const std::string plain(bytes.begin(), bytes.end());
  REQUIRE(plain.substr(12, 4) == "VP8L");
  const std::string data = exif(orientation);
  const std::string head = "VP8X" + little(10, 4) + static_cast<char>(alpha ? 0x18 : 0x08) + std::string(3, '\0') +
                           little(rows[0].size() - 1, 3) + little(rows.size() - 1, 3);
  const std::string body = "WEBP" + head + plain.substr(12) + "EXIF" + little(data.size(), 4) + data;
  return "RIFF" + little(body.size(), 4) + body;
}

// A JPEG of this size is not exact, so it is larger: each pixel 16 × 16.
std::string jpeg(int orientation, cv::Size& size) {
  const auto rows = stored(orientation);
  cv::Mat picture(static_cast<int>(rows.size()) * 16, static_cast<int>(rows[0].size()) * 16, CV_8UC3);
  for (int y = 0; y < picture.rows; ++y)
    for (int x = 0; x < picture.cols; ++x)
      for (size_t c = 0; c < 3; ++c)
        picture.ptr(y)[x * 3 + static_cast<int>(c)] =
            rows[static_cast<size_t>(y / 16)][static_cast<size_t>(x / 16)][2 - c];
  size = picture.size();
  std::vector<unsigned char> bytes;
  REQUIRE(cv::imencode(".jpg", picture, bytes, {cv::IMWRITE_JPEG_QUALITY, 100}));
  const std::string plain(bytes.begin(), bytes.end()), data = std::string("Exif\0\0", 6) + exif(orientation);
  return plain.substr(0, 2) + "\xff\xe1" + big(data.size() + 2, 2) + data + plain.substr(2);
}

} // namespace

TEST_CASE("PNG files of every orientation and kind are upright, with and without alpha") {
  for (int orientation = 1; orientation <= 8; ++orientation)
    for (const PngKind kind : {PngKind::grey, PngKind::rgb, PngKind::palette, PngKind::grey_alpha, PngKind::rgba}) {
      CAPTURE(orientation);
      CAPTURE(static_cast<int>(kind));
      const bool is_grey = kind == PngKind::grey || kind == PngKind::grey_alpha;
      const bool is_opaque = kind == PngKind::grey || kind == PngKind::rgb;
      const std::string file = png(orientation, kind, 100);
      CHECK(difference(read(file, false), is_grey, 0) == 0);
      CHECK(difference(read(file, true), is_grey, is_opaque ? 255 : 100) == 0);
    }
}

TEST_CASE("WebP and JPEG files of every orientation are upright") {
  for (int orientation = 1; orientation <= 8; ++orientation) {
    CAPTURE(orientation);
    for (const bool transparent : {false, true}) {
      const std::string file = webp(orientation, transparent);
      CHECK(difference(read(file, false), false, 0) == 0);
      CHECK(difference(read(file, true), false, transparent ? 100 : 255) == 0);
    }
    cv::Size size;
    const std::string file = jpeg(orientation, size);
    const cv::Mat picture = read(file, false);
    REQUIRE(picture.cols == static_cast<int>(kSeenWidth) * 16);
    for (size_t i = 0; i < kSeen.size(); ++i) {
      const auto pixel =
          picture.at<cv::Vec3b>(static_cast<int>(i / kSeenWidth) * 16 + 8, static_cast<int>(i % kSeenWidth) * 16 + 8);
      for (int c = 0; c < 3; ++c) CHECK(std::abs(pixel[c] - kSeen[i][static_cast<size_t>(2 - c)]) < 24);
    }
  }
}

TEST_CASE("TIFF files of every orientation are upright, and their colours are not multiplied by alpha") {
  for (int orientation = 1; orientation <= 8; ++orientation)
    for (const bool is_big_endian : {false, true})
      for (const uint16_t bits : {uint16_t{8}, uint16_t{16}}) {
        CAPTURE(orientation);
        CAPTURE(is_big_endian);
        CAPTURE(bits);
        TiffForm form;
        form.is_big_endian = is_big_endian;
        form.bits = bits;
        CHECK(difference(read(tiff(orientation, form), false), false, 0) == 0);
        CHECK(difference(read(tiff(orientation, form), true), false, 255) == 0);
        form.samples = 4;
        form.extra = 2;
        for (const uint8_t alpha : {uint8_t{100}, uint8_t{3}}) {
          form.alpha = alpha;
          CHECK(difference(read(tiff(orientation, form), true), false, alpha) == 0);
          CHECK(difference(read(tiff(orientation, form), false), false, 0) == 0);
        }
        form.extra = 1; // multiplied: rounded colours are divided by alpha
        form.alpha = 100;
        CHECK(difference(read(tiff(orientation, form), true), false, 100) <= 2);
        CHECK(difference(read(tiff(orientation, form), false), false, 0) <= 2);
      }
}

TEST_CASE("whole files that are not read are refused by what they are, and not as damaged") {
  const std::string after = "cannot read the picture '" + scratch("lying-picture") + "': ";
  CHECK(refusal_of("GIF89a" + std::string(100, '\0')) ==
        after + "it is a GIF, which video.file reads\ntry: type=video.file");
  std::string animated = webp(1, false);
  animated[20] = static_cast<char>(animated[20] | 0x02);
  animated.replace(animated.find("VP8L"), 4, "ANIM"); // its pictures come in pieces of their own
  CHECK(contains(refusal_of(animated), "it is an animated WebP, and neither image.file nor video.file reads those"));
  CHECK(
      contains(refusal_of(std::string("\0\0\0\x18", 4) + "ftypheic" + std::string(50, '\0')), "it is an HEIC picture"));
  TiffForm form;
  form.bits = 32;
  form.format = 3;
  CHECK(refusal_of(tiff(1, form)) == after +
                                         "its pixels are floating-point numbers of 32 bits; TIFF is read with whole "
                                         "numbers of 8 or 16 bits, 0 for black");
  form.format = 2;
  form.bits = 8;
  CHECK(contains(refusal_of(tiff(1, form)), "its pixels are signed numbers of 8 bits"));
}

TEST_CASE("a note says that a file has more pictures than the one that is read") {
  std::string note = "earlier";
  read(png(1, PngKind::rgb, 255), false, &note);
  CHECK(note == "");
  read(png(1, PngKind::rgb, 255, png_chunk("acTL", big(3, 4) + big(0, 4))), false, &note);
  CHECK(contains(note, "is an animated PNG: its first picture is read, and video.file reads all"));
  TiffForm form;
  form.pages = 2;
  read(tiff(1, form), false, &note);
  CHECK(contains(note, "has several pages: its first one is read"));
  form.pages = 1;
  read(tiff(1, form), false, &note);
  CHECK(note == "");
  const std::string path = scratch("pages.tif");
  form.pages = 3;
  put_bytes(path, tiff(1, form));
  testing::TableTest file(handler_type("image.file"), {{"path", path}, {"repeat", "2"}});
  CHECK(file.tick().ok());
  CHECK(file.tick().ok());
  REQUIRE(file.logs().size() == 1);
  CHECK(file.logs()[0].level == MR_LOG_INFO);
}

TEST_CASE("tags that are damaged or go in circles are left out, and no byte of a file is read that is not there") {
  for (const std::string& whole :
       {tiff(6, {4, 2, 1, 8, 9, false, 2}), png(6, PngKind::rgba, 9), webp(6, false), exif(6)})
    for (size_t at = 0; at < whole.size(); ++at)
      for (const int byte : {0, 1, 0x7F, 0xFF}) {
        std::vector<unsigned char> bytes(whole.begin(), whole.end());
        bytes[at] = static_cast<unsigned char>(byte);
        const std::vector<unsigned char> cut(bytes.begin(), bytes.begin() + static_cast<ptrdiff_t>(at));
        for (const auto& file : {bytes, cut}) {
          const int orientation = exif_orientation(file);
          CHECK((orientation >= 1 && orientation <= 8));
          CHECK(tiff_pages(file) <= 2);
          CHECK(TiffTags(file).value(kTagOrientation).value_or(0) <= 0xFFFF);
        }
      }
}

} // namespace millrace::opencv
