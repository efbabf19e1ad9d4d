// The text that a run prints on stderr while it runs and when it is over.
#pragma once

#include <cstdio>
#include <mutex>
#include <optional>
#include <string>

#include "exec/run_options.h"

namespace millrace {
struct Report;
}

namespace millrace::cli {

// bar: one line, rewritten in place, for a terminal. lines: one line a minute, for a log. Messages appear in all three.
enum class Progress { none, bar, lines };
std::optional<Progress> parse_progress(const std::string& word);

// Any thread.
class ProgressLine {
 public:
  static constexpr double kLineEveryS = 60; // the log of a day stays short and still shows that the run lives

  // duration_s 0: no limit. `out` outlives it.
  ProgressLine(Progress kind, double duration_s, std::FILE* out = stderr)
      : kind_(kind), duration_s_(duration_s), out_(out) {}
  ~ProgressLine() { end(); }
  ProgressLine(const ProgressLine&) = delete;
  ProgressLine& operator=(const ProgressLine&) = delete;
  void show(const exec::Progress& progress);
  // A few words about a crossing to another node, which the line tells from now on; "": all is well.
  void set_trouble(const std::string& words);
  void message(const std::string& line); // secrets of addresses are hidden
  void message_with_secret(const std::string& line);
  // Removes the line for good: other output follows, at last the shell's prompt.
  void end();

 private:
  void clear();

  const Progress kind_;
  const double duration_s_;
  std::FILE* const out_;
  std::mutex mutex_;
  bool ended_ = false;
  std::string trouble_;
  double told_s_ = 0; // lines: time of the last one
};

// "  120/300 ticks  40 %  29.9 ticks/s  2 late  7 dropped (busy 7)  0:06 left"; parts that do not fit are left
// out, the least important first. `trouble` stands at the end.
std::string progress_words(const exec::Progress& progress, double duration_s, size_t columns_max = std::string::npos,
                           const std::string& trouble = "");
// Ticks, time, rate; latency; each drop with its cause on the edge where it happened; failures; where the time went;
// several lines. `explain`: also what was predicted.
std::string summary_words(const Report& report, bool explain = false);

} // namespace millrace::cli
