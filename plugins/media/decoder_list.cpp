// Asks libavcodec and libavformat what they can read; see decoder_list.h.
#include "plugins/media/decoder_list.h"

#include <string>

#include "plugins/media/av.h"

namespace millrace::media {

namespace {

constexpr AVCodecID kMet[] = {AV_CODEC_ID_H264,   AV_CODEC_ID_HEVC,     AV_CODEC_ID_AV1,     AV_CODEC_ID_VP9,
                              AV_CODEC_ID_VP8,    AV_CODEC_ID_MPEG4,    AV_CODEC_ID_MJPEG,   AV_CODEC_ID_MPEG2VIDEO,
                              AV_CODEC_ID_PRORES, AV_CODEC_ID_FFV1,     AV_CODEC_ID_HUFFYUV, AV_CODEC_ID_PNG,
                              AV_CODEC_ID_GIF,    AV_CODEC_ID_RAWVIDEO, AV_CODEC_ID_THEORA,  AV_CODEC_ID_DNXHD};
constexpr const char* kContainers[] = {"mov", "matroska", "mpegts", "avi", "flv", "ogg", "nut", "gif", "yuv4mpegpipe"};

// All software decoders of the codec.
std::string decoders_of(AVCodecID id) {
  std::string names;
  void* at = nullptr;
  while (const AVCodec* codec = av_codec_iterate(&at)) {
    if (codec->id != id || !av_codec_is_decoder(codec) || (codec->capabilities & AV_CODEC_CAP_HARDWARE)) continue;
    names += (names.empty() ? "" : ", ") + std::string(codec->name);
  }
  return names;
}

} // namespace

void offer_decoders(Offers& offers) {
  for (const AVCodecID id : kMet) {
    const std::string names = decoders_of(id);
    if (names.empty()) continue;
    const AVCodec* first = avcodec_find_decoder(id);
    const bool lends = first && (first->capabilities & AV_CODEC_CAP_DR1);
    offers.add("decoders", avcodec_get_name(id),
               names + (lends ? "; writes into the plan's memory" : "; one copy a picture"));
  }
  for (const char* name : kContainers)
    if (const AVInputFormat* format = av_find_input_format(name))
      offers.add("containers read", name, format->long_name);
  std::string protocols;
  void* at = nullptr;
  while (const char* name = avio_enum_protocols(&at, 0))
    for (const char* met : {"http", "https", "rtmp", "srt", "tcp", "udp"})
      if (std::string(name) == met) protocols += (protocols.empty() ? "" : ", ") + std::string(name);
  if (av_find_input_format("rtsp")) protocols += ", rtsp";
  offers.add("addresses", "read", protocols);
}

} // namespace millrace::media
