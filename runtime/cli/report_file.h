// A file that a run writes when it is over: its report, its trace. It is opened before the run, so that a name that
// cannot be written costs no run; and what cannot be written when the run is over costs a warning, not the run.
#pragma once

#include <fstream>
#include <functional>
#include <ostream>
#include <string>

namespace millrace::cli {

class ReportFile {
 public:
  // Opens and empties it, so that no earlier run's is taken for this one's; one that was not there is made again when
  // there is something to write, so that a run that is killed leaves none. "-": stdout; "": nothing is written. Throws
  // Failure (MR0111) where it cannot be opened.
  explicit ReportFile(std::string path);
  ReportFile(const ReportFile&) = delete;
  ReportFile& operator=(const ReportFile&) = delete;

  // Calls `writes` once where something is to be written. The sentence of a warning where that went wrong; else "".
  std::string write(const std::function<void(std::ostream&)>& writes);

 private:
  const std::string path_;
  std::ofstream file_;
};

} // namespace millrace::cli
