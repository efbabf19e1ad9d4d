// Samples of values: pictures of every format against a plain formula, tensors, records and packets.
#include "exec/tap_sample.h"

#include <doctest/doctest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <map>
#include <random>
#include <vector>

#include "tests/seed.h"

using namespace millrace;

namespace {

using exec::ShownPicture, exec::ShownTensor, exec::ShownRecords, exec::ShownPacket, exec::ValuePick, exec::TapSample;

// A value and its bytes.
struct Made {
  mr_value value{};
  std::vector<uint8_t> bytes;
};

mr_format format_of(const mr_image& image) {
  mr_format format{};
  format.size = sizeof format;
  format.kind = MR_KIND_IMAGE;
  format.pixel_formats = uint64_t{1} << image.format;
  format.width = image.width;
  format.height = image.height;
  return format;
}

// Random bytes, with rows that are `more` bytes further apart than they have to be.
Made make_picture(Pixel pixel, uint32_t width, uint32_t height, uint32_t more, std::mt19937& random) {
  Made made;
  made.value.header.kind = MR_KIND_IMAGE;
  mr_image& image = made.value.as.image;
  lay_out_image(pixel, width, height, image);
  uint64_t end = more;
  for (uint32_t p = 0; p < image.plane_count; ++p) {
    image.planes[p].stride += more;
    image.planes[p].offset = end;
    end += uint64_t{image.planes[p].stride} * image.planes[p].rows + more;
  }
  made.bytes.resize(end);
  for (uint8_t& byte : made.bytes) byte = static_cast<uint8_t>(random());
  made.value.header.extent_bytes = end;
  return made;
}

ShownPicture shown(const Made& made, uint32_t longest) {
  ValuePick pick(format_of(made.value.as.image), longest);
  REQUIRE(pick.pick(made.value, made.bytes.data()));
  TapSample sample;
  pick.show(sample);
  return std::get<ShownPicture>(sample.shown);
}

// The colour of a pixel by the formulas of the standards, in real numbers: red, green, blue, alpha.
std::vector<double> colour_at(const Made& made, uint32_t x, uint32_t y) {
  const mr_image& image = made.value.as.image;
  const auto at = [&](uint32_t plane, uint32_t row, size_t column) {
    return made.bytes[image.planes[plane].offset + size_t{row} * image.planes[plane].stride + column];
  };
  const auto deep = [&](uint32_t plane, uint32_t row, size_t column) { // of 10 bits, as one of 8
    return ((at(plane, row, column) | at(plane, row, column + 1) << 8) >> 6) / 4.0;
  };
  double luma = 0, blue = 0, red = 0;
  switch (static_cast<Pixel>(image.format)) {
    case Pixel::gray8: return {1.0 * at(0, y, x), 1.0 * at(0, y, x), 1.0 * at(0, y, x), 255};
    case Pixel::rgb8: return {1.0 * at(0, y, 3 * x), 1.0 * at(0, y, 3 * x + 1), 1.0 * at(0, y, 3 * x + 2), 255};
    case Pixel::bgr8: return {1.0 * at(0, y, 3 * x + 2), 1.0 * at(0, y, 3 * x + 1), 1.0 * at(0, y, 3 * x), 255};
    case Pixel::rgba8:
      return {1.0 * at(0, y, 4 * x), 1.0 * at(0, y, 4 * x + 1), 1.0 * at(0, y, 4 * x + 2), 1.0 * at(0, y, 4 * x + 3)};
    case Pixel::bgra8:
      return {1.0 * at(0, y, 4 * x + 2), 1.0 * at(0, y, 4 * x + 1), 1.0 * at(0, y, 4 * x), 1.0 * at(0, y, 4 * x + 3)};
    case Pixel::nv12:
      luma = at(0, y, x);
      blue = at(1, y / 2, x / 2 * 2);
      red = at(1, y / 2, x / 2 * 2 + 1);
      break;
    case Pixel::i420:
      luma = at(0, y, x);
      blue = at(1, y / 2, x / 2);
      red = at(2, y / 2, x / 2);
      break;
    default:
      luma = deep(0, y, 2 * x);
      blue = deep(1, y / 2, x / 2 * 4);
      red = deep(1, y / 2, x / 2 * 4 + 2);
  }
  const std::map<uint32_t, std::pair<double, double>> shares = {{MR_COLOR_SRGB, {0.299, 0.114}},
                                                                {MR_COLOR_BT601, {0.299, 0.114}},
                                                                {MR_COLOR_BT709, {0.2126, 0.0722}},
                                                                {MR_COLOR_BT2020, {0.2627, 0.0593}}};
  const auto [kr, kb] = shares.at(image.color);
  const bool full = image.range == MR_RANGE_FULL;
  const double bright = full ? luma / 255 : (luma - 16) / 219;
  const double cb = (blue - 128) / (full ? 255 : 224), cr = (red - 128) / (full ? 255 : 224);
  const double r = bright + 2 * (1 - kr) * cr, b = bright + 2 * (1 - kb) * cb;
  const auto clamped = [](double number) { return std::min(std::max(number * 255, 0.0), 255.0); };
  return {clamped(r), clamped((bright - kr * r - kb * b) / (1 - kr - kb)), clamped(b), 255};
}

Made make_tensor(DType dtype, std::vector<int64_t> shape, std::vector<int64_t> strides, size_t elements) {
  Made made;
  made.value.header.kind = MR_KIND_TENSOR;
  mr_tensor& tensor = made.value.as.tensor;
  detail::lay_out_tensor(dtype, shape, tensor);
  for (size_t d = 0; d < strides.size(); ++d) tensor.strides[d] = strides[d];
  made.bytes.resize(elements * dtype.bits / 8);
  made.value.header.extent_bytes = made.bytes.size();
  return made;
}

mr_format format_of(const mr_tensor& tensor) {
  mr_format format{};
  format.size = sizeof format;
  format.kind = MR_KIND_TENSOR;
  format.dtype_code = tensor.dtype_code;
  format.dtype_bits = tensor.dtype_bits;
  format.dtype_lanes = tensor.dtype_lanes;
  format.rank = tensor.rank;
  std::memcpy(format.shape, tensor.shape, sizeof format.shape);
  return format;
}

ShownTensor shown(const Made& made) {
  ValuePick pick(format_of(made.value.as.tensor), 480);
  REQUIRE(pick.pick(made.value, made.bytes.data()));
  TapSample sample;
  pick.show(sample);
  return std::get<ShownTensor>(sample.shown);
}

template <class T>
Made numbers(std::vector<T> values) {
  Made made = make_tensor(dtype_of<T>(), {static_cast<int64_t>(values.size())}, {}, values.size());
  std::memcpy(made.bytes.data(), values.data(), made.bytes.size());
  return made;
}

constexpr Pixel kPixels[] = {Pixel::gray8, Pixel::rgb8, Pixel::bgr8, Pixel::rgba8,
                             Pixel::bgra8, Pixel::nv12, Pixel::i420, Pixel::p010};

} // namespace

