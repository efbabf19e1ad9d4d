// view.window on a virtual display whose frame buffer is a file, and where there is no display.
#include <doctest/doctest.h>

#if __has_include(<X11/Xlib.h>)
#include <X11/Xlib.h>
#define MILLRACE_TEST_HAS_XLIB 1
#endif
#include <dlfcn.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <thread>

#include "tests/contains.h"
#include "tests/file_bytes.h"
#include "tests/opencv/plugin.h"

namespace millrace::opencv {
namespace {

using testing::Result;
using testing::TableTest;
using testing::Value;

constexpr uint32_t kWide = 200, kHigh = 120;  // a third of it is enough to see: some toolkits scale it
constexpr std::chrono::seconds kPatience{20}; // for a display to draw on a busy machine

// A virtual X server for the rest of the process; it ends with us. Started once, because the toolkit connects once.
class VirtualDisplay {
 public:
  static VirtualDisplay& instance() {
    static VirtualDisplay display;
    return display;
  }
  bool runs() const { return !name_.empty(); }
  const std::string& name() const { return name_; }

  // Pixels of this colour on the whole screen (32 bits each, blue first).
  size_t count(std::array<uint8_t, 3> bgr) const {
    const std::string bytes = bytes_of(folder_ + "/Xvfb_screen0");
    size_t found = 0;
    for (size_t at = bytes.size() % 4; at + 4 <= bytes.size(); at += 4)
      found += static_cast<uint8_t>(bytes[at]) == bgr[0] && static_cast<uint8_t>(bytes[at + 1]) == bgr[1] &&
               static_cast<uint8_t>(bytes[at + 2]) == bgr[2];
    return found;
  }

 private:
  VirtualDisplay() : folder_(scratch("xvfb")) {
    std::filesystem::create_directories(folder_);
    int pipe_ends[2];
    REQUIRE(::pipe(pipe_ends) == 0);
    const pid_t child = ::fork();
    if (child == 0) {
      ::prctl(PR_SET_PDEATHSIG, SIGTERM);
      ::close(pipe_ends[0]);
      const std::string number = std::to_string(pipe_ends[1]);
      ::execlp("Xvfb", "Xvfb", "-displayfd", number.c_str(), "-screen", "0", "640x480x24", "-fbdir", folder_.c_str(),
               "-nolisten", "tcp", static_cast<char*>(nullptr));
      ::_exit(127);
    }
    ::close(pipe_ends[1]);
    std::string number;
    for (char digit; ::read(pipe_ends[0], &digit, 1) == 1 && digit != '\n';) number += digit;
    ::close(pipe_ends[0]);
    if (number.empty())
      ::waitpid(child, nullptr, 0);
    else
      name_ = ":" + number;
  }

