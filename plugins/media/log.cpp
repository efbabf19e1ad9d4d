// The one log callback of FFmpeg; see log.h.
#include "plugins/media/log.h"

#include <algorithm>
#include <cerrno>
#include <cstdarg>
#include <cstdio>
#include <map>
#include <string_view>
#include <utility>

#include "plugins/media/av.h"

extern "C" {
#include <libavutil/log.h>
}

namespace millrace::media {

namespace {

// FFmpeg's own addresses have 4096 bytes at most, and a line may have two.
constexpr size_t kLineBytesMax = 16 * 1024;

thread_local Log* current = nullptr;

// The live objects and the Log of each. A context whose `opaque` is not among them is not ours.
struct Living {
  std::mutex mutex;
  std::map<const void*, Log*> logs;
};
Living& living() {
  static Living* all = new Living; // never freed: FFmpeg may log while the process ends
  return *all;
}

void* opaque_of(void* object) {
  const AVClass* described = object ? *static_cast<const AVClass**>(object) : nullptr;
  if (!described) return nullptr;
  if (described == avcodec_get_class()) return static_cast<AVCodecContext*>(object)->opaque;
  if (described == avformat_get_class()) return static_cast<AVFormatContext*>(object)->opaque;
  if (!described->parent_log_context_offset) return nullptr;
  return opaque_of(*reinterpret_cast<void**>(static_cast<uint8_t*>(object) + described->parent_log_context_offset));
}

// The whole line, up to kLineBytesMax: secrets are found only in an address that is whole (runtime/observe/secrets.h).
std::string line_of(const char* format, va_list arguments) {
  std::string line(kLineBytesMax, '\0');
  const int length = std::vsnprintf(line.data(), line.size(), format, arguments);
  line.resize(length < 0 ? 0 : std::min(static_cast<size_t>(length), line.size() - 1));
  return line;
}

// Replaces FFmpeg's words for an error by ours. False if they are not in the line.
bool put_our_words(int code, std::string& line) {
  char words[AV_ERROR_MAX_STRING_SIZE];
  av_strerror(code, words, sizeof words);
  const std::string_view theirs = words;
  const std::string ours = error_words(code);
  const size_t at = line.find(theirs);
  if (at == line.npos) return false;
  line.replace(at, theirs.size(), ours);
  return true;
}

void receive(void* object, int level, const char* format, va_list arguments) {
  if (level > AV_LOG_WARNING) return;
  std::string text = line_of(format, arguments);
  while (!text.empty() && (text.back() == '\n' || text.back() == '\r' || text.back() == ' ')) text.pop_back();
  if (text.empty()) return;
  Log* log = nullptr;
  {
    const std::lock_guard lock(living().mutex);
    const auto named = living().logs.find(opaque_of(object));
    log = named == living().logs.end() ? current : named->second;
    // Under this lock, so that the destructor of a Log sees that the Log still has to speak.
    if (!log || !log->collect(level, text)) return;
  }
  log->speak();
}

} // namespace

Log::Log(Say say) : say_(std::move(say)) {
  take_over_log();
  answer_for(this);
}

Log::~Log() {
  forget(this);
  std::unique_lock lock(mutex_);
  is_quiet_.wait(lock, [this] { return !is_speaking_; });
}

void Log::answer_for(const void* object) {
  const std::lock_guard lock(living().mutex);
  living().logs[object] = this;
}

void Log::forget(const void* object) {
  const std::lock_guard lock(living().mutex);
  living().logs.erase(object);
}

bool Log::collect(int av_level, const std::string& line) {
  const std::lock_guard lock(mutex_);
  if (seen_.size() >= kLinesMax || !seen_.insert(line).second) return false;
  std::string said = line;
  // A warning of FFmpeg's seldom concerns the user of a pipeline, so it goes to the report and not to the terminal. So
  // do lines about connections and interrupted calls, which our own errors say in words.
  bool is_told = line.starts_with("Connection to ");
  for (const int code : {AVERROR_EXIT, AVERROR(EPERM)}) is_told = put_our_words(code, said) || is_told;
  collected_.emplace_back(av_level <= AV_LOG_ERROR && !is_told ? MR_LOG_INFO : MR_LOG_DEBUG, "FFmpeg: " + said);
  return !std::exchange(is_speaking_, true);
}

std::string Log::find(const std::string& begin) const {
  const std::lock_guard lock(mutex_);
  const auto at = seen_.lower_bound(begin);
  return at != seen_.end() && at->starts_with(begin) ? *at : "";
}

void Log::speak() {
  std::unique_lock lock(mutex_);
  while (!collected_.empty()) {
    const auto [level, sentence] = std::move(collected_.front());
    collected_.pop_front();
    lock.unlock();
    say_(level, sentence);
    lock.lock();
  }
  is_speaking_ = false;
  is_quiet_.notify_all(); // under the lock: once that is released, the Log may be gone
}

LogScope::LogScope(Log& log) : before_(current) { current = &log; }
LogScope::~LogScope() { current = before_; }

void take_over_log() { av_log_set_callback(&receive); }

} // namespace millrace::media
