// Looks for programs named millrace-NAME, lists them in the help, and runs one of them; see plugin_commands.h.
#include "cli/plugin_commands.h"

#include <fmt/format.h>
#include <stdlib.h>
#include <unistd.h>

#include <filesystem>
#include <map>
#include <memory>
#include <string_view>

#include "cli/beside.h"
#include "cli/signals.h"
#include "cli/usage_error.h"
#include "embed/plugin_folders.h"

namespace millrace::cli {
namespace fs = std::filesystem;

namespace {

// "hello" for the file millrace-hello; "" if a file of this name is no command's program. A plugin may be named
// millrace-hello.so, and libraries are executable.
std::string command_of(const fs::path& file) {
  constexpr std::string_view kBegin = "millrace-";
  const std::string name = file.filename().string();
  if (!name.starts_with(kBegin) || file.extension() == ".so") return "";
  const std::string command = name.substr(kBegin.size());
  return command.starts_with('-') || command.starts_with('.') ? "" : command;
}

bool has_command(const CLI::App& app, const std::string& name) {
  return !app.get_subcommands([&](const CLI::App* command) { return command->get_name() == name; }).empty();
}

// The programs by the names of their commands. Those that `app` has itself are left out: its own come first.
std::map<std::string, fs::path> programs_of_plugins(const CLI::App& app) {
  std::vector<fs::path> folders;
  for (const fs::path& folder : folders_beside()) folders.push_back(folder);
  for (const std::string& folder : embed::standard_plugin_folders()) folders.emplace_back(folder);
  std::map<std::string, fs::path> programs;
  std::error_code ignored;
  for (const fs::path& folder : folders)
    for (fs::directory_iterator at(folder, ignored), end; at != end; at.increment(ignored)) {
      const std::string command = command_of(at->path());
      if (command.empty() || has_command(app, command) || !at->is_regular_file(ignored)) continue;
      programs.try_emplace(command, at->path());
    }
  return programs;
}

bool is_executable(const fs::path& file) { return access(file.c_str(), X_OK) == 0; }

class HelpWithPlugins final : public CLI::Formatter {
 public:
  std::string make_footer(const CLI::App* app) const override {
    std::string lines;
    for (const auto& [command, program] : programs_of_plugins(*app))
      if (is_executable(program))
        lines += fmt::format("  {:<{}} {}\n", command, get_column_width() - 3, program.string());
    return (lines.empty() ? "" : "Commands of plugins:\n" + lines) + Formatter::make_footer(app);
  }
};

} // namespace

void hand_over_to_plugin(const CLI::App& app, const std::string& name, const std::vector<std::string>& arguments) {
  if (has_command(app, name)) return;
  const std::map<std::string, fs::path> programs = programs_of_plugins(app);
  const auto found = programs.find(name);
  if (found == programs.end()) {
    std::vector<std::string> others;
    for (const auto& [command, program] : programs)
      if (is_executable(program)) others.push_back(command);
    throw Failure(unknown_command(app, name, others));
  }
  setenv("MILLRACE_COMMAND", this_program().c_str(), 1);
  restore_signals();
  become(found->second, arguments);
}

void list_plugin_commands(CLI::App& app) { app.formatter(std::make_shared<HelpWithPlugins>()); }

} // namespace millrace::cli
