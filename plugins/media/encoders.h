// Which encoder makes a codec on this machine, what it is told, and which pictures it takes.
//
// One scale of quality serves all codecs: 0 is the worst, 100 the best, 70 what most people want. It becomes
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

// What the handler's parameters ask for.
struct EncoderWish {
  std::string codec;      // a codec's name, an encoder's own name, or four letters; "": by the container
  double quality = 70;    // 0 to 100
  int64_t bitrate = 0;    // bits a second; 0: by quality
  std::string preset;     // the encoder's word for speed against size; "": ours
  double gop_seconds = 2; // between key frames at most
  int threads = 0;        // 0: as many as there are cores
  std::string pixels;     // what is encoded: millrace's or FFmpeg's name of a format; "": as the pictures come
};

struct EncoderChoice {
  const AVCodec* encoder = nullptr;
  std::string codec; // as people call it: "h264"
  // Of raw pictures: bits of Pixel that the container can tell apart. Of others nothing is said here.
  uint64_t raw_pixels = 0;
  std::string reason; // where the default could not be had: what was taken instead, in a sentence; else ""
};

// Throws std::invalid_argument: no such codec (with the nearest name), no encoder of it that works, or one that the
// container cannot hold (with those that it can).
EncoderChoice choose_encoder(const Container& container, const EncoderWish& wish);

// The format that the encoder is given for pictures of `pixel`; AV_PIX_FMT_NONE where it does not take them. An encoder
// that takes gray takes every format: what is not its own becomes the nearest of its own, never gray.
AVPixelFormat encoded_format(const EncoderChoice& choice, const EncoderWish& wish, Pixel pixel);

// All that encoded_format() takes, as bits of Pixel. Throws std::invalid_argument where `pixels` names no format, or
// one that the encoder has not.
uint64_t taken_pixels(const EncoderChoice& choice, const EncoderWish& wish);

// Pictures as the encoder will see them.
struct EncodedPictures {
  AVPixelFormat format = AV_PIX_FMT_NONE;
  int width = 0, height = 0;
  AVRational rate = {25, 1};      // the nominal one
  AVRational time_base = {1, 25}; // of their times
  Meaning meaning;
};

// Opens an encoder. `opaque` is what its log lines name. Throws std::invalid_argument in a sentence: of a size that it
// cannot encode, with the crop that helps.
Codec open_encoder(const EncoderChoice& choice, const EncoderWish& wish, const EncodedPictures& pictures,
                   bool global_header, bool may_reorder, void* opaque);

// What a muxer has to know of an encoder that is open.
Parameters parameters_of(const AVCodecContext& codec);

// The finest time base that the encoder takes; 0: pictures at the nominal rate only.
int time_base_max(const EncoderChoice& choice);

// True if the encoder has copied a picture when avcodec_send_frame() and the calls of avcodec_receive_packet() up to
// EAGAIN have returned, so that it may be given memory that is only lent.
bool copies_at_once(const EncoderChoice& choice);

// True of an encoder of JPEG, whose YCbCr is of bt601 and full range whatever is said beside it.
bool is_jpeg(const EncoderChoice& choice);

// Names for messages and lists: of the codecs that have a working encoder.
std::vector<std::string> codec_names(const Container* container = nullptr);

// "containers" and "encoders", for `millrace inspect`.
void offer_encoders(Offers& offers);

} // namespace millrace::media
