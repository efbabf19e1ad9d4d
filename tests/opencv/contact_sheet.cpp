// Contact sheets: which pictures they keep, and where those are.
#include "plugins/opencv/contact_sheet.h"

#include <doctest/doctest.h>

#include "plugins/opencv/output_path.h"

namespace {

using millrace::opencv::ContactSheet;

// A picture of one grey, so that its tile is of exactly that grey.
cv::Mat picture_of(int grey) { return {20, 40, CV_8UC3, cv::Scalar::all(grey)}; }

} // namespace

TEST_CASE("a contact sheet has its tiles in rows, with black between them and behind the last") {
  ContactSheet sheet(2, 20, 16, 1);
  for (int i = 1; i <= 3; ++i) sheet.add(picture_of(50 * i));
  const cv::Mat result = sheet.compose();
  CHECK(result.size() == cv::Size(20 + 4 + 20, 10 + 4 + 10));
  CHECK(result.at<cv::Vec3b>(0, 0) == cv::Vec3b::all(50));
  CHECK(result.at<cv::Vec3b>(9, 43) == cv::Vec3b::all(100));
  CHECK(result.at<cv::Vec3b>(14, 0) == cv::Vec3b::all(150));
  CHECK(result.at<cv::Vec3b>(0, 21) == cv::Vec3b::all(0));  // the gap
  CHECK(result.at<cv::Vec3b>(20, 40) == cv::Vec3b::all(0)); // no fourth tile
}

TEST_CASE("a full contact sheet thins itself and still spans the whole stream") {
  ContactSheet sheet(4, 20, 4, 1);
  for (int i = 0; i < 13; ++i) sheet.add(picture_of(i * 10));
  // 0 1 2 3 | 0 2 4 6 | 0 4 8 12
  CHECK(sheet.step() == 4);
  CHECK(sheet.tile_count() == 4);
  const cv::Mat result = sheet.compose();
  for (int i = 0; i < 4; ++i) CHECK(result.at<cv::Vec3b>(0, i * 24) == cv::Vec3b::all(static_cast<uint8_t>(i * 40)));
}

TEST_CASE("a contact sheet with an odd number of tiles thins to pictures that its new step would keep") {
  ContactSheet sheet(8, 20, 3, 2);
  for (int i = 0; i < 20; ++i) sheet.add(picture_of(i * 10));
  // 0 2 4 | 0 4 8 | 0 8 16
  CHECK(sheet.step() == 8);
  const cv::Mat result = sheet.compose();
  REQUIRE(result.cols == 3 * 24 - 4);
  for (int i = 0; i < 3; ++i) CHECK(result.at<cv::Vec3b>(0, i * 24) == cv::Vec3b::all(static_cast<uint8_t>(i * 80)));
}

TEST_CASE("a contact sheet of nothing is empty, and so is a cleared one") {
  ContactSheet sheet(4, 20, 4, 3);
  CHECK(sheet.compose().empty());
  for (int i = 0; i < 40; ++i) sheet.add(picture_of(i));
  sheet.clear();
  CHECK(sheet.compose().empty());
  CHECK(sheet.step() == 3);
}

TEST_CASE("numbered paths put six digits in every place of {index}") {
  using namespace millrace::opencv;
  CHECK(numbered_path("out/a-{index}.png", 42) == "out/a-000042.png");
  CHECK(numbered_path("{index}/{index}.png", 12345678) == "12345678/12345678.png");
  CHECK(numbered_path("plain.png", 1) == "plain.png");
  CHECK(has_index("a{index}"));
  CHECK(!has_index("a{inde}"));
  CHECK(numbered_path("a-%06d.png", 42) == "a-000042.png");
  CHECK(numbered_path("50%-%d.png", 42) == "50%-42.png");
  CHECK(numbered_path("%d-{index}.png", 42) == "%d-000042.png");
  CHECK(!has_index("100%.png"));
  CHECK(extension_of("out.d/Demo.MP4") == ".mp4");
  CHECK(extension_of("out.d/demo").empty());
}
