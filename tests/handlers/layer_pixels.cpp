// The pixels of layers as kernels make them against the rows of the CPU's composer.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <random>
#include <string>

#include "blend_modes.h"
#include "handlers/gpu/layer.h"
#include "handlers/image/compose.h"
#include "pictures.h"

using namespace millrace;
using namespace millrace::handlers;

namespace {

uint32_t word_of(const uint8_t* bytes) {
  uint32_t word = 0;
  for (uint32_t i = 0; i < 4; ++i) word |= uint32_t{bytes[i]} << 8 * i;
  return word;
}

// A canvas made pixel by pixel by what kernels call.
Picture composed_by_pixels(const std::vector<Picture>& pictures, const std::vector<LayerCell>& cells,
                           const ComposeSettings& settings, Pixel pixel, uint32_t width, uint32_t height) {
  Picture canvas(pixel, width, height);
  const ImageSpan span = canvas.span();
  const bool opaque = !has_alpha(pixel) || settings.background[3] == 255;
  for (uint32_t y = 0; y < height; ++y)
    for (uint32_t x = 0; x < width; ++x) {
      uint32_t made = word_of(settings.background.data());
      for (size_t i = 0; i < pictures.size(); ++i) {
        const ImageView view = pictures[i].view();
        const FittedLayer fitted = fit_layer({view.width(), view.height()}, cells[i], settings.fit);
        const gpu::Layer layer = gpu::layer_of(gpu::on_device(view), fitted, i == 0 ? BlendMode::over : settings.blend,
                                               i == 0 ? uint8_t{255} : settings.opacity, settings, pixel);
        const int64_t column = int64_t{x} - layer.left, row = int64_t{y} - layer.top;
        if (column < 0 || row < 0 || column >= layer.columns.target || row >= layer.rows.target) continue;
        const uint32_t above = gpu::scaled_pixel(layer, static_cast<uint32_t>(column), static_cast<uint32_t>(row));
        made = gpu::laid_over(layer, above, made, opaque);
      }
      for (uint32_t c = 0; c < bytes_per_pixel(pixel); ++c)
        span.row(y)[x * bytes_per_pixel(pixel) + c] = static_cast<uint8_t>(made >> 8 * c);
    }
  return canvas;
}

} // namespace

TEST_CASE("a pixel laid over another is what rows of them are, in every mode") {
  std::mt19937 random(5);
  for (BlendMode mode : kBlendModes)
    for (int i = 0; i < 20'000; ++i) {
      const auto above = static_cast<uint32_t>(random());
      auto below = static_cast<uint32_t>(random());
      const auto opacity = static_cast<uint8_t>(i % 3 == 0 ? 255 : random());
      uint8_t over[4], under[4];
      std::memcpy(over, &above, 4);
      std::memcpy(under, &below, 4);
      blend_translucent(mode, over, opacity, 1, under);
      REQUIRE(gpu::over_translucent(mode, word_of(over), opacity, word_of(reinterpret_cast<uint8_t*>(&below))) ==
              word_of(under));
      std::memcpy(under, &below, 4);
      blend_pixels(mode, over, nullptr, opacity, 4, 1, under);
      REQUIRE(gpu::over_opaque(mode, above, gpu::byte_product(over[3], opacity), below) == word_of(under));
      std::memcpy(under, &below, 4);
      blend_premultiplied(over, nullptr, opacity, 4, 1, under);
      REQUIRE(gpu::premultiplied_over_opaque(above, opacity, gpu::byte_product(over[3], opacity), below) ==
              word_of(under));
    }
}

TEST_CASE("laid over by its alpha alone a pixel is what it is by the general way") {
  for (uint32_t weight = 0; weight < 256; ++weight)
    for (uint32_t over = 0; over < 256; ++over)
      for (uint32_t under = 0; under < 256; ++under) {
        const uint32_t above = weight << 24 | (over ^ 255) << 16 | over << 8 | (over * 7 & 255);
        const uint32_t below = (under * 5 & 255) << 24 | (under * 3 & 255) << 16 | under << 8 | (under ^ 85);
        if (gpu::simply_over_opaque(above, below) != gpu::over_opaque(BlendMode::over, above, weight, below))
          FAIL(weight, " ", over, " ", under);
      }
}

