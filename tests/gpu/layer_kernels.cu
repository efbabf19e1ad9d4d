// The kernels of image.composite against the CPU's composer.
#include "handlers/gpu/layer_kernels.h"

#include <doctest/doctest.h>

#include <cmath>
#include <memory>
#include <random>

#include "handlers/image/compose.h"
#include "on_gpu_tensor.h"
#include "tests/handlers/pictures.h"

using namespace millrace;
using namespace millrace::handlers;

namespace {

// Pictures, where they go and how, as a random number says.
struct Composition {
  Pixel pixel;
  uint32_t width, height;
  ComposeSettings settings;
  std::vector<Picture> pictures;
  std::vector<LayerCell> cells;
};

constexpr Pixel kSources[] = {Pixel::gray8, Pixel::rgb8, Pixel::bgr8, Pixel::rgba8,
                              Pixel::bgra8, Pixel::nv12, Pixel::i420};

Composition composition(uint32_t seed, uint32_t layer_count, bool plain) {
  std::mt19937 random(seed);
  const auto any = [&](uint32_t count) { return static_cast<uint32_t>(random() % count); };
  Composition made{plain ? Pixel::rgba8 : kSources[any(5)], 1 + any(200), 1 + any(90), {}, {}, {}};
  made.settings.fit = static_cast<Fit>(any(3));
  made.settings.scaling = static_cast<Scaling>(any(4));
  made.settings.blend = static_cast<BlendMode>(any(8));
  made.settings.opacity = static_cast<uint8_t>(any(2) ? 255 : any(256));
  made.settings.premultiplied = any(2);
  made.settings.background = {10, 200, 90, static_cast<uint8_t>(has_alpha(made.pixel) && any(2) ? any(256) : 255)};
  for (uint32_t i = 0; i < layer_count; ++i) {
    const Pixel source = plain ? (any(2) ? Pixel::rgba8 : Pixel::bgra8) : kSources[any(7)];
    made.pictures.push_back(random_picture(source, 2 + any(200), 2 + any(90), random()).tag(any(4), any(2)));
    const bool own = plain || any(3) == 0;
    made.cells.push_back(
        {int64_t{any(120)} - 40, int64_t{any(80)} - 40, own ? Extent{} : Extent{1 + any(220), 1 + any(120)}});
  }
  return made;
}

Picture by_cpu(const Composition& composition) {
  std::vector<ImageView> views;
  std::vector<const ImageView*> present;
  for (const Picture& picture : composition.pictures) views.push_back(picture.view());
  for (const ImageView& view : views) present.push_back(&view);
  Picture canvas(composition.pixel, composition.width, composition.height);
  Composer composer;
  composer.set_layers(composition.cells);
  composer.run(present, composition.settings, canvas.span());
  return canvas;
}

Picture by_gpu(const Composition& composition) {
  const ComposeSettings& settings = composition.settings;
  std::vector<std::unique_ptr<on_gpu::TwinPicture>> twins;
  std::vector<gpu::Layer> layers;
  for (size_t i = 0; i < composition.pictures.size(); ++i) {
    const ImageView view = composition.pictures[i].view();
    twins.push_back(std::make_unique<on_gpu::TwinPicture>(view));
    const FittedLayer fitted = fit_layer({view.width(), view.height()}, composition.cells[i], settings.fit);
    layers.push_back(gpu::layer_of(twins.back()->device(), fitted, i == 0 ? BlendMode::over : settings.blend,
                                   i == 0 ? uint8_t{255} : settings.opacity, settings, composition.pixel));
  }
  Picture canvas(composition.pixel, composition.width, composition.height);
  const ImageSpan span = canvas.span();
  std::memset(span.data(), kPoison, span.header().extent_bytes);
  const on_gpu::TwinPicture twin(canvas.view());
  uint32_t background = 0;
  std::memcpy(&background, settings.background.data(), sizeof background);
  const bool opaque = !has_alpha(composition.pixel) || settings.background[3] == 255;
  gpu::check(gpu::layer_kernels().compose(on_gpu::kStream, layers, background, opaque, twin.device()));
  twin.download(canvas.span());
  return canvas;
}

} // namespace

TEST_CASE("layers of any format, size, place and mode are composed as on the CPU") {
  for (uint32_t seed = 0; seed < 300; ++seed) {
    const Composition wanted = composition(seed, 1 + seed % 5, false);
    INFO("seed ", seed);
    CHECK(distance(by_gpu(wanted).view(), by_cpu(wanted).view()) <= 1);
  }
}

TEST_CASE("overlays in their own size are composed to the same bytes as on the CPU") {
  for (uint32_t seed = 0; seed < 200; ++seed) {
    const Composition wanted = composition(1000 + seed, 1 + seed % 4, true);
    INFO("seed ", 1000 + seed);
    const int allowed = wanted.settings.background[3] == 255 ? 0 : 1;
    CHECK(distance(by_gpu(wanted).view(), by_cpu(wanted).view()) <= allowed);
  }
}

TEST_CASE("as many layers as image.composite takes are composed, in several launches") {
  const Composition wanted = composition(7, 64, false);
  CHECK(distance(by_gpu(wanted).view(), by_cpu(wanted).view()) <= 1);
}

TEST_CASE("a canvas without any layer is its background") {
  const Composition wanted = composition(3, 0, false);
  CHECK(distance(by_gpu(wanted).view(), by_cpu(wanted).view()) == 0);
}
