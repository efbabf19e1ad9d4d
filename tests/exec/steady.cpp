// A steady tick under `free` allocates nothing, locks nothing and calls nothing of the system (design.md §8), also
// where a handler speaks on every tick and its words are logged, and where an output is shown to a tap.
//
// How it is counted. The run is made and driven in a forked child, so that nothing of it stays in the test program. The
// chain's source tells when the steady part begins and ends. Between the two,
//  - allocations are counted by operator new of this program (cli/count_allocations.h), through which all of the
//  runtime's
//    go,
//  - pthread_mutex_lock is counted by a function of the same name that the program puts before the library's,
//  - system calls of the worker are stopped by a seccomp filter that lets nothing through but what ends the child: one
//    call too many kills it, and the parent sees the signal.
#include <dlfcn.h>
#include <doctest/doctest.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <millrace/handler.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <memory>
#include <string>
#include <thread>

#include "cli/count_allocations.h"
#include "device/cpu/cpu_device.h"
#include "exec/run.h"
#include "exec/run_options.h"
#include "exec/tap.h"
#include "graph/unfold.h"
#include "observe/log.h"
#include "observe/report.h"
#include "plan/compile.h"
#include "plan/machine.h"
#include "plan/plan.h"
#include "plan/prepare.h"
#include "plugin/registry.h"

namespace {

[[maybe_unused]] thread_local bool counts_locks = false;
std::atomic<uint64_t> locks{0};

} // namespace

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)

extern "C" int pthread_mutex_lock(pthread_mutex_t* mutex) {
  using Lock = int (*)(pthread_mutex_t*);
  static const Lock real = reinterpret_cast<Lock>(dlsym(RTLD_NEXT, "pthread_mutex_lock"));
  if (counts_locks) locks.fetch_add(1);
  return real(mutex);
}

namespace {

using namespace millrace;

constexpr uint64_t kWarm = 1'000, kSteady = 20'000;

// The results that the child gives its parent, in memory that both see.
struct Findings {
  uint64_t allocations, locks, ticks;
  bool steady_reached, ended;
  std::atomic<uint64_t> logged; // records that reached the application
  uint64_t logged_before, lost; // when the steady part began, when it ended
  std::atomic<uint64_t> shown;  // samples of the steady part
};
Findings* findings = nullptr;
Log* steady_log = nullptr; // of the child that has one

const testing::AllocationCounter allocation_counter = cli::allocation_counter();

// Counts what the calling thread allocates and locks.
void count_here(bool on) {
  allocation_counter.count(on);
  counts_locks = on;
}

// From here on the calling thread may leave the process and nothing else: even a read kills it.
void forbid_system_calls() {
  sock_filter filter[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_exit_group, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
  };
  const sock_fprog program = {std::size(filter), filter};
  if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 || prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) != 0)
    _exit(77);
}

// Begins and ends the steady part; leaves the process from within, since nothing else is allowed any more.
struct Source final : Handler {
  Output<Tensor> out{*this, "out"};
  Param<bool> counts{*this, "counts", true, "begins and ends the steady part"};
  Source() { no_allocation(); }
  void configure(const Formats& formats) override { formats.tensor(out, dtype_of<int64_t>(), {4}); }
  void process(Tick& tick, Cpu&) {
    if (counts && tick.index() == kWarm) {
      while (steady_log && findings->logged == 0) std::this_thread::yield(); // or nothing of it is shown to work
      findings->logged_before = findings->logged;
      forbid_system_calls();
      findings->steady_reached = true;
      count_here(true);
    }
    if (counts && tick.index() == kWarm + kSteady) {
      count_here(false);
      findings->allocations = allocation_counter.counted();
      findings->locks = locks;
      findings->ticks = tick.index() - kWarm;
      if (steady_log) findings->lost = steady_log->lost();
      findings->ended = true;
      syscall(SYS_exit_group, 0);
    }
    const int64_t shape[] = {4};
    out.allocate(tick, dtype_of<int64_t>(), shape).elements<int64_t>()[0] = static_cast<int64_t>(tick.index());
  }
};
struct Relay final : Handler { // allocates from its ring and writes
  Input<Tensor> in{*this, "in"};
  Output<Tensor> out{*this, "out", like(in)};
  void process(Tick& tick, Cpu&) {
    const int64_t shape[] = {4};
    out.allocate(tick, dtype_of<int64_t>(), shape).elements<int64_t>()[0] = in(tick).elements<int64_t>()[0] + 1;
  }
};
struct Forward final : Handler {
  Input<Any> in{*this, "in"};
  Output<Any> out{*this, "out", forward(in)};
  void process(Tick& tick, Cpu&) { out.forward(tick, in); }
};
struct Sink final : Handler {
  Input<Any> in{*this, "in"};
  void process(Tick&, Cpu&) {}
};
struct Repeater final : Handler {
  Input<Any> in{*this, "in"};
  const std::string words = "a sentence that is too long for a string to hold it without an allocation";
  void process(Tick&, Cpu&) { log(MR_LOG_INFO, words); }
};

const mr_plugin& chain_plugin() {
  static const mr_handler_type types[] = {
      detail::Type<Source>::table("s.source", "Begins the count", ""),
      detail::Type<Relay>::table("s.relay", "Adds one", ""),
      detail::Type<Forward>::table("s.forward", "Hands on", ""),
      detail::Type<Sink>::table("s.sink", "Takes", ""),
      detail::Type<Repeater>::table("s.speaker", "Says the same on every tick", ""),
  };
  static const mr_handler_type* const pointers[] = {&types[0], &types[1], &types[2], &types[3], &types[4]};
  static const mr_plugin plugin = {sizeof(mr_plugin), MR_ABI_VERSION, "steady", "1", pointers, 5, 0};
  return plugin;
}

