// Programs that belong to the command and are installed beside it: how one is found, and run in the command's place.
#pragma once

#include <array>
#include <filesystem>
#include <string>
#include <vector>

namespace millrace::cli {

// This program's own file, links resolved; "" if the system does not tell.
std::filesystem::path this_program();

// The folders that have such programs: that of `program`, then libexec/millrace of the prefix that has this folder.
std::array<std::filesystem::path, 2> folders_beside(const std::filesystem::path& program = this_program());

// The file of the program `name`, which is in one of folders_beside(). Throws Failure (MR0507) if it is in neither;
// `package` then tells the reader which one to install.
std::filesystem::path find_beside(const std::string& name, const std::string& package,
                                  const std::filesystem::path& program = this_program());

// Ends this program and runs that one in the same process: with the same streams and environment, its signals and its
// exit code. Throws Failure (MR0507) if the system refuses to.
[[noreturn]] void become(const std::filesystem::path& program, const std::vector<std::string>& arguments);

} // namespace millrace::cli
