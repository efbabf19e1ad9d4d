// The list of encoders, with a sentence for each whose library was missing when millrace was built; see encoder.h.
#include "plugins/codec/encoder.h"

#include <array>
#include <stdexcept>

#ifdef CODEC_JPEG
#include "plugins/codec/jpeg_encoder.h"
#endif
#ifdef CODEC_H264
#include "plugins/codec/h264_encoder.h"
#endif

namespace millrace::codec {

namespace {

#if !defined(CODEC_JPEG) || !defined(CODEC_H264)
[[noreturn]] std::unique_ptr<Encoder> refuse(const std::string& why) { throw std::runtime_error(why); }
uint64_t no_bytes(uint32_t, uint32_t, const EncoderSettings&) { return 0; }
#endif

#ifndef CODEC_JPEG
std::string why_no_jpeg() {
  return "the encoder jpeg is not there, because libjpeg-turbo was missing when millrace was built; install "
         "libturbojpeg0-dev and build again";
}
constexpr EncoderType kJpegType = {
    "jpeg",   kJpegCode, 0, "libjpeg-turbo", why_no_jpeg, [](const EncoderSettings&) { return refuse(why_no_jpeg()); },
    no_bytes,
};
#endif

#ifndef CODEC_H264
std::string why_no_h264() {
  return "the encoder h264 is not there, because FFmpeg's libraries were missing when millrace was built; install "
         "libavcodec-dev and build again";
}
constexpr EncoderType kH264Type = {
    "h264",   kH264Code, 0, "libx264", why_no_h264, [](const EncoderSettings&) { return refuse(why_no_h264()); },
    no_bytes,
};
#endif

} // namespace

std::span<const EncoderType> encoder_types() {
  static const std::array types = {kJpegType, kH264Type};
  return types;
}

const EncoderType& find_encoder(std::string_view name) {
  std::string names;
  for (const EncoderType& type : encoder_types()) {
    if (name == type.name) return type;
    names += (names.empty() ? "" : " and ") + std::string(type.name);
  }
  throw std::invalid_argument("there is no encoder '" + std::string(name) + "'; there are " + names);
}

} // namespace millrace::codec
