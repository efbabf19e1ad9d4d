// video.writer: writes pictures into a film.
#include <atomic>
#include <bit>
#include <memory>
#include <stdexcept>
#include <string>
#include <tuple>

#include "millrace/handler.h"
#include "plugins/media/encoders.h"
#include "plugins/media/frames.h"
#include "plugins/media/log.h"
#include "plugins/media/rates.h"
#include "plugins/media/recording.h"

namespace millrace::media {
namespace {

constexpr const char* kVideoWriterManual = &R"(
Writes the pictures that it gets into a film: a file, standard output, a FIFO, or a server.

The container follows from the path's extension (mp4, mov, mkv, webm, avi, ts, nut, flv, gif, y4m)
or from `container`, which `path=-` (standard output) and most FIFOs need. Addresses go to servers:
rtmp://, rtsp://, srt://, udp:// and tcp://, if the installed libraries have them.
`millrace inspect video.writer` lists the containers and encoders of this machine.

Times. Each picture is shown at its media time, counted from the first picture's. So a film of a
live source lasts as long as the source did, whatever was dropped on the way. MP4, MOV and NUT hold
such times to a microsecond, TS to 11 of them, Matroska, WebM and FLV to a millisecond, and all hold
the nominal rate exactly if they can. A picture that is closer than that to the one before it takes
the container's next tick and is counted (pictures_nudged). AVI has numbers instead of times: a
picture takes the nearest number that is free. Y4M has neither, so pictures are repeated and
dropped. `rate: 30` does that in any container: the film has exactly 30 pictures a second and ends
where its media times end. If several pictures come too fast, the latest one lasts.

Codec. `codec` is h264, hevc, av1, vp9, vp8, mpeg4, mpeg2, mjpeg, prores, gif, one of the lossless
ones, an encoder's own name such as libx264rgb, or four letters such as MJPG. The default is h264,
which plays everywhere, but vp9 in WebM and mpeg4 in AVI. `quality` is one scale for all codecs,
from 0 to 100; 70 is x264's crf 23, and a difference of 15 is easily seen. `bitrate: 4M` fixes the
size instead. `preset` is the encoder's word for speed against size; for x264 the default is
veryfast. `gop` is the longest time between key frames, at which a player can begin. Without it,
that is 8 s for h264, hevc, vp8, vp9 and av1 in a file, and 2 s at an address and for other codecs.
A shorter one makes seeking quicker and the film larger; what a crash leaves does not depend on it.
`pixels` chooses the encoded format, such as yuv444p. Without it the format of the input is kept: 8
or 10 bits in YCbCr, RGB in codecs for it. Colours, range and the shape of pixels are tagged as in
the input. Gray pictures stay gray in a codec that has gray, and colour never becomes gray unless
`pixels: gray8` asks for it: such a codec takes any picture and writes its own nearest colour
format, counted as pictures_converted if numbers change. JPEG has the matrix bt601 and full range
only, so mjpeg converts pictures that have another. Transparency is kept if codec and container have
it (in GIF a pixel is there or not); its loss is said.

For bit-exact work take ffv1 (in mkv, avi or mov: RGB, RGBA, gray, nv12, i420 and 10 bits), huffyuv
(RGB and RGBA, quick), ffvhuff (as huffyuv, also i420, gray and 10 bits) or png (RGB, RGBA and
gray).

Sizes. H.264, H.265 and others take even sizes only. Other sizes are refused before the pipeline
runs, with the crop that helps.

Safety. The film is written to NAME.part.EXT beside its name, under a lock, and gets its name at the
end. A second writer of the same name is refused. A film that a crash leaves can be played except
for its last two seconds; the next run keeps it as NAME.part-1.EXT and says so. For this, MP4 and
MOV are written in fragments of half a second. With `fragment: none` they are plain, and worth
nothing before their end. Each write is checked: a full disk ends the run with path, reason and
byte. If `on_error` lets the run go on, that is said once, and then no more pictures are taken
(`skip`) or a new film is begun (`restart`). A film is on the disk before it gets its name, and
outlasts a loss of power. Missing folders of the path are created. An existing film is replaced at
the end, or refused with `exists: fail`.

Segments. `segment: 10min` or `segment: 100MB` makes a new file at a key frame, each playable by
itself and beginning at 0. %03d or {index} in the path is the number; without either "-000" is put
before the extension. Codecs in which each picture stands alone (ffv1, png, mjpeg, …) are cut at any
picture; others get a key frame where the next file is due. A file of a given size ends near it.
`list` names a file that lists the finished segments and their lengths, which ffmpeg reads with
`-f concat` (and `-safe 0`, if a name has other characters than letters, digits, dots, dashes and
underscores). It is under a lock, too. All segments together are as long as the recording: a pause
before a new segment is told by MP4, MOV, Matroska and WebM, and in others the picture after it
goes into the old segment.

Sound. `sound` names a file whose sound is copied unchanged beside the pictures, cut to the same
times: media time 0 is the file's first picture.

Addresses. The first picture opens the connection to a server. If the server does not accept
something, takes nothing for `timeout` or goes away, the run ends with the address and the reason;
nothing is sent again. UDP is sent whether or not anything receives it.

