// Takes a muxer's bytes and writes them, with each write checked, to a part file, a FIFO, a device or standard output.
//
// The first failure is remembered with path, byte and reason, because libavformat reports little of it and often late.
// Writes into a FIFO or a pipe wait for their reader without limit, but in slices, so that an interrupt ends them.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>

#include "plugins/media/av.h"
#include "plugins/media/part_file.h"

namespace millrace::media {

class OutputFile {
 public:
  // `interrupted` is watched while a call waits.
  explicit OutputFile(const std::atomic<bool>& interrupted) : interrupted_(interrupted) {}
  ~OutputFile();
  OutputFile(const OutputFile&) = delete;
  OutputFile& operator=(const OutputFile&) = delete;

  // `path`: a file, "-" for standard output, a FIFO or a device. Waits for a FIFO's reader. Throws std::runtime_error.
  void open(const std::string& path, bool may_replace, const PartFile::Kept& kept);

  // For AVFormatContext::pb. This object owns it until the file is closed.
  AVIOContext* io() const { return io_; }

  // Writes all bytes and gives the file its name. Throws the first failure, also one of the renaming.
  void commit();
  // Closes a file that did not become whole. Its bytes stay in the part file.
  void abandon();
  // Makes commit() keep the lock, on the finished file, until this object is gone.
  void hold_lock() { holds_lock_ = true; }

  bool is_open() const { return descriptor_ >= 0; }
  bool is_regular() const { return part_.is_open(); }
  // "" if there is none.
  std::string part_path() const { return part_.is_open() ? part_.part_path() : ""; }
  uint64_t bytes_written() const { return bytes_; }
  // "cannot write 'PATH': No space left on device (at byte 4096)…"; "" while nothing has failed.
  const std::string& failure() const { return failure_; }
  // Throws failure() if there is one.
  void check() const;

 private:
  static int write_packet(void* self, uint8_t* bytes, int count);
  static int64_t seek(void* self, int64_t offset, int whence);
  int write_all(const uint8_t* bytes, size_t count);
  void open_fifo(const std::string& path);
  void open_standard_output();
  void make_io(bool seekable);
  void fail(int error);
  void free_io();
  bool wait_until_writable();

  const std::atomic<bool>& interrupted_;
  std::string path_, failure_;
  PartFile part_;
  AVIOContext* io_ = nullptr;
  int descriptor_ = -1;
  bool owns_descriptor_ = false, may_block_ = false, holds_lock_ = false;
  size_t piece_max_ = 0; // the most bytes for one write(), so that it does not block; 0: any
  int64_t position_ = 0;
  uint64_t bytes_ = 0;
};

} // namespace millrace::media
