// Names the handler in whose call the process dies: by SIGSEGV, SIGBUS, SIGFPE, SIGILL or SIGABRT, or because a plugin
// called exit(). The process then dies as it would have. A call of _exit() in a plugin is not noticed.
//
// Signal handlers belong to the process: the command installs this one, an application has it only if it asks for it
// (RuntimeOptions::explain_crashes). The handler writes a line to stderr and passes the signal on to the handler that
// was installed before.
#pragma once

#include "observe/signal_stack.h"

namespace millrace::embed {

// Crashes are reported while an object lives. One thread makes and destroys all of them; signals may come on any
// thread.
class CrashReport {
 public:
  CrashReport();
  ~CrashReport();
  CrashReport(const CrashReport&) = delete;
  CrashReport& operator=(const CrashReport&) = delete;

 private:
  SignalStack stack_{true}; // the signal stack of the thread that makes this
};

} // namespace millrace::embed