    video.file path=media/vtest.avi ! video.writer path=out/copy.mp4
)"[1];

constexpr double kGopSecondsMax = 3600, kStreamGopSeconds = 2;
constexpr int64_t kThreadsMax = 256;

class VideoWriter final : public Handler {
 public:
  VideoWriter() {
    blocking(); // a FIFO's reader or a server may be slow
    cost_hint_us(4000);
  }

  // Refuses everything that the parameters alone show to be wrong.
  void narrow(uint32_t port, Format& accepts) override {
    if (port != video_.port()) return;
    const LogScope scope(log_);
    const RecordingSettings settings = settle();
    const uint64_t taken = taken_pixels(settings.choice, settings.wish);
    accepts.pixel_formats = accepts.pixel_formats ? accepts.pixel_formats & taken : taken;
  }

  // Opens the encoder once, because only that shows if it takes the size.
  void configure(const Formats& formats) override {
    const Format& format = formats.in(video_);
    if (format.size_kind != MR_DIM_FIXED || format.width == 0 || std::popcount(format.pixel_formats) != 1) return;
    const auto pixel = static_cast<Pixel>(std::countr_zero(format.pixel_formats));
    const std::tuple opened{format.width, format.height, pixel};
    if (opened == opened_) return;
    const RecordingSettings settings = settle();
    EncodedPictures pictures;
    pictures.format = encoded_format(settings.choice, settings.wish, pixel);
    if (pictures.format == AV_PIX_FMT_NONE)
      throw std::invalid_argument("codec '" + settings.choice.codec + "' (" + settings.choice.encoder->name +
                                  ") does not take pictures of " + std::string(name_of(pixel)));
    pictures.width = static_cast<int>(format.width);
    pictures.height = static_cast<int>(format.height);
    pictures.meaning =
        encoded_meaning(pictures.meaning, pixel, pictures.format, pictures.height, is_jpeg(settings.choice));
    const bool global_header = settings.container.format->flags & AVFMT_GLOBALHEADER;
    const bool may_reorder = settings.container.times == Times::any;
    expected_ =
        parameters_of(*open_encoder(settings.choice, settings.wish, pictures, global_header, may_reorder, nullptr));
    opened_ = opened;
  }

  void start() override {
    interrupted_ = false;
    const LogScope scope(log_);
    recording_.reset();
    RecordingSettings settings = settle();
    settings.failed_part = failed_part_;
    if (!settings.choice.reason.empty()) log(MR_LOG_INFO, settings.choice.reason);
    auto recording = std::make_unique<Recording>(settings, interrupted_, log_,
                                                 [this](const std::string& sentence) { log(MR_LOG_INFO, sentence); });
    recording->open(expected_.get());
    recording_ = std::move(recording);
  }

  void process(Tick& tick, Cpu&) {
    if (!recording_) throw std::logic_error("the film '" + *path_ + "' has ended");
    const LogScope scope(log_);
    const ImageView picture = video_(tick);
    // A picture of another clock lasts until that clock's next tick, which tells nothing about this clock's ticks.
    const bool is_of_this_tick = picture.header().pts_ns == tick.media_time_ns();
    recording_->add(picture, tick.media_time_ns(), is_of_this_tick ? picture.header().duration_ns : 0);
  }

  void drain() override { finish(); }
  // Finishes the film also without a drain (after another handler's failure), so that it is whole.
  void stop() override { finish(); }
  // A jump in the stream does not begin a new film: the pictures after it follow those before.
  void reset() override {}
  void interrupt() override { interrupted_ = true; }

  static void offers(Offers& offers) { offer_encoders(offers); }

 private:
  void finish() {
    const LogScope scope(log_);
    const std::unique_ptr<Recording> recording = std::move(recording_);
    if (!recording) return;
    const auto log_counts = [&] {
      const Recording::Counts counts = recording->counts();
      if (counts.repeated) count("pictures_repeated", counts.repeated);
      if (counts.dropped) count("pictures_dropped", counts.dropped);
      if (counts.off_grid) count("pictures_off_grid", counts.off_grid);
      if (counts.nudged) count("pictures_nudged", counts.nudged);
      if (counts.converted) count("pictures_converted", counts.converted);
    };
    try {
      recording->finish();
    } catch (...) {
      failed_part_ = recording->failed_part();
      log_counts();
      throw;
    }
    if (const std::string part = recording->failed_part(); !part.empty()) failed_part_ = part;
    log_counts();
  }

