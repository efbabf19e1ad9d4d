// Chooses the encoder for a codec on this machine, its options and the pixel formats that it takes.
//
// One scale of quality serves all codecs: 0 is the worst, 100 the best, 70 the usual choice. It becomes
//   libx264, libx264rgb, h264_nvenc      crf or cq 51 − 0.4 q   70: 23
//   libx265, hevc_nvenc                  crf or cq 56 − 0.4 q   70: 28, the same to the eye
//   libvpx (VP8)                         crf 52 − 0.6 q         70: 10
//   libvpx-vp9                           crf 59 − 0.4 q         70: 31
//   libaom-av1                           crf 58 − 0.4 q         70: 30
//   mpeg4, mpeg2, mjpeg and the like     qscale 2^((100 − q)/15), 1 to 31   70: 4
//   prores                               profile proxy, lt, standard (from 60) or hq (from 80)
// within the codec's range. Lossless codecs have no use for it.
#pragma once

#include <string>
#include <vector>

#include "millrace/handler.h"
#include "plugins/media/av.h"
#include "plugins/media/containers.h"
#include "plugins/media/pixel_formats.h"

namespace millrace::media {

// The handler's parameters for encoding.
struct EncoderWish {
  std::string codec;       // a codec's name, an encoder's own name, or four letters; "": by the container
  double quality = 70;     // 0 to 100
  int64_t bitrate = 0;     // bits a second; 0: by quality
  std::string preset;      // the encoder's word for speed against size; "": ours
  double gop_seconds = -1; // between key frames at most; -1: the codec's usual distance
  int threads = 0;         // 0: as many as there are cores
  std::string pixels;      // format to encode: millrace's or FFmpeg's name; "": the pictures' own
};

struct EncoderChoice {
  const AVCodec* encoder = nullptr;
  std::string codec; // as people call it: "h264"
  // For raw pictures: the formats that the container can tell apart, as bits of Pixel. Meaningless for other codecs.
  uint64_t raw_pixels = 0;
  std::string reason;       // a sentence about the substitute if the default codec has no working encoder; else ""
  bool keeps_alpha = false; // the codec has YCbCr with transparency, and the container holds it
};

// Throws std::invalid_argument if there is no such codec (with the nearest name), if it has no working encoder, or if
// the container cannot hold it (with the codecs that it can hold).
EncoderChoice choose_encoder(const Container& container, const EncoderWish& wish);

// The format that the encoder gets for pictures of `pixel`; AV_PIX_FMT_NONE if it does not take them. An encoder that
// takes gray takes every format: a colour format that it does not have becomes its nearest one, never gray.
AVPixelFormat encoded_format(const EncoderChoice& choice, const EncoderWish& wish, Pixel pixel);

// All formats that encoded_format() takes, as bits of Pixel. Throws std::invalid_argument if `pixels` names no format,
// or one that the encoder does not have.
uint64_t taken_pixels(const EncoderChoice& choice, const EncoderWish& wish);

// The pictures as the encoder gets them.
struct EncodedPictures {
  AVPixelFormat format = AV_PIX_FMT_NONE;
  int width = 0, height = 0;
  AVRational rate = {25, 1};      // the nominal one
  AVRational time_base = {1, 25}; // the unit of their times
  Meaning meaning;
};

// Opens an encoder. `opaque` identifies the owner of its log lines. Throws std::invalid_argument in a sentence; for a
// size that it cannot encode, with the crop that helps.
Codec open_encoder(const EncoderChoice& choice, const EncoderWish& wish, const EncodedPictures& pictures,
                   bool global_header, bool may_reorder, void* opaque);

// The parameters of an open encoder, for a muxer.
Parameters parameters_of(const AVCodecContext& codec);

// The largest denominator of a time base that the encoder takes; 0: it takes pictures at the nominal rate only.
int time_base_max(const EncoderChoice& choice);

// True if the encoder has copied a picture once avcodec_send_frame() and the calls of avcodec_receive_packet() up to
// EAGAIN have returned. Then its pictures may lie in lent memory.
bool copies_at_once(const EncoderChoice& choice);

// True for an encoder of JPEG, whose YCbCr always has the matrix bt601 and full range, whatever its tags say.
bool is_jpeg(const EncoderChoice& choice);

// Names of the codecs that have a working encoder, for messages and lists.
std::vector<std::string> codec_names(const Container* container = nullptr);

// Adds "containers" and "encoders" to the output of `millrace inspect`.
void offer_encoders(Offers& offers);

} // namespace millrace::media
