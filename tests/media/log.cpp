// FFmpeg's log: each line reaches the handler that it is of, once, and nobody else and no terminal. ctest runs these in
// a process of their own, into which no plugin is loaded.
#include "plugins/media/log.h"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <unistd.h>

extern "C" {
#include <libavutil/log.h>
}

#include <chrono>
#include <future>
#include <memory>
#include <mutex>
#include <semaphore>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "plugins/media/av.h"
#include "tests/file_bytes.h"
#include "tests/media/plugin.h"

namespace millrace::media {
namespace {

// A handler that listens.
struct Listener {
  std::vector<std::pair<uint32_t, std::string>> lines;
  Log log{[this](uint32_t level, const std::string& sentence) { lines.emplace_back(level, sentence); }};
};
using Lines = std::vector<std::pair<uint32_t, std::string>>;

Codec codec_of(void* opaque) {
  Codec codec(avcodec_alloc_context3(nullptr));
  codec->opaque = opaque;
  return codec;
}

} // namespace

TEST_CASE("a line reaches the handler whose context it is of, once, an error to be seen and a warning for the report") {
  Listener mine, other;
  const Codec codec = codec_of(&mine.log);
  for (int i = 0; i < 3; ++i) {
    av_log(codec.get(), AV_LOG_ERROR, "block %d is bad\n", 7);
    av_log(codec.get(), AV_LOG_WARNING, "odd size\n");
  }
  CHECK(mine.lines == Lines{{MR_LOG_INFO, "FFmpeg: block 7 is bad"}, {MR_LOG_DEBUG, "FFmpeg: odd size"}});
  CHECK(other.lines.empty());
}

TEST_CASE("an interruption and a refusal without a reason are in our words, and for the report") {
  Listener mine;
  const Codec codec = codec_of(&mine.log);
  for (const int code : {AVERROR_EXIT, -1}) {
    char theirs[AV_ERROR_MAX_STRING_SIZE];
    av_strerror(code, theirs, sizeof theirs);
    av_log(codec.get(), AV_LOG_ERROR, "segment 7: %s\n", theirs);
  }
  CHECK(mine.lines == Lines{{MR_LOG_DEBUG, "FFmpeg: segment 7: it was interrupted"},
                            {MR_LOG_DEBUG, "FFmpeg: segment 7: FFmpeg says no reason"}});
}

TEST_CASE("what is less than a warning is dropped, and so are empty lines") {
  Listener mine;
  const Codec codec = codec_of(&mine.log);
  for (const int level : {AV_LOG_INFO, AV_LOG_VERBOSE, AV_LOG_DEBUG}) av_log(codec.get(), level, "chatter\n");
  av_log(codec.get(), AV_LOG_ERROR, " \r\n");
  CHECK(mine.lines.empty());
}

TEST_CASE("a line of a context that is nobody's reaches nobody, and one of no context the handler at work") {
  Listener mine;
  int somebody = 0;
  const Codec foreign = codec_of(&somebody);
  av_log(foreign.get(), AV_LOG_ERROR, "of another library\n");
  av_log(nullptr, AV_LOG_ERROR, "of nobody\n");
  CHECK(mine.lines.empty());
  {
    const LogScope scope(mine.log);
    av_log(nullptr, AV_LOG_ERROR, "of my work\n");
    std::thread([] { av_log(nullptr, AV_LOG_ERROR, "of another thread\n"); }).join();
  }
  av_log(nullptr, AV_LOG_ERROR, "after it\n");
  CHECK(mine.lines == Lines{{MR_LOG_INFO, "FFmpeg: of my work"}});
}

TEST_CASE("work within work belongs to the inner handler until that is done, and a context to its own always") {
  Listener outer, inner;
  const Codec codec = codec_of(&outer.log);
  {
    const LogScope first(outer.log);
    {
      const LogScope second(inner.log);
      av_log(nullptr, AV_LOG_ERROR, "inside\n");
      av_log(codec.get(), AV_LOG_ERROR, "of the outer one's codec\n");
    }
    av_log(nullptr, AV_LOG_ERROR, "outside again\n");
  }
  CHECK(inner.lines == Lines{{MR_LOG_INFO, "FFmpeg: inside"}});
  CHECK(outer.lines ==
        Lines{{MR_LOG_INFO, "FFmpeg: of the outer one's codec"}, {MR_LOG_INFO, "FFmpeg: outside again"}});
}

TEST_CASE("a log answers for an object until it forgets it, and for nothing once it is gone") {
  Listener mine;
  int decoder = 0;
  const Codec codec = codec_of(&decoder);
  mine.log.answer_for(&decoder);
  av_log(codec.get(), AV_LOG_ERROR, "known\n");
  mine.log.forget(&decoder);
  av_log(codec.get(), AV_LOG_ERROR, "forgotten\n");
  CHECK(mine.lines == Lines{{MR_LOG_INFO, "FFmpeg: known"}});

  auto brief = std::make_unique<Listener>();
  const Codec orphan = codec_of(&brief->log);
  brief.reset();
  av_log(orphan.get(), AV_LOG_ERROR, "too late\n");
  CHECK(mine.lines.size() == 1);
}

TEST_CASE("a damaged file's thousand different lines are at most a few dozen") {
  Listener mine;
  const Codec codec = codec_of(&mine.log);
  for (int i = 0; i < 1000; ++i) av_log(codec.get(), AV_LOG_ERROR, "block %d is bad\n", i);
  CHECK(mine.lines.size() >= 10);
  CHECK(mine.lines.size() <= 64);
}

TEST_CASE("lines of many threads at once each come once") {
  std::mutex mutex;
  std::vector<std::string> lines;
  Log log([&](uint32_t, const std::string& sentence) {
    const std::lock_guard lock(mutex);
    lines.push_back(sentence);
  });
  const Codec codec = codec_of(&log);
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&] {
      for (int i = 0; i < 200; ++i) av_log(codec.get(), AV_LOG_ERROR, "line %d\n", i % 20);
    });
  for (std::thread& thread : threads) thread.join();
  CHECK(lines.size() == 20);
}

