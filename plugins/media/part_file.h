// A file that is written as NAME.part.EXT, under a lock, and gets its own name when it is whole.
//
// The writing process holds an flock() on the part file. A second writer of the same name is refused. A part file
// without a lock is left from a crash and is kept under another name (NAME.part-1.EXT, …). The lock ends with its
// process, however that ends.
//
// A whole film survives a loss of power: its bytes are on the disk before it gets its name, and the name is on the disk
// before commit() returns. Until commit() the system decides when it writes the bytes to the disk.
#pragma once

#include <cstdint>
#include <functional>
#include <stdexcept>
#include <string>

namespace millrace::media {

// "out/film.part.mp4" for "out/film.mp4".
std::string part_path_of(const std::string& path);

// The end of a chain of symbolic links, existing or not, so that a rename does not replace a link.
std::string resolved_path(const std::string& path);

class PartFile {
 public:
  // Called with a part file that was there and the name under which it is kept.
  using Kept = std::function<void(const std::string& part_path, const std::string& kept_path)>;

  PartFile() = default;
  ~PartFile() { abandon(); }
  PartFile(const PartFile&) = delete;
  PartFile& operator=(const PartFile&) = delete;

  // Makes folders and an empty part file, open for reading and writing, and locks it. Calls `kept` for a part file that
  // was left there. Throws std::runtime_error with the path and the system's words, also if `path` exists and may not
  // be replaced, and if another process writes it.
  void open(const std::string& path, bool may_replace, const Kept& kept);

  // Waits until the disk has the bytes, gives the file its name, and waits until the disk has that. Throws if the file
  // system reports late that it could not keep the bytes, if the part file is gone or was replaced, if a folder is
  // gone, or if `path` exists by now and may not be replaced. Then the part file stays and stays open.
  void commit();

  // Closes the part file. An empty one is removed, any other stays. After commit() only the lock is released.
  void abandon();

  // Closes the file and releases the lock. After commit() the file may stay open to keep the lock on the finished file,
  // for the first of several files that are written in turn.
  void close();

  bool is_open() const { return descriptor_ >= 0; }
  int descriptor() const { return descriptor_; }
  const std::string& path() const { return path_; }
  const std::string& part_path() const { return part_path_; }

  // True if the part file has lost its last name, so that bytes written to it are lost.
  bool is_gone() const;

  // True if the file was committed and its name still refers to it.
  bool is_in_place() const;

 private:
  bool has_its_name() const;
  void sync_folders() const;

  std::runtime_error cannot_write(const std::string& why) const;

  std::string asked_, path_, part_path_; // `asked_`: as the user wrote it; `path_`: the end of its links
  std::string top_folder_;               // existed already; the folders below it were made for this file
  bool may_replace_ = true, committed_ = false;
  int descriptor_ = -1;
};

} // namespace millrace::media
