// Opens and reads what the demuxer asks for; see hls_reader.h.
#include "plugins/media/hls_reader.h"

extern "C" {
#include <libavutil/dict.h>
#include <libavutil/mathematics.h>
#include <libavutil/mem.h>
#include <libavutil/opt.h>
}

#include <algorithm>
#include <charconv>
#include <climits>
#include <cmath>
#include <cstddef>
#include <new>
#include <string_view>
#include <utility>

namespace millrace::media {

namespace {

constexpr int kIoBytes = 1 << 15;                  // as FFmpeg's own
constexpr size_t kListBytesMax = size_t{64} << 20; // a day of segments of a second has 10 MB
constexpr int kResumesMax = 3;                     // a segment that breaks off again and again is not whole
constexpr int64_t kGoneMax = 100'000;              // missing segments at once: a day of segments of a second has fewer
constexpr int64_t kCipherBlock = 16;               // AES fills its last block
constexpr double kTargetUnsaidS = 10;              // RFC 8216 demands that a list says it
constexpr double kSilentTargets = 3, kFarTargets = 5; // a player begins three before the end
constexpr std::chrono::milliseconds kPauseFirst{250}, kPauseMost{5000};

double target_s(const HlsList& list) {
  return list.target_ns > 0 ? static_cast<double>(list.target_ns) * 1e-9 : kTargetUnsaidS;
}

std::string in_words(double seconds) { return seconds_words(std::llround(seconds * 1e9)); }

// FFmpeg names the way before the address: "crypto+http://…", "crypto:file:…".
std::string without_cipher(const std::string& url) {
  for (const std::string_view way : {"crypto+", "crypto:"})
    if (url.starts_with(way)) return url.substr(way.size());
  return url;
}

// The last part of a name, without what a server may take for a secret.
std::string shown(const std::string& name) {
  const std::string path = name.substr(0, name.find_first_of("?#"));
  return path.substr(path.find_last_of('/') + 1);
}

std::string words_of(int status) {
  if (status == AVERROR(ENOENT)) return "there is no such file";
  if (status == AVERROR(ETIMEDOUT) || status == AVERROR_EXIT) return "the server does not answer in time";
  return error_words(status);
}

// True if the same request may be answered later.
bool may_pass(int status) {
  for (const int lasting :
       {AVERROR_HTTP_BAD_REQUEST, AVERROR_HTTP_UNAUTHORIZED, AVERROR_HTTP_FORBIDDEN, AVERROR_HTTP_NOT_FOUND,
        AVERROR_HTTP_OTHER_4XX, AVERROR(ENOENT), AVERROR(EACCES), AVERROR(EISDIR), AVERROR(EINVAL), AVERROR(ENOMEM),
        AVERROR_PROTOCOL_NOT_FOUND, AVERROR_INVALIDDATA})
    if (status == lasting) return false;
  return true;
}

int64_t number_in(AVDictionary* options, const char* name) {
  const AVDictionaryEntry* entry = av_dict_get(options, name, nullptr, 0);
  const std::string_view text = entry ? entry->value : "";
  int64_t number = 0;
  std::from_chars(text.data(), text.data() + text.size(), number);
  return number;
}

std::string text_of(AVIOContext* io, const char* name) {
  uint8_t* value = nullptr;
  if (av_opt_get(io, name, AV_OPT_SEARCH_CHILDREN | AV_OPT_ALLOW_NULL, &value) < 0 || !value) return "";
  const std::string text = reinterpret_cast<const char*>(value);
  av_free(value);
  return text;
}

// The name of a file that FFmpeg has not opened because of its extension; it says so in its log alone.
std::string refused_name(const Log& log) {
  const auto between = [&](const std::string& begin, const std::string& end) {
    const std::string line = log.find(begin);
    const size_t at = line.find(end);
    return at == line.npos ? std::string() : line.substr(begin.size(), at - begin.size());
  };
  const std::string by_list = between("URL ", " is not in allowed");
  return by_list.empty() ? between("Filename extension of '", "' is not a common") : by_list;
}

// The text of a list, as the demuxer reads it. FFmpeg asks a file by options where it lies after redirections, and
// which cookies its server has set.
struct Answers {
  const AVClass* described;
  char* location;
  char* cookies;
};
struct Body : Answers {
  std::string text, where, cookie;
  int64_t at = 0;
};

const AVOption kAnswers[] = {
    {"location", "", offsetof(Answers, location), AV_OPT_TYPE_STRING, {}, 0, 0, AV_OPT_FLAG_DECODING_PARAM, nullptr},
    {"cookies", "", offsetof(Answers, cookies), AV_OPT_TYPE_STRING, {}, 0, 0, AV_OPT_FLAG_DECODING_PARAM, nullptr},
    {nullptr, nullptr, 0, AV_OPT_TYPE_FLAGS, {}, 0, 0, 0, nullptr}};

AVClass class_named(const char* name) {
  AVClass all{};
  all.class_name = name;
  all.item_name = av_default_item_name;
  all.version = LIBAVUTIL_VERSION_INT;
  return all;
}

const AVClass& class_of_answers() {
  static const AVClass described = [] {
    AVClass all = class_named("list");
    all.option = kAnswers;
    return all;
  }();
  return described;
}

const AVClass& class_of_context() {
  static const AVClass described = [] {
    AVClass all = class_named("list file");
    all.child_next = [](void* io, void* before) -> void* {
      return before ? nullptr : static_cast<AVIOContext*>(io)->opaque;
    };
    return all;
  }();
  return described;
}

Body& body_of(void* opaque) { return *static_cast<Body*>(static_cast<Answers*>(opaque)); }

int read_body(void* opaque, uint8_t* buffer, int size) {
  Body& body = body_of(opaque);
  const int64_t count = std::min<int64_t>(size, static_cast<int64_t>(body.text.size()) - body.at);
  if (count <= 0) return AVERROR_EOF;
  std::copy_n(body.text.data() + body.at, count, buffer);
  body.at += count;
  return static_cast<int>(count);
}

int64_t seek_body(void* opaque, int64_t offset, int whence) {
  Body& body = body_of(opaque);
  const auto size = static_cast<int64_t>(body.text.size());
  if (whence == AVSEEK_SIZE) return size;
  const int64_t place = offset + (whence == SEEK_CUR ? body.at : whence == SEEK_END ? size : 0);
  if (place < 0 || place > size) return AVERROR(EINVAL);
  return body.at = place;
}

// True if times begin again in a list whose segments FFmpeg sorts by their times.
bool is_sorted_by_time(const HlsList& list) {
  const auto begins_again = [](const ListSegment& segment) { return segment.is_discontinuous && !segment.map.empty(); };
  return !list.segments.empty() && std::any_of(list.segments.begin() + 1, list.segments.end(), begins_again);
}

AVIOContext* make_context(void* opaque, int (*read)(void*, uint8_t*, int), int64_t (*seek)(void*, int64_t, int)) {
  auto* buffer = static_cast<uint8_t*>(av_malloc(kIoBytes));
  AVIOContext* io = buffer ? avio_alloc_context(buffer, kIoBytes, 0, opaque, read, nullptr, seek) : nullptr;
  if (!io) {
    av_free(buffer);
    throw std::bad_alloc();
  }
  return io;
}

void free_context(AVIOContext* io) {
  av_freep(&io->buffer);
  avio_context_free(&io);
}

AVIOContext* make_body(std::string text, const std::string& location, const std::string& cookies) {
  auto body = std::make_unique<Body>();
  body->text = std::move(text);
  body->where = location;
  body->cookie = cookies;
  body->described = &class_of_answers();
  body->location = body->where.data();
  body->cookies = cookies.empty() ? nullptr : body->cookie.data();
  AVIOContext* io = make_context(static_cast<Answers*>(body.get()), &read_body, &seek_body);
  io->av_class = &class_of_context();
  body.release();
  return io;
}

int read_all(AVIOContext& from, std::string& text) {
  char piece[4096];
  for (;;) {
    const int count = avio_read(&from, reinterpret_cast<unsigned char*>(piece), sizeof piece);
    if (count == AVERROR_EOF || count == 0) return 0;
    if (count < 0) return count;
    text.append(piece, static_cast<size_t>(count));
    if (text.size() > kListBytesMax) return AVERROR(EFBIG);
  }
}

} // namespace

// A segment or a header that is open.
struct HlsReader::File {
  HlsReader* reader = nullptr;
  List* list = nullptr;
  int64_t number = -1; // that the list gives the segment; -1: a header
  std::string url;
  AVDictionary* options = nullptr;
  AVIOContext* inner = nullptr;
  int64_t count = 0;    // bytes that were read
  int64_t expected = 0; // bytes that it has; 0: not known
  int64_t slack = 0;    // bytes of those that a cipher keeps
  int resumes = 0;
  bool is_range = false;