  const std::string folder_;
  std::string name_;
};

// True if the condition holds before our patience ends.
template <class Condition>
bool comes_true(const Condition& condition) {
  const auto end = std::chrono::steady_clock::now() + kPatience;
  while (std::chrono::steady_clock::now() < end) {
    if (condition()) return true;
    std::this_thread::yield();
  }
  return false;
}

// True where windows can be tested here; says why not.
bool has_display() {
#ifdef __SANITIZE_ADDRESS__
  MESSAGE("skipped: the window toolkit's own leaks would fail the test");
  return false;
#else
  if (!VirtualDisplay::instance().runs()) {
    MESSAGE("skipped: there is no Xvfb on this machine");
    return false;
  }
  ::setenv("DISPLAY", VirtualDisplay::instance().name().c_str(), 1);
  return true;
#endif
}

Value plain(std::array<uint8_t, 3> bgr) {
  return testing::image(Pixel::bgr8, kWide, kHigh, [bgr](uint32_t, uint32_t, uint32_t c) { return bgr[c]; });
}

} // namespace

TEST_CASE("without a display a window is refused, or says so once and discards its pictures, as is asked") {
  for (const char* display : {"", ":97531"}) {
    ::setenv("DISPLAY", display, 1);
    TableTest refused(handler_type("view.window"));
    refused.input("video", plain({1, 2, 3}));
    CHECK(refused.start() == MR_ERROR);
    INFO(refused.error());
    CHECK(
        contains(refused.error(), *display ? "the display ':97531' (DISPLAY) does not answer" : "DISPLAY is not set"));
    CHECK(contains(refused.error(), "`without_display: discard` would run without a window"));
    TableTest discarding(handler_type("view.window"), {{"without_display", "discard"}});
    for (int i = 0; i < 3; ++i) {
      discarding.input("video", plain({1, 2, 3}));
      CHECK(discarding.tick().ok());
    }
    CHECK(discarding.drain() == MR_OK);
    CHECK(discarding.logs().size() == 1);
  }
}

TEST_CASE("a window shows the newest picture, several at once show theirs, and all vanish when they stop") {
  if (!has_display()) return;
  const VirtualDisplay& display = VirtualDisplay::instance();
  constexpr std::array<uint8_t, 3> kFirst = {10, 200, 90}, kLast = {200, 30, 150}, kOther = {77, 66, 222};
  TableTest window(handler_type("view.window"), {{"title", "one"}, {"pace", "false"}});
  window.input("video", plain(kFirst));
  REQUIRE(window.tick().ok());
  CHECK(comes_true([&] { return display.count(kFirst) > kWide * kHigh / 3; }));
  for (int i = 0; i < 50; ++i) {
    window.input("video", plain(i == 49 ? kLast : kFirst));
    REQUIRE(window.tick().ok());
  }
  REQUIRE(window.drain() == MR_OK);
  CHECK(comes_true([&] { return display.count(kLast) > kWide * kHigh / 3 && display.count(kFirst) == 0; }));
  {
    TableTest other(handler_type("view.window"), {{"title", "one"}}); // the same title is no conflict
    other.input("video", plain(kOther));
    REQUIRE(other.tick().ok());
    CHECK(comes_true([&] { return display.count(kOther) > kWide * kHigh / 3; }));
    CHECK(other.stop() == MR_OK);
  }
  CHECK(window.stop() == MR_OK);
  CHECK(comes_true([&] { return display.count(kOther) + display.count(kLast) == 0; }));
}

TEST_CASE("a window shows pictures at their media times, and an interrupt ends the wait for one") {
  if (!has_display()) return;
  using Clock = std::chrono::steady_clock;
  TableTest window(handler_type("view.window"), {{"title", "paced"}});
  window.period_ns(60'000'000);
  window.input("video", plain({20, 160, 40}));
  REQUIRE(window.tick().ok());
  const Clock::time_point begun = Clock::now();
  for (int i = 0; i < 3; ++i) {
    window.set_now_ns(i * 60'000'000); // it comes one picture too early
    window.input("video", plain({20, 160, 40}));
    REQUIRE(window.tick().ok());
  }
  CHECK(Clock::now() - begun >= std::chrono::milliseconds(180));

  window.period_ns(3600'000'000'000);
  window.input("video", plain({160, 20, 40}));
  std::atomic<bool> shown = false;
  std::thread waits([&] {
    CHECK(window.tick().ok());
    shown = true;
  });
  while (!shown) {
    window.interrupt();
    std::this_thread::yield();
  }
  waits.join();
  REQUIRE(window.drain() == MR_OK);
  CHECK(comes_true([] { return VirtualDisplay::instance().count({160, 20, 40}) > kWide * kHigh / 3; }));
}

#ifdef MILLRACE_TEST_HAS_XLIB
namespace {

// Does what a window manager does when a person clicks on the cross of a window with this title.
class Clicker {
 public:
  Clicker() : library_(dlopen("libX11.so.6", RTLD_NOW)) {
    REQUIRE(library_);
    display_ = function<decltype(XOpenDisplay)>("XOpenDisplay")(nullptr);
    REQUIRE(display_);
  }
  ~Clicker() { function<decltype(XCloseDisplay)>("XCloseDisplay")(display_); }
  Clicker(const Clicker&) = delete;
  Clicker& operator=(const Clicker&) = delete;

  bool close(const std::string& title) { return close_below(DefaultRootWindow(display_), title); }

 private:
  // By name, so that nothing of X11 is linked.
  template <class Function>
  Function* function(const char* name) const {
    return reinterpret_cast<Function*>(dlsym(library_, name));
  }

  bool close_below(::Window parent, const std::string& title) {
    ::Window root = 0, above = 0, *children = nullptr;
    unsigned count = 0;
    function<decltype(XQueryTree)>("XQueryTree")(display_, parent, &root, &above, &children, &count);
    bool closed = false;
    for (unsigned i = 0; i < count && !closed; ++i) {
      char* name = nullptr;
      function<decltype(XFetchName)>("XFetchName")(display_, children[i], &name);
      closed = name && name == title;
      if (closed) ask_to_leave(children[i]);
      if (name) function<decltype(XFree)>("XFree")(name);
    }
    if (children) function<decltype(XFree)>("XFree")(children);
    return closed;
  }

  void ask_to_leave(::Window window) {
    const auto atom = function<decltype(XInternAtom)>("XInternAtom");
    XEvent event{};
    event.xclient.type = ClientMessage;
    event.xclient.window = window;
    event.xclient.message_type = atom(display_, "WM_PROTOCOLS", False);
    event.xclient.format = 32;
    event.xclient.data.l[0] = static_cast<long>(atom(display_, "WM_DELETE_WINDOW", False));
    function<decltype(XSendEvent)>("XSendEvent")(display_, window, False, NoEventMask, &event);
    function<decltype(XSync)>("XSync")(display_, False);
  }

  void* library_;
  Display* display_ = nullptr;
};

} // namespace

TEST_CASE("closing a window ends the run, with an error or without, or discards what follows, as is asked") {
  if (!has_display()) return;
  for (const char* closed : {"end", "fail", "discard"}) {
    const std::string title = std::string("closed-") + closed;
    TableTest window(handler_type("view.window"), {{"title", title}, {"closed", closed}, {"pace", "false"}});
    window.input("video", plain({90, 90, 200}));
    REQUIRE(window.tick().ok());
    REQUIRE(window.drain() == MR_OK); // it is on the screen
    Clicker clicker;
    CHECK(comes_true([&] { return clicker.close(title); }));
    std::string error;
    mr_status status = MR_OK;
    const bool noticed = comes_true([&] {
      window.input("video", plain({90, 90, 200}));
      const Result result = window.tick();
      error = result.error;
      status = result.status;
      return status != MR_OK || !window.logs().empty();
    });
    INFO(title);
    CHECK(noticed);
    CHECK(contains(error, "the window was closed") == (title == "closed-fail"));
    CHECK((status == MR_END) == (title == "closed-end"));
    CHECK(window.stop() == MR_OK);
  }
}
#endif

} // namespace millrace::opencv
