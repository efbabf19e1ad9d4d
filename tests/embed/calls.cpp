// An application whose handler hangs or crashes: nothing is printed, no signal of its own is taken and no process is
// ended, unless it asks. In children, since each of these runs ends its process in the end.
#include <doctest/doctest.h>

#include <csignal>
#include <mutex>
#include <string>

#include "millrace/runtime.h"
#include "tests/ending.h"

using namespace millrace;
using millrace::test::end_of;
using millrace::test::Ending;

namespace {

RuntimeOptions with_trouble() {
  RuntimeOptions options;
  options.plugin_paths = {MILLRACE_BINARY_DIR "/test_trouble"};
  options.devices = "cpu,sim:0";
  return options;
}

std::string bad(const std::string& how) {
  return "test.pattern width=64 height=48 ! trouble.bad name=bad " + how + " ! null.sink";
}

} // namespace

TEST_CASE("8.7: an application is told of a call that does not return, and decides itself; nothing is printed") {
  const Ending ending = end_of([] {
    RuntimeOptions options = with_trouble();
    static std::mutex mutex; // the two come from different threads
    static std::string said;
    options.on_message = [](const std::string& line) {
      const std::lock_guard lock(mutex);
      said += line;
    };
    options.on_hang = [](const std::string& words) {
      const std::lock_guard lock(mutex);
      const bool named = said.find("MR0602: bad (trouble.bad) is in process") != std::string::npos;
      const bool right = words.find("error MR0602: bad (trouble.bad) did not return from process of tick 3") == 0;
      _exit(named && right ? 42 : 1);
    };
    Runtime runtime(options);
    runtime.load(bad("does=hang budget=100ms"));
    runtime.start();
    runtime.wait();
  });
  CHECK(ending.code == 42);
  CHECK(ending.said == "");
}

TEST_CASE("4.9: an application goes on without a device that was lost to a body that never ends") {
  const Ending ending = end_of([] {
    Outcome lost;
    bool works = false;
    {
      Runtime runtime(with_trouble());
      runtime.load(bad("does=hang device=sim:0"));
      runtime.start();
      lost = runtime.wait();
      runtime.load("test.number count=5 ! null.sink"); // the same runtime runs another pipeline
      runtime.start();
      works = runtime.wait().ok;
    }
    const bool named = lost.error.find("under way was bad (trouble.bad) (tick 3)") != std::string::npos;
    _exit(!lost.ok && lost.code == "MR0703" && named && works ? 42 : 1);
  });
  CHECK(ending.code == 42);
  CHECK(ending.said == "");
}

TEST_CASE("8.8: a crash in a handler is the application's own, and is named only where it asks for that") {
  for (const bool asks : {false, true}) {
    const Ending ending = end_of([&] {
      signal(SIGSEGV, SIG_DFL);
      RuntimeOptions options = with_trouble();
      options.explain_crashes = asks;
      Runtime runtime(options);
      runtime.load(bad("does=segv"));
      runtime.start();
      runtime.wait();
    });
    CHECK(ending.code == 128 + SIGSEGV);
    CHECK(ending.said ==
          (asks ? "error MR0608: bad (trouble.bad) in process of tick 3 died: Segmentation fault\n" : ""));
  }
}
