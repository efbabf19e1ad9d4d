// See pipeline_run.h.
#include "plugins/codebook/command/pipeline_run.h"

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string_view>
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

namespace {

std::atomic<pid_t> child{0}; // the run under way
void pass_on(int signal) {
  if (const pid_t run = child; run > 0) kill(run, signal);
}

// While a run is under way, signals are for the run. A terminal sends its own to the whole process group, so the run
// gets them anyway. The others are passed on to it.
class SignalsOfRun {
 public:
  SignalsOfRun() {
    sigset_t held;
    sigemptyset(&held);
    for (const int signal : kSignals) sigaddset(&held, signal);
    sigprocmask(SIG_BLOCK, &held, &mask_); // until it is known where they go
    for (size_t i = 0; i < kSignals.size(); ++i) {
      struct sigaction action {};
      const bool is_of_terminal = kSignals[i] == SIGINT || kSignals[i] == SIGQUIT;
      action.sa_handler = is_of_terminal ? SIG_IGN : pass_on;
      action.sa_flags = SA_RESTART;
      sigaction(kSignals[i], &action, &before_[i]);
    }
  }
  ~SignalsOfRun() {
    for (size_t i = 0; i < kSignals.size(); ++i) sigaction(kSignals[i], &before_[i], nullptr);
    sigprocmask(SIG_SETMASK, &mask_, nullptr);
  }
  SignalsOfRun(const SignalsOfRun&) = delete;
  SignalsOfRun& operator=(const SignalsOfRun&) = delete;

  // Gives the run the signals as this program had them.
  void give_to_run(posix_spawnattr_t& attributes) const {
    sigset_t defaults;
    sigemptyset(&defaults);
    for (size_t i = 0; i < kSignals.size(); ++i)
      if (before_[i].sa_handler != SIG_IGN) sigaddset(&defaults, kSignals[i]);
    posix_spawnattr_setsigdefault(&attributes, &defaults);
    posix_spawnattr_setsigmask(&attributes, &mask_);
    posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETSIGMASK);
  }
  void release() const { sigprocmask(SIG_SETMASK, &mask_, nullptr); }

 private:
  static constexpr std::array kSignals = {SIGINT, SIGQUIT, SIGTERM, SIGHUP};
  std::array<struct sigaction, kSignals.size()> before_{};
  sigset_t mask_{};
};

std::string command_to_run() {
  const char* const named = std::getenv("MILLRACE_COMMAND");
  if (named && *named) return named;
  return (fs::read_symlink("/proc/self/exe").parent_path() / "millrace").string();
}

} // namespace

int run_pipeline(const std::string& line, const fs::path& report, const RunOptions& options) {
  const std::string command = command_to_run();
  std::vector<std::string> words = {command, "run", line, "--quiet", "--json", report.string()};
  if (!options.devices.empty()) words.insert(words.end(), {"--devices", options.devices});
  std::vector<char*> pointers;
  for (std::string& word : words) pointers.push_back(word.data());
  pointers.push_back(nullptr);

  const SignalsOfRun signals;
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  signals.give_to_run(attributes);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  if (options.hides_errors) posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
  pid_t run = 0;
  const int error = posix_spawn(&run, command.c_str(), &actions, &attributes, pointers.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  posix_spawnattr_destroy(&attributes);
  if (error != 0) throw std::runtime_error("cannot run " + command + ": " + std::strerror(error));
  child = run;
  signals.release();
  int status = 0;
  while (waitpid(run, &status, 0) < 0)
    if (errno != EINTR) throw std::runtime_error(std::string("cannot wait for the run: ") + std::strerror(errno));
  child = 0;
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

std::string in_quotes(const std::string& value) {
  constexpr std::string_view kPlain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-/+";
  if (!value.empty() && value.find_first_not_of(kPlain) == std::string::npos) return value;
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
