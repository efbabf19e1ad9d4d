// Sets up libavformat's muxers to lose little if the process dies; see muxer.h.
#include "plugins/media/muxer.h"

extern "C" {
#include <libavutil/opt.h>
}

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstdint>
#include <new>
#include <stdexcept>
#include <string>

#include "millrace/write_signals.h"

namespace millrace::media {

namespace {

// The longest piece of an MP4, and the longest cluster of a Matroska file. Together with the pictures inside the
// encoder a killed recording loses less than two seconds.
constexpr int64_t kPieceUs = 500000;
constexpr int64_t kPieceMs = kPieceUs / 1000;

// Seven packets of a transport stream: they fit into an Ethernet frame, and receivers of UDP expect that size.
constexpr const char* kDatagramBytes = "1316";

// The longest time between two packets, in units of the file's times. libavformat keeps the durations of MP4 in an int.
// It fills AVI up with empty packets itself, but with at most 60000 in a row. GIF stores a picture's duration in 16
// bits.
constexpr int64_t kMovStepMax = INT32_MAX - 1, kAviStepMax = 50000, kGifStepMax = 60000;
// Numbers that AVI may leave out in a row: four days at 30 pictures a second, which take 240 MB of index.
constexpr int64_t kAviLeftOutMax = 10'000'000;
// FLV's times are signed, in 32 bits of milliseconds: 24 days.
constexpr int64_t kFlvLast = INT32_MAX;

// Most protocols need only the interrupt. These have waits that do not check it, or defaults that harm a receiver.
void set_for_target(const std::string& path, double timeout_s, AVDictionary** settings) {
  const std::string us = std::to_string(std::llround(timeout_s * 1e6));
  if (path.starts_with("rtsp://") || path.starts_with("rtsps://")) {
    av_dict_set(settings, "rtsp_transport", "tcp", 0); // as video.file reads them
  } else if (path.starts_with("udp://") || path.starts_with("rtp://")) {
    av_dict_set(settings, "pkt_size", kDatagramBytes, 0);
  } else if (path.starts_with("srt://")) {
    av_dict_set(settings, "timeout", us.c_str(), 0);
    // Without this, closing drops all unsent data, which may be the whole of a short film.
    av_dict_set_int(settings, "linger", std::max(1LL, std::llround(timeout_s)), 0);
    av_dict_set(settings, "connect_timeout", std::to_string(std::llround(timeout_s * 1e3)).c_str(), 0);
  } else {
    av_dict_set(settings, "rw_timeout", us.c_str(), 0);
  }
}

// Makes the streams, sets the container's options, and writes the header. Returns FFmpeg's error, or 0 or more.
int write_header(AVFormatContext& format, const Muxer::Options& options, const MuxedStreams& streams, bool is_stream) {
  const Container& container = options.container;
  AVStream* video = avformat_new_stream(&format, nullptr);
  if (!video) throw std::bad_alloc();
  if (const int result = avcodec_parameters_copy(video->codecpar, streams.video); result < 0) return result;
  // The muxer usually chooses the letters. But Apple's players know only one of HEVC's two, and only letters tell
  // formats of raw pictures apart.
  const bool is_hevc = streams.video->codec_id == AV_CODEC_ID_HEVC && container.is_mov;
  const bool is_raw = streams.video->codec_id == AV_CODEC_ID_RAWVIDEO;
  const bool is_prores = streams.video->codec_id == AV_CODEC_ID_PRORES; // the letters say its profile
  video->codecpar->codec_tag = is_hevc ? MKTAG('h', 'v', 'c', '1') : is_raw || is_prores ? streams.video->codec_tag : 0;
  if (streams.video->format == AV_PIX_FMT_YUVA420P) av_dict_set(&video->metadata, "alpha_mode", "1", 0);
  video->time_base = streams.time_base;
  video->avg_frame_rate = video->r_frame_rate = streams.rate;
  video->sample_aspect_ratio = streams.video->sample_aspect_ratio;
  if (streams.sound) {
    AVStream* sound = avformat_new_stream(&format, nullptr);
    if (!sound) throw std::bad_alloc();
    if (const int result = avcodec_parameters_copy(sound->codecpar, streams.sound->codecpar); result < 0) return result;
    sound->codecpar->codec_tag = 0;
    sound->time_base = streams.sound->time_base;
    // MP4 has a name for each of these, but libavformat regards them as experimental.
    const AVCodecID codec = sound->codecpar->codec_id;
    if (container.is_mov && (codec == AV_CODEC_ID_FLAC || codec == AV_CODEC_ID_TRUEHD))
      format.strict_std_compliance = FF_COMPLIANCE_EXPERIMENTAL;
  }
  AVDictionary* settings = nullptr;
  if (container.is_mov) {
    if (options.fragments) {
      // The index of the first piece is written with it, so that an edit list can take away the time by which B-frames
      // delay the first picture.
      av_dict_set(&settings, "movflags", "+empty_moov+delay_moov+default_base_moof", 0);
      av_dict_set_int(&settings, "frag_duration", kPieceUs, 0);
    }
    av_dict_set_int(&settings, "video_track_timescale", streams.time_base.den, 0);
  } else if (container.name == "mkv" || container.name == "webm") {
    av_dict_set_int(&settings, "cluster_time_limit", kPieceMs, 0);
  } else if (container.name == "nut") {
    format.avoid_negative_ts = AVFMT_AVOID_NEG_TS_DISABLED; // NUT holds negative times: the first picture stays at 0
  } else if (container.name == "flv" && is_stream) {
    av_dict_set(&settings, "flvflags", "no_duration_filesize", 0);
  }
  if (format.oformat->flags & AVFMT_NOFILE) set_for_target(format.url, options.timeout_s, &settings);
  if (container.name == "y4m") format.strict_std_compliance = FF_COMPLIANCE_EXPERIMENTAL; // 10 bits
  const int result = avformat_write_header(&format, &settings);
  av_dict_free(&settings);
  return result;
}

// True if the muxer gets packets as they are. A bitstream filter takes an empty packet for the end.
bool may_have_empty_packets(const AVStream& stream) { return stream.codecpar->codec_id != AV_CODEC_ID_VP9; }

} // namespace

Muxer::Muxer(const Options& options, const std::atomic<bool>& interrupted)
    : options_(options), interrupt_(interrupted), output_(interrupted) {}

Muxer::~Muxer() { abandon(); }

void Muxer::open(const std::string& path, const PartFile::Kept& kept) {
  abandon();
  path_ = path;
  is_address_ = is_address(path);
  if (is_address_) return; // begin() connects: a server may close a connection that is silent for long
  output_.open(path, options_.may_replace, kept);
}

void Muxer::begin(const MuxedStreams& streams) {
  const HeldWriteSignals held; // libavformat's own sockets
  const AVOutputFormat* container = options_.container.format;
  check(avformat_alloc_output_context2(&format_, const_cast<AVOutputFormat*>(container), nullptr, path_.c_str()));
  format_->opaque = options_.log_opaque;
  interrupt_.allow(is_address_ ? options_.timeout_s : 0);
  format_->interrupt_callback = interrupt_.callback();
  format_->flush_packets = 1;
  if (!is_address_) {
    format_->pb = output_.io();
    format_->flags |= AVFMT_FLAG_CUSTOM_IO;
  } else if (!(container->flags & AVFMT_NOFILE)) {
    connect();
  }
  interrupt_.begin();
  const bool is_stream = is_address_ || !output_.is_regular();
  check(write_header(*format_, options_, streams, is_stream));
  video_time_base_ = streams.time_base;
  if (streams.sound) sound_time_base_ = streams.sound->time_base;
  begun_ = true;
  has_last_ = false;
  last_.reset(av_packet_alloc());
  if (!last_) throw std::bad_alloc();
}

void Muxer::connect() {
  AVDictionary* settings = nullptr;
  set_for_target(path_, options_.timeout_s, &settings);
  const int result = avio_open2(&format_->pb, path_.c_str(), AVIO_FLAG_WRITE, &format_->interrupt_callback, &settings);
  av_dict_free(&settings);
  check(result);
}

void Muxer::try_header(const Options& options, const MuxedStreams& streams, const std::string& path) {
  const AVOutputFormat* container = options.container.format;
  if (is_address(path) || (container->flags & AVFMT_NOFILE)) return;
  AVFormatContext* format = nullptr;
  if (avformat_alloc_output_context2(&format, const_cast<AVOutputFormat*>(container), nullptr, path.c_str()) < 0)
    throw std::bad_alloc();
  format->opaque = options.log_opaque;
  int result = avio_open_dyn_buf(&format->pb);
  const bool has_buffer = result >= 0;
  if (has_buffer) result = write_header(*format, options, streams, false);
  uint8_t* bytes = nullptr;
  if (has_buffer) avio_close_dyn_buf(format->pb, &bytes);
  av_free(bytes);
  format->pb = nullptr;
  avformat_free_context(format);
  if (result >= 0) return;
  std::string held = avcodec_get_name(streams.video->codec_id);
  if (streams.sound) held += std::string(" with sound in ") + avcodec_get_name(streams.sound->codecpar->codec_id);
  throw std::invalid_argument("container '" + options.container.name + "' cannot hold this " + held + ": " +
                              error_words(result));
}

void Muxer::write_video(AVPacket& packet, std::optional<int64_t> end_ns) {
  if (options_.container.is_mov) packet.duration = std::min(packet.duration, kMovStepMax);
  if (has_last_) bridge_pause(packet);
  const bool keeps_bytes = options_.container.name == "gif";
  av_packet_unref(last_.get());
  check(keeps_bytes ? av_packet_ref(last_.get(), &packet) : av_packet_copy_props(last_.get(), &packet));
  has_last_ = true;
  write(packet, video_time_base_, 0, options_.container.is_mov ? std::nullopt : end_ns);
}

// Writes what the container needs between two packets that are farther apart than it can say. The pictures keep their
// times, and no picture is added, except that GIF shows the last one again.
void Muxer::bridge_pause(const AVPacket& next) {
  const Container& container = options_.container;
  const int64_t step = next.dts - last_->dts;
  const auto too_long = [&](const std::string& limit) {
    const double hours = static_cast<double>(step) * av_q2d(video_time_base_) / 3600;
    return std::runtime_error("cannot write '" + path_ + "': no picture came for " +
                              std::to_string(std::llround(hours)) + " hours, and " + limit);
  };
  if (container.is_mov && step > kMovStepMax) {
    if (!options_.fragments || !may_have_empty_packets(*format_->streams[0]))
      throw too_long(!options_.fragments ? "a plain MP4 or MOV cannot hold such a pause; `fragment: auto` does"
                                         : "VP9 in MP4 cannot hold such a pause; mkv and webm do");
    // A fragment has its own time in 64 bits. The next one begins anew, and says so by an empty packet, since
    // libavformat looks at the flag after it has looked at the times.
    check(av_write_frame(format_, nullptr));
    av_opt_set(format_->priv_data, "movflags", "+frag_discont", 0);
    write_empty(last_->dts + last_->duration);
  } else if (container.times == Times::grid && step > kAviStepMax) {
    if (step > kAviLeftOutMax)
      throw too_long(container.name + " has numbers instead of times, and leaves out " +
                     std::to_string(kAviLeftOutMax) + " at most; mkv and mp4 hold such a pause");
    for (int64_t dts = last_->dts + kAviStepMax; dts < next.dts; dts += kAviStepMax) write_empty(dts);
  } else if (container.name == "gif" && step > kGifStepMax) {
    for (int64_t dts = last_->dts + kGifStepMax; dts < next.dts; dts += kGifStepMax) {
      const Packet again(av_packet_clone(last_.get()));
      if (!again) throw std::bad_alloc();
      again->pts = again->dts = dts;
      write(*again, video_time_base_, 0);
    }
  } else if (container.name == "flv" && !is_address_ && next.pts > kFlvLast) {
    throw std::runtime_error("cannot write '" + path_ + "': FLV holds no time beyond 24 days; mkv and mp4 do");
  }
}

void Muxer::write_empty(int64_t dts) {
  const Packet empty(av_packet_alloc());
  if (!empty) throw std::bad_alloc();
  empty->pts = empty->dts = dts;
  write(*empty, video_time_base_, 0);
}

void Muxer::write_sound(AVPacket& packet) { write(packet, sound_time_base_, 1); }

void Muxer::write(AVPacket& packet, AVRational time_base, int stream, std::optional<int64_t> end_ns) {
  std::optional<HeldWriteSignals> held; // only for addresses: OutputFile's writes hold the signals themselves
  if (is_address_) held.emplace();
  interrupt_.begin();
  packet.stream_index = stream;
  packet.pos = -1;
  av_packet_rescale_ts(&packet, time_base, format_->streams[stream]->time_base);
  // Matroska's muxer makes the length of the file from this.
  if (end_ns)
    packet.duration =
        std::max<int64_t>(0, av_rescale_q(*end_ns, kNanoseconds, format_->streams[stream]->time_base) - packet.pts);
  // Not av_interleaved_write_frame(), which keeps packets back for seconds if one of the streams has ended.
  check(av_write_frame(format_, &packet));
}

void Muxer::check(int result) {
  output_.check();
  int error = result < 0 ? result : format_ && format_->pb ? format_->pb->error : 0;
  // RTSP's muxer ignores failed writes. If a wait was ended, its packet was not sent.
  if (error >= 0 && is_address_ && interrupt_.why() != Interrupt::Why::none) error = AVERROR_EXIT;
  if (error >= 0) return;
  const std::string why = interrupt_.words(error);
  const bool is_alone =
      is_address_ && !begun_ &&
      (error == AVERROR(ECONNREFUSED) || error == AVERROR(EHOSTUNREACH) || error == AVERROR(ENETUNREACH));
  if (is_alone && why.empty())
    throw std::runtime_error("cannot write '" + path_ + "': nothing takes connections there (" + error_words(error) +
                             "); a server that receives the film has to run first");
  throw std::runtime_error("cannot write '" + path_ + "': " + (why.empty() ? error_words(error) : why));
}

void Muxer::finish() {
  if (begun_) {
    const HeldWriteSignals held;
    begun_ = false;
    interrupt_.begin();
    check(av_write_trailer(format_));
    if (is_address_ && format_->pb) {
      avio_flush(format_->pb);
      check(0);
    }
    close();
    output_.commit();
  } else {
    abandon();
  }
}

void Muxer::abandon() {
  close();
  output_.abandon();
}

// Does not restart the timeout, so that after a failure a target that took nothing in time gets no further time for the
// trailer.
void Muxer::close() {
  if (!format_) return;
  const HeldWriteSignals held;
  const bool has_own_connection = format_->oformat->flags & AVFMT_NOFILE;
  if (begun_ && has_own_connection) av_write_trailer(format_); // for RTSP, which closes its connection only there
  begun_ = false;
  if (is_address_ && format_->pb && !has_own_connection) avio_closep(&format_->pb);
  // The I/O context of OutputFile lives on: it still has to write its last bytes.
  if (!is_address_) format_->pb = nullptr;
  avformat_free_context(format_);
  format_ = nullptr;
}

} // namespace millrace::media
