// The table of simulated arenas and the signal handler that reads it. A fault may come at any point of any thread, so
// the tables are static and never freed, and an atomic store publishes each entry.
#include "device/sim/access_guard.h"

#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstring>
#include <mutex>

#include "observe/error.h"

namespace millrace::device {
namespace {

constexpr size_t kDomainLengthMax = 32;

struct Range {
  std::atomic<uintptr_t> begin{0};
  std::atomic<uintptr_t> end{0}; // 0: free; written last on entry, first on removal
  char domain[kDomainLengthMax] = {};
};
struct Namer {
  std::atomic<AccessNamer> name{nullptr}; // null: free; written last on entry
  std::atomic<void*> context{nullptr};
};

std::array<Range, kGuardedRangesMax> ranges;
std::array<Namer, kAccessGuardsMax> namers;
std::atomic<int> guard_count{0};
std::mutex tables_mutex; // held to add and remove entries; the signal handler does not take it
struct sigaction action_before;

const Range* find_range(uintptr_t address) {
  for (const Range& range : ranges) {
    const uintptr_t end = range.end.load(std::memory_order_acquire);
    if (address < end && address >= range.begin.load(std::memory_order_relaxed)) return &range;
  }
  return nullptr;
}

const char* find_name(const void* address) {
  for (const Namer& namer : namers) {
    const AccessNamer name = namer.name.load(std::memory_order_acquire);
    const char* sentence = name ? name(namer.context.load(std::memory_order_relaxed), address) : nullptr;
    if (sentence) return sentence;
  }
  return nullptr;
}

void print(const char* text) {
  size_t left = std::strlen(text);
  while (left > 0) {
    const ssize_t written = write(STDERR_FILENO, text, left);
    if (written <= 0) return; // the line cannot be printed anywhere else
    text += written;
    left -= static_cast<size_t>(written);
  }
}

void print_hexadecimal(uintptr_t value) {
  char text[2 + 2 * sizeof value + 1] = {};
  char* end = text + sizeof text - 1;
  do {
    *--end = "0123456789abcdef"[value % 16];
    value /= 16;
  } while (value > 0);
  *--end = 'x';
  *--end = '0';
  print(end);
}

void pass_on(int signal_number, siginfo_t* info, void* machine_context) {
  if (action_before.sa_flags & SA_SIGINFO) return action_before.sa_sigaction(signal_number, info, machine_context);
  if (action_before.sa_handler != SIG_DFL && action_before.sa_handler != SIG_IGN) {
    return action_before.sa_handler(signal_number);
  }
  // The access is repeated after this returns, and then ends the process as it would have without this handler.
  struct sigaction by_default = {};
  by_default.sa_handler = SIG_DFL;
  sigaction(signal_number, &by_default, nullptr);
}

void on_fault(int signal_number, siginfo_t* info, void* machine_context) {
  const Range* range = nullptr;
  if (guard_count.load() > 0) range = find_range(reinterpret_cast<uintptr_t>(info->si_addr));
  if (!range) return pass_on(signal_number, info, machine_context);
  print("error MR0702: ");
  if (const char* sentence = find_name(info->si_addr)) {
    print(sentence);
  } else {
    print("memory of ");
    print(range->domain);
    print(" was touched at the address that the host sees, ");
    print_hexadecimal(reinterpret_cast<uintptr_t>(info->si_addr));
  }
  print("\n");
  _exit(kAccessExitCode);
}

bool is_ours(const struct sigaction& action) {
  return (action.sa_flags & SA_SIGINFO) != 0 && action.sa_sigaction == on_fault;
}

void install() {
  struct sigaction now = {};
  sigaction(SIGSEGV, nullptr, &now);
  if (is_ours(now)) return;
  action_before = now;
  struct sigaction action = {};
  action.sa_sigaction = on_fault;
  action.sa_flags = SA_SIGINFO | SA_ONSTACK;
  MR_ASSERT(sigaction(SIGSEGV, &action, nullptr) == 0, "SIGSEGV can be handled");
}

void uninstall() {
  struct sigaction now = {};
  sigaction(SIGSEGV, nullptr, &now);
  if (is_ours(now)) sigaction(SIGSEGV, &action_before, nullptr); // else a later handler may chain to ours
}

} // namespace

GuardedRange::GuardedRange(const void* base, uint64_t bytes, std::string_view domain) : slot_(-1) {
  if (bytes == 0) return;
  const std::lock_guard lock(tables_mutex);
  for (int slot = 0; slot < kGuardedRangesMax; ++slot) {
    Range& range = ranges[static_cast<size_t>(slot)];
    if (range.end.load(std::memory_order_relaxed) != 0) continue;
    const size_t length = std::min(domain.size(), kDomainLengthMax - 1);
    std::memcpy(range.domain, domain.data(), length);
    range.domain[length] = '\0';
    range.begin.store(reinterpret_cast<uintptr_t>(base), std::memory_order_relaxed);
    range.end.store(reinterpret_cast<uintptr_t>(base) + bytes, std::memory_order_release);
    slot_ = slot;
    return;
  }
}

GuardedRange::~GuardedRange() {
  const std::lock_guard lock(tables_mutex);
  if (slot_ >= 0) ranges[static_cast<size_t>(slot_)].end.store(0, std::memory_order_release);
}

AccessGuard::AccessGuard(AccessNamer namer, void* context) : slot_(-1) {
  const std::lock_guard lock(tables_mutex);
  if (guard_count++ == 0) install();
  for (int slot = 0; slot < kAccessGuardsMax; ++slot) {
    Namer& entry = namers[static_cast<size_t>(slot)];
    if (entry.name.load(std::memory_order_relaxed)) continue;
    entry.context.store(context, std::memory_order_relaxed);
    entry.name.store(namer, std::memory_order_release);
    slot_ = slot;
    return;
  }
}

AccessGuard::~AccessGuard() {
  const std::lock_guard lock(tables_mutex);
  if (slot_ >= 0) namers[static_cast<size_t>(slot_)].name.store(nullptr, std::memory_order_release);
  if (--guard_count == 0) uninstall();
}

} // namespace millrace::device
