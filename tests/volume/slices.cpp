// volume.slice as a pipeline drives it.
#include <doctest/doctest.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <string>
#include <vector>

#include "millrace/check_handler.h"
#include "millrace/payload/view.h"
#include "tests/plugin_table.h"

namespace millrace::volume::slices_test {
namespace {

using testing::Result;
using testing::Setting;
using testing::TableTest;
using testing::Value;

constexpr int64_t kDepth = 5, kHeight = 7, kWidth = 9;

const mr_handler_type& slice_type() {
  static const mr_plugin& plugin = load_plugin("volume");
  return type_of(plugin, "volume.slice");
}

// The voxel at z, y, x has the number 100 z + 10 y + x.
Value numbered_volume() {
  std::vector<uint16_t> numbers;
  for (int64_t z = 0; z < kDepth; ++z)
    for (int64_t y = 0; y < kHeight; ++y)
      for (int64_t x = 0; x < kWidth; ++x) numbers.push_back(static_cast<uint16_t>(100 * z + 10 * y + x));
  return testing::tensor<uint16_t>({kDepth, kHeight, kWidth}, numbers);
}

// The reds of a row of the picture, or all of them.
std::vector<int> reds(const Result& result) {
  const ImageView image = result.image("video");
  std::vector<int> found;
  for (uint32_t y = 0; y < image.height(); ++y)
    for (uint32_t x = 0; x < image.width(); ++x) found.push_back(image.row(y)[3 * x]);
  return found;
}

// A look under which a value of 8 bits is its level. The first contrast of that volume is from 200 to 267: the middle
// plane's 63 numbers go up to 268, and one is left out.
ViewLook plain_look() {
  constexpr float kFirstLow = 200, kFirstHigh = 267;
  ViewLook look;
  look.low = (0 - kFirstLow) / (kFirstHigh - kFirstLow);
  look.high = (255 - kFirstLow) / (kFirstHigh - kFirstLow);
  return look;
}

class Slices {
 public:
  explicit Slices(std::initializer_list<Setting> settings) : test(slice_type(), settings) {
    test.input("volume", numbered_volume());
  }
  Result next(const ViewDims& dims = {}) {
    test.input("look", testing::records<ViewLook>({plain_look()}));
    test.input("dims", testing::records<ViewDims>({dims}));
    return test.tick();
  }
  TableTest test;
};

TEST_CASE("a plane across each axis has the other two as columns and rows, x before y before z") {
  ViewDims dims;
  dims.steps[0] = 1;
  const std::vector<int> across_z =
      reds(Slices({{"width", "9"}, {"height", "7"}, {"interpolation", "nearest"}}).next(dims));
  CHECK(across_z[0] == 100);
  CHECK(across_z[1] == 101);
  CHECK(across_z[9] == 110);
  CHECK(across_z.back() == 168);
  const std::vector<int> across_y = reds(
      Slices({{"width", "9"}, {"height", "5"}, {"interpolation", "nearest"}, {"axis", "y"}, {"position", "2"}}).next());
  CHECK(across_y[0] == 20);
  CHECK(across_y[1] == 21);
  CHECK(across_y[9] == 120);
  const std::vector<int> across_x = reds(
      Slices({{"width", "7"}, {"height", "5"}, {"interpolation", "nearest"}, {"axis", "x"}, {"position", "0"}}).next());
  CHECK(across_x[0] == 0);
  CHECK(across_x[1] == 10);
  CHECK(across_x[7] == 100);
}

TEST_CASE("a thick slice shows the mean, the maximum or the minimum of the planes around its position") {
  const auto first = [](const char* projection, const char* thickness, const char* position) {
    return reds(Slices({{"width", "9"},
                        {"height", "7"},
                        {"interpolation", "nearest"},
                        {"thickness", thickness},
                        {"projection", projection},
                        {"position", position}})
                    .next())[0];
  };
  CHECK(first("mean", "3", "1") == 100);
  CHECK(first("maximum", "3", "1") == 200);
  CHECK(first("minimum", "3", "1") == 0);
  CHECK(first("mean", "2", "1") == 150); // the later one of two is beside the position
  CHECK(first("mean", "3", "0") == 50);  // there is none before the first
  CHECK(first("minimum", "100", "2") == 0);
}

TEST_CASE("dims takes precedence over the parameters, and a place beyond the last plane is the last plane") {
  Slices slices({{"width", "9"}, {"height", "7"}, {"interpolation", "nearest"}, {"position", "1"}});
  CHECK(reds(slices.next())[0] == 100);
  ViewDims dims;
  dims.steps[0] = 2;
  CHECK(reds(slices.next(dims))[0] == 200);
  dims.steps[0] = 99;
  CHECK(reds(slices.next(dims))[0] == 255); // 400
  dims = {};
  dims.axis = 1;                           // whose middle is 3: the parameter's position is for its own axis
  CHECK(reds(slices.next(dims))[9] == 30); // nine by five, between two black rows
  CHECK(reds(slices.next())[0] == 100);
}

TEST_CASE("a picture is made again when volume, camera, look or dims change, and else repeated") {
  TableTest test(slice_type(), {{"width", "18"}, {"height", "14"}});
  ViewCamera camera;
  ViewLook look;
  ViewDims dims;
  Value volume = numbered_volume();
  const auto next = [&] {
    test.input("volume", volume);
    test.input("camera", testing::records<ViewCamera>({camera}));
    test.input("look", testing::records<ViewLook>({look}));
    test.input("dims", testing::records<ViewDims>({dims}));
    return reds(test.tick());
  };
  const std::vector<int> first = next();
  CHECK(next() == first);
  camera.zoom = 2;
  CHECK(next() != first);
  camera.zoom = 1;
  look.high = 0.5F;
  CHECK(next() != first);
  look.high = 1;
  dims.steps[0] = 0;
  CHECK(next() != first);
  dims.steps[0] = -1;
  CHECK(next() == first);
  volume = testing::tensor<uint16_t>({kDepth, kHeight, kWidth}).at(1);
  CHECK(next() == std::vector<int>(18 * 14, 0));
}

TEST_CASE("controls come once and when the plane changes, and not where nobody reads them") {
  Slices slices({{"width", "9"}, {"height", "7"}, {"map", "ice"}});
  const Result first = slices.next();
  const auto controls = first.records<ViewControl>("controls");
  std::map<std::string, ViewControl> by_key;
  for (const ViewControl& control : controls) by_key[reinterpret_cast<const char*>(control.key)] = control;
  CHECK(by_key.size() == 5);
  CHECK(by_key.at("dims.axis").kind == static_cast<int32_t>(ViewControlKind::choice));
  CHECK(std::string(reinterpret_cast<const char*>(by_key.at("dims.axis").choices), 7) == std::string("z\0y\0x\0\0", 7));
  CHECK(by_key.at("dims.step").high == kDepth - 1);
  CHECK(by_key.at("dims.step").value[0] == 2);
  const ViewControl& contrast = by_key.at("look.contrast");
  CHECK(contrast.value[1] == 1);
  CHECK(contrast.low <= 0);
  CHECK(contrast.high >= 1);
  CHECK(std::accumulate(std::begin(contrast.histogram), std::end(contrast.histogram), 0U) == kHeight * kWidth);
  CHECK(contrast.histogram[0] == 1); // 200
  CHECK(by_key.at("look.gamma").value[0] == 1);
  CHECK(by_key.at("look.map").value[0] == 8);

  CHECK(!slices.next().has("controls"));
  ViewDims dims;
  dims.axis = 2;
  const Result other = slices.next(dims);
  CHECK(other.records<ViewControl>("controls")[0].value[0] == 2);
  CHECK(other.records<ViewControl>("controls")[1].high == kWidth - 1);

  Slices alone({{"width", "9"}, {"height", "7"}});
  alone.test.unconnected("controls");
  CHECK(alone.next().ok());
}

TEST_CASE("a record that makes no sense is an error that says which number or name, and what is near") {
  const auto error_of = [](const ViewCamera& camera, const ViewLook& look, const ViewDims& dims) {
    TableTest test(slice_type(), {{"width", "8"}, {"height", "8"}});
    test.input("volume", numbered_volume());
    test.input("camera", testing::records<ViewCamera>({camera}));
    test.input("look", testing::records<ViewLook>({look}));
    test.input("dims", testing::records<ViewDims>({dims}));
    return test.tick().error;
  };
  CHECK(error_of({}, {}, {}).empty());
  ViewCamera camera;
  camera.zoom = 0;
  CHECK(error_of(camera, {}, {}).find("the camera's zoom is 0") != std::string::npos);
  ViewLook look;
  look.gamma = 0;
  CHECK(error_of({}, look, {}).find("gamma") != std::string::npos);
  look = {};
  std::copy_n("virdis", 6, look.map);
  CHECK(error_of({}, look, {}).find("try: viridis") != std::string::npos);
  ViewDims dims;
  dims.axis = 3; // as a step beyond the last plane: the last axis
  CHECK(error_of({}, {}, dims).empty());
}

TEST_CASE("a plane larger than the picture is shown from a coarser level, which dims may choose") {
  std::vector<uint8_t> numbers(512 * 512);
  for (size_t i = 0; i < numbers.size(); ++i) numbers[i] = (i + i / 512) % 2 ? 255 : 0; // a chessboard
  TableTest test(slice_type(), {{"width", "64"}, {"height", "64"}, {"interpolation", "nearest"}});
  test.input("volume", testing::tensor<uint8_t>({1, 512, 512}, numbers));
  const auto next = [&](int32_t level) {
    ViewDims dims;
    dims.level = level;
    test.input("dims", testing::records<ViewDims>({dims}));
    return reds(test.tick());
  };
  CHECK(next(-1) == std::vector<int>(64 * 64, 128)); // 127.5, rounded to the even number
  CHECK(next(0)[0] % 255 == 0);
  CHECK(next(9) == std::vector<int>(64 * 64, 128));
}

TEST_CASE("a picture without the plane is black") {
  Slices slices({{"width", "9"}, {"height", "7"}});
  ViewCamera camera;
  camera.center[0] = 1000;
  slices.test.input("camera", testing::records<ViewCamera>({camera}));
  CHECK(reds(slices.next()) == std::vector<int>(63, 0));
}

} // namespace
} // namespace millrace::volume::slices_test
