// A system that has fewer threads than a run takes: the start says so, and undoes what it began.
#include <dlfcn.h>
#include <doctest/doctest.h>
#include <millrace/handler.h>
#include <pthread.h>

#include <atomic>
#include <cerrno>
#include <climits>
#include <filesystem>
#include <iterator>

#include "harness.h"
#include "observe/error.h"
#include "observe/log.h"

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__) // which put a function of their own here

namespace {

std::atomic<int> threads_left{INT_MAX};

} // namespace

extern "C" int pthread_create(pthread_t* thread, const pthread_attr_t* attributes, void* (*body)(void*), void* given) {
  using Create = int (*)(pthread_t*, const pthread_attr_t*, void* (*)(void*), void*);
  static const Create real = reinterpret_cast<Create>(dlsym(RTLD_NEXT, "pthread_create"));
  if (threads_left.load() != INT_MAX && threads_left.fetch_sub(1) <= 0) return EAGAIN;
  return real(thread, attributes, body, given);
}

using namespace millrace;
using namespace millrace::test;

namespace {

std::atomic<int> starts_seen{0}, stops_seen{0}, calls_seen{0};

struct OwnThreadSource final : Handler { // a thread of its own reads it
  Output<Tensor> out{*this, "out"};
  int64_t next = 0;
  OwnThreadSource() { blocking(); }
  void configure(const Formats& formats) override { formats.tensor(out, dtype_of<int64_t>(), {1}); }
  void start() override { ++starts_seen; }
  void process(Tick& tick, Cpu&) {
    if (next == 20) return tick.end();
    const int64_t shape[] = {1};
    out.allocate(tick, dtype_of<int64_t>(), shape).elements<int64_t>()[0] = next++;
  }
  void stop() override { ++stops_seen; }
};

struct Counting final : Handler {
  Input<Tensor> in{*this, "in"};
  void start() override { ++starts_seen; }
  void process(Tick&, Cpu&) { ++calls_seen; }
  void stop() override { ++stops_seen; }
};

const mr_plugin& few_plugin() {
  static const mr_handler_type types[] = {detail::Type<OwnThreadSource>::table("few.waiting", "", ""),
                                          detail::Type<Counting>::table("few.counting", "", "")};
  static const mr_handler_type* const pointers[] = {&types[0], &types[1]};
  static const mr_plugin plugin = {sizeof(mr_plugin), MR_ABI_VERSION, "few", "1", pointers, 2, 0};
  return plugin;
}

size_t entries(const char* folder) {
  const std::filesystem::directory_iterator all(folder);
  return static_cast<size_t>(std::distance(begin(all), end(all)));
}

// A log, three workers, a reader, a monitor, a device: everything of a run that has a thread.
Error error_of_run() {
  Pipeline p("few.waiting name=first ! t.relay name=relay device=sim:0 ! few.counting name=last");
  Setup setup;
  setup.workers = 3;
  setup.domains = {"cpu", "sim:0"};
  setup.more = &few_plugin();
  try {
    LogSettings settings;
    settings.on_line = [](const std::string&) {};
    Log log(settings);
    setup.options.log = &log;
    const Result result = run(std::move(p), setup);
    return result.ok ? Error{} : result.error;
  } catch (const Failure& failure) {
    return failure.error();
  }
}

} // namespace

TEST_CASE("Whichever thread of a run is the first that cannot be started, MR0612 names it and nothing is left over") {
  REQUIRE(error_of_run().code == 0); // what is made once for the process is there
  const size_t threads = entries("/proc/self/task"), files = entries("/proc/self/fd");
  std::string named;
  int given = 0;
  for (;; ++given) {
    REQUIRE(given < 64);
    starts_seen = stops_seen = calls_seen = 0;
    threads_left = given;
    const Error error = error_of_run();
    threads_left = INT_MAX;
    CHECK(starts_seen == stops_seen);
    CHECK(entries("/proc/self/task") == threads);
    CHECK(entries("/proc/self/fd") == files);
    if (error.code == 0) break;
    CHECK(error.code == 612);
    CHECK(calls_seen == 0);
    CHECK(error.edit.find("--threads") != std::string::npos);
    named += error.what + "\n";
  }
  CHECK(given > 5);
  for (const char* name :
       {"writes the log", "a stream of sim:0", "reads first", "watches the run", "worker 1 of ", "worker 3 of "})
    CHECK_MESSAGE(named.find(name) != std::string::npos, name << " is not in\n" << named);
}

#endif
