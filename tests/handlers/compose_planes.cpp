// Compositions on canvases of nv12, i420 and p010 against the same work in doubles and 4:4:4.
#include "handlers/image/compose_planes.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <random>
#include <string>

#include "builtin.h"
#include "handlers/gpu/planar_layer.h"
#include "handlers/image/color.h"
#include "handlers/image/compose.h"
#include "pictures.h"

using namespace millrace;
using namespace millrace::handlers;
using millrace::testing::Result;
using millrace::testing::TableTest;
using millrace::testing::Value;

namespace {

struct RealPixel {
  double y, u, v;
};
struct RealColor {
  double r, g, b, alpha;
};

// The numbers of a canvas or a layer, by the formulas of ITU-R BT.601-7, BT.709-6 and BT.2020-2.
struct RealNumbers {
  explicit RealNumbers(const ImageView& picture)
      : unit(picture.pixel() == Pixel::p010 ? 4 : 1), top(picture.pixel() == Pixel::p010 ? 1023 : 255) {
    if (picture.color() == MR_COLOR_BT709) kr = 0.2126, kb = 0.0722;
    if (picture.color() == MR_COLOR_BT2020) kr = 0.2627, kb = 0.0593;
    const bool limited = picture.range() == MR_RANGE_LIMITED;
    black = limited ? 16 * unit : 0;
    luma = limited ? 219 * unit : top;
    chroma = limited ? 224 * unit : top;
  }
  RealPixel encoded(const RealColor& color) const {
    const double y = kr * color.r + (1 - kr - kb) * color.g + kb * color.b;
    const auto clamped = [&](double number) { return std::clamp(number, 0.0, top); };
    return {clamped(black + luma * y / 255), clamped(128 * unit + chroma * (color.b - y) / 255 / (2 - 2 * kb)),
            clamped(128 * unit + chroma * (color.r - y) / 255 / (2 - 2 * kr))};
  }
  RealColor decoded(const RealPixel& pixel) const {
    const double y = (pixel.y - black) / luma, u = (pixel.u - 128 * unit) / chroma, v = (pixel.v - 128 * unit) / chroma;
    const double r = y + v * (2 - 2 * kr), b = y + u * (2 - 2 * kb);
    const auto clamped = [](double color) { return std::clamp(255 * color, 0.0, 255.0); };
    return {clamped(r), clamped((y - kr * r - kb * b) / (1 - kr - kb)), clamped(b), 255};
  }

