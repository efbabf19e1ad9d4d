// Owning pointers for FFmpeg's objects, and its error codes in words.
#pragma once

extern "C" {
#include <libavcodec/avcodec.h>
#include <libavformat/avformat.h>
#include <libavutil/error.h>
#include <libavutil/frame.h>
#include <libavutil/rational.h>
#include <libswscale/swscale.h>
}

#include <cstdint>
#include <memory>
#include <string>

#include "plugins/ffmpeg/owned.h"

namespace millrace::media {

inline constexpr AVRational kNanoseconds = {1, 1000000000};

struct ParametersDeleter {
  void operator()(AVCodecParameters* parameters) const { avcodec_parameters_free(&parameters); }
};
struct ScalerDeleter {
  void operator()(SwsContext* scaler) const { sws_freeContext(scaler); }
};
using ffmpeg::Frame;
using ffmpeg::Packet;
using Codec = ffmpeg::CodecContext;
using Parameters = std::unique_ptr<AVCodecParameters, ParametersDeleter>;
using Scaler = std::unique_ptr<SwsContext, ScalerDeleter>;

// "No such file or directory", "Invalid data found when processing input", … in our words where FFmpeg's mislead.
inline std::string error_words(int code) {
  if (code == AVERROR_EXIT) return "it was interrupted";
  if (code == AVERROR_EOF) return "it ended";
  if (code == -1) return "FFmpeg says no reason"; // many of its functions return it, and it reads as EPERM
  if (code == AVERROR_HTTP_BAD_REQUEST) return "the server does not understand the request (400)";
  if (code == AVERROR_HTTP_UNAUTHORIZED) return "the server wants a user and a password, or refuses these (401)";
  if (code == AVERROR_HTTP_FORBIDDEN) return "the server refuses it (403, forbidden)";
  if (code == AVERROR_HTTP_NOT_FOUND) return "the server does not have it (404, not found)";
  if (code == AVERROR_HTTP_OTHER_4XX) return "the server refuses the request (an answer of 4xx)";
  if (code == AVERROR_HTTP_SERVER_ERROR) return "the server has failed (an answer of 5xx)";
  char words[AV_ERROR_MAX_STRING_SIZE];
  av_strerror(code, words, sizeof words);
  return words;
}

// "1.250 s".
inline std::string seconds_words(int64_t ns) {
  const int64_t ms = ns / 1'000'000;
  const std::string fraction = std::to_string(ms % 1000);
  return std::to_string(ms / 1000) + "." + std::string(3 - fraction.size(), '0') + fraction + " s";
}

} // namespace millrace::media
