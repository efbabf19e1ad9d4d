// Wraps libavformat with our bounds and words; see input.h.
#include "plugins/media/input.h"

extern "C" {
#include <libavutil/dict.h>
#include <libavutil/display.h>
#include <libavutil/mathematics.h>
}

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <new>
#include <stdexcept>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

namespace millrace::media {

namespace {

// The most that is read to find out the format. These are FFmpeg's own bounds, written down so that we control them.
constexpr int64_t kProbeBytesMax = 5'000'000;
constexpr int64_t kProbeUsMax = 5'000'000;
constexpr double kProbeSecondsMax = 30; // then a search with the bounds below may take as long again
constexpr int64_t kNarrowBytesMax = 500'000, kNarrowUsMax = 500'000;
// After this time no more packets of a live stream are read ahead of its pictures to learn their rate.
constexpr std::chrono::milliseconds kRateWait{2500};
// FFmpeg's own limits are set to this where Interrupt's is meant: it knows the source's pace. FFmpeg takes 35 min at
// most.
constexpr const char* kFfmpegWaitsUs = "2000000000";
// A header may round its film's length, or tell the length without its beginning. A recording that was cut off or that
// is in fragments tells none; a month is taken, as a damaged time is likely to be farther away.
constexpr int64_t kPauseSlackNs = 60'000'000'000, kPauseUnsaidNs = int64_t{31} * 24 * 3600 * 1'000'000'000;
constexpr uint64_t kSpoolBytesMax = uint64_t{4} << 30; // a film of hours; more would fill the disk unseen
constexpr std::chrono::seconds kKeyFrameWait{60};      // cameras send a key frame each second to each 20 s
constexpr int64_t kPixelsMax = 134'000'000; // 16384 × 8192: a flipped bit in a header can ask for all memory

class InputOptions {
 public:
  ~InputOptions() { av_dict_free(&all); }
  void set(const char* name, const std::string& value) { av_dict_set(&all, name, value.c_str(), 0); }
  AVDictionary* all = nullptr;
};

bool begins_with(const std::string& text, const char* start) { return text.rfind(start, 0) == 0; }

std::string errno_words(int code) { return std::generic_category().message(code); }

// The first bytes of a file, 16 at most; "" if it cannot be read.
std::string head_of(const std::string& path) {
  char head[16];
  const int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  const ssize_t count = file < 0 ? 0 : ::read(file, head, sizeof head);
  if (file >= 0) ::close(file);
  return {head, static_cast<size_t>(std::max<ssize_t>(count, 0))};
}

bool may_be_list(const std::string& url) {
  if (begins_with(url, "http://") || begins_with(url, "https://")) return true;
  constexpr const char* kFile = "file:";
  return begins_with(url, kFile) && begins_as_list(head_of(url.substr(std::strlen(kFile))));
}

// Replaces error words of libavformat that say little.
std::string open_words(int status, const Interrupt& interrupt) {
  if (const std::string words = interrupt.words(status); !words.empty()) return words;
  if (status == AVERROR_INVALIDDATA) return "the file is damaged or of a kind that is not known";
  if (status == AVERROR_PROTOCOL_NOT_FOUND) return "this FFmpeg does not know the protocol of this address";
  return error_words(status);
}

std::string too_large(int width, int height) {
  return "its pictures are said to be " + std::to_string(width) + " × " + std::to_string(height) + ", more than the " +
         std::to_string(kPixelsMax / 1'000'000) + " million pixels that are read";
}

// libavformat reports a refused picture size only in its log. The error itself may be any; for Y4M it is "Device or
// resource busy".
std::string refused_size(const Log& log) {
  int width = 0, height = 0;
  const std::string line = log.find("Picture size ");
  return std::sscanf(line.c_str(), "Picture size %dx%d is invalid", &width, &height) == 2 ? too_large(width, height)
                                                                                          : "";
}

// ISO 14496-12: the type of the first box comes after its size. A file that is only named .mp4 has none of these types.
bool begins_as_mp4(const std::string& path) {
  const std::string head = head_of(path);
  if (head.size() < 8) return false;
  const std::string type = head.substr(4, 4);
  const auto known = {"ftyp", "mdat", "free", "skip", "wide", "moov", "styp"};
  return std::find(known.begin(), known.end(), type) != known.end();
}

const char* name_of(AVMediaType media) { return media == AVMEDIA_TYPE_AUDIO ? "sound" : "video"; }

bool is_list(const std::string& address) {
  return address.find(".m3u8") != std::string::npos || address.find(".mpd") != std::string::npos;
}

void set_for_address(const InputSettings& settings, InputOptions& options) {
  const std::string& path = settings.path;
  const double timeout_s = settings.timeout_s;
  if (begins_with(path, "rtsp://") || begins_with(path, "rtsps://")) {
    options.set("rtsp_transport", settings.transport);
    options.set("timeout", kFfmpegWaitsUs);
  } else if (begins_with(path, "http://") || begins_with(path, "https://")) {
    // A list's next segment may be asked for again before the list counts as silent.
    options.set("rw_timeout", is_list(path) ? std::to_string(std::llround(timeout_s * 1e6)) : kFfmpegWaitsUs);
    options.set("reconnect", settings.reconnects ? "1" : "0");
    options.set("reconnect_delay_max", std::to_string(std::max(1L, std::lround(timeout_s))));
  } else if (begins_with(path, "udp://") || begins_with(path, "rtp://")) {
    options.set("timeout", kFfmpegWaitsUs);
  } else {
    options.set("rw_timeout", kFfmpegWaitsUs);
  }
}

const int32_t* display_matrix_of(const AVStream& stream) {
#if LIBAVFORMAT_VERSION_INT >= AV_VERSION_INT(60, 15, 100)
  const AVPacketSideData* side = av_packet_side_data_get(
      stream.codecpar->coded_side_data, stream.codecpar->nb_coded_side_data, AV_PKT_DATA_DISPLAYMATRIX);
  return side && side->size >= 9 * sizeof(int32_t) ? reinterpret_cast<const int32_t*>(side->data) : nullptr;
#else
  size_t size = 0;
  const uint8_t* data = av_stream_get_side_data(&stream, AV_PKT_DATA_DISPLAYMATRIX, &size);
  return data && size >= 9 * sizeof(int32_t) ? reinterpret_cast<const int32_t*>(data) : nullptr;
#endif
}

} // namespace

InputKind input_kind_of(const std::string& path) {
  if (path == "-") return InputKind::pipe;
  if (path.find("://") != std::string::npos) return InputKind::address;
  struct stat status {};
  if (::stat(path.c_str(), &status) != 0) {
    if (errno != ENOENT) throw std::runtime_error(errno_words(errno));
    const bool is_pattern = path.find_first_of("%*?") != std::string::npos;
    throw std::runtime_error(is_pattern ? "there is no such file; patterns are for pictures, which image.file reads"
                                          "\ntry: type=image.file"
                                        : "there is no such file");
  }
  if (S_ISFIFO(status.st_mode)) return InputKind::pipe;
  if (!S_ISREG(status.st_mode)) throw std::runtime_error("it is no file, no folder of files and no pipe");
  if (status.st_size == 0) throw std::runtime_error("it is empty");
  if (::faccessat(AT_FDCWD, path.c_str(), R_OK, AT_EACCESS) != 0) throw std::runtime_error(errno_words(errno));
  return InputKind::file;
}

std::string no_key_frame_words(const std::string& path) {
  return "no key frame came within `timeout` from '" + path +
         "': its pictures begin at the next one, which is waited for";
}

Input::Input(const InputSettings& settings, Interrupt& interrupt, Log& log)
    : settings_(settings), kind_(input_kind_of(settings.path)), interrupt_(interrupt), log_(log) {
  open_stream();
}

void Input::open_stream() {
  const LogScope scope(log_);
  interrupt_.allow(kind_ == InputKind::address ? settings_.timeout_s : 0);
  unit_ = {0, 1};
  allocate();
  try {
    open();
    has_length_ = kind_ == InputKind::address && reads_one_address() && avio_size(format_->pb) > 0;
    if (has_passed_its_pictures()) {
      close();
      spool();
      return open_stream();
    }
    find_stream();
  } catch (...) {
    close();
    throw;
  }
  unit_ = stream_->time_base;
  if (list_) list_->is_open();
}

void Input::allocate() {
  first_.reset();
  pace_ = {};
  format_ = avformat_alloc_context();
  if (!format_) throw std::bad_alloc();
  format_->opaque = &log_;
  format_->interrupt_callback = interrupt_.callback();
  format_->probesize = is_narrow_ ? kNarrowBytesMax : kProbeBytesMax;
  format_->max_analyze_duration = is_narrow_ ? kNarrowUsMax : kProbeUsMax;
  if (is_narrow_) format_->fps_probe_size = 0;
  interrupt_.watch(&format_);
}

void Input::close() {
  first_.reset();
  catch_up_.stop();
  stream_ = nullptr;
  interrupt_.watch(nullptr);
  avformat_close_input(&format_);
  list_.reset();
  avio_closep(&io_);
}

Input::~Input() { close(); }

void Input::open() {
  const AVInputFormat* demuxer = nullptr;
  if (!settings_.format.empty()) {
    demuxer = av_find_input_format(settings_.format.c_str());
    if (!demuxer) throw std::invalid_argument("format '" + settings_.format + "' is not known to this FFmpeg");
  }
  InputOptions options;
  std::string url = settings_.path;
  if (kind_ == InputKind::address && !spooled_) set_for_address(settings_, options);
  if (settings_.any_names) options.set("safe", "0"); // the concat demuxer's; others do not ask for it
  if (spooled_) url = spooled_->url();
  if (kind_ == InputKind::file) url = "file:" + url; // so that a name with a colon is not taken for a protocol
  if (kind_ == InputKind::pipe) {
    try {
      bytes_ = std::make_unique<ByteStream>(settings_.path, interrupt_);
    } catch (const std::system_error& error) {
      throw std::runtime_error(error.code().message());
    }
    format_->pb = bytes_->io();
    url.clear();
  }
  const bool is_piped = kind_ == InputKind::pipe;
  if (is_piped && settings_.path == "-" && ::isatty(STDIN_FILENO))
    throw std::runtime_error(
        "standard input is a terminal; expected a pipe or a file, as in `millrace run … < in.mkv`");
  const std::string before = refused_size(log_); // from an earlier file of a folder
  int status = may_be_list(url) ? open_bytes(url, &options.all) : 0;
  // On failure FFmpeg frees the context.
  if (status >= 0) status = avformat_open_input(&format_, url.c_str(), demuxer, &options.all);
  if (status >= 0) return;
  if (list_) throw std::runtime_error(list_->words_for_refusal(open_words(status, interrupt_)));
  const std::string size = refused_size(log_);
  if (is_piped && bytes_->count() == 0 && !interrupt_.is_asked())
    throw std::runtime_error("nothing came from it; expected a video, as in `millrace run … < in.mkv`");
  if (!log_.find("Unsafe file name").empty())
    throw std::runtime_error(
        "the list names a file by a path from the root or with unusual letters, which FFmpeg does not "
        "open; `any_names=true` opens files of any name");
  if (!log_.find("moov atom not found").empty() && begins_as_mp4(settings_.path))
    throw std::runtime_error(
        "the file is damaged: its index (moov) is missing, as if a recording was not finished or "
        "the file is cut off");
  throw std::runtime_error(size != before ? size : open_words(status, interrupt_));
}

// Opens a file before FFmpeg looks at it, because a list has to be known before its segments are opened.
int Input::open_bytes(const std::string& url, AVDictionary** options) {
  const AVIOInterruptCB callback = interrupt_.callback();
  if (const int status = avio_open2(&io_, url.c_str(), AVIO_FLAG_READ, &callback, options); status < 0) return status;
  format_->pb = io_;
  char head[16];
  const int count = avio_read(io_, reinterpret_cast<unsigned char*>(head), sizeof head);
  if (avio_seek(io_, 0, SEEK_SET) < 0) return AVERROR(EIO);
  if (count <= 0 || !begins_as_list({head, static_cast<size_t>(count)})) return 0;
  const HlsSettings settings{kind_ == InputKind::address ? settings_.timeout_s : 0, settings_.retry_s,
                             settings_.any_names, settings_.say};
  list_ = std::make_unique<HlsReader>(url, std::exchange(io_, nullptr), settings, interrupt_, log_);
  list_->attach(*format_, options);
  return 0;
}

// Opens a list again at the place where its times begin again. False if that fails, for the list's reason.
bool Input::open_section() {
  const std::vector<uint8_t> before(stream_->codecpar->extradata,
                                    stream_->codecpar->extradata + stream_->codecpar->extradata_size);
  const std::string url = (kind_ == InputKind::file ? "file:" : "") + settings_.path;
  stream_ = nullptr;
  avformat_close_input(&format_);
  InputOptions options;
  try {
    allocate();
    list_->attach(*format_, &options.all);
    const int status = avformat_open_input(&format_, url.c_str(), nullptr, &options.all);
    if (status < 0) throw std::runtime_error(open_words(status, interrupt_));
    find_stream();
  } catch (const std::runtime_error& error) {
    if (list_->failure().empty()) list_->fail(std::string("where its times begin again: ") + error.what());
    return false;
  }
  const AVCodecParameters& said = *stream_->codecpar;
  has_new_header_ = !std::equal(before.begin(), before.end(), said.extradata, said.extradata + said.extradata_size);
  return true;
}

// Tells the decoder that the codec's header is another one from this packet on.
void Input::add_header(AVPacket& packet) {
  const AVCodecParameters& said = *stream_->codecpar;
  if (!std::exchange(has_new_header_, false) || said.extradata_size <= 0) return;
  const auto size = static_cast<size_t>(said.extradata_size);
  if (uint8_t* header = av_packet_new_side_data(&packet, AV_PKT_DATA_NEW_EXTRADATA, size))
    std::copy_n(said.extradata, size, header);
}

// True if the index of an MP4 was found after its pictures, and the input cannot go back to them.
bool Input::has_passed_its_pictures() const {
  const bool is_mp4 = std::string_view(format_->iformat->name).starts_with("mov,");
  if (!is_mp4 || !format_->pb || (format_->pb->seekable & AVIO_SEEKABLE_NORMAL)) return false;
  for (unsigned s = 0; s < format_->nb_streams; ++s)
    if (const AVIndexEntry* first = avformat_index_get_entry(format_->streams[s], 0);
        first && first->pos < avio_tell(format_->pb)) {
      const int64_t here = avio_tell(format_->pb);
      if (avio_seek(format_->pb, first->pos, SEEK_SET) < 0) return true;
      avio_seek(format_->pb, here, SEEK_SET); // a short film lies in the buffer as a whole
    }
  return false;
}

// Reads the whole film once, in order that its pictures can be read after its index.
void Input::spool() {
  const std::string words = "the index of this MP4 lies at its end, and ";
  const std::string remedy = "; `ffmpeg -i IN -c copy -movflags +faststart OUT` puts the index first";
  if (kind_ == InputKind::pipe) throw std::runtime_error(words + "a pipe cannot go back to the pictures" + remedy);
  if (settings_.say) settings_.say(words + "its server cannot jump: it is read as a whole before its first picture");
  spooled_ = std::make_unique<SpooledFile>();
  InputOptions options;
  set_for_address(settings_, options);
  AVIOContext* from = nullptr;
  const AVIOInterruptCB callback = interrupt_.callback();
  options.set("rw_timeout", std::to_string(std::llround(settings_.timeout_s * 1e6)));
  interrupt_.allow(0); // a large film may take longer; the protocol bounds its silence
  int status = avio_open2(&from, settings_.path.c_str(), AVIO_FLAG_READ, &callback, &options.all);
  try {
    if (status >= 0) status = spooled_->fill(*from, kSpoolBytesMax);
  } catch (...) {
    avio_closep(&from);
    throw;
  }
  avio_closep(&from);
  if (status == AVERROR(EFBIG))
    throw std::runtime_error(words + "its server cannot jump; it is larger than the " +
                             std::to_string(kSpoolBytesMax >> 30) + " GiB that are kept beside it" + remedy);
  if (status < 0) throw std::runtime_error(open_words(status, interrupt_));
}

bool Input::knows_pictures() const {
  const AVCodecParameters& said = *stream_->codecpar;
  return said.width > 0 && said.height > 0 && said.format != AV_PIX_FMT_NONE;
}

// True if the streams and their codecs are known before any packet came.
bool Input::says_its_streams() const {
  if (std::string_view(format_->iformat->name) != "rtsp") return false;
  for (unsigned s = 0; s < format_->nb_streams; ++s)
    if (format_->streams[s]->codecpar->codec_id == AV_CODEC_ID_NONE) return false;
  return format_->nb_streams > 0;
}

// Has FFmpeg find out what the streams are, within bounds of its own. A search that was interrupted may have left the
// protocol in the middle of a packet: then the input is opened anew, and a shorter search follows.
int Input::search_streams() {
  const bool is_address = kind_ == InputKind::address;
  // The pauses of a format that opens its addresses itself are not seen: it gets the time of the search beside them.
  const double unseen_s = is_live() && !reads_one_address() ? static_cast<double>(kProbeUsMax) * 1e-6 : 0;
  interrupt_.allow(is_address ? patience_s() + unseen_s : 0, is_address ? kProbeSecondsMax : 0);
  const int status = avformat_find_stream_info(format_, nullptr);
  if (interrupt_.is_asked()) throw std::runtime_error("it was interrupted");
  return status;
}

// A live stream may be far from its next key frame, which alone tells the format of its pictures. As long as packets
// come, it is waited for. Packets that can be decoded are kept.
void Input::read_first_packets() {
  first_ = std::make_unique<FirstPackets>(*stream_, log_);
  if (!first_->can_decode() && !knows_pictures()) return;
  const bool needs_rate = rate().num == 0;
  const auto begun = std::chrono::steady_clock::now();
  for (bool is_told = false;;) {
    const auto waited = std::chrono::steady_clock::now() - begun;
    const bool knows = first_->know_pictures();
    if (knows && (!needs_rate || waited > kRateWait || first_->are_enough())) break;
    if (!knows && !is_told && settings_.say && waited > std::chrono::duration<double>(settings_.timeout_s)) {
      settings_.say(no_key_frame_words(settings_.path));
      is_told = true;
    }
    if (!knows && waited > kKeyFrameWait)
      throw std::runtime_error("no key frame came for " + std::to_string(kKeyFrameWait.count()) +
                               " s, and the pictures before one cannot be decoded");
    Packet packet(av_packet_alloc());
    if (!packet) throw std::bad_alloc();
    const int status = next_packet(packet.get());
    if (status == AVERROR(EAGAIN)) continue;
    if (status < 0 && knows && !interrupt_.is_asked()) break; // read() will meet it again
    if (status < 0) throw std::runtime_error(loss_words(status));
    first_->take(std::move(packet));
  }
  first_->end();
}

void Input::find_stream() {
  const bool looks_itself = settings_.media == AVMEDIA_TYPE_VIDEO && says_its_streams();
  const int status = looks_itself ? 0 : search_streams();
  if (kind_ == InputKind::address && interrupt_.has_ended()) {
    if (list_ || std::exchange(is_narrow_, true)) throw std::runtime_error(loss_words(status));
    close();
    return open_stream();
  }
  if (settings_.stream >= 0) {
    if (static_cast<unsigned>(settings_.stream) >= format_->nb_streams)
      throw std::invalid_argument("stream " + std::to_string(settings_.stream) + " is not there: it has " +
                                  std::to_string(format_->nb_streams));
    stream_ = format_->streams[settings_.stream];
    if (stream_->codecpar->codec_type != settings_.media)
      throw std::invalid_argument("stream " + std::to_string(settings_.stream) + " is no " + name_of(settings_.media));
  } else {
    const int best = av_find_best_stream(format_, settings_.media, -1, -1, nullptr, 0);
    if (best < 0 && list_ && !list_->failure().empty()) throw std::runtime_error(list_->failure());
    if (best < 0 && status < 0) throw std::runtime_error(open_words(status, interrupt_));
    if (best < 0)
      throw std::runtime_error(std::string("there is no ") + name_of(settings_.media) + " in it" +
                               (others().empty() ? "" : ", only " + others()));
    stream_ = format_->streams[best];
  }
  for (unsigned s = 0; s < format_->nb_streams; ++s)
    if (format_->streams[s] != stream_) format_->streams[s]->discard = AVDISCARD_ALL;
  if (settings_.media != AVMEDIA_TYPE_VIDEO) return;
  if (looks_itself || (status >= 0 && is_live() && !knows_pictures())) read_first_packets();
  check_pictures();
  if (first_ || (is_live() && reads_one_address())) catch_up_.start();
}

void Input::check_pictures() const {
  const AVCodecParameters& said = *stream_->codecpar;
  if (!knows_pictures()) throw std::runtime_error("no picture in it can be decoded");
  if (int64_t{said.width} * said.height > kPixelsMax) throw std::runtime_error(too_large(said.width, said.height));
}

int Input::read(AVPacket* packet) {
  if (!catch_up_.is_under_way()) return next_packet(packet);
  interrupt_.rest_until(catch_up_.due());
  const auto asked = std::chrono::steady_clock::now();
  const bool is_kept = first_ && !first_->is_empty();
  if (is_kept)
    av_packet_move_ref(packet, first_->next().get());
  else if (const int status = next_packet(packet); status < 0)
    return status;
  const auto waited = std::chrono::steady_clock::now() - asked;
  const int64_t time = packet->dts != AV_NOPTS_VALUE ? packet->dts : packet->pts;
  catch_up_.gave(asked, time == AV_NOPTS_VALUE ? INT64_MIN : nanoseconds(time), usual_step_ns());
  if (!is_kept) catch_up_.waited(waited);
  return 0;
}

// The time between two packets; 0: not known.
int64_t Input::usual_step_ns() const {
  if (first_) return first_->step_ns();
  const AVRational by = rate();
  return by.num > 0 ? av_rescale_q(1, av_inv_q(by), kNanoseconds) : 0;
}

// How long the next packet may take.
double Input::patience_s() const {
  const int64_t timeout_ns = std::llround(settings_.timeout_s * 1e9);
  return static_cast<double>(is_live() ? pace_.limit_ns(timeout_ns) : timeout_ns) * 1e-9;
}

int Input::next_packet(AVPacket* packet) {
  for (;;) {
    // FFmpeg gives the packets that it still has before the error, and would then go on reading.
    if (kind_ == InputKind::address && interrupt_.has_ended()) return AVERROR_EXIT;
    interrupt_.allow(kind_ == InputKind::address ? patience_s() : 0);
    if (list_) list_->begin_wait();
    const auto begun = std::chrono::steady_clock::now();
    const int status = av_read_frame(format_, packet);
    if (status == AVERROR_EOF && list_ && list_->next_section(*stream_)) {
      if (!open_section()) return AVERROR(EIO);
      continue;
    }
    if (status < 0) return status;
    const bool is_ours = packet->stream_index == stream_->index;
    const bool has_time = is_ours && packet->pts != AV_NOPTS_VALUE;
    pace_.came(std::chrono::nanoseconds(std::chrono::steady_clock::now() - begun).count(),
               has_time ? av_rescale_q(packet->pts, stream_->time_base, kNanoseconds) : INT64_MIN);
    if (is_ours && list_ && unit_.num != 0) { // else it is being opened
      av_packet_rescale_ts(packet, stream_->time_base, unit_);
      list_->settle(*packet, *stream_, unit_);
      add_header(*packet);
    }
    if (is_ours) return status;
    av_packet_unref(packet);
  }
}

std::string Input::loss_words(int status) const {
  if (interrupt_.is_asked()) return "it was interrupted";
  if (interrupt_.has_ended()) return "nothing came for " + seconds_words(interrupt_.ended_after_ns());
  // FFmpeg's RTSP says -1 where a packet breaks off.
  const bool is_broken = status == -1 || status == AVERROR(EIO) || status == AVERROR(EPIPE);
  if (status == AVERROR_EOF) return "the other side ended it";
  return is_broken ? "the connection broke off" : error_words(status);
}

bool Input::has_index() const { return !(format_->iformat->flags & AVFMT_TS_DISCONT); }

bool Input::seek(int64_t ns) {
  if (kind_ == InputKind::pipe) return false;
  first_.reset();
  catch_up_.stop();
  const int64_t time = av_rescale_q(ns, kNanoseconds, stream_->time_base);
  interrupt_.begin();
  const bool can_seek = !list_ || list_->can_seek();
  if (can_seek && avformat_seek_file(format_, stream_->index, INT64_MIN, time, time, 0) >= 0) {
    if (list_) list_->moved();
    return true;
  }
  if (is_live() || interrupt_.is_asked()) return false;
  // FFmpeg may have read on in search of the place, or gone to another one: the input's position is unknown.
  close();
  open_stream();
  return false;
}

bool Input::ends_are_losses() const {
  const std::string address = format_->url ? format_->url : "";
  return begins_with(address, "rtsp") || begins_with(address, "srt");
}

// False if the format opens addresses itself: lists do, and RTSP.
bool Input::reads_one_address() const {
  const std::string_view name = format_->iformat->name;
  return format_->pb && name != "hls" && name != "dash";
}

bool Input::is_cut_short() const {
  AVIOContext* const io = list_ ? nullptr : io_;
  return io && avio_feof(io) && avio_tell(io) < avio_size(io);
}

bool Input::is_live() const {
  if (list_) return list_->is_live();
  if (kind_ != InputKind::address) return false;
  const std::string address = format_->url ? format_->url : "";
  for (const char* scheme : {"rtsp", "rtmp", "srt", "udp", "rtp", "tcp"})
    if (begins_with(address, scheme)) return true;
  // A file whose length the server says waits, also if the server cannot jump in it.
  return format_->duration == AV_NOPTS_VALUE && !has_length_;
}

AVRational Input::rate() const {
  const AVRational mean = stream_->avg_frame_rate, least = stream_->r_frame_rate;
  const AVRational found = first_ ? first_->rate() : AVRational{0, 1};
  const AVRational said = mean.num > 0 && mean.den > 0 ? mean : found.num > 0 ? found : least;
  const bool usable = said.num > 0 && said.den > 0 && av_q2d(said) <= 1000 && av_q2d(said) >= 0.001;
  return usable ? said : AVRational{0, 1};
}

int64_t Input::duration_ns() const {
  if (list_) return list_->duration_ns(*stream_);
  if (stream_->duration > 0 && stream_->duration != AV_NOPTS_VALUE) return nanoseconds(stream_->duration);
  // The format's duration is that of its longest stream, so it is used only if there is one stream.
  return format_->nb_streams == 1 && format_->duration > 0 ? format_->duration * 1000 : 0;
}

int64_t Input::picture_count(bool& is_exact) const {
  is_exact = stream_->nb_frames > 0;
  if (is_exact) return stream_->nb_frames;
  const AVRational by = rate();
  if (by.num == 0 || duration_ns() <= 0) return 0;
  return std::llround(static_cast<double>(duration_ns()) * 1e-9 * av_q2d(by));
}

int64_t Input::pauses_until_ns() const {
  if (is_live() || kind_ == InputKind::pipe || (format_->iformat->flags & AVFMT_TS_DISCONT)) return INT64_MIN;
  const int64_t said = std::max(duration_ns(), format_->duration > 0 ? format_->duration * 1000 : 0);
  const int64_t begin = std::max<int64_t>(start_ns(), 0);
  return begin + (said > 0 ? said + kPauseSlackNs : kPauseUnsaidNs);
}

int64_t Input::start_ns() const {
  const int64_t kept = first_ ? first_->first_time() : AV_NOPTS_VALUE;
  const int64_t time = kept != AV_NOPTS_VALUE ? kept : stream_->start_time;
  return time == AV_NOPTS_VALUE ? INT64_MIN : nanoseconds(time);
}

int64_t Input::nanoseconds(int64_t time) const { return av_rescale_q(time, unit_, kNanoseconds); }

// The matrix maps a pixel's position to its position on the screen: (x, y) to (a·x + c·y, b·x + d·y), y downwards.
uint32_t Input::turn(bool& is_near) const {
  is_near = false;
  const int32_t* matrix = display_matrix_of(*stream_);
  if (!matrix) return MR_TURN_NONE;
  const int32_t a = matrix[0], b = matrix[1], c = matrix[3], d = matrix[4];
  constexpr int32_t kSmall = 1 << 8; // fixed point: 1.0 is 1 << 16
  if (std::abs(b) < kSmall && std::abs(c) < kSmall) {
    if (a > 0) return d >= 0 ? MR_TURN_NONE : MR_TURN_VERTICAL;
    return d >= 0 ? MR_TURN_HORIZONTAL : MR_TURN_BOTH;
  }
  is_near = std::abs(a) >= kSmall || std::abs(d) >= kSmall;
  if (is_near) return MR_TURN_NONE;
  if (b > 0) return c < 0 ? MR_TURN_ROTATE90 : MR_TURN_TRANSPOSE;
  return c > 0 ? MR_TURN_ROTATE270 : MR_TURN_TRANSVERSE;
}

std::string Input::others() const {
  unsigned sounds = 0, subtitles = 0, videos = 0;
  std::string codec;
  for (unsigned s = 0; s < format_->nb_streams; ++s) {
    const AVStream& stream = *format_->streams[s];
    if (&stream == stream_) continue;
    switch (stream.codecpar->codec_type) {
      case AVMEDIA_TYPE_AUDIO:
        if (sounds++ == 0) codec = avcodec_get_name(stream.codecpar->codec_id);
        break;
      case AVMEDIA_TYPE_SUBTITLE: ++subtitles; break;
      case AVMEDIA_TYPE_VIDEO: ++videos; break;
      default: break;
    }
  }
  std::string words;
  const auto add = [&](const std::string& more) { words += (words.empty() ? "" : ", ") + more; };
  if (sounds > 0) add("sound (" + codec + (sounds > 1 ? ", one of " + std::to_string(sounds) : "") + ")");
  if (subtitles > 0) add("subtitles");
  if (videos > 0) add(stream_ && stream_->codecpar->codec_type == AVMEDIA_TYPE_VIDEO ? "another video" : "video");
  return words;
}

} // namespace millrace::media
