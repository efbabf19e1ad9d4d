// Pixel formats and colour tags, ours beside FFmpeg's: every one of theirs has an answer.
#include "plugins/media/pixel_formats.h"

#include <doctest/doctest.h>

extern "C" {
#include <libavutil/imgutils.h>
#include <libavutil/pixdesc.h>
}

#include <string>

namespace millrace::media {
namespace {

constexpr Pixel kAll[] = {Pixel::gray8, Pixel::rgb8, Pixel::bgr8, Pixel::rgba8,
                          Pixel::bgra8, Pixel::nv12, Pixel::i420, Pixel::p010};

Meaning meaning(AVPixelFormat format, AVColorSpace matrix, AVColorRange range, int height = 480) {
  return meaning_of(format, matrix, range, AVCOL_PRI_UNSPECIFIED, AVCOL_TRC_UNSPECIFIED, {0, 1}, height);
}

} // namespace

TEST_CASE("each of our formats is one of FFmpeg's with as many bytes, and comes back from it") {
  for (const Pixel pixel : kAll) {
    INFO(std::string(name_of(pixel)));
    const AVPixelFormat format = av_format_of(pixel);
    REQUIRE(format != AV_PIX_FMT_NONE);
    CHECK(pixel_of(format) == pixel);
    CHECK(nearest_pixel(format) == pixel);
    mr_image layout{};
    lay_out_image(pixel, 34, 18, layout);
    CHECK(static_cast<int>(layout.plane_count) == av_pix_fmt_count_planes(format));
    for (uint32_t p = 0; p < layout.plane_count; ++p)
      CHECK(static_cast<int>(layout.planes[p].stride) >= av_image_get_linesize(format, 34, static_cast<int>(p)));
  }
  CHECK(av_format_of(Pixel::none) == AV_PIX_FMT_NONE);
  CHECK(pixel_of(AV_PIX_FMT_NONE) == Pixel::none);
  CHECK(pixel_of(AV_PIX_FMT_YUVJ420P) == Pixel::i420); // the same bytes
}

TEST_CASE("every format of this FFmpeg becomes one that keeps its kind, or none where it is not in memory") {
  int count = 0;
  for (const AVPixFmtDescriptor* format = av_pix_fmt_desc_next(nullptr); format;
       format = av_pix_fmt_desc_next(format), ++count) {
    INFO(std::string(format->name));
    const Pixel pixel = nearest_pixel(av_pix_fmt_desc_get_id(format));
    if (format->flags & AV_PIX_FMT_FLAG_HWACCEL) {
      CHECK(pixel == Pixel::none);
      continue;
    }
    REQUIRE(pixel != Pixel::none);
    const AVPixFmtDescriptor* ours = av_pix_fmt_desc_get(av_format_of(pixel));
    const bool is_palette = format->flags & AV_PIX_FMT_FLAG_PAL;
    if (format->nb_components < 3 && !is_palette)
      CHECK(pixel == Pixel::gray8);
    else
      CHECK(ours->nb_components >= 3);
    if ((format->flags & AV_PIX_FMT_FLAG_RGB) || is_palette) {
      CHECK((ours->flags & AV_PIX_FMT_FLAG_RGB) != 0);
      CHECK((ours->flags & AV_PIX_FMT_FLAG_ALPHA) == (format->flags & AV_PIX_FMT_FLAG_ALPHA));
    } else if (format->nb_components >= 3) {
      CHECK((ours->comp[0].depth > 8) == (format->comp[0].depth > 8));
    }
  }
  CHECK(count > 150);
}

TEST_CASE("formats that films have become the nearest of ours") {
  struct Case {
    AVPixelFormat format;
    Pixel pixel;
  };
  for (const Case& c : {Case{AV_PIX_FMT_YUV422P, Pixel::i420}, Case{AV_PIX_FMT_YUV444P, Pixel::i420},
                        Case{AV_PIX_FMT_NV21, Pixel::i420}, Case{AV_PIX_FMT_YUYV422, Pixel::i420},
                        Case{AV_PIX_FMT_YUV420P10LE, Pixel::p010}, Case{AV_PIX_FMT_YUV422P10LE, Pixel::p010},
                        Case{AV_PIX_FMT_YUV444P12LE, Pixel::p010}, Case{AV_PIX_FMT_P016LE, Pixel::p010},
                        Case{AV_PIX_FMT_PAL8, Pixel::rgba8}, Case{AV_PIX_FMT_RGB8, Pixel::rgb8},
                        Case{AV_PIX_FMT_GBRP, Pixel::rgb8}, Case{AV_PIX_FMT_GBRAP, Pixel::rgba8},
                        Case{AV_PIX_FMT_RGB48LE, Pixel::rgb8}, Case{AV_PIX_FMT_GRAY16LE, Pixel::gray8},
                        Case{AV_PIX_FMT_MONOBLACK, Pixel::gray8}, Case{AV_PIX_FMT_VAAPI, Pixel::none}}) {
    INFO(std::string(av_get_pix_fmt_name(c.format)));
    CHECK(nearest_pixel(c.format) == c.pixel);
  }
}

TEST_CASE("the matrix and the range are those that are said") {
  CHECK(meaning(AV_PIX_FMT_YUV420P, AVCOL_SPC_BT709, AVCOL_RANGE_MPEG).color == MR_COLOR_BT709);
  CHECK(meaning(AV_PIX_FMT_YUV420P, AVCOL_SPC_SMPTE170M, AVCOL_RANGE_MPEG, 1080).color == MR_COLOR_BT601);
  CHECK(meaning(AV_PIX_FMT_YUV420P, AVCOL_SPC_BT470BG, AVCOL_RANGE_MPEG, 1080).color == MR_COLOR_BT601);
  CHECK(meaning(AV_PIX_FMT_YUV420P10LE, AVCOL_SPC_BT2020_NCL, AVCOL_RANGE_MPEG).color == MR_COLOR_BT2020);
  for (const AVColorSpace said : {AVCOL_SPC_BT709, AVCOL_SPC_SMPTE170M, AVCOL_SPC_BT2020_NCL}) {
    const Meaning all = meaning(AV_PIX_FMT_YUV420P, said, AVCOL_RANGE_MPEG);
    CHECK(!all.guessed);
    CHECK(!all.is_near);
    CHECK(av_matrix_of(Pixel::i420, all.color) == said);
  }
  CHECK(meaning(AV_PIX_FMT_NV12, AVCOL_SPC_BT709, AVCOL_RANGE_MPEG).range == MR_RANGE_LIMITED);
  CHECK(meaning(AV_PIX_FMT_NV12, AVCOL_SPC_BT709, AVCOL_RANGE_JPEG).range == MR_RANGE_FULL);
  CHECK(meaning(AV_PIX_FMT_NV12, AVCOL_SPC_BT709, AVCOL_RANGE_UNSPECIFIED).range == MR_RANGE_LIMITED);
  for (const AVPixelFormat full : {AV_PIX_FMT_YUVJ420P, AV_PIX_FMT_YUVJ422P, AV_PIX_FMT_YUVJ444P, AV_PIX_FMT_YUVJ440P})
    CHECK(meaning(full, AVCOL_SPC_BT709, AVCOL_RANGE_UNSPECIFIED).range == MR_RANGE_FULL);
}

TEST_CASE("a matrix that is not said is bt709 from 720 rows on, else bt601, and one that is not known likewise") {
  for (const int height : {1, 576, 719, 720, 2160}) {
    const uint32_t color = height >= 720 ? MR_COLOR_BT709 : MR_COLOR_BT601;
    const Meaning silent = meaning(AV_PIX_FMT_YUV420P, AVCOL_SPC_UNSPECIFIED, AVCOL_RANGE_MPEG, height);
    const Meaning strange = meaning(AV_PIX_FMT_YUV420P, AVCOL_SPC_YCGCO, AVCOL_RANGE_MPEG, height);
    CHECK(silent.color == color);
    CHECK(silent.guessed);
    CHECK(!silent.is_near);
    CHECK(strange.color == color);
    CHECK(!strange.guessed);
    CHECK(strange.is_near);
  }
}

TEST_CASE("RGB and gray have no matrix and are of full range, whatever is said") {
  for (const AVPixelFormat format : {AV_PIX_FMT_RGB24, AV_PIX_FMT_BGRA, AV_PIX_FMT_PAL8, AV_PIX_FMT_GRAY8}) {
    const Meaning all = meaning(format, AVCOL_SPC_BT709, AVCOL_RANGE_MPEG, 1080);
    CHECK(all.color == MR_COLOR_SRGB);
    CHECK(all.range == MR_RANGE_FULL);
    CHECK(!all.guessed);
    CHECK(!all.is_near);
  }
  CHECK(av_matrix_of(Pixel::rgb8, MR_COLOR_BT709) == AVCOL_SPC_UNSPECIFIED);
  CHECK(av_range_of(Pixel::rgb8, MR_RANGE_LIMITED) == AVCOL_RANGE_JPEG);
  CHECK(av_range_of(Pixel::p010, MR_RANGE_LIMITED) == AVCOL_RANGE_MPEG);
  CHECK(av_range_of(Pixel::i420, MR_RANGE_FULL) == AVCOL_RANGE_JPEG);
}

TEST_CASE("primaries and transfer are H.273's numbers, 0 where they are not said or not the standard's") {
  const auto tags = [](int primaries, int transfer) {
    return meaning_of(AV_PIX_FMT_YUV420P, AVCOL_SPC_BT709, AVCOL_RANGE_MPEG, static_cast<AVColorPrimaries>(primaries),
                      static_cast<AVColorTransferCharacteristic>(transfer), {0, 1}, 1080);
  };
  CHECK(tags(AVCOL_PRI_BT709, AVCOL_TRC_BT709).primaries == 1);
  CHECK(tags(AVCOL_PRI_BT2020, AVCOL_TRC_SMPTE2084).primaries == 9);
  CHECK(tags(AVCOL_PRI_BT2020, AVCOL_TRC_SMPTE2084).transfer == 16);
  CHECK(tags(AVCOL_PRI_BT2020, AVCOL_TRC_ARIB_STD_B67).transfer == 18);
  for (const int unsaid : {2, 256, 4000, -1}) {
    CHECK(tags(unsaid, 1).primaries == 0);
    CHECK(tags(1, unsaid).transfer == 0);
  }
}

TEST_CASE("a pixel's shape is kept where it is not square") {
  const auto shape = [](AVRational aspect) {
    return meaning_of(AV_PIX_FMT_YUV420P, AVCOL_SPC_BT709, AVCOL_RANGE_MPEG, AVCOL_PRI_BT709, AVCOL_TRC_BT709, aspect,
                      576);
  };
  CHECK(shape({64, 45}).aspect_num == 64);
  CHECK(shape({64, 45}).aspect_den == 45);
  for (const AVRational square :
       {AVRational{1, 1}, AVRational{7, 7}, AVRational{0, 1}, AVRational{0, 0}, AVRational{-4, 3}, AVRational{4, 0}}) {
    CHECK(shape(square).aspect_num == 0);
    CHECK(shape(square).aspect_den == 0);
  }
}

} // namespace millrace::media
