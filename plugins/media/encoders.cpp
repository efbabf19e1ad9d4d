// Chooses and sets up encoders: a table of codecs, and each encoder's own options; see encoders.h.
#include "plugins/media/encoders.h"

extern "C" {
#include <libavutil/opt.h>
#include <libavutil/pixdesc.h>
}

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>
#include <map>
#include <mutex>
#include <new>
#include <stdexcept>
#include <string_view>
#include <thread>
#include <utility>

#include "plugins/media/containers.h"
#include "plugins/media/frames.h"
#include "plugins/media/log.h"
#include "plugins/media/nearest_name.h"
#include "plugins/media/rates.h"

namespace millrace::media {

namespace {

struct KnownCodec {
  const char* name;
  const char* encoders; // the best first, with spaces between; those that need a device last
  const char* others;   // other names, in lower case, with commas at both ends; among them four letters of containers
  const char* words;
};
constexpr KnownCodec kCodecs[] = {
    {"h264", "libx264 libopenh264 h264_nvenc h264_qsv h264_v4l2m2m", ",avc,avc1,x264,h.264,", "plays everywhere"},
    {"hevc", "libx265 libkvazaar hevc_nvenc hevc_qsv hevc_v4l2m2m", ",h265,h.265,x265,hvc1,hev1,",
     "half the size of h264, several times the work"},
    {"vp9", "libvpx-vp9 vp9_qsv", ",vp90,", "for webm"},
    {"vp8", "libvpx", ",vp80,", "for old webm"},
    {"av1", "libaom-av1 librav1e", ",av01,", "the smallest and the slowest"},
    {"mpeg4", "mpeg4 libxvid", ",mp4v,xvid,divx,fmp4,", "MPEG-4 part 2, for old players"},
    {"mpeg2", "mpeg2video", ",mpeg2video,mpg2,", "for DVDs and broadcast"},
    {"mjpeg", "mjpeg", ",mjpg,", "every picture a JPEG"},
    {"ffv1", "ffv1", ",", "bit-exact, also YCbCr and 10 bits"},
    {"huffyuv", "huffyuv", ",hfyu,", "bit-exact RGB, quick"},
    {"ffvhuff", "ffvhuff", ",ffvh,", "bit-exact, quick, also YCbCr and 10 bits"},
    {"png", "png", ",mpng,", "bit-exact RGB and gray, every picture a PNG"},
    {"prores", "prores_ks prores", ",apcn,apch,apcs,apco,", "for video editors, 10 bits"},
    {"gif", "gif", ",", "at most 256 colours"},
    {"apng", "apng", ",", "animated PNG"},
    {"rawvideo", "rawvideo", ",raw,", "not compressed"},
};

constexpr int kRawTimesMax = 65535; // MPEG-4 part 2 writes the denominator of times in 16 bits
constexpr int kTrialSize = 256;     // every encoder takes it
constexpr int kSlicedMin = 16;      // least side of a picture for FFV1's slices, in pixels

// True if FFV1's slices keep each pixel. libavcodec 59 refuses to cut some small pictures (3 × 5), and cuts others into
// slices without pixels, which come back black (1 × 1, and 2 × 2 in gray or RGB). libavcodec 60 loses the last column
// or row of subsampled chroma if the side is odd.
bool slices_keep_all(const AVCodecContext& codec) {
  if (codec.width < kSlicedMin || codec.height < kSlicedMin) return false;
  int across = 0, down = 0; // chroma's shifts
  av_pix_fmt_get_chroma_sub_sample(codec.pix_fmt, &across, &down);
  return (across == 0 || codec.width % 2 == 0) && (down == 0 || codec.height % 2 == 0);
}

std::vector<std::string> words_of(const char* text) {
  std::vector<std::string> words;
  std::string word;
  for (const char* at = text;; ++at) {
    if (*at && *at != ' ') {
      word += *at;
      continue;
    }
    if (!word.empty()) words.push_back(std::move(word));
    word.clear();
    if (!*at) return words;
  }
}

const KnownCodec* find_codec(const std::string& name) {
  for (const KnownCodec& known : kCodecs)
    if (name == known.name || std::string_view(known.others).find("," + name + ",") != std::string_view::npos)
      return &known;
  return nullptr;
}

bool is(const AVCodec& encoder, std::initializer_list<const char*> names) {
  return std::any_of(names.begin(), names.end(),
                     [&](const char* name) { return std::string_view(encoder.name) == name; });
}
bool contains(const AVCodec& encoder, const char* part) {
  return std::string_view(encoder.name).find(part) != std::string_view::npos;
}

std::vector<AVPixelFormat> formats_of(const AVCodec& encoder) {
  std::vector<AVPixelFormat> formats;
  for (const AVPixelFormat* at = encoder.pix_fmts; at && *at != AV_PIX_FMT_NONE; ++at) {
    const AVPixFmtDescriptor* described = av_pix_fmt_desc_get(*at);
    if (described && !(described->flags & AV_PIX_FMT_FLAG_HWACCEL)) formats.push_back(*at);
  }
  return formats;
}

// The formats that hold a picture's numbers unchanged, the picture's own first. An encoder without that may take one
// with the same numbers in another order.
std::vector<AVPixelFormat> exact_formats(Pixel pixel) {
  switch (pixel) {
    case Pixel::i420: return {AV_PIX_FMT_YUV420P, AV_PIX_FMT_YUVJ420P};
    case Pixel::p010: return {AV_PIX_FMT_P010LE, AV_PIX_FMT_YUV420P10LE};
    case Pixel::rgb8:
      return {AV_PIX_FMT_RGB24, AV_PIX_FMT_BGR24, AV_PIX_FMT_RGB0, AV_PIX_FMT_BGR0, AV_PIX_FMT_RGBA, AV_PIX_FMT_BGRA};
    case Pixel::bgr8:
      return {AV_PIX_FMT_BGR24, AV_PIX_FMT_RGB24, AV_PIX_FMT_BGR0, AV_PIX_FMT_RGB0, AV_PIX_FMT_BGRA, AV_PIX_FMT_RGBA};
    case Pixel::rgba8: return {AV_PIX_FMT_RGBA, AV_PIX_FMT_BGRA, AV_PIX_FMT_ARGB, AV_PIX_FMT_ABGR};
    case Pixel::bgra8: return {AV_PIX_FMT_BGRA, AV_PIX_FMT_RGBA, AV_PIX_FMT_ARGB, AV_PIX_FMT_ABGR};
    default: return {av_format_of(pixel)};
  }
}

constexpr std::array kPixels = {Pixel::gray8, Pixel::rgb8, Pixel::bgr8, Pixel::rgba8,
                                Pixel::bgra8, Pixel::nv12, Pixel::i420, Pixel::p010};

// True for codecs made for playback. Encoders of these take formats that players cannot play, such as gray in H.264.
bool is_for_playing(const AVCodec& encoder) {
  switch (encoder.id) {
    case AV_CODEC_ID_H264:
    case AV_CODEC_ID_HEVC:
    case AV_CODEC_ID_VP8:
    case AV_CODEC_ID_VP9:
    case AV_CODEC_ID_AV1: return true;
    default: return false;
  }
}

AVPixelFormat wished_format(const EncoderChoice& choice, const EncoderWish& wish) {
  if (wish.pixels.empty()) return AV_PIX_FMT_NONE;
  const std::string name = lower(wish.pixels);
  std::vector<AVPixelFormat> meant;
  for (const Pixel pixel : kPixels)
    if (name == name_of(pixel)) meant = exact_formats(pixel);
  if (meant.empty()) meant = {av_get_pix_fmt(name.c_str())};
  const std::vector<AVPixelFormat> taken = formats_of(*choice.encoder);
  if (taken.empty() && meant[0] != AV_PIX_FMT_NONE) return meant[0];
  for (const AVPixelFormat format : meant)
    if (std::find(taken.begin(), taken.end(), format) != taken.end()) return format;
  std::vector<std::string> names;
  for (const AVPixelFormat format : taken) names.emplace_back(av_get_pix_fmt_name(format));
  const std::string encoder = "the encoder " + std::string(choice.encoder->name);
  if (meant[0] == AV_PIX_FMT_NONE)
    throw std::invalid_argument("there is no pixel format '" + wish.pixels + "'" + nearest_in_words(name, names) +
                                (names.empty() ? "" : "; " + encoder + " takes " + listed(names, " and ")));
  throw std::invalid_argument(encoder + " does not take pixels '" + wish.pixels + "', but " + listed(names, " and "));
}

int clamped(double value, int least, int most) {
  return static_cast<int>(std::lround(std::clamp(value, static_cast<double>(least), static_cast<double>(most))));
}

double pictures_a_second(AVRational rate) { return av_q2d(rate); }

// An encoder keeps pictures to look ahead and to work on several at a time. Pictures inside it are lost if the process
// is killed, so they are bounded in time, whatever the rate: the same number of pictures is a moment of a fast film and
// a minute of a slow one. This bound and the half second that a container keeps back are less than the two seconds that
// may be lost. At 30 pictures a second the bound leaves x264 its own number of threads on 16 cores.
constexpr double kInsideSeconds = 1.3;
struct Inside {
  int lookahead; // pictures
  int threads;   // each works on one picture; 0: the encoder decides
};
Inside bounded_inside(AVRational rate, int lookahead, int reordered, int threads_asked, double threads_a_core) {
  const int most = std::max(1, static_cast<int>(kInsideSeconds * pictures_a_second(rate)));
  const auto cores = static_cast<double>(std::max(1u, std::thread::hardware_concurrency()));
  const int threads = threads_asked > 0 ? threads_asked : std::max(1, static_cast<int>(cores * threads_a_core));
  const int threads_most = 1 + most * 2 / 3;
  Inside inside{};
  inside.threads = threads_asked > 0 || threads <= threads_most ? threads_asked : threads_most;
  const int busy = std::min(threads, threads_asked > 0 ? threads : threads_most) - 1;
  inside.lookahead = std::clamp(most - busy - reordered, 0, lookahead);
  return inside;
}

// rc-lookahead of x264's presets.
int x264_lookahead(const std::string& preset) {
  if (preset == "ultrafast" || preset == "superfast") return 0;
  if (preset == "veryfast") return 10;
  if (preset == "faster") return 20;
  if (preset == "fast") return 30;
  if (preset == "slow") return 50;
  if (preset == "slower" || preset == "veryslow" || preset == "placebo") return 60;
  return 40;
}
int x264_reordered(const std::string& preset) {
  if (preset == "ultrafast") return 0;
  return preset == "veryslow" ? 9 : preset == "placebo" ? 17 : 4; // consecutive B-frames, and the one after them
}
int x265_lookahead(const std::string& preset) {
  if (preset == "ultrafast") return 5;
  if (preset == "superfast") return 10;
  if (preset == "veryfast" || preset == "faster" || preset == "fast") return 15;
  if (preset == "slow") return 25;
  if (preset == "slower" || preset == "veryslow") return 40;
  return preset == "placebo" ? 60 : 20;
}

class EncoderOptions {
 public:
  ~EncoderOptions() { av_dict_free(&options_); }
  EncoderOptions() = default;
  EncoderOptions(const EncoderOptions&) = delete;
  EncoderOptions& operator=(const EncoderOptions&) = delete;
  void set(const char* name, const std::string& value) { av_dict_set(&options_, name, value.c_str(), 0); }
  void set(const char* name, int64_t value) { av_dict_set_int(&options_, name, value, 0); }
  AVDictionary** raw() { return &options_; }

