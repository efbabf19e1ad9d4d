// video.file: gives the pictures of a video file, a pipe or an address, one a tick.
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

extern "C" {
#include <libavutil/dict.h>
#include <libavutil/pixdesc.h>
}

#include "millrace/handler.h"
#include "plugins/media/animated_webp.h"
#include "plugins/media/decoder.h"
#include "plugins/media/decoder_list.h"
#include "plugins/media/frame_copy.h"
#include "plugins/media/frame_scale.h"
#include "plugins/media/input.h"
#include "plugins/media/list_pace.h"
#include "plugins/media/media_times.h"
#include "plugins/media/mp4_boxes.h"
#include "plugins/media/segment_folder.h"
#include "plugins/media/segment_lists.h"
#include "plugins/media/shown_size.h"
#include "plugins/media/stated_end.h"
#include "plugins/media/ts_times.h"

namespace millrace::media {
namespace {

constexpr const char* kVideoFileManual = &R"(
Plays the pictures of a video in their order, one a tick, and ends with it.

`path` is a file, a folder of segments (played one after another, in natural order, each from where
the one before it ends by its container or by a list beside it), `-` for the standard input, a FIFO,
or an address that FFmpeg's libraries know: http, https, rtsp, hls, rtmp, srt, udp. A pipe whose
content does not show its format needs `format`, by FFmpeg's name. RTSP comes over TCP, or with
`transport=udp` in packets of UDP, some of which may be lost.

Pictures come in the file's own pixel format, with its matrix, range, primaries, transfer and the
shape of its pixels. The plan adds a step if a reader needs another format, or if the file asks for
a rotation. Most decoders write straight into the plan's memory. A pixel format that millrace does
not have becomes the nearest: i420 for 8-bit YCbCr, p010 for deeper, rgb8 or rgba8 for RGB. A file
that does not state its matrix is taken as bt709 from 720 rows on, else as bt601. Interlaced
pictures are given as they are. Sound and subtitles are not read; the report names them.

Times are the container's, with the first picture at 0: a variable rate stays one, gaps stay gaps,
of any length that the file confirms; in a transport stream its packets do. A picture of another
size than the first is refused, or scaled as `sizes` says; another shape of the pixels is said and
carried by each picture. Times that do not rise are mended and counted. `start` and `end` choose a
part, exact to the picture, in seconds of the file (not of a folder). `speed` 2 shows it twice as
fast. With `loop` it begins again at its end and the stream has no end.

Damage is skipped, counted and reported once with its place; `on_damage=fail` makes it an error. A
live address cannot be slowed. An address that is silent for `timeout` is lost; a live one gets 30 s
before its second picture, and then three times the longest of its last pauses, so that slow cameras
work. A lost connection is opened again, with growing pauses, for `reconnect` at most. An input that
cannot be opened is refused before anything runs.

An HLS list ends where it says so, and each segment that does not come is told. A live list is given
at its own times, and waits: only pictures that are late by more than `buffer` are dropped.

The report counts pictures_copied (the decoder brought memory of its own), pictures_converted,
pictures_lost, pictures_damaged (shown, with what could be read), packets_damaged, times_mended,
segments_missing, pictures_late and reconnects.

    video.file path=media/vtest.avi ! image.blur sigma=2 ! null.sink
)"[1];

constexpr AVRational kRateFallback{25, 1};  // for a file without a rate: the most common one of such cameras
constexpr size_t kSeeksMax = 3;             // each seek goes further before `start`
constexpr int kDamageInARowMax = 256;       // after this many failed reads in a row nothing more will come
constexpr ptrdiff_t kOffsetUnit = 64;       // readers expect rows to begin at multiples of it
constexpr size_t kMissingToldMax = 8;       // segments of a list; a server that is half empty has thousands
constexpr size_t kMissingKnownMax = 10'000; // a live list whose segments are missing may go on for years
constexpr int64_t kPauseNs = int64_t{30} * 60 * 1'000'000'000; // half of what MediaTimes takes for a jump
constexpr const char* kAnimatedWebp =
    "it is an animated WebP, and this FFmpeg reads only WebP of one picture; an animated GIF or PNG, or a WebM, is "
    "read";
constexpr const char* kScaling = "; `sizes: fit` or `sizes: stretch` would scale it";
constexpr int kFastFrom = 10; // pictures a second, from which on a live stream is decoded on several threads at a time
constexpr std::chrono::milliseconds kPauseFirst{250}, kPauseMost{5000};

std::string in_words(uint32_t width, uint32_t height) { return std::to_string(width) + " × " + std::to_string(height); }

bool is_fast(AVRational rate) { return rate.num > 0 && av_cmp_q(rate, {kFastFrom, 1}) >= 0; }

int64_t duration_of(const AVFrame& frame) {
#if LIBAVUTIL_VERSION_INT >= AV_VERSION_INT(58, 2, 100)
  return frame.duration;
#else
  return frame.pkt_duration;
#endif
}

bool is_interlaced(const AVFrame& frame) {
#if LIBAVUTIL_VERSION_INT >= AV_VERSION_INT(58, 7, 100)
  return frame.flags & AV_FRAME_FLAG_INTERLACED;
#else
  return frame.interlaced_frame != 0;
#endif
}

class VideoFile final : public Handler, private BlockLender {
 public:
  VideoFile() { cost_hint_us(1500); } // 768 × 576 of MPEG-4 on one core

  ~VideoFile() override { close(); }

  static void offers(Offers& offers) { offer_decoders(offers); }

  void probe(Facts& facts) override {
    begin();
    const bool is_live = input_->is_live() && !keeps_buffer();
    if (has_rate_ || !is_live) set_rate(facts);
    if (is_live) facts.live();
    if (input_->kind() != InputKind::file || input_->is_live()) facts.waits();
    announced_ = input_->picture_count(is_counted_);
    const bool whole = *start_ == 0 && *end_ == 0 && files_.size() == 1;
    if (!*loop_ && whole && announced_ > 0 && !input_->is_live()) facts.tick_count(announced_);
    log_what_was_found();
  }

