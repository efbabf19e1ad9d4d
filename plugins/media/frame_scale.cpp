// Scales by libswscale into a frame of its own, and copies that into its place; see frame_scale.h.
#include "plugins/media/frame_scale.h"

extern "C" {
#include <libavutil/imgutils.h>
#include <libavutil/mathematics.h>
#include <libavutil/pixdesc.h>
}

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <new>
#include <stdexcept>
#include <string>

namespace millrace::media {

namespace {

constexpr int kRowAlignment = 64;

int even(int64_t size, int most) { return std::clamp(static_cast<int>(size) & ~1, std::min(2, most), most); }

void blacken(uint8_t* planes[4], const int strides[4], AVPixelFormat format, bool is_full, int width, int height) {
  if (av_pix_fmt_desc_get(format)->flags & AV_PIX_FMT_FLAG_ALPHA) {
    for (int y = 0; y < height; ++y)
      std::memset(planes[0] + ptrdiff_t{y} * strides[0], 0, static_cast<size_t>(width) * 4);
    return;
  }
  const ptrdiff_t rows[4] = {strides[0], strides[1], strides[2], strides[3]};
  av_image_fill_black(planes, rows, format, is_full ? AVCOL_RANGE_JPEG : AVCOL_RANGE_MPEG, width, height);
}

} // namespace

FittedPart fitted_part(int width, int height, const Meaning& shape, int target_width, int target_height,
                       const Meaning& target_shape) {
  const auto or_one = [](uint32_t side) { return side ? int64_t{side} : int64_t{1}; };
  // The shown width : height of the picture, in pixels of the target.
  const int64_t across = int64_t{width} * or_one(shape.aspect_num) * or_one(target_shape.aspect_den);
  const int64_t down = int64_t{height} * or_one(shape.aspect_den) * or_one(target_shape.aspect_num);
  FittedPart part{0, 0, target_width, target_height};
  const int64_t width_by_height = av_rescale(target_height, across, down);
  if (width_by_height < target_width)
    part.width = even(width_by_height, target_width);
  else
    part.height = even(av_rescale(target_width, down, across), target_height);
  part.x = (target_width - part.width) / 2 & ~1;
  part.y = (target_height - part.height) / 2 & ~1;
  return part;
}

void FrameScaler::scale(const AVFrame& frame, const Meaning& shape, const ImageSpan& picture,
                        const Meaning& target_shape, bool fits) {
  const auto from = static_cast<AVPixelFormat>(frame.format);
  const AVPixelFormat to = av_format_of(picture.pixel());
  const int width = static_cast<int>(picture.width()), height = static_cast<int>(picture.height());
  const FittedPart part = fits ? fitted_part(frame.width, frame.height, shape, width, height, target_shape)
                               : FittedPart{0, 0, width, height};
  SwsContext* before = scaler_.release();
  scaler_.reset(sws_getCachedContext(before, frame.width, frame.height, from, part.width, part.height, to, SWS_BICUBIC,
                                     nullptr, nullptr, nullptr));
  const char* name = av_get_pix_fmt_name(from);
  if (!scaler_)
    throw std::runtime_error("pictures of the format " + std::string(name ? name : "?") + " cannot be scaled");
  const bool is_full = number_of(frame.color_range) == AVCOL_RANGE_JPEG || from == AV_PIX_FMT_YUVJ420P;
  const bool is_rgb = av_pix_fmt_desc_get(to)->flags & AV_PIX_FMT_FLAG_RGB;
  const int* table = sws_getCoefficients(SWS_CS_DEFAULT);
  sws_setColorspaceDetails(scaler_.get(), table, is_full, table, is_rgb ? 1 : is_full, 0, 1 << 16, 1 << 16);
  part_.reset(av_frame_alloc());
  if (!part_) throw std::bad_alloc();
  part_->format = to;
  part_->width = part.width;
  part_->height = part.height;
  if (av_frame_get_buffer(part_.get(), kRowAlignment) < 0) throw std::bad_alloc();
  sws_scale(scaler_.get(), frame.data, frame.linesize, 0, frame.height, part_->data, part_->linesize);

  uint8_t* planes[4] = {};
  int strides[4] = {};
  for (uint32_t p = 0; p < picture.plane_count(); ++p) {
    planes[p] = picture.plane(p);
    strides[p] = static_cast<int>(picture.stride(p));
  }
  if (part.width < width || part.height < height) blacken(planes, strides, to, is_full, width, height);
  const AVPixFmtDescriptor& described = *av_pix_fmt_desc_get(to);
  for (uint32_t p = 0; p < picture.plane_count(); ++p) {
    const int shift = p > 0 ? described.log2_chroma_h : 0;
    planes[p] += ptrdiff_t{part.y >> shift} * strides[p];
    planes[p] += part.x > 0 ? av_image_get_linesize(to, part.x, static_cast<int>(p)) : 0;
  }
  const uint8_t* rows[4] = {part_->data[0], part_->data[1], part_->data[2], part_->data[3]};
  av_image_copy(planes, strides, rows, part_->linesize, to, part.width, part.height);
}

} // namespace millrace::media
