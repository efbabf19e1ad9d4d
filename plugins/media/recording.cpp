// Takes each picture through the encoder into a file; see recording.h.
#include "plugins/media/recording.h"

extern "C" {
#include <libavutil/mathematics.h>
#include <libavutil/pixdesc.h>
}

#include <algorithm>
#include <new>
#include <stdexcept>
#include <string_view>
#include <utility>

#include "plugins/media/rates.h"
#include "plugins/media/ts_times.h"

namespace millrace::media {

namespace {

constexpr int64_t kGridToleranceDivisor = 50; // 1/50 of a period: a source's rounding is below that
constexpr int64_t kPauseNs = 60'000'000'000;  // longer than any lookahead: see begin_encoder_again()
constexpr uint64_t kUsualOver = 16;           // pictures over which the usual packet size is averaged
constexpr int64_t kRepeatsMax = 1000000; // repeats of one picture: nine hours at 30 a second; more is a clock's mistake

std::string size_in_words(uint32_t width, uint32_t height) {
  return std::to_string(width) + " × " + std::to_string(height);
}

Meaning meaning_of_picture(const ImageView& picture) {
  const mr_image& image = picture.value().as.image;
  Meaning meaning;
  take_over_meaning(image, meaning);
  return meaning;
}

} // namespace

Recording::Recording(const RecordingSettings& settings, const std::atomic<bool>& interrupted, Log& log, Say say)
    : settings_(settings),
      interrupted_(interrupted),
      log_(log),
      say_(std::move(say)),
      sound_(interrupted),
      packet_(av_packet_alloc()),
      held_(av_packet_alloc()),
      sound_packet_(av_packet_alloc()) {
  if (!packet_ || !held_ || !sound_packet_) throw std::bad_alloc();
}

Recording::~Recording() = default;

void Recording::open(const AVCodecParameters* expected) {
  if (!settings_.sound.empty()) sound_.open(settings_.sound, settings_.container, settings_.timeout_s, log_);
  if (expected) {
    MuxedStreams streams;
    streams.video = expected;
    streams.sound = sound_.stream();
    Muxer::try_header(muxer_options(), streams, settings_.path);
  }
  if (settings_.segment.is_set()) check_segment_pattern(settings_.path);
  open_file();
  if (!settings_.list.empty()) list_.begin(settings_.list, [this](const auto&... names) { log_kept(names...); });
}

std::string Recording::file_path() const {
  return settings_.segment.is_set() ? segment_path(settings_.path, segment_index_) : settings_.path;
}

Muxer::Options Recording::muxer_options() {
  Muxer::Options options;
  options.container = settings_.container;
  options.fragments = settings_.fragments;
  options.may_replace = settings_.may_replace;
  options.log_opaque = &log_;
  options.timeout_s = settings_.timeout_s;
  return options;
}

void Recording::open_file() {
  muxer_ = std::make_unique<Muxer>(muxer_options(), interrupted_);
  muxer_->open(file_path(), [this](const auto&... names) { log_kept(names...); });
}

void Recording::log_kept(const std::string& part_path, const std::string& kept_path) const {
  const bool is_ours = part_path == settings_.failed_part;
  say_(std::string(is_ours ? "the film that failed" : "an earlier run left an unfinished file, which") +
       " is kept as '" + kept_path + "'");
}

int64_t Recording::to_ns(int64_t units) const { return av_rescale_q(units, time_base_, kNanoseconds); }

void Recording::log_once(bool& said, const std::string& sentence) {
  if (!said) say_(sentence);
  said = true;
}

void Recording::add(const ImageView& picture, int64_t media_time_ns, int64_t duration_ns) {
  if (!failure_.empty()) throw std::runtime_error(failure_);
  if (frames_) check_alike(picture);
  try {
    put(picture, media_time_ns, duration_ns);
  } catch (const std::exception& failed) {
    failure_ = failed.what();
    throw;
  }
}

void Recording::put(const ImageView& picture, int64_t media_time_ns, int64_t duration_ns) {
  if (!frames_) {
    first_time_ns_ = media_time_ns;
    prepare(picture);
  }
  const int64_t time_ns = media_time_ns - first_time_ns_;
  if (!codec_ && (duration_ns > 0 || settings_.rate.num > 0)) begin(duration_ns);
  if (waiting_first_) { // this picture tells how long the first one lasts
    const Frame first = std::move(waiting_first_);
    if (!codec_) begin(time_ns);
    add_frame(*first, 0, time_ns);
  }
  if (!codec_) {
    waiting_first_.reset(av_frame_clone(frames_->copy(picture)));
    if (!waiting_first_) throw std::bad_alloc();
  } else {
    add_frame(even_ ? *frames_->copy(picture) : *frames_->lend(picture), time_ns,
              duration_ns > 0 ? duration_ns : time_ns - last_time_ns_);
  }
  frames_->release();
}

void Recording::prepare(const ImageView& picture) {
  format_ = encoded_format(settings_.choice, settings_.wish, picture.pixel());
  if (format_ == AV_PIX_FMT_NONE)
    throw std::invalid_argument("the encoder " + std::string(settings_.choice.encoder->name) +
                                " does not take pictures of " + std::string(name_of(picture.pixel())));
  meaning_ = meaning_of_picture(picture);
  width_ = static_cast<int>(picture.width());
  height_ = static_cast<int>(picture.height());
  pixel_ = picture.pixel();
  // If the port takes no transparency, the plan takes it out and says so. This is for encoders that take any picture.
  const AVPixFmtDescriptor* described = av_pix_fmt_desc_get(format_);
  if ((pixel_ == Pixel::rgba8 || pixel_ == Pixel::bgra8) && !(described->flags & AV_PIX_FMT_FLAG_ALPHA) &&
      settings_.wish.pixels.empty())
    say_("'" + settings_.path + "' has no transparency: the encoder " + settings_.choice.encoder->name + " writes " +
         described->name + ", and that of its pictures is lost");
  encoded_meaning_ = encoded_meaning(*meaning_, pixel_, format_, height_, is_jpeg(settings_.choice));
  frames_ = std::make_unique<FrameMaker>(format_, copies_at_once(settings_.choice), encoded_meaning_);
}

void Recording::check_alike(const ImageView& picture) {
  if (static_cast<int>(picture.width()) != width_ || static_cast<int>(picture.height()) != height_ ||
      picture.pixel() != pixel_)
    throw std::runtime_error("cannot write '" + settings_.path + "': a picture is " +
                             size_in_words(picture.width(), picture.height()) + " " +
                             std::string(name_of(picture.pixel())) + ", the film was begun at " +
                             size_in_words(static_cast<uint32_t>(width_), static_cast<uint32_t>(height_)) + " " +
                             std::string(name_of(pixel_)));
  if (!(meaning_of_picture(picture) == *meaning_))
    log_once(said_meaning_, "pictures come with other colour tags than the first; the film keeps those of the first");
}

// Opens the encoder and writes the file's header. Called once it is known how long a picture lasts.
void Recording::begin(int64_t period_ns) {
  rate_ = settings_.rate.num > 0 ? settings_.rate : rate_of_period(period_ns);
  const int finest = time_base_max(settings_.choice);
  const bool is_even = settings_.rate.num > 0 || settings_.container.times == Times::none;
  const bool is_grid = settings_.container.times == Times::grid;
  const AVRational tick = settings_.container.tick;
  // MP4 keeps durations in 31 bits, and only fragments have times of their own: otherwise the times are coarser, so
  // that a pause of nine hours is held.
  const bool is_plain =
      settings_.container.is_mov && (!settings_.fragments || settings_.choice.encoder->id == AV_CODEC_ID_VP9);
  time_base_ = is_even || is_grid ? av_inv_q(rate_)
               : tick.num > 0     ? tick
                                  : time_base_for(rate_, is_plain ? kTimeBasePlain : kTimeBaseFine);
  if (is_even)
    even_.emplace(rate_);
  else
    free_.emplace(time_base_);
  // A codec with coarse times gets the nearest of those, and the file gets the exact times.
  AVRational codec_time_base = time_base_;
  if (!is_even && !is_grid && finest < kTimeBaseFine) {
    codec_time_base = finest == 0 ? av_inv_q(rate_) : time_base_for(rate_, finest);
    codec_times_.emplace(codec_time_base);
  }
  EncodedPictures pictures;
  pictures.format = format_;
  pictures.width = width_;
  pictures.height = height_;
  pictures.rate = rate_;
  pictures.time_base = codec_time_base;
  pictures.meaning = encoded_meaning_;
  // AVI stores no times of pictures, so they have to be in the order in which they are shown.
  const bool may_reorder = settings_.container.times == Times::any;
  const bool global_header = settings_.container.format->flags & AVFMT_GLOBALHEADER;
  open_codec_ = [this, pictures, global_header, may_reorder] {
    return open_encoder(settings_.choice, settings_.wish, pictures, global_header, may_reorder, &log_);
  };
  codec_ = open_codec_();
  segment_ends_.emplace(settings_.container, time_base_, rate_, settings_.container.is_mov && !is_plain);
  if (sound_.is_open()) sound_.begin_at(first_time_ns_);
  begin_file();
}

void Recording::begin_file() {
  const Parameters parameters = parameters_of(*codec_);
  MuxedStreams streams;
  streams.video = parameters.get();
  streams.time_base = time_base_;
  streams.rate = rate_;
  streams.sound = sound_.stream();
  muxer_->begin(streams);
  segment_packets_ = segment_reached_ = 0;
}

void Recording::add_frame(AVFrame& frame, int64_t time_ns, int64_t duration_ns) {
  if (!even_ && time_ns - last_time_ns_ > kPauseNs) begin_encoder_again();
  last_time_ns_ = time_ns;
  last_duration_ns_ = duration_ns;
  if (even_) return add_evenly(frame, time_ns, duration_ns);
  const int64_t period_ns = av_rescale_q(1, av_inv_q(rate_), kNanoseconds);
  const FreeTimes::Time time = free_->put(time_ns, std::max<int64_t>(period_ns / kGridToleranceDivisor, 1000));
  if (settings_.container.times == Times::grid)
    counts_.off_grid += time.moved;
  else
    counts_.nudged += time.nudged;
  encode(frame, codec_times_ ? codec_times_->put(time_ns, 0).at : time.at, time.at,
         std::max<int64_t>(1, in_units(duration_ns, time_base_)));
}

// After a long pause. An encoder that reorders pictures gives those after the pause decoding times from before it, and
// no container holds such a distance; others refuse a pause of over a day. Also, players begin at the picture after it.
void Recording::begin_encoder_again() {
  if (!(codec_->codec->capabilities & AV_CODEC_CAP_DELAY)) return;
  drain_encoder();
  codec_ = open_codec_();
}

void Recording::drain_encoder() {
  if (const int result = avcodec_send_frame(codec_.get(), nullptr); result < 0 && result != AVERROR_EOF)
    throw std::runtime_error("the encoder " + std::string(codec_->codec->name) + " failed: " + error_words(result));
  receive();
}

void Recording::add_evenly(AVFrame& frame, int64_t time_ns, int64_t duration_ns) {
  const int64_t next = even_->count();
  const EvenRate::Place place = even_->put(time_ns, duration_ns);
  if (place.repeats > kRepeatsMax)
    throw std::runtime_error("cannot write '" + settings_.path + "': a picture would be repeated " +
                             std::to_string(place.repeats) + " times, as the next comes so late");
  repeat_last(next, place.repeats);
  last_.reset(av_frame_clone(&frame));
  if (!last_) throw std::bad_alloc();
  is_last_shown_ = place.is_shown;
  if (!place.is_shown)
    ++counts_.dropped;
  else
    encode(frame, next + place.repeats, next + place.repeats, 1);
}

// If several pictures come too fast, the latest is shown until the next one, and then no longer counts as dropped.
void Recording::repeat_last(int64_t first, int64_t count) {
  if (count == 0) return;
  for (int64_t i = 0; i < count; ++i) encode(*last_, first + i, first + i, 1);
  counts_.repeated += is_last_shown_ ? count : count - 1;
  counts_.dropped -= !is_last_shown_;
  is_last_shown_ = true;
}

void Recording::encode(AVFrame& frame, int64_t codec_pts, int64_t pts, int64_t duration) {
  frame.pts = codec_pts;
#if LIBAVUTIL_VERSION_MAJOR >= 58
  frame.duration = codec_times_ ? 0 : duration;
#endif
  frame.color_range = codec_->color_range;
  frame.colorspace = codec_->colorspace;
  frame.color_primaries = codec_->color_primaries;
  frame.color_trc = codec_->color_trc;
  frame.sample_aspect_ratio = codec_->sample_aspect_ratio;
  const SegmentEnds::End end_before = segment_ends_->before_gap(pts - std::exchange(last_pts_, pts));
  const bool begins = begins_segment(pts, end_before);
  frame.quality = codec_->global_quality; // read by encoders with a constant scale
  frame.pict_type = begins ? AV_PICTURE_TYPE_I : AV_PICTURE_TYPE_NONE;
  inside_.push_back({codec_pts, pts, duration, begins, end_before});
  end_ = std::max(end_, pts + duration);
  if (const int result = avcodec_send_frame(codec_.get(), &frame); result < 0)
    throw std::runtime_error("the encoder " + std::string(codec_->codec->name) + " failed: " + error_words(result));
  receive();
}

// True for the first picture of a segment. One that comes late goes into the old segment, and the next one is asked
// again; see segment_ends.h.
bool Recording::begins_segment(int64_t pts, SegmentEnds::End end_before) {
  if (!is_due(pts) && !is_nearly_full()) return false;
  if (end_before == SegmentEnds::End::late && ++late_ <= kLateMax) return false;
  late_ = 0;
  if (settings_.segment.time_ns > 0) segments_due_ = static_cast<uint64_t>(to_ns(pts) / settings_.segment.time_ns);
  asked_key_ = settings_.segment.bytes > 0;
  return true;
}

// True after the segment has reached the requested size. Pictures inside the encoder still go into the segment; their
// size is estimated from the packets that came out.
bool Recording::is_nearly_full() const {
  if (settings_.segment.bytes == 0 || asked_key_ || segment_bytes_ == 0) return false;
  return segment_bytes_ + inside_.size() * usual_bytes_ >= settings_.segment.bytes;
}

// True after the segment has reached the requested time.
bool Recording::is_due(int64_t pts) const {
  return settings_.segment.time_ns > 0 && static_cast<uint64_t>(to_ns(pts) / settings_.segment.time_ns) > segments_due_;
}

void Recording::receive() {
  for (;;) {
    const int result = avcodec_receive_packet(codec_.get(), packet_.get());
    if (result == AVERROR(EAGAIN) || result == AVERROR_EOF) return;
    if (result < 0)
      throw std::runtime_error("the encoder " + std::string(codec_->codec->name) + " failed: " + error_words(result));
    take(*packet_);
  }
}

void Recording::take(AVPacket& packet) {
  if (packet.pts == AV_NOPTS_VALUE) packet.pts = inside_.empty() ? end_ : inside_.front().codec_pts;
  if (packet.dts == AV_NOPTS_VALUE) packet.dts = packet.pts;
  packet.duration = 1;
  SegmentEnds::End end_before = SegmentEnds::End::told;
  bool may_begin = true;
  // Encoders pass on a picture's time but not its duration, and may return pictures in another order.
  for (auto at = inside_.begin(); at != inside_.end(); ++at) {
    if (at->codec_pts != packet.pts) continue;
    packet.duration = at->duration;
    if (codec_times_) packet.pts = packet.dts = at->pts; // such an encoder reorders nothing
    wants_segment_ = wants_segment_ || at->begins_segment;
    end_before = at->end_before;
    may_begin = at->begins_segment || end_before != SegmentEnds::End::late;
    inside_.erase(at);
    break;
  }
  const bool is_full = settings_.segment.bytes > 0 && segment_bytes_ >= settings_.segment.bytes;
  const bool begins_segment = may_begin && (wants_segment_ || is_full) && (packet.flags & AV_PKT_FLAG_KEY);
  // One packet is held back, because the last packet of a file needs its own duration.
  if (has_held_) write_held(begins_segment ? std::optional(packet.pts) : std::nullopt);
  if (begins_segment) next_segment(packet.pts, end_before);
  segment_bytes_ += static_cast<uint64_t>(packet.size);
  const auto size = static_cast<uint64_t>(packet.size);
  if (!(packet.flags & AV_PKT_FLAG_KEY))
    usual_bytes_ = has_usual_ ? (usual_bytes_ * (kUsualOver - 1) + size) / kUsualOver : size;
  else if (!has_usual_)
    usual_bytes_ = size;
  has_usual_ = has_usual_ || !(packet.flags & AV_PKT_FLAG_KEY);
  av_packet_move_ref(held_.get(), &packet);
  has_held_ = true;
}

// `file_end`: the end of the file, if this is its last packet.
void Recording::write_held(std::optional<int64_t> file_end) {
  AVPacket& packet = *held_;
  has_held_ = false;
  write_sound_until(to_ns(packet.dts));
  packet.pts -= segment_begin_;
  packet.dts -= segment_begin_;
  // An encoder that reorders gives its first pictures after a pause decoding times from before it. A segment needs only
  // as much time before its first picture as the order takes.
  const int64_t reordered = codec_->has_b_frames;
  if (segment_begin_ > 0 && segment_packets_ < reordered)
    packet.dts = std::max(packet.dts, (segment_packets_ - reordered) * av_rescale_q(1, av_inv_q(rate_), time_base_));
  if (segment_packets_++ == 0) segment_first_dts_ = packet.dts;
  if (std::string_view(settings_.container.format->name) == "mpegts" && !is_address(settings_.path)) {
    const int64_t before = std::exchange(segment_reached_, std::max(segment_reached_, packet.pts));
    if (const std::string words = turn_words(muxer_->path(), to_ns(before), to_ns(segment_reached_)); !words.empty())
      log_once(said_turn_, words);
  }
  // MP4 stores decoding times and their durations. If pictures are reordered, the last packet, not the last picture,
  // has to fill up the film's length.
  if (file_end && settings_.container.is_mov)
    packet.duration = std::max<int64_t>(1, *file_end - segment_begin_ - (packet.dts - segment_first_dts_));
  muxer_->write_video(packet,
                      file_end ? std::optional(segment_ends_->end_ns(segment_begin_, *file_end)) : std::nullopt);
  av_packet_unref(&packet);
}

void Recording::write_sound_until(int64_t time_ns) {
  if (!sound_.is_open()) return;
  while (sound_.next(time_ns, to_ns(segment_begin_), *sound_packet_)) {
    segment_bytes_ += static_cast<uint64_t>(sound_packet_->size);
    muxer_->write_sound(*sound_packet_);
    av_packet_unref(sound_packet_.get());
  }
}

void Recording::next_segment(int64_t pts, SegmentEnds::End end_before) {
  write_sound_until(to_ns(pts));
  const std::string finished = muxer_->path();
  if (segment_index_ == 0) muxer_->hold_lock();
  muxer_->finish();
  list_segment(finished, pts);
  if (end_before != SegmentEnds::End::told && settings_.list.empty())
    log_once(said_lost_, "the pause after '" + finished + "' is in no segment: " + settings_.container.name +
                             " cannot tell how long a last picture lasts; `list` names a file that tells it");
  if (segment_index_ == 0) first_muxer_ = std::move(muxer_);
  ++segment_index_;
  segment_begin_ = pts;
  segment_bytes_ = 0;
  asked_key_ = wants_segment_ = false;
  open_file();
  begin_file();
}

// The length is in the list, too, since not every container tells it.
void Recording::list_segment(const std::string& path, int64_t end) {
  constexpr AVRational kMicroseconds{1, 1'000'000};
  list_.add(path,
            av_rescale_q(end, time_base_, kMicroseconds) - av_rescale_q(segment_begin_, time_base_, kMicroseconds));
}

void Recording::finish() {
  if (!failure_.empty() || !muxer_) return;
  try {
    end();
  } catch (const std::exception& failed) {
    failure_ = failed.what();
    throw;
  }
}

void Recording::end() {
  if (waiting_first_) { // the only picture
    const int64_t period_ns = av_rescale_q(1, av_inv_q(kRateFallback), kNanoseconds);
    const Frame only = std::move(waiting_first_);
    begin(period_ns);
    add_frame(*only, 0, period_ns);
  }
  if (codec_) {
    if (even_) {
      const int64_t next = even_->count();
      repeat_last(next, std::min(even_->repeats_until(last_time_ns_ + last_duration_ns_), kRepeatsMax));
    }
    drain_encoder();
    if (has_held_) write_held(end_);
    write_sound_until(to_ns(end_));
  }
  const bool has_file = muxer_->has_begun();
  muxer_->finish();
  if (has_file) list_segment(muxer_->path(), end_);
  list_.end();
  muxer_.reset();
  first_muxer_.reset();
}

Recording::Counts Recording::counts() const {
  Counts counts = counts_;
  if (frames_) counts.converted = frames_->converted();
  return counts;
}

} // namespace millrace::media
