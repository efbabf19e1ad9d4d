// Reads the sound stream of a file; see sound.h.
#include "plugins/media/sound.h"

extern "C" {
#include <libavutil/mathematics.h>
}

#include <new>
#include <stdexcept>

namespace millrace::media {

namespace {

int64_t start_of(const AVStream& stream, const AVFormatContext& format) {
  if (stream.start_time != AV_NOPTS_VALUE) return av_rescale_q(stream.start_time, stream.time_base, kNanoseconds);
  return format.start_time != AV_NOPTS_VALUE ? av_rescale_q(format.start_time, AV_TIME_BASE_Q, kNanoseconds) : 0;
}

} // namespace

void Sound::open(const std::string& path, const Container& container, double timeout_s, Log& log) {
  path_ = path;
  has_packet_ = ended_ = false;
  input_.reset();
  packet_.reset(av_packet_alloc());
  if (!packet_) throw std::bad_alloc();
  try {
    input_.emplace(InputSettings{path, "", -1, timeout_s, AVMEDIA_TYPE_AUDIO}, interrupt_, log);
  } catch (const std::runtime_error& error) {
    throw cannot_read(error.what());
  }
  const AVFormatContext& format = input_->format();
  const AVCodecID codec = stream()->codecpar->codec_id;
  if (!container.has_sound || avformat_query_codec(container.format, codec, FF_COMPLIANCE_NORMAL) == 0)
    throw std::runtime_error("container '" + container.name + "' cannot hold the sound of '" + path + "' (" +
                             avcodec_get_name(codec) + ") as it is");
  const int pictures =
      av_find_best_stream(const_cast<AVFormatContext*>(&format), AVMEDIA_TYPE_VIDEO, -1, -1, nullptr, 0);
  const bool has_pictures = pictures >= 0 && !(format.streams[pictures]->disposition & AV_DISPOSITION_ATTACHED_PIC);
  zero_ns_ = start_of(has_pictures ? *format.streams[pictures] : *stream(), format);
}

std::runtime_error Sound::cannot_read(const std::string& why) const {
  return std::runtime_error("cannot read the sound of '" + path_ + "': " + why);
}

void Sound::begin_at(int64_t media_time_ns) {
  begin_ns_ = media_time_ns;
  has_packet_ = ended_ = false;
  // If seeking fails, the input is read from its beginning and next() drops packets that are too early.
  if (media_time_ns > 0) input_->seek(zero_ns_ + begin_ns_);
}

bool Sound::read() {
  while (!has_packet_ && !ended_) {
    const int result = input_->read(packet_.get());
    if (result < 0) {
      ended_ = true;
      if (result == AVERROR_EOF) break;
      const std::string why = interrupt_.words(result);
      throw cannot_read(why.empty() ? error_words(result) : why);
    }
    has_packet_ = packet_->pts != AV_NOPTS_VALUE;
    if (!has_packet_) av_packet_unref(packet_.get());
  }
  return has_packet_;
}

bool Sound::next(int64_t end_ns, int64_t less_ns, AVPacket& packet) {
  while (read()) {
    const int64_t zero_ns = zero_ns_ + begin_ns_;
    const int64_t time_ns = av_rescale_q(packet_->pts, stream()->time_base, kNanoseconds) - zero_ns;
    if (time_ns >= end_ns) return false;
    has_packet_ = false;
    if (time_ns < 0) {
      av_packet_unref(packet_.get());
      continue;
    }
    const int64_t less = av_rescale_q(zero_ns + less_ns, kNanoseconds, stream()->time_base);
    av_packet_move_ref(&packet, packet_.get());
    packet.pts -= less;
    packet.dts = packet.dts == AV_NOPTS_VALUE ? packet.pts : packet.dts - less;
    return true;
  }
  return false;
}

} // namespace millrace::media
