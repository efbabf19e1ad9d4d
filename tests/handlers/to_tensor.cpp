// image.normalize and image.patches, against the same sums in double precision.
#include "handlers/image/to_tensor.h"

#include <doctest/doctest.h>
#include <millrace/payload/half_floats.h>

#include <cmath>
#include <limits>
#include <random>

#include "builtin.h"
#include "handlers/gpu/tap_mix.h"
#include "pictures.h"

using namespace millrace;
using namespace millrace::handlers;
using millrace::testing::Result;
using millrace::testing::TableTest;
using millrace::testing::Value;

namespace {

struct DoubleColor {
  double channels[3];
};

// One pixel as it is stored, after what README files of networks call "to RGB": gray three times, or red, green, blue,
// or Y, Cb, Cr.
DoubleColor stored(const ImageView& picture, int x, int y) {
  const uint8_t* row = picture.row(static_cast<uint32_t>(y));
  const auto half_x = static_cast<uint32_t>(x / 2), half_y = static_cast<uint32_t>(y / 2);
  const auto ten = [](const uint8_t* bytes) { return static_cast<double>((bytes[0] + 256 * bytes[1]) / 64); };
  switch (picture.pixel()) {
    case Pixel::gray8: return {{double(row[x]), double(row[x]), double(row[x])}};
    case Pixel::rgb8: return {{double(row[3 * x]), double(row[3 * x + 1]), double(row[3 * x + 2])}};
    case Pixel::bgr8: return {{double(row[3 * x + 2]), double(row[3 * x + 1]), double(row[3 * x])}};
    case Pixel::rgba8: return {{double(row[4 * x]), double(row[4 * x + 1]), double(row[4 * x + 2])}};
    case Pixel::bgra8: return {{double(row[4 * x + 2]), double(row[4 * x + 1]), double(row[4 * x])}};
    case Pixel::nv12: {
      const uint8_t* chroma = picture.row(half_y, 1) + 2 * half_x;
      return {{double(row[x]), double(chroma[0]), double(chroma[1])}};
    }
    case Pixel::i420:
      return {{double(row[x]), double(picture.row(half_y, 1)[half_x]), double(picture.row(half_y, 2)[half_x])}};
    default: {
      const uint8_t* chroma = picture.row(half_y, 1) + 4 * half_x;
      return {{ten(row + 2 * x), ten(chroma), ten(chroma + 2)}};
    }
  }
}

DoubleColor to_rgb(const ImageView& picture, const DoubleColor& c) {
  const bool deep = picture.pixel() == Pixel::p010;
  if (!deep && picture.pixel() != Pixel::nv12 && picture.pixel() != Pixel::i420)
    return {{c.channels[0] / 255, c.channels[1] / 255, c.channels[2] / 255}};
  const bool limited = picture.range() == MR_RANGE_LIMITED;
  const double steps = deep ? 4 : 1, top = deep ? 1023 : 255;
  const double kr = picture.color() == MR_COLOR_BT709 ? 0.2126 : picture.color() == MR_COLOR_BT2020 ? 0.2627 : 0.299;
  const double kb = picture.color() == MR_COLOR_BT709 ? 0.0722 : picture.color() == MR_COLOR_BT2020 ? 0.0593 : 0.114;
  const double luma = limited ? (c.channels[0] - 16 * steps) / (219 * steps) : c.channels[0] / top;
  const double scale = limited ? 224 * steps : top;
  const double cb = (c.channels[1] - 128 * steps) / scale, cr = (c.channels[2] - 128 * steps) / scale;
  const double red = luma + 2 * (1 - kr) * cr, blue = luma + 2 * (1 - kb) * cb;
  const double green = (luma - kr * red - kb * blue) / (1 - kr - kb);
  return {{std::clamp(red, 0.0, 1.0), std::clamp(green, 0.0, 1.0), std::clamp(blue, 0.0, 1.0)}};
}

// How much of sample `at` is in sample `index` of a region; the edge stands for all that lies beyond it.
double weight(double begin, double scale, int index, int extent, int at) {
  const auto covered = [&](double from, double to) {
    const double left = at == 0 ? -1e9 : at, right = at == extent - 1 ? 1e9 : at + 1;
    return std::max(0.0, std::min(to, right) - std::max(from, left));
  };
  if (scale > 2) return covered(begin + index * scale, begin + (index + 1) * scale) / scale;
  const double centre = begin + (index + 0.5) * scale - 0.5;
  double sum = 0;
  for (const double tap : {std::floor(centre), std::floor(centre) + 1})
    if (std::clamp(tap, 0.0, extent - 1.0) == at) sum += 1 - std::abs(tap - centre);
  return sum;
}

DoubleColor mean_of(const ImageView& picture, const Box& box, const TensorForm& form, int x, int y) {
  DoubleColor sum{};
  const double scale_x = double{box.width} / form.width, scale_y = double{box.height} / form.height;
  for (int row = 0; row < int(picture.height()); ++row) {
    const double down = weight(box.y, scale_y, y, int(picture.height()), row);
    if (down == 0) continue;
    for (int column = 0; column < int(picture.width()); ++column) {
      const double across = weight(box.x, scale_x, x, int(picture.width()), column);
      if (across == 0) continue;
      const DoubleColor pixel = stored(picture, column, row);
      for (int c = 0; c < 3; ++c) sum.channels[c] += across * down * pixel.channels[c];
    }
  }
  return sum;
}

double number_at(const TensorForm& form, const std::vector<uint8_t>& tensor, uint32_t patch, uint32_t channel,
                 uint32_t x, uint32_t y) {
  const size_t index = form.interleaved
                           ? ((size_t{patch} * form.height + y) * form.width + x) * form.channels + channel
                           : ((size_t{patch} * form.channels + channel) * form.height + y) * form.width + x;
  if (form.half) return reinterpret_cast<const Float16*>(tensor.data())[index];
  return reinterpret_cast<const float*>(tensor.data())[index];
}

std::vector<uint8_t> room_for(const TensorForm& form) {
  return std::vector<uint8_t>(size_t{form.count} * form.channels * form.width * form.height * (form.half ? 2 : 4),
                              0xDB);
}

// The greatest distance of one patch from what it should be.
double error_of_patch(const ImageView& picture, const Box& box, const TensorForm& form, uint32_t patch,
                      const std::vector<uint8_t>& tensor) {
  double most = 0;
  for (uint32_t y = 0; y < form.height; ++y)
    for (uint32_t x = 0; x < form.width; ++x) {
      const DoubleColor rgb = to_rgb(picture, mean_of(picture, box, form, int(x), int(y)));
      for (uint32_t c = 0; c < form.channels; ++c) {
        const uint32_t color = form.blue_first ? 2 - c : c;
        const double wanted = (rgb.channels[color] - form.mean[color]) / form.deviation[color];
        most = std::max(most, std::abs(number_at(form, tensor, patch, c, x, y) - wanted));
      }
    }
  return most;
}

TensorForm form_of(uint32_t width, uint32_t height, bool half, bool interleaved, bool blue_first) {
  TensorForm form = tensor_form({half ? "f16" : "f32", interleaved ? "nhwc" : "nchw", blue_first ? "bgr" : "rgb",
                                 "0.485, 0.456,0.406", "0.229,0.224,0.225"});
  form.width = width;
  form.height = height;
  return form;
}

} // namespace

