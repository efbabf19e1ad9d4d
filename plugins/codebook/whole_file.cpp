// Writes a file beside its place and renames it; see whole_file.h.
#include "plugins/codebook/whole_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <filesystem>

#include "millrace/write_signals.h"

namespace millrace::codebook {

namespace {

// Names that are tried: a process with the same number may have crashed and left a file of such a name.
constexpr int kTriesMax = 100;

// Links in a row, as the system follows them.
constexpr int kLinksMax = 40;

// The path that a link leads to; there need be no file.
std::string followed(std::filesystem::path path) {
  for (int links = 0; std::filesystem::is_symlink(path); ++links) {
    if (links == kLinksMax) throw std::system_error(ELOOP, std::generic_category());
    path = path.parent_path() / std::filesystem::read_symlink(path); // an absolute one takes the place of all
  }
  return path.string();
}

std::system_error failed() { return {errno, std::generic_category()}; }

} // namespace

WholeFile::WholeFile(std::string path) : path_(followed(std::move(path))) {
  namespace fs = std::filesystem;
  const fs::file_status there = fs::status(path_);
  if (fs::exists(there) && !fs::is_regular_file(there))
    throw std::system_error(fs::is_directory(there) ? EISDIR : EINVAL, std::generic_category());
  const fs::path folder = fs::path(path_).parent_path();
  if (!folder.empty()) fs::create_directories(folder);
  static std::atomic<uint32_t> made{0}; // by this process, for a name of its own
  for (int tries = 0; file_ < 0 && tries < kTriesMax; ++tries) {
    part_ = path_ + ".part-" + std::to_string(::getpid()) + "-" + std::to_string(made++);
    file_ = ::open(part_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0666);
    if (file_ < 0 && errno != EEXIST) break;
  }
  if (file_ < 0) throw failed();
}

WholeFile::~WholeFile() {
  if (file_ < 0) return;
  ::close(file_);
  ::unlink(part_.c_str());
}

void WholeFile::write(std::span<const std::byte> bytes) {
  const HeldWriteSignals held;
  for (size_t at = 0; at < bytes.size();) {
    const ssize_t count = ::write(file_, bytes.data() + at, bytes.size() - at);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) throw failed();
    at += static_cast<size_t>(count);
  }
  written_ += bytes.size();
}

void WholeFile::fill_to(size_t offset) {
  static constexpr std::array<std::byte, 64> kZeros{};
  while (written_ < offset) write(std::span(kZeros).first(std::min(offset - written_, kZeros.size())));
}

void WholeFile::commit() {
  if (::fsync(file_) != 0) throw failed();
  if (::rename(part_.c_str(), path_.c_str()) != 0) throw failed();
  ::close(file_);
  file_ = -1;
}

} // namespace millrace::codebook
