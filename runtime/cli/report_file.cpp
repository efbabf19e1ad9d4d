// Opens and writes a report or a trace; see report_file.h.
#include "cli/report_file.h"

#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <iostream>
#include <utility>

#include "observe/error.h"
#include "observe/error_codes.h"
#include "observe/printable.h"

namespace millrace::cli {

namespace {

// "" for 0: the system gave no cause.
std::string because(int cause) { return cause == 0 ? "" : std::string(": ") + std::strerror(cause); }

[[noreturn]] void refuse(const std::string& path, int cause) {
  std::error_code ignored;
  const std::filesystem::path folder = std::filesystem::path(path).parent_path();
  const bool no_folder = cause == ENOENT && !folder.empty() && !std::filesystem::exists(folder, ignored);
  Error error{code::unwritable_file, "cannot write " + path + because(cause), {}, {}, "", ""};
  if (no_folder) error.notes.push_back("there is no folder " + folder.string());
  if (no_folder) error.edit = "mkdir -p " + folder.string();
  throw Failure(std::move(error));
}

} // namespace

void refuse_unwritable(const std::string& path) {
  if (path.empty() || path == "-") return;
  std::error_code ignored;
  if (std::filesystem::is_directory(path, ignored)) refuse(path, EISDIR);
  const std::filesystem::path folder = std::filesystem::path(path).parent_path();
  const bool is_there = std::filesystem::exists(path, ignored);
  const std::string place = is_there ? path : folder.empty() ? "." : folder.string();
  if (access(place.c_str(), is_there ? W_OK : W_OK | X_OK) != 0) refuse(path, errno);
}

ReportFile::ReportFile(std::string path) : path_(std::move(path)) {
  if (path_.empty() || path_ == "-") return;
  std::error_code ignored;
  const bool was_there = std::filesystem::exists(path_, ignored);
  errno = 0;
  file_.open(path_, std::ios::binary | std::ios::trunc);
  if (!file_) refuse(path_, errno);
  if (was_there) return;
  file_.close();
  std::filesystem::remove(path_, ignored);
}

std::optional<Error> ReportFile::write(const std::function<void(std::ostream&)>& writes) {
  if (path_.empty()) return std::nullopt;
  std::ostream& out = path_ == "-" ? std::cout : file_;
  errno = 0;
  if (path_ != "-" && !file_.is_open()) file_.open(path_, std::ios::binary | std::ios::trunc);
  writes(out);
  out.flush();
  if (out) return std::nullopt;
  const int cause = errno;
  return Error{code::write_failed, "cannot write " + printable(path_) + because(cause), {}, {}, "", ""};
}

} // namespace millrace::cli
