// Finds, makes and checks the folder of control sockets; see run_folder.h.
#include "serve/run_folder.h"

#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstdlib>
#include <system_error>

#include "net/system/local.h"
#include "observe/error.h"
#include "observe/error_codes.h"

namespace millrace::serve {

namespace {

namespace fs = std::filesystem;

constexpr mode_t kOthers = 077;
constexpr const char* kSuffix = ".sock";

[[noreturn]] void refuse(const fs::path& folder, const std::string& why, const std::string& edit = "") {
  throw Failure(Error{code::control_not_open, why, {folder.string(), 0, 0}, {}, "", edit});
}

void check_folder(const fs::path& folder, const struct stat& facts) {
  if (!S_ISDIR(facts.st_mode)) refuse(folder, "this is no folder");
  if (facts.st_uid != ::geteuid())
    refuse(folder, "the folder belongs to another user, whose number is " + std::to_string(facts.st_uid));
  if (facts.st_mode & kOthers) refuse(folder, "other users may enter the folder", "chmod 700 " + folder.string());
}

// "": the variable is not set, or names no folder of this user, as under sudo.
fs::path session_folder() {
  const char* const named = std::getenv("XDG_RUNTIME_DIR");
  struct stat facts {};
  if (!named || named[0] != '/' || ::stat(named, &facts) != 0) return {};
  if (!S_ISDIR(facts.st_mode) || facts.st_uid != ::geteuid()) return {};
  return fs::path(named) / "millrace";
}

fs::path temporary_folder() {
  std::error_code failed;
  const fs::path folder = fs::temp_directory_path(failed);
  return (failed ? fs::path("/tmp") : folder) / ("millrace-" + std::to_string(::geteuid()));
}

// 0: the name is not that of a socket.
pid_t process_of(const fs::path& path) {
  const std::string number = path.stem().string();
  pid_t process = 0;
  const auto [end, failed] = std::from_chars(number.data(), number.data() + number.size(), process);
  const bool whole = failed == std::errc() && end == number.data() + number.size();
  return whole && path.extension() == kSuffix && process > 0 ? process : 0;
}

// Asks the socket too: in another container the process may have another number.
bool is_dead(const RunSocket& socket) {
  return ::kill(socket.process, 0) != 0 && errno == ESRCH && net::is_left_over(socket.path.string());
}

} // namespace

void make_run_folder(const fs::path& folder) {
  if (::mkdir(folder.c_str(), 0700) != 0 && errno != EEXIST)
    refuse(folder, "the folder cannot be made: " + std::generic_category().message(errno));
  struct stat facts {};
  if (::lstat(folder.c_str(), &facts) != 0) // a link could lead to another user's folder
    refuse(folder, "the folder cannot be looked at: " + std::generic_category().message(errno));
  check_folder(folder, facts);
}

fs::path open_run_folder() {
  fs::path folder = session_folder();
  if (folder.empty()) folder = temporary_folder();
  make_run_folder(folder);
  return folder;
}

fs::path socket_in(const fs::path& folder) { return folder / (std::to_string(::getpid()) + kSuffix); }

std::vector<RunSocket> sockets_in(const fs::path& folder) {
  std::vector<RunSocket> found;
  struct stat facts {};
  if (::lstat(folder.c_str(), &facts) != 0) return found;
  check_folder(folder, facts);
  std::error_code failed;
  for (fs::directory_iterator entry(folder, failed), end; !failed && entry != end; entry.increment(failed)) {
    const RunSocket socket{process_of(entry->path()), entry->path()};
    std::error_code ignored;
    if (socket.process == 0)
      continue;
    else if (is_dead(socket))
      fs::remove(socket.path, ignored);
    else
      found.push_back(socket);
  }
  std::sort(found.begin(), found.end(),
            [](const RunSocket& one, const RunSocket& other) { return one.process < other.process; });
  return found;
}

std::vector<RunSocket> find_sockets(std::vector<std::string>& complaints) {
  std::vector<RunSocket> found;
  for (const fs::path& folder : {session_folder(), temporary_folder()}) {
    if (folder.empty()) continue;
    try {
      const std::vector<RunSocket> here = sockets_in(folder);
      found.insert(found.end(), here.begin(), here.end());
    } catch (const Failure& failure) {
      complaints.push_back("left out: " + folder.string() + ": " + failure.error().what);
    }
  }
  return found;
}

} // namespace millrace::serve