  double unit, top, kr = 0.299, kb = 0.114, black, luma, chroma;
};

// A number of 8 or 10 bits of a plane.
double real_number(const ImageView& picture, uint32_t plane, uint32_t index, uint32_t y) {
  const uint8_t* row = picture.row(y, plane);
  return picture.pixel() == Pixel::p010 ? row[2 * index + 1] * 4 + row[2 * index] / 64 : row[index];
}
double real_chroma(const ImageView& picture, uint32_t which, uint32_t x, uint32_t y) {
  if (picture.plane_count() == 3) return real_number(picture, 1 + which, x, y);
  return real_number(picture, 1, 2 * x + which, y);
}

RealColor real_color(const ImageView& picture, bool premultiplied, uint32_t x, uint32_t y) {
  const uint32_t channels = bytes_per_pixel(picture.pixel());
  const uint8_t* at = picture.row(y) + size_t{x} * channels;
  if (channels == 1) return {double(at[0]), double(at[0]), double(at[0]), 255};
  const bool blue_first = picture.pixel() == Pixel::bgr8 || picture.pixel() == Pixel::bgra8;
  RealColor color{double(at[blue_first ? 2 : 0]), double(at[1]), double(at[blue_first ? 0 : 2]),
                  channels == 4 ? double(at[3]) : 255};
  if (premultiplied && channels == 4 && color.alpha > 0)
    for (double* number : {&color.r, &color.g, &color.b}) *number = std::min(255.0, *number * 255 / color.alpha);
  return color;
}

// A pixel of a scaled layer in the canvas's numbers.
RealPixel real_pixel(const ImageView& layer, const ImageView& canvas, bool premultiplied, uint32_t x, uint32_t y) {
  const RealNumbers to(canvas);
  if (!halves_chroma(layer.pixel())) return to.encoded(real_color(layer, premultiplied, x, y));
  const RealNumbers from(layer);
  const RealPixel pixel{real_number(layer, 0, x, y), real_chroma(layer, 0, x / 2, y / 2),
                        real_chroma(layer, 1, x / 2, y / 2)};
  if (from.kr != to.kr || layer.range() != canvas.range()) return to.encoded(from.decoded(pixel));
  const double gain = to.luma / from.luma;
  const auto chroma = [&](double number) {
    return std::clamp(128 * to.unit + (number - 128 * from.unit) * gain, 0.0, to.top);
  };
  return {std::clamp(pixel.y * gain, 0.0, to.top), chroma(pixel.u), chroma(pixel.v)};
}

// A composition as a test makes it up.
struct PlaneWork {
  std::vector<Picture> pictures;
  std::vector<LayerCell> cells;
  ComposeSettings settings;
};

struct Far {
  double luma = 0, chroma = 0;
};

// How far a canvas is from the work in doubles, in steps of its numbers.
Far distance_from_real(const PlaneWork& work, const ImageView& canvas) {
  const uint32_t width = canvas.width(), height = canvas.height();
  const RealNumbers numbers(canvas);
  const auto& color = work.settings.background;
  const RealPixel exact = numbers.encoded({double(color[0]), double(color[1]), double(color[2]), 255});
  // The background is rounded to the canvas's numbers once; a near-tie may go either way.
  const gpu::CanvasNumbers own = gpu::canvas_numbers(canvas.value().as.image);
  const gpu::Ycbcr16 made = gpu::background_of(own, color[0], color[1], color[2]);
  const RealPixel background{double(made.y >> own.up), double(made.u >> own.up), double(made.v >> own.up)};
  CHECK(std::max({std::abs(background.y - exact.y), std::abs(background.u - exact.u),
                  std::abs(background.v - exact.v)}) < 0.51);
  std::vector<RealPixel> pixels(size_t{width} * height, background);
  for (size_t i = 0; i < work.pictures.size(); ++i) {
    const ImageView whole = work.pictures[i].view();
    const FittedLayer fitted = gpu::at_whole_chroma(
        fit_layer({whole.width(), whole.height()}, work.cells[i], work.settings.fit), whole.pixel());
    const ViewWindow part(whole, fitted.part_x, fitted.part_y, fitted.part.width, fitted.part.height);
    Picture tile(whole.pixel(), fitted.size.width, fitted.size.height);
    tile.tag(whole.color(), whole.range());
    Resampler resampler;
    resampler.prepare(fitted.part.width, fitted.part.height, fitted.size.width, fitted.size.height,
                      resize_method(work.settings.scaling, fitted.part, fitted.size));
    resampler.run(part.view(), tile.span());
    for (uint32_t y = 0; y < fitted.size.height; ++y)
      for (uint32_t x = 0; x < fitted.size.width; ++x) {
        const int64_t column = fitted.x + x, row = fitted.y + y;
        if (column < 0 || row < 0 || column >= width || row >= height) continue;
        const RealPixel above = real_pixel(tile.view(), canvas, work.settings.premultiplied, x, y);
        const double alpha = has_alpha(whole.pixel()) ? real_color(tile.view(), false, x, y).alpha / 255 : 1;
        const double weight = alpha * (i == 0 ? 255 : work.settings.opacity) / 255;
        RealPixel& below = pixels[static_cast<size_t>(row) * width + static_cast<size_t>(column)];
        below.y += (above.y - below.y) * weight;
        below.u += (above.u - below.u) * weight;
        below.v += (above.v - below.v) * weight;
      }
  }
  Far far;
  for (uint32_t y = 0; y < height; ++y)
    for (uint32_t x = 0; x < width; ++x)
      far.luma = std::max(far.luma, std::abs(pixels[size_t{y} * width + x].y - real_number(canvas, 0, x, y)));
  for (uint32_t y = 0; y < (height + 1) / 2; ++y)
    for (uint32_t x = 0; x < (width + 1) / 2; ++x) {
      double u = 0, v = 0, count = 0;
      for (uint32_t i = 0; i < 4; ++i) {
        const uint32_t column = 2 * x + i % 2, row = 2 * y + i / 2;
        if (column >= width || row >= height) continue;
        u += pixels[size_t{row} * width + column].u;
        v += pixels[size_t{row} * width + column].v;
        ++count;
      }
      far.chroma = std::max({far.chroma, std::abs(u / count - real_chroma(canvas, 0, x, y)),
                             std::abs(v / count - real_chroma(canvas, 1, x, y))});
    }
  return far;
}

constexpr Pixel kPlaneFormats[] = {Pixel::nv12, Pixel::i420, Pixel::p010};

// Layers of any format at any place; if `alike`, of the canvas's own numbers and mostly on whole chroma samples.
PlaneWork any_work(std::mt19937& random, bool alike, const ImageView& canvas) {
  const auto any = [&](uint32_t count) { return static_cast<uint32_t>(random() % count); };
  PlaneWork work;
  work.settings.fit = static_cast<Fit>(any(3));
  work.settings.scaling = static_cast<Scaling>(any(4));
  work.settings.opacity = static_cast<uint8_t>(any(2) ? 255 : any(256));
  work.settings.premultiplied = any(2);
  work.settings.background = {static_cast<uint8_t>(any(256)), 200, static_cast<uint8_t>(any(256)), 255};
  for (uint32_t i = 0, count = 1 + any(4); i < count; ++i) {
    const Pixel pixel = alike && any(4) > 0 ? canvas.pixel() : kPixelFormats[any(8)];
    work.pictures.push_back(random_picture(pixel, 1 + any(40), 1 + any(30), static_cast<uint32_t>(random())));
    if (alike)
      work.pictures.back().tag(canvas.color(), canvas.range());
    else
      work.pictures.back().tag(any(4), any(2));
    const uint32_t step = alike && any(4) > 0 ? 2 : 1;
    const auto place = [&] { return (int64_t{any(30)} - 10) * step; };
    const auto side = [&] { return (1 + any(25)) * step; };
    work.cells.push_back({place(), place(), any(3) == 0 ? Extent{} : Extent{side(), side()}});
  }
  return work;
}

Picture any_canvas(std::mt19937& random) {
  const auto any = [&](uint32_t count) { return static_cast<uint32_t>(random() % count); };
  return random_picture(kPlaneFormats[any(3)], 1 + any(50), 1 + any(40), 76).tag(1 + any(3), any(2));
}

void compose_planes(const PlaneWork& work, const ImageSpan& canvas) {
  std::vector<ImageView> views;
  std::vector<const ImageView*> present;
  for (const Picture& picture : work.pictures) views.push_back(picture.view());
  for (const ImageView& view : views) present.push_back(&view);
  Composer composer;
  composer.set_layers(work.cells);
  composer.run(present, work.settings, canvas);
}

bool ten_bits_are_clean(const ImageView& picture) {
  if (picture.pixel() != Pixel::p010) return true;
  for (uint32_t plane = 0; plane < 2; ++plane)
    for (uint32_t y = 0; y < picture.rows(plane); ++y)
      for (size_t i = 0; i < plane_row_bytes(picture.pixel(), picture.width(), plane); i += 2)
        if (picture.row(y, plane)[i] % 64 != 0) return false;
  return true;
}

} // namespace

