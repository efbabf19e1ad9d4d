// Compositions against one that goes pixel by pixel, and image.composite as a pipeline drives it.
#include "handlers/image/compose.h"

#include <doctest/doctest.h>

#include <cmath>
#include <random>
#include <string>

#include "builtin.h"
#include "handlers/image/color.h"
#include "pictures.h"

using namespace millrace;
using namespace millrace::handlers;
using millrace::testing::Result;
using millrace::testing::TableTest;
using millrace::testing::Value;

namespace {

Picture scaled(const ImageView& source, uint32_t width, uint32_t height, ResizeMethod method) {
  Picture target(source.pixel(), width, height);
  Resampler resampler;
  resampler.prepare(source.width(), source.height(), width, height, method);
  resampler.run(source, target.span());
  return target;
}

// Layers that are stretched over their cells, all of the canvas's format or with alpha; one blend for each pixel.
Picture composed_slowly(const std::vector<Picture>& layers, const std::vector<LayerCell>& cells,
                        const ComposeSettings& settings, Pixel pixel, uint32_t width, uint32_t height) {
  Picture canvas(pixel, width, height);
  const uint32_t channels = bytes_per_pixel(pixel);
  for (uint32_t y = 0; y < height; ++y)
    for (uint32_t x = 0; x < width; ++x)
      std::memcpy(canvas.span().row(y) + size_t{x} * channels, settings.background.data(), channels);
  for (size_t i = 0; i < layers.size(); ++i) {
    if (layers[i].empty()) continue;
    const ImageView in = layers[i].view();
    const Extent size = cells[i].size.width ? cells[i].size : Extent{in.width(), in.height()};
    const bool smaller = size.width < in.width() || size.height < in.height();
    const Picture tile = scaled(in, size.width, size.height, smaller ? ResizeMethod::area : ResizeMethod::bilinear);
    Picture colors(pixel, size.width, size.height);
    convert_pixels(tile.view(), colors.span());
    for (uint32_t y = 0; y < size.height; ++y)
      for (uint32_t x = 0; x < size.width; ++x) {
        const int64_t column = cells[i].x + x, row = cells[i].y + y;
        if (column < 0 || row < 0 || column >= width || row >= height) continue;
        const uint8_t* above = colors.view().row(y) + size_t{x} * channels;
        const uint8_t* alpha = has_alpha(in.pixel()) ? tile.view().row(y) + size_t{x} * 4 + 3 : nullptr;
        uint8_t* below = canvas.span().row(static_cast<uint32_t>(row)) + column * channels;
        const BlendMode mode = i == 0 ? BlendMode::over : settings.blend;
        const uint8_t opacity = i == 0 ? uint8_t{255} : settings.opacity;
        if (channels == 4 && settings.background[3] < 255) {
          blend_translucent(mode, above, opacity, 1, below);
        } else {
          blend_pixels(mode, above, alpha, opacity, channels, 1, below);
        }
      }
  }
  return canvas;
}

std::vector<ImageView> views_of(const std::vector<Picture>& layers) {
  std::vector<ImageView> views;
  for (const Picture& layer : layers) views.push_back(layer.view());
  return views;
}

void compose(Composer& composer, const std::vector<Picture>& layers, const ComposeSettings& settings,
             const ImageSpan& canvas) {
  const std::vector<ImageView> views = views_of(layers);
  std::vector<const ImageView*> pointers;
  for (size_t i = 0; i < layers.size(); ++i) pointers.push_back(layers[i].empty() ? nullptr : &views[i]);
  composer.run(pointers, settings, canvas);
}

Value gray(uint8_t level, uint32_t width = 40, uint32_t height = 30) {
  return testing::image(Pixel::gray8, width, height, level);
}

} // namespace

