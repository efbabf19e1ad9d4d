// The kernels of pictures on a GPU against the CPU bodies' numerics: every byte that is in use, and none of the
// padding.
#include "handlers/gpu/image_kernels.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cstdlib>
#include <memory>
#include <utility>
#include <vector>

#include "handlers/image/color.h"
#include "handlers/image/crop_picture.h"
#include "handlers/pictures.h"
#include "on_gpu.h"

using namespace millrace;
using namespace millrace::handlers;

namespace {

using Size = std::pair<uint32_t, uint32_t>;
const std::vector<Size> kSizes = {{1, 1}, {2, 2}, {3, 5}, {9, 1}, {1, 9}, {65, 33}, {352, 18}, {641, 359}, {1280, 720}};

const gpu::ImageKernels& kernels() { return gpu::image_kernels(); }

// The largest distance of two bytes in use; 256 where padding was written.
int distance_or_spill(const Picture& made, const Picture& wanted) {
  return padding_holds(kPoison, made.view()) ? distance(made.view(), wanted.view()) : 256;
}

// The picture that a kernel made of a poisoned one. Bytes that it did not write stay poison, unlike those of random
// pictures.
template <class Launch>
Picture made_by(GpuPicture& target, const Launch& launch) {
  const GpuStream stream;
  gpu::check(launch(static_cast<cudaStream_t>(stream), target.on_device()));
  stream.wait();
  return target.download();
}

Picture random_of(Pixel pixel, Size size, uint32_t seed) {
  return random_picture(pixel, size.first, size.second, seed);
}

int conversion_distance(const Picture& source, Pixel to, uint32_t color, uint32_t range) {
  const uint32_t width = source.view().width(), height = source.view().height();
  Picture wanted = Picture(to, width, height).tag(color, range);
  convert_pixels(source.view(), wanted.span());
  const GpuPicture from(source);
  GpuPicture target(to, width, height);
  target.tag(color, range);
  return distance_or_spill(made_by(target,
                                   [&](cudaStream_t stream, const gpu::DevicePicture& picture) {
                                     return kernels().convert(stream, from.on_device(), picture);
                                   }),
                           wanted);
}

} // namespace

TEST_CASE("every format becomes every other on the GPU as on the CPU, to the bit") {
  for (const Size& size : kSizes)
    for (const Pixel from : kPixelFormats) {
      const Picture source = random_of(from, size, 41).tag(MR_COLOR_BT709, MR_RANGE_LIMITED);
      for (const Pixel to : kPixelFormats) {
        INFO(size_of(source.view()) << " to " << name_of(to));
        CHECK(conversion_distance(source, to, MR_COLOR_BT709, MR_RANGE_LIMITED) == 0);
        CHECK(conversion_distance(source, to, MR_COLOR_BT2020, MR_RANGE_FULL) == 0);
      }
    }
}

// The same picture with its rows and planes further apart, as decoders lay pictures out in a block.
struct PaddedPicture {
  explicit PaddedPicture(const Picture& picture) : image(picture.view().value().as.image) {
    uint64_t bytes = 0;
    for (uint32_t p = 0; p < image.plane_count; ++p) {
      image.planes[p].stride += 128;
      image.planes[p].offset = bytes;
      bytes += uint64_t{image.planes[p].stride} * image.planes[p].rows + 4096;
    }
    std::vector<uint8_t> host(bytes, kPoison);
    const ImageView& from = picture.view();
    for (uint32_t p = 0; p < image.plane_count; ++p)
      for (uint32_t y = 0; y < image.planes[p].rows; ++y)
        std::copy_n(from.row(y, p), plane_row_bytes(from.pixel(), from.width(), p),
                    host.data() + image.planes[p].offset + uint64_t{image.planes[p].stride} * y);
    bytes_ = std::make_unique<GpuBytes>(bytes);
    bytes_->upload(host.data());
  }
  gpu::DevicePicture on_device() const { return {image, bytes_->data()}; }

  mr_image image;

 private:
  std::unique_ptr<GpuBytes> bytes_;
};