TEST_CASE(
    "a canvas of planes is the work in 4:4:4 and doubles, whatever its layers, their places and its own numbers") {
  std::mt19937 random(75);
  for (int round = 0; round < 800; ++round) {
    Picture canvas = any_canvas(random);
    const PlaneWork work = any_work(random, round % 2 == 0, canvas.view());
    compose_planes(work, canvas.span());
    const Far far = distance_from_real(work, canvas.view());
    INFO("round ", round, " canvas ", size_of(canvas.view()));
    CHECK(far.luma < 0.7);
    CHECK(far.chroma < 0.7);
    CHECK(ten_bits_are_clean(canvas.view()));
    CHECK(padding_holds(0xEE, canvas.view()));
  }
}

TEST_CASE("kernels make a canvas of planes by the composer's bytes, but for layers that are a line") {
  std::mt19937 random(77);
  for (int round = 0; round < 600; ++round) {
    Picture wanted = any_canvas(random);
    const PlaneWork work = any_work(random, round % 2 == 0, wanted.view());
    compose_planes(work, wanted.span());
    Picture made = random_picture(wanted.view().pixel(), wanted.view().width(), wanted.view().height(), 78)
                       .tag(wanted.view().color(), wanted.view().range());
    const gpu::DevicePicture canvas = gpu::on_device(made.span());
    gpu::PlanarStack<4> stack{};
    stack.numbers = gpu::canvas_numbers(canvas.image);
    const auto& color = work.settings.background;
    stack.background = gpu::background_of(stack.numbers, color[0], color[1], color[2]);
    bool has_line = false; // the CPU weighs it in single precision
    for (size_t i = 0; i < work.pictures.size(); ++i) {
      stack.layers[stack.count++] =
          gpu::planar_layer_of(gpu::on_device(work.pictures[i].view()), work.cells[i],
                               i == 0 ? uint8_t{255} : work.settings.opacity, work.settings, canvas.image);
      const gpu::Layer& layer = stack.layers[i].layer;
      has_line = has_line || layer.columns.source <= 2 || layer.rows.source <= 2;
    }
    for (uint32_t y = 0; y < canvas.image.height; y += 2)
      for (uint32_t x = 0; x < canvas.image.width; x += 2) gpu::compose_block(stack, canvas, x, y);
    INFO("round ", round, " canvas ", size_of(wanted.view()));
    CHECK(distance(made.view(), wanted.view()) <= (has_line ? 1 : 0));
    CHECK(padding_holds(0xEE, made.view()));
  }
}

