// Owning pointers for the objects of libavcodec, and its error codes in words.
#pragma once

extern "C" {
#include <libavcodec/avcodec.h>
#include <libavutil/error.h>
#include <libavutil/frame.h>
#include <libavutil/log.h>
#include <libavutil/opt.h>
}

#include <cstring>
#include <memory>
#include <mutex>
#include <new>
#include <string>

namespace millrace::codec {

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
using AvPacket = std::unique_ptr<AVPacket, PacketDeleter>;

// FFmpeg has one log for a process, which writes to the terminal unless somebody takes it over, also by objects that
// are nobody's. Faults are exceptions here, so its own way of writing is switched off. A callback that somebody has
// set, as the plugin media does, is not touched: it gets these lines without an owner.
inline void silence_log() {
  static std::once_flag once;
  std::call_once(once, [] { av_log_set_level(AV_LOG_QUIET); });
}

// An unopened context.
inline CodecContext fresh_context(const AVCodec* codec) {
  silence_log();
  CodecContext context(avcodec_alloc_context3(codec));
  if (!context) throw std::bad_alloc();
  return context;
}
inline Frame fresh_frame() {
  Frame frame(av_frame_alloc());
  if (!frame) throw std::bad_alloc();
  return frame;
}
inline AvPacket fresh_packet() {
  AvPacket packet(av_packet_alloc());
  if (!packet) throw std::bad_alloc();
  return packet;
}

// The number in one of FFmpeg's enumerations that comes from a stream. It may be no valid enumerator, and C++ may not
// read such a value as the enumeration.
template <class Enum>
int number_of(const Enum& named) {
  static_assert(sizeof(Enum) == sizeof(int));
  int number = 0;
  std::memcpy(&number, &named, sizeof number);
  return number;
}

inline std::string av_words(int code) {
  char words[AV_ERROR_MAX_STRING_SIZE];
  av_strerror(code, words, sizeof words);
  return words;
}

} // namespace millrace::codec
