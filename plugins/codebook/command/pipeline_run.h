// Runs a pipeline with the millrace command, as the user could.
#pragma once

#include <filesystem>
#include <nlohmann/json_fwd.hpp>
#include <string>

namespace millrace::codebook {

// A folder for the files of one command, which goes with it.
class WorkFolder {
 public:
  WorkFolder();
  ~WorkFolder();
  WorkFolder(const WorkFolder&) = delete;
  WorkFolder& operator=(const WorkFolder&) = delete;
  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

// The place of a run, and its silence.
struct RunOptions {
  std::string devices;       // as of --devices; "": those of the machine
  bool hides_errors = false; // stderr stays empty; the exit code tells
};

// Runs `millrace run LINE --quiet` and gives its exit code; errors are on stderr by then. `report`: the file that the
// report goes to. The command is the one in MILLRACE_COMMAND, which it sets for programs that it runs, else the one
// beside this program. Signals go to the run. Throws std::runtime_error if it cannot
// be run.
int run_pipeline(const std::string& line, const std::filesystem::path& report, const RunOptions& options = {});

// A value of a parameter as a line of a pipeline takes it, or a word as a shell does: both read quotes alike.
std::string in_quotes(const std::string& value);

// Throws std::runtime_error.
nlohmann::json read_json(const std::filesystem::path& path);
// The time of the call of a handler, in seconds.
double seconds_of(const nlohmann::json& report, const std::string& handler);

} // namespace millrace::codebook
