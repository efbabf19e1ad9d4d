// The kernels of image.normalize, image.patches and image.letterbox against the CPU's bodies.
#include "handlers/gpu/tensor_kernels.h"

#include <doctest/doctest.h>
#include <millrace/payload/half_floats.h>

#include <cmath>
#include <limits>

#include "handlers/image/to_tensor.h"
#include "on_gpu_tensor.h"
#include "tests/handlers/pictures.h"

using namespace millrace;
using namespace millrace::handlers;

namespace {

TensorForm form_of(uint32_t width, uint32_t height, uint32_t variant) {
  TensorForm form = tensor_form({variant & 1 ? "f16" : "f32", variant & 2 ? "nhwc" : "nchw",
                                 variant & 4 ? "bgr" : "rgb", "0.485,0.456,0.406", "0.229,0.224,0.225"});
  form.width = width;
  form.height = height;
  return form;
}

size_t bytes_of(const TensorForm& form) {
  return size_t{form.count} * form.channels * form.width * form.height * (form.half ? 2 : 4);
}

// Halves in the order of their values, so that neighbours differ by one.
int32_t rank_of(Float16 half) { return half.bits & 0x8000 ? -int32_t{half.bits & 0x7fff} : int32_t{half.bits}; }

// How many numbers are further apart than the rule says: 1e-5 of the range, or one step of half precision on top.
size_t differing(const TensorForm& form, const std::vector<uint8_t>& made, const std::vector<uint8_t>& wanted) {
  constexpr float kRange = 1 / 0.224f;
  size_t count = 0;
  for (size_t i = 0; i < made.size(); i += form.half ? 2 : 4) {
    if (form.half) {
      Float16 a, b;
      std::memcpy(&a, &made[i], sizeof a);
      std::memcpy(&b, &wanted[i], sizeof b);
      const bool near = std::abs(a - b) <= 1e-5f * kRange;
      if (!near && std::abs(rank_of(a) - rank_of(b)) > 1) ++count;
    } else {
      float a, b;
      std::memcpy(&a, &made[i], sizeof a);
      std::memcpy(&b, &wanted[i], sizeof b);
      if (!(std::abs(a - b) <= 1e-5f * kRange)) ++count;
    }
  }
  return count;
}

std::vector<uint8_t> patches_on_gpu(const ImageView& picture, const gpu::Regions& regions, const TensorForm& form) {
  const on_gpu::TwinPicture source(picture);
  const on_gpu::Bytes target(bytes_of(form));
  gpu::check(gpu::tensor_kernels().patches(on_gpu::kStream, source.device(), regions, form, target.data()));
  return target.download();
}

std::vector<uint8_t> patches_on_cpu(const ImageView& picture, std::span<const Box> boxes, const TensorForm& form) {
  std::vector<uint8_t> target(bytes_of(form), kPoison);
  PatchCutter cutter;
  cutter.run(picture, boxes, form, target.data());
  return target;
}

} // namespace

TEST_CASE("a picture is normalized as on the CPU, in every format, layout and size") {
  for (Pixel pixel : kPixelFormats)
    for (const auto& [width, height] : {std::pair{1u, 1u}, {2u, 3u}, {63u, 17u}, {64u, 16u}, {65u, 33u}, {322u, 181u}})
      for (uint32_t variant = 0; variant < 8; ++variant) {
        const Picture picture = random_picture(pixel, width, height, variant + width)
                                    .tag(variant % 4, variant & 1 ? MR_RANGE_LIMITED : MR_RANGE_FULL);
        TensorForm form = form_of(width, height, variant);
        form.channels = pixel == Pixel::gray8 ? 1 : 3;
        const on_gpu::TwinPicture source(picture.view());
        const on_gpu::Bytes target(bytes_of(form));
        gpu::check(gpu::tensor_kernels().normalize(on_gpu::kStream, source.device(), form, target.data()));
        std::vector<uint8_t> wanted(bytes_of(form));
        normalize_picture(picture.view(), form, wanted.data());
        INFO(size_of(picture.view()), " variant ", variant);
        CHECK(differing(form, target.download(), wanted) == 0);
      }
}

