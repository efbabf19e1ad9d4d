// The folder where the runs of a user have their control sockets, a socket PID.sock for each process.
//
// It is $XDG_RUNTIME_DIR/millrace if that variable names a folder of this user, else millrace-UID in the temporary
// folder. Nobody else may enter it: a folder that another user owns or may enter is refused, because that user could
// put a socket of their own there.
#pragma once

#include <sys/types.h>

#include <filesystem>
#include <string>
#include <vector>

namespace millrace::serve {

// Makes the folder if it is not there. Throws Failure (MR0118) if it cannot be made or used.
std::filesystem::path open_run_folder();
// The same for a folder of that name.
void make_run_folder(const std::filesystem::path& folder);

// The socket of this process.
std::filesystem::path socket_in(const std::filesystem::path& folder);

struct RunSocket {
  pid_t process = 0;
  std::filesystem::path path;
};
// The sockets in the folder, by process; none if it is not there. Removes those that dead processes left. Throws
// Failure (MR0118) for a folder that is refused.
std::vector<RunSocket> sockets_in(const std::filesystem::path& folder);

// The same of both folders: a run may have been started where the variable was not set. A folder that is refused is
// left out and told in `complaints`.
std::vector<RunSocket> find_sockets(std::vector<std::string>& complaints);

} // namespace millrace::serve
