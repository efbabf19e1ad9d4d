// Locks, names and renames part files; see part_file.h.
#include "plugins/media/part_file.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <stdexcept>
#include <system_error>

namespace millrace::media {

namespace fs = std::filesystem;

namespace {

constexpr mode_t kAccess = S_IRWXU | S_IRWXG | S_IRWXO;
constexpr int kLinksMax = 16;       // links followed, since links may point at each other
constexpr int kLeftoversMax = 1000; // part files of crashed runs beside one name
constexpr int kTriesMax = 100;      // other writers may finish between our open and our lock

// Suggests an edit from "out/a.mp4" to "out/a-2.mp4".
std::string beside(const std::string& path) {
  const fs::path name(path);
  return "\ntry: path=" + (name.parent_path() / (name.stem().string() + "-2" + name.extension().string())).string();
}

// Suggests a path that can be written, as an edit of the parameter `path`.
std::string elsewhere(const std::string& path) {
  std::error_code error;
  const fs::path folder = fs::temp_directory_path(error);
  return error ? "" : "\ntry: path=" + (folder / fs::path(path).filename()).string();
}

std::runtime_error cannot_write(const std::string& path, const std::string& why) {
  return std::runtime_error("cannot write '" + path + "': " + why);
}

bool is_same_file(int descriptor, const std::string& path) {
  struct stat held {
  }, named{};
  return fstat(descriptor, &held) == 0 && stat(path.c_str(), &named) == 0 && held.st_dev == named.st_dev &&
         held.st_ino == named.st_ino;
}

// Renames without replacing. On file systems that cannot do this, it links and unlinks, which does not replace either.
// Returns 0 or errno.
int rename_to_new(const std::string& from, const std::string& to) {
  if (renameat2(AT_FDCWD, from.c_str(), AT_FDCWD, to.c_str(), RENAME_NOREPLACE) == 0) return 0;
  if (errno != EINVAL && errno != ENOSYS) return errno;
  if (link(from.c_str(), to.c_str()) != 0) return errno;
  return unlink(from.c_str()) == 0 ? 0 : errno;
}

// Renames a part file that a crash has left and returns its new name.
std::string keep_leftover(const std::string& part_path) {
  const fs::path part = part_path;
  for (int number = 1; number <= kLeftoversMax; ++number) {
    const std::string kept =
        (part.parent_path() / (part.stem().string() + "-" + std::to_string(number) + part.extension().string()))
            .string();
    const int error = rename_to_new(part_path, kept);
    if (error == 0) return kept;
    if (error != EEXIST) throw cannot_write(kept, std::strerror(error));
  }
  throw cannot_write(part_path, "there are " + std::to_string(kLeftoversMax) + " unfinished files beside it");
}

// The folder itself, or the nearest one above it that exists.
fs::path nearest_folder(fs::path folder) {
  std::error_code error;
  while (!folder.empty() && folder != folder.parent_path() && !fs::exists(folder, error)) folder = folder.parent_path();
  return folder;
}

// Waits until the disk has a folder's names. Returns 0 or errno; 0 also if the file system does not support it.
int sync_folder(const fs::path& folder) {
  const int descriptor = ::open(folder.empty() ? "." : folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (descriptor < 0) return 0; // a folder may be writable and not readable
  const int error = fsync(descriptor) == 0 || errno == EINVAL || errno == EROFS ? 0 : errno;
  ::close(descriptor);
  return error;
}

// Gives a new file the mode and, where this process may, the owner and the group of the file that it will replace. So a
// private film is replaced by a private one, from the first byte on.
void take_over_access(int descriptor, const std::string& path) {
  struct stat there {
  }, made{};
  if (stat(path.c_str(), &there) != 0 || !S_ISREG(there.st_mode) || fstat(descriptor, &made) != 0) return;
  mode_t mode = there.st_mode & kAccess;
  // One after the other, as a member of the group may give the file to it, and not to another owner.
  if (made.st_gid != there.st_gid && fchown(descriptor, static_cast<uid_t>(-1), there.st_gid) != 0)
    mode &= ~mode_t{S_IRWXG}; // another group would get what was meant for the old one
  if (made.st_uid != there.st_uid) static_cast<void>(fchown(descriptor, there.st_uid, static_cast<gid_t>(-1)) == 0);
  static_cast<void>(fchmod(descriptor, mode) == 0); // a file system without modes
}

// True if the file exists and another process holds its lock.
bool is_locked(const std::string& path) {
  const int descriptor = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (descriptor < 0) return false;
  const bool locked = flock(descriptor, LOCK_SH | LOCK_NB) != 0 && errno == EWOULDBLOCK;
  ::close(descriptor);
  return locked;
}

} // namespace

std::string part_path_of(const std::string& path) {
  const fs::path whole = path;
  return (whole.parent_path() / (whole.stem().string() + ".part" + whole.extension().string())).string();
}

std::string resolved_path(const std::string& path) {
  fs::path at = path;
  std::error_code error;
  for (int i = 0; i < kLinksMax && fs::is_symlink(at, error); ++i) {
    const fs::path target = fs::read_symlink(at, error);
    if (error) break;
    at = target.is_absolute() ? target : at.parent_path() / target;
  }
  return at.string();
}

void PartFile::open(const std::string& path, bool may_replace, const Kept& kept) {
  abandon();
  asked_ = path;
  path_ = resolved_path(path);
  part_path_ = part_path_of(path_);
  may_replace_ = may_replace;
  committed_ = false;
  std::error_code error;
  const fs::path folder = fs::path(path_).parent_path();
  top_folder_ = nearest_folder(folder).string();
  if (!folder.empty()) fs::create_directories(folder, error);
  if (error) throw cannot_write("its folder cannot be made: " + error.message());
  if (fs::is_directory(path_, error)) throw cannot_write(std::strerror(EISDIR));
  if (fs::exists(path_, error)) {
    if (!may_replace_) throw cannot_write("it is there already, and `exists: fail` keeps it");
    if (is_locked(path_)) throw cannot_write("another process is writing it" + beside(asked_));
  }
  // Until it has the mode of the file that it replaces, nobody else may open it.
  const mode_t mode = fs::is_regular_file(path_, error) ? 0600 : 0666;
  for (int i = 0; i < kTriesMax; ++i) {
    descriptor_ = ::open(part_path_.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, mode);
    if (descriptor_ < 0) {
      const int error_number = errno;
      const std::string reason = std::strerror(error_number);
      throw cannot_write(
          "its file '" + part_path_ + "' cannot be made: " + reason +
          (error_number == EACCES || error_number == EROFS || error_number == ENOENT ? elsewhere(asked_) : ""));
    }
    if (flock(descriptor_, LOCK_EX | LOCK_NB) != 0) {
      const int reason = errno;
      close();
      throw cannot_write(reason == EWOULDBLOCK ? "another process is writing it" + beside(asked_)
                                               : std::strerror(reason));
    }
    struct stat opened {};
    // The lock's former holder may have renamed the file or moved it out of the way.
    const bool ours = is_same_file(descriptor_, part_path_) && fstat(descriptor_, &opened) == 0;
    if (ours && opened.st_size == 0) return take_over_access(descriptor_, path_);
    if (ours) kept(part_path_, keep_leftover(part_path_));
    close();
  }
  throw cannot_write("other processes keep writing it");
}

void PartFile::commit() {
  if (descriptor_ < 0 || committed_) return;
  if (!has_its_name()) throw cannot_write("its file '" + part_path_ + "' was removed while it was written");
  if (fdatasync(descriptor_) != 0 && errno != EINVAL)
    throw cannot_write(std::string(std::strerror(errno)) + "; what was written is in '" + part_path_ + "'");
  // Each close() makes a network file system send the data that it still holds, and returns the result. The lock stays
  // with the other descriptor.
  if (const int second = ::dup(descriptor_); second >= 0 && ::close(second) != 0 && errno != EINTR)
    throw cannot_write(std::string(std::strerror(errno)) + "; what was written is in '" + part_path_ + "'");
  int error = 0;
  take_over_access(descriptor_, path_); // it may have been changed or made meanwhile
  if (may_replace_)
    error = rename(part_path_.c_str(), path_.c_str()) == 0 ? 0 : errno;
  else
    error = rename_to_new(part_path_, path_);
  if (error == EEXIST)
    throw cannot_write("it has come into being meanwhile, and `exists: fail` keeps it; the film is in '" + part_path_ +
                       "'");
  if (error) throw cannot_write(std::string(std::strerror(error)) + "; the film is in '" + part_path_ + "'");
  committed_ = true;
  sync_folders();
}

void PartFile::sync_folders() const {
  fs::path folder = fs::path(path_).parent_path();
  for (;; folder = folder.parent_path()) {
    if (const int error = sync_folder(folder))
      throw cannot_write(std::string(std::strerror(error)) + "; the film is whole, and a loss of power may take it");
    if (folder.empty() || folder == fs::path(top_folder_) || folder == folder.parent_path()) return;
  }
}

std::runtime_error PartFile::cannot_write(const std::string& why) const {
  return millrace::media::cannot_write(asked_, why);
}

void PartFile::abandon() {
  if (descriptor_ < 0) return;
  struct stat held {};
  if (!committed_ && fstat(descriptor_, &held) == 0 && held.st_size == 0 && has_its_name()) unlink(part_path_.c_str());
  close();
}

void PartFile::close() {
  if (descriptor_ >= 0) ::close(descriptor_);
  descriptor_ = -1;
}

bool PartFile::is_gone() const {
  struct stat held {};
  return descriptor_ >= 0 && fstat(descriptor_, &held) == 0 && held.st_nlink == 0;
}

bool PartFile::is_in_place() const { return committed_ && is_same_file(descriptor_, path_); }

bool PartFile::has_its_name() const { return is_same_file(descriptor_, part_path_); }

} // namespace millrace::media