 private:
  AVDictionary* options_ = nullptr;
};

// The names that an option of the encoder takes.
std::vector<std::string> words_of_option(const AVCodec& encoder, const char* name) {
  std::vector<std::string> words;
  const AVClass* described = encoder.priv_class;
  const AVOption* option = described ? av_opt_find(&described, name, nullptr, 0, AV_OPT_SEARCH_FAKE_OBJ) : nullptr;
  if (!option || !option->unit) return words;
  for (const AVOption* each = nullptr; (each = av_opt_next(&described, each));)
    if (each->type == AV_OPT_TYPE_CONST && each->unit && std::string_view(each->unit) == option->unit)
      words.emplace_back(each->name);
  return words;
}

void check_preset(const AVCodec& encoder, const EncoderWish& wish, const std::vector<std::string>& presets) {
  if (std::find(presets.begin(), presets.end(), wish.preset) != presets.end()) return;
  throw std::invalid_argument("the encoder " + std::string(encoder.name) + " has no preset '" + wish.preset + "'" +
                              nearest_in_words(wish.preset, presets) + "; it has " + listed(presets, " and "));
}

// The preset for x264 and x265, checked here because they write to the terminal if they do not know it.
std::string preset_of(const AVCodec& encoder, const EncoderWish& wish) {
  static const std::vector<std::string> presets = {"ultrafast", "superfast", "veryfast", "faster",   "fast",
                                                   "medium",    "slow",      "slower",   "veryslow", "placebo"};
  // Not the libraries' own default, `medium`: a recorder has to keep up with its source on a few cores.
  if (wish.preset.empty()) return "veryfast";
  check_preset(encoder, wish, presets);
  return wish.preset;
}

// Sets the speed of encoders whose presets are numbers.
void set_speed(const AVCodec& encoder, const EncoderWish& wish, EncoderOptions& options, const char* option, int most,
               int usual) {
  int speed = usual;
  if (!wish.preset.empty()) {
    char* end = nullptr;
    speed = static_cast<int>(std::strtol(wish.preset.c_str(), &end, 10));
    if (*end || speed < 0 || speed > most)
      throw std::invalid_argument("the encoder " + std::string(encoder.name) + " has no preset '" + wish.preset +
                                  "', but numbers from 0 (slow and small) to " + std::to_string(most));
  }
  options.set(option, int64_t{speed});
}

void set_up_x264(AVCodecContext& codec, const AVCodec& encoder, const EncoderWish& wish, EncoderOptions& options) {
  const std::string preset = preset_of(encoder, wish);
  const int reordered = x264_reordered(preset);
  const Inside inside = bounded_inside(codec.framerate, x264_lookahead(preset), reordered, wish.threads, 1.5);
  options.set("preset", preset);
  if (inside.lookahead < x264_lookahead(preset)) options.set("rc-lookahead", int64_t{inside.lookahead});
  if (inside.threads > 0) codec.thread_count = inside.threads;
  options.set("forced-idr", int64_t{1}); // a segment has to begin with a picture that needs no earlier one
  if (wish.bitrate == 0) options.set("crf", std::to_string(std::clamp(51 - 0.4 * wish.quality, 0.0, 51.0)));
}

void set_up_x265(AVCodecContext& codec, const AVCodec& encoder, const EncoderWish& wish, EncoderOptions& options) {
  const std::string preset = preset_of(encoder, wish);
  constexpr int kReordered = 5;
  const Inside inside = bounded_inside(codec.framerate, x265_lookahead(preset), kReordered, 0, 0.5);
  options.set("preset", preset);
  options.set("forced-idr", int64_t{1});
  // log-level=none because x265 itself writes to the terminal; open-gop=0 because a segment has to begin with a closed
  // group of pictures.
  std::string own = "log-level=none:open-gop=0";
  if (inside.lookahead < x265_lookahead(preset)) {
    // The lookahead of x265 must be longer than its runs of B-frames.
    const int b_frames = std::clamp(inside.lookahead - 1, 0, 4);
    own += ":bframes=" + std::to_string(b_frames) + ":rc-lookahead=" + std::to_string(std::max(1, inside.lookahead));
  }
  if (inside.threads > 0) own += ":frame-threads=" + std::to_string(inside.threads);
  if (wish.threads > 0) own += ":pools=" + std::to_string(wish.threads);
  options.set("x265-params", own);
  if (wish.bitrate == 0) options.set("crf", std::to_string(std::clamp(56 - 0.4 * wish.quality, 0.0, 51.0)));
}

void set_up_vpx(AVCodecContext& codec, const AVCodec& encoder, const EncoderWish& wish, EncoderOptions& options) {
  constexpr int kLag = 25; // the library's own
  const bool is_vp8 = encoder.id == AV_CODEC_ID_VP8;
  const Inside inside = bounded_inside(codec.framerate, kLag, 0, 1, 1);
  options.set("deadline", "good");
  set_speed(encoder, wish, options, "cpu-used", is_vp8 ? 16 : 8, is_vp8 ? 5 : 5);
  options.set("lag-in-frames", int64_t{inside.lookahead});
  if (!is_vp8) options.set("row-mt", int64_t{1});
  if (codec.pix_fmt == AV_PIX_FMT_YUVA420P)
    options.set("auto-alt-ref", int64_t{0}); // its pictures have no transparency
  if (wish.bitrate > 0) return;
  options.set("crf",
              int64_t{is_vp8 ? clamped(52 - 0.6 * wish.quality, 4, 63) : clamped(59 - 0.4 * wish.quality, 0, 63)});
  // VP8 has constant quality only below a bit rate. This is the rate of the uncompressed pictures, which no film
  // reaches.
  const double pictures = std::clamp(pictures_a_second(codec.framerate), 1.0, 240.0);
  codec.bit_rate = is_vp8 ? static_cast<int64_t>(codec.width * 12.0 * codec.height * pictures) : 0;
}

void set_up_aom(AVCodecContext& codec, const AVCodec& encoder, const EncoderWish& wish, EncoderOptions& options) {
  constexpr int kLag = 19; // the least that its own lookahead features need
  const Inside inside = bounded_inside(codec.framerate, kLag, 0, 1, 1);
  set_speed(encoder, wish, options, "cpu-used", 8, 8);
  options.set("row-mt", int64_t{1});
  options.set("lag-in-frames", int64_t{inside.lookahead});
  if (wish.bitrate > 0) return;
  options.set("crf", int64_t{clamped(58 - 0.4 * wish.quality, 0, 63)});
  codec.bit_rate = 0;
}

void set_up_nvenc(AVCodecContext& codec, const AVCodec& encoder, const EncoderWish& wish, EncoderOptions& options) {
  if (!wish.preset.empty()) {
    check_preset(encoder, wish, words_of_option(encoder, "preset"));
    options.set("preset", wish.preset);
  }
  options.set("forced-idr", int64_t{1});
  if (wish.bitrate > 0) return;
  const double best = encoder.id == AV_CODEC_ID_H264 ? 51 : 56;
  options.set("rc", "vbr");
  options.set("cq", std::to_string(std::clamp(best - 0.4 * wish.quality, 0.0, 51.0)));
  codec.bit_rate = 0;
}

void set_up_prores(const AVCodecContext& codec, const EncoderWish& wish, EncoderOptions& options) {
  constexpr int64_t k4444 = 4; // the only profile with full chroma or transparency
  if (const AVPixFmtDescriptor* format = av_pix_fmt_desc_get(codec.pix_fmt); format && format->log2_chroma_w == 0)
    return options.set("profile", k4444);
  options.set("profile", int64_t{wish.quality >= 80 ? 3 : wish.quality >= 60 ? 2 : wish.quality >= 40 ? 1 : 0});
}

void refuse_preset(const AVCodec& encoder, const EncoderWish& wish) {
  if (!wish.preset.empty()) throw std::invalid_argument("the encoder " + std::string(encoder.name) + " has no presets");
}

// The distance of key frames if nobody asks for one. The newer codecs predict from picture to picture without drifting,
// and their encoders set a key frame at each cut of a film by themselves.
double usual_gop_seconds(AVCodecID codec) {
  switch (codec) {
    case AV_CODEC_ID_H264:
    case AV_CODEC_ID_HEVC:
    case AV_CODEC_ID_VP8:
    case AV_CODEC_ID_VP9:
    case AV_CODEC_ID_AV1: return 8;
    default: return 2;
  }
}

void set_up(AVCodecContext& codec, const AVCodec& encoder, const EncoderWish& wish, EncoderOptions& options) {
  const double gop_seconds = wish.gop_seconds < 0 ? usual_gop_seconds(encoder.id) : wish.gop_seconds;
  codec.gop_size = std::max(1, static_cast<int>(std::lround(gop_seconds * pictures_a_second(codec.framerate))));
  codec.thread_count = wish.threads;
  codec.bit_rate = wish.bitrate;
  if (is(encoder, {"libx264", "libx264rgb"})) return set_up_x264(codec, encoder, wish, options);
  if (is(encoder, {"libx265"})) return set_up_x265(codec, encoder, wish, options);
  if (is(encoder, {"libvpx", "libvpx-vp9"})) return set_up_vpx(codec, encoder, wish, options);
  if (is(encoder, {"libaom-av1"})) return set_up_aom(codec, encoder, wish, options);
  if (contains(encoder, "_nvenc")) return set_up_nvenc(codec, encoder, wish, options);
  refuse_preset(encoder, wish);
  if (contains(encoder, "prores")) return set_up_prores(codec, wish, options);
  // These encoders would use a thread per picture, not per slice, and each thread keeps one more picture inside.
  if (is(encoder, {"ffv1"})) {
    // Every picture is a key frame, for hardly 1 % more bytes: FFV1 ignores requests for key frames, so otherwise few
    // pictures could begin a segment.
    codec.gop_size = 1;
    // Version 3 has checksums: damage is detected, and ends at the slice.
    const bool has_slices = slices_keep_all(codec);
    codec.level = has_slices ? 3 : 1;
    if (has_slices) options.set("slicecrc", int64_t{1});
  }
  if (is(encoder, {"mjpeg", "png", "huffyuv", "ffvhuff", "apng"}) && wish.threads == 0)
    codec.thread_count = bounded_inside(codec.framerate, 0, 0, 0, 1).threads;
  if (is(encoder, {"mjpeg"})) options.set("huffman", "optimal");
  if (wish.bitrate == 0 && is(encoder, {"mpeg4", "libxvid", "mpeg2video", "mpeg1video", "mjpeg"})) {
    codec.flags |= AV_CODEC_FLAG_QSCALE;
    codec.global_quality = FF_QP2LAMBDA * clamped(std::exp2((100 - wish.quality) / 15), 1, 31);
  }
}

void set_meaning(AVCodecContext& codec, const EncodedPictures& pictures) {
  const Meaning& meaning = pictures.meaning;
  const AVPixFmtDescriptor* described = av_pix_fmt_desc_get(pictures.format);
  const bool is_rgb = described && (described->flags & AV_PIX_FMT_FLAG_RGB), is_ycbcr = has_matrix(pictures.format);
  codec.colorspace = is_ycbcr ? av_matrix_of(Pixel::i420, meaning.color)
                     : is_rgb ? AVCOL_SPC_RGB
                              : AVCOL_SPC_UNSPECIFIED;
  codec.color_range = is_ycbcr ? av_range_of(Pixel::i420, meaning.range) : AVCOL_RANGE_JPEG;
  codec.color_primaries = meaning.primaries ? static_cast<AVColorPrimaries>(meaning.primaries) : AVCOL_PRI_UNSPECIFIED;
  codec.color_trc =
      meaning.transfer ? static_cast<AVColorTransferCharacteristic>(meaning.transfer) : AVCOL_TRC_UNSPECIFIED;
  // MPEG-2 and MPEG-4 part 2 hold small fractions only. 0/1 would mean "not known", which players take as square.
  codec.sample_aspect_ratio = {1, 1};
  if (meaning.aspect_num && meaning.aspect_den)
    av_reduce(&codec.sample_aspect_ratio.num, &codec.sample_aspect_ratio.den, meaning.aspect_num, meaning.aspect_den,
              255);
}

// Null, with FFmpeg's error in `error`, if the encoder refuses.
Codec try_open(const EncoderChoice& choice, const EncoderWish& wish, const EncodedPictures& pictures,
               bool global_header, bool may_reorder, void* opaque, int& error) {
  const AVCodec& encoder = *choice.encoder;
  Codec codec(avcodec_alloc_context3(&encoder));
  if (!codec) throw std::bad_alloc();
  codec->opaque = opaque;
  codec->width = pictures.width;
  codec->height = pictures.height;
  codec->pix_fmt = pictures.format;
  codec->framerate = pictures.rate;
  codec->time_base = pictures.time_base;
  set_meaning(*codec, pictures);
  EncoderOptions options;
  set_up(*codec, encoder, wish, options);
  if (!may_reorder && (encoder.id == AV_CODEC_ID_H264 || encoder.id == AV_CODEC_ID_HEVC)) {
    codec->max_b_frames = 0;
    if (is(encoder, {"libx265"})) options.set("x265-params", "log-level=none:open-gop=0:bframes=0");
  }
  if (global_header) codec->flags |= AV_CODEC_FLAG_GLOBAL_HEADER;
  error = avcodec_open2(codec.get(), &encoder, options.raw());
  if (error < 0) codec.reset();
  return codec;
}

EncodedPictures trial_pictures(const EncoderChoice& choice) {
  EncodedPictures pictures;
  const std::vector<AVPixelFormat> formats = formats_of(*choice.encoder);
  pictures.format = formats.empty() ? AV_PIX_FMT_YUV420P : formats[0];
  pictures.width = pictures.height = kTrialSize;
  return pictures;
}

// True if the encoder opens. An encoder may be installed without the device that it needs, and only opening it shows
// that. Tried once a process, since the answer does not change.
bool works(const AVCodec& encoder) {
  static std::mutex mutex;
  static std::map<std::string, bool> known;
  const std::lock_guard lock(mutex);
  const auto found = known.find(encoder.name);
  if (found != known.end()) return found->second;
  EncoderChoice choice;
  choice.encoder = &encoder;
  EncoderWish wish;
  wish.threads = 1; // quick to open
  take_over_log();
  int error = 0;
  const bool opened = !formats_of(encoder).empty() || encoder.id == AV_CODEC_ID_RAWVIDEO
                          ? try_open(choice, wish, trial_pictures(choice), false, true, nullptr, error) != nullptr
                          : false;
  known[encoder.name] = opened;
  return opened;
}

const AVCodec* working_encoder(const KnownCodec& known) {
  for (const std::string& name : words_of(known.encoders))
    if (const AVCodec* encoder = avcodec_find_encoder_by_name(name.c_str()); encoder && works(*encoder)) return encoder;
  return nullptr;
}

// The codecs for a container: the one that plays best, then its substitutes.
std::vector<std::string> default_codecs(const Container& container) {
  if (container.name == "webm") return {"vp9", "vp8", "av1"};
  if (container.name == "avi") return {"mpeg4", "mjpeg"};
  if (container.name == "y4m") return {};
  for (const char* name : {"mp4", "mov", "mkv", "ts", "nut", "flv", "rtsp", "rtp_mpegts"})
    if (container.name == name) return {"h264", "mpeg4", "mpeg2", "mjpeg"};
  return {};
}

// The formats of raw pictures that the container has letters for. Others come back wrong or not at all.
uint64_t raw_pixels_of(const Container& container) {
  const uint64_t planes = bit_of(Pixel::gray8) | bit_of(Pixel::nv12) | bit_of(Pixel::i420);
  const uint64_t rgb = bit_of(Pixel::bgr8) | bit_of(Pixel::rgba8) | bit_of(Pixel::bgra8);
  if (container.name == "avi") return planes | rgb;
  if (container.name == "mov") return rgb | bit_of(Pixel::rgb8);
  if (container.name == "mkv") return planes;
  return ~uint64_t{0};
}

EncoderChoice default_encoder(const Container& container) {
  const std::vector<std::string> wanted = default_codecs(container);
  for (const std::string& name : wanted) {
    const AVCodec* encoder = working_encoder(*find_codec(name));
    if (encoder && !can_hold(container, encoder->id)) encoder = nullptr;
    if (!encoder) continue;
    if (name == wanted[0]) return {encoder, name, 0, ""};
    return {encoder, name, 0,
            "there is no encoder of " + wanted[0] + " that works here; " + name + " is written instead"};
  }
  const AVCodec* own =
      container.format->video_codec == AV_CODEC_ID_NONE ? nullptr : avcodec_find_encoder(container.format->video_codec);
  if (!own)
    throw std::invalid_argument("container '" + container.name +
                                "' has no video codec of its own that can be encoded "
                                "here; `codec` names one: " +
                                listed(codec_names(&container)));
  const KnownCodec* known = find_codec(own->name);
  return {own, known ? known->name : own->name, 0, ""};
}

bool has_alpha(Pixel pixel) { return pixel == Pixel::rgba8 || pixel == Pixel::bgra8; }

// The format in which the encoder takes pictures of `pixel` without loss, or in its usual way.
AVPixelFormat own_format(const EncoderChoice& choice, Pixel pixel) {
  const std::vector<AVPixelFormat> taken = formats_of(*choice.encoder);
  if (choice.encoder->id == AV_CODEC_ID_WRAPPED_AVFRAME) {
    // Y4M holds planes only.
    if (pixel == Pixel::p010) return AV_PIX_FMT_YUV420P10LE;
    return pixel == Pixel::i420 || pixel == Pixel::gray8 ? av_format_of(pixel) : AV_PIX_FMT_NONE;
  }
  if (taken.empty()) { // raw pictures
    for (const AVPixelFormat format : exact_formats(pixel)) {
      const bool is_known = !choice.raw_pixels || (choice.raw_pixels & bit_of(pixel_of(format)));
      if (is_known && avcodec_pix_fmt_to_codec_tag(format) != 0) return format;
    }
    return AV_PIX_FMT_NONE;
  }
  if (is_jpeg(choice) && pixel == Pixel::i420) return AV_PIX_FMT_YUVJ420P;
  const bool is_gray_or_rgb = pixel != Pixel::i420 && pixel != Pixel::nv12 && pixel != Pixel::p010;
  const bool wants_rgb = is(*choice.encoder, {"libx264rgb"});
  if (!(is_for_playing(*choice.encoder) && is_gray_or_rgb && !wants_rgb))
    for (const AVPixelFormat format : exact_formats(pixel))
      if (std::find(taken.begin(), taken.end(), format) != taken.end()) return format;
  // An encoder that has none of millrace's formats takes pictures of the one nearest to its own first format.
  bool takes_any = false;
  for (const Pixel each : kPixels)
    for (const AVPixelFormat format : exact_formats(each))
      takes_any = takes_any || std::find(taken.begin(), taken.end(), format) != taken.end();
  if (choice.encoder->id == AV_CODEC_ID_GIF && has_alpha(pixel)) return AV_PIX_FMT_PAL8; // see palette.h
  if (choice.encoder->id == AV_CODEC_ID_GIF)
    return pixel == Pixel::rgb8 ? AV_PIX_FMT_RGB8 : pixel == Pixel::gray8 ? AV_PIX_FMT_GRAY8 : AV_PIX_FMT_NONE;
  return !takes_any && nearest_pixel(taken[0]) == pixel ? taken[0] : AV_PIX_FMT_NONE;
}

// Substitutes for a colour format that an encoder does not have, those that lose least first.
std::array<Pixel, 7> nearest_first(Pixel pixel) {
  using enum Pixel;
  switch (pixel) {
    case p010:
    case nv12:
    case i420: return {i420, nv12, p010, rgb8, bgr8, rgba8, bgra8};
    case rgba8:
    case bgra8: return {rgba8, bgra8, rgb8, bgr8, i420, nv12, p010};
    default: return {rgb8, bgr8, rgba8, bgra8, i420, nv12, p010};
  }
}

// The format of YCbCr with transparency in which this film is written; AV_PIX_FMT_NONE if it has none.
AVPixelFormat alpha_format(const EncoderChoice& choice) {
  if (!choice.keeps_alpha) return AV_PIX_FMT_NONE;
  const std::vector<AVPixelFormat> taken = formats_of(*choice.encoder);
  const AVPixelFormat wanted = choice.encoder->id == AV_CODEC_ID_PRORES ? AV_PIX_FMT_YUVA444P10LE : AV_PIX_FMT_YUVA420P;
  return std::find(taken.begin(), taken.end(), wanted) != taken.end() ? wanted : AV_PIX_FMT_NONE;
}

// VP8 and VP9 hold transparency as a second film beside the first, for which only Matroska has a place.
EncoderChoice with_alpha(EncoderChoice choice, const Container& container) {
  const AVCodecID codec = choice.encoder->id;
  const bool is_mkv = container.name == "mkv" || container.name == "webm";
  choice.keeps_alpha = (is_mkv && (codec == AV_CODEC_ID_VP8 || codec == AV_CODEC_ID_VP9)) ||
                       ((is_mkv || container.name == "mov") && is(*choice.encoder, {"prores_ks"}));
  return choice;
}

// True for YCbCr with more chroma than 4:2:0.
bool is_fuller_than_420(AVPixelFormat format) {
  const AVPixFmtDescriptor* described = av_pix_fmt_desc_get(format);
  return has_matrix(format) && (described->log2_chroma_w == 0 || described->log2_chroma_h == 0);
}

} // namespace

EncoderChoice choose_encoder(const Container& container, const EncoderWish& wish) {
  if (wish.codec.empty()) return with_alpha(default_encoder(container), container);
  const std::string name = lower(wish.codec);
  EncoderChoice choice;
  if (const KnownCodec* known = find_codec(name)) {
    choice = {working_encoder(*known), known->name, raw_pixels_of(container), ""};
    if (!choice.encoder)
      throw std::invalid_argument("no encoder of codec '" + wish.codec + "' works here (" + known->encoders +
                                  " would be taken); there is " + listed(codec_names(&container)));
    if (container.name == "y4m" && name == "rawvideo")
      choice.encoder = avcodec_find_encoder(AV_CODEC_ID_WRAPPED_AVFRAME);
  } else if (name == "libsvtav1") {
    // Once opened, it hangs when it is closed before its first picture (1.4, Debian 12's version), and it writes to the
    // terminal past FFmpeg's log.
    throw std::invalid_argument(
        "the encoder libsvtav1 is not used, as a film that fails early would never end with it; " +
        listed(words_of(find_codec("av1")->encoders), " and ") + " write av1");
  } else if (const AVCodec* encoder = avcodec_find_encoder_by_name(name.c_str());
             encoder && encoder->type == AVMEDIA_TYPE_VIDEO) {
    const KnownCodec* of = find_codec(avcodec_get_name(encoder->id));
    choice = {encoder, of ? of->name : avcodec_get_name(encoder->id), raw_pixels_of(container), ""};
  } else {
    std::vector<std::string> names = codec_names();
    for (const KnownCodec& each : kCodecs)
      for (const std::string& own : words_of(each.encoders))
        if (avcodec_find_encoder_by_name(own.c_str())) names.push_back(own);
    const std::string near = nearest_of(name, names);
    throw std::invalid_argument("there is no codec '" + wish.codec + "'" + nearest_in_words(name, names) +
                                "; this libavcodec writes " + listed(codec_names(), " and ") +
                                "\ntry: codec=" + (near.empty() ? default_encoder(container).codec : near));
  }
  if (!can_hold(container, choice.encoder->id))
    throw std::invalid_argument("container '" + container.name + "' cannot hold codec '" + wish.codec +
                                "'; it can hold " + listed(codec_names(&container), " and ") +
                                "\ntry: codec=" + default_encoder(container).codec);
  return with_alpha(std::move(choice), container);
}

AVPixelFormat encoded_format(const EncoderChoice& choice, const EncoderWish& wish, Pixel pixel) {
  if (const AVPixelFormat wished = wished_format(choice, wish); wished != AV_PIX_FMT_NONE) {
    const std::vector<AVPixelFormat> exact = exact_formats(pixel);
    if (has_alpha(pixel) && has_matrix(wished) && (av_pix_fmt_desc_get(wished)->flags & AV_PIX_FMT_FLAG_ALPHA))
      return wished;
    if (std::find(exact.begin(), exact.end(), wished) != exact.end() || nearest_pixel(wished) == pixel) return wished;
    // YCbCr with more chroma than millrace's formats is made directly from RGB, since those formats have lost the
    // chroma.
    return is_fuller_than_420(wished) && (pixel == Pixel::rgb8 || pixel == Pixel::bgr8) ? wished : AV_PIX_FMT_NONE;
  }
  const AVPixelFormat own = own_format(choice, pixel);
  const AVPixelFormat with_alpha = alpha_format(choice);
  if (has_alpha(pixel) && with_alpha != AV_PIX_FMT_NONE) return with_alpha;
  // If a port took gray and only some colour formats, the plan would turn any other colour format into gray, since it
  // does not rank formats; likewise it would give RGB a transparency. So the port takes all formats, and the nearest is
  // written.
  const bool takes_gray = pixel != Pixel::gray8 && own_format(choice, Pixel::gray8) != AV_PIX_FMT_NONE;
  if (own != AV_PIX_FMT_NONE || (!takes_gray && with_alpha == AV_PIX_FMT_NONE)) return own;
  for (const Pixel near : nearest_first(pixel))
    if (const AVPixelFormat format = own_format(choice, near); format != AV_PIX_FMT_NONE) return format;
  return AV_PIX_FMT_NONE;
}

uint64_t taken_pixels(const EncoderChoice& choice, const EncoderWish& wish) {
  uint64_t bits = 0;
  for (const Pixel pixel : kPixels)
    if (encoded_format(choice, wish, pixel) != AV_PIX_FMT_NONE) bits |= bit_of(pixel);
  if (bits == 0)
    throw std::invalid_argument("the encoder " + std::string(choice.encoder->name) +
                                " takes pictures of no format that millrace has");
  return bits;
}

Codec open_encoder(const EncoderChoice& choice, const EncoderWish& wish, const EncodedPictures& pictures,
                   bool global_header, bool may_reorder, void* opaque) {
  int error = 0;
  // The library's log lines during these attempts go into our own sentence or nowhere.
  std::string reason;
  Log heard([&](uint32_t level, const std::string& sentence) {
    if (level == MR_LOG_INFO && reason.empty()) reason = sentence;
  });
  const LogScope scope(heard);
  const auto opens = [&](const EncodedPictures& tried) {
    int ignored = 0;
    return try_open(choice, wish, tried, global_header, may_reorder, &heard, ignored) != nullptr;
  };
  if (Codec codec = try_open(choice, wish, pictures, global_header, may_reorder, &heard, error)) {
    codec->opaque = opaque;
    return codec;
  }
  const std::string first_reason = reason.empty() ? error_words(error) : error_words(error) + " (" + reason + ")";
  const std::string size = std::to_string(pictures.width) + " × " + std::to_string(pictures.height);
  const std::string encoder = "the encoder " + std::string(choice.encoder->name);
  for (const int step : {2, 4, 8, 16}) {
    EncodedPictures cut = pictures;
    cut.width -= cut.width % step;
    cut.height -= cut.height % step;
    if (cut.width == 0 || cut.height == 0 || (cut.width == pictures.width && cut.height == pictures.height)) continue;
    if (opens(cut))
      throw std::invalid_argument(encoder + " does not take pictures of " + size +
                                  "; `image.crop width=" + std::to_string(cut.width) +
                                  " height=" + std::to_string(cut.height) + "` before the writer helps");
  }
  EncodedPictures usual = pictures;
  usual.width = usual.height = kTrialSize;
  if (opens(usual)) throw std::invalid_argument(encoder + " does not take pictures of " + size);
  throw std::invalid_argument(encoder + " cannot be opened: " + first_reason);
}

Parameters parameters_of(const AVCodecContext& codec) {
  Parameters parameters(avcodec_parameters_alloc());
  if (!parameters || avcodec_parameters_from_context(parameters.get(), &codec) < 0) throw std::bad_alloc();
  return parameters;
}

int time_base_max(const EncoderChoice& choice) {
  switch (choice.encoder->id) {
    case AV_CODEC_ID_MPEG4: return kRawTimesMax;
    case AV_CODEC_ID_MPEG1VIDEO:
    case AV_CODEC_ID_MPEG2VIDEO: return 0;
    default: return kTimeBaseFine;
  }
}

bool copies_at_once(const EncoderChoice& choice) {
  // Each of these wrappers hands the picture to its library inside the call, and the library copies it into its own
  // memory. avcodec_send_frame() takes a reference to a frame with an AVBufferRef and copies any other, so a frame
  // without one would be copied twice. Encoders of libavcodec itself may keep the reference (frame threads, MPEG's
  // reordering) and get a copy.
  return is(*choice.encoder, {"libx264", "libx264rgb", "libx265", "libvpx", "libvpx-vp9", "libaom-av1"});
}

bool is_jpeg(const EncoderChoice& choice) { return choice.encoder->id == AV_CODEC_ID_MJPEG; }

std::vector<std::string> codec_names(const Container* container) {
  std::vector<std::string> names;
  for (const KnownCodec& known : kCodecs) {
    const AVCodec* encoder = working_encoder(known);
    if (encoder && (!container || can_hold(*container, encoder->id))) names.emplace_back(known.name);
  }
  return names;
}

void offer_encoders(Offers& offers) {
  for (const std::string& name : container_names()) {
    const Container container = container_of("", name);
    std::string words;
    try {
      const EncoderChoice choice = choose_encoder(container, {});
      words = choice.codec + " (" + choice.encoder->name + ") unless `codec` says another: ";
    } catch (const std::invalid_argument&) {
      words = "`codec` has to be said: ";
    }
    offers.add("containers", name,
               container.name == "y4m" ? "not compressed" : words + listed(codec_names(&container)));
  }
  for (const KnownCodec& known : kCodecs) {
    bool is_first = true;
    for (const std::string& name : words_of(known.encoders)) {
      const AVCodec* encoder = avcodec_find_encoder_by_name(name.c_str());
      if (!encoder) continue;
      if (!works(*encoder)) {
        offers.add("encoders", name, std::string(known.name) + "; is there and does not open on this machine");
        continue;
      }
      offers.add("encoders", name,
                 std::string(known.name) + ", " + known.words + (is_first ? "" : "; by its own name only"));
      is_first = false;
    }
  }
}

} // namespace millrace::media
