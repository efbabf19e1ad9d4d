// What a run says on stderr while it runs and when it is over.
#pragma once

#include <mutex>
#include <string>

#include "exec/run.h"

namespace millrace::cli {

// One line, rewritten in place, where stderr is a terminal; messages push it down. Any thread.
class ProgressLine {
 public:
  // duration_s 0: no limit.
  ProgressLine(bool shown, double duration_s) : shown_(shown), duration_s_(duration_s) {}
  ~ProgressLine() { clear(); }
  void show(const exec::Progress& progress);
  void message(const std::string& line);
  void clear();

 private:
  const bool shown_;
  const double duration_s_;
  std::mutex mutex_;
  bool drawn_ = false;
};

// "  120/300 ticks  40 %  29.9/s  2 late  7 dropped (busy 7)  0:06 left"
std::string progress_words(const exec::Progress& progress, double duration_s);
// Ticks, time, rates, each drop with its cause on the edge where it happened, and the ways to the sinks; several lines.
std::string summary_words(const exec::Report& report);

} // namespace millrace::cli
