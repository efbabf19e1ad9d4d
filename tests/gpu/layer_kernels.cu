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
  ComposeSettings settings = {};
  uint32_t color = MR_COLOR_SRGB, range = MR_RANGE_FULL; // of a canvas of planes
  std::vector<Picture> pictures = {};
  std::vector<LayerCell> cells = {};
};

// How a composition's canvas and layers are: any; in their own size and with alpha, on a canvas with alpha; or on a
// canvas of planes.
enum class Kind { any, overlay, planes };

Composition composition(uint32_t seed, uint32_t layer_count, Kind kind) {
  const bool plain = kind == Kind::overlay;
  std::mt19937 random(seed);
  const auto any = [&](uint32_t count) { return static_cast<uint32_t>(random() % count); };
  Composition made{plain ? Pixel::rgba8 : kPixelFormats[any(5)], 1 + any(200), 1 + any(90)};
  if (kind == Kind::planes) made.pixel = kPixelFormats[5 + any(3)];
  made.color = 1 + any(3);
  made.range = any(2);
  made.settings.fit = static_cast<Fit>(any(3));
  made.settings.scaling = static_cast<Scaling>(any(4));
  made.settings.blend = static_cast<BlendMode>(any(8));
  made.settings.opacity = static_cast<uint8_t>(any(2) ? 255 : any(256));
  made.settings.premultiplied = any(2);
  made.settings.background = {10, 200, 90, static_cast<uint8_t>(has_alpha(made.pixel) && any(2) ? any(256) : 255)};
  for (uint32_t i = 0; i < layer_count; ++i) {
    const Pixel source = plain ? (any(2) ? Pixel::rgba8 : Pixel::bgra8) : kPixelFormats[any(8)];
    made.pictures.push_back(random_picture(source, 2 + any(200), 2 + any(90), random()).tag(any(4), any(2)));
    if (kind == Kind::planes && any(2)) made.pictures.back().tag(made.color, made.range);
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
  canvas.tag(composition.color, composition.range);
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

// The same for a canvas of planes.
Picture planes_by_gpu(const Composition& composition) {
  const ComposeSettings& settings = composition.settings;
  Picture canvas(composition.pixel, composition.width, composition.height);
  canvas.tag(composition.color, composition.range);
  std::memset(canvas.span().data(), kPoison, canvas.view().header().extent_bytes);
  const on_gpu::TwinPicture twin(canvas.view());
  std::vector<std::unique_ptr<on_gpu::TwinPicture>> twins;
  std::vector<gpu::PlanarLayer> layers;
  for (size_t i = 0; i < composition.pictures.size(); ++i) {
    twins.push_back(std::make_unique<on_gpu::TwinPicture>(composition.pictures[i].view()));
    layers.push_back(gpu::planar_layer_of(twins.back()->device(), composition.cells[i],
                                          i == 0 ? uint8_t{255} : settings.opacity, settings, twin.device().image));
  }
  gpu::check(gpu::layer_kernels().compose_planes(on_gpu::kStream, layers, settings.background, twin.device()));
  twin.download(canvas.span());
  return canvas;
}

// A scaled number of a layer may be 1 away from the CPU's (resample_math.h): four steps of ten bits.
int a_step_of_eight_bits(Pixel canvas) { return canvas == Pixel::p010 ? 4 : 1; }

} // namespace

TEST_CASE("canvases of nv12, i420 and p010 are composed as on the CPU, whatever lies on them") {
  for (uint32_t seed = 0; seed < 400; ++seed) {
    const Composition wanted = composition(5000 + seed, 1 + seed % 5, Kind::planes);
    INFO("seed ", 5000 + seed, ", ", std::string(name_of(wanted.pixel)), ", ", wanted.pictures.size(), " layers");
    CHECK(distance(planes_by_gpu(wanted).view(), by_cpu(wanted).view()) <= a_step_of_eight_bits(wanted.pixel));
  }
  const Composition many = composition(5999, 64, Kind::planes);
  CHECK(distance(planes_by_gpu(many).view(), by_cpu(many).view()) <= a_step_of_eight_bits(many.pixel));
  const Composition none = composition(5998, 0, Kind::planes);
  CHECK(distance(planes_by_gpu(none).view(), by_cpu(none).view()) == 0);
}

TEST_CASE("a wall of films is composed to the CPU's bytes: each in its own numbers, in one launch") {
  for (const Pixel pixel : {Pixel::nv12, Pixel::i420, Pixel::p010})
    for (const bool scaled : {false, true}) {
      Composition wall{pixel, 161, 91};
      wall.color = MR_COLOR_BT709;
      wall.range = MR_RANGE_LIMITED;
      wall.settings.scaling = scaled ? Scaling::bilinear : Scaling::automatic;
      for (uint32_t i = 0; i < 16; ++i) {
        const Extent size = scaled ? Extent{64, 48} : Extent{40, 22};
        wall.pictures.push_back(random_picture(pixel, size.width, size.height, 600 + i));
        wall.pictures.back().tag(wall.color, wall.range);
        wall.cells.push_back({i % 4 * 40, i / 4 * 22, {40, 22}});
      }
      INFO(name_of(pixel), scaled ? " scaled" : " as they are");
      CHECK(same_pixels(planes_by_gpu(wall).view(), by_cpu(wall).view()));
    }
}

TEST_CASE("layers of any format, size, place and mode are composed as on the CPU") {
  for (uint32_t seed = 0; seed < 300; ++seed) {
    const Composition wanted = composition(seed, 1 + seed % 5, Kind::any);
    INFO("seed ", seed);
    CHECK(distance(by_gpu(wanted).view(), by_cpu(wanted).view()) <= 1);
  }
}

TEST_CASE("overlays in their own size are composed to the same bytes as on the CPU") {
  for (uint32_t seed = 0; seed < 200; ++seed) {
    const Composition wanted = composition(1000 + seed, 1 + seed % 4, Kind::overlay);
    INFO("seed ", 1000 + seed);
    const int allowed = wanted.settings.background[3] == 255 ? 0 : 1;
    CHECK(distance(by_gpu(wanted).view(), by_cpu(wanted).view()) <= allowed);
  }
}

TEST_CASE("as many layers as image.composite takes are composed, in several launches") {
  const Composition wanted = composition(7, 64, Kind::any);
  CHECK(distance(by_gpu(wanted).view(), by_cpu(wanted).view()) <= 1);
}

TEST_CASE("a canvas without any layer is its background") {
  const Composition wanted = composition(3, 0, Kind::any);
  CHECK(distance(by_gpu(wanted).view(), by_cpu(wanted).view()) == 0);
}