TEST_CASE("a composition is what its layers give one pixel after the other, wherever they lie") {
  std::mt19937 random(71);
  for (int round = 0; round < 150; ++round) {
    const Pixel pixel = std::array{Pixel::gray8, Pixel::rgb8, Pixel::bgr8, Pixel::rgba8, Pixel::bgra8}[random() % 5];
    const Pixel with_alpha = pixel == Pixel::bgr8 || pixel == Pixel::bgra8 ? Pixel::bgra8 : Pixel::rgba8;
    const auto side = [&] { return static_cast<uint32_t>(random() % 30 + 1); };
    const uint32_t width = side() + 20, height = side() + 20;
    ComposeSettings settings;
    settings.fit = Fit::stretch;
    settings.blend = static_cast<BlendMode>(random() % 8);
    settings.opacity = random() % 2 ? uint8_t{255} : static_cast<uint8_t>(random());
    settings.keep_last = random() % 2;
    settings.background = {static_cast<uint8_t>(random()), 20, 30, 255};
    if (has_alpha(pixel) && random() % 2) settings.background[3] = 99;
    std::vector<Picture> layers;
    std::vector<LayerCell> cells;
    for (int i = 0; i < 4; ++i) {
      const auto seed = static_cast<uint32_t>(random());
      const bool alpha = random() % 3 == 0;
      const Pixel own = has_alpha(pixel) || alpha ? with_alpha : pixel;
      layers.push_back(random() % 8 == 0 ? Picture() : random_picture(own, side(), side(), seed));
      cells.push_back(
          {static_cast<int64_t>(random() % 60) - 20, static_cast<int64_t>(random() % 60) - 20, {side(), side()}});
      if (random() % 4 == 0) cells.back() = {0, 0, {width, height}};
      if (random() % 5 == 0) cells.back().size = {};
    }
    Composer composer;
    composer.set_layers(cells);
    Picture canvas = random_picture(pixel, width, height, 72);
    compose(composer, layers, settings, canvas.span());
    INFO("round " << round << ", " << size_of(canvas.view()));
    CHECK(same_pixels(canvas.view(), composed_slowly(layers, cells, settings, pixel, width, height).view()));
  }
}

TEST_CASE("a layer of another format is converted to the canvas's") {
  for (Pixel pixel : {Pixel::gray8, Pixel::rgb8, Pixel::nv12, Pixel::i420, Pixel::p010}) {
    std::vector<Picture> layers;
    layers.push_back(random_picture(pixel, 31, 17, 73));
    Picture canvas(Pixel::bgr8, 31, 17), wanted(Pixel::bgr8, 31, 17);
    convert_pixels(layers[0].view(), wanted.span());
    Composer composer;
    composer.set_layers({{0, 0, {31, 17}}});
    compose(composer, layers, {}, canvas.span());
    INFO(name_of(pixel));
    CHECK(same_pixels(canvas.view(), wanted.view()));
  }
}

TEST_CASE("a background that layouts of many holes leave is painted, however many there are") {
  // A chess board of 64 layers: more holes than rectangles are counted for.
  std::vector<Picture> layers;
  std::vector<LayerCell> cells;
  for (uint32_t i = 0; i < 64; ++i) {
    layers.push_back(random_picture(Pixel::gray8, 2, 2, i));
    cells.push_back({i % 8 * 4 + i / 8 % 2 * 2, i / 8 * 2, {2, 2}});
  }
  ComposeSettings settings;
  settings.background[0] = 77;
  Composer composer;
  composer.set_layers(cells);
  Picture canvas = random_picture(Pixel::gray8, 40, 20, 74);
  compose(composer, layers, settings, canvas.span());
  CHECK(same_pixels(canvas.view(), composed_slowly(layers, cells, settings, Pixel::gray8, 40, 20).view()));
}

TEST_CASE("a wall of nine holds each of its layers, scaled, in its place") {
  TableTest wall(builtin("image.composite"), {{"width", "120"}, {"height", "90"}});
  std::vector<Picture> layers;
  for (uint32_t i = 0; i < 9; ++i) {
    layers.push_back(random_picture(Pixel::rgb8, 80, 60, 80 + i));
    const ImageView view = layers[i].view();
    wall.input(
        "layers",
        testing::image(Pixel::rgb8, 80, 60, [&](uint32_t x, uint32_t y, uint32_t c) { return view.row(y)[x * 3 + c]; })
            .at(500, 7),
        i);
  }
  const Result result = wall.tick();
  REQUIRE(result.ok());
  const ImageView made = result.image("video");
  CHECK(made.width() == 120);
  CHECK(made.header().pts_ns == 500);
  CHECK(made.header().duration_ns == 7);
  for (uint32_t i = 0; i < 9; ++i) {
    const Picture tile = scaled(layers[i].view(), 40, 30, ResizeMethod::area);
    for (uint32_t y = 0; y < 30; ++y)
      CHECK(std::memcmp(made.row(i / 3 * 30 + y) + i % 3 * 120, tile.view().row(y), 120) == 0);
  }
}