// source → 14 handlers, half of which write and half hand on → a handler of this type.
graph::Graph steady_chain(const std::string& sink) {
  graph::Graph graph;
  const auto add = [&](const std::string& name, const std::string& type, const std::string& input) {
    graph::Handler handler;
    handler.name = name;
    handler.type = type;
    graph.handlers.push_back(handler);
    if (input.empty()) return;
    graph::Edge edge;
    edge.source = input;
    edge.target = name;
    graph.edges.push_back(edge);
  };
  add("source", "s.source", "");
  std::string last = "source";
  for (int i = 0; i < 14; ++i) {
    const std::string name = "h" + std::to_string(i);
    add(name, i % 2 ? "s.relay" : "s.forward", last);
    last = name;
  }
  add("sink", sink, last);
  return graph;
}

// Two streams that give items to a group, and read its results.
graph::Graph steady_group() {
  return graph::unfold(graph::parse_yaml(R"(version: 1
streams: { cameras: { items: { a: { counts: "true" }, b: { counts: "false" } } } }
clocks: { cameras: { mode: free } }
handlers:
  source: { type: s.source, for_each: cameras, counts: "{counts}" }
  model:  { type: s.relay, input: source }
  after:  { type: s.forward, input: model }
  draw:   { type: s.relay, for_each: cameras, input: after }
  sink:   { type: s.sink, for_each: cameras, input: draw }
)",
                                         "steady.yaml"));
}

enum class Steady { chain, chain_that_logs, tapped_chain, group };

// Asks for one sample after the other, on a thread of its own.
void look_on(const std::shared_ptr<exec::Tap>& tap) {
  std::thread([tap] {
    for (;;) {
      tap->arm();
      if (!tap->take())
        std::this_thread::yield();
      else if (findings->steady_reached)
        ++findings->shown;
    }
  }).detach();
}

[[noreturn]] void run_child(Steady what) {
  const bool logs = what == Steady::chain_that_logs;
  graph::Graph graph = what == Steady::group ? steady_group() : steady_chain(logs ? "s.speaker" : "s.sink");
  plugin::Registry registry;
  registry.add(chain_plugin(), "");
  plan::Prepared prepared = plan::prepare(graph, registry, exec::host_table());
  plan::Machine machine;
  const plan::Plan plan = plan::compile(graph, prepared, registry, exec::host_table(), machine, {});
  device::CpuDevice cpu;
  std::unique_ptr<Log> log;
  if (logs) {
    LogSettings settings;
    settings.on_record = [](const LogRecord&) { ++findings->logged; };
    log = std::make_unique<Log>(settings);
  }
  steady_log = log.get();
  exec::RunOptions options;
  options.log = log.get();
  exec::Run run(plan, graph, prepared.handlers, {&cpu}, options);
  if (what == Steady::tapped_chain) look_on(run.tap("h6.out", {}));
  run.start();
  run.wait();
  _exit(78); // the source leaves before that
}

} // namespace

namespace {

void check_steady(Steady what) {
  void* shared = mmap(nullptr, sizeof(Findings), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  REQUIRE(shared != MAP_FAILED);
  findings = new (shared) Findings{};
  const pid_t child = fork();
  if (child == 0) run_child(what);
  int status = 0;
  REQUIRE(waitpid(child, &status, 0) == child);
  CHECK(findings->steady_reached);
  // A system call in the steady part kills the child by SIGSYS.
  CHECK_FALSE(WIFSIGNALED(status));
  CHECK(WEXITSTATUS(status) == 0);
  CHECK(findings->ended);
  CHECK(findings->ticks == kSteady);
  CHECK(findings->allocations == 0);
  if (what == Steady::group)
    CHECK(findings->locks > 0); // its collector has a lock, which nobody else holds
  else
    CHECK(findings->locks == 0);
  if (what == Steady::tapped_chain) CHECK(findings->shown > 0);
  if (what == Steady::chain_that_logs) CHECK(findings->logged + findings->lost > findings->logged_before);
  munmap(shared, sizeof(Findings));
}

} // namespace

TEST_CASE("3.2: 0 allocations, 0 locks, 0 system calls in a steady tick of a chain of 16 under free") {
  check_steady(Steady::chain);
}

TEST_CASE("3.2: nor in one where a handler speaks on every tick and the log takes it") {
  check_steady(Steady::chain_that_logs);
}

TEST_CASE("3.2: nor in one of which an output is shown to a tap that is always armed") {
  check_steady(Steady::tapped_chain);
}

TEST_CASE("3.2: 0 allocations and 0 system calls in steady ticks of two streams that give items to a group") {
  check_steady(Steady::group);
}

TEST_CASE("3.2: the counters of the steady test count") {
  const uint64_t before = allocation_counter.counted();
  count_here(true);
  int* memory = new int(1);
  asm volatile("" : : "r"(memory) : "memory"); // or the compiler leaves both out
  delete memory;
  pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
  pthread_mutex_lock(&mutex);
  pthread_mutex_unlock(&mutex);
  count_here(false);
  CHECK(allocation_counter.counted() == before + 1);
  CHECK(locks == 1);
  const pid_t child = fork();
  if (child == 0) {
    forbid_system_calls();
    syscall(SYS_getpid);
    _exit(0);
  }
  int status = 0;
  waitpid(child, &status, 0);
  CHECK(WIFSIGNALED(status));
  CHECK(WTERMSIG(status) == SIGSYS);
}

#endif // a sanitizer has allocators and locks of its own