  void configure(const Formats& formats) override {
    if (pixel_ == Pixel::none) return; // not probed: the size stays unknown
    Format& format = formats.image(video_, pixel_, width_, height_);
    format.color = meaning_.color;
    format.range = meaning_.range;
    format.primaries = meaning_.primaries;
    format.transfer = meaning_.transfer;
    format.aspect_num = meaning_.aspect_num;
    format.aspect_den = meaning_.aspect_den;
    format.turn = turn_;
    format.held = held_;
    format.bytes_max = block_bytes_;
  }

  void start() override {
    interrupt_.clear();
    if (!input_ || taken_ > 0) begin();
    decoder_->work_in(held_ > 0 ? this : nullptr, pixel_, width_, height_);
    times_ = MediaTimes(period_ns(), *speed_);
    times_.trusts_until(input_->pauses_until_ns());
    last_picture_ = std::chrono::steady_clock::now();
    is_told_ = {};
    told_missing_.clear();
    missing_ns_ = 0;
    missing_count_ = 0;
    paces_ = input_->list() && input_->is_live();
    pace_ = ListPace(in_ns(*buffer_));
    read_ns_ = 0;
  }

  void process(Tick& tick, Cpu&) {
    const LogScope scope(log_);
    // If the last call failed with nothing open, the next file of the folder is tried; without a next file the stream
    // ends.
    if (!decoder_ && file_ + 1 >= files_.size()) return tick.end();
    switch (decoder_ || reopen(file_ + 1) ? advance_in_time() : interrupted()) {
      case Step::end: return tick.end();
      case Step::interrupted: return tick.end();
      case Step::picture: return give_picture(tick);
    }
  }

  void stop() override { close(); }
  void reset() override {
    close();
    begin();
    start();
  }
  void interrupt() override { interrupt_.ask(); }

 private:
  enum class Step { picture, end, interrupted };

  // ---- opening

  void begin() {
    close();
    interrupt_.clear();
    if (*end_ > 0 && *end_ <= *start_) throw std::invalid_argument("end has to be after start");
    find_files();
    if (files_.size() > 1 && (*start_ > 0 || *end_ > 0))
      throw std::invalid_argument("start and end choose a part of one file, and '" + *path_ + "' is a folder");
    open(0);
    read_formats();
    find_shown_size();
    taken_ = taken_of_file_ = 0;
  }

  void close() {
    forget_packet();
    frame_.reset();   // it may lie in a block that the decoder gives back
    decoder_.reset(); // it gives back the blocks that it holds
    input_.reset();
  }

  void find_files() {
    std::error_code ignored;
    files_ = {*path_};
    lengths_.clear();
    if (!std::filesystem::is_directory(*path_, ignored)) return;
    try {
      files_ = segments_in(*path_);
      lengths_ = listed_lengths(*path_, files_);
    } catch (const std::runtime_error& error) {
      throw cannot_read(*path_, error.what());
    }
  }

  void open(size_t file) {
    file_ = file;
    at_end_ = false;
    lost_ = 0;
    damage_in_a_row_ = 0;
    reached_ns_ = longest_step_ns_ = untimed_ = 0;
    close();
    try {
      input_ = std::make_unique<Input>(settings_of(file), interrupt_, log_);
      const bool crops_exactly = input_->kind() != InputKind::file; // only a file can be looked at beforehand
      DecoderSettings settings{*threads_, *decoder_name_, crops_exactly};
      settings.is_prompt = input_->is_live() && !is_fast(input_->rate());
      decoder_ = std::make_unique<Decoder>(input_->stream(), settings, log_);
    } catch (const std::invalid_argument&) {
      throw; // the message names a wrong parameter
    } catch (const std::runtime_error& error) {
      throw cannot_read(files_[file], is_animated_webp(files_[file]) ? kAnimatedWebp : error.what());
    }
    opened_ = std::chrono::steady_clock::now();
    if (!frame_) frame_.reset(av_frame_alloc());
    if (!packet_) packet_.reset(av_packet_alloc());
    if (!frame_ || !packet_) throw std::bad_alloc();
    coded_shape_ = {0, 1};
    origin_ns_ = input_->start_ns();
    is_ts_ = std::string_view(input_->format().iformat->name) == "mpegts";
    forget_turns();
    is_before_start_ = false;
    skips_until_ns_ = file == 0 && *start_ > 0 ? in_ns(*start_) : 0;
    seeks_ = input_->has_index() ? 0 : 1;
    if (skips_until_ns_ > 0 && origin_ns_ != INT64_MIN) seek_before_start();
  }

  InputSettings settings_of(size_t file) const {
    InputSettings settings{files_[file],       *format_,        *stream_,    *timeout_,
                           AVMEDIA_TYPE_VIDEO, *reconnect_ > 0, *transport_, {}};
    settings.say = [this](const std::string& sentence) { log(MR_LOG_WARNING, sentence); };
    settings.retry_s = *reconnect_;
    settings.any_names = *any_names_;
    return settings;
  }

  // Seeks near `start`, each time further before it. The last attempt goes to the beginning, and all pictures before
  // `start` are decoded.
  void seek_before_start() {
    constexpr int64_t kBefore[] = {0, 3'000'000'000, 20'000'000'000};
    const int64_t before = seeks_ < std::size(kBefore) ? kBefore[seeks_] : INT64_MAX;
    ++seeks_;
    // Without an index FFmpeg seeks by decoding times, and the first picture's is earlier than its own time.
    constexpr int64_t kBeforeFirst = 10'000'000'000;
    const bool to_first = before >= skips_until_ns_;
    const int64_t place = to_first ? (input_->has_index() ? 0 : -kBeforeFirst) : skips_until_ns_ - before;
    if (input_->kind() == InputKind::pipe || seek(origin_ns_ + place)) return;
    seeks_ = kSeeksMax + 1;
    if (!std::exchange(is_told_.seek, true))
      log(MR_LOG_INFO, "'" + files_[file_] + "' cannot be sought: it is read from its beginning to the place");
  }

