// Says who touched a simulated device's memory from the host: a handler for SIGSEGV that knows the simulated arenas
// of this process and ends it with one line, "error MR0702: …", instead of a core dump.
//
// Signal handlers are the process's, so this table is too; it is the one place in the runtime that is, it holds nothing
// but addresses, and several runtimes share it without knowing of each other. Nothing is installed unless asked for.
#pragma once

#include <cstdint>
#include <string_view>

namespace millrace::device {

// Enters a simulated arena while it lives. Beyond kGuardedRangesMax at a time, an arena is still inaccessible, but a
// fault in it is reported as any other.
class GuardedRange {
 public:
  GuardedRange(const void* base, uint64_t bytes, std::string_view domain);
  ~GuardedRange();
  GuardedRange(const GuardedRange&) = delete;
  GuardedRange& operator=(const GuardedRange&) = delete;

 private:
  int slot_;
};

inline constexpr int kGuardedRangesMax = 1024; // 8 runtimes of 8 devices of 16 arenas
inline constexpr int kAccessGuardsMax = 16;    // one a runtime
inline constexpr int kAccessExitCode = 5;      // as for a device that was lost (MR0702)

// Called on the faulting thread, inside the signal handler: only async-signal-safe calls, text prepared beforehand.
// The sentence without code and line break, naming handler, port and buffer; null where the address is not its own.
using AccessNamer = const char* (*)(void* context, const void* address);

// While one lives, an access to a guarded range prints one line and ends the process with kAccessExitCode. The
// signal handler comes with the first and goes with the last; a fault elsewhere goes to whoever had the signal before.
// Any thread.
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
