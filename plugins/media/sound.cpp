// Reading one stream of a file; see sound.h.
#include "plugins/media/sound.h"

extern "C" {
#include <libavutil/mathematics.h>
}

#include <new>
#include <stdexcept>

namespace millrace::media {

namespace {

constexpr AVRational kNanoseconds = {1, 1000000000};

int is_interrupted(void* flag) { return static_cast<const std::atomic<bool>*>(flag)->load(std::memory_order_relaxed); }

int64_t start_of(const AVStream& stream, const AVFormatContext& format) {
  if (stream.start_time != AV_NOPTS_VALUE) return av_rescale_q(stream.start_time, stream.time_base, kNanoseconds);
  return format.start_time != AV_NOPTS_VALUE ? av_rescale_q(format.start_time, AV_TIME_BASE_Q, kNanoseconds) : 0;
}

} // namespace

void Sound::open(const std::string& path, const Container& container, void* log_opaque) {
  close();
  path_ = path;
  const auto require = [&](int result) {
    if (result < 0) throw std::runtime_error("cannot read the sound of '" + path_ + "': " + error_words(result));
    return result;
  };
  format_ = avformat_alloc_context();
  packet_.reset(av_packet_alloc());
  if (!format_ || !packet_) throw std::bad_alloc();
  format_->opaque = log_opaque;
  format_->interrupt_callback = {&is_interrupted, const_cast<std::atomic<bool>*>(&interrupted_)};
  require(avformat_open_input(&format_, path.c_str(), nullptr, nullptr));
  require(avformat_find_stream_info(format_, nullptr));
  const int best = av_find_best_stream(format_, AVMEDIA_TYPE_AUDIO, -1, -1, nullptr, 0);
  if (best < 0) throw std::runtime_error("cannot read the sound of '" + path + "': there is none in it");
  stream_ = format_->streams[best];
  const AVCodecID codec = stream_->codecpar->codec_id;
  if (!container.has_sound || avformat_query_codec(container.format, codec, FF_COMPLIANCE_NORMAL) == 0)
    throw std::runtime_error("container '" + container.name + "' cannot hold the sound of '" + path + "' (" +
                             avcodec_get_name(codec) + ") as it is");
  const int pictures = av_find_best_stream(format_, AVMEDIA_TYPE_VIDEO, -1, -1, nullptr, 0);
  const bool has_pictures = pictures >= 0 && !(format_->streams[pictures]->disposition & AV_DISPOSITION_ATTACHED_PIC);
  zero_ns_ = start_of(*format_->streams[has_pictures ? pictures : best], *format_);
  for (unsigned i = 0; i < format_->nb_streams; ++i)
    if (format_->streams[i] != stream_) format_->streams[i]->discard = AVDISCARD_ALL;
}

void Sound::close() {
  if (format_) avformat_close_input(&format_);
  stream_ = nullptr;
  has_packet_ = ended_ = false;
}

void Sound::begin_at(int64_t media_time_ns) {
  begin_ns_ = media_time_ns;
  has_packet_ = ended_ = false;
  const int64_t at = av_rescale_q(zero_ns_ + begin_ns_, kNanoseconds, stream_->time_base);
  // Where it cannot be sought, what comes too early is read and left out all the same.
  if (media_time_ns > 0) avformat_seek_file(format_, stream_->index, INT64_MIN, at, at, 0);
}

bool Sound::read() {
  while (!has_packet_ && !ended_) {
    const int result = av_read_frame(format_, packet_.get());
    if (result < 0) {
      ended_ = true;
      if (result != AVERROR_EOF)
        throw std::runtime_error("cannot read the sound of '" + path_ + "': " + error_words(result));
      break;
    }
    has_packet_ = packet_->stream_index == stream_->index && packet_->pts != AV_NOPTS_VALUE;
    if (!has_packet_) av_packet_unref(packet_.get());
  }
  return has_packet_;
}

bool Sound::next(int64_t end_ns, int64_t less_ns, AVPacket& packet) {
  while (read()) {
    const int64_t zero_ns = zero_ns_ + begin_ns_;
    const int64_t time_ns = av_rescale_q(packet_->pts, stream_->time_base, kNanoseconds) - zero_ns;
    if (time_ns >= end_ns) return false;
    has_packet_ = false;
    if (time_ns < 0) {
      av_packet_unref(packet_.get());
      continue;
    }
    const int64_t less = av_rescale_q(zero_ns + less_ns, kNanoseconds, stream_->time_base);
    av_packet_move_ref(&packet, packet_.get());
    packet.pts -= less;
    packet.dts = packet.dts == AV_NOPTS_VALUE ? packet.pts : packet.dts - less;
    return true;
  }
  return false;
}

} // namespace millrace::media