TEST_CASE("a wall of films is their own numbers, each scaled as image.resize scales it, and nothing is converted") {
  for (Pixel pixel : kPlaneFormats) {
    TableTest wall(builtin("image.composite"), {{"width", "96"}, {"height", "64"}, {"format", name_of(pixel).data()}});
    std::vector<Picture> films;
    for (uint32_t i = 0; i < 16; ++i) {
      films.push_back(random_picture(pixel, 48, 32, 90 + i).tag(MR_COLOR_BT709, MR_RANGE_LIMITED));
      const ImageView view = films.back().view();
      Value film = testing::image(pixel, 48, 32);
      film.raw().as.image.color = MR_COLOR_BT709;
      film.raw().as.image.range = MR_RANGE_LIMITED;
      std::memcpy(const_cast<uint8_t*>(film.image().data()), view.data(), view.header().extent_bytes);
      wall.input("layers", film.at(500, 7), i);
    }
    const Result result = wall.tick();
    REQUIRE_MESSAGE(result.ok(), result.error);
    const ImageView made = result.image("video");
    CHECK(made.pixel() == pixel);
    CHECK(made.color() == MR_COLOR_BT709);
    CHECK(made.range() == MR_RANGE_LIMITED);
    CHECK(wall.format("video").color == MR_COLOR_BT709);
    for (uint32_t i = 0; i < 16; ++i) {
      Picture tile(pixel, 24, 16);
      Resampler resampler;
      resampler.prepare(48, 32, 24, 16, ResizeMethod::area);
      resampler.run(films[i].view(), tile.span());
      const ViewWindow place(made, i % 4 * 24, i / 4 * 16, 24, 16);
      INFO(name_of(pixel), " layer ", i);
      CHECK(same_pixels(place.view(), tile.view()));
    }
  }
}

TEST_CASE("image.composite refuses on planes what needs red, green and blue, and names the nearest choice") {
  for (const char* format : {"nv12", "i420", "p010"}) {
    TableTest composite(builtin("image.composite"), {{"format", format}, {"blend", "multiply"}});
    composite.input("layers", testing::image(Pixel::gray8, 4, 4), 0);
    CHECK(composite.start() == MR_ERROR);
    CHECK(composite.error() == "blend: multiply needs red, green and blue, and a canvas of " + std::string(format) +
                                   " has none; set format: rgb8, or blend: over");
  }
  TableTest translucent(builtin("image.composite"), {{"format", "i420"}, {"background", "#00000080"}});
  translucent.input("layers", testing::image(Pixel::gray8, 4, 4), 0);
  CHECK(translucent.start() == MR_ERROR);
}

TEST_CASE("a canvas of planes shows the last picture of a layer that is missing, where that is asked for") {
  TableTest row(builtin("image.composite"),
                {{"layout", "row"}, {"missing", "last"}, {"format", "i420"}, {"background", "#ffffff"}});
  row.input("layers", testing::image(Pixel::gray8, 9, 5, 255), 0);
  row.input("layers", testing::image(Pixel::rgb8, 9, 5, 0), 1);
  const Result both = row.tick();
  REQUIRE_MESSAGE(both.ok(), both.error);
  CHECK(both.image("video").row(4)[8] == 235);
  CHECK(both.image("video").row(4)[9] == 16);
  row.input("layers", Value(), 1);
  CHECK(row.tick().image("video").row(4)[9] == 16);
  REQUIRE(row.reset() == MR_OK);
  CHECK(row.tick().image("video").row(4)[9] == 235);
}
