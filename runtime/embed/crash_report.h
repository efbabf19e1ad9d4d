// Names the handler in whose call the process dies: by SIGSEGV, SIGBUS, SIGFPE, SIGILL or SIGABRT, or because a plugin
// called exit(). The process then dies as it would have. _exit() in a plugin is seen by nobody.
//
// Signal handlers are the process's: the command has one, an application only where it asks
// (RuntimeOptions::explain_crashes). It does nothing but write a line to stderr, and passes the signal on to whoever
// had it before.
#pragma once

#include "observe/signal_stack.h"

namespace millrace::embed {

// While one lives. One thread makes and destroys them all; the signals may come on any.
class CrashReport {
 public:
  CrashReport();
  ~CrashReport();
  CrashReport(const CrashReport&) = delete;
  CrashReport& operator=(const CrashReport&) = delete;

 private:
  SignalStack stack_{true}; // of this thread
};

} // namespace millrace::embed
