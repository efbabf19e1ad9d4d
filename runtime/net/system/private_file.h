// Files that their owner alone may read: the key of a node, and the list of those it trusts.
#pragma once

#include <cstddef>
#include <filesystem>
#include <string>
#include <string_view>

#include "net/system/descriptor.h"

namespace millrace::net {

// Makes the folder with mode 0700 where it is not there. Throws Failure (MR0815) if it cannot, if the folder is another
// user's, or if others may write to it: they could put their own key in place of ours.
void make_private_folder(const std::filesystem::path& folder);

// Keeps other processes that take the same lock out of a folder. It waits for them; they hold it for milliseconds.
class FolderLock {
 public:
  explicit FolderLock(const std::filesystem::path& folder);

 private:
  Descriptor folder_;
};

// The whole file. False if there is none. Throws Failure if it cannot be read, is no plain file, is another user's, may
// be read or written by others, or has more than `bytes_max` bytes.
bool read_private_file(const std::filesystem::path& path, size_t bytes_max, std::string& bytes);

// Replaces the file, with mode 0600: after a crash it is whole, the old one or the new one. The caller holds the
// folder's lock. Throws Failure.
void write_private_file(const std::filesystem::path& path, std::string_view bytes);

} // namespace millrace::net
