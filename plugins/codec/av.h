// Objects of libavcodec, made or refused, and its error codes in words.
#pragma once

extern "C" {
#include <libavutil/error.h>
#include <libavutil/log.h>
#include <libavutil/opt.h>
}

#include <mutex>
#include <new>
#include <string>

#include "plugins/ffmpeg/owned.h"

namespace millrace::codec {

using ffmpeg::CodecContext;
using ffmpeg::Frame;
using ffmpeg::number_of;
using AvPacket = ffmpeg::Packet;

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

inline std::string av_words(int code) {
  char words[AV_ERROR_MAX_STRING_SIZE];
  av_strerror(code, words, sizeof words);
  return words;
}

} // namespace millrace::codec
