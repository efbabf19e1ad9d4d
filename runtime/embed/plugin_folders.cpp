// See plugin_folders.h.
#include "embed/plugin_folders.h"

#include <cstdlib>
#include <filesystem>
#include <sstream>

namespace millrace::embed {
namespace fs = std::filesystem;

std::vector<std::string> standard_plugin_folders() {
  std::vector<std::string> folders;
  std::error_code failed;
  const fs::path program = fs::read_symlink("/proc/self/exe", failed);
  if (!failed) {
    folders.push_back((program.parent_path() / "plugins").string());
    folders.push_back((program.parent_path().parent_path() / "lib" / "millrace" / "plugins").string());
  }
  if (const char* paths = std::getenv("MILLRACE_PLUGIN_PATH")) {
    std::istringstream text(paths);
    for (std::string folder; std::getline(text, folder, ':');)
      if (!folder.empty()) folders.push_back(folder);
  }
  return folders;
}

} // namespace millrace::embed
