// A file that a run writes when it is over: its report or its trace. It is opened before the run, so that a path that
// cannot be written is refused before the run and not after it. If writing fails after the run, that is an error with
// an exit code of its own: the run has not failed.
#pragma once

#include <fstream>
#include <functional>
#include <optional>
#include <ostream>
#include <string>

#include "observe/error.h"

namespace millrace::cli {

// Throws Failure (MR0111) for a file that could not be opened now: its folder is not there, or neither may be written.
// It changes nothing, so it comes before all else: nodes meet and models load before a ReportFile is opened.
void refuse_unwritable(const std::string& path);

class ReportFile {
 public:
  // Opens and empties the file, so that the report of an earlier run is not taken for this one's. A file that was not
  // there is removed again until there is something to write, so that a run that is killed leaves none. "-": stdout;
  // "": nothing is written. Throws Failure (MR0111) if the file cannot be opened.
  explicit ReportFile(std::string path);
  ReportFile(const ReportFile&) = delete;
  ReportFile& operator=(const ReportFile&) = delete;

  // Calls `writes` once, unless the path is "". Returns an error (MR0606) if writing failed.
  std::optional<Error> write(const std::function<void(std::ostream&)>& writes);

 private:
  const std::string path_;
  std::ofstream file_;
};

} // namespace millrace::cli
