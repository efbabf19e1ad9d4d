// Handles the signals that end the process; see crash_report.h. The handler reads only atomics and data of its own
// thread.
#include "embed/crash_report.h"

#include <unistd.h>

#include <array>
#include <atomic>
#include <csignal>
#include <cstdlib>
#include <cstring>

#include "observe/terminal_line.h"
#include "plugin/under_way.h"

namespace millrace::embed {

namespace {

struct Fatal {
  int number;
  const char* words; // strsignal() may allocate
};
constexpr std::array kFatal = {Fatal{SIGSEGV, "Segmentation fault"}, Fatal{SIGBUS, "Bus error"},
                               Fatal{SIGFPE, "Floating point exception"}, Fatal{SIGILL, "Illegal instruction"},
                               Fatal{SIGABRT, "Aborted"}};

std::array<struct sigaction, kFatal.size()> before;
std::atomic<int> alive{0};
std::atomic<bool> told{false}; // abort() in another handler of SIGSEGV is the same crash

// A line that is put together without allocating.
class Line {
 public:
  Line& operator<<(const char* text) {
    for (; *text && size_ + 1 < sizeof text_; ++text) text_[size_++] = *text;
    return *this;
  }
  Line& operator<<(uint64_t number) {
    char digits[21] = {};
    char* at = digits + sizeof digits - 1;
    do {
      *--at = static_cast<char>('0' + number % 10);
      number /= 10;
    } while (number > 0);
    return *this << at;
  }
  void write_out() {
    text_[size_++] = '\n';
    if (::write(STDERR_FILENO, text_, size_) < 0) return; // there is no stderr to report to
  }

 private:
  char text_[512];
  size_t size_ = 0;
};

void begin_line(Line& line) {
  if (terminal_line_is_open.exchange(false)) line << kClearLine;
}

// "blur (image.blur) in process of tick 17"
void add_name(Line& line, const plugin::CallName& call) {
  line << call.handler << " (" << call.type << ") in " << call.function;
  if (call.tick != plugin::CallName::kNoTick) line << " of tick " << call.tick;
}

void on_crash(int number, siginfo_t* info, void*) {
  size_t which = 0;
  while (which + 1 < kFatal.size() && kFatal[which].number != number) ++which;
  if (!told.exchange(true)) {
    Line line;
    begin_line(line);
    line << "error MR0608: ";
    if (const plugin::CallName call = plugin::under_way.name(); call.handler)
      add_name(line, call);
    else
      line << "the process, on a thread that is in no call of a handler,";
    line << " died: " << kFatal[which].words;
    line.write_out();
  }
  sigaction(number, &before[which], nullptr);
  if (info->si_code <= 0) raise(number); // it was sent; else the faulting instruction runs again when this returns
}

// Reports a plugin that calls exit(): that looks like success, and the run would be over without a word.
void on_exit() {
  if (alive.load() == 0) return;
  const plugin::CallName call = plugin::under_way.name();
  if (!call.handler) return;
  Line line;
  begin_line(line);
  line << "error MR0609: ";
  add_name(line, call);
  line << " ended the process by exit()";
  line.write_out();
  _exit(EXIT_FAILURE);
}

} // namespace

CrashReport::CrashReport() {
  if (alive.fetch_add(1) > 0) return;
  static const int registered = std::atexit(&on_exit); // once, because it cannot be unregistered
  (void)registered;
  struct sigaction action {};
  action.sa_sigaction = &on_crash;
  action.sa_flags = SA_SIGINFO | SA_ONSTACK;
  for (size_t i = 0; i < kFatal.size(); ++i) sigaction(kFatal[i].number, &action, &before[i]);
}

CrashReport::~CrashReport() {
  if (alive.fetch_sub(1) > 1) return;
  for (size_t i = 0; i < kFatal.size(); ++i) {
    struct sigaction now {};
    sigaction(kFatal[i].number, nullptr, &now);
    const bool ours = (now.sa_flags & SA_SIGINFO) && now.sa_sigaction == &on_crash;
    if (ours) sigaction(kFatal[i].number, &before[i], nullptr);
  }
}

} // namespace millrace::embed
