// The arithmetic of kernels, run by the host over whole pictures as a GPU would run it, against the CPU's.
#include <doctest/doctest.h>

#include <algorithm>
#include <cstdlib>
#include <utility>
#include <vector>

#include "handlers/gpu/adjust.h"
#include "handlers/gpu/blur.h"
#include "handlers/gpu/convert.h"
#include "handlers/gpu/painted.h"
#include "handlers/gpu/resize.h"
#include "handlers/gpu/turn.h"
#include "handlers/image/color.h"
#include "pictures.h"

using namespace millrace;
using namespace millrace::handlers;

namespace {

const std::vector<std::pair<uint32_t, uint32_t>> kKernelSizes = {{1, 1}, {2, 2},   {3, 5},   {9, 1},
                                                                 {1, 9}, {65, 33}, {352, 18}};
constexpr uint8_t kPoison = 0xdb;

// A picture all of whose bytes are poison, so that what is not written, or written beside it, shows.
Picture poisoned(Pixel pixel, uint32_t width, uint32_t height) {
  Picture picture(pixel, width, height);
  std::fill_n(picture.span().data(), picture.view().header().extent_bytes, kPoison);
  return picture;
}

// As a grid of threads would, each of which has a tile of this size.
template <class Body>
void over_tiles(const ImageView& target, uint32_t tile_width, uint32_t tile_height, const Body& body) {
  for (uint32_t y = 0; y < target.height(); y += tile_height)
    for (uint32_t x = 0; x < target.width(); x += tile_width) body(x, y);
}

// Another kernel copies pictures that need no conversion.
void check_conversion(Pixel from, Pixel to, std::pair<uint32_t, uint32_t> size, uint32_t source_tag,
                      uint32_t target_tag) {
  if (from == to && source_tag == target_tag) return;
  const Picture source = random_picture(from, size.first, size.second, 21).tag(source_tag / 2, source_tag % 2);
  Picture wanted = Picture(to, size.first, size.second).tag(target_tag / 2, target_tag % 2);
  Picture made = poisoned(to, size.first, size.second).tag(target_tag / 2, target_tag % 2);
  convert_pixels(source.view(), wanted.span());
  const gpu::Conversion conversion = gpu::conversion_of(gpu::on_device(source.view()), gpu::on_device(made.span()));
  over_tiles(made.view(), gpu::kTileWidth, gpu::kTileHeight,
             [&](uint32_t x, uint32_t y) { gpu::convert_tile(conversion, x, y); });
  INFO(size_of(source.view()) << " tagged " << source_tag << " to " << size_of(made.view()) << " tagged "
                              << target_tag);
  CHECK(same_pixels(made.view(), wanted.view()));
  CHECK(padding_holds(kPoison, made.view()));
}

uint32_t tag_of(uint32_t color, uint32_t range) { return 2 * color + range; }

} // namespace

TEST_CASE("division by multiplication is exact") {
  const std::vector<uint64_t> divisors = {2, 3, 7, 44, 1919, 1920, 65535, 65536, 131071, 131072};
  for (const uint64_t by : divisors) {
    const uint64_t largest = uint64_t{1} << 33;
    const std::vector<uint64_t> numbers = {0, 1, by - 1, by, by + 1, 1000 * by - 1, 1000 * by, largest - 1, largest};
    for (const uint64_t number : numbers) {
      INFO(number << " by " << by);
      CHECK(gpu::Divider(by).quotient(number) == number / by);
    }
  }
}

TEST_CASE("a kernel converts every format to every other as the CPU does, to the bit") {
  for (const auto& size : kKernelSizes)
    for (Pixel from : kPixelFormats)
      for (Pixel to : kPixelFormats)
        check_conversion(from, to, size, tag_of(MR_COLOR_BT709, MR_RANGE_LIMITED),
                         tag_of(MR_COLOR_BT601, MR_RANGE_FULL));
}

TEST_CASE("a kernel converts by every matrix and range as the CPU does, to the bit") {
  for (Pixel planar : {Pixel::nv12, Pixel::i420, Pixel::p010})
    for (uint32_t color : {MR_COLOR_BT601, MR_COLOR_BT709, MR_COLOR_BT2020})
      for (uint32_t range : {MR_RANGE_FULL, MR_RANGE_LIMITED}) {
        const uint32_t tag = tag_of(color, range);
        for (Pixel other : kPixelFormats) {
          check_conversion(planar, other, {65, 33}, tag, tag);
          check_conversion(other, planar, {65, 33}, tag, tag);
        }
      }
}

