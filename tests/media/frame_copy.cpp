// Copies and conversions of frames into pictures of the plan's.
#include "plugins/media/frame_copy.h"

#include <doctest/doctest.h>

extern "C" {
#include <libavutil/frame.h>
#include <libavutil/imgutils.h>
#include <libavutil/pixdesc.h>
}

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <stdexcept>
#include <string>

#include "millrace/testing.h"
#include "plugins/media/pixel_formats.h"

namespace millrace::media {
namespace {

using testing::Value;

Frame frame_of(AVPixelFormat format, int width, int height) {
  Frame frame(av_frame_alloc());
  frame->format = format;
  frame->width = width;
  frame->height = height;
  REQUIRE(av_frame_get_buffer(frame.get(), 0) == 0);
  return frame;
}

// All samples of a plane, of 8 bits or in the low bits of 16.
void fill(AVFrame& frame, int plane, uint32_t sample, int bytes = 1) {
  const int rows = plane == 0 ? frame.height : (frame.height + 1) / 2;
  for (int y = 0; y < rows; ++y)
    for (int x = 0; x + bytes <= frame.linesize[plane]; x += bytes) {
      uint8_t* at = frame.data[plane] + y * frame.linesize[plane] + x;
      at[0] = static_cast<uint8_t>(sample);
      if (bytes == 2) at[1] = static_cast<uint8_t>(sample >> 8);
    }
}

} // namespace

TEST_CASE("a frame of the picture's own format is copied to the byte, of odd sizes too, and nothing beyond its rows") {
  for (const Pixel pixel :
       {Pixel::gray8, Pixel::rgb8, Pixel::bgr8, Pixel::rgba8, Pixel::bgra8, Pixel::nv12, Pixel::i420, Pixel::p010}) {
    for (const auto& [width, height] : {std::pair{1, 1}, std::pair{5, 3}, std::pair{64, 36}}) {
      INFO(std::string(name_of(pixel)), " ", width, "x", height);
      const AVPixelFormat format = av_format_of(pixel);
      const Frame frame = frame_of(format, width, height);
      for (int p = 0; p < av_pix_fmt_count_planes(format); ++p)
        for (int y = 0; y < (p == 0 ? height : (height + 1) / 2); ++y)
          for (int x = 0; x < frame->linesize[p]; ++x)
            frame->data[p][y * frame->linesize[p] + x] = static_cast<uint8_t>(7 * x + 31 * y + 97 * p + 1);
      const Value value = testing::image(pixel, static_cast<uint32_t>(width), static_cast<uint32_t>(height), 0xEE);
      const ImageSpan picture = value.image();
      FrameCopier().copy(*frame, picture);
      for (uint32_t p = 0; p < picture.plane_count(); ++p) {
        const auto bytes = static_cast<size_t>(av_image_get_linesize(format, width, static_cast<int>(p)));
        for (uint32_t y = 0; y < picture.rows(p); ++y) {
          const uint8_t* row = picture.row(y, p);
          const auto from = static_cast<size_t>(frame->linesize[p]) * y;
          CHECK(std::memcmp(row, frame->data[p] + from, bytes) == 0);
          for (size_t x = bytes; x < picture.stride(p); ++x) REQUIRE(row[x] == 0xEE);
        }
      }
      CHECK(value.block()->intact());
    }
  }
}

TEST_CASE("numbers of YCbCr stay as they are where only their places change, in both ranges") {
  for (const AVPixelFormat format :
       {AV_PIX_FMT_YUV444P, AV_PIX_FMT_YUV422P, AV_PIX_FMT_YUVJ444P, AV_PIX_FMT_YUVJ422P, AV_PIX_FMT_YUV411P}) {
    for (const AVColorRange range : {AVCOL_RANGE_UNSPECIFIED, AVCOL_RANGE_MPEG, AVCOL_RANGE_JPEG}) {
      const std::string name = av_get_pix_fmt_name(format);
      if (name.find("yuvj") == 0 && range != AVCOL_RANGE_JPEG) continue; // says it is full and that it is not
      INFO(name, " range ", static_cast<int>(range));
      for (const uint32_t y : {0u, 16u, 90u, 235u, 255u}) {
        const Frame frame = frame_of(format, 32, 16);
        frame->color_range = range;
        for (int p = 0; p < 3; ++p)
          std::memset(frame->data[p],
                      p == 0   ? static_cast<int>(y)
                      : p == 1 ? 200
                               : 30,
                      static_cast<size_t>(frame->linesize[p]) * 16);
        const Value value = testing::image(Pixel::i420, 32, 16);
        FrameCopier().copy(*frame, value.image());
        CHECK(value.image().row(8)[16] == y);
        CHECK(value.image().row(4, 1)[8] == 200);
        CHECK(value.image().row(4, 2)[8] == 30);
      }
    }
  }
}

TEST_CASE("ten bits become the high ten of p010's sixteen, every one of them") {
  for (const AVColorRange range : {AVCOL_RANGE_MPEG, AVCOL_RANGE_JPEG}) {
    const Frame frame = frame_of(AV_PIX_FMT_YUV420P10LE, 64, 16);
    frame->color_range = range;
    fill(*frame, 1, 700, 2);
    fill(*frame, 2, 300, 2);
    for (int y = 0; y < 16; ++y) {
      auto* row = reinterpret_cast<uint16_t*>(frame->data[0] + y * frame->linesize[0]);
      for (int x = 0; x < 64; ++x) row[x] = static_cast<uint16_t>(y * 64 + x);
    }
    const Value value = testing::image(Pixel::p010, 64, 16);
    FrameCopier().copy(*frame, value.image());
    int wrong = 0;
    for (uint32_t y = 0; y < 16; ++y) {
      const auto* row = reinterpret_cast<const uint16_t*>(value.image().row(y));
      for (uint32_t x = 0; x < 64; ++x) wrong += row[x] >> 6 != static_cast<int>(y * 64 + x);
    }
    CHECK(wrong == 0);
    const auto* chroma = reinterpret_cast<const uint16_t*>(value.image().row(3, 1));
    CHECK((chroma[8] >> 6) == 700);
    CHECK((chroma[9] >> 6) == 300);
  }
}

TEST_CASE("a palette, deep RGB and deep gray become 8 bits") {
  const Frame palette = frame_of(AV_PIX_FMT_PAL8, 4, 4);
  for (int y = 0; y < 4; ++y) std::memset(palette->data[0] + y * palette->linesize[0], 3, 4);
  const uint32_t colour = 0xFF102030; // ARGB
  std::memcpy(palette->data[1] + 12, &colour, 4);
  const Value from_palette = testing::image(Pixel::rgba8, 4, 4);
  FrameCopier().copy(*palette, from_palette.image());
  const uint8_t* pixel = from_palette.image().row(2) + 8;
  CHECK(pixel[0] == 0x10);
  CHECK(pixel[1] == 0x20);
  CHECK(pixel[2] == 0x30);
  CHECK(pixel[3] == 0xFF);

  const Frame deep = frame_of(AV_PIX_FMT_RGB48LE, 8, 4);
  fill(*deep, 0, 0x8080, 2);
  const Value from_deep = testing::image(Pixel::rgb8, 8, 4);
  FrameCopier().copy(*deep, from_deep.image());
  for (int c = 0; c < 3; ++c) CHECK(std::abs(from_deep.image().row(1)[6 + c] - 0x80) <= 1);

  const Frame gray = frame_of(AV_PIX_FMT_GRAY16LE, 8, 4);
  for (const auto& [sample, expected] : {std::pair{0u, 0}, std::pair{0x8080u, 0x80}, std::pair{0xFFFFu, 0xFF}}) {
    fill(*gray, 0, sample, 2);
    const Value from_gray = testing::image(Pixel::gray8, 8, 4);
    FrameCopier().copy(*gray, from_gray.image());
    CHECK(std::abs(from_gray.image().row(3)[5] - expected) <= 1);
  }
}

TEST_CASE("one copier takes frames of changing formats and sizes, each as a fresh one would") {
  FrameCopier copier;
  for (int round = 0; round < 2; ++round)
    for (const AVPixelFormat format : {AV_PIX_FMT_YUV444P, AV_PIX_FMT_YUV422P, AV_PIX_FMT_NV21, AV_PIX_FMT_YUV420P})
      for (const int size : {16, 34}) {
        const Frame frame = frame_of(format, size, size);
        for (int p = 0; p < av_pix_fmt_count_planes(format); ++p)
          for (int y = 0;
               y < (p == 0 || format == AV_PIX_FMT_YUV444P || format == AV_PIX_FMT_YUV422P ? size : size / 2); ++y)
            for (int x = 0; x < frame->linesize[p]; ++x)
              frame->data[p][y * frame->linesize[p] + x] = static_cast<uint8_t>(16 + (5 * x + 3 * y + 50 * p) % 200);
        const auto length = static_cast<uint32_t>(size);
        const Value reused = testing::image(Pixel::i420, length, length);
        const Value fresh = testing::image(Pixel::i420, length, length);
        copier.copy(*frame, reused.image());
        FrameCopier().copy(*frame, fresh.image());
        INFO(std::string(av_get_pix_fmt_name(format)), " ", size);
        CHECK(std::memcmp(reused.data(), fresh.data(), fresh.header().extent_bytes) == 0);
      }
}

TEST_CASE("one copier keeps to each frame's range") {
  FrameCopier copier;
  for (const AVColorRange range : {AVCOL_RANGE_MPEG, AVCOL_RANGE_JPEG, AVCOL_RANGE_MPEG}) {
    const Frame frame = frame_of(AV_PIX_FMT_YUV444P, 16, 16);
    frame->color_range = range;
    for (int p = 0; p < 3; ++p) std::memset(frame->data[p], 250, static_cast<size_t>(frame->linesize[p]) * 16);
    const Value value = testing::image(Pixel::i420, 16, 16);
    copier.copy(*frame, value.image());
    CHECK(value.image().row(5)[5] == 250);
  }
}

TEST_CASE("what libswscale cannot read is refused by its name") {
  const Frame frame = frame_of(AV_PIX_FMT_GRAYF32BE, 16, 16);
  frame->format = AV_PIX_FMT_NONE;
  for (const AVPixFmtDescriptor* format = av_pix_fmt_desc_next(nullptr); format && frame->format == AV_PIX_FMT_NONE;
       format = av_pix_fmt_desc_next(format))
    if (!sws_isSupportedInput(av_pix_fmt_desc_get_id(format)) && !(format->flags & AV_PIX_FMT_FLAG_HWACCEL))
      frame->format = av_pix_fmt_desc_get_id(format);
  REQUIRE(frame->format != AV_PIX_FMT_NONE);
  const std::string name = av_get_pix_fmt_name(static_cast<AVPixelFormat>(frame->format));
  const Value value = testing::image(Pixel::rgb8, 16, 16);
  CHECK_THROWS_WITH_AS(FrameCopier().copy(*frame, value.image()),
                       ("pictures of the format " + name + " cannot be converted").c_str(), std::runtime_error);
}

} // namespace millrace::media