TEST_CASE("a premultiplied pixel is straightened to the nearest colour, and at most 255") {
  for (uint32_t alpha = 1; alpha < 256; ++alpha)
    for (uint32_t color = 0; color < 256; ++color) {
      const uint32_t made = gpu::straightened(alpha << 24 | color << 8) >> 8 & 255;
      CHECK(std::abs(made - std::min(255.0, 255.0 * color / alpha)) < 0.5001);
    }
  CHECK(gpu::straightened(0x00010203u) == 0x00010203u);
}

TEST_CASE("a composition pixel by pixel is the composer's, whatever its layers, places and canvas") {
  std::mt19937 random(9);
  const auto any = [&](uint32_t count) { return static_cast<uint32_t>(random() % count); };
  const auto& sources = kPixelFormats;
  for (int round = 0; round < 600; ++round) {
    const Pixel pixel = sources[any(5)];
    const uint32_t width = 1 + any(40), height = 1 + any(30);
    ComposeSettings settings;
    settings.fit = static_cast<Fit>(any(3));
    settings.scaling = static_cast<Scaling>(any(4));
    settings.blend = kBlendModes[any(8)];
    settings.opacity = static_cast<uint8_t>(any(2) ? 255 : any(256));
    settings.premultiplied = any(2);
    settings.background = {10, 200, 90, static_cast<uint8_t>(has_alpha(pixel) && any(2) ? any(256) : 255)};
    std::vector<Picture> pictures;
    std::vector<LayerCell> cells;
    std::vector<ImageView> views;
    std::vector<const ImageView*> present;
    for (uint32_t i = 0, count = 1 + any(4); i < count; ++i) {
      pictures.push_back(random_picture(sources[any(8)], 2 + any(40), 2 + any(30), static_cast<uint32_t>(random()))
                             .tag(any(4), any(2)));
      const bool own = any(3) == 0;
      cells.push_back(
          {int64_t{any(30)} - 10, int64_t{any(30)} - 10, own ? Extent{} : Extent{1 + any(50), 1 + any(50)}});
    }
    for (const Picture& picture : pictures) views.push_back(picture.view());
    for (const ImageView& view : views) present.push_back(&view);
    Picture wanted(pixel, width, height);
    Composer composer;
    composer.set_layers(cells);
    composer.run(present, settings, wanted.span());
    const Picture made = composed_by_pixels(pictures, cells, settings, pixel, width, height);
    INFO("round ", round, " canvas ", size_of(wanted.view()));
    // A part that is one pixel wide is weighed in single precision on the CPU.
    CHECK(distance(made.view(), wanted.view()) <= 1);
  }
}

TEST_CASE("four pixels of a layer read at once are those read one by one") {
  for (Pixel source : {Pixel::gray8, Pixel::rgb8, Pixel::bgr8, Pixel::nv12})
    for (Pixel canvas : {Pixel::gray8, Pixel::rgb8, Pixel::bgra8})
      for (uint32_t range : {MR_RANGE_FULL, MR_RANGE_LIMITED}) {
        const Picture picture = random_picture(source, 64, 6, 2).tag(MR_COLOR_BT709, range);
        const gpu::Layer layer = gpu::layer_of(gpu::on_device(picture.view()), {0, 0, {64, 6}, 0, 0, {64, 6}},
                                               BlendMode::over, 255, {}, canvas);
        for (uint32_t y = 0; y < 6; ++y)
          for (uint32_t x = 0; x + 4 <= 64; x += 4) {
            uint32_t four[4];
            // The bytes of a Picture begin at a multiple of four, as all memory from the heap.
            REQUIRE(gpu::four_pixels_at(layer, x, y, four));
            for (uint32_t i = 0; i < 4; ++i) CHECK(four[i] == gpu::pixel_at(layer, x + i, y));
          }
      }
}
