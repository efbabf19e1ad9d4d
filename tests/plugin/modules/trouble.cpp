// A plugin that does what a plugin should not: the function `in` hangs, crashes or ends the process, at tick `at`. Or
// process fails, once.
#include <millrace/handler.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>

namespace mr = millrace;

namespace {

// Uses up the stack; the compiler is not to see through it.
__attribute__((noinline)) int deeper(volatile char* caller, int depth) {
  volatile char room[65536];
  room[0] = caller[0];
  return depth == 0 ? room[0] : deeper(room, depth - 1) + room[1];
}

struct Bad final : mr::Handler {
  mr::Input<mr::Image> video{*this, "video"};
  mr::Output<mr::Image> out{*this, "video", mr::like(video)};
  mr::Param<std::string> in{*this, "in", "process", "the function that does it"};
  mr::Param<std::string> does{*this, "does", "nothing",
                              "hang, segv, abort, fpe, stack, exit, fail (once), fails, overrun, before"};
  mr::Param<int> at{*this, "at", 3, "the tick on which process does it", mr::at_least(0)};

  bool has_failed = false;

  void act(const char* function) {
    if (*in != function) return;
    if (*does == "hang")
      for (;;) pause();
    volatile uintptr_t nowhere = 8;
    if (*does == "segv") *reinterpret_cast<volatile int*>(nowhere) = 1;
    if (*does == "abort") std::abort();
    if (*does == "fpe") raise(SIGFPE);
    volatile char start = 0;
    if (*does == "stack") deeper(&start, 1 << 20);
    if (*does == "exit") std::exit(0);
    if (*does == "fails") throw std::runtime_error("told to fail");
  }
  void probe(mr::Facts&) override { act("probe"); }
  void configure(const mr::Formats&) override { act("configure"); }
  void start() override { act("start"); }
  void drain() override { act("drain"); }
  void stop() override { act("stop"); }
  void process(mr::Tick& tick, mr::Cpu&) {
    const auto index = static_cast<int64_t>(tick.index());
    if (index == at || (*does == "fails" && index > at)) act("process");
    if (*does == "fail" && index >= at && !std::exchange(has_failed, true)) throw std::runtime_error("told to fail");
    const mr::ImageView from = video(tick);
    const mr::ImageSpan to = out.allocate_like(tick, from);
    const size_t row = size_t{from.width()} * mr::bytes_per_pixel(from.pixel());
    for (uint32_t y = 0; y < from.height(); ++y) std::memcpy(to.row(y), from.row(y), row);
    if (*does == "overrun") std::memset(to.row(0), 7, size_t{to.stride()} * (to.height() + 4));
    if (*does == "before") std::memset(to.row(0) - 512, 7, 64);
  }
};

// Its live parameter is a file that only its own node can judge.
struct Reads final : mr::Handler {
  mr::Input<mr::Image> video{*this, "video"};
  mr::Output<mr::Image> out{*this, "video", mr::forward(video)};
  mr::Param<std::string> font{*this, "font", "", "a file that it would read", mr::reads_path, mr::live};
  void process(mr::Tick& tick, mr::Cpu&) { out.forward(tick, video); }
};

} // namespace

MILLRACE_HANDLER(Bad, "trouble.bad", "Does what a handler should not")
MILLRACE_HANDLER(Reads, "trouble.reads", "Would read a file")
MILLRACE_PLUGIN("trouble", "1.0.0")