TEST_CASE("a kernel paints the pictures of test.pattern as the CPU does, to the bit") {
  for (const auto& [width, height] : kKernelSizes)
    for (Pattern pattern : {Pattern::bars, Pattern::gradient, Pattern::disc})
      for (Pixel to : kPixelFormats)
        for (uint64_t index : {uint64_t{0}, uint64_t{77}, uint64_t{0x1'2345'6789}}) {
          Picture canvas(Pixel::rgb8, width, height);
          paint_pattern(pattern, index, canvas.span());
          burn_number(canvas.span(), static_cast<uint32_t>(index));
          Picture wanted = Picture(to, width, height).tag(MR_COLOR_BT601, MR_RANGE_LIMITED);
          convert_pixels(canvas.view(), wanted.span());
          Picture made = poisoned(to, width, height).tag(MR_COLOR_BT601, MR_RANGE_LIMITED);
          const gpu::Painting painting(pattern, gpu::on_device(made.span()));
          const gpu::Scene scene = gpu::scene_of(painting, index);
          over_tiles(made.view(), gpu::kTileWidth, gpu::kTileHeight,
                     [&](uint32_t x, uint32_t y) { gpu::paint_tile(painting, scene, x, y); });
          INFO(size_of(made.view()) << ", pattern " << static_cast<int>(pattern) << ", index " << index);
          CHECK(same_pixels(made.view(), wanted.view()));
          CHECK(padding_holds(kPoison, made.view()));
        }
}

namespace {

template <class Of, ResizeMethod kMethod, bool kMany>
void resize_all(const gpu::Resizing& resizing) {
  constexpr gpu::ResizeTile kTile = gpu::resize_tile(kMethod, kMany);
  for (uint32_t y = 0; y < resizing.y.target; y += kTile.rows)
    for (uint32_t x = 0; x < resizing.x.target; x += kTile.columns)
      gpu::resize_tile_at<Of, kMethod, kMany>(resizing, x, y);
}

template <class Of>
void resize(const gpu::Resizing& resizing, ResizeMethod method) {
  if (method == ResizeMethod::nearest) return resize_all<Of, ResizeMethod::nearest, false>(resizing);
  if (method == ResizeMethod::bilinear) return resize_all<Of, ResizeMethod::bilinear, false>(resizing);
  if (gpu::takes_many(resizing)) return resize_all<Of, ResizeMethod::area, true>(resizing);
  resize_all<Of, ResizeMethod::area, false>(resizing);
}

Picture resized(const ImageView& source, uint32_t width, uint32_t height, ResizeMethod method) {
  Picture made = poisoned(source.pixel(), width, height);
  for (uint32_t plane = 0; plane < source.plane_count(); ++plane)
    gpu::with_samples(source.pixel(), plane, [&]<class Of>(Of) {
      resize<Of>(gpu::resizing_of(gpu::on_device(source), gpu::on_device(made.span()), plane), method);
    });
  return made;
}

// The CPU weighs planes of one row or column in single precision, and area always.
int resize_distance_max(const ImageView& source, ResizeMethod method) {
  if (method == ResizeMethod::nearest) return 0;
  const uint32_t line = halves_chroma(source.pixel()) ? 2 : 1;
  return method == ResizeMethod::bilinear && source.width() > line && source.height() > line ? 0 : 1;
}

} // namespace

TEST_CASE("a kernel resizes as the CPU does, area within one step") {
  for (const auto& [width, height] : kKernelSizes)
    for (const auto& [to_width, to_height] : kKernelSizes)
      for (Pixel pixel : kPixelFormats)
        for (ResizeMethod method : {ResizeMethod::nearest, ResizeMethod::bilinear, ResizeMethod::area}) {
          const Picture source = random_picture(pixel, width, height, 22);
          Picture wanted(pixel, to_width, to_height);
          Resampler resampler;
          resampler.prepare(width, height, to_width, to_height, method);
          resampler.run(source.view(), wanted.span());
          const Picture made = resized(source.view(), to_width, to_height, method);
          INFO(size_of(source.view()) << " to " << size_of(made.view()) << ", method " << static_cast<int>(method));
          CHECK(distance(made.view(), wanted.view()) <= resize_distance_max(source.view(), method));
          CHECK(padding_holds(kPoison, made.view()));
        }
}