TEST_CASE("a whole picture becomes one patch as on the CPU, larger and smaller") {
  for (Pixel pixel : kPixelFormats)
    for (const auto& [width, height] : {std::pair{1u, 1u}, {37u, 23u}, {64u, 64u}, {127u, 31u}, {320u, 200u}})
      for (uint32_t variant : {0u, 1u, 3u, 6u}) {
        const Picture picture = random_picture(pixel, 131, 77, variant).tag(MR_COLOR_BT709, MR_RANGE_LIMITED);
        const TensorForm form = form_of(width, height, variant);
        const Box whole = {0, 0, 131, 77};
        INFO(size_of(picture.view()), " to ", width, "x", height, " variant ", variant);
        CHECK(differing(form, patches_on_gpu(picture.view(), {true, nullptr, nullptr}, form),
                        patches_on_cpu(picture.view(), {&whole, 1}, form)) == 0);
      }
}

TEST_CASE("a picture of NV12 becomes half as large as on the CPU") {
  for (const auto& [width, height] : {std::pair{128u, 32u}, {4u, 1u}, {132u, 20u}, {260u, 9u}, {256u, 64u}})
    for (uint32_t variant = 0; variant < 8; ++variant) {
      const Picture picture = random_picture(Pixel::nv12, 2 * width, 2 * height, variant + width)
                                  .tag(variant % 4, variant & 2 ? MR_RANGE_LIMITED : MR_RANGE_FULL);
      const TensorForm form = form_of(width, height, variant);
      const Box whole = {0, 0, 2.0f * static_cast<float>(width), 2.0f * static_cast<float>(height)};
      INFO(size_of(picture.view()), " variant ", variant);
      CHECK(differing(form, patches_on_gpu(picture.view(), {true, nullptr, nullptr}, form),
                      patches_on_cpu(picture.view(), {&whole, 1}, form)) == 0);
    }
}

TEST_CASE("a picture of NV12 becomes a third as wide as on the CPU, and of any height") {
  for (const uint32_t width : {2u, 44u, 66u, 128u, 330u})
    for (const uint32_t height : {1u, 38u, 77u, 120u})
      for (uint32_t variant = 0; variant < 8; ++variant) {
        const Picture picture = random_picture(Pixel::nv12, 3 * width, 77, variant + width)
                                    .tag(variant % 4, variant & 2 ? MR_RANGE_LIMITED : MR_RANGE_FULL);
        const TensorForm form = form_of(width, height, variant);
        const Box whole = {0, 0, 3.0f * static_cast<float>(width), 77};
        INFO(size_of(picture.view()), " to height ", height, " variant ", variant);
        CHECK(differing(form, patches_on_gpu(picture.view(), {true, nullptr, nullptr}, form),
                        patches_on_cpu(picture.view(), {&whole, 1}, form)) == 0);
      }
}

TEST_CASE("large tensors of NV12 are cut as on the CPU") {
  struct Sizes {
    uint32_t from_width, from_height, width, height;
  };
  // Two taps each way, three columns and two taps, each column in its window, neither.
  for (const Sizes& sizes :
       {Sizes{1200, 900, 1100, 960}, {3300, 900, 1100, 960}, {2500, 1300, 1024, 1030}, {3000, 700, 1100, 960}})
    for (uint32_t variant : {0u, 1u, 3u, 7u}) {
      const Picture picture = random_picture(Pixel::nv12, sizes.from_width, sizes.from_height, variant)
                                  .tag(MR_COLOR_BT709, MR_RANGE_LIMITED);
      const TensorForm form = form_of(sizes.width, sizes.height, variant);
      const Box whole = {0, 0, static_cast<float>(sizes.from_width), static_cast<float>(sizes.from_height)};
      INFO(size_of(picture.view()), " to ", sizes.width, "x", sizes.height, " variant ", variant);
      CHECK(differing(form, patches_on_gpu(picture.view(), {true, nullptr, nullptr}, form),
                      patches_on_cpu(picture.view(), {&whole, 1}, form)) == 0);
    }
  std::vector<Box> boxes; // from far larger than a patch to far smaller, and beyond the picture
  for (uint32_t b = 0; b < 250; ++b) {
    const auto at = static_cast<float>(b);
    boxes.push_back({at * 1.7f - 30, at * 0.9f - 20, 3 + at * 1.3f, 260 - at, 1, 0, -1});
  }
  const on_gpu::Bytes table(boxes.data(), boxes.size() * sizeof(Box));
  const uint64_t count = boxes.size();
  const on_gpu::Bytes device_count(&count, sizeof count);
  for (uint32_t variant : {0u, 1u, 3u, 5u}) {
    const Picture picture = random_picture(Pixel::nv12, 431, 277, variant).tag(MR_COLOR_BT2020, MR_RANGE_FULL);
    TensorForm form = form_of(variant == 5 ? 130 : 64, 68, variant);
    form.count = 256;
    const gpu::Regions regions{false, static_cast<const Box*>(table.data()),
                               static_cast<const uint64_t*>(device_count.data())};
    INFO("variant ", variant);
    CHECK(differing(form, patches_on_gpu(picture.view(), regions, form), patches_on_cpu(picture.view(), boxes, form)) ==
          0);
  }
}