TEST_CASE("the weights of a footprint add up to one, whatever lies outside") {
  for (float begin : {-40.0f, -0.3f, 0.0f, 7.25f, 30.9f, 100.0f})
    for (float scale : {0.1f, 1.0f, 1.99f, 2.0f, 2.01f, 3.0f, 7.3f, 60.0f})
      for (int32_t index : {0, 1, 5, 20})
        for (int32_t extent : {1, 2, 31}) {
          const Footprint f = footprint(begin, scale, index, extent);
          CHECK(f.first >= 0);
          CHECK(f.first <= f.last);
          CHECK(f.last < extent);
          const float inner = static_cast<float>(std::max(0, f.last - f.first - 1)) * f.inner_weight;
          CHECK(f.first_weight + inner + f.last_weight == doctest::Approx(1).epsilon(1e-4));
        }
}

TEST_CASE("a normalized picture is what the formula says, in every format, order and layout") {
  for (Pixel pixel : kPixelFormats)
    for (uint32_t color : {MR_COLOR_SRGB, MR_COLOR_BT709, MR_COLOR_BT2020})
      for (uint32_t range : {MR_RANGE_FULL, MR_RANGE_LIMITED})
        for (int variant = 0; variant < 8; ++variant) {
          const uint32_t width = variant % 3 == 0 ? 17 : 8, height = variant % 3 == 1 ? 1 : 5;
          const Picture picture = random_picture(pixel, width, height, 7).tag(color, range);
          TensorForm form = form_of(width, height, variant & 1, variant & 2, variant & 4);
          if (pixel == Pixel::gray8) form.channels = 1, form.blue_first = false;
          std::vector<uint8_t> tensor = room_for(form);
          normalize_picture(picture.view(), form, tensor.data());
          const Box whole = {0, 0, float(width), float(height)};
          INFO(name_of(pixel), " ", color, " ", range, " ", variant);
          // Values are up to 2.7, so a half is at most 2^-10 off.
          CHECK(error_of_patch(picture.view(), whole, form, 0, tensor) < (form.half ? 1.1e-3 : 1e-5));
        }
}