namespace {

template <uint32_t kBytes>
void turn_plane(const gpu::PlaneTurn& plane) {
  if (!swaps_sides(plane.turn)) {
    for (uint32_t y = 0; y < plane.height; ++y)
      for (uint32_t x = 0; x < plane.width; x += 4) gpu::mirror_four<kBytes>(plane, x, y);
    return;
  }
  gpu::TurnSquare square;
  for (uint32_t top = 0; top < plane.height; top += gpu::kSquare)
    for (uint32_t left = 0; left < plane.width; left += gpu::kSquare) {
      for (uint32_t i = 0; i < gpu::kSquare * gpu::kSquare; ++i)
        gpu::load_turned<kBytes>(plane, left, top, i / gpu::kSquare, i % gpu::kSquare, square);
      for (uint32_t i = 0; i < gpu::kSquare * gpu::kSquare; i += 4)
        gpu::store_turned<kBytes>(plane, left, top, i % gpu::kSquare, i / gpu::kSquare, square);
    }
}

Picture turned(const ImageView& source, Turn turn) {
  const bool swaps = swaps_sides(turn);
  Picture made =
      poisoned(source.pixel(), swaps ? source.height() : source.width(), swaps ? source.width() : source.height());
  for (uint32_t p = 0; p < source.plane_count(); ++p) {
    const gpu::PlaneTurn plane = gpu::plane_turn(turn, gpu::on_device(source), gpu::on_device(made.span()), p);
    const uint32_t bytes = sample_bytes(source.pixel(), p);
    if (bytes == 1) turn_plane<1>(plane);
    if (bytes == 2) turn_plane<2>(plane);
    if (bytes == 3) turn_plane<3>(plane);
    if (bytes == 4) turn_plane<4>(plane);
  }
  return made;
}

void copy(const gpu::RowCopy& copy) {
  for (uint32_t y = 0; y < copy.rows; ++y)
    for (uint32_t x = 0; x < copy.bytes; x += 16) gpu::copy_sixteen(copy, x, y);
}

} // namespace

TEST_CASE("a kernel turns pictures as the CPU does") {
  for (const auto& [width, height] : kKernelSizes)
    for (Pixel pixel : kPixelFormats)
      for (Turn turn :
           {Turn::horizontal, Turn::both, Turn::rotate90, Turn::rotate270, Turn::transpose, Turn::transverse}) {
        const Picture source = random_picture(pixel, width, height, 23);
        const Picture made = turned(source.view(), turn);
        Picture wanted(pixel, made.view().width(), made.view().height());
        turn_picture(turn, source.view(), wanted.span());
        INFO(size_of(source.view()) << ", turn " << static_cast<int>(turn));
        CHECK(same_pixels(made.view(), wanted.view()));
        CHECK(padding_holds(kPoison, made.view()));
      }
}

TEST_CASE("a kernel copies rows from any address, downwards and upwards") {
  for (uint32_t x : {0u, 2u, 6u, 16u})
    for (Pixel pixel : kPixelFormats)
      for (bool upwards : {false, true}) {
        const Picture source = random_picture(pixel, 65, 33, 24);
        Picture wanted(pixel, 65 - x, 33 - x), made = poisoned(pixel, 65 - x, 33 - x);
        crop_picture(source.view(), x, x, wanted.span());
        if (upwards) {
          const Picture cut = wanted;
          turn_picture(Turn::vertical, cut.view(), wanted.span());
        }
        for (uint32_t p = 0; p < source.view().plane_count(); ++p)
          copy(gpu::row_copy(gpu::on_device(source.view()), x, x, gpu::on_device(made.span()), p, upwards));
        INFO(size_of(made.view()) << " from " << x << (upwards ? " upwards" : ""));
        CHECK(same_pixels(made.view(), wanted.view()));
        CHECK(padding_holds(kPoison, made.view()));
      }
}