TEST_CASE("a missing layer shows the background, or its last picture where that is asked for") {
  for (const char* missing : {"background", "last"}) {
    TableTest row(builtin("image.composite"), {{"layout", "row"}, {"missing", missing}, {"background", "#0a0a0a"}});
    row.input("layers", gray(100), 0);
    row.input("layers", gray(200), 1);
    const Result both = row.tick();
    REQUIRE(both.ok());
    CHECK(both.image("video").width() == 80);
    CHECK(both.image("video").row(29)[79] == 200);
    row.input("layers", Value(), 1);
    const Result one = row.tick();
    REQUIRE(one.ok());
    INFO(missing);
    CHECK(one.image("video").row(0)[0] == 100);
    CHECK(one.image("video").row(29)[79] == (std::string(missing) == "last" ? 200 : 10));
    row.input("layers", Value(), 0);
    CHECK(row.tick().image("video").row(0)[0] == (std::string(missing) == "last" ? 100 : 10));
    REQUIRE(row.reset() == MR_OK);
    CHECK(row.tick().image("video").row(0)[0] == 10);
  }
}

TEST_CASE("a canvas ends with the layer that ends first where that is asked for, and else goes on without it") {
  for (const bool shortest : {false, true}) {
    TableTest row(builtin("image.composite"), {{"layout", "row"}, {"until", shortest ? "shortest" : "longest"}});
    row.input("layers", testing::image(Pixel::gray8, 8, 8), 0);
    row.input("layers", testing::image(Pixel::gray8, 8, 8), 1);
    CHECK(row.tick().ok());
    row.input("layers", {}, 1); // missing, and not at its end
    CHECK(row.tick().has("video"));
    row.end_input("layers", 1);
    const Result last = row.tick();
    CHECK(last.end() == shortest);
    CHECK(last.has("video") == !shortest);
  }
}

TEST_CASE("no canvas is made where a layer is missing and that is to be skipped") {
  TableTest overlay(builtin("image.composite"), {{"layout", "overlay"}, {"missing", "skip"}});
  overlay.input("layers", gray(100), 0);
  overlay.input("layers", gray(200), 1);
  CHECK(overlay.tick().has("video"));
  overlay.input("layers", Value(), 1);
  const Result one = overlay.tick();
  CHECK(one.ok());
  CHECK_FALSE(one.has("video"));
}

TEST_CASE("a picture in a picture lies in its corner, in its shape, over the large one") {
  TableTest inset(builtin("image.composite"), {{"layout", "inset"}, {"scale", "0.5"}, {"corner", "top_right"}});
  inset.input("layers", gray(50, 100, 60), 0);
  inset.input("layers", gray(250, 30, 30), 1);
  const Result result = inset.tick();
  const ImageView made = result.image("video");
  CHECK(made.row(0)[99] == 50); // 30 x 30 stands in the middle of 50 x 30
  CHECK(made.row(0)[89] == 250);
  CHECK(made.row(29)[60] == 250);
  CHECK(made.row(29)[59] == 50);
  CHECK(made.row(30)[60] == 50);
}

TEST_CASE("opacity is of now, and the difference of a picture from itself is black") {
  TableTest fade(builtin("image.composite"), {{"layout", "overlay"}, {"opacity", "1"}});
  fade.input("layers", gray(100), 0);
  fade.input("layers", gray(200), 1);
  CHECK(fade.tick().image("video").row(5)[5] == 200);
  fade.set("opacity", "0.5");
  CHECK(fade.tick().image("video").row(5)[5] == 150);
  fade.set("opacity", "0");
  CHECK(fade.tick().image("video").row(5)[5] == 100);

  TableTest motion(builtin("image.composite"), {{"layout", "overlay"}, {"blend", "difference"}});
  motion.input("layers", gray(100), 0);
  motion.input("layers", gray(100), 1);
  CHECK(motion.tick().image("video").row(0)[0] == 0);
}

TEST_CASE("a translucent background stays translucent where nothing lies over it") {
  TableTest overlay(builtin("image.composite"), {{"layout", "overlay"},
                                                 {"places", "10,0"},
                                                 {"width", "50"},
                                                 {"height", "30"},
                                                 {"format", "bgra8"},
                                                 {"background", "#10203040"}});
  overlay.input("layers", gray(100), 0);
  const Result result = overlay.tick();
  const ImageView made = result.image("video");
  CHECK(std::vector<uint8_t>(made.row(3), made.row(3) + 4) == std::vector<uint8_t>{0x30, 0x20, 0x10, 0x40});
  CHECK(std::vector<uint8_t>(made.row(3) + 40, made.row(3) + 44) == std::vector<uint8_t>{100, 100, 100, 255});
}