TEST_CASE("a picture that a decoder laid out becomes on the GPU what one of the plan's layout becomes") {
  for (const Size& size : {Size{65, 33}, Size{641, 359}, Size{1280, 720}})
    for (const Pixel from : kPixelFormats) {
      const Picture source = random_of(from, size, 43).tag(MR_COLOR_BT709, MR_RANGE_LIMITED);
      const PaddedPicture padded(source);
      for (const Pixel to : kPixelFormats) {
        INFO(size_of(source.view()) << " to " << name_of(to));
        Picture wanted = Picture(to, size.first, size.second).tag(MR_COLOR_BT709, MR_RANGE_LIMITED);
        convert_pixels(source.view(), wanted.span());
        GpuPicture target(to, size.first, size.second);
        target.tag(MR_COLOR_BT709, MR_RANGE_LIMITED);
        CHECK(distance_or_spill(made_by(target,
                                        [&](cudaStream_t stream, const gpu::DevicePicture& picture) {
                                          return kernels().convert(stream, padded.on_device(), picture);
                                        }),
                                wanted) == 0);
      }
    }
}

TEST_CASE("the GPU paints test.pattern as the CPU does, to the bit, by the index in its memory") {
  GpuValue<mr_device_tick> tick({});
  for (const Size& size : kSizes)
    for (const Pattern pattern : {Pattern::bars, Pattern::gradient, Pattern::disc})
      for (const uint64_t index : {uint64_t{0}, uint64_t{77}, uint64_t{0x123456789}}) {
        tick.set({index, 0, 0});
        Picture canvas(Pixel::rgb8, size.first, size.second);
        paint_pattern(pattern, index, canvas.span());
        burn_number(canvas.span(), static_cast<uint32_t>(index));
        for (const Pixel to : kPixelFormats) {
          Picture wanted = Picture(to, size.first, size.second).tag(MR_COLOR_BT601, MR_RANGE_LIMITED);
          convert_pixels(canvas.view(), wanted.span());
          GpuPicture target(to, size.first, size.second);
          target.tag(MR_COLOR_BT601, MR_RANGE_LIMITED);
          const Picture made = made_by(target, [&](cudaStream_t stream, const gpu::DevicePicture& picture) {
            return kernels().paint(stream, pattern, tick.get(), picture);
          });
          INFO(size_of(wanted.view()) << ", pattern " << static_cast<int>(pattern) << ", index " << index);
          CHECK(distance_or_spill(made, wanted) == 0);
        }
      }
}

TEST_CASE("the GPU resizes within one step of the CPU; nearest and, but for lines, bilinear to the bit") {
  for (const Size& size : kSizes)
    for (const Size& to : kSizes)
      for (const Pixel pixel : kPixelFormats)
        for (const ResizeMethod method : {ResizeMethod::nearest, ResizeMethod::bilinear, ResizeMethod::area}) {
          const Picture source = random_of(pixel, size, 42);
          Picture wanted(pixel, to.first, to.second);
          Resampler resampler;
          resampler.prepare(size.first, size.second, to.first, to.second, method);
          resampler.run(source.view(), wanted.span());
          const GpuPicture from(source);
          GpuPicture target(pixel, to.first, to.second);
          const Picture made = made_by(target, [&](cudaStream_t stream, const gpu::DevicePicture& picture) {
            return kernels().resize(stream, from.on_device(), picture, method);
          });
          const uint32_t most = halves_chroma(pixel) ? 2 : 1; // of a plane that is a line
          const bool line = size.first <= most || size.second <= most;
          const bool whole = method == ResizeMethod::nearest || (method == ResizeMethod::bilinear && !line);
          INFO(size_of(source.view()) << " to " << size_of(wanted.view()) << ", method " << static_cast<int>(method));
          CHECK(distance_or_spill(made, wanted) <= (whole ? 0 : 1));
        }
}

TEST_CASE("the GPU turns pictures as the CPU does") {
  for (const Size& size : kSizes)
    for (const Pixel pixel : kPixelFormats)
      for (const Turn turn : {Turn::horizontal, Turn::vertical, Turn::both, Turn::rotate90, Turn::rotate270,
                              Turn::transpose, Turn::transverse}) {
        const Picture source = random_of(pixel, size, 43);
        const uint32_t width = swaps_sides(turn) ? size.second : size.first;
        const uint32_t height = swaps_sides(turn) ? size.first : size.second;
        Picture wanted(pixel, width, height);
        turn_picture(turn, source.view(), wanted.span());
        const GpuPicture from(source);
        GpuPicture target(pixel, width, height);
        const Picture made = made_by(target, [&](cudaStream_t stream, const gpu::DevicePicture& picture) {
          return kernels().turn(stream, turn, from.on_device(), picture);
        });
        INFO(size_of(source.view()) << ", turn " << static_cast<int>(turn));
        CHECK(distance_or_spill(made, wanted) == 0);
      }
}