  RecordingSettings settle() const {
    RecordingSettings settings;
    settings.path = *path_;
    settings.container = container_of(*path_, *container_);
    settings.wish = {*codec_, *quality_, read_bitrate(*bitrate_), *preset_, *gop_, static_cast<int>(*threads_),
                     *pixels_};
    // A player that joins a stream waits for its next key frame.
    if (settings.wish.gop_seconds < 0 && is_address(*path_)) settings.wish.gop_seconds = kStreamGopSeconds;
    settings.choice = choose_encoder(settings.container, settings.wish);
    if (!rate_->empty()) settings.rate = read_rate("rate", *rate_);
    settings.sound = *sound_;
    settings.segment = read_segment_length(*segment_);
    settings.list = *list_;
    settings.may_replace = *exists_ == "replace";
    settings.fragments = *fragment_ == "auto";
    settings.timeout_s = *timeout_;
    if (settings.segment.is_set() && (*path_ == "-" || is_address(*path_)))
      throw std::invalid_argument("`segment` needs files, and '" + *path_ + "' is none");
    if (!settings.list.empty() && !settings.segment.is_set())
      throw std::invalid_argument("`list` names the list of segments, and there is no `segment`");
    if (!settings.list.empty()) check_list_name(settings.path);
    return settings;
  }

  millrace::Input<Image> video_{*this, "video",
                                pixels({Pixel::gray8, Pixel::rgb8, Pixel::bgr8, Pixel::rgba8, Pixel::bgra8, Pixel::nv12,
                                        Pixel::i420, Pixel::p010}),
                                help("the pictures; which formats are taken depends on the codec")};
  Param<std::string> path_{
      *this,    "path",      "",       "a file, - for standard output, a FIFO, or an address such as rtmp://…",
      required, writes_path, in_pieces};
  Param<std::string> container_{*this, "container", "", "mp4, mkv, …; empty: by the path's extension"};
  Param<std::string> codec_{*this, "codec", "", "h264, hevc, ffv1, …, or an encoder's name; empty: by the container"};
  Param<double> quality_{*this, "quality", 70.0, "from 0 to 100, on one scale for all codecs", range(0, 100)};
  Param<std::string> bitrate_{*this, "bitrate", "", "bits a second such as 4M or 500k; empty: by quality"};
  Param<std::string> preset_{*this, "preset", "", "the encoder's own word for speed against size"};
  Param<double> gop_{
      *this, "gop", -1.0, "the longest time between key frames; -1: as is usual", range(-1, kGopSecondsMax), seconds};
  Param<int64_t> threads_{*this, "threads", 0, "that the encoder may use; 0: as many as there are cores",
                          range(0, kThreadsMax)};
  Param<std::string> pixels_{*this, "pixels", "", "the format that is encoded, such as yuv444p; empty: as it comes"};
  Param<std::string> rate_{
      *this, "rate", "",
      "pictures a second, by repeating and dropping: 30, 29.97 or 30000/1001; empty: at media times"};
  Param<std::string> sound_{*this, "sound", "", "a file whose sound is copied beside the pictures", reads_path};
  Param<std::string> segment_{*this, "segment", "", "a time such as 10min or a size such as 100MB; empty: one file",
                              cuts_paths};
  Param<std::string> list_{*this, "list", "", "a file that lists the finished segments", writes_path};
  Param<std::string> exists_{*this, "exists", "replace", "what becomes of an existing film",
                             choices({"replace", "fail"})};
  Param<std::string> fragment_{*this, "fragment", "auto",
                               "auto: MP4 and MOV in fragments, which a crash leaves playable; none: plain ones",
                               choices({"auto", "none"})};
  Param<double> timeout_{*this, "timeout", 5.0, "how long an address may be silent", range(0.1, 3600), seconds};

  Log log_{[this](uint32_t level, const std::string& sentence) { log(level, sentence); }};
  std::atomic<bool> interrupted_ = false;
  std::unique_ptr<Recording> recording_;
  std::string failed_part_; // the last failed recording's; after a restart it is in the way
  std::tuple<uint32_t, uint32_t, Pixel> opened_{0, 0, Pixel::none};
  Parameters expected_; // parameters of the encoder that was opened for opened_
};

MILLRACE_HANDLER(VideoWriter, "video.writer", "Writes pictures into a film", kVideoWriterManual)

} // namespace
} // namespace millrace::media
