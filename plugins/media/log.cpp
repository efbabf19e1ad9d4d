// One callback for all of FFmpeg; see log.h.
#include "plugins/media/log.h"

#include <cstdarg>
#include <map>

#include "plugins/media/av.h"

extern "C" {
#include <libavutil/log.h>
}

namespace millrace::media {

namespace {

thread_local Log* current = nullptr;

// What is alive and whose it is: a context whose `opaque` is none of them is not ours.
struct Living {
  std::mutex mutex;
  std::map<const void*, Log*> logs;
};
Living& living() {
  static Living* all = new Living; // for ever: FFmpeg may log while the process ends
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

void receive(void* object, int level, const char* format, va_list arguments) {
  if (level > AV_LOG_WARNING) return;
  char line[1024];
  std::vsnprintf(line, sizeof line, format, arguments);
  std::string text = line;
  while (!text.empty() && (text.back() == '\n' || text.back() == '\r' || text.back() == ' ')) text.pop_back();
  if (text.empty()) return;
  const std::lock_guard lock(living().mutex);
  const auto named = living().logs.find(opaque_of(object));
  Log* log = named == living().logs.end() ? current : named->second;
  if (log) log->add(level, text);
}

} // namespace

Log::Log(Say say) : say_(std::move(say)) {
  take_over_log();
  answer_for(this);
}

Log::~Log() { forget(this); }

void Log::answer_for(const void* object) {
  const std::lock_guard lock(living().mutex);
  living().logs[object] = this;
}

void Log::forget(const void* object) {
  const std::lock_guard lock(living().mutex);
  living().logs.erase(object);
}

void Log::add(int av_level, const std::string& line) {
  {
    const std::lock_guard lock(mutex_);
    if (seen_.size() >= kLinesMax || !seen_.insert(line).second) return;
  }
  // A warning of FFmpeg's is seldom one for the person who runs a pipeline: the report has it, the terminal not.
  say_(av_level <= AV_LOG_ERROR ? MR_LOG_INFO : MR_LOG_DEBUG, "FFmpeg: " + line);
}

LogScope::LogScope(Log& log) : before_(current) { current = &log; }
LogScope::~LogScope() { current = before_; }

void take_over_log() { av_log_set_callback(&receive); }

} // namespace millrace::media