TEST_CASE("image.composite's canvas lasts as long as the shortest of the pictures that came with the first") {
  const auto lasts = [](const std::vector<std::pair<int64_t, int64_t>>& layers) {
    TableTest row(builtin("image.composite"), {{"layout", "row"}});
    for (uint32_t i = 0; i < layers.size(); ++i)
      row.input("layers",
                testing::image(Pixel::rgb8, 4, 4, [](uint32_t, uint32_t, uint32_t) { return 7; })
                    .at(layers[i].first, layers[i].second),
                i);
    return row.tick().image("video").header().duration_ns;
  };
  CHECK(lasts({{0, 100}, {0, 40}}) == 40);
  CHECK(lasts({{0, 40}, {0, 100}}) == 40);
  CHECK(lasts({{0, 100}, {0, 0}}) == 100);    // of one it is not known
  CHECK(lasts({{0, 100}, {-30, 40}}) == 100); // one that came before
}

TEST_CASE("image.composite says before it starts what cannot be") {
  const auto refusal = [](std::initializer_list<testing::Setting> settings) {
    TableTest composite(builtin("image.composite"), settings);
    composite.input("layers", gray(1), 0);
    return composite.start() == MR_ERROR ? composite.error() : std::string("started");
  };
  CHECK(refusal({{"background", "blue"}}) == "background 'blue' is neither \"#rrggbb\" nor \"#rrggbbaa\"");
  CHECK(refusal({{"background", "#00000080"}}) ==
        "background '#00000080' is translucent and gray8 has no alpha; set format: rgba8 or bgra8");
  CHECK(refusal({{"layout", "overlay"}, {"places", "1,1;2,2"}}) == "there are 2 places for 1 layer");
  CHECK(refusal({{"places", "1,1"}}) == "places go with layout: overlay, and layout is grid");
  TableTest none(builtin("image.composite"));
  CHECK(none.start() == MR_ERROR);
  CHECK(none.error() == "image.composite needs at least one layer");
}

TEST_CASE("the canvas has the format of its first layer, one that is asked for, or rgb8 where colours are multiplied") {
  struct Asked {
    const char *format, *blend;
    Pixel made;
  };
  for (const auto& [asked, blend, made] : {Asked{"first", "over", Pixel::i420},
                                           {"first", "multiply", Pixel::rgb8},
                                           {"bgra8", "over", Pixel::bgra8},
                                           {"gray8", "over", Pixel::gray8}}) {
    TableTest composite(builtin("image.composite"), {{"format", asked}, {"blend", blend}});
    composite.input("layers", testing::image(Pixel::i420, 8, 8, 128), 0);
    const Result result = composite.tick();
    REQUIRE(result.ok());
    CHECK(result.image("video").pixel() == made);
    CHECK(composite.format("video").pixel_formats == bit_of(made));
  }
}

TEST_CASE("an opaque layer that hangs over the canvas's edge leaves the canvas opaque") {
  const Picture layer = random_picture(Pixel::rgb8, 8, 8, 1);
  const ImageView view = layer.view();
  const ImageView* layers[] = {&view};
  Picture canvas(Pixel::rgba8, 6, 6); // alpha 0 before
  Composer composer;
  composer.set_layers({{-2, 1, {}}});
  composer.run(layers, {}, canvas.span());
  for (uint32_t y = 0; y < 6; ++y)
    for (uint32_t x = 0; x < 6; ++x) CHECK(canvas.view().row(y)[4 * x + 3] == 255);
}

TEST_CASE("colours that are multiplied by their alpha are added as they are, and divided by it for other modes") {
  const Value below = testing::image(Pixel::rgb8, 1, 1, 100);
  const Value above =
      testing::image(Pixel::rgba8, 1, 1, [](uint32_t, uint32_t, uint32_t c) { return c == 3 ? 128 : 64; });
  const auto made = [&](const char* blend, const char* premultiplied) {
    TableTest composite(builtin("image.composite"),
                        {{"layout", "overlay"}, {"blend", blend}, {"premultiplied", premultiplied}});
    composite.input("layers", below, 0);
    composite.input("layers", above, 1);
    const Result result = composite.tick();
    REQUIRE(result.ok());
    return int{result.image("video").row(0)[0]};
  };
  CHECK(made("over", "false") == 82);     // (64 * 128 + 100 * 127) / 255
  CHECK(made("over", "true") == 114);     // 64 + 100 * 127 / 255
  CHECK(made("lighten", "true") == 114);  // its own colour is 127.5, of half the weight
  CHECK(made("lighten", "false") == 100); // 64 is darker
}

TEST_CASE("image.composite with the last pictures of missing layers does not run on a GPU") {
  for (const char* missing : {"background", "last"}) {
    TableTest composite(builtin("image.composite"), {{"missing", missing}});
    composite.input("layers", testing::image(Pixel::rgb8, 2, 2));
    REQUIRE(composite.start() == MR_OK);
    CHECK((composite.facts().cost_gpu_ns < 0) == (std::string(missing) == "last"));
  }
}