TEST_CASE("patches are what bilinear and area sums say, inside the picture and beyond its edges") {
  const std::vector<Box> boxes = {{0, 0, 37, 23},     {3.25f, 4.5f, 9.5f, 7}, {-8, -3.5f, 20, 12}, {30, 18, 40, 44},
                                  {5, 2, 30, 20.75f}, {12, 7, 1, 1},          {100, 100, 3, 3},    {0.5f, 0, 36, 4}};
  for (Pixel pixel : kPixelFormats) {
    const Picture picture = random_picture(pixel, 37, 23, 11).tag(MR_COLOR_BT709, MR_RANGE_LIMITED);
    for (const auto& [width, height] : {std::pair{6u, 4u}, {37u, 23u}, {16u, 9u}, {1u, 1u}}) {
      TensorForm form = form_of(width, height, false, width == 16, width == 6);
      form.count = static_cast<uint32_t>(boxes.size());
      std::vector<uint8_t> tensor = room_for(form);
      PatchCutter cutter;
      cutter.run(picture.view(), boxes, form, tensor.data());
      for (uint32_t i = 0; i < form.count; ++i) {
        INFO(name_of(pixel), " ", width, "x", height, " box ", i);
        CHECK(error_of_patch(picture.view(), boxes[i], form, i, tensor) < 5e-5);
      }
    }
  }
}

TEST_CASE("patches without a box, and those of boxes that are none, are zero") {
  const float nan = std::numeric_limits<float>::quiet_NaN(), infinite = std::numeric_limits<float>::infinity();
  const std::vector<Box> boxes = {{nan, 0, 5, 5}, {0, 0, 0, 5},        {0, 0, 5, -1},  {0, infinite, 5, 5},
                                  {0, 0, 5, nan}, {0, 0, infinite, 5}, {2e6f, 0, 5, 5}};
  const Picture picture = random_picture(Pixel::rgb8, 8, 8, 3);
  TensorForm form = form_of(5, 3, true, false, false);
  form.count = static_cast<uint32_t>(boxes.size()) + 2;
  std::vector<uint8_t> tensor = room_for(form);
  PatchCutter cutter;
  cutter.run(picture.view(), boxes, form, tensor.data());
  CHECK(std::all_of(tensor.begin(), tensor.end(), [](uint8_t byte) { return byte == 0; }));
}