// A handler whose terminal is stopped: it begins to say a line and does not come back until it is let go.
struct Stopped {
  std::counting_semaphore<> begun{0}, go_on{0};
  std::mutex mutex;
  std::vector<std::string> lines;
  std::unique_ptr<Log> log = std::make_unique<Log>([this](uint32_t, const std::string& sentence) {
    begun.release();
    go_on.acquire();
    const std::lock_guard lock(mutex);
    lines.push_back(sentence);
  });
  std::vector<std::string> said() {
    const std::lock_guard lock(mutex);
    return lines;
  }
};

// A thread of FFmpeg's that logs one line; ready once av_log() has returned.
std::future<void> logged(const Codec& codec, const char* line) {
  return std::async(std::launch::async, [&codec, line] { av_log(codec.get(), AV_LOG_ERROR, "%s\n", line); });
}
bool returns(const std::future<void>& call) {
  return call.wait_for(std::chrono::seconds(20)) == std::future_status::ready;
}

TEST_CASE("a handler that cannot speak holds up no thread of another handler, and none of its own but the first") {
  Stopped stopped;
  Listener other;
  const Codec of_stopped = codec_of(stopped.log.get()), of_other = codec_of(&other.log);
  const std::future<void> first = logged(of_stopped, "first");
  stopped.begun.acquire();
  const std::future<void> of_another = logged(of_other, "of another"), second = logged(of_stopped, "second");
  const bool is_free = returns(of_another) && returns(second);
  const bool is_silent = stopped.said().empty();
  stopped.go_on.release(2);
  CHECK(is_free);
  CHECK(is_silent);
  CHECK(other.lines == Lines{{MR_LOG_INFO, "FFmpeg: of another"}});
  first.wait();
  CHECK(stopped.said() == std::vector<std::string>{"FFmpeg: first", "FFmpeg: second"});
}

TEST_CASE("a log that goes while it speaks says its lines first") {
  Stopped stopped;
  const Codec codec = codec_of(stopped.log.get());
  const std::future<void> first = logged(codec, "first");
  stopped.begun.acquire();
  std::promise<void> is_gone;
  const std::future<void> gone = is_gone.get_future();
  std::thread end([&] {
    stopped.log.reset();
    is_gone.set_value();
  });
  logged(codec, "second").wait(); // before or after the log has let go of the codec: said or dropped, and no fault
  const bool waits = gone.wait_for(std::chrono::seconds(0)) == std::future_status::timeout;
  stopped.go_on.release(2);
  end.join();
  CHECK(waits);
  CHECK(stopped.said().at(0) == "FFmpeg: first");
}

TEST_CASE("nothing of FFmpeg's log is written to the terminal") {
  const std::string path = scratch("log-terminal");
  const Listener mine;
  const int before = dup(STDERR_FILENO), file = open(path.c_str(), O_WRONLY | O_CREAT, 0600);
  REQUIRE(before >= 0);
  REQUIRE(file >= 0);
  dup2(file, STDERR_FILENO);
  av_log(nullptr, AV_LOG_ERROR, "of nobody\n");
  av_log(nullptr, AV_LOG_FATAL, "of nobody either\n");
  dup2(before, STDERR_FILENO);
  close(before);
  close(file);
  CHECK(bytes_of(path).empty());
}

} // namespace millrace::media
