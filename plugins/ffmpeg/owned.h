// Owning pointers for objects of libavcodec, and numbers of its enumerations, for all plugins that use FFmpeg's
// libraries.
#pragma once

extern "C" {
#include <libavcodec/avcodec.h>
#include <libavutil/frame.h>
}

#include <cstring>
#include <memory>

namespace millrace::ffmpeg {

struct CodecDeleter {
  void operator()(AVCodecContext* codec) const { avcodec_free_context(&codec); }
};
struct FrameDeleter {
  void operator()(AVFrame* frame) const { av_frame_free(&frame); }
};
struct PacketDeleter {
  void operator()(AVPacket* packet) const { av_packet_free(&packet); }
};
using CodecContext = std::unique_ptr<AVCodecContext, CodecDeleter>;
using Frame = std::unique_ptr<AVFrame, FrameDeleter>;
using Packet = std::unique_ptr<AVPacket, PacketDeleter>;

// The number in one of FFmpeg's enumerations that comes from a file or a stream. It may be no valid enumerator, and C++
// may not read such a value as the enumeration.
template <class Enum>
int number_of(const Enum& named) {
  static_assert(sizeof(Enum) == sizeof(int));
  int number = 0;
  std::memcpy(&number, &named, sizeof number);
  return number;
}

} // namespace millrace::ffmpeg
