// Decodes and measures the first packets of a stream; see first_packets.h.
#include "plugins/media/first_packets.h"

extern "C" {
#include <libavutil/mathematics.h>
}

#include <algorithm>
#include <cmath>
#include <new>
#include <utility>

namespace millrace::media {

namespace {

constexpr size_t kTimesMax = 11;               // ten steps: 0.4 s at 25 pictures a second
constexpr size_t kBytesMax = 5'000'000;        // as much as FFmpeg's own search reads
constexpr int kRatePartMax = 1000;             // bounds a rate that is measured between unequal steps
constexpr double kWholeRatesFrom = 2;          // cameras of two and more pictures a second mean whole numbers
constexpr int64_t kTimeMax = int64_t{1} << 50; // a later one is damaged, and its differences could overflow
constexpr int64_t kFirstStepsMax = 3;          // a first picture may be as many steps before the second

} // namespace

FirstPackets::FirstPackets(AVStream& stream, Log& log) : stream_(stream), frame_(av_frame_alloc()) {
  if (!frame_) throw std::bad_alloc();
  const AVCodec* decoder = avcodec_find_decoder(stream.codecpar->codec_id);
  codec_.reset(decoder ? avcodec_alloc_context3(decoder) : nullptr);
  if (!codec_) return;
  codec_->opaque = &log;
  codec_->thread_count = 1;
  const bool opens = avcodec_parameters_to_context(codec_.get(), stream.codecpar) >= 0 &&
                     avcodec_open2(codec_.get(), decoder, nullptr) >= 0;
  if (!opens) codec_.reset();
}

void FirstPackets::take(Packet packet) {
  const bool is_first = !std::exchange(has_taken_, true);
  if (!knows_pictures_ && codec_) {
    avcodec_send_packet(codec_.get(), packet.get());
    const bool is_decoded = avcodec_receive_frame(codec_.get(), frame_.get()) >= 0;
    // A decoder that gives its pictures late, or waits for a key picture, knows their format before.
    knows_pictures_ = is_decoded || (codec_->width > 0 && codec_->height > 0 && codec_->pix_fmt != AV_PIX_FMT_NONE);
    if (!knows_pictures_) return;
    avcodec_parameters_from_context(stream_.codecpar, codec_.get());
    coded_rate_ = codec_->framerate;
    codec_.reset();
    begins_with_first_ = is_first;
  }
  bytes_ += static_cast<size_t>(std::max(packet->size, 0));
  if (packet->pts > -kTimeMax && packet->pts < kTimeMax) times_.push_back(packet->pts); // none is INT64_MIN
  kept_.push_back(std::move(packet));
}

bool FirstPackets::are_enough() const { return times_.size() >= kTimesMax || bytes_ >= kBytesMax; }

void FirstPackets::end() {
  std::sort(times_.begin(), times_.end());
  if (kept_.empty()) return;
  AVPacket& first = *kept_.front();
  // FFmpeg's parsers lose the time of the first packet over RTP. RTP's times begin at 0 with it, unless the server
  // joined it to an older clock.
  if (first.pts == AV_NOPTS_VALUE && first.dts == AV_NOPTS_VALUE && begins_with_first_) {
    const int64_t step = times_.size() >= 2 ? times_[1] - times_[0] : 0;
    const bool is_near_zero = times_.empty() || (times_[0] > 0 && (step == 0 || times_[0] <= kFirstStepsMax * step));
    if (is_near_zero || step > 0) {
      first.pts = is_near_zero ? 0 : times_[0] - step;
      times_.insert(times_.begin(), first.pts);
    }
  }
  first_time_ = first.pts;
}

AVRational FirstPackets::rate() const {
  const bool is_coded = coded_rate_.num > 0 && coded_rate_.den > 0;
  const AVRational coded = is_coded ? coded_rate_ : AVRational{0, 1};
  if (times_.size() < 2 || times_.back() <= times_.front()) return coded;
  const auto steps = static_cast<int64_t>(times_.size()) - 1;
  const int64_t whole = times_.back() - times_.front(), unit = whole / steps;
  bool is_even = whole % steps == 0;
  for (size_t t = 1; t < times_.size(); ++t) is_even = is_even && times_[t] - times_[t - 1] == unit;
  const AVRational base = stream_.time_base;
  if (is_even) {
    AVRational rate;
    av_reduce(&rate.num, &rate.den, base.den, base.num * unit, INT32_MAX);
    return rate;
  }
  const double mean = static_cast<double>(steps) / (static_cast<double>(whole) * av_q2d(base));
  return mean >= kWholeRatesFrom ? AVRational{static_cast<int>(std::lround(mean)), 1} : av_d2q(mean, kRatePartMax);
}

int64_t FirstPackets::step_ns() const {
  if (times_.size() < 2) return 0;
  const int64_t whole_ns = av_rescale_q(times_.back() - times_.front(), stream_.time_base, kNanoseconds);
  return whole_ns / (static_cast<int64_t>(times_.size()) - 1);
}

Packet FirstPackets::next() {
  Packet packet = std::move(kept_.front());
  kept_.pop_front();
  return packet;
}

} // namespace millrace::media