TEST_CASE("a picture is shown with one sample a pixel, as its format, colours and range say") {
  std::mt19937 random(random_seed());
  for (const Pixel pixel : kPixels)
    for (const auto& [width, height] : {std::pair{1u, 1u}, {2u, 3u}, {33u, 17u}, {64u, 48u}, {201u, 3u}})
      for (const uint32_t longest : {16u, 37u, 960u})
        for (const uint32_t color : {MR_COLOR_SRGB, MR_COLOR_BT601, MR_COLOR_BT709, MR_COLOR_BT2020})
          for (const uint32_t range : {MR_RANGE_FULL, MR_RANGE_LIMITED}) {
            CAPTURE(name_of(pixel));
            CAPTURE(width);
            CAPTURE(color);
            CAPTURE(range);
            Made made = make_picture(pixel, width, height, static_cast<uint32_t>(random() % 3), random);
            made.value.as.image.color = color;
            made.value.as.image.range = range;
            const ShownPicture picture = shown(made, longest);
            CHECK(picture.width == width);
            CHECK(picture.height == height);
            REQUIRE(picture.rgba.size() == size_t{4} * picture.shown_width * picture.shown_height);
            double worst = 0;
            for (uint32_t y = 0; y < picture.shown_height; ++y)
              for (uint32_t x = 0; x < picture.shown_width; ++x) {
                const std::vector<double> colour = colour_at(made, (2 * x + 1) * width / (2 * picture.shown_width),
                                                             (2 * y + 1) * height / (2 * picture.shown_height));
                for (size_t c = 0; c < 4; ++c)
                  worst = std::max(worst,
                                   std::abs(picture.rgba[4 * (size_t{y} * picture.shown_width + x) + c] - colour[c]));
              }
            // The numbers of p010 are rounded to 8 bits first, which chroma may double.
            CHECK(worst <= (pixel == Pixel::p010 ? 2.5 : 0.51));
          }
}