TEST_CASE("image.normalize announces the tensor that it makes, and keeps the times") {
  TableTest normalize(builtin("image.normalize"), {{"dtype", "f16"}, {"mean", "0.5"}, {"std", "0.25"}});
  normalize.input("video", testing::image(Pixel::rgb8, 6, 4, 255).at(123, 45).from_stream(6));
  const Result result = normalize.tick();
  REQUIRE(result.ok());
  const TensorView made = result.tensor("tensor");
  CHECK(made.dtype() == DType{MR_DTYPE_FLOAT, 16});
  CHECK(std::vector(made.shape().begin(), made.shape().end()) == std::vector<int64_t>{1, 3, 4, 6});
  CHECK(made.header().pts_ns == 123);
  CHECK(made.header().duration_ns == 45);
  CHECK(made.header().stream == 6);
  CHECK(*reinterpret_cast<const Float16*>(made.data()) == 2);
  const mr_format& format = normalize.format("tensor");
  CHECK(std::vector(format.shape, format.shape + format.rank) == std::vector<int64_t>{1, 3, 4, 6});
  CHECK(format.dtype_bits == 16);
}

TEST_CASE("image.normalize gives a gray picture one channel") {
  TableTest normalize(builtin("image.normalize"), {{"layout", "nhwc"}});
  normalize.input("video", testing::image(Pixel::gray8, 6, 4, 51));
  const Result result = normalize.tick();
  REQUIRE(result.ok());
  const TensorView made = result.tensor("tensor");
  CHECK(std::vector(made.shape().begin(), made.shape().end()) == std::vector<int64_t>{1, 4, 6, 1});
  CHECK(made.elements<float>()[23] == doctest::Approx(0.2));
}

TEST_CASE("mean and std that are no numbers are refused with what they should be") {
  const auto refusal = [](const char* name, const char* text) {
    TableTest normalize(builtin("image.normalize"), {{name, text}});
    normalize.input("video", testing::image(Pixel::rgb8, 2, 2));
    REQUIRE(normalize.start() == MR_ERROR);
    return normalize.error();
  };
  CHECK(refusal("mean", "0.5,0.5") == "mean '0.5,0.5' is neither one number nor three, such as \"0.485,0.456,0.406\"");
  for (const char* text : {"", "a", "1,2,3,4", "1,,2", "1,2,3,", "nan", "1 2 3"}) CHECK(refusal("mean", text) != "");
  CHECK(refusal("std", "1,0,1") == "std '1,0,1' has a number that is not above 0");
}

TEST_CASE("image.patches makes one patch of the whole picture, or as many as count_max where boxes are connected") {
  const Value picture = testing::image(Pixel::rgb8, 8, 8, 255);
  TableTest whole(builtin("image.patches"), {{"width", "4"}, {"height", "2"}});
  whole.input("video", picture);
  const Result one = whole.tick();
  REQUIRE(one.ok());
  CHECK(one.tensor("tensor").shape()[0] == 1);
  CHECK(one.tensor("tensor").elements<float>()[23] == 1);

  TableTest cut(builtin("image.patches"), {{"width", "4"}, {"height", "2"}, {"count_max", "3"}});
  cut.input("video", picture);
  cut.input("boxes", testing::records<Box>({{1, 1, 4, 4}}));
  const Result three = cut.tick();
  REQUIRE(three.ok());
  CHECK(three.tensor("tensor").shape()[0] == 3);
  CHECK(three.tensor("tensor").elements<float>()[23] == 1);
  CHECK(three.tensor("tensor").elements<float>()[24] == 0);
  cut.input("boxes", Value());
  const Result none = cut.tick();
  REQUIRE(none.ok());
  CHECK(none.tensor("tensor").elements<float>()[0] == 0);
}

namespace {

// How far the pairs of some rows are from pixels that are mixed one by one.
template <uint32_t kWindows>
float off_by(const SampleSource& source, const Footprint (&columns)[2], float top, float scale, int32_t first_row) {
  gpu::PairMixer<kWindows> mixer(source, columns[0], columns[1]);
  float most = 0;
  for (int32_t y = first_row; y < first_row + 5; ++y) {
    const Footprint rows = footprint(top, scale, y, source.height);
    Sample pixels[2];
    mixer.mix(rows, pixels);
    for (int i = 0; i < 2; ++i) {
      const Sample expected = mixed<SampleLayout::nv12>(source, columns[i], rows);
      most = std::max({most, std::abs(pixels[i].a - expected.a), std::abs(pixels[i].b - expected.b),
                       std::abs(pixels[i].c - expected.c)});
    }
  }
  return most;
}

} // namespace

