// A handler on the host that touches what lives on a device ends the process, by its name and the buffer's.
#include <doctest/doctest.h>
#include <millrace/handler.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <string>

#include "device/sim/access_guard.h"
#include "harness.h"
#include "memory/ring.h"

using namespace millrace;
using namespace millrace::test;

namespace {

// Where the host sees the bytes of what `Leak` made: nothing that a handler is told, so it takes it from the runtime.
std::atomic<const uint8_t*> leaked{nullptr};

struct Leak final : Handler {
  Input<Tensor> in{*this, "in"};
  Output<Tensor> out{*this, "out", like(in)};
  void process(Tick& tick, Cpu&) {
    leaked = reinterpret_cast<const memory::Block*>(tick.raw().outputs[0].token)->data;
    const int64_t shape[] = {1};
    out.allocate(tick, dtype_of<int64_t>(), shape).elements<int64_t>()[0] = 1;
  }
};

struct Careless final : Handler {
  Input<Tensor> in{*this, "in"};
  void process(Tick&, Cpu&) {
    const volatile uint8_t* const at = leaked.load();
    (void)*at;
  }
};

const mr_plugin& careless_plugin() {
  static const mr_handler_type types[] = {detail::Type<Leak>::table("access.leak", "", ""),
                                          detail::Type<Careless>::table("access.careless", "", "")};
  static const mr_handler_type* const pointers[] = {&types[0], &types[1]};
  static const mr_plugin plugin = {sizeof(mr_plugin), MR_ABI_VERSION, "access", "1", pointers, 2, 0};
  return plugin;
}

void run_careless() {
  Pipeline p;
  p.add("source", "t.count", {{"count", "5"}});
  p.add("blur", "access.leak").device = "sim:0";
  p.add("boxes", "access.careless").device = "cpu";
  p.connect("source", "blur");
  p.connect("blur", "boxes");
  Setup setup;
  setup.workers = 2;
  setup.domains = {"cpu", "sim:0"};
  setup.more = &careless_plugin();
  run(p, setup);
}

} // namespace

TEST_CASE("4.10: a handler that touches a device's buffer from the host ends the run by its name and the buffer's") {
  int ends[2];
  REQUIRE(pipe(ends) == 0);
  const pid_t child = fork();
  REQUIRE(child >= 0);
  if (child == 0) {
    for (const int taken_by_doctest : {SIGABRT, SIGSEGV}) signal(taken_by_doctest, SIG_DFL);
    dup2(ends[1], STDERR_FILENO);
    close(ends[0]);
    run_careless();
    _exit(0);
  }
  close(ends[1]);
  std::string said;
  char text[256];
  for (ssize_t got; (got = read(ends[0], text, sizeof text)) > 0;) said.append(text, static_cast<size_t>(got));
  close(ends[0]);
  int status = 0;
  waitpid(child, &status, 0);
  REQUIRE(WIFEXITED(status));
  CHECK(WEXITSTATUS(status) == device::kAccessExitCode);
  CHECK(said == "error MR0702: boxes touched the buffer of blur.out in sim:0, which only a body on that device may\n");
}