TEST_CASE("a picture keeps its proportions and is never enlarged, and its pixels are shown as square ones") {
  const auto size = [](uint32_t width, uint32_t height, uint32_t across, uint32_t down) {
    mr_image image{};
    image.width = width;
    image.height = height;
    image.aspect_num = across;
    image.aspect_den = down;
    const exec::ShownSize shown = exec::shown_size(image, 480);
    return std::pair(shown.width, shown.height);
  };
  CHECK(size(1920, 1080, 0, 0) == std::pair(480u, 270u));
  CHECK(size(1080, 1920, 1, 1) == std::pair(270u, 480u));
  CHECK(size(320, 200, 0, 0) == std::pair(320u, 200u));
  CHECK(size(100'000, 3, 0, 0) == std::pair(480u, 1u));
  CHECK(size(720, 576, 64, 45) == std::pair(480u, 270u)); // anamorphic, 16:9
  CHECK(size(720, 480, 8, 9) == std::pair(480u, 360u));   // 4:3
  CHECK(size(UINT32_MAX, UINT32_MAX, UINT32_MAX, 1) == std::pair(480u, 1u));
  CHECK(size(0, 0, 0, 0) == std::pair(0u, 0u));
}

TEST_CASE("a tensor is shown by its smallest, largest and mean element, and by how many are not finite") {
  const double infinity = std::numeric_limits<double>::infinity();
  const ShownTensor real = shown(numbers<double>({3, -1, std::nan(""), 4, infinity, -infinity}));
  CHECK(real.dtype == "float64");
  CHECK(real.shape == std::vector<int64_t>{6});
  CHECK(real.count == 6);
  CHECK(real.looked_at == 6);
  CHECK(real.not_finite == 3);
  CHECK(real.min == -1);
  CHECK(real.max == 4);
  CHECK(real.mean == 2);
  CHECK(real.heat == std::vector<uint8_t>{204, 0, 0, 255, 0, 0});
  CHECK(shown(numbers<int8_t>({-128, 127})).mean == -0.5);
  CHECK(shown(numbers<uint64_t>({UINT64_MAX})).max == static_cast<double>(UINT64_MAX));
  CHECK(std::isnan(shown(numbers<float>({std::nanf("")})).mean));
  CHECK(shown(numbers<int16_t>({})).count == 0);
  Made half = make_tensor({MR_DTYPE_FLOAT, 16}, {4}, {}, 4);
  const uint16_t halves[] = {0x3c00, 0xc000, 0x0001, 0x7c00}; // 1, -2, 2^-24, infinity
  std::memcpy(half.bytes.data(), halves, sizeof halves);
  CHECK(shown(half).max == 1);
  CHECK(shown(half).min == -2);
  CHECK(shown(half).mean == doctest::Approx((-1 + std::ldexp(1, -24)) / 3));
  Made brain = make_tensor({MR_DTYPE_BFLOAT, 16}, {2}, {}, 2);
  const uint16_t brains[] = {0x3f80, 0xc040}; // 1, -3
  std::memcpy(brain.bytes.data(), brains, sizeof brains);
  CHECK(shown(brain).mean == -1);
}

TEST_CASE("the heat of a tensor is that of its last two dimensions, whatever its strides are") {
  // Three pictures of 2 rows and 3 columns, which lie column by column.
  Made made = make_tensor(dtype_of<uint8_t>(), {3, 2, 3}, {6, 1, 2}, 18);
  for (size_t i = 0; i < 18; ++i) made.bytes[i] = static_cast<uint8_t>(i);
  const ShownTensor tensor = shown(made);
  CHECK(tensor.mean == 8.5);
  CHECK(tensor.heat_width == 3);
  CHECK(tensor.heat_height == 2);
  CHECK(tensor.heat == std::vector<uint8_t>{0, 30, 60, 15, 45, 75}); // 0, 2, 4 above 1, 3, 5, of 17
  Made large = make_tensor(dtype_of<uint8_t>(), {200, 300}, {}, 60'000);
  for (size_t i = 0; i < 60'000; ++i) large.bytes[i] = i % 300 >= 150 ? 10 : 0;
  const ShownTensor shrunk = shown(large);
  CHECK(shrunk.heat_width == 64);
  CHECK(shrunk.heat_height == 64);
  CHECK(shrunk.heat[31] == 0);
  CHECK(shrunk.heat[32] == 255);
}

TEST_CASE("of a large tensor evenly spread pieces are looked at, from the first element to the last") {
  std::vector<float> values(1'000'000);
  for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i);
  const ShownTensor tensor = shown(numbers(values));
  CHECK(tensor.count == 1'000'000);
  CHECK(tensor.looked_at == exec::kTapElementsMax);
  CHECK(tensor.min == 0);
  CHECK(tensor.max == 999'999);
  CHECK(tensor.mean == doctest::Approx(499'999.5).epsilon(0.001));
}

TEST_CASE("records are shown by their declared fields, the first 64 of them") {
  std::vector<Box> boxes(70);
  for (size_t i = 0; i < boxes.size(); ++i) {
    boxes[i].x = static_cast<float>(i) + 0.5f;
    boxes[i].id = INT64_MAX - static_cast<int64_t>(i);
  }
  mr_format format{};
  format.size = sizeof format;
  format.kind = MR_KIND_RECORDS;
  format.record_size = sizeof(Box);
  format.records = record_type_of<Box>();
  ValuePick pick(format, 480);
  Made made;
  made.value.header.kind = MR_KIND_RECORDS;
  made.value.header.extent_bytes = boxes.size() * sizeof(Box);
  for (const uint64_t count : {uint64_t{70}, uint64_t{2}, uint64_t{0}}) {
    made.value.as.records = {count, sizeof(Box)};
    REQUIRE(pick.pick(made.value, reinterpret_cast<const uint8_t*>(boxes.data())));
    TapSample sample;
    pick.show(sample);
    const auto& records = std::get<ShownRecords>(sample.shown);
    CHECK(records.type == "millrace.Box");
    CHECK(records.count == count);
    REQUIRE(records.rows.size() == std::min<uint64_t>(count, 64));
    REQUIRE(records.fields.size() == record_type_of<Box>()->field_count);
    for (size_t r = 0; r < records.rows.size(); ++r) {
      CHECK(std::get<double>(records.rows[r][0]) == static_cast<double>(r) + 0.5);
      CHECK(std::get<int64_t>(records.rows[r].back()) == INT64_MAX - static_cast<int64_t>(r));
    }
  }
}

TEST_CASE("a packet is shown by its size and times") {
  mr_format format{};
  format.kind = MR_KIND_PACKET;
  ValuePick pick(format, 480);
  mr_value value{};
  value.header.kind = MR_KIND_PACKET;
  value.header.extent_bytes = 1234;
  value.header.flags = MR_FLAG_KEYFRAME;
  value.header.pts_ns = 40;
  value.as.packet.dts_ns = 20;
  REQUIRE(pick.pick(value, nullptr));
  TapSample sample;
  pick.show(sample);
  const auto& packet = std::get<ShownPacket>(sample.shown);
  CHECK(packet.bytes == 1234);
  CHECK(packet.is_key);
  CHECK(packet.pts_ns == 40);
  CHECK(packet.dts_ns == 20);
}

TEST_CASE("a value that is not as it was planned is not looked at, and an empty picture shows nothing") {
  std::mt19937 random(random_seed());
  Made made = make_picture(Pixel::rgb8, 64, 48, 0, random);
  ValuePick pick(format_of(made.value.as.image), 480);
  CHECK(pick.pick(made.value, made.bytes.data()));
  Made other = made;
  other.value.as.image.width = 65;
  CHECK_FALSE(pick.pick(other.value, other.bytes.data()));
  other = made;
  other.value.as.image.planes[0].stride = 100;
  CHECK_FALSE(pick.pick(other.value, other.bytes.data()));
  other = made;
  other.value.header.kind = MR_KIND_TENSOR;
  CHECK_FALSE(pick.pick(other.value, other.bytes.data()));
  other = made;
  other.value.as.image.width = other.value.as.image.height = 0;
  CHECK_FALSE(pick.pick(other.value, other.bytes.data()));
}