  File() = default;
  File(const File&) = delete;
  File& operator=(const File&) = delete;
  ~File() {
    avio_closep(&inner);
    av_dict_free(&options);
  }
};

HlsReader::HlsReader(const std::string& address, AVIOContext* io, const HlsSettings& settings, Interrupt& interrupt,
                     Log& log)
    : settings_(settings), interrupt_(interrupt), log_(log) {
  List list;
  list.address = address;
  list.grown = Clock::now();
  const int status = load(list, io, master_);
  // FFmpeg lets a list open what its own way allows: a file no address, and an address no file.
  whitelist_ = io->protocol_whitelist ? io->protocol_whitelist : "";
  cookies_ = text_of(io, "cookies");
  avio_closep(&io);
  if (status < 0) throw std::runtime_error(words_of(status));
  is_master_ = list.said.is_master;
  root_ = list.location;
  if (!is_master_) lists_.push_back(std::move(list));
  log_.answer_for(this);
}

void HlsReader::free_first() {
  if (!first_) return;
  const std::unique_ptr<Body> body(&body_of(first_->opaque));
  free_context(std::exchange(first_, nullptr));
}

HlsReader::~HlsReader() {
  log_.forget(this);
  free_first();
}

void HlsReader::attach(AVFormatContext& format, AVDictionary** options) {
  free_first();
  first_ = is_master_ ? make_body(master_, root_, cookies_) : view_of(lists_.front(), master_);
  format_ = &format;
  open_ = format.io_open;
  close_ = format.io_close2;
  format.opaque = this;
  format.io_open = &HlsReader::open;
  format.io_close2 = &HlsReader::close;
  format.protocol_whitelist = av_strdup(whitelist_.c_str());
  format.pb = first_;
  const bool is_later = std::any_of(lists_.begin(), lists_.end(), [](const List& list) { return list.shown >= 0; });
  if (is_later) av_dict_set(options, "live_start_index", "0", 0);
  // A connection for each file, else FFmpeg asks for the next one without io_open.
  av_dict_set(options, "http_persistent", "0", 0);
  av_dict_set(options, "http_multiple", "0", 0);
  // FFmpeg's own limits end a list whose segments are missing, and one that has no new segment.
  av_dict_set_int(options, "max_reload", INT_MAX, 0);
  av_dict_set_int(options, "m3u8_hold_counters", INT_MAX, 0);
  if (!settings_.any_names) return;
  av_dict_set(options, "allowed_extensions", "ALL", 0);
  av_dict_set(options, "allowed_segment_extensions", "ALL", 0);
  av_dict_set(options, "extension_picky", "0", 0);
}

void HlsReader::begin_wait() {
  double most = 0;
  for (const List& list : lists_)
    if (!list.said.is_finished) most = std::max(most, target_s(list.said));
  // A live list has a new segment each `target`, and is asked for at that time or half of it later.
  interrupt_.allow(settings_.timeout_s > 0 ? settings_.timeout_s + 2 * most : 0);
}

bool HlsReader::is_live() const {
  return std::any_of(lists_.begin(), lists_.end(), [](const List& list) { return !list.said.is_finished; });
}

const HlsReader::List* HlsReader::list_of(const AVStream& stream) const {
  const auto index = static_cast<size_t>(std::max(stream.id, 0)); // FFmpeg's own number of the list
  return lists_.empty() ? nullptr : &lists_[index < lists_.size() ? index : 0];
}

HlsReader::List* HlsReader::list_of(const AVStream& stream) {
  return const_cast<List*>(std::as_const(*this).list_of(stream));
}

std::vector<MissingSegment> HlsReader::take_missing(const AVStream& stream) {
  List* const list = list_of(stream);
  return list ? std::exchange(list->missing, {}) : std::vector<MissingSegment>();
}

int64_t HlsReader::duration_ns(const AVStream& stream) const {
  const List* list = list_of(stream);
  return list && list->said.is_finished ? list->said.duration_ns() : 0;
}

int64_t HlsReader::segment_count(const AVStream& stream) const {
  const List* list = list_of(stream);
  return list ? static_cast<int64_t>(list->said.segments.size()) : 0;
}

bool HlsReader::can_seek() const {
  for (const List& list : lists_)
    for (const ListSegment& segment : list.said.segments)
      if (segment.is_discontinuous && &segment != &list.said.segments.front()) return false;
  return true;
}

void HlsReader::moved() {
  for (List& list : lists_) {
    list.opened = -1;
    list.begin = list.count = list.header_count = 0;
    list.sections.clear();
  }
}

bool HlsReader::next_section(const AVStream& stream) {
  List* const chosen = list_of(stream);
  if (!failure_.empty() || !chosen || chosen->opened < 0) return false;
  const int64_t next = chosen->said.section_end(chosen->opened);
  if (!is_sorted_by_time(chosen->said) || next >= chosen->said.end()) return false;
  // Lists of one film have their breaks at the same segments.
  for (List& list : lists_) {
    list.shown = std::clamp(next, list.said.first, list.said.end());
    list.begin = list.count = list.header_count = 0;
    list.sections.clear();
  }
  return true;
}

void HlsReader::settle(AVPacket& packet, const AVStream& stream, AVRational unit) {
  List* const list = list_of(stream);
  if (!list || packet.pts == AV_NOPTS_VALUE) return;
  const bool is_near = !list->sections.empty();
  while (!list->sections.empty() && packet.pos >= list->sections.front().begin) {
    list->gap_ns += list->sections.front().gap_ns;
    list->is_new_section = true;
    list->sections.pop_front();
  }
  // Counters of the container begin again there, which is no damage.
  if (is_near) packet.flags &= ~AV_PKT_FLAG_CORRUPT;
  if (list->is_new_section && list->reached != AV_NOPTS_VALUE) {
    const int64_t gap = av_rescale_q(std::exchange(list->gap_ns, 0), kNanoseconds, unit);
    list->shift = list->reached + gap - packet.pts;
  }
  list->is_new_section = false;
  packet.pts += list->shift;
  if (packet.dts != AV_NOPTS_VALUE) packet.dts += list->shift;
  const AVRational rate = stream.avg_frame_rate;
  const int64_t period = rate.num > 0 && rate.den > 0 ? av_rescale_q(1, av_inv_q(rate), unit) : 0;
  const int64_t end = packet.pts + (packet.duration > 0 ? packet.duration : period);
  if (list->reached == AV_NOPTS_VALUE || end > list->reached) list->reached = end;
}

bool HlsReader::is_far_ahead(const AVStream& stream) const {
  const List* const list = list_of(stream);
  if (!list || list->said.is_finished || list->opened < 0) return false;
  double ahead_s = 0;
  for (int64_t number = std::max(list->opened + 1, list->said.first); number < list->said.end(); ++number)
    ahead_s += static_cast<double>(segment(*list, number)->duration_ns) * 1e-9;
  return ahead_s > kFarTargets * target_s(list->said);
}

void HlsReader::record_end(const AVStream& stream) {
  List* const list = list_of(stream);
  if (!list || !list->said.is_finished || list->opened < 0) return;
  for (int64_t number = list->opened + 1; number < list->said.end(); ++number)
    lose(*list, number, "it was not read", "its");
  list->opened = list->said.end() - 1;
}

std::string HlsReader::words_for_refusal(const std::string& words) const {
  if (!failure_.empty()) return failure_;
  if (const std::string name = refused_name(log_); !name.empty() && !settings_.any_names)
    return "FFmpeg refuses a file of the list for its extension, which is no film's ('" + shown(name) +
           "'); `any_names=true` opens files of any name";
  for (const List& list : lists_)
    if (!list.missing.empty()) return list.missing.front().words;
  return words;
}

// ---- what the demuxer calls

int HlsReader::open(AVFormatContext* format, AVIOContext** io, const char* url, int, AVDictionary** options) {
  try {
    return static_cast<HlsReader*>(format->opaque)->open(io, url, options ? *options : nullptr);
  } catch (const std::exception&) { // no memory
    return AVERROR(ENOMEM);
  }
}

int HlsReader::close(AVFormatContext* format, AVIOContext* io) {
  HlsReader& self = *static_cast<HlsReader*>(format->opaque);
  if (self.bodies_.erase(io) > 0)
    const std::unique_ptr<Body> body(&body_of(io->opaque));
  else if (self.files_.erase(io) > 0)
    const std::unique_ptr<File> file(static_cast<File*>(io->opaque));
  else
    return self.close_(format, io);
  free_context(io);
  return 0;
}

int HlsReader::read_file(void* opaque, uint8_t* buffer, int size) {
  File& file = *static_cast<File*>(opaque);
  try {
    return file.reader->read(file, buffer, size);
  } catch (const std::exception&) {
    return AVERROR(ENOMEM);
  }
}

int64_t HlsReader::seek_file(void* opaque, int64_t offset, int whence) {
  File& file = *static_cast<File*>(opaque);
  if (whence == AVSEEK_SIZE) return avio_size(file.inner);
  file.count = 0; // a range of a local file begins here
  return avio_seek(file.inner, offset, whence);
}

// ---- opening

int64_t HlsReader::number_of(const List& list, const std::string& url, int64_t offset) const {
  const auto is_it = [&](int64_t number) {
    const ListSegment* of = segment(list, number);
    return of && of->offset == offset && whole_address(list.location, of->name) == url;
  };
  // A list may name one file several times.
  for (int64_t number = std::max(list.opened + 1, list.said.first); number < list.said.end(); ++number)
    if (is_it(number)) return number;
  for (int64_t number = list.said.first; number <= list.opened; ++number)
    if (is_it(number)) return number;
  return -1;
}

int HlsReader::open(AVIOContext** io, const std::string& url, AVDictionary* options) {
  const std::string plain = without_cipher(url);
  const int64_t offset = number_in(options, "offset");
  for (List& list : lists_)
    if (const int64_t number = number_of(list, plain, offset); number >= 0)
      return open_segment(io, list, number, url, options);
  for (List& list : lists_)
    for (const ListSegment& segment : list.said.segments) {
      if (!segment.key.empty() && whole_address(list.location, segment.key) == plain) {
        const int status = open_bytes(io, url, options, shown(segment.key));
        if (status >= 0) keys_.insert(segment.key);
        if (status < 0 && failure_.empty())
          failure_ = "the key of its segments, '" + shown(segment.key) + "', cannot be read: " + words_of(status);
        return status;
      }
      if (segment.map.empty() || whole_address(list.location, segment.map) != plain) continue;
      auto file = std::make_unique<File>();
      file->list = &list;
      file->url = url;
      file->expected = segment.map_size;
      file->is_range = segment.map_size > 0;
      av_dict_copy(&file->options, options, 0);
      const int status = open_bytes(&file->inner, url, options, shown(segment.map));
      if (status >= 0) return open_file(io, std::move(file));
      if (failure_.empty())
        failure_ = "the header of its segments, '" + shown(segment.map) + "', cannot be read: " + words_of(status);
      return status;
    }
  return open_list(io, url, options);
}

int HlsReader::open_once(AVIOContext** io, const std::string& url, AVDictionary* options) {
  AVDictionary* own = nullptr; // each attempt takes what it uses
  av_dict_copy(&own, options, 0);
  if (settings_.timeout_s > 0 && url.find("http") != url.npos)
    av_dict_set_int(&own, "rw_timeout", std::llround(settings_.timeout_s * 1e6), 0);
  begin_wait();
  const int status = open_(format_, io, url.c_str(), AVIO_FLAG_READ, &own);
  av_dict_free(&own);
  return status;
}

int HlsReader::open_bytes(AVIOContext** io, const std::string& url, AVDictionary* options, const std::string& name) {
  if (!failure_.empty()) return AVERROR(EIO);
  for (;;) {
    const int status = open_once(io, url, options);
    if (status >= 0) {
      answered();
      return status;
    }
    if (interrupt_.is_asked()) return AVERROR_EXIT;
    if (!waits_again(status, words_of(status), name)) return status;
  }
}

int HlsReader::open_segment(AVIOContext** io, List& list, int64_t number, const std::string& url,
                            AVDictionary* options) {
  const ListSegment& said = *segment(list, number);
  auto file = std::make_unique<File>();
  file->list = &list;
  file->number = number;
  file->url = url;
  file->is_range = said.size > 0;
  av_dict_copy(&file->options, options, 0);
  const bool is_locked = !said.key.empty();
  // FFmpeg goes on with a key of zeros.
  if (is_locked && !keys_.contains(said.key) && failure_.empty())
    failure_ = "FFmpeg does not open the key of its segments, '" + shown(said.key) + "'" +
               (settings_.any_names ? "" : ", for its name; `any_names=true` opens files of any name");
  const int status = open_bytes(&file->inner, url, options, shown(said.name));
  if (status < 0) {
    if (failure_.empty() && !interrupt_.is_asked()) lose(list, number, words_of(status), "its");
    return status;
  }
  record_opened(list, number);
  const int64_t size = said.size > 0 ? said.size : avio_size(file->inner);
  file->expected = std::max<int64_t>(size, 0);
  file->slack = is_locked ? kCipherBlock : 0;
  return open_file(io, std::move(file));
}

int HlsReader::open_file(AVIOContext** io, std::unique_ptr<File> file) {
  file->reader = this;
  *io = make_context(file.get(), &read_file, &seek_file);
  (*io)->seekable = file->inner->seekable;
  file.release();
  files_.insert(*io);
  return 0;
}

int HlsReader::open_list(AVIOContext** io, const std::string& url, AVDictionary* options) {
  const auto is_it = [&](const List& list) { return list.address == url || list.location == url; };
  auto known = std::find_if(lists_.begin(), lists_.end(), is_it);
  if (known == lists_.end() && !is_master_ && !lists_.empty()) known = lists_.begin();
  if (known == lists_.end()) {
    lists_.emplace_back(); // also one that cannot be loaded has a number
    lists_.back().address = url;
    lists_.back().grown = Clock::now();
    lists_.back().said.is_finished = true; // until it says otherwise
    known = lists_.end() - 1;
  }
  for (;;) {
    AVIOContext* from = nullptr;
    int status = failure_.empty() ? open_once(&from, url, options) : AVERROR(EIO);
    if (status >= 0) {
      std::string text;
      status = load(*known, from, text);
      if (status >= 0) *io = view_of(*known, text);
      close_(format_, from);
    }
    if (status >= 0) {
      answered();
      bodies_.insert(*io);
      return status;
    }
    if (interrupt_.is_asked()) return AVERROR_EXIT;
    if (!failure_.empty() || begins_again_) return status;
    const bool is_gone = !may_pass(status) && is_open_; // a list that was there may come again
    if (!waits_again(is_gone ? AVERROR(EIO) : status, words_of(status), shown(url))) {
      if (is_open_) failure_ = "the live list cannot be read any more: " + words_of(status);
      return status;
    }
  }
}

// Reads a list and its text.
int HlsReader::load(List& list, AVIOContext* from, std::string& text) {
  if (const int status = read_all(*from, text); status < 0) return status;
  list.location = text_of(from, "location");
  if (list.location.empty()) list.location = list.address;
  return look_at(list, read_hls_list(text));
}

// The list as the demuxer is to see it.
AVIOContext* HlsReader::view_of(const List& list, const std::string& text) const {
  if (list.shown < 0 && !is_sorted_by_time(list.said)) return make_body(text, list.location, cookies_);
  const int64_t begin = std::max(list.shown, list.said.first), end = list.said.section_end(begin);
  const bool is_finished = list.said.is_finished || end < list.said.end();
  return make_body(write_hls_list(list.said, begin, end, is_finished), list.location, cookies_);
}

int HlsReader::look_at(List& list, HlsList said) {
  const auto now = Clock::now();
  const bool is_first = list.said.segments.empty();
  if (!is_first && said.end() < list.said.first) {
    begins_again_ = true;
    return AVERROR_EOF; // FFmpeg gives what its parser holds
  }
  const bool has_grown = said.end() > list.said.end() || said.is_finished;
  const bool is_older = said.end() < list.said.end(); // from a server between, which keeps lists for a while
  if (!is_older || said.is_finished) list.said = std::move(said);
  list.was_live = list.was_live || !list.said.is_finished;
  if (is_first || has_grown) {
    list.grown = now;
    list.is_told = false;
    return 0;
  }
  const std::chrono::duration<double> silent = now - list.grown;
  const double most = kSilentTargets * target_s(list.said);
  if (silent.count() <= most) return 0;
  const std::string words = "no new segment for " + in_words(silent.count());
  if (!std::exchange(list.is_told, true) && settings_.say)
    settings_.say("the live list '" + list.address + "' has stopped: it has had " + words);
  if (silent.count() <= most + settings_.retry_s) return 0;
  failure_ = "the live list has stopped: " + words;
  return AVERROR(EIO);
}

// ---- a server that has gone

// Waits a little, and tells it once. False if it was long enough.
bool HlsReader::waits_again(int status, const std::string& why, const std::string& name) {
  if (!is_open_ || settings_.retry_s <= 0 || !may_pass(status)) return false;
  const auto now = Clock::now();
  if (!away_since_) {
    away_since_ = now;
    pause_ = kPauseFirst;
    if (settings_.say) settings_.say("the connection for '" + name + "' is lost (" + why + ") and is opened again");
  }
  if (now - *away_since_ + pause_ > std::chrono::duration<double>(settings_.retry_s)) {
    failure_ = "the connection is lost and does not come back: " + why;
    return false;
  }
  if (!interrupt_.rest_until(now + pause_)) return false;
  pause_ = std::min<Clock::duration>(pause_ * 2, kPauseMost);
  return true;
}

void HlsReader::answered() {
  if (away_since_) ++returns_;
  away_since_.reset();
}

// ---- reading

int HlsReader::read(File& file, uint8_t* buffer, int size) {
  begin_wait();
  while (file.inner) {
    const int count = avio_read_partial(file.inner, buffer, size);
    if (count > 0) {
      file.count += count;
      const int64_t most = file.is_range ? file.expected : INT64_MAX;
      if (file.number < 0)
        file.list->header_count = std::min(file.count, most);
      else if (file.number == file.list->opened)
        file.list->count = std::min(file.count, most);
      return count;
    }
    if (interrupt_.is_asked()) return AVERROR_EXIT;
    const bool is_whole = file.count > 0 && file.count >= file.expected - file.slack;
    if (file.number < 0 || is_whole) return count == 0 ? AVERROR_EOF : count;
    if (resume(file, count)) continue;
    if (!failure_.empty() || interrupt_.is_asked()) return AVERROR_EOF;
    const std::string why =
        count == 0 || count == AVERROR_EOF || count == AVERROR(EIO) ? "" : " (" + words_of(count) + ")";
    if (file.count == 0)
      lose(*file.list, file.number, "it is empty" + why, "its");
    else
      lose(
          *file.list, file.number,
          "it breaks off after " + std::to_string(file.count) + " of " + std::to_string(file.expected) + " bytes" + why,
          "the rest of its");
    return AVERROR_EOF;
  }
  return AVERROR_EOF;
}

// Opens a segment again that broke off, at the same byte.
bool HlsReader::resume(File& file, int status) {
  const bool is_empty = file.count == 0 && file.expected == 0;
  if (settings_.timeout_s <= 0 || is_empty || file.resumes++ >= kResumesMax) return false;
  const std::string name = shown(segment(*file.list, file.number) ? segment(*file.list, file.number)->name : file.url);
  avio_closep(&file.inner);
  // FFmpeg says EIO if fewer bytes came than the server had said.
  const bool is_short = status == 0 || status == AVERROR_EOF || status == AVERROR(EIO);
  const bool is_asked_again = waits_again(AVERROR(EIO), is_short ? "it broke off" : words_of(status), name) &&
                              open_bytes(&file.inner, file.url, file.options, name) >= 0;
  return is_asked_again && avio_skip(file.inner, file.count) >= 0;
}

// ---- what is missing

const ListSegment* HlsReader::segment(const List& list, int64_t number) const {
  const int64_t index = number - list.said.first;
  return index >= 0 && number < list.said.end() ? &list.said.segments[static_cast<size_t>(index)] : nullptr;
}

void HlsReader::record_opened(List& list, int64_t number) {
  if (list.opened >= 0 && number > list.opened) {
    Section section{list.begin + list.count + std::exchange(list.header_count, 0), 0};
    bool is_new = segment(list, number)->is_discontinuous;
    for (int64_t between = std::max(list.opened + 1, number - kGoneMax); between < number; ++between) {
      lose(list, between, segment(list, between) ? "it was not read" : "it left the list before it was read", "its");
      const ListSegment* skipped = segment(list, between);
      is_new = is_new || (skipped && skipped->is_discontinuous);
      section.gap_ns += skipped ? skipped->duration_ns : 0;
    }
    list.begin = section.begin;
    list.count = 0;
    if (is_new) list.sections.push_back(section);
  }
  list.opened = number;
}

std::string HlsReader::place_of(const List& list, int64_t number) const {
  const ListSegment* of = segment(list, number);
  const std::string name = of ? ", '" + shown(of->name) + "'" : std::string();
  if (list.was_live) return "segment " + std::to_string(number) + name;
  return "segment " + std::to_string(number - list.said.first + 1) + " of " +
         std::to_string(list.said.segments.size()) + name;
}

void HlsReader::lose(List& list, int64_t number, const std::string& why, const std::string& what) {
  if (list.gone.size() >= static_cast<size_t>(kGoneMax)) list.gone.erase(list.gone.begin());
  if (!list.gone.insert(number).second || list.missing.size() >= static_cast<size_t>(kGoneMax)) return;
  const ListSegment* of = segment(list, number);
  const double lasts_s = of ? static_cast<double>(of->duration_ns) * 1e-9 : target_s(list.said);
  list.missing.push_back({place_of(list, number) + ": " + why + "; " + what + " " + in_words(lasts_s) +
                              (what == "its" ? " of pictures are missing" : " is missing"),
                          of ? of->duration_ns : 0});
}

} // namespace millrace::media