TEST_CASE("the GPU cuts rectangles out of pictures as the CPU does, from any place") {
  for (const Pixel pixel : kPixelFormats)
    for (const uint32_t x : {0u, 2u, 6u, 16u, 100u})
      for (const uint32_t width : {1u, 64u, 333u}) {
        const Picture source = random_of(pixel, {641, 359}, 44);
        Picture wanted(pixel, width, 41);
        crop_picture(source.view(), x, x + 2, wanted.span());
        const GpuPicture from(source);
        GpuPicture target(pixel, width, 41);
        const Picture made = made_by(target, [&](cudaStream_t stream, const gpu::DevicePicture& picture) {
          return kernels().crop(stream, from.on_device(), x, x + 2, picture);
        });
        INFO(size_of(wanted.view()) << " from " << x);
        CHECK(distance_or_spill(made, wanted) == 0);
      }
}

TEST_CASE("the GPU blurs within one step of the CPU, with every radius") {
  for (const Size& size : kSizes)
    for (const Pixel pixel : kPixelFormats)
      for (const double sigma : {0.0, 0.3, 2.0, 5.0, 21.4, 50.0}) {
        const Picture source = random_of(pixel, size, 45);
        Picture wanted(pixel, size.first, size.second);
        GaussianBlur blur;
        blur.set_sigma(sigma);
        blur.run(source.view(), wanted.span());
        const GpuPicture from(source);
        GpuPicture target(pixel, size.first, size.second);
        const Picture made = made_by(target, [&](cudaStream_t stream, const gpu::DevicePicture& picture) {
          return kernels().blur(stream, from.on_device(), picture, blur.kernel(), blur.chroma_kernel());
        });
        INFO(size_of(source.view()) << ", sigma " << sigma);
        CHECK(distance_or_spill(made, wanted) <= (sigma == 0 ? 0 : 1));
      }
}

TEST_CASE("the GPU adjusts as the CPU does, to the bit, every format by lines and by tables") {
  for (const Size& size : kSizes)
    for (const Pixel pixel : kPixelFormats)
      for (const ToneSettings& settings : {ToneSettings{}, {0.1, 1.3, 1, 0.6}, {-0.1, 0.8, 1.7, 1}, {0, 9, 0.4, 8}})
        for (const uint32_t range : {MR_RANGE_FULL, MR_RANGE_LIMITED}) {
          const Picture source = random_of(pixel, size, 46).tag(MR_COLOR_BT709, range);
          Picture wanted(pixel, size.first, size.second);
          ToneAdjuster tone;
          tone.set(settings);
          tone.run(source.view(), wanted.span());
          const GpuPicture from(source);
          GpuPicture target(pixel, size.first, size.second);
          const Picture made = made_by(target, [&](cudaStream_t stream, const gpu::DevicePicture& picture) {
            return kernels().adjust(stream, tone, from.on_device(), picture);
          });
          INFO(size_of(source.view()) << ", gamma " << settings.gamma << ", range " << range);
          CHECK(distance_or_spill(made, wanted) == 0);
        }
}

TEST_CASE("a captured pattern follows the index from one launch of its graph to the next") {
  GpuValue<mr_device_tick> tick({});
  GpuPicture painted(Pixel::rgb8, 640, 360), blurred(Pixel::rgb8, 640, 360);
  GaussianBlur blur;
  blur.set_sigma(0); // copies
  const GpuStream stream;
  checked(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal), "cudaStreamBeginCapture");
  const auto on = static_cast<cudaStream_t>(stream);
  gpu::check(kernels().paint(on, Pattern::disc, tick.get(), painted.on_device()));
  gpu::check(kernels().blur(on, painted.on_device(), blurred.on_device(), blur.kernel(), blur.chroma_kernel()));
  cudaGraph_t graph = nullptr;
  checked(cudaStreamEndCapture(stream, &graph), "cudaStreamEndCapture");
  cudaGraphExec_t launched = nullptr;
  checked(cudaGraphInstantiate(&launched, graph, 0), "cudaGraphInstantiate");
  for (const uint64_t index : {uint64_t{3}, uint64_t{4000}}) {
    tick.set({index, 0, 0});
    checked(cudaGraphLaunch(launched, stream), "cudaGraphLaunch");
    stream.wait();
    CHECK(read_burnt_number(blurred.download().view()) == static_cast<uint32_t>(index));
  }
  checked(cudaGraphExecDestroy(launched), "cudaGraphExecDestroy");
  checked(cudaGraphDestroy(graph), "cudaGraphDestroy");
}