  void forget_packet() {
    if (std::exchange(has_packet_, false)) av_packet_unref(packet_.get());
  }

  void forget_turns() {
    packet_turns_ = picture_turns_ = {};
    packet_ns_ = kNoTime;
  }

  bool seek(int64_t ns) {
    forget_packet();
    forget_turns();
    try {
      return input_->seek(ns);
    } catch (const std::runtime_error& error) { // opening it anew failed
      close();
      throw cannot_read(files_[file_], error.what());
    }
  }

  static int64_t in_ns(double count) { return static_cast<int64_t>(std::llround(count * 1e9)); }

  // Reads the first file's formats for the plan. All other files have to have the same size.
  void read_formats() {
    const AVCodecParameters& said = *input_->stream().codecpar;
    const auto format = static_cast<AVPixelFormat>(said.format);
    pixel_ = nearest_pixel(format);
    if (pixel_ == Pixel::none) throw cannot_read(files_[file_], "its pictures are not in memory");
    said_width_ = said.width;
    said_height_ = said.height;
    width_ = static_cast<uint32_t>(said.width);
    height_ = static_cast<uint32_t>(said.height);
    meaning_ = meaning_of_file();
    shape_ = meaning_;
    turn_ = input_->turn(has_odd_angle_);
    const bool lends = pixel_of(format) == pixel_ && (decoder_->codec().codec->capabilities & AV_CODEC_CAP_DR1);
    held_ = lends ? decoder_->held_max() : 0;
    block_bytes_ = lends ? decoder_->block_bytes(pixel_, width_, height_) : 0;
    has_rate_ = input_->rate().num > 0;
    rate_ = has_rate_ ? input_->rate() : kRateFallback;
  }

  // The size of the pictures, if it is not what the stream says.
  void find_shown_size() {
    if (input_->kind() != InputKind::file || input_->read(packet_.get()) != 0) return;
    has_packet_ = true; // feed() sends it to the decoder
    if (!may_crop_left(input_->stream(), *packet_)) return;
    try {
      const ShownSize shown = shown_size(settings_of(0), *decoder_name_, interrupt_, log_);
      if (shown.width <= said_width_ || shown.height != said_height_) return;
      width_ = static_cast<uint32_t>(shown.width);
      held_ = 0; // the decoder's pictures are wider than its stream: they are copied
      block_bytes_ = 0;
    } catch (const std::runtime_error&) { // the reading itself will say it, with its place
    }
  }

  Meaning meaning_of_file() const {
    const AVCodecParameters& said = *input_->stream().codecpar;
    const AVRational aspect = av_guess_sample_aspect_ratio(const_cast<AVFormatContext*>(&input_->format()),
                                                           const_cast<AVStream*>(&input_->stream()), nullptr);
    return meaning_of(static_cast<AVPixelFormat>(said.format), number_of(said.color_space), number_of(said.color_range),
                      number_of(said.color_primaries), number_of(said.color_trc), aspect, said.height);
  }

