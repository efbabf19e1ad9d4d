// Reads and replaces files that their owner alone may read.
#include "net/system/private_file.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>

#include <cerrno>
#include <system_error>

#include "observe/error.h"
#include "observe/error_codes.h"

namespace millrace::net {

namespace {

constexpr mode_t kOthers = 077, kOthersWrite = 022;

[[noreturn]] void fail(const std::filesystem::path& path, const std::string& sentence, std::string edit = "") {
  throw Failure(Error{code::bad_identity, sentence, {path.string(), 0, 0}, {}, {}, std::move(edit)});
}

[[noreturn]] void fail_by_system(const std::filesystem::path& path, const char* act) {
  fail(path, std::string("cannot ") + act + ": " + std::generic_category().message(errno));
}

bool write_all(int file, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t written = ::write(file, bytes.data(), bytes.size());
    if (written > 0) bytes.remove_prefix(static_cast<size_t>(written));
    if (written < 0 && errno != EINTR) return false;
  }
  return true;
}

void check_owner(const std::filesystem::path& path, const struct stat& facts) {
  if (facts.st_uid != ::geteuid())
    fail(path, "it belongs to another user, whose number is " + std::to_string(facts.st_uid));
}

} // namespace

void make_private_folder(const std::filesystem::path& folder) {
  std::error_code error;
  if (folder.has_parent_path()) std::filesystem::create_directories(folder.parent_path(), error);
  if (::mkdir(folder.c_str(), 0700) != 0 && errno != EEXIST) fail_by_system(folder, "make the folder");
  struct stat facts {};
  if (::stat(folder.c_str(), &facts) != 0) fail_by_system(folder, "look at the folder");
  if (!S_ISDIR(facts.st_mode)) fail(folder, "this is no folder");
  check_owner(folder, facts);
  if (facts.st_mode & kOthersWrite) fail(folder, "other users may write to the folder", "chmod 700 " + folder.string());
}

FolderLock::FolderLock(const std::filesystem::path& folder)
    : folder_(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC)) {
  if (!folder_) fail_by_system(folder, "open the folder");
  while (::flock(folder_.number(), LOCK_EX) != 0)
    if (errno != EINTR) fail_by_system(folder, "lock the folder");
}

bool read_private_file(const std::filesystem::path& path, size_t bytes_max, std::string& bytes) {
  // O_NONBLOCK: to open a named pipe would wait for its other end.
  const Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
  if (!file && errno == ENOENT) return false;
  if (!file) fail_by_system(path, "open the file");
  struct stat facts {};
  if (::fstat(file.number(), &facts) != 0) fail_by_system(path, "look at the file");
  if (!S_ISREG(facts.st_mode)) fail(path, "this is no plain file");
  check_owner(path, facts);
  if (facts.st_mode & kOthers) fail(path, "other users may read or write the file", "chmod 600 " + path.string());
  bytes.assign(bytes_max + 1, '\0');
  size_t size = 0;
  while (size < bytes.size()) {
    const ssize_t got = ::read(file.number(), bytes.data() + size, bytes.size() - size);
    if (got == 0) break;
    if (got < 0 && errno != EINTR) fail_by_system(path, "read the file");
    if (got > 0) size += static_cast<size_t>(got);
  }
  if (size > bytes_max) fail(path, "the file has more than " + std::to_string(bytes_max) + " bytes");
  bytes.resize(size);
  return true;
}

void write_private_file(const std::filesystem::path& path, std::string_view bytes) {
  const std::filesystem::path unfinished = path.string() + ".new";
  ::unlink(unfinished.c_str()); // a process that died may have left it
  const Descriptor file(::open(unfinished.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (!file) fail_by_system(unfinished, "make the file");
  if (::fchmod(file.number(), 0600) != 0 || !write_all(file.number(), bytes) || ::fsync(file.number()) != 0 ||
      ::rename(unfinished.c_str(), path.c_str()) != 0) {
    const int error = errno;
    ::unlink(unfinished.c_str());
    errno = error;
    fail_by_system(path, "write the file");
  }
  // The new name is on the disk once the folder is.
  const std::filesystem::path parent = path.parent_path();
  const Descriptor folder(::open(parent.empty() ? "." : parent.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!folder || ::fsync(folder.number()) != 0) fail_by_system(path, "write the file's folder");
}

} // namespace millrace::net
