// Writes one file, or one stream to an address: header, packets in order, trailer.
#pragma once

#include <atomic>
#include <memory>
#include <optional>
#include <string>

#include "plugins/media/av.h"
#include "plugins/media/containers.h"
#include "plugins/media/interrupt.h"
#include "plugins/media/output_file.h"

namespace millrace::media {

// Properties of a file's streams.
struct MuxedStreams {
  const AVCodecParameters* video = nullptr;
  AVRational time_base = {1, 25}; // for the packets of `video`; may differ from the encoder's
  AVRational rate = {25, 1};
  const AVStream* sound = nullptr; // the stream that is copied; may be null
};

class Muxer {
 public:
  struct Options {
    Container container;
    bool fragments = true; // MP4 and MOV: pieces of at most half a second, each complete
    bool may_replace = true;
    void* log_opaque = nullptr;
    double timeout_s = 5; // for addresses: how long a call may wait
  };
  Muxer(const Options& options, const std::atomic<bool>& interrupted);
  ~Muxer();
  Muxer(const Muxer&) = delete;
  Muxer& operator=(const Muxer&) = delete;

  // Writes the header into memory and discards it, to get the refusals that only the muxer can give. Throws
  // std::invalid_argument. Addresses are not tried.
  static void try_header(const Options& options, const MuxedStreams& streams, const std::string& path);

  // Makes the file. An address is connected to in begin(). Throws std::runtime_error.
  void open(const std::string& path, const PartFile::Kept& kept);
  // Writes the header. Throws.
  void begin(const MuxedStreams& streams);
  // Write packets in the order of their decoding times. Video is in MuxedStreams::time_base, sound in the time base of
  // its own stream. Throw the sentence of the first write that failed.
  // `end_ns`: the end of the file from its beginning, if this is its last packet.
  void write_video(AVPacket& packet, std::optional<int64_t> end_ns = std::nullopt);
  void write_sound(AVPacket& packet);
  // Writes the trailer and the last bytes, and gives the file its name. Throws.
  void finish();
  // Closes without an end. Written bytes stay in the part file.
  void abandon();

  void hold_lock() { output_.hold_lock(); }
  bool has_begun() const { return begun_; }
  const std::string& path() const { return path_; }
  // The path of a file that is not whole yet; "" if there is none.
  std::string part_path() const { return output_.part_path(); }

 private:
  void write(AVPacket& packet, AVRational time_base, int stream, std::optional<int64_t> end_ns = std::nullopt);
  void bridge_pause(const AVPacket& next);
  void write_empty(int64_t dts);
  void connect();
  void check(int result);
  void close();

  Options options_;
  Interrupt interrupt_;
  OutputFile output_;
  std::string path_;
  AVFormatContext* format_ = nullptr;
  AVRational video_time_base_ = {1, 25}, sound_time_base_ = {1, 1000};
  Packet last_; // the last packet of the video; with its bytes if the container needs them for a pause
  bool has_last_ = false;
  bool begun_ = false, is_address_ = false;
};

} // namespace millrace::media
