// Copies the sound of a file packet by packet, without decoding, to go beside pictures.
#pragma once

#include <atomic>
#include <cstdint>
#include <optional>
#include <stdexcept>
#include <string>

#include "plugins/media/av.h"
#include "plugins/media/containers.h"
#include "plugins/media/input.h"
#include "plugins/media/interrupt.h"
#include "plugins/media/log.h"

namespace millrace::media {

class Sound {
 public:
  explicit Sound(const std::atomic<bool>& interrupted) : interrupt_(interrupted) {}
  Sound(const Sound&) = delete;
  Sound& operator=(const Sound&) = delete;

  // Opens a file, a pipe or an address and finds its best sound. An address may be silent for `timeout_s`. Throws
  // std::runtime_error if the input cannot be read, has no sound, or has a sound that the container cannot hold.
  void open(const std::string& path, const Container& container, double timeout_s, Log& log);
  bool is_open() const { return input_.has_value(); }
  const AVStream* stream() const { return input_ ? &input_->stream() : nullptr; }

  // Skips the sound before this media time. Media time 0 is the file's first picture, as in video.file; in a file
  // without pictures it is the file's beginning.
  void begin_at(int64_t media_time_ns);

  // The next packet that begins less than `end_ns` after the beginning; false if there is none. Its times are in the
  // time base of stream() and count from `less_ns` after the beginning. The caller owns the packet.
  bool next(int64_t end_ns, int64_t less_ns, AVPacket& packet);

 private:
  bool read();
  std::runtime_error cannot_read(const std::string& why) const;

  Interrupt interrupt_;
  std::string path_;
  std::optional<Input> input_;
  Packet packet_;
  bool has_packet_ = false, ended_ = false;
  int64_t zero_ns_ = 0;  // the container's time that is media time 0
  int64_t begin_ns_ = 0; // media time of the recording's first picture
};

} // namespace millrace::media
