// Reports which handler touched a simulated device's memory from the host. It handles SIGSEGV, knows the simulated
// arenas of this process, and ends the process with one line, "error MR0702: …", instead of a core dump.
//
// Signal handlers belong to the process, so this table does too. It is the only such table in the runtime. It holds
// nothing but addresses and names of domains, and several runtimes share it without knowing of each other. Nothing is
// installed unless asked for.
#pragma once

#include <cstdint>
#include <string_view>

namespace millrace::device {

// Keeps a simulated arena in the table while this object lives. With more than kGuardedRangesMax at a time, an arena
// beyond them is still inaccessible, but a fault in it is reported like any other.
class GuardedRange {
 public:
  GuardedRange(const void* base, uint64_t bytes, std::string_view domain);
  ~GuardedRange();
  GuardedRange(const GuardedRange&) = delete;
  GuardedRange& operator=(const GuardedRange&) = delete;

 private:
  int slot_;
};

inline constexpr int kGuardedRangesMax = 1024; // enough for 8 runtimes of 8 devices of 16 arenas
inline constexpr int kAccessGuardsMax = 16;    // one per runtime
inline constexpr int kAccessExitCode = 5;      // as for a device that was lost (MR0702)

// Called on the faulting thread, inside the signal handler: only async-signal-safe calls, text prepared beforehand.
// Returns the sentence without code and line break, naming handler, port and buffer; null if the address is not its
// own.
using AccessNamer = const char* (*)(void* context, const void* address);

// While at least one lives, an access to a guarded range prints one line and ends the process with kAccessExitCode. The
// first one installs the signal handler and the last one removes it. A fault elsewhere goes to the handler that was
// installed before. Any thread.
class AccessGuard {
 public:
  AccessGuard(AccessNamer namer, void* context);
  ~AccessGuard();
  AccessGuard(const AccessGuard&) = delete;
  AccessGuard& operator=(const AccessGuard&) = delete;

 private:
  int slot_;
};

} // namespace millrace::device