  void set_rate(Facts& facts) const {
    constexpr int kPartMax = 1'000'000;
    const AVRational shown = *speed_ == 1 ? rate_ : av_d2q(av_q2d(rate_) * *speed_, kPartMax);
    facts.rate(shown.num, shown.den);
    const AVRational unit = input_->stream().time_base;
    const AVRational shown_unit = *speed_ == 1 ? unit : av_d2q(av_q2d(unit) / *speed_, kPartMax);
    facts.time_unit(shown_unit.num, shown_unit.den);
  }
  int64_t period_ns() const { return av_rescale(1'000'000'000, rate_.den, rate_.num); }

  // Logs, for the report, facts about the file that a person may need and cannot see in the pictures.
  void log_what_was_found() const {
    if (!has_rate_) log(MR_LOG_WARNING, "'" + *path_ + "' says no frame rate: 25 is taken");
    if (meaning_.guessed)
      log(MR_LOG_DEBUG,
          std::string("the matrix is not said: ") +
              (meaning_.color == MR_COLOR_BT709 ? "bt709, as from 720 rows on" : "bt601, as below 720 rows"));
    if (meaning_.is_near) log(MR_LOG_INFO, "the matrix that the file says is not known here: the nearest is taken");
    if (has_odd_angle_) log(MR_LOG_INFO, "the file asks for a rotation between quarters: it is not applied");
    if (const std::string others = input_->others(); !others.empty()) log(MR_LOG_DEBUG, "not read: " + others);
    const auto format = static_cast<AVPixelFormat>(input_->stream().codecpar->format);
    const AVPixFmtDescriptor* described = av_pix_fmt_desc_get(format);
    const bool keeps_alpha = pixel_ == Pixel::rgba8 || pixel_ == Pixel::bgra8;
    // VP8 and VP9 have it as a second film, which their usual decoders leave out.
    const AVDictionaryEntry* beside = av_dict_get(input_->stream().metadata, "alpha_mode", nullptr, 0);
    const bool has_alpha =
        (described && (described->flags & AV_PIX_FMT_FLAG_ALPHA)) || (beside && std::string_view(beside->value) == "1");
    if (described && has_alpha && !keeps_alpha)
      log(MR_LOG_INFO, std::string("the transparency of ") + described->name + " is not read");
    if (pixel_of(format) != pixel_)
      log(MR_LOG_DEBUG, std::string("its pixel format ") + av_get_pix_fmt_name(format) + " becomes " +
                            std::string(name_of(pixel_)) + " picture by picture");
  }

  // ---- reading

  // A live list keeps its pictures on the server for a while, so it need not be read at once.
  bool keeps_buffer() const { return input_->list() && *buffer_ > 0; }

  // As advance(), and finds the picture's time. The pictures of a live list are waited for until they are due.
  Step advance_in_time() {
    for (;;) {
      if (const Step step = advance(); step != Step::picture) return step;
      time_ = times_.next(container_ns_);
      const int64_t said = duration_of(*frame_);
      duration_ns_ = said > 0 ? input_->nanoseconds(said) : 0;
      times_.last_lasts(duration_ns_);
      if (!paces_) return Step::picture;
      const auto now = std::chrono::steady_clock::now();
      const bool is_far_ahead = input_->list() && input_->list()->is_far_ahead(input_->stream());
      const ListPace::Choice choice =
          pace_.next(now.time_since_epoch().count(), time_.ns, std::exchange(read_ns_, 0), is_far_ahead);
      if (!choice.is_dropped)
        return interrupt_.rest_until(now + std::chrono::nanoseconds(choice.wait_ns)) ? Step::picture : interrupted();
      record_late(choice.late_ns);
      av_frame_unref(frame_.get());
    }
  }

  void record_late(int64_t late_ns) {
    count("pictures_late");
    if (!std::exchange(is_told_.late, true))
      log(MR_LOG_WARNING, "the pipeline is slower than the live list: after " + seconds_words(reached_ns_) +
                              " a picture is " + seconds_words(late_ns) +
                              " late; those later than `buffer` are dropped and counted");
  }

  // Moves the next picture to be shown into frame_.
  Step advance() {
    for (;;) {
      const int status = decoder_->receive(frame_.get());
      if (status == 0) {
        if (frame_->decode_error_flags != 0 || (frame_->flags & AV_FRAME_FLAG_CORRUPT))
          record_damage("a picture was decoded in parts", "pictures_damaged");
        damage_in_a_row_ = 0;
        const std::optional<Step> step = look_at_picture();
        if (step) return *step;
        continue;
      }
      if (status == AVERROR_EOF) {
        if (const std::optional<Step> step = go_on_after_end()) return *step;
        continue;
      }
      if (status != AVERROR(EAGAIN)) {
        if (interrupt_.is_asked()) return interrupted();
        if (damage_in_a_row_ >= kDamageInARowMax)
          throw cannot_read(files_[file_], "the decoder gives nothing any more: " + error_words(status));
        record_damage("a picture cannot be decoded");
        continue;
      }
      if (const std::optional<Step> step = feed()) return *step;
    }
  }

  // Sends the decoder one packet, or the end.
  std::optional<Step> feed() {
    if (interrupt_.is_asked()) return interrupted();
    if (at_end_) {
      decoder_->send(nullptr);
      return {};
    }
    const int status = std::exchange(has_packet_, false) ? 0 : read();
    if (input_->list()) record_list(*input_->list());
    if (status == 0) {
      if (is_ts_) look_for_pause();
      position_ = packet_->pos;
      log_kept_waiting();
      if (packet_->flags & AV_PKT_FLAG_CORRUPT) record_gap();
      const int sent = decoder_->send(packet_.get());
      av_packet_unref(packet_.get());
      if (sent < 0 && sent != AVERROR_EOF) record_damage("a packet cannot be decoded");
      return {};
    }
    if (interrupt_.is_asked()) return interrupted();
    if (status == AVERROR(EAGAIN)) return {};
    const bool may_be_lost = input_->kind() == InputKind::address || input_->list();
    if (may_be_lost && (status != AVERROR_EOF || was_cut())) {
      lost_ = status; // acted on once the decoder has given its pictures
      lost_words_ = input_->loss_words(status);
      at_end_ = true;
      return {};
    }
    if (status == AVERROR_INVALIDDATA && damage_in_a_row_ < kDamageInARowMax) {
      record_damage("the container is damaged");
      return {};
    }
    if (status != AVERROR_EOF && status != AVERROR_INVALIDDATA)
      throw cannot_read(files_[file_], error_words(status) + ", after " + seconds_words(reached_ns_));
    at_end_ = true;
    return {};
  }

  int read() {
    if (!paces_) return input_->read(packet_.get());
    const auto begun = std::chrono::steady_clock::now();
    const int status = input_->read(packet_.get());
    read_ns_ += (std::chrono::steady_clock::now() - begun).count();
    return status;
  }

  // Tells which segments did not come, once each, however often the list is opened.
  void record_list(HlsReader& list) {
    for (int returns = list.take_returns(); returns > 0; --returns) count("reconnects");
    for (const MissingSegment& missing : list.take_missing(input_->stream())) {
      if (told_missing_.size() < kMissingKnownMax && !told_missing_.insert(missing.words).second) continue;
      count("segments_missing");
      ++missing_count_;
      missing_ns_ += missing.duration_ns;
      if (*on_damage_ == "fail") throw std::runtime_error("'" + files_[file_] + "' is not whole: " + missing.words);
      if (missing_count_ > kMissingToldMax) continue;
      log(MR_LOG_WARNING, "'" + files_[file_] + "': " + missing.words);
      if (missing_count_ == kMissingToldMax) log(MR_LOG_WARNING, "further segments that are missing are counted");
    }
  }

  // A transport stream whose times jump ahead was joined, or it has a pause, which only its packets tell.
  void look_for_pause() {
    const int64_t stamp = packet_->dts != AV_NOPTS_VALUE ? packet_->dts : packet_->pts;
    if (stamp == AV_NOPTS_VALUE) return;
    const int64_t before = std::exchange(packet_ns_, packet_turns_.continued(input_->nanoseconds(stamp)));
    if (before == kNoTime || packet_ns_ - before < kPauseNs || input_->kind() != InputKind::file) return;
    if (is_joined(files_[file_], position_, packet_->pos)) return;
    const int64_t shown_ns =
        packet_->pts == AV_NOPTS_VALUE ? packet_ns_ : packet_ns_ + input_->nanoseconds(packet_->pts - stamp);
    times_.trusts_until(shown_ns);
  }

  // Packets come, and no picture.
  void log_kept_waiting() {
    if (input_->kind() != InputKind::address || is_told_.kept_waiting) return;
    const auto since = std::max(last_picture_, opened_);
    if (std::chrono::steady_clock::now() - since < std::chrono::duration<double>(*timeout_)) return;
    if (taken_ > 0 && !is_lost_) return;
    is_told_.kept_waiting = true;
    log(MR_LOG_WARNING, no_key_frame_words(files_[file_]));
  }

  Step interrupted() {
    interrupt_.clear();
    return Step::interrupted;
  }

  // True if the stream ended before its known length. If the length is unknown, an end counts as a loss for protocols
  // in which a live stream never ends by itself.
  bool was_cut() const {
    if (input_->list()) return input_->is_live() || !input_->list()->failure().empty();
    if (input_->is_cut_short()) return true;
    const int64_t whole = input_->duration_ns();
    if (whole <= 0) return input_->ends_are_losses();
    return reached_ns_ + lasts_at_most_ns() + 500'000'000 < whole;
  }

  // Decides if the picture in frame_ is to be shown; nothing: go on to the next one.
  std::optional<Step> look_at_picture() {
    const int64_t stamp = frame_->best_effort_timestamp;
    container_ns_ = stamp == AV_NOPTS_VALUE ? kNoTime : input_->nanoseconds(stamp);
    if (is_ts_) container_ns_ = picture_turns_.continued(container_ns_);
    if (origin_ns_ == INT64_MIN && container_ns_ != kNoTime) origin_ns_ = container_ns_;
    // Pictures of a raw stream have no times and are a period apart.
    const bool is_raw = origin_ns_ == INT64_MIN;
    if (is_raw || container_ns_ != kNoTime) {
      const int64_t in_file = is_raw ? untimed_++ * period_ns() : container_ns_ - origin_ns_;
      // Later ones may begin again: then their times are mended.
      if (in_file < skips_until_ns_ && (skips_until_ns_ > 0 || taken_of_file_ == 0)) {
        is_before_start_ = true;
        av_frame_unref(frame_.get());
        return {};
      }
      // The seek went too far and skipped the pictures between `start` and here.
      const bool overshot = skips_until_ns_ > 0 && !is_before_start_ && in_file > skips_until_ns_ + period_ns() / 2;
      if (overshot && seeks_ <= kSeeksMax && input_->kind() != InputKind::pipe) {
        av_frame_unref(frame_.get());
        decoder_->flush();
        seek_before_start();
        return {};
      }
      if (*end_ > 0 && files_.size() == 1 && in_file >= in_ns(*end_)) {
        at_end_ = true;
        is_cut_short_ = true;
        decoder_->flush();
        decoder_->send(nullptr);
        av_frame_unref(frame_.get());
        return {};
      }
      longest_step_ns_ = std::max(longest_step_ns_, in_file - reached_ns_);
      reached_ns_ = in_file;
    }
    skips_until_ns_ = 0; // the first picture is found: all later ones are shown
    return Step::picture;
  }

  // If the rate varies, the last picture is assumed to last as long as the longest before it.
  int64_t lasts_at_most_ns() const { return std::max(2 * period_ns(), longest_step_ns_); }

  // Called when the file has given all its pictures.
  std::optional<Step> go_on_after_end() {
    if (std::exchange(lost_, 0) != 0) return reconnect();
    if (skips_until_ns_ > 0 && seeks_ <= kSeeksMax && input_->kind() != InputKind::pipe) {
      at_end_ = false; // the seek landed after the last key picture
      decoder_->flush();
      seek_before_start();
      return {};
    }
    if (taken_ == 0 && *start_ > 0 && file_ == 0)
      throw cannot_read(files_[file_], "there is no picture at or after its start, " + seconds_words(in_ns(*start_)));
    if (input_->list())
      report_missing(*input_->list());
    else if (!is_cut_short_ && !report_shortfall())
      report_cut_off();
    is_cut_short_ = false;
    if (file_ + 1 < files_.size()) {
      end_ns_ = end_of_segment();
      if (!reopen(file_ + 1)) return interrupted();
    } else if (*loop_ && taken_ > 0 && input_->kind() == InputKind::file) {
      if (taken_of_file_ == 0) throw cannot_read(files_[file_], "it gave no picture when it was read again");
      if (!reopen(0)) return interrupted();
    } else {
      return Step::end;
    }
    return {};
  }

  int64_t end_of_segment() const {
    const auto listed = lengths_.find(files_[file_]);
    if (listed != lengths_.end() && origin_ns_ != INT64_MIN) return origin_ns_ + listed->second;
    return stated_end_ns(input_->format(), input_->stream());
  }

  // False if it was interrupted while it opened the file.
  bool reopen(size_t file) {
    try {
      open(file);
    } catch (const std::runtime_error&) {
      if (!interrupt_.is_asked()) throw;
      return false;
    }
    check_alike();
    set_shape(meaning_of_file());
    decoder_->work_in(held_ > 0 ? this : nullptr, pixel_, width_, height_);
    times_.begin_again_after_end(std::exchange(end_ns_, kNoTime));
    times_.trusts_until(input_->pauses_until_ns());
    taken_of_file_ = 0;
    return true;
  }

  void check_alike() const {
    const AVCodecParameters& said = *input_->stream().codecpar;
    if ((said.width == said_width_ && said.height == said_height_) || *sizes_ != "refuse") return;
    throw cannot_read(files_[file_],
                      "its pictures are " +
                          in_words(static_cast<uint32_t>(said.width), static_cast<uint32_t>(said.height)) +
                          ", the first were " + in_words(width_, height_) + kScaling);
  }

  // True if pictures are missing. Estimated counts are off by a picture or two, and are wrong if the rate varies; so
  // the time that was reached decides too.
  bool report_shortfall() {
    if (announced_ <= 0 || files_.size() > 1 || *start_ > 0) return false;
    const int64_t missing = announced_ - taken_of_file_;
    const int64_t whole = input_->duration_ns();
    // Some containers count their duration from 0 and not from their first picture, and some round it up.
    const int64_t begun = input_->start_ns() == INT64_MIN ? 0 : std::max<int64_t>(input_->start_ns(), 0);
    const int64_t slack = is_counted_ ? lasts_at_most_ns() : std::max<int64_t>(lasts_at_most_ns(), 500'000'000);
    const bool reached = whole > 0 && reached_ns_ + begun + slack >= whole;
    announced_ = 0; // reported once
    if (missing <= 1 || reached) return false;
    count("pictures_lost", missing);
    log_break("'" + files_[file_] + "' breaks off after " + std::to_string(taken_of_file_) + " of " +
              std::to_string(taken_of_file_ + missing) + " pictures");
    return true;
  }

  // The end of a list is what it says, so only its segments can be missing.
  void report_missing(HlsReader& list) {
    if (!is_cut_short_) list.record_end(input_->stream());
    record_list(list);
    if (missing_count_ == 0 || is_cut_short_ || paces_) return; // a live list is not known as a whole
    log(MR_LOG_WARNING, "'" + files_[file_] + "' lacks " + std::to_string(missing_count_) + " of " +
                            std::to_string(list.segment_count(input_->stream())) + " segments, " +
                            seconds_words(missing_ns_) + " of " + seconds_words(list.duration_ns(input_->stream())));
  }

  // A film in fragments does not store its length, but the boxes of its container store theirs.
  void report_cut_off() {
    const bool is_mp4 = std::string_view(input_->format().iformat->name).starts_with("mov,");
    if (input_->kind() != InputKind::file || !is_mp4 || !breaks_off_in_a_box(files_[file_])) return;
    if (std::exchange(is_told_.cut_off, true) && files_.size() == 1) return; // not again in each round of `loop`
    log_break("'" + files_[file_] + "' breaks off after " + std::to_string(taken_of_file_) +
              " pictures: the last part of it is incomplete");
  }

  void log_break(const std::string& words) const {
    if (*on_damage_ == "fail") throw std::runtime_error(words);
    log(MR_LOG_WARNING, words);
  }

  void record_damage(const char* what, const char* counted_as = "pictures_lost") {
    ++damage_in_a_row_;
    count(counted_as);
    const std::string place = "after " + seconds_words(reached_ns_) +
                              (position_ >= 0 ? ", at byte " + std::to_string(position_) : std::string());
    const std::string words = "'" + files_[file_] + "' is damaged: " + what + ", " + place;
    if (*on_damage_ == "fail") throw std::runtime_error(words);
    if (!std::exchange(is_told_.damage, true)) log(MR_LOG_WARNING, words + "; what follows is counted");
  }

  // A container that numbers its packets misses some. Joined streams look like that too; pictures that are really lost
  // are counted separately.
  void record_gap() {
    count("packets_damaged");
    if (!std::exchange(is_told_.gap, true))
      log(MR_LOG_INFO, "packets are missing or damaged after " + seconds_words(reached_ns_) + "; they are counted");
  }

  // Opens a lost connection again, for `reconnect` at most.
  std::optional<Step> reconnect() {
    const auto now = std::chrono::steady_clock::now();
    if (!std::exchange(is_lost_, true))
      lost_since_ = now; // until a picture comes: a connection without pictures still counts as lost
    std::string why = lost_words_;
    if (input_->list() && !input_->list()->failure().empty())
      throw cannot_read(files_[file_], input_->list()->failure());
    if (input_->list() && input_->list()->begins_again()) why = "the list counts its segments anew";
    if (*reconnect_ == 0) throw cannot_read(files_[file_], "the connection is lost: " + why);
    const bool was_live = input_->is_live();
    const int64_t reached = reached_ns_, longest = longest_step_ns_;
    log(MR_LOG_WARNING, "the connection to '" + files_[file_] + "' is lost (" + why + ") and is opened again");
    for (auto pause = kPauseFirst;; pause = std::min(pause * 2, kPauseMost)) {
      if (std::chrono::steady_clock::now() - lost_since_ + pause > std::chrono::duration<double>(*reconnect_))
        throw cannot_read(files_[file_], "the connection is lost and does not come back: " + why);
      if (!interrupt_.rest_until(std::chrono::steady_clock::now() + pause)) return interrupted();
      try {
        open(0);
        check_alike();
      } catch (const std::runtime_error& error) {
        if (interrupt_.is_asked()) return interrupted();
        why = error.what();
        continue;
      }
      break;
    }
    decoder_->work_in(held_ > 0 ? this : nullptr, pixel_, width_, height_);
    if (was_live) {
      const auto lost = std::chrono::steady_clock::now() - last_picture_;
      times_.begin_again_after(std::chrono::duration_cast<std::chrono::nanoseconds>(lost).count());
    } else { // a film continues at its old position
      reached_ns_ = reached;
      longest_step_ns_ = longest;
      skips_until_ns_ = reached + 1;
      seeks_ = input_->has_index() ? 0 : 1;
      seek_before_start();
    }
    count("reconnects");
    return {};
  }

  // ---- giving

  void give_picture(Tick& tick) {
    const AVFrame& frame = *frame_;
    const uint32_t width = static_cast<uint32_t>(frame.width), height = static_cast<uint32_t>(frame.height);
    const bool is_alike = width == width_ && height == height_;
    if (!is_alike && *sizes_ == "refuse")
      throw cannot_read(files_[file_], "picture " + std::to_string(taken_) + " is " + in_words(width, height) +
                                           ", the first was " + in_words(width_, height_) + kScaling);
    if (!is_alike && !std::exchange(is_told_.size, true))
      log(MR_LOG_INFO, "picture " + std::to_string(taken_) + " is " + in_words(width, height) + ", the first was " +
                           in_words(width_, height_) + ": it and those like it are scaled and counted");
    if (is_interlaced(frame) && !std::exchange(is_told_.interlaced, true))
      log(MR_LOG_INFO, "its pictures are interlaced, and are given as they are");
    mr_value& value = !is_alike                   ? scaled(tick, frame)
                      : in_its_block(tick, frame) ? *video_.raw(tick).value
                                                  : copied(tick, frame);
    set_meaning(value.as.image, frame);
    if (!is_alike) { // a scaled picture has the first one's pixels
      value.as.image.aspect_num = meaning_.aspect_num;
      value.as.image.aspect_den = meaning_.aspect_den;
    }
    set_times(value.header);
    av_frame_unref(frame_.get());
    ++taken_;
    ++taken_of_file_;
    last_picture_ = std::chrono::steady_clock::now();
    is_lost_ = false;
  }

  // Gives the picture without a copy if it lies in a block of the plan; else false.
  bool in_its_block(Tick& tick, const AVFrame& frame) {
    const mr_block* block = decoder_->block_to_give(frame);
    if (!block || pixel_of(static_cast<AVPixelFormat>(frame.format)) != pixel_) return false;
    mr_image image{};
    lay_out_image(pixel_, width_, height_, image); // planes and rows; the positions are set below
    uint64_t bytes = 0;
    for (uint32_t p = 0; p < image.plane_count; ++p) {
      if (frame.linesize[p] <= 0) return false;
      if ((frame.data[p] - block->data) % kOffsetUnit != 0) return false; // cropped at the left
      image.planes[p].offset = static_cast<uint64_t>(frame.data[p] - block->data);
      image.planes[p].stride = static_cast<uint32_t>(frame.linesize[p]);
      bytes = std::max(bytes, image.planes[p].offset + uint64_t{image.planes[p].stride} * image.planes[p].rows);
    }
    if (bytes > block->capacity) return false;
    video_.give(tick, *block, bytes).as.image = image;
    return true;
  }

  mr_value& copied(Tick& tick, const AVFrame& frame) {
    const ImageSpan picture = video_.allocate(tick, pixel_, width_, height_);
    copier_.copy(frame, picture);
    count(pixel_of(static_cast<AVPixelFormat>(frame.format)) == pixel_ ? "pictures_copied" : "pictures_converted");
    return *video_.raw(tick).value;
  }

  mr_value& scaled(Tick& tick, const AVFrame& frame) {
    const ImageSpan picture = video_.allocate(tick, pixel_, width_, height_);
    scaler_.scale(frame, shape_of(frame), picture, meaning_, *sizes_ == "fit");
    count("pictures_scaled");
    return *video_.raw(tick).value;
  }

  void set_meaning(mr_image& image, const AVFrame& frame) {
    Meaning meaning =
        meaning_of(static_cast<AVPixelFormat>(frame.format), number_of(frame.colorspace), number_of(frame.color_range),
                   number_of(frame.color_primaries), number_of(frame.color_trc), {0, 1}, frame.height);
    if (meaning.guessed) meaning.color = meaning_.color; // the container's tag
    image.color = meaning.color;
    image.range = meaning.range;
    image.primaries = meaning.primaries ? meaning.primaries : meaning_.primaries;
    image.transfer = meaning.transfer ? meaning.transfer : meaning_.transfer;
    const Meaning shape = shape_of(frame);
    image.aspect_num = shape.aspect_num;
    image.aspect_den = shape.aspect_den;
  }

  // The shape of a picture's pixels. The container's word counts until the stream itself says another shape than
  // before.
  Meaning shape_of(const AVFrame& frame) {
    const AVRational coded = frame.sample_aspect_ratio;
    if (coded.num <= 0 || coded.den <= 0) return shape_;
    if (coded_shape_.num > 0 && av_cmp_q(coded, coded_shape_) != 0)
      set_shape(meaning_of(AV_PIX_FMT_RGB24, AVCOL_SPC_UNSPECIFIED, AVCOL_RANGE_UNSPECIFIED, 0, 0, coded, 0));
    coded_shape_ = coded;
    return shape_;
  }

  void set_shape(const Meaning& shape) {
    const auto words = [](const Meaning& of) {
      return of.aspect_num ? std::to_string(of.aspect_num) + ":" + std::to_string(of.aspect_den) : std::string("1:1");
    };
    const Meaning before = std::exchange(shape_, shape);
    if (before.aspect_num == shape.aspect_num && before.aspect_den == shape.aspect_den) return;
    count("shape_changes");
    if (!std::exchange(is_told_.shape, true))
      log(MR_LOG_WARNING, "the shape of its pixels changes from " + words(before) + " to " + words(shape) +
                              " at picture " + std::to_string(taken_) + ", after " + seconds_words(reached_ns_) +
                              "; each picture says its own, and such changes are counted");
  }

  void set_times(mr_header& header) {
    const MediaTimes::Time& time = time_;
    const int64_t before_ns = std::exchange(before_ns_, container_ns_);
    header.pts_ns = time.ns;
    header.duration_ns = times_.shown_for(duration_ns_ > 0 ? duration_ns_ : period_ns());
    if (time.found == MediaTimes::Found::good) return;
    count("times_mended");
    if (!std::exchange(is_told_.times, true))
      log(MR_LOG_INFO, "the time of picture " + std::to_string(taken_) +
                           (time.found == MediaTimes::Found::missing  ? " is missing"
                            : time.found == MediaTimes::Found::jumped ? jump_words(before_ns)
                                                                      : " does not rise") +
                           ": it and those like it are mended and counted");
  }

  std::string jump_words(int64_t before_ns) const {
    if (before_ns == kNoTime) return " jumps";
    const std::string by = " by " + seconds_words(std::abs(container_ns_ - before_ns));
    return container_ns_ < before_ns ? " jumps back" + by : " jumps ahead" + by + ", as where streams were joined";
  }

  // ---- blocks, for the decoder's threads

  bool borrow(mr_block& block) override { return video_.borrow(block); }
  void give_back(const mr_block& block) override { video_.give_back(block); }

  static std::runtime_error cannot_read(const std::string& path, const std::string& why) {
    return std::runtime_error("cannot read the video '" + path + "': " + why);
  }

  Output<Image> video_{*this, "video",
                       pixels({Pixel::gray8, Pixel::rgb8, Pixel::bgr8, Pixel::rgba8, Pixel::bgra8, Pixel::nv12,
                               Pixel::i420, Pixel::p010}),
                       help("the pictures")};
  Param<std::string> path_{*this,    "path",    "", "the file, a folder of segments, - , a FIFO or an address",
                           required, reads_path};
  Param<double> start_{*this, "start", 0.0, "where in the file to begin", at_least(0), seconds};
  Param<double> end_{*this, "end", 0.0, "where in the file to end; 0: at its end", at_least(0), seconds};
  Param<bool> loop_{*this, "loop", false, "begins again at the end"};
  Param<double> speed_{*this, "speed", 1.0, "how much faster it is shown", range(0.01, 100)};
  Param<int> stream_{*this, "stream", -1, "which stream, counted as FFmpeg does; -1: the best", range(-1, 1000)};
  Param<int> threads_{*this, "threads", 0, "of the decoder; 0: as many as there are cores", range(0, 64)};
  Param<std::string> decoder_name_{*this, "decoder", "", "FFmpeg's name of a decoder; empty: the first of the codec"};
  Param<std::string> format_{*this, "format", "", "FFmpeg's name of a container; empty: by the content"};
  Param<std::string> on_damage_{*this, "on_damage", "skip", "what follows if the file is damaged",
                                choices({"skip", "fail"})};
  Param<std::string> sizes_{*this, "sizes", "refuse", "what happens to a picture of another size than the first",
                            choices({"refuse", "fit", "stretch"})};
  Param<double> timeout_{*this, "timeout", 5.0, "how long an address may be silent", range(0.1, 3600), seconds};
  Param<std::string> transport_{*this, "transport", "tcp", "how RTSP brings its packets", choices({"tcp", "udp"})};
  Param<double> reconnect_{*this,       "reconnect", 30.0, "how long a lost connection is opened again; 0: not at all",
                           at_least(0), seconds};
  Param<double> buffer_{
      *this,          "buffer", 10.0, "how late the pictures of a live list may be; 0: they are dropped as a camera's",
      range(0, 3600), seconds};
  Param<bool> any_names_{*this, "any_names", false,
                         "opens segments and keys of a list whatever their names and paths are"};

  Interrupt interrupt_;
  Log log_{[this](uint32_t level, const std::string& sentence) { log(level, sentence); }};
  std::vector<std::string> files_;
  std::map<std::string, int64_t> lengths_; // those that a list in the folder tells
  size_t file_ = 0;
  std::unique_ptr<Input> input_;
  std::unique_ptr<Decoder> decoder_; // after input_, so that it is destroyed first
  Frame frame_;
  Packet packet_;
  bool has_packet_ = false; // packet_ was read and is not sent yet
  FrameCopier copier_;
  FrameScaler scaler_;
  MediaTimes times_;
  MediaTimes::Time time_; // the time of the picture in frame_
  int64_t duration_ns_ = 0;
  ListPace pace_;
  bool paces_ = false;                 // the input is a live list, or was one when it began
  int64_t read_ns_ = 0;                // how long the list was waited for since the last picture
  std::set<std::string> told_missing_; // segments of a list
  int64_t missing_ns_ = 0;
  size_t missing_count_ = 0;

  Pixel pixel_ = Pixel::none;
  uint32_t width_ = 0, height_ = 0;
  int said_width_ = 0, said_height_ = 0; // the first file's words, which may differ: see shown_size.h
  Meaning meaning_, shape_;              // meaning_: the first file; shape_: the last picture's pixels
  AVRational coded_shape_ = {0, 1};      // the last that the stream itself said in this file; 0: none
  uint32_t turn_ = MR_TURN_NONE, held_ = 0;
  uint64_t block_bytes_ = 0;
  AVRational rate_ = kRateFallback;
  bool has_rate_ = false, has_odd_angle_ = false;

  bool is_counted_ = false;        // announced_ is the container's own count
  int64_t announced_ = 0;          // pictures, as the container says; 0: it does not
  int64_t taken_ = 0;              // pictures given since it was opened
  int64_t taken_of_file_ = 0;      // pictures given of the open file
  int64_t origin_ns_ = INT64_MIN;  // the container's time of the file's first picture
  int64_t container_ns_ = kNoTime; // container's time of the picture in frame_
  int64_t end_ns_ = kNoTime;       // the end of the segment that was read before, if it is told
  int64_t before_ns_ = kNoTime;    // container's time of the picture before it
  int64_t untimed_ = 0;            // pictures of this file, if none has a time
  int64_t reached_ns_ = 0;         // position of the last picture in the file
  int64_t skips_until_ns_ = 0;     // pictures before it are only decoded
  size_t seeks_ = 0;               // how often `start` was looked for
  bool is_before_start_ = false;   // a picture before `start` was seen, so the seek skipped none
  int64_t position_ = -1;          // byte position of the last packet
  bool is_ts_ = false;             // a transport stream: the next three follow its times
  TsTurns packet_turns_, picture_turns_;
  int64_t packet_ns_ = kNoTime; // the last packet that was read
  int64_t longest_step_ns_ = 0; // between two pictures of the file
  int damage_in_a_row_ = 0;
  int lost_ = 0; // FFmpeg's error with which the connection was lost; 0: it holds
  std::string lost_words_;
  bool at_end_ = false, is_cut_short_ = false;
  bool is_lost_ = false; // the connection was lost, and no picture has come since
  std::chrono::steady_clock::time_point opened_, last_picture_, lost_since_;
  struct Told {
    bool damage = false, gap = false, interlaced = false, times = false, seek = false, cut_off = false, shape = false,
         size = false, kept_waiting = false, late = false;
  } is_told_;
};

MILLRACE_HANDLER(VideoFile, "video.file", "Plays the pictures of a video file, a pipe or an address", kVideoFileManual)

} // namespace
} // namespace millrace::media
