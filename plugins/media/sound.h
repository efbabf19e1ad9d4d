// The sound of a file, packet by packet as it is there: copied beside pictures, never decoded.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>

#include "plugins/media/av.h"
#include "plugins/media/containers.h"

namespace millrace::media {

class Sound {
 public:
  explicit Sound(const std::atomic<bool>& interrupted) : interrupted_(interrupted) {}
  ~Sound() { close(); }
  Sound(const Sound&) = delete;
  Sound& operator=(const Sound&) = delete;

  // Opens the file and finds its best sound. Throws std::runtime_error: it cannot be read, has no sound, or one that
  // the container cannot hold.
  void open(const std::string& path, const Container& container, void* log_opaque);
  void close();
  bool is_open() const { return format_ != nullptr; }
  const AVStream* stream() const { return stream_; }

  // Skips what sounds before this media time: that of the file's first picture is 0, as in video.file; of a file
  // without pictures, that of its beginning.
  void begin_at(int64_t media_time_ns);

  // The next packet that begins before `end_ns` after the beginning; false where there is none. Its times are in the
  // time base of stream(), from the beginning on less `less_ns`. The packet is the caller's.
  bool next(int64_t end_ns, int64_t less_ns, AVPacket& packet);

 private:
  bool read();

  const std::atomic<bool>& interrupted_;
  std::string path_;
  AVFormatContext* format_ = nullptr;
  AVStream* stream_ = nullptr;
  Packet packet_;
  bool has_packet_ = false, ended_ = false;
  int64_t zero_ns_ = 0;  // the container's time that is media time 0
  int64_t begin_ns_ = 0; // media time of the recording's first picture
};

} // namespace millrace::media
