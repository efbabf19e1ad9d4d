// Copies into pooled memory, repacks, or converts with libswscale; see frames.h.
#include "plugins/media/frames.h"

extern "C" {
#include <libavutil/imgutils.h>
#include <libavutil/pixdesc.h>
}

#include <cstring>
#include <new>
#include <stdexcept>
#include <string>

#include "plugins/media/palette.h"

namespace millrace::media {

namespace {

constexpr int kAlignment = 64; // enough for the SIMD of every encoder

const uint8_t* row_of(const ImageView& picture, uint32_t plane, int row) {
  return picture.row(static_cast<uint32_t>(row), plane);
}

int sws_matrix_of(uint32_t color) {
  return color == MR_COLOR_BT709 ? SWS_CS_ITU709 : color == MR_COLOR_BT2020 ? SWS_CS_BT2020 : SWS_CS_ITU601;
}

// True if a conversion only reorders the numbers and loses none: it is not counted.
bool is_repacking(AVPixelFormat source, AVPixelFormat target) {
  const AVPixFmtDescriptor* from = av_pix_fmt_desc_get(source);
  const AVPixFmtDescriptor* to = av_pix_fmt_desc_get(target);
  return (from->flags & AV_PIX_FMT_FLAG_RGB) && (to->flags & AV_PIX_FMT_FLAG_RGB) &&
         from->comp[0].depth == to->comp[0].depth && from->comp[0].depth == from->comp[1].depth &&
         to->comp[0].depth == to->comp[1].depth;
}

} // namespace

bool has_matrix(AVPixelFormat format) {
  const AVPixFmtDescriptor* described = av_pix_fmt_desc_get(format);
  return described && !(described->flags & (AV_PIX_FMT_FLAG_RGB | AV_PIX_FMT_FLAG_PAL)) &&
         described->nb_components >= 3;
}

Meaning encoded_meaning(const Meaning& picture, Pixel source, AVPixelFormat target, int height, bool is_jpeg) {
  Meaning meaning = picture;
  if (!has_matrix(target)) {
    meaning.color = MR_COLOR_SRGB;
    meaning.range = MR_RANGE_FULL;
  } else if (is_jpeg) {
    meaning.color = MR_COLOR_BT601;
    meaning.range = MR_RANGE_FULL;
  } else if (!is_ycbcr(source)) {
    meaning.color = height >= kHdRows ? MR_COLOR_BT709 : MR_COLOR_BT601;
    meaning.range = MR_RANGE_LIMITED;
  }
  return meaning;
}

void repack_p010(const ImageView& picture, AVFrame& target) {
  for (int y = 0; y < target.height; ++y) {
    const auto* from = reinterpret_cast<const uint16_t*>(row_of(picture, 0, y));
    auto* to = reinterpret_cast<uint16_t*>(target.data[0] + ptrdiff_t{y} * target.linesize[0]);
    for (int x = 0; x < target.width; ++x) to[x] = static_cast<uint16_t>(from[x] >> 6);
  }
  const int width = (target.width + 1) / 2, height = (target.height + 1) / 2;
  for (int y = 0; y < height; ++y) {
    const auto* from = reinterpret_cast<const uint16_t*>(row_of(picture, 1, y));
    auto* u = reinterpret_cast<uint16_t*>(target.data[1] + ptrdiff_t{y} * target.linesize[1]);
    auto* v = reinterpret_cast<uint16_t*>(target.data[2] + ptrdiff_t{y} * target.linesize[2]);
    for (int x = 0; x < width; ++x) {
      u[x] = static_cast<uint16_t>(from[2 * x] >> 6);
      v[x] = static_cast<uint16_t>(from[2 * x + 1] >> 6);
    }
  }
}

void repack_nv12(const ImageView& picture, AVFrame& target) {
  for (int y = 0; y < target.height; ++y)
    std::memcpy(target.data[0] + ptrdiff_t{y} * target.linesize[0], row_of(picture, 0, y),
                static_cast<size_t>(target.width));
  const int width = (target.width + 1) / 2, height = (target.height + 1) / 2;
  for (int y = 0; y < height; ++y) {
    const uint8_t* from = row_of(picture, 1, y);
    uint8_t* u = target.data[1] + ptrdiff_t{y} * target.linesize[1];
    uint8_t* v = target.data[2] + ptrdiff_t{y} * target.linesize[2];
    for (int x = 0; x < width; ++x) {
      u[x] = from[2 * x];
      v[x] = from[2 * x + 1];
    }
  }
}

FrameMaker::FrameMaker(AVPixelFormat target, bool may_lend, const Meaning& meaning)
    : target_(target), may_lend_(may_lend), meaning_(meaning), frame_(av_frame_alloc()) {
  if (!frame_) throw std::bad_alloc();
}

// Matters only from YCbCr to YCbCr: RGB and gray have one meaning only.
bool FrameMaker::keeps_numbers(const ImageView& picture) const {
  return !is_ycbcr(picture.pixel()) || !has_matrix(target_) ||
         (picture.range() == meaning_.range && picture.color() == meaning_.color);
}

AVFrame* FrameMaker::lend(const ImageView& picture) {
  const bool is_same = av_format_of(picture.pixel()) == target_;
  if (!may_lend_ || !is_same || !keeps_numbers(picture)) return copy(picture);
  release();
  AVFrame& frame = *frame_;
  frame.format = target_;
  frame.width = static_cast<int>(picture.width());
  frame.height = static_cast<int>(picture.height());
  for (uint32_t plane = 0; plane < picture.plane_count(); ++plane) {
    frame.data[plane] = const_cast<uint8_t*>(picture.plane(plane));
    frame.linesize[plane] = static_cast<int>(picture.stride(plane));
  }
  // The buffer frees nothing. With it avcodec_send_frame() takes a reference; without a buffer it would copy.
  frame.buf[0] = av_buffer_create(
      frame.data[0], static_cast<size_t>(picture.header().extent_bytes), [](void*, uint8_t*) {}, nullptr,
      AV_BUFFER_FLAG_READONLY);
  if (!frame.buf[0]) throw std::bad_alloc();
  lent_ = true;
  return &frame;
}

AVFrame* FrameMaker::copy(const ImageView& picture) {
  release();
  AVFrame* frame = fresh(static_cast<int>(picture.width()), static_cast<int>(picture.height()));
  const AVPixelFormat source = av_format_of(picture.pixel());
  const bool keeps = keeps_numbers(picture),
             is_planes = target_ == AV_PIX_FMT_YUV420P || target_ == AV_PIX_FMT_YUVJ420P;
  if (keeps && (source == target_ || (source == AV_PIX_FMT_YUV420P && is_planes))) {
    const uint8_t* data[4] = {};
    int strides[4] = {};
    for (uint32_t plane = 0; plane < picture.plane_count(); ++plane) {
      data[plane] = picture.plane(plane);
      strides[plane] = static_cast<int>(picture.stride(plane));
    }
    av_image_copy(frame->data, frame->linesize, data, strides, source, frame->width, frame->height);
  } else if (keeps && source == AV_PIX_FMT_P010LE && target_ == AV_PIX_FMT_YUV420P10LE) {
    repack_p010(picture, *frame);
  } else if (keeps && source == AV_PIX_FMT_NV12 && is_planes) {
    repack_nv12(picture, *frame);
  } else {
    convert(picture, source);
    if (target_ == AV_PIX_FMT_PAL8) make_palette(picture, *frame);
  }
  return frame;
}

AVFrame* FrameMaker::fresh(int width, int height) {
  const int bytes = av_image_get_buffer_size(target_, width, height, kAlignment);
  if (bytes < 0) throw std::invalid_argument("a picture cannot be encoded: " + error_words(bytes));
  const size_t padded = static_cast<size_t>(bytes) + AV_INPUT_BUFFER_PADDING_SIZE + kAlignment;
  if (!pool_ || pool_bytes_ != padded) {
    pool_.reset(av_buffer_pool_init(padded, nullptr));
    pool_bytes_ = padded;
  }
  AVFrame* frame = frame_.get();
  frame->buf[0] = pool_ ? av_buffer_pool_get(pool_.get()) : nullptr;
  if (!frame->buf[0]) throw std::bad_alloc();
  const auto address = reinterpret_cast<uintptr_t>(frame->buf[0]->data);
  uint8_t* aligned = frame->buf[0]->data + (kAlignment - address % kAlignment) % kAlignment;
  frame->format = target_;
  frame->width = width;
  frame->height = height;
  av_image_fill_arrays(frame->data, frame->linesize, aligned, target_, width, height, kAlignment);
  frame->extended_data = frame->data;
  return frame;
}

void FrameMaker::convert(const ImageView& picture, AVPixelFormat source) {
  AVFrame* frame = frame_.get();
  const AVPixelFormat target = target_ == AV_PIX_FMT_PAL8 ? AV_PIX_FMT_RGB8 : target_;
  SwsContext* before = scaler_.release();
  scaler_.reset(sws_getCachedContext(before, frame->width, frame->height, source, frame->width, frame->height, target,
                                     SWS_BICUBIC | SWS_ACCURATE_RND | SWS_FULL_CHR_H_INT, nullptr, nullptr, nullptr));
  if (!scaler_)
    throw std::invalid_argument(std::string("libswscale cannot make ") + av_get_pix_fmt_name(target_) + " from " +
                                av_get_pix_fmt_name(source));
  // Between YCbCr formats libswscale keeps the matrix if both tables are the same.
  const int full = picture.range() == MR_RANGE_FULL, target_full = meaning_.range == MR_RANGE_FULL;
  const bool from_ycbcr = has_matrix(source), to_ycbcr = has_matrix(target_);
  const int* table = sws_getCoefficients(sws_matrix_of(from_ycbcr ? picture.color() : meaning_.color));
  const int* target_table = sws_getCoefficients(sws_matrix_of(to_ycbcr ? meaning_.color : picture.color()));
  sws_setColorspaceDetails(scaler_.get(), table, from_ycbcr ? full : 1, target_table, to_ycbcr ? target_full : 1, 0,
                           1 << 16, 1 << 16);
  const uint8_t* data[4] = {};
  int strides[4] = {};
  for (uint32_t plane = 0; plane < picture.plane_count(); ++plane) {
    data[plane] = picture.plane(plane);
    strides[plane] = static_cast<int>(picture.stride(plane));
  }
  sws_scale(scaler_.get(), data, strides, 0, frame->height, frame->data, frame->linesize);
  if (!is_repacking(source, target)) ++converted_;
}

void FrameMaker::release() {
  const bool held = lent_ && frame_->buf[0] && av_buffer_get_ref_count(frame_->buf[0]) > 1;
  lent_ = false;
  av_frame_unref(frame_.get());
  if (held) throw std::logic_error("the encoder keeps a picture that it was only lent");
}

} // namespace millrace::media
