// See pipeline_run.h.
#include "plugins/codebook/command/pipeline_run.h"

#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <vector>

namespace millrace::codebook {
namespace fs = std::filesystem;

WorkFolder::WorkFolder() {
  std::string name = (fs::temp_directory_path() / "millrace-codebook-XXXXXX").string();
  if (!mkdtemp(name.data()))
    throw std::runtime_error("cannot make a folder in " + fs::temp_directory_path().string() + ": " +
                             std::strerror(errno));
  path_ = name;
}

WorkFolder::~WorkFolder() {
  std::error_code ignored;
  fs::remove_all(path_, ignored);
}

int run_pipeline(const std::string& line, const fs::path& report) {
  const char* const named = std::getenv("MILLRACE_COMMAND");
  const std::string command = named ? named : (fs::read_symlink("/proc/self/exe").parent_path() / "millrace").string();
  std::vector<std::string> words = {command, "run", line, "--quiet", "--json", report.string()};
  std::vector<char*> pointers;
  for (std::string& word : words) pointers.push_back(word.data());
  pointers.push_back(nullptr);
  pid_t child = 0;
  if (const int error = posix_spawn(&child, command.c_str(), nullptr, nullptr, pointers.data(), environ); error != 0)
    throw std::runtime_error("cannot run " + command + ": " + std::strerror(error));
  int status = 0;
  while (waitpid(child, &status, 0) < 0)
    if (errno != EINTR) throw std::runtime_error(std::string("cannot wait for the run: ") + std::strerror(errno));
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

std::string quoted(const std::string& value) {
  std::string made = "'";
  for (const char letter : value) made += letter == '\'' ? std::string("'\\''") : std::string(1, letter);
  return made + "'";
}

nlohmann::json read_json(const fs::path& path) {
  std::ifstream file(path);
  if (!file) throw std::runtime_error("cannot read " + path.string() + ": " + std::strerror(errno));
  return nlohmann::json::parse(file);
}

double seconds_of(const nlohmann::json& report, const std::string& handler) {
  return report.at("handlers").at(handler).at("max_us").get<double>() / 1e6;
}

} // namespace millrace::codebook