TEST_CASE("a picture has windows where its rows begin at words and 32 bits count its bytes") {
  SampleSource source{};
  source.planes[0] = source.planes[1] = reinterpret_cast<const uint8_t*>(uintptr_t{1} << 40);
  source.strides[0] = source.strides[1] = 65536;
  source.width = 65536, source.height = 65535;
  CHECK(gpu::has_windows(source));
  source.height = 65536;
  CHECK_FALSE(gpu::has_windows(source));
  source.height = 100;
  source.strides[1] = 65538;
  CHECK_FALSE(gpu::has_windows(source));
  source.strides[1] = 65536;
  ++source.planes[0];
  CHECK_FALSE(gpu::has_windows(source));
}

TEST_CASE("pairs of pixels mixed from windows, row by row, are those mixed one by one") {
  constexpr int32_t kWidths[] = {1, 2, 3, 5, 16, 37, 64}, kHeight = 21;
  std::mt19937 random(7);
  std::vector<uint32_t> words(2 * 17 * kHeight);
  for (uint32_t& word : words) word = static_cast<uint32_t>(random());
  const auto* bytes = reinterpret_cast<const uint8_t*>(words.data());
  std::uniform_real_distribution<float> unit(0, 1);
  int together = 0, apart = 0;
  for (const int32_t width : kWidths)
    for (int round = 0; round < 4000; ++round) {
      SampleSource source{};
      const auto stride = static_cast<uint32_t>((width + 4) / 4 * 4); // of chroma an odd width needs one byte more
      source.planes[0] = bytes, source.planes[1] = bytes + stride * kHeight;
      source.strides[0] = source.strides[1] = stride;
      source.width = width, source.height = kHeight;
      REQUIRE(gpu::has_windows(source));
      const float left = (unit(random) - 0.25f) * static_cast<float>(width), top = (unit(random) - 0.25f) * kHeight;
      const float scales[] = {0.3f, 1, 1.6875f, 2, 2.5f, 3};
      const float scale_x = round % 3 ? unit(random) * 3 : scales[round / 3 % 6];
      const float scale_y = round % 2 ? unit(random) * 5 : scales[round / 2 % 6];
      const auto x = static_cast<int32_t>(random() % 12), y = static_cast<int32_t>(random() % 12);
      const Footprint columns[2] = {footprint(round % 5 ? left : 0, scale_x, x, width),
                                    footprint(round % 5 ? left : 0, scale_x, x + 1, width)};
      const bool fit_together = columns[1].last - columns[0].first < gpu::kWindowColumns;
      if (scale_x <= 2) REQUIRE(fit_together);
      if (fit_together) {
        REQUIRE(off_by<1>(source, columns, top, scale_y, y) < 3e-4f);
        ++together;
      }
      if (columns[0].last - columns[0].first < gpu::kWindowColumns &&
          columns[1].last - columns[1].first < gpu::kWindowColumns) {
        REQUIRE(off_by<2>(source, columns, top, scale_y, y) < 3e-4f);
        ++apart;
      }
    }
  CHECK(together > 1000);
  CHECK(apart > together);
}

namespace {

// A picture of random bytes that has windows, limited in range.
class RandomSource {
 public:
  RandomSource(int32_t width, int32_t height, uint32_t seed) : words_(2 * static_cast<size_t>(width / 4 + 1) * height) {
    std::mt19937 random(seed);
    for (uint32_t& word : words_) word = static_cast<uint32_t>(random());
    const auto stride = static_cast<uint32_t>(width / 4 + 1) * 4;
    source_.planes[0] = reinterpret_cast<const uint8_t*>(words_.data());
    source_.planes[1] = source_.planes[0] + stride * static_cast<uint32_t>(height);
    source_.strides[0] = source_.strides[1] = stride;
    source_.width = width, source_.height = height;
    source_.numbers = sample_numbers_of(Pixel::nv12, MR_COLOR_BT709, MR_RANGE_LIMITED);
  }
  const SampleSource& value() const { return source_; }

