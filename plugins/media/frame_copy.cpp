// Copies rows, or converts with libswscale; see frame_copy.h.
#include "plugins/media/frame_copy.h"

extern "C" {
#include <libavutil/imgutils.h>
#include <libavutil/pixdesc.h>
}

#include <stdexcept>

#include "plugins/media/pixel_formats.h"

namespace millrace::media {

void FrameCopier::copy(const AVFrame& frame, const ImageSpan& picture) {
  uint8_t* planes[4] = {};
  int strides[4] = {};
  for (uint32_t p = 0; p < picture.plane_count(); ++p) {
    planes[p] = picture.plane(p);
    strides[p] = static_cast<int>(picture.stride(p));
  }
  const auto from = static_cast<AVPixelFormat>(frame.format);
  const AVPixelFormat to = av_format_of(picture.pixel());
  if (pixel_of(from) == picture.pixel()) {
    const uint8_t* rows[4] = {frame.data[0], frame.data[1], frame.data[2], frame.data[3]};
    av_image_copy(planes, strides, rows, frame.linesize, to, frame.width, frame.height);
    return;
  }
  if (!scaler_ || from != from_ || frame.width != width_ || frame.height != height_ ||
      number_of(frame.color_range) != range_) {
    scaler_.reset(sws_getContext(frame.width, frame.height, from, frame.width, frame.height, to, SWS_BICUBIC, nullptr,
                                 nullptr, nullptr));
    if (!scaler_) {
      const char* name = av_get_pix_fmt_name(from);
      throw std::runtime_error("pictures of the format " + std::string(name ? name : "?") + " cannot be converted");
    }
    from_ = from;
    width_ = frame.width;
    height_ = frame.height;
    range_ = number_of(frame.color_range);
    // Between YCbCr formats the range stays: only the order of the numbers changes.
    int *inverse = nullptr, *table = nullptr, from_full = 0, to_full = 0, brightness = 0, contrast = 0, saturation = 0;
    if (sws_getColorspaceDetails(scaler_.get(), &inverse, &from_full, &table, &to_full, &brightness, &contrast,
                                 &saturation) >= 0) {
      const int full = range_ == AVCOL_RANGE_JPEG || from_full ? 1 : 0;
      const AVPixFmtDescriptor* target = av_pix_fmt_desc_get(to);
      const bool to_rgb = target && (target->flags & AV_PIX_FMT_FLAG_RGB);
      sws_setColorspaceDetails(scaler_.get(), inverse, full, table, to_rgb ? to_full : full, brightness, contrast,
                               saturation);
    }
  }
  sws_scale(scaler_.get(), frame.data, frame.linesize, 0, frame.height, planes, strides);
}

} // namespace millrace::media
