// See beside.h.
#include "cli/beside.h"

#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>

#include "observe/error.h"
#include "observe/error_codes.h"

namespace millrace::cli {
namespace fs = std::filesystem;

fs::path this_program() {
  std::error_code failed;
  return fs::read_symlink("/proc/self/exe", failed);
}

std::array<fs::path, 2> folders_beside(const fs::path& program) {
  const fs::path folder = program.parent_path();
  return {folder, folder.parent_path() / "libexec" / "millrace"};
}

fs::path find_beside(const std::string& name, const std::string& package, const fs::path& program) {
  const std::array<fs::path, 2> folders = folders_beside(program);
  for (const fs::path& place : folders) {
    std::error_code failed;
    if (fs::is_regular_file(place / name, failed)) return place / name;
  }
  throw Failure(Error{code::program_not_installed,
                      "the program " + name + " is not installed",
                      {},
                      {"it was looked for in " + folders[0].string() + " and in " + folders[1].string(),
                       "the package " + package + " has it; in a build folder it is the target " + name},
                      "",
                      ""});
}

void become(const fs::path& program, const std::vector<std::string>& arguments) {
  std::vector<std::string> words = {program.string()};
  words.insert(words.end(), arguments.begin(), arguments.end());
  std::vector<char*> pointers;
  for (std::string& word : words) pointers.push_back(word.data());
  pointers.push_back(nullptr);
  std::fflush(nullptr);
  execv(words[0].c_str(), pointers.data());
  throw Failure(code::program_not_installed, "cannot run " + program.string() + ": " + std::strerror(errno));
}

} // namespace millrace::cli