namespace {

// The blocks one after the other; the threads of each too, from one step to the next.
template <class Of>
void blur_plane(const gpu::PlaneBlur& plane) {
  const uint32_t radius = plane.weights.radius, pitch = gpu::blur_pitch(plane.tile_width, radius, Of::kChannels);
  const uint32_t bytes = gpu::blur_memory_bytes(pitch, radius);
  CHECK(bytes <= 48 * 1024); // what any GPU gives to a block
  std::vector<uint64_t> shared(bytes / 8 + 1);
  const gpu::BlurMemory memory = gpu::blur_memory(reinterpret_cast<uint8_t*>(shared.data()), pitch, radius);
  for (uint32_t top = 0; top < plane.height; top += gpu::kBlurRows)
    for (uint32_t left = 0; left < plane.width; left += plane.tile_width) {
      const auto step = [](const auto& body) {
        for (uint32_t thread = 0; thread < gpu::kBlurThreads; ++thread) body(thread);
      };
      step([&](uint32_t thread) { gpu::blur_prepare(plane, top, thread, memory); });
      step([&](uint32_t thread) { gpu::blur_columns<Of>(plane, left, thread, memory); });
      step([&](uint32_t thread) { gpu::blur_borders<Of::kChannels>(plane, left, thread, memory); });
      step([&](uint32_t thread) { gpu::blur_rows<Of>(plane, left, top, thread, memory); });
    }
}

Picture blurred(const ImageView& source, const GaussianBlur& blur) {
  Picture made = poisoned(source.pixel(), source.width(), source.height());
  for (uint32_t p = 0; p < source.plane_count(); ++p) {
    const gpu::PlaneBlur plane = gpu::plane_blur(gpu::on_device(source), gpu::on_device(made.span()), p,
                                                 p > 0 ? blur.chroma_kernel() : blur.kernel());
    gpu::with_samples(source.pixel(), p, [&]<class Of>(Of) { blur_plane<Of>(plane); });
  }
  return made;
}

} // namespace

TEST_CASE("a kernel adjusts as the CPU does, to the bit, every format by lines and by tables") {
  for (const auto& [width, height] : kKernelSizes)
    for (Pixel pixel : kPixelFormats)
      for (const ToneSettings& settings : {ToneSettings{}, {0.1, 1.3, 1, 0.6}, {-0.1, 0.8, 1.7, 1}, {0, 9, 0.4, 8}})
        for (const uint32_t range : {MR_RANGE_FULL, MR_RANGE_LIMITED}) {
          const Picture source = random_picture(pixel, width, height, 26).tag(MR_COLOR_BT709, range);
          Picture wanted(pixel, width, height), made = poisoned(pixel, width, height);
          ToneAdjuster tone;
          tone.set(settings);
          tone.run(source.view(), wanted.span());
          const gpu::DevicePicture from = gpu::on_device(source.view()), to = gpu::on_device(made.span());
          for (uint32_t p = 0; p < source.view().plane_count(); ++p)
            gpu::with_samples(pixel, p, [&]<class Of>(Of) {
              using Number = typename Of::Number;
              const gpu::PlaneTone plane = gpu::plane_tone<Number>(from, to, p, tone);
              const gpu::ToneTable<Number> table = gpu::tone_table<Number>(from, tone);
              for (uint32_t y = 0; y < plane.height; ++y)
                for (uint32_t x = 0; x < plane.width; x += 4) gpu::adjust_four<Of>(plane, table.at, x, y);
            });
          INFO(size_of(source.view()) << ", gamma " << settings.gamma << ", range " << range);
          CHECK(same_pixels(made.view(), wanted.view()));
          CHECK(padding_holds(kPoison, made.view()));
        }
}

TEST_CASE("a kernel blurs as the CPU does, within one step, with every radius") {
  for (const auto& [width, height] : kKernelSizes)
    for (Pixel pixel : kPixelFormats)
      for (double sigma : {0.0, 0.3, 2.0, 5.0, 21.4, 50.0}) {
        const Picture source = random_picture(pixel, width, height, 25);
        Picture wanted(pixel, width, height);
        GaussianBlur blur;
        blur.set_sigma(sigma);
        blur.run(source.view(), wanted.span());
        const Picture made = blurred(source.view(), blur);
        INFO(size_of(source.view()) << ", sigma " << sigma);
        CHECK(distance(made.view(), wanted.view()) <= (sigma == 0 ? 0 : 1));
        CHECK(padding_holds(kPoison, made.view()));
      }
}

TEST_CASE("a picture of one colour stays what it is where a kernel blurs it") {
  Picture source(Pixel::rgb8, 300, 20);
  std::fill_n(source.span().data(), source.view().header().extent_bytes, uint8_t{201});
  GaussianBlur blur;
  for (double sigma : {0.7, 4.0, 50.0}) {
    blur.set_sigma(sigma);
    CHECK(same_pixels(blurred(source.view(), blur).view(), source.view()));
  }
}
