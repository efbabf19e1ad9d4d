// The handlers as a pipeline drives them.
#include <doctest/doctest.h>

#include <algorithm>
#include <limits>
#include <string>
#include <vector>

#include "millrace/check_handler.h"
#include "millrace/payload/view.h"
#include "tests/plugin_table.h"

namespace millrace::volume {
namespace {

using testing::Result;
using testing::TableTest;
using testing::Value;

const mr_handler_type& handler_type(const char* type) {
  static const mr_plugin& plugin = load_plugin("volume");
  return type_of(plugin, type);
}

Value test_volume(std::initializer_list<testing::Setting> settings = {
                      {"width", "40"}, {"height", "30"}, {"depth", "20"}}) {
  TableTest test(handler_type("volume.test"), settings);
  return test.tick().value("volume");
}

std::vector<uint8_t> bytes_of(const Value& picture) {
  const ImageView image = picture.image();
  std::vector<uint8_t> bytes;
  for (uint32_t y = 0; y < image.height(); ++y)
    bytes.insert(bytes.end(), image.row(y), image.row(y) + size_t{image.width()} * 3);
  return bytes;
}

TEST_CASE("the plugin brings its handlers, each with a sentence, and a manual that ends in a line to paste") {
  const std::set<std::string> types = {"volume.file", "volume.render", "volume.slice", "volume.test"};
  CHECK(types_of(load_plugin("volume")) == types);
  for (const std::string& type : types) {
    CAPTURE(type);
    CHECK(std::string(handler_type(type.c_str()).summary).size() > 10);
    CHECK(!manual_line(handler_type(type.c_str())).empty());
  }
}

TEST_CASE("volume.test gives the same bytes again, others for another seed, and one volume") {
  const Value one = test_volume(), again = test_volume();
  const Value other = test_volume({{"width", "40"}, {"height", "30"}, {"depth", "20"}, {"seed", "2"}});
  const auto bytes = [](const Value& value) {
    const auto numbers = value.tensor().elements<uint8_t>();
    return std::vector<uint8_t>(numbers.begin(), numbers.end());
  };
  CHECK(bytes(one).size() == 40 * 30 * 20);
  CHECK(bytes(one) == bytes(again));
  CHECK(bytes(one) != bytes(other));
  uint64_t sum = 0;
  for (const uint8_t voxel : bytes(one)) sum = sum * 31 + voxel;
  CHECK(sum == 13479216092168157712U);
}

TEST_CASE("volume.render repeats its picture until volume, camera or look change") {
  TableTest test(handler_type("volume.render"), {{"width", "60"}, {"height", "40"}});
  const Value volume = test_volume();
  const auto next = [&](const ViewCamera& camera, const ViewLook& look) {
    test.input("volume", volume);
    test.input("camera", testing::records<ViewCamera>({camera}));
    test.input("look", testing::records<ViewLook>({look}));
    return bytes_of(test.tick().value("video"));
  };
  ViewCamera camera;
  ViewLook look;
  const std::vector<uint8_t> first = next(camera, look);
  CHECK(std::any_of(first.begin(), first.end(), [](uint8_t byte) { return byte > 0; }));
  CHECK(next(camera, look) == first);
  camera.angles[0] = 40;
  const std::vector<uint8_t> turned = next(camera, look);
  CHECK(turned != first);
  camera.moving = 1;
  CHECK(next(camera, look) != turned);
  camera.moving = 0;
  CHECK(next(camera, look) == turned);
  look.high = 0.3F;
  CHECK(next(camera, look) != turned);
}

TEST_CASE("a camera or a look that makes no sense is an error that says which number") {
  const auto error_of = [](const ViewCamera& camera, const ViewLook& look) {
    TableTest test(handler_type("volume.render"), {{"width", "8"}, {"height", "8"}});
    test.input("volume", test_volume());
    test.input("camera", testing::records<ViewCamera>({camera}));
    test.input("look", testing::records<ViewLook>({look}));
    return test.tick().error;
  };
  CHECK(error_of({}, {}).empty());
  ViewCamera camera;
  camera.zoom = 0;
  CHECK(error_of(camera, {}).find("the camera's zoom is 0") != std::string::npos);
  camera.zoom = std::numeric_limits<float>::quiet_NaN();
  CHECK(error_of(camera, {}).find("zoom") != std::string::npos);
  camera = {};
  camera.center[2] = std::numeric_limits<float>::infinity();
  CHECK(error_of(camera, {}).find("center") != std::string::npos);
  ViewLook look;
  look.gamma = -1;
  CHECK(error_of({}, look).find("gamma") != std::string::npos);
}

// A name in a look.
template <size_t N>
void set_name(uint8_t (&bytes)[N], std::string_view name) {
  std::fill(std::begin(bytes), std::end(bytes), uint8_t{0});
  std::copy(name.begin(), name.end(), bytes);
}

std::vector<uint8_t> rendered(std::initializer_list<testing::Setting> settings, const ViewLook& look) {
  TableTest test(handler_type("volume.render"), settings);
  test.set("width", "60");
  test.set("height", "40");
  test.input("volume", test_volume());
  test.input("look", testing::records<ViewLook>({look}));
  return bytes_of(test.tick().value("video"));
}

TEST_CASE("mode, map and surface of a look stand in for the parameters") {
  const std::vector<uint8_t> plain = rendered({}, {});
  for (const char* const mode : {"maximum", "average", "iso"}) {
    CAPTURE(mode);
    ViewLook look;
    set_name(look.mode, mode);
    CHECK(rendered({}, look) == rendered({{"mode", mode}}, {}));
    CHECK(rendered({}, look) != plain);
  }
  ViewLook look;
  set_name(look.map, "viridis");
  CHECK(rendered({}, look) == rendered({{"map", "viridis"}}, {}));
  CHECK(rendered({}, look) != plain);
  look = {};
  look.iso = 0.25F;
  CHECK(rendered({{"mode", "iso"}}, look) == rendered({{"mode", "iso"}, {"iso", "0.25"}}, {}));
  CHECK(rendered({{"mode", "iso"}}, look) != rendered({{"mode", "iso"}}, {}));
}

TEST_CASE("a look of a wrong name or crop is an error that says what there is") {
  const auto error_of = [](const ViewLook& look) {
    TableTest test(handler_type("volume.render"), {{"width", "8"}, {"height", "8"}});
    test.input("volume", test_volume());
    test.input("look", testing::records<ViewLook>({look}));
    return test.tick().error;
  };
  ViewLook look;
  set_name(look.mode, "fog");
  CHECK(error_of(look).find("the look's mode is \"fog\", and may be maximum, translucent, average, iso") !=
        std::string::npos);
  look = {};
  std::fill(std::begin(look.map), std::end(look.map), uint8_t{'f'}); // nothing ends it
  CHECK(error_of(look).find("the look's map is \"ffffffffffffffff\", and may be gray, red") != std::string::npos);
  look = {};
  look.iso = 1.5F;
  CHECK(error_of(look).find("the look's iso is 1.5") != std::string::npos);
  look = {};
  look.crop_low[1] = -0.5F;
  CHECK(error_of(look).find("the look's crop_low is -0.5") != std::string::npos);
  look.crop_low[1] = 0.75F;
  look.crop_high[1] = 0.5F;
  CHECK(error_of(look).find("the look's crop_high is 0.500000, and may be 0.750000 to 1") != std::string::npos);
}

TEST_CASE("volume.render offers its controls once for a volume, with the parameters' values") {
  TableTest test(handler_type("volume.render"),
                 {{"width", "8"}, {"height", "8"}, {"mode", "iso"}, {"map", "ice"}, {"iso", "0.25"}});
  const Value volume = test_volume();
  test.input("volume", volume);
  const Result result = test.tick();
  const std::span<const ViewControl> controls = result.records<ViewControl>("controls");
  std::vector<std::string> keys;
  for (const ViewControl& control : controls) keys.emplace_back(reinterpret_cast<const char*>(control.key));
  CHECK(keys == std::vector<std::string>{"look.mode", "look.map", "look.contrast", "look.gamma", "look.opacity",
                                         "look.iso", "look.crop_x", "look.crop_y", "look.crop_z"});
  CHECK(controls[0].value[0] == 3); // maximum, translucent, average, iso
  CHECK(std::string(reinterpret_cast<const char*>(controls[1].choices)) == "gray");
  CHECK(controls[1].value[0] == 8);
  CHECK(controls[2].value[0] == 0);
  CHECK(controls[2].value[1] == 1);
  CHECK(controls[5].value[0] == 0.25F);
  test.input("volume", volume);
  CHECK(!test.tick().has("controls"));
  test.input("volume", test_volume());
  CHECK(test.tick().has("controls"));
}

TEST_CASE("without camera and look the volume is seen from its front") {
  TableTest test(handler_type("volume.render"), {{"width", "60"}, {"height", "40"}});
  test.input("volume", test_volume());
  const std::vector<uint8_t> alone = bytes_of(test.tick().value("video"));
  TableTest other(handler_type("volume.render"), {{"width", "60"}, {"height", "40"}});
  other.input("volume", test_volume());
  other.input("camera", testing::records<ViewCamera>({ViewCamera()}));
  CHECK(bytes_of(other.tick().value("video")) == alone);
}

} // namespace
} // namespace millrace::volume