 private:
  std::vector<uint32_t> words_;
  SampleSource source_{};
};

// How far the colours of some rows of pairs are from those of pixels that are mixed one by one.
template <bool kKeep, class Columns>
float off_by(const SampleSource& source, const Columns& columns, const Footprint (&each)[2], float top, float scale,
             int32_t first_row) {
  gpu::RowSlots<Columns, kKeep> slots(source, columns);
  float most = 0;
  for (int32_t y = first_row; y < first_row + 7; ++y) {
    const Footprint rows = footprint(top, scale, y, source.height);
    const gpu::RowPlan plan =
        gpu::row_plan(rows, source.height, source.numbers.luma_step * Columns::kUnit, Columns::kUnit);
    Sample pixels[2];
    slots.load(plan);
    slots.take(plan);
    slots.mean(plan, pixels);
    for (int i = 0; i < 2; ++i) {
      const UnitRgb made = unit_rgb(source.numbers, pixels[i].a, pixels[i].b, pixels[i].c);
      const UnitRgb expected =
          decoded<SampleLayout::nv12>(source.numbers, mixed<SampleLayout::nv12>(source, each[i], rows));
      most = std::max({most, std::abs(made.red - expected.red), std::abs(made.green - expected.green),
                       std::abs(made.blue - expected.blue)});
    }
  }
  return most;
}

} // namespace

TEST_CASE("pairs of pixels mixed from two taps, with rows kept or not, are those mixed one by one") {
  std::mt19937 random(11);
  std::uniform_real_distribution<float> unit(0, 1);
  for (const int32_t width : {1, 2, 3, 5, 16, 37, 64})
    for (const int32_t height : {1, 2, 3, 20, 21}) {
      const RandomSource source(width, height, static_cast<uint32_t>(width + height));
      for (int round = 0; round < 500; ++round) {
        const float scales[] = {0.3f, 1, 1.6875f, 2};
        const float left = round % 5 ? (unit(random) - 0.25f) * static_cast<float>(width) : 0;
        const float top = round % 7 ? (unit(random) - 0.25f) * static_cast<float>(height) : 0;
        const float scale_x = round % 3 ? unit(random) * 2 : scales[round / 3 % 4];
        const float scale_y = round % 2 ? unit(random) * 2 : scales[round / 2 % 4];
        const auto x = static_cast<int32_t>(random() % 12), y = static_cast<int32_t>(random() % 12);
        const Footprint each[2] = {footprint(left, scale_x, x, width), footprint(left, scale_x, x + 1, width)};
        const gpu::TwoTaps columns(each[0], each[1]);
        REQUIRE(off_by<true>(source.value(), columns, each, top, scale_y, y) < 2e-6f);
        REQUIRE(off_by<false>(source.value(), columns, each, top, scale_y, y) < 2e-6f);
      }
    }
}

TEST_CASE("pairs of pixels a third as wide as the picture are those mixed one by one") {
  for (const int32_t width : {2, 4, 6, 22})
    for (const int32_t height : {1, 2, 21}) {
      const RandomSource source(3 * width, height, static_cast<uint32_t>(width + height));
      for (int32_t x = 0; x < width; x += 2)
        for (const float scale : {0.4f, 1.0f, 1.6875f, 2.0f}) {
          const Footprint each[2] = {footprint(0, 3, x, 3 * width), footprint(0, 3, x + 1, 3 * width)};
          const gpu::Thirds columns(static_cast<uint32_t>(x));
          REQUIRE(off_by<true>(source.value(), columns, each, 0, scale, 0) < 2e-6f);
          REQUIRE(off_by<false>(source.value(), columns, each, 0, scale, 0) < 2e-6f);
        }
    }
}