TEST_CASE("as many patches as the device counts boxes are cut as on the CPU, and the others are zero") {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const std::vector<Box> boxes = {
      {0, 0, 131, 77},       {3.25f, 4.5f, 90.5f, 70}, {-80, -3.5f, 200, 120}, {0, 0, 0, 9},
      {5, 2, 30.5f, 20.75f}, {nan, 7, 1, 1},           {1000, 1000, 3, 3},     {9, 9, 8, 2}};
  const on_gpu::Bytes table(boxes.data(), boxes.size() * sizeof(Box));
  for (Pixel pixel : kPixelFormats)
    for (uint64_t count : {uint64_t{0}, uint64_t{3}, uint64_t{8}}) {
      const on_gpu::Bytes device_count(&count, sizeof count);
      for (uint32_t variant : {1u, 2u, 7u}) {
        const Picture picture = random_picture(pixel, 131, 77, variant).tag(MR_COLOR_BT2020, MR_RANGE_LIMITED);
        TensorForm form = form_of(variant == 2 ? 33 : 64, 20, variant);
        form.count = 6;
        const gpu::Regions regions{false, static_cast<const Box*>(table.data()),
                                   static_cast<const uint64_t*>(device_count.data())};
        INFO(size_of(picture.view()), " count ", count, " variant ", variant);
        CHECK(differing(form, patches_on_gpu(picture.view(), regions, form),
                        patches_on_cpu(picture.view(), std::span(boxes).first(count), form)) == 0);
      }
    }
}

TEST_CASE("a picture is letterboxed as on the CPU, and the device says where it lies") {
  for (Pixel pixel : kPixelFormats)
    for (const auto& [width, height] : {std::pair{1u, 1u}, {37u, 64u}, {64u, 20u}, {127u, 131u}, {320u, 320u}})
      for (uint32_t variant : {0u, 1u, 3u, 6u}) {
        const Picture picture = random_picture(pixel, 131, 77, variant).tag(MR_COLOR_BT709, MR_RANGE_LIMITED);
        const TensorForm form = form_of(width, height, variant);
        const Letterbox box = letterbox_of(131, 77, width, height, {variant != 1, variant != 3});
        const PatchTransform value = transform_of(box, 131, 77);
        const on_gpu::TwinPicture source(picture.view());
        const on_gpu::Bytes target(bytes_of(form)), record(sizeof(PatchTransform)), count(sizeof(uint64_t));
        gpu::check(gpu::tensor_kernels().letterbox(
            on_gpu::kStream, source.device(), box, 0.3f, form, target.data(),
            {value, static_cast<PatchTransform*>(record.data()), static_cast<uint64_t*>(count.data())}));
        std::vector<uint8_t> wanted(bytes_of(form), kPoison);
        PatchCutter().letterbox(picture.view(), box, 0.3f, form, wanted.data());
        INFO(size_of(picture.view()), " to ", width, "x", height, " variant ", variant);
        CHECK(differing(form, target.download(), wanted) == 0);
        CHECK(std::memcmp(record.download().data(), &value, sizeof value) == 0);
        const uint64_t one = 1;
        CHECK(std::memcmp(count.download().data(), &one, sizeof one) == 0);
      }
}

TEST_CASE("without a table of boxes all patches are zero") {
  const Picture picture = random_picture(Pixel::nv12, 40, 30, 5);
  TensorForm form = form_of(17, 9, 1);
  form.count = 3;
  CHECK(patches_on_gpu(picture.view(), {false, nullptr, nullptr}, form) == std::vector<uint8_t>(bytes_of(form), 0));
}
