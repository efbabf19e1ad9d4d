// A file that is written beside its name and gets its name when it is whole: NAME.part.EXT, under a lock.
//
// Who writes holds an flock() on the part file. A second writer of the same name is refused; a part file that nobody
// holds is what a crash has left, and is kept under another name (NAME.part-1.EXT, …). The lock goes with its process,
// however that ends.
//
// A whole film survives a loss of power: its bytes are on the disk before it gets its name, and the name is before
// commit() returns. What is written meanwhile is the system's to write when it likes.
#pragma once

#include <cstdint>
#include <functional>
#include <stdexcept>
#include <string>

namespace millrace::media {

// "out/film.part.mp4" of "out/film.mp4".
std::string part_path_of(const std::string& path);

// The end of a chain of symbolic links, whether it is there or not: what is renamed must not replace a link.
std::string resolved_path(const std::string& path);

class PartFile {
 public:
  // Told of a part file that was there, and of the name that it is kept under.
  using Kept = std::function<void(const std::string& part_path, const std::string& kept_path)>;

  PartFile() = default;
  ~PartFile() { abandon(); }
  PartFile(const PartFile&) = delete;
  PartFile& operator=(const PartFile&) = delete;

  // Makes folders and the part file, empty, open for reading and writing, locked. `kept` is told of what was left
  // there. Throws std::runtime_error with the path and the system's words; also where `path` is there and may not be
  // replaced, and where another process writes it.
  void open(const std::string& path, bool may_replace, const Kept& kept);

  // Waits until the disk has the bytes, gives the file its name, and waits until the disk has that. Throws where it
  // cannot: the file system says late that it has not kept the bytes, the part file is gone or another one, a folder is
  // gone, or `path` has come into being and may not be replaced; the file stays where it is then, and stays open.
  void commit();

  // Closes it: a part file without a byte is removed, any other stays as it is. Nothing happens after commit().
  void abandon();

  // After commit() the lock may be held on the finished file, for the first of several that are written in turn.
  void close();

  bool is_open() const { return descriptor_ >= 0; }
  int descriptor() const { return descriptor_; }
  const std::string& path() const { return path_; }
  const std::string& part_path() const { return part_path_; }

  // True if the part file has lost its name: what is written into it goes nowhere.
  bool is_gone() const;

  // Of a file that has its name: true while that name still means it.
  bool is_in_place() const;

 private:
  bool has_its_name() const;
  void sync_folders() const;

  std::runtime_error cannot_write(const std::string& why) const;

  std::string asked_, path_, part_path_; // `asked_` is what the user wrote, `path_` the end of its links
  std::string top_folder_;               // that was there already; the folders below it were made for this file
  bool may_replace_ = true, committed_ = false;
  int descriptor_ = -1;
};

} // namespace millrace::media
