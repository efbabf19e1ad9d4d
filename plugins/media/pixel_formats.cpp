// Tables of pixel formats and colour tags; see pixel_formats.h.
#include "plugins/media/pixel_formats.h"

extern "C" {
#include <libavutil/pixdesc.h>
}

#include <array>
#include <utility>

namespace millrace::media {

namespace {

constexpr std::array<std::pair<Pixel, AVPixelFormat>, 8> kSame = {{{Pixel::gray8, AV_PIX_FMT_GRAY8},
                                                                   {Pixel::rgb8, AV_PIX_FMT_RGB24},
                                                                   {Pixel::bgr8, AV_PIX_FMT_BGR24},
                                                                   {Pixel::rgba8, AV_PIX_FMT_RGBA},
                                                                   {Pixel::bgra8, AV_PIX_FMT_BGRA},
                                                                   {Pixel::nv12, AV_PIX_FMT_NV12},
                                                                   {Pixel::i420, AV_PIX_FMT_YUV420P},
                                                                   {Pixel::p010, AV_PIX_FMT_P010LE}}};

constexpr int kAspectMost = 16; // a pixel's sides: films have at most 8:3

// The code point; 0 for "unspecified" and for FFmpeg's numbers beyond H.273.
uint32_t code_point(int code) { return code == 2 || code < 0 || code > 255 ? 0 : static_cast<uint32_t>(code); }

} // namespace

AVPixelFormat av_format_of(Pixel pixel) {
  for (const auto& [ours, theirs] : kSame)
    if (ours == pixel) return theirs;
  return AV_PIX_FMT_NONE;
}

Pixel pixel_of(AVPixelFormat format) {
  if (format == AV_PIX_FMT_YUVJ420P) return Pixel::i420; // the same bytes; its range is full
  for (const auto& [ours, theirs] : kSame)
    if (theirs == format) return ours;
  return Pixel::none;
}

Pixel nearest_pixel(AVPixelFormat format) {
  if (const Pixel same = pixel_of(format); same != Pixel::none) return same;
  const AVPixFmtDescriptor* described = av_pix_fmt_desc_get(format);
  if (!described || (described->flags & AV_PIX_FMT_FLAG_HWACCEL)) return Pixel::none;
  const bool has_alpha = described->flags & AV_PIX_FMT_FLAG_ALPHA;
  const bool is_colour = described->nb_components >= 3 || (described->flags & AV_PIX_FMT_FLAG_PAL);
  if ((described->flags & AV_PIX_FMT_FLAG_RGB) || (described->flags & AV_PIX_FMT_FLAG_PAL))
    return has_alpha ? Pixel::rgba8 : Pixel::rgb8;
  if (!is_colour) return Pixel::gray8;
  return described->comp[0].depth > 8 ? Pixel::p010 : Pixel::i420;
}

Meaning meaning_of(AVPixelFormat format, int matrix, int range, int primaries, int transfer, AVRational aspect,
                   int height) {
  Meaning meaning;
  meaning.primaries = code_point(primaries);
  meaning.transfer = code_point(transfer);
  const bool is_shape = aspect.num > 0 && aspect.den > 0 && aspect.num / aspect.den < kAspectMost &&
                        aspect.den / aspect.num < kAspectMost; // else it is damage
  if (is_shape && aspect.num != aspect.den) {
    meaning.aspect_num = static_cast<uint32_t>(aspect.num);
    meaning.aspect_den = static_cast<uint32_t>(aspect.den);
  }
  if (!is_ycbcr(nearest_pixel(format))) return meaning; // gray and RGB have full range here
  const bool says_full = range == AVCOL_RANGE_JPEG || format == AV_PIX_FMT_YUVJ420P || format == AV_PIX_FMT_YUVJ422P ||
                         format == AV_PIX_FMT_YUVJ444P || format == AV_PIX_FMT_YUVJ440P;
  meaning.range = says_full ? MR_RANGE_FULL : MR_RANGE_LIMITED;
  switch (matrix) {
    case AVCOL_SPC_BT709: meaning.color = MR_COLOR_BT709; break;
    case AVCOL_SPC_BT470BG:
    case AVCOL_SPC_SMPTE170M: meaning.color = MR_COLOR_BT601; break;
    case AVCOL_SPC_BT2020_NCL: meaning.color = MR_COLOR_BT2020; break;
    default:
      meaning.is_near = matrix != AVCOL_SPC_UNSPECIFIED;
      meaning.guessed = !meaning.is_near;
      meaning.color = height >= kHdRows ? MR_COLOR_BT709 : MR_COLOR_BT601;
  }
  return meaning;
}

AVColorSpace av_matrix_of(Pixel pixel, uint32_t color) {
  if (!is_ycbcr(pixel)) return AVCOL_SPC_UNSPECIFIED;
  switch (color) {
    case MR_COLOR_BT709: return AVCOL_SPC_BT709;
    case MR_COLOR_BT2020: return AVCOL_SPC_BT2020_NCL;
    default: return AVCOL_SPC_SMPTE170M;
  }
}

AVColorRange av_range_of(Pixel pixel, uint32_t range) {
  return is_ycbcr(pixel) && range == MR_RANGE_LIMITED ? AVCOL_RANGE_MPEG : AVCOL_RANGE_JPEG;
}

} // namespace millrace::media
